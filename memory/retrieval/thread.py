"""The channel of the thread: candidates with the turns around them, in order, as the formula wants them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from memory.retrieval import arrays

# A candidate's neighbours two turns away are candidates too. The formula looks three turns around each; what the
# outermost would lend to those two away changes no figure of the evaluation.
SCORED_AROUND = 2
FETCHED_AROUND = 4


class Row(NamedTuple):
    """One utterance of the scene. A tuple, because a search makes a thousand of them."""

    id: int
    node_id: UUID
    role: str
    speaker: str
    node_type: str
    session_id: str | None
    position: int
    occurred_at: float  # seconds since 1970: parsing two thousand dates would take longer than the search
    length: int
    chunks: int
    is_question: bool
    has_time: bool
    terms: bytes  # PostgreSQL's wire form of bigint[]


_COLUMNS = (
    "u.id, u.node_id, u.role, u.speaker, u.node_type, u.session_id::text, u.position,"
    " extract(epoch FROM u.occurred_at)::float8,"
    " u.length, u.chunks,"
    " u.is_question, u.has_time, array_send(u.terms)"
)


def around(owner_id: int, ids: Sequence[int]) -> list[Row]:
    """These utterances and the four on each side of them in their threads, by session and position."""
    wanted = arrays.literal(ids)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT session_id, position FROM memory_utterance WHERE id = ANY(%s::bigint[]) AND owner_id = %s",
            [wanted, owner_id],
        )
        spans = _spans((session, position) for session, position in cursor.fetchall() if session is not None)
        cursor.execute(
            f"SELECT {_COLUMNS} FROM memory_utterance u"
            " WHERE u.id = ANY(%s::bigint[]) AND u.owner_id = %s AND u.session_id IS NULL"
            f" UNION ALL SELECT {_COLUMNS}"
            " FROM unnest(%s::uuid[], %s::int[], %s::int[]) AS span (session_id, low, high)"
            " JOIN memory_utterance u ON u.owner_id = %s AND u.session_id = span.session_id"
            " AND u.position BETWEEN span.low AND span.high ORDER BY session_id, position, id",
            [wanted, owner_id, *spans, owner_id],
        )
        return [Row._make(values) for values in cursor.fetchall()]


def columns(rows: Sequence[Row]) -> Any:
    """The rows turned: each field holds all rows' values."""
    return Row._make(zip(*rows, strict=True))


def _spans(places: Iterable[tuple[UUID, int]]) -> tuple[list[UUID], list[int], list[int]]:
    """Spans around the places, those that touch joined, so that no row is met twice."""
    sessions: list[UUID] = []
    lows: list[int] = []
    highs: list[int] = []
    for session, position in sorted(places):
        low, high = position - FETCHED_AROUND, position + FETCHED_AROUND
        if sessions and sessions[-1] == session and low <= highs[-1] + 1:
            highs[-1] = high
        else:
            sessions.append(session)
            lows.append(low)
            highs.append(high)
    return sessions, lows, highs


def session_numbers(rows: Sequence[Row]) -> tuple[NDArray[np.int64], list[str | None]]:
    """A dense number for each row's session, and the sessions by number; a row without one has a number of its own."""
    numbers: list[int] = []
    sessions: list[str | None] = []
    known: dict[str, int] = {}
    for row in rows:
        number = known.get(row.session_id) if row.session_id is not None else None
        if number is None:
            number = len(sessions)
            sessions.append(row.session_id)
            if row.session_id is not None:
                known[row.session_id] = number
        numbers.append(number)
    return np.array(numbers, dtype=np.int64), sessions


def ids_from(owner_id: int, session_id: UUID, turn_index: int) -> tuple[int, ...]:
    """The utterances of a session from a turn on."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM memory_utterance WHERE owner_id = %s AND session_id = %s AND position >= %s",
            [owner_id, session_id, 2 * turn_index],
        )
        return tuple(row[0] for row in cursor.fetchall())


def keys_by_chunk(rows: Sequence[Row]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every key of every chunk of the rows, and the number of its chunk, counted over all rows in order."""
    keys = arrays.numbers((row.terms for row in rows), ">i8")
    ends = keys == 0
    chunk = np.cumsum(ends) - ends
    return keys[~ends], chunk[~ends]


def scored(rows: Sequence[Row], numbers: NDArray[np.int64], core: set[int]) -> NDArray[np.bool_]:
    """Which rows are scored: the candidates and those within two turns of one."""
    is_core = np.array([row.id in core for row in rows], dtype=bool)
    found = is_core.copy()
    for distance in range(1, SCORED_AROUND + 1):
        if distance < len(rows):
            same = numbers[distance:] == numbers[:-distance]
            found[distance:] |= is_core[:-distance] & same
            found[:-distance] |= is_core[distance:] & same
    return found
