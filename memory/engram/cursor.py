"""The cursor of a sync: up to which transactions somebody has seen this engram. Opaque to whoever holds it.

A time or a sequence would miss a change that was made before another and committed after it. A cursor holds a
snapshot of PostgreSQL instead, which names the transactions it does not show. A long answer comes in pages: the
cursor between two pages also holds the snapshot that the round began with and the place that was reached. When
the round ends, the next one asks for what that first snapshot does not show, so what changed between the pages
comes then.
"""

import re
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

_NUMBERS = r"\d{1,19}"
_SNAPSHOT = rf"{_NUMBERS}:{_NUMBERS}:(?:{_NUMBERS}(?:,{_NUMBERS}){{0,999}})?"
_WRITTEN = re.compile(rf"(\d{{1,20}})~({_SNAPSHOT})(?:~({_SNAPSHOT})?~([ne])~([0-9a-f]{{32}}))?", re.ASCII)

NODES, EDGES = "n", "e"


class BadCursor(ValueError):
    """What was handed in is no cursor of ours."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """`since` is the snapshot that was seen, None for nothing; `until` the one to have seen when the round ends.

    `phase` and `after` are the place reached within the round: only its edges are left, or nodes and edges; ids
    above `after`. `system` tells one database from another, as transactions are counted in each by itself.
    """

    system: str
    since: str | None
    until: str
    phase: str = NODES
    after: UUID | None = None

    def __str__(self) -> str:
        if self.after is None and self.phase == NODES:
            return f"{self.system}~{self.until}"
        after = self.after or UUID(int=0)
        return f"{self.system}~{self.until}~{self.since or ''}~{self.phase}~{after.hex}"

    def next_round(self) -> "Cursor":
        """What to hand out when the last page has been given."""
        return Cursor(self.system, None, self.until)


def begin(given: str) -> Cursor:
    """Where to go on for somebody who hands in this cursor, "" for one who has seen nothing. Raises BadCursor.

    A cursor of another database, or of a later time of this one (before a restore), counts as nothing seen.
    """
    with connection.cursor() as query:
        query.execute("SELECT system_identifier::text, pg_current_snapshot()::text FROM pg_control_system()")
        system, now = query.fetchone()
    if not given:
        return Cursor(system, None, now)
    found = _WRITTEN.fullmatch(given)
    if found is None or not all(_is_snapshot(text) for text in found.group(2, 3) if text):
        raise BadCursor("this is no cursor of this engram")
    written_by, until, since, phase, after = found.groups()
    if written_by != system or _end(until) > _end(now):
        return Cursor(system, None, now)
    if phase is None:
        return Cursor(system, until, now)
    return Cursor(system, since, until, phase, UUID(after))


def _end(snapshot: str) -> int:
    return int(snapshot.split(":")[1])


def _is_snapshot(text: str) -> bool:
    """Whether PostgreSQL takes it: first ≤ every one in progress < end, and these in order."""
    first, end, running = text.split(":")
    numbers = [int(one) for one in running.split(",")] if running else []
    return (
        0 < int(first) <= int(end) < 2**63
        and numbers == sorted(set(numbers))
        and all(int(first) <= one < int(end) for one in numbers)
    )
