"""Answers on their way: a Valkey stream per turn, written by the worker and only read by pages.

The row is the truth. Where Valkey is away the writer goes on without it and the reader follows the row.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from conversations.models import Turn
from memory.streaming import read_between

logger = logging.getLogger(__name__)

KEPT_SECONDS = 600
RENEWED_AFTER_SECONDS = 60.0
MOST_ENTRIES = 20_000
# redis-py's own timeout is 5 s: a longer block would break the connection.
BLOCK_MS = 2000
ROW_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Event:
    """What a reader gets: a status sentence, the whole text so far, or the end.

    `id` only grows within one attempt.
    """

    kind: str
    text: str
    id: str


def _key(turn_id: UUID) -> str:
    return f"neuron:answer:{turn_id}"


@lru_cache(maxsize=1)
def _client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2, decode_responses=True
    )


class Publisher:
    """The writing end of one attempt. A failure of Valkey is noted once and costs no text."""

    def __init__(self, turn: Turn) -> None:
        self.key = _key(turn.pk)
        self.attempt = str(turn.attempt)
        self.broken = False
        self.renewed_at = -RENEWED_AFTER_SECONDS

    def begin(self) -> None:
        """Take away what an earlier attempt left."""
        if self.attempt != "1":
            self._run(lambda client: client.delete(self.key))

    def status(self, sentence: str) -> None:
        self._add("status", sentence)

    def text(self, piece: str) -> None:
        """A piece that passed validation; readers join the pieces."""
        self._add("text", piece)

    def reset(self) -> None:
        """What was published of this attempt no longer stands."""
        self._add("reset", "")

    def done(self) -> None:
        self.broken = False  # the end is worth one more try
        self._add("done", "")

    def _add(self, kind: str, text: str) -> None:
        entry: Any = {"attempt": self.attempt, "kind": kind, "text": text}

        def add(client: redis.Redis) -> None:
            if time.monotonic() - self.renewed_at < RENEWED_AFTER_SECONDS:
                client.xadd(self.key, entry, maxlen=MOST_ENTRIES)
                return
            pipe = client.pipeline(transaction=False)
            pipe.xadd(self.key, entry, maxlen=MOST_ENTRIES)
            pipe.expire(self.key, KEPT_SECONDS)
            pipe.execute()
            self.renewed_at = time.monotonic()

        self._run(add)

    def _run(self, call: Callable[[redis.Redis], object]) -> None:
        if self.broken:
            return
        try:
            call(_client())
        except (RedisError, OSError):
            self.broken = True
            logger.warning("the stream of an answer could not be written; the row goes on")


def forget_streams(turn_ids: Iterable[UUID]) -> None:
    """Remove what streams still hold of these turns."""
    keys = [_key(turn_id) for turn_id in turn_ids]
    if not keys:
        return
    try:
        _client().delete(*keys)
    except (RedisError, OSError):
        logger.warning("streams could not be removed; they expire within %s s", KEPT_SECONDS)


def _row(turn_id: UUID) -> Turn | None:
    return Turn.objects.filter(pk=turn_id).first()


async def read(turn: Turn, load: Callable[[UUID], Turn | None] = _row) -> AsyncIterator[Event]:
    """Follow a turn until it is settled: snapshots of the whole text, then one `done`.

    May be opened any number of times and left at any point. `load` reads the row, which is looked at when the worker
    says that it is done and when it says nothing; None where there is none.
    """
    async for event in _follow(turn.pk, _reading_client(), load):
        yield event


# Connecting anew for each answer costs more than reading it. A client belongs to the loop that it was made in.
_reading_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()


def _reading_client() -> redis.asyncio.Redis:
    loop = asyncio.get_running_loop()
    if loop not in _reading_clients:
        _reading_clients[loop] = redis.asyncio.Redis.from_url(
            settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=2, decode_responses=True
        )
    return _reading_clients[loop]


async def _follow(
    turn_id: UUID, client: redis.asyncio.Redis, load: Callable[[UUID], Turn | None]
) -> AsyncIterator[Event]:
    text, attempt, last = "", "", "0"
    while True:
        look_at_row = False
        try:
            # redis-py types every shape an answer could have; with decode_responses it has this one.
            answer: Any = await client.xread({_key(turn_id): last}, count=500, block=BLOCK_MS)
        except (RedisError, OSError):
            answer, look_at_row = [], True
            await asyncio.sleep(ROW_POLL_SECONDS)
        grown, status = False, ""
        for entry_id, entry in answer[0][1] if answer else []:
            last = entry_id
            if entry["attempt"] != attempt:
                attempt, text = entry["attempt"], ""
            match entry["kind"]:
                case "text":
                    text += entry["text"]
                    grown = True
                case "status":
                    status = entry["text"]
                case "reset":
                    text, grown = "", True
                case "done":
                    look_at_row = True
        if grown:
            yield Event("text", text, last)
        elif status:
            yield Event("status", status, last)
        if answer and not look_at_row:
            continue
        row = await read_between(partial(load, turn_id))
        if row is None or row.is_settled:
            yield Event("done", row.a if row else "", last)
            return
        if len(row.a) > len(text):
            text = row.a
            yield Event("text", text, last)
