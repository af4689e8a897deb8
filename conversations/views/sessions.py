"""Sessions: the first page, the list, one session, and what can be done with it."""

import uuid
from typing import Any
from uuid import UUID

from django.contrib.messages import success
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations import services
from conversations.access import PersonRequest, person_required, session_or_404
from conversations.forms import TitleForm
from conversations.models import Session, Turn
from conversations.openings import openings
from conversations.timeline import entries, greeting, grouped
from conversations.views import frame
from safety.models import BellEvent
from safety.services import note_referrals

SHOWN = 40
PER_PAGE = 60


@require_safe
@person_required
def home(request: PersonRequest) -> HttpResponse:
    return frame.page(request, "sessions/home.html", home_context(request))


def home_context(request: PersonRequest) -> dict[str, Any]:
    return {
        "greeting": greeting(),
        "openings": openings(request.user),
        "client_key": new_key(),
    }


def new_key() -> str:
    return uuid.uuid4().hex


@require_safe
@person_required
def session_list(request: PersonRequest) -> HttpResponse:
    sessions = Session.objects.for_owner(request.user).active().newest_first()
    listed = Paginator(sessions, PER_PAGE).get_page(request.GET.get("page"))
    return frame.page(request, "sessions/list.html", {"page": listed, "all_groups": grouped(listed)})


@require_safe
@person_required
def show(request: PersonRequest, session_id: UUID) -> HttpResponse:
    session = session_or_404(request, session_id)
    return frame.page(request, "sessions/session.html", thread_context(request, session))


def thread_context(request: PersonRequest, session: Session) -> dict[str, Any]:
    """The newest turns of a session, or those around `?at=<turn_index>`, with their day lines and bells."""
    thread = Turn.objects.in_thread(session)
    turns = _window(request, session)
    first = turns[0].turn_index if turns else 0
    above = thread.filter(turn_index__lt=first).last()
    below = bool(turns) and thread.filter(turn_index__gt=turns[-1].turn_index).exists()
    bells = (
        BellEvent.objects.for_owner(request.user).in_session(session.pk).filter(level=BellEvent.Level.HARD)
    )
    if above:
        bells = bells.filter(after_index__gte=first)
    if below:
        bells = bells.filter(after_index__lt=turns[-1].turn_index)
    rang = list(bells.order_by("created_at"))
    note_referrals(
        hard=[bell.pk for bell in rang],
        soft=[turn.pk for turn in turns if turn.help_lines and turn.is_settled],
    )
    return {
        "session": session,
        "entries": entries(turns, rang, above.created_at if above else None),
        "earlier": above.turn_index if above else None,
        "later": turns[-1].turn_index + 1 if below else None,
        "waiting": next((turn.turn_index for turn in turns if not turn.is_settled), None),
        "last_index": turns[-1].turn_index if turns and not below else None,
        "client_key": new_key(),
        "country": frame.country_of(request),
    }


def _window(request: PersonRequest, session: Session) -> list[Turn]:
    thread = Turn.objects.in_thread(session).prefetch_related("attempts").select_related("session")
    at = request.GET.get("at", "")
    if at.isdecimal() and len(at) < 10:
        first = max(0, int(at) - SHOWN // 2)
        return list(thread.filter(turn_index__gte=first)[:SHOWN])
    return list(reversed(thread.reverse()[:SHOWN]))


@require_POST
@person_required
def rename(request: PersonRequest, session_id: UUID) -> HttpResponse:
    session = session_or_404(request, session_id)
    form = TitleForm(request.POST)
    if form.is_valid():
        services.rename_session(session=session, title=form.cleaned_data["title"])
    return redirect("session", session.pk)


@require_POST
@person_required
def pin(request: PersonRequest, session_id: UUID) -> HttpResponse:
    session = session_or_404(request, session_id)
    services.pin_session(session=session, pinned=not session.pinned)
    return redirect("session", session.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def delete(request: PersonRequest, session_id: UUID) -> HttpResponse:
    session = session_or_404(request, session_id)
    if request.method == "POST":
        services.delete_session(session=session)
        success(request, "The conversation is deleted, and what was remembered of it.")
        return redirect("home")
    return frame.page(request, "sessions/delete.html", {"session": session, "turns": session.turns.count()})


@require_safe
@person_required
def older(request: PersonRequest) -> HttpResponse:
    """The rest of the list beside the page, when asked for."""
    sessions = Session.objects.for_owner(request.user).active().filter(pinned=False).newest_first()
    return render(request, "frame.html#groups", {"groups": grouped(sessions[frame.LISTED : 500])})
