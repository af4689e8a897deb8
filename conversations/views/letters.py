"""Letters: what a person wishes of them, the one that would be written now, those there were, and how to stop them."""

from uuid import UUID

from django.contrib.messages import success, warning
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.access import PersonRequest, person_required
from conversations.forms import LetterForm
from conversations.letters import sending
from conversations.letters.models import Digest, LetterPreference
from conversations.letters.writing import facts_of, write
from conversations.services import profile_of
from conversations.views import frame

LISTED = 30


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def letters(request: PersonRequest) -> HttpResponse:
    preference = sending.preference_of(request.user)
    form = LetterForm(request.POST or None, instance=preference)
    if request.method == "POST" and form.is_valid():
        preference = sending.wish(preference=form.save(commit=False))
        success(request, "Saved.")
        if sending.wants_confirmation(preference):
            _ask(request, preference)
        return redirect("letters")
    preview = sending.upto_now(request.user, now=timezone.now())
    preview.facts = facts_of(request.user, preview)
    context = {
        "form": form,
        "preference": preference,
        "time_zone": profile_of(request.user).time_zone,
        "has_mail": sending.has_mail(),
        "unconfirmed": sending.wants_confirmation(preference),
        "preview": write(request.user, preview, with_quotes=preference.with_quotes),
        "digests": Digest.objects.for_owner(request.user).to_read()[:LISTED],
    }
    return frame.page(request, "letters/letters.html", context, 422 if form.errors else 200)


def _ask(request: PersonRequest, preference: LetterPreference) -> None:
    if sending.ask_to_confirm(preference=preference):
        success(
            request,
            f"A mail with a link is on its way to {preference.address}: letters go there once it was opened "
            "and answered with yes. Until then they stand below.",
        )
    else:
        warning(request, "A mail was sent a moment ago: wait a minute before you ask for another.")


@require_POST
@person_required
def confirm_again(request: PersonRequest) -> HttpResponse:
    preference = sending.preference_of(request.user)
    if sending.wants_confirmation(preference):
        _ask(request, preference)
    return redirect("letters")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Looking at the page confirms nothing: programs that look for viruses open every link."""
    named = sending.address_of_token(token)
    if named is None:
        raise Http404
    owner_id, address = named
    confirmed = request.method == "POST" and sending.confirm_address(owner_id=owner_id, address=address)
    outdated = request.method == "POST" and not confirmed
    context = {"address": address, "confirmed": confirmed, "outdated": outdated}
    return render(request, "letters/confirm.html", context)


@require_safe
@person_required
def letter(request: PersonRequest, digest_id: UUID) -> HttpResponse:
    """A letter as it reads now: what was deleted since is not in it."""
    digest = get_object_or_404(Digest.objects.for_owner(request.user).to_read(), pk=digest_id)
    with_quotes = sending.preference_of(request.user).with_quotes
    shown = write(request.user, digest, with_quotes=with_quotes)
    return frame.page(request, "letters/letter.html", {"letter": shown})


@require_POST
@person_required
def send_now(request: PersonRequest) -> HttpResponse:
    try:
        sending.ask_now(owner=request.user)
    except sending.AskedTooOften:
        warning(request, "One is on its way, or there were enough for today. Nothing was sent.")
    else:
        success(request, "It is being written. Without an address or a mail server it will stand below.")
    return redirect("letters")


@csrf_exempt  # mail programs send it, without a cookie (RFC 8058); the signed token is what it needs
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest, token: str) -> HttpResponse:
    """Looking at the page stops nothing: programs that look for viruses open every link."""
    owner_id = sending.owner_of_token(token)
    if owner_id is None:
        raise Http404
    if request.method == "POST":
        sending.stop_letters(owner_id=owner_id)
    return render(request, "letters/stop.html", {"stopped": request.method == "POST"})
