"""Pages for what went wrong: what happened, what was kept, what to do."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.csrf import requires_csrf_token

from conversations.access import sign_in_first
from neuron_site.problems import problem_response

IN_WORDS = {
    400: ("bad_request", "This could not be read", "Nothing was changed. Go back and try again."),
    403: ("forbidden", "This is not open to you", "It is for those who look after this Neuron."),
    404: ("not_found", "There is nothing here", "It was deleted, or the address is not quite right."),
    413: ("too_large", "This is too much at once", "Nothing was changed. Send it in smaller parts."),
    500: (
        "server_error",
        "Something broke on our side",
        "What you had sent before is kept. Try again in a moment.",
    ),
}


def answer(request: HttpRequest, status: int) -> HttpResponseBase:
    """A page for people, a notice for a fragment, problem+json for programs."""
    code, what, then = IN_WORDS[status]
    if request.path.startswith("/api/"):
        return problem_response(request, status, code, f"{what}. {then}")
    part = "#notice" if getattr(request, "htmx", False) else ""
    response = render(
        request, f"errors/error.html{part}", {"status": status, "what": what, "then": then}, status=status
    )
    response["Cache-Control"] = "no-store"
    return response


@requires_csrf_token
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return answer(request, 413 if isinstance(exception, RequestDataTooBig) else 400)


@requires_csrf_token
def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return answer(request, 403)


@requires_csrf_token
def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return answer(request, 404)


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponseBase:
    return answer(request, 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A page from before the last sign-in. Django's own page for it breaks our content security policy."""
    is_fragment = bool(getattr(request, "htmx", False))
    if is_fragment and not request.user.is_authenticated:
        return sign_in_first(request)
    part = "#notice" if is_fragment else ""
    return render(request, f"errors/csrf.html{part}", status=403)
