"""The layered cycle of one message: L1 safety, L2 stewardship, L3 imprint, validation, persistence.

`receive` is the web's part, short and without a model; `answer` is the worker's.
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
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, InterfaceError, close_old_connections

import safety.services
from conversations import imprint, llm, planning, services
from conversations.models import Session, Turn
from conversations.stream import Publisher
from conversations.tools import Toolbox
from safety.directives import safe_mode_refusal, withheld_reply
from safety.help_lines import for_country
from safety.models import BellEvent
from safety.normalise import replace_unstorable
from safety.resources import Resources
from safety.screening import Action, Screening
from safety.validation import SentenceGate, validate

logger = logging.getLogger(__name__)

LONGEST_MESSAGE = 100_000
LONGEST_KEY = 64
PROGRESS_SECONDS = 1.0
SETTLE_TRIES = 20
_SILENCE = object()

# Set when the worker is told to go: answers in flight are settled with what they have,
# or handed to the next worker where they have nothing yet.
shutting_down = threading.Event()


class UnusableMessage(Exception):
    """The message cannot be taken; the sentence says why, and what was kept."""


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a message: a turn that will be answered, a bell with its fixed reply, or a refusal."""

    turn: Turn | None = None
    bell: BellEvent | None = None
    reply: str | None = None
    resources: Resources | None = None
    refused: bool = False
    replayed: bool = False


# --- The web's part -------------------------------------------------------------------------------------------


def receive(*, session: Session, text: str, client_key: str, country: str = "") -> Received:
    """Take one message of a session.

    Raises UnusableMessage for an empty or too long one, and services.ClientKeyReused.
    """
    text = replace_unstorable(text)
    if not text.strip():
        raise UnusableMessage("There is nothing in this message. Write something and send it again.")
    if len(text) > LONGEST_MESSAGE:
        raise UnusableMessage(
            f"This message has {len(text):,} characters and {LONGEST_MESSAGE:,} are the most. "
            "Nothing was lost: shorten it and send it again."
        )
    if not 0 < len(client_key) <= LONGEST_KEY:
        raise UnusableMessage(f"client_key must have 1 to {LONGEST_KEY} characters.")
    resources = for_country(country)
    standing = services.find_turn(session=session, client_key=client_key, text=text)
    if standing is not None:
        return Received(turn=standing, replayed=True)

    # L1. Whatever is not one of the three answers is safe mode.
    screening = screen(session.owner_id, text)
    if screening is None:
        return Received(reply=safe_mode_refusal(), resources=resources, refused=True)
    if screening.action == Action.HARD_BELL:
        return hard_bell(
            owner_id=session.owner_id,
            session_id=session.pk,
            after_index=session.next_index - 1,
            client_key=client_key,
            text=text,
            screening=screening,
            resources=resources,
            mirrored=not session.temporary,
        )
    return _accept(session, text, client_key, screening, resources)


def screen(owner_id: int, text: str) -> Screening | None:
    """L1 for a text of this person's; None is safe mode."""
    return _answered_by(lambda: safety.services.screen_message(owner_id=owner_id, text=text))


def _answered_by(ask: Callable[[], Screening]) -> Screening | None:
    """What it answers, or None where that is none of the three: safe mode."""
    try:
        screening = ask()
    except Exception:
        logger.exception("safe mode: a message could not be screened")
        return None
    if screening.action not in tuple(Action):
        logger.error("safe mode: screening answered %r", screening.action)
        return None
    return screening


def hard_bell(
    *,
    owner_id: int,
    session_id: UUID | None,
    after_index: int,
    client_key: str,
    text: str,
    screening: Screening,
    resources: Resources,
    mirrored: bool,
) -> Received:
    """Ring, and answer with the fixed reply: no turn, no memory, no model. Works without a database."""
    bell = safety.services.ring(
        owner_id=owner_id,
        session_id=session_id,
        after_index=after_index,
        client_key=client_key,
        screening=screening,
        text=text,
        resources_shown=resources.names(),
        mirrored=mirrored,
    )
    reply = validate("", Action.HARD_BELL, resources=resources).text
    return Received(bell=bell, reply=reply, resources=resources)


def receive_without_database(
    *, owner_id: int, session_id: UUID | None, text: str, client_key: str, country: str
) -> Received | None:
    """While the database is away, and without waiting for it: a hard bell is heard all the same and goes into the
    fallback file. None for every other message.
    """
    text = replace_unstorable(text)
    screening = _answered_by(lambda: safety.services.screen_without_database(text=text))
    if screening is None or screening.action != Action.HARD_BELL:
        return None
    resources = for_country(country, ask_database=False)
    bell = safety.services.draft_bell(
        owner_id=owner_id,
        session_id=session_id,
        after_index=-1,
        client_key=client_key[:LONGEST_KEY],
        screening=screening,
        text=text,
        resources_shown=resources.names(),
    )
    # Whether the session is a temporary one cannot be asked, so this bell is not mirrored.
    safety.services.keep_in_fallback(bell=bell, mirrored=False)
    return Received(
        bell=bell, reply=validate("", Action.HARD_BELL, resources=resources).text, resources=resources
    )


def _accept(
    session: Session, text: str, client_key: str, screening: Screening, resources: Resources
) -> Received:
    soft = screening.action == Action.SOFT_BELL
    help_lines = soft and screening.ideation_level is not None
    bell = None
    if soft:
        bell = safety.services.draft_bell(
            owner_id=session.owner_id,
            session_id=session.pk,
            after_index=session.next_index,
            client_key=client_key,
            screening=screening,
            text=text,
            resources_shown=resources.names() if help_lines else [],
        )
    try:
        accepted = services.accept_turn(
            session=session,
            text=text,
            client_key=client_key,
            action=Turn.Action.SOFT_BELL if soft else Turn.Action.PASS,
            help_lines=help_lines,
            bell=bell,
        )
    except (DatabaseError, InterfaceError):
        if bell is not None:
            safety.services.keep_in_fallback(bell=bell, mirrored=not session.temporary)
        raise
    return Received(
        turn=accepted.turn, replayed=accepted.replayed, resources=resources if help_lines else None
    )


# --- The worker's part ------------------------------------------------------------------------------------------


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


def person_country(owner: AbstractBaseUser, accept_language_country: str) -> str:
    """Whose help lines: the person's setting, then the operator's, then what the browser says."""
    return services.profile_of(owner).country or settings.NEURON_COUNTRY or accept_language_country
