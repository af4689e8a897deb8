"""Everything a person said and was answered, as one JSON document, written piece by piece.

Bells are not in it: what rang hard was never a turn, and their 80 characters are kept for review alone.
"""

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from conversations.models import Attempt, Session, Turn
from conversations.services import profile_of
from memory.streaming import read_between

FORMAT = "neuron-export-1"
TURNS_AT_ONCE = 200


async def write_export(owner: AbstractBaseUser) -> AsyncIterator[str]:
    """The document in pieces: sessions by when they began, each with its own turns in order.

    Asynchronous, because a synchronous generator is gathered whole before anything is sent.
    """
    yield json.dumps(await read_between(lambda: _head(owner)), ensure_ascii=False)[:-1] + ', "sessions": [\n'
    separator = ""
    for session_id in await read_between(lambda: list(_sessions(owner).values_list("pk", flat=True))):
        session = await read_between(_sessions(owner).filter(pk=session_id).first)
        if session is None:
            continue  # deleted while this was written
        yield separator + json.dumps(_session(session), ensure_ascii=False)[:-1] + ', "turns": [\n'
        separator = ",\n"
        async for piece in _write_turns(owner, session):
            yield piece
        yield "]}"
    yield "\n]}\n"


async def _write_turns(owner: AbstractBaseUser, session: Session) -> AsyncIterator[str]:
    after, separator = -1, ""
    while turns := await read_between(partial(_turns, owner, session, after)):
        for turn in turns:
            yield separator + json.dumps(_turn(turn), ensure_ascii=False)
            separator = ",\n"
        after = turns[-1].turn_index


def _sessions(owner: AbstractBaseUser) -> Any:
    return Session.objects.for_owner(owner).select_related("imprint").order_by("created_at", "id")


def _turns(owner: AbstractBaseUser, session: Session, after: int) -> list[Turn]:
    found = Turn.objects.for_owner(owner).filter(session=session, turn_index__gt=after)
    return list(found.prefetch_related("attempts").order_by("turn_index")[:TURNS_AT_ONCE])


def _head(owner: AbstractBaseUser) -> dict[str, Any]:
    profile = profile_of(owner)
    return {
        "format": FORMAT,
        "exported_at": timezone.now().isoformat(),
        "person": owner.get_username(),
        "settings": {
            "time_zone": profile.time_zone,
            "country": profile.country,
            "language": profile.language,
            "imprint": profile.imprint.name if profile.imprint else None,
        },
    }


def _session(session: Session) -> dict[str, Any]:
    return {
        "id": str(session.pk),
        "title": session.title,
        "mode": session.mode,
        "imprint": session.imprint.name if session.imprint else None,
        "source": session.source,
        "external_id": session.external_id,
        "pinned": session.pinned,
        "temporary": session.temporary,
        "created_at": session.created_at.isoformat(),
        "last_turn_at": session.last_turn_at.isoformat(),
        "forked_from": str(session.forked_from_id) if session.forked_from_id else None,
        "forked_at": session.forked_at,
    }


def _turn(turn: Turn) -> dict[str, Any]:
    attempts = [attempt for attempt in turn.attempts.all() if attempt.a != turn.a]
    return {
        "id": str(turn.pk),
        "turn_index": turn.turn_index,
        "q": turn.q,
        "a": turn.a,
        "status": turn.status,
        "model": turn.model,
        "created_at": turn.created_at.isoformat(),
        "answered_at": turn.answered_at.isoformat() if turn.answered_at else None,
        "other_answers": [_attempt(attempt) for attempt in attempts],
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "a": attempt.a,
        "status": attempt.status,
        "model": attempt.model,
        "created_at": attempt.created_at.isoformat(),
    }
