"""What happened here, told to the remote engram and shown to the operator: kinds, numbers and names of models.

Never a person's words. Events are a list in Valkey that keeps the newest thousand: a remote that is away for
longer misses the older ones.
"""

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import redis
from django.conf import settings
from django.utils import timezone

from memory.engram.background import EVENTS_KEY, keep_event
from memory.engram.breaker import valkey
from memory.engram.errors import EngramError
from memory.engram.owner import engram_owner_id

if TYPE_CHECKING:
    from memory.engram.client import EngramClient

AT_ONCE = 50
POSTED_KEY = "neuron:engram:events:posted"
POSTING_KEY = "neuron:engram:events:posting"
LOCK_KEY = "neuron:engram:events:lock"
_NAMESPACE = uuid.UUID("5b0d5d2e-63a2-4f0e-8b53-6f1f7b9a0c11")


class Happening(StrEnum):
    """Kinds of events."""

    TURN_COMPLETED = "turn completed"
    BELL_RUNG = "bell rung"
    SYNC_DONE = "sync done"
    BREAKER_OPENED = "breaker opened"
    BREAKER_CLOSED = "breaker closed"
    REFUSED = "mirror job refused"
    MODEL_CHANGED = "model changed"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `posted` where the remote has heard of it."""

    at: datetime
    what: str
    facts: dict[str, Any]
    posted: bool

    @property
    def sentence(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        return f"{self.what}: {facts}" if facts else self.what


def note(what: Happening, *, owner_id: int | None = None, **facts: int | str) -> None:
    """Keep that something happened, in the background. Facts are numbers and fixed names, never anybody's words.

    What concerns a person is kept only where the remote engram is theirs.
    """
    if not settings.ENGRAM_URL or (owner_id is not None and owner_id != engram_owner_id()):
        return
    keep_event({"at": timezone.now().isoformat(), "what": what.value, "facts": json.dumps(facts)})


def recent_events(most: int = 30) -> list[Event]:
    """The newest events, newest first. Raises redis.RedisError where Valkey does not answer."""
    client: Any = valkey(settings.REDIS_URL)
    posted = _place(client.get(POSTED_KEY) or "0-0")
    return [_event(entry, posted) for entry in client.xrevrange(EVENTS_KEY, count=most)]


def post_waiting(client: "EngramClient") -> int:
    """Tell the remote the next events, in one call. Returns how many it heard of.

    The same batch is sent under the same id until it is answered, so that none is stored twice there.
    """
    store: Any = valkey(settings.REDIS_URL)
    lock = store.lock(LOCK_KEY, timeout=60, blocking=False)
    if not lock.acquire():
        return 0
    try:
        return _post_next(store, client)
    finally:
        # Where the lock ran out meanwhile, somebody else holds it.
        if lock.owned():
            lock.release()


def _post_next(store: Any, client: "EngramClient") -> int:
    posted = store.get(POSTED_KEY) or "0-0"
    last = store.get(POSTING_KEY)
    if last is None:
        waiting = store.xrange(EVENTS_KEY, min=f"({posted}", count=AT_ONCE)
        if not waiting:
            return 0
        last = waiting[-1][0]
        store.set(POSTING_KEY, last)
    entries = store.xrange(EVENTS_KEY, min=f"({posted}", max=last, count=AT_ONCE)
    # All of them may have been dropped while the remote was away.
    if entries:
        events = [_event(entry, _place(posted)) for entry in entries]
        lines = [f"{event.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} {event.sentence}" for event in events]
        event_id = uuid.uuid5(_NAMESPACE, f"{settings.PUBLIC_URL} {posted} {last}")
        try:
            client.post_state_event(event_id=event_id, content="\n".join(lines))
        except EngramError as error:
            if not error.permanent:
                raise
    store.set(POSTED_KEY, last)
    store.delete(POSTING_KEY)
    return len(entries)


def _event(entry: tuple[str, dict[str, str]], posted: tuple[int, int]) -> Event:
    place, fields = entry
    return Event(
        at=datetime.fromisoformat(fields["at"]),
        what=fields["what"],
        facts=json.loads(fields["facts"]),
        posted=_place(place) <= posted,
    )


def _place(entry_id: str) -> tuple[int, int]:
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number or 0)


def note_change(name: str, value: str, what: Happening) -> None:
    """Keep an event where this named value is another than at the last time; the first time is none."""
    if not settings.ENGRAM_URL:
        return
    client: Any = valkey(settings.REDIS_URL)
    try:
        before = client.getset(f"neuron:engram:last:{name}", value)
    except (redis.exceptions.RedisError, OSError):
        return
    if before is not None and before != value:
        facts: dict[str, Any] = {name: value}
        note(what, **facts)
