"""The worker's part of the layered cycle: a turn's plan, the model, each sentence validated, the turn settled.

`receiving` is the part before it, `planning` the one that it begins with.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync, sync_to_async
from django.db import DatabaseError, InterfaceError, close_old_connections

import safety.services
from conversations import imprint, llm, planning, services
from conversations.models import Turn
from conversations.stream import Publisher
from conversations.tools import Toolbox
from safety.directives import withheld_reply
from safety.validation import SentenceGate

logger = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0
SETTLE_TRIES = 20
_SILENCE = object()

# Set when the worker is told to go: answers in flight are settled with what they have,
# or handed to the next worker where they have nothing yet.
shutting_down = threading.Event()


@dataclass
class _Progress:
    """What the worker holds of one answer while it grows."""

    turn: Turn
    publisher: Publisher
    gate: SentenceGate
    text: str = ""
    model: str = ""
    passages: list[imprint.Passage] = field(default_factory=list)
    kept_at: float = field(default_factory=time.monotonic)


class _Stopped(Exception):
    """The person asked to stop."""


class _WorkerStopping(Exception):
    """The worker was told to go."""


class _Lost(Exception):
    """The turn is no longer this worker's: it was settled or taken over."""


def answer(turn_id: UUID) -> None:
    """Answer one turn, if it is still to be answered. Safe to call twice, and from many workers."""
    turn = services.claim_turn(turn_id=turn_id)
    if turn is None:
        return
    async_to_sync(_answer)(turn)


async def _answer(turn: Turn) -> None:
    progress = _Progress(turn, Publisher(turn), safety.services.reply_gate(action=turn.action))
    progress.publisher.begin()
    status, error = Turn.Status.COMPLETE, ""
    try:
        await _generate(progress)
    except _Stopped:
        status = Turn.Status.STOPPED
    except _Lost:
        logger.info("turn %s was taken over", turn.pk)
        return
    except llm.ModelSettingError:
        logger.warning("turn %s: the model's setting cannot be used", turn.pk)
        status, error = Turn.Status.FAILED, "not_configured"
    except _WorkerStopping:
        if not progress.text.strip() and await sync_to_async(services.hand_back)(turn=turn):
            logger.info("turn %s waits for the next worker", turn.pk)
            return
        status, error = _unfinished(progress), "worker_stopped"
    except llm.ModelFailure as failure:
        logger.warning("turn %s: the model gave no whole answer (%s)", turn.pk, failure.code)
        status, error = _unfinished(progress), failure.code
    except Exception:
        # Whatever it was: the person's message is kept, and they can try again.
        logger.exception("turn %s could not be answered", turn.pk)
        status, error = _unfinished(progress), "internal"
    await _settle(progress, status, error)
    progress.publisher.done()


def _unfinished(progress: _Progress) -> Turn.Status:
    return Turn.Status.INTERRUPTED if progress.text.strip() else Turn.Status.FAILED


async def _generate(progress: _Progress) -> None:
    """L2, recall, L3, the model, each sentence validated before it is shown."""
    turn = progress.turn
    plan = await sync_to_async(planning.plan)(turn)
    if plan.draft is None:
        _show(progress, plan.fixed)
        return
    progress.passages = list(plan.draft.passages)
    try:
        await _converse(progress, plan.draft, plan.toolbox)
    except llm.ModelFailure as failure:
        if failure.code != "no_tools":
            raise
        # The model cannot use tools: the look-up is done for it, and it answers as in chat mode.
        progress.publisher.status("this model cannot look things up itself; looking for it…")
        await _converse(progress, await sync_to_async(planning.look_up)(turn, plan), None)
    problem = progress.gate.problem
    if problem == "made_up_tool_call" or (not problem and not progress.text.strip()):
        # The model wrote a call out instead of making it, or said nothing: do the look-up for it and ask once more.
        progress.gate = safety.services.reply_gate(action=turn.action)
        progress.text = ""
        progress.publisher.reset()
        await _converse(progress, await sync_to_async(planning.look_up)(turn, plan), None)
        problem = progress.gate.problem
    if problem:
        await _withhold(progress, problem)
    elif not progress.text.strip():
        raise llm.ModelFailure("empty", "the model said nothing")


