"""An answer on its way, as server-sent events. It only reads: it can be opened twice, dropped and resumed."""

import asyncio
import contextlib
import zoneinfo
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import conditional_escape
from django.views.decorators.http import require_safe

import conversations.stream
from conversations.access import PersonRequest, turn_or_404
from conversations.markdown import render
from conversations.middleware import SESSION_KEY
from conversations.models import Turn
from conversations.stream import Event
from conversations.views.turns import turn_context
from memory.streaming import read_between

HEARTBEAT_SECONDS = 15.0
# Each event is a snapshot of the whole reply, so a lost connection may come back soon and at any point.
RETRY_MS = 2000
# So few characters take less time to render than to hand over to a thread; a thousand brackets take 13 ms.
SHORT = 1000


@require_safe
def stream(request: HttpRequest, turn_id: UUID) -> HttpResponseBase:
    if not request.user.is_authenticated:
        return _events(_signed_out())
    person = cast(PersonRequest, request)
    return _events(_follow(person, _load(person, turn_id)))


def _events(events: AsyncIterator[str]) -> StreamingHttpResponse:
    response = StreamingHttpResponse(events, content_type="text/event-stream")
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


async def _follow(request: PersonRequest, turn: Turn) -> AsyncIterator[str]:
    """Snapshots until the turn is settled, then its final HTML, then `done`."""
    yield f"retry: {RETRY_MS}\n\n"
    final = ""

    def look(turn_id: UUID) -> Turn | None:
        """The row; settled, it is rendered at once, in the thread that the reader is in anyway."""
        nonlocal final
        found = _turn_of(request, turn_id)
        if found is None or found.is_settled:
            final = _final(request, found)
        return found

    if turn.is_settled:
        final = await read_between(partial(_final, request, turn))
    else:
        told = conversations.stream.read(turn, look)
        async with contextlib.aclosing(_with_heartbeats(told)) as events:
            async for event in events:
                if event is None:
                    yield ": still here\n\n"
                elif event.kind != "done":
                    yield _message(event.kind, await _html(event), event.id)
    yield _message("final", final)
    yield _message("done", "")


async def _signed_out() -> AsyncIterator[str]:
    """A notice in place of the reply, then the end: an error would make the browser ask again and again."""
    yield _message("final", await sync_to_async(render_to_string)("turns/gone.html", {"signed_out": True}))
    yield _message("done", "")


async def _with_heartbeats(source: AsyncIterator[Event]) -> AsyncGenerator[Event | None]:
    """The source's events, and None whenever it was silent for a while."""
    coming = asyncio.ensure_future(_next(source))
    try:
        while True:
            if not (await asyncio.wait({coming}, timeout=HEARTBEAT_SECONDS))[0]:
                yield None
                continue
            event = coming.result()
            if event is None:
                return
            yield event
            coming = asyncio.ensure_future(_next(source))
    finally:
        coming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await coming


async def _next(source: AsyncIterator[Event]) -> Event | None:
    return await anext(source, None)


async def _html(event: Event) -> str:
    if event.kind != "text":
        return conditional_escape(event.text)
    if len(event.text) < SHORT:
        return render(event.text)
    return await sync_to_async(render, thread_sensitive=False)(event.text)


def _load(request: PersonRequest, turn_id: UUID) -> Turn:
    try:
        return turn_or_404(request, turn_id)
    finally:
        # An open stream must not hold a connection of the pool until its first look.
        if not connection.in_atomic_block:
            connection.close()


def _turn_of(request: PersonRequest, turn_id: UUID) -> Turn | None:
    try:
        return turn_or_404(request, turn_id)
    except Http404:
        return None


def _final(request: PersonRequest, turn: Turn | None) -> str:
    """The settled turn as the page shows it; the middleware's time zone is gone by now and is set again."""
    if turn is None:
        return render_to_string("turns/gone.html")
    name = request.session.get(SESSION_KEY)
    with timezone.override(zoneinfo.ZoneInfo(name) if name else None):
        context = {**turn_context(request, turn), "announce": True}
        return render_to_string("turns/turn.html", context, request)


def _message(kind: str, data: str, identifier: str = "") -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"{f'id: {identifier}{chr(10)}' if identifier else ''}event: {kind}\n{lines}\n"
