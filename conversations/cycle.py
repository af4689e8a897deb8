"""The worker's part of the layered cycle: a turn's plan, the model, each sentence validated, the turn settled.

`receiving` is the part before it, `planning` the one that it begins with.
"""

import logging
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

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
    progress = _Progress(turn, Publisher(turn), safety.services.reply_gate(action=turn.action))
    progress.publisher.begin()
    status, error = Turn.Status.COMPLETE, ""
    try:
        _generate(progress)
    except _Stopped:
        status = Turn.Status.STOPPED
    except _Lost:
        logger.info("turn %s was taken over", turn.pk)
        return
    except llm.ModelSettingError:
        logger.warning("turn %s: the model's setting cannot be used", turn.pk)
        status, error = Turn.Status.FAILED, "not_configured"
    except _WorkerStopping:
        if not progress.text.strip() and services.hand_back(turn=turn):
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
    _settle(progress, status, error)
    progress.publisher.done()


def _unfinished(progress: _Progress) -> Turn.Status:
    return Turn.Status.INTERRUPTED if progress.text.strip() else Turn.Status.FAILED


def _generate(progress: _Progress) -> None:
    """L2, recall, L3, the model, each sentence validated before it is shown."""
    turn = progress.turn
    plan = planning.plan(turn)
    if plan.draft is None:
        _show(progress, plan.fixed)
        return
    progress.passages = list(plan.draft.passages)
    try:
        _converse(progress, plan.draft, plan.toolbox)
    except llm.ModelFailure as failure:
        if failure.code != "no_tools":
            raise
        # The model cannot use tools: the look-up is done for it, and it answers as in chat mode.
        progress.publisher.status("this model cannot look things up itself; looking for it…")
        _converse(progress, planning.look_up(turn, plan), None)
    problem = progress.gate.problem
    if problem == "made_up_tool_call" or (not problem and not progress.text.strip()):
        # The model wrote a call out instead of making it, or said nothing: do the look-up for it and ask once more.
        progress.gate = safety.services.reply_gate(action=turn.action)
        progress.text = ""
        progress.publisher.reset()
        _converse(progress, planning.look_up(turn, plan), None)
        problem = progress.gate.problem
    if problem:
        _withhold(progress, problem)
    elif not progress.text.strip():
        raise llm.ModelFailure("empty", "the model said nothing")


def _converse(progress: _Progress, draft: imprint.Draft, toolbox: Toolbox | None) -> None:
    """Stream one reply through the gate, keeping progress about once a second however quiet the model is."""
    functions = toolbox.functions() if toolbox is not None else []
    with closing(llm.listen(draft, functions, patience=PROGRESS_SECONDS)) as events:
        for event in events:
            _keep(progress)
            match event:
                case llm.TextDelta(text=delta):
                    _show(progress, progress.gate.feed(delta))
                    if progress.gate.problem:
                        return
                case llm.ToolUse(name=name):
                    progress.publisher.status(_tool_sentence(name))
                case llm.Finished(model=model):
                    progress.model = model
                    _show(progress, progress.gate.flush())
    if toolbox is not None:
        progress.passages += toolbox.used


def _show(progress: _Progress, passed: str) -> None:
    if passed:
        progress.text += passed
        progress.publisher.text(passed)


def _keep(progress: _Progress) -> None:
    """Once a second: the row gets the text, the lease goes forward, and a wish to stop is heard."""
    if shutting_down.is_set():
        raise _WorkerStopping
    if time.monotonic() - progress.kept_at < PROGRESS_SECONDS:
        return
    progress.kept_at = time.monotonic()
    try:
        stop = services.keep_progress(turn=progress.turn, text=progress.text)
    except (DatabaseError, InterfaceError):
        logger.warning("turn %s: progress could not be kept; the answer goes on", progress.turn.pk)
        close_old_connections()
        return
    if stop is None:
        raise _Lost
    if stop:
        raise _Stopped


def _withhold(progress: _Progress, problem: str) -> None:
    turn = progress.turn
    safety.services.withheld_reply(
        owner_id=turn.owner_id,
        session_id=turn.session_id,
        after_index=turn.turn_index,
        reason=problem.replace("_", " "),
        signals=progress.gate.signals,
    )
    progress.text = ""
    progress.publisher.reset()
    _show(progress, withheld_reply())


def _settle(progress: _Progress, status: str, error: str) -> None:
    """Settle the turn; a database that is away for a while is waited for, and else the sweeper settles it."""
    recalled = [_as_record(passage) for passage in _unique(progress.passages)]
    for attempt in range(SETTLE_TRIES):
        try:
            services.settle_turn(
                turn=progress.turn,
                status=status,
                text=progress.text,
                model=progress.model,
                error=error,
                recalled=recalled,
            )
        except (DatabaseError, InterfaceError):
            logger.warning("turn %s could not be settled yet", progress.turn.pk)
            close_old_connections()
            time.sleep(min(3.0, 0.2 * 2**attempt))
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
