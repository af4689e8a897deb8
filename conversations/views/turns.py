"""Turns: saying something, stopping, asking again, choosing among answers, editing, and what was drawn on."""

import uuid
from functools import partial
from uuid import UUID

from django.contrib.messages import success
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations import receiving, services
from conversations.access import PersonRequest, person_required, session_or_404, turn_or_404
from conversations.finding import connected_with
from conversations.forgetting import NotSettled, forget_turn
from conversations.forms import MessageForm
from conversations.models import Session, Turn
from conversations.timeline import entries
from conversations.views import frame
from conversations.views.sessions import home_context, new_key, thread_context
from conversations.views.without_database import heard_without_database
from safety.services import note_referrals

KEY_USED = "This page had sent something else before. Your words are kept here: send them again to add them."


@require_POST
@heard_without_database
@person_required
def post(request: PersonRequest, session_id: UUID) -> HttpResponse:
    session = session_or_404(request, session_id)
    form = MessageForm(request.POST)
    if not form.is_valid():
        return _not_sent(request, session, form.in_words, 422)
    if session.mode != form.mode:
        services.set_mode(session=session, mode=form.mode)
    return _say(request, session, form, leave_page=form.cleaned_data["windowed"])


@require_POST
@heard_without_database
@person_required
def begin(request: PersonRequest) -> HttpResponse:
    """The first message of a new session. Its id comes from the client_key, so that sending twice begins one."""
    form = MessageForm(request.POST)
    if not form.is_valid():
        return _not_sent(request, None, form.in_words, 422)
    name = f"neuron:{request.user.pk}:{form.cleaned_data['client_key']}"
    session = services.create_session(
        owner=request.user, mode=form.mode, session_id=uuid.uuid5(uuid.NAMESPACE_URL, name)
    )
    return _say(request, session, form, leave_page=True)


@require_POST
@heard_without_database
@person_required
def fork(request: PersonRequest, session_id: UUID, index: int) -> HttpResponse:
    """An earlier message said differently: a new session that shares what came before it."""
    session = session_or_404(request, session_id)
    turn = _in_thread_or_404(session, index)
    form = MessageForm(request.POST)
    if not form.is_valid():
        return _not_sent(request, session, form.in_words, 422)
    forked = services.fork_session(session=session, at_index=turn.turn_index)
    return _say(request, forked, form, leave_page=True)


def _say(request: PersonRequest, session: Session, form: MessageForm, *, leave_page: bool) -> HttpResponse:
    said = form.cleaned_data
    country = partial(frame.country_of, request)
    try:
        received = receiving.receive(
            session=session, text=said["text"], client_key=said["client_key"], country=country
        )
    except services.ClientKeyReused:
        return _not_sent(request, session, KEY_USED, 409)
    except receiving.UnusableMessage as error:
        return _not_sent(request, session, str(error), 422)
    if received.refused:
        return _not_sent(request, session, received.reply or "", 503)
    if received.turn is None:
        return _safety_reply(request, session, received, leave_page=leave_page)
    where = f"{reverse('session', args=[session.pk])}#turn-{received.turn.turn_index}"
    if leave_page or not request.htmx:
        return _go(request, where)
    return _said(request, session, received.turn)


def _said(request: PersonRequest, session: Session, turn: Turn) -> HttpResponse:
    """The turn to add below, with the day line it may need, and a fresh key for the composer."""
    above = Turn.objects.in_thread(session).filter(turn_index__lt=turn.turn_index)
    context = {
        "session": session,
        "entries": entries([turn], [], above.values_list("created_at", flat=True).last()),
        "last_index": turn.turn_index,
        "client_key": new_key(),
        # Asked for only where help lines are shown.
        "country": partial(frame.country_of, request),
        "names_session": turn.turn_index == 0,
    }
    return render(request, "turns/said.html", context)


def _safety_reply(
    request: PersonRequest, session: Session, received: receiving.Received, *, leave_page: bool
) -> HttpResponse:
    """The safety card, on the page in any case: also when its bell could not be written to the database."""
    bell = received.bell
    if bell and not bell._state.adding and (leave_page or not request.htmx):
        return _go(request, f"{reverse('session', args=[session.pk])}#bell-{bell.pk}")
    card = {"bell": bell, "resources": received.resources, "client_key": new_key()}
    if bell and not bell._state.adding:
        note_referrals(hard=[bell.pk])
    if request.htmx:
        return render(request, "turns/rang.html", card)
    return frame.page(request, "sessions/session.html", {**thread_context(request, session), "card": card})


