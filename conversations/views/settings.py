"""A person's settings and API tokens."""

from django.contrib.messages import success
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from conversations import services, tokens
from conversations.access import PersonRequest, person_required
from conversations.forms import ProfileForm
from conversations.middleware import SESSION_KEY
from conversations.views import frame


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def settings_page(request: PersonRequest) -> HttpResponse:
    form = ProfileForm(request.POST or None, instance=services.profile_of(request.user))
    if request.method == "POST" and form.is_valid():
        request.session[SESSION_KEY] = form.save().time_zone
        success(request, "Saved.")
        return redirect("settings")
    return _page(request, form, status=422 if form.errors else 200)


@require_POST
@person_required
def create_token(request: PersonRequest) -> HttpResponse:
    """Answered with the page itself, not a redirect: the token is shown this once."""
    form = ProfileForm(instance=services.profile_of(request.user))
    return _page(request, form, new_token=tokens.create_token(owner=request.user))


@require_POST
@person_required
def revoke_token(request: PersonRequest, token_key: str) -> HttpResponse:
    if not tokens.revoke_token(owner=request.user, token_key=token_key):
        raise Http404
    success(request, "The token is revoked. Programs that use it are locked out from now on.")
    return redirect("settings")


def _page(
    request: PersonRequest, form: ProfileForm, *, new_token: str = "", status: int = 200
) -> HttpResponse:
    context = {"form": form, "tokens": tokens.tokens_of(request.user), "new_token": new_token}
    return frame.page(request, "settings/settings.html", context, status)