async def _converse(progress: _Progress, draft: imprint.Draft, toolbox: Toolbox | None) -> None:
    """Stream one reply through the gate, keeping progress about once a second however quiet the model is."""
    pieces: asyncio.Queue[llm.TextDelta | llm.ToolUse | llm.Finished | None] = asyncio.Queue()

    async def listen() -> None:
        async with aclosing(llm.stream(draft, toolbox)) as events:
            async for event in events:
                pieces.put_nowait(event)

    # A task of its own, which the provider's library never leaves: stopping is one cancellation.
    listening = asyncio.create_task(listen())
    listening.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        while True:
            piece: Any = _SILENCE
            with suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_SECONDS):
                    piece = await pieces.get()
            await _keep(progress)
            match piece:
                case None:
                    break
                case llm.TextDelta(text=delta):
                    _show(progress, progress.gate.feed(delta))
                    if progress.gate.problem:
                        return
                case llm.ToolUse(name=name):
                    progress.publisher.status(_tool_sentence(name))
                case llm.Finished(model=model):
                    progress.model = model
        await listening
    finally:
        listening.cancel()
        await asyncio.wait({listening})
    _show(progress, progress.gate.flush())
    if toolbox is not None:
        progress.passages += toolbox.used


def _show(progress: _Progress, passed: str) -> None:
    if passed:
        progress.text += passed
        progress.publisher.text(passed)


async def _keep(progress: _Progress) -> None:
    """Once a second: the row gets the text, the lease goes forward, and a wish to stop is heard."""
    if shutting_down.is_set():
        raise _WorkerStopping
    if time.monotonic() - progress.kept_at < PROGRESS_SECONDS:
        return
    progress.kept_at = time.monotonic()
    try:
        stop = await sync_to_async(services.keep_progress)(turn=progress.turn, text=progress.text)
    except (DatabaseError, InterfaceError):
        logger.warning("turn %s: progress could not be kept; the answer goes on", progress.turn.pk)
        await sync_to_async(close_old_connections)()
        return
    if stop is None:
        raise _Lost
    if stop:
        raise _Stopped


async def _withhold(progress: _Progress, problem: str) -> None:
    turn = progress.turn
    await sync_to_async(safety.services.withheld_reply)(
        owner_id=turn.owner_id,
        session_id=turn.session_id,
        after_index=turn.turn_index,
        reason=problem.replace("_", " "),
        signals=progress.gate.signals,
    )
    progress.text = ""
    progress.publisher.reset()
    _show(progress, withheld_reply())


async def _settle(progress: _Progress, status: str, error: str) -> None:
    """Settle the turn; a database that is away for a while is waited for, and else the sweeper settles it."""
    settle: Callable[[], bool] = lambda: services.settle_turn(  # noqa: E731
        turn=progress.turn,
        status=status,
        text=progress.text,
        model=progress.model,
        error=error,
        recalled=[_as_record(passage) for passage in _unique(progress.passages)],
    )
    for attempt in range(SETTLE_TRIES):
        try:
            await sync_to_async(settle)()
        except (DatabaseError, InterfaceError):
            logger.warning("turn %s could not be settled yet", progress.turn.pk)
            await sync_to_async(close_old_connections)()
            await asyncio.sleep(min(3.0, 0.2 * 2**attempt))
        else:
            return
    logger.error("turn %s is left to the sweeper", progress.turn.pk)


def _unique(passages: list[imprint.Passage]) -> list[imprint.Passage]:
    return list({passage.node_id: passage for passage in passages}.values())


def _as_record(passage: imprint.Passage) -> dict[str, Any]:
    return {
        "node_id": str(passage.node_id),
        "session_id": str(passage.session_id) if passage.session_id and passage.is_here else None,
        "turn_index": passage.turn_index,
        "occurred_at": passage.occurred_at.isoformat(),
        "title": passage.title,
        "why": passage.why,
    }


def _tool_sentence(name: str) -> str:
    return {
        "recent_conversations": "looking through your recent conversations…",
        "summarise_session": "reading the conversation again…",
        "themes": "looking for what runs through it all…",
        "search_knowledge": "looking through what you asked me to keep…",
    }.get(name, "looking through what you told me…")