def _not_sent(request: PersonRequest, session: Session | None, why: str, status: int) -> HttpResponse:
    """Say what happened beside the composer, and keep the words in it."""
    note = {"note": why, "client_key": new_key()}
    if request.htmx:
        response = render(request, "turns/not_sent.html", note, status=status)
        response["HX-Retarget"] = "#composer-note"
        response["HX-Reswap"] = "innerHTML"
        return response
    page = thread_context(request, session) if session and session.next_index else home_context(request)
    template = "sessions/session.html" if "session" in page else "sessions/home.html"
    return frame.page(request, template, {**page, **note, "draft": request.POST.get("text", "")}, status)


def _go(request: PersonRequest, where: str) -> HttpResponse:
    return HttpResponse(headers={"HX-Redirect": where}) if request.htmx else redirect(where)


def _in_thread_or_404(session: Session, index: int) -> Turn:
    return get_object_or_404(Turn.objects.in_thread(session), turn_index=index)


@require_safe
@person_required
def edit(request: PersonRequest, session_id: UUID, index: int) -> HttpResponse:
    session = session_or_404(request, session_id)
    context = {"session": session, "turn": _in_thread_or_404(session, index), "client_key": new_key()}
    if request.htmx:
        return render(request, "turns/edit.html#form", context)
    return frame.page(request, "turns/edit.html", context)


@require_safe
@person_required
def show(request: PersonRequest, turn_id: UUID) -> HttpResponse:
    """One turn as it stands; a page without htmx is sent to its place in the session."""
    return _render_turn(request, turn_or_404(request, turn_id))


@require_POST
@person_required
def stop(request: PersonRequest, turn_id: UUID) -> HttpResponse:
    turn = turn_or_404(request, turn_id)
    services.request_stop(turn=turn)
    if request.htmx:
        return HttpResponse(status=204)
    return _render_turn(request, turn)


@require_POST
@person_required
def retry(request: PersonRequest, turn_id: UUID) -> HttpResponse:
    turn = turn_or_404(request, turn_id)
    services.retry_turn(turn=turn)
    return _render_turn(request, turn_or_404(request, turn_id))


@require_POST
@person_required
def choose(request: PersonRequest, turn_id: UUID, number: int) -> HttpResponse:
    turn = turn_or_404(request, turn_id)
    try:
        services.choose_attempt(turn=turn, number=number)
    except ValueError as error:
        raise Http404 from error
    return _render_turn(request, turn_or_404(request, turn_id))


@require_safe
@person_required
def drawn(request: PersonRequest, turn_id: UUID) -> HttpResponse:
    """What a reply drew on, beside the page or as a page."""
    context = {"turn": turn_or_404(request, turn_id)}
    if request.htmx:
        return render(request, "turns/drawn.html#panel", context)
    return frame.page(request, "turns/drawn.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def forget(request: PersonRequest, turn_id: UUID) -> HttpResponse:
    """Asks first; then the turn is emptied, and nothing of it is left in memory."""
    turn = turn_or_404(request, turn_id)
    if request.method != "POST":
        return frame.page(request, "turns/forget.html", {"turn": turn})
    try:
        forget_turn(turn=turn)
    except NotSettled:
        return frame.page(request, "turns/forget.html", {"turn": turn, "unsettled": True}, 409)
    success(request, "Forgotten: what you said there, what I answered, and what I remembered of it.")
    return redirect(
        f"{reverse('session', args=[turn.session_id])}?at={turn.turn_index}#turn-{turn.turn_index}"
    )


@require_safe
@person_required
def connected(request: PersonRequest, turn_id: UUID) -> HttpResponse:
    """What a turn is connected with, beside the page or as a page."""
    turn = turn_or_404(request, turn_id)
    context = {"turn": turn, "connected": connected_with(turn)}
    if request.htmx:
        return render(request, "turns/connected.html#panel", context)
    return frame.page(request, "turns/connected.html", context)


def _render_turn(request: PersonRequest, turn: Turn) -> HttpResponse:
    if not request.htmx:
        return redirect(
            f"{reverse('session', args=[turn.session_id])}?at={turn.turn_index}#turn-{turn.turn_index}"
        )
    return render(request, "turns/turn.html", turn_context(request, turn))


def turn_context(request: PersonRequest, turn: Turn) -> dict[str, object]:
    """What the turn's template needs; that its help lines are shown is counted."""
    if turn.help_lines and turn.is_settled:
        note_referrals(soft=[turn.pk])
    newest = turn.session.next_index - 1
    # Asked for only where help lines are shown.
    country = partial(frame.country_of, request)
    return {"turn": turn, "session": turn.session, "last_index": newest, "country": country}
