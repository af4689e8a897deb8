"""The channel of the thread: candidates with the turns around them, in order, as the formula wants them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np
from django.db import connection

from memory.retrieval import arrays
from memory.retrieval.fusion import Bools, Floats, Ints

# A candidate's neighbours two turns away are candidates too. The formula looks three turns around each; what the
# outermost would lend to those two away changes no figure of the evaluation.
SCORED_AROUND = 2
FETCHED_AROUND = 4
# What the columns of numbers hold, in the order of `around`.
_KINDS = (">i8", ">i4", ">f8", ">i4", ">i4", "?", "?")


class Row(NamedTuple):
    """One utterance of the scene, for showing it."""

    id: int
    node_id: UUID
    role: str
    speaker: str
    session_id: str | None
    position: int
    occurred_at: float  # seconds since 1970


@dataclass(frozen=True)
class Rows:
    """Utterances in thread order, n of them, by column: a search reads a thousand and shows ten."""

    id: Ints
    node_id: list[str]
    role: list[str]
    speaker: list[str]
    node_type: list[str]
    session_id: list[str | None]
    position: Ints
    occurred_at: Floats
    length: Ints
    chunks: Ints
    is_question: Bools
    has_time: Bools
    terms: Ints  # the keys of all chunks of all rows, each chunk ended by a 0

    def __len__(self) -> int:
        return len(self.id)

    def at(self, place: int) -> Row:
        return Row(
            int(self.id[place]),
            UUID(self.node_id[place]),
            self.role[place],
            self.speaker[place],
            self.session_id[place],
            int(self.position[place]),
            float(self.occurred_at[place]),
        )


_COLUMNS = (
    "u.id, u.node_id, u.role, u.speaker, u.node_type, u.session_id, u.position, u.occurred_at, u.length, u.chunks,"
    " u.is_question, u.has_time, u.terms"
)


def around(owner_id: int, ids: Sequence[int]) -> Rows:
    """These utterances and the four on each side of them in their threads, by session and position."""
    wanted = arrays.literal(ids)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT session_id, position FROM memory_utterance WHERE id = ANY(%s::bigint[]) AND owner_id = %s",
            [wanted, owner_id],
        )
        spans = _spans((session, position) for session, position in cursor.fetchall() if session is not None)
        cursor.execute(
            "SELECT coalesce(array_agg(node_id::text), '{}'), coalesce(array_agg(role::text), '{}'),"
            " coalesce(array_agg(speaker::text), '{}'), coalesce(array_agg(node_type::text), '{}'),"
            " coalesce(array_agg(session_id::text), '{}'),"
            " array_send(array_agg(id)), array_send(array_agg(position)),"
            " array_send(array_agg(extract(epoch FROM occurred_at)::float8)), array_send(array_agg(length)),"
            " array_send(array_agg(chunks)), array_send(array_agg(is_question)), array_send(array_agg(has_time)),"
            f" string_agg(substr(array_send(terms), {arrays.HEAD_BYTES + 1}), '') FROM ("
            f"SELECT {_COLUMNS} FROM memory_utterance u"
            " WHERE u.id = ANY(%s::bigint[]) AND u.owner_id = %s AND u.session_id IS NULL"
            f" UNION ALL SELECT {_COLUMNS}"
            " FROM unnest(%s::uuid[], %s::int[], %s::int[]) AS span (session_id, low, high)"
            " JOIN memory_utterance u ON u.owner_id = %s AND u.session_id = span.session_id"
            " AND u.position BETWEEN span.low AND span.high ORDER BY session_id, position, id) AS row",
            [wanted, owner_id, *spans, owner_id],
        )
        node_id, role, speaker, node_type, session_id, *numbers, terms = cursor.fetchone()
    columns = [arrays.numbers([one or b""], kind) for one, kind in zip(numbers, _KINDS, strict=True)]
    id_, position, occurred_at, length, chunks, is_question, has_time = columns
    return Rows(
        id_, node_id, role, speaker, node_type, session_id, position, occurred_at, length, chunks,
        is_question, has_time, arrays.elements(terms or b"", ">i8"),
    )  # fmt: skip


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


def beside(rows: Rows, place: int) -> tuple[Row, ...]:
    """The rows right before and after this one in its thread."""
    return tuple(
        rows.at(other)
        for other in (place - 1, place + 1)
        if 0 <= other < len(rows)
        and rows.session_id[place] is not None
        and rows.session_id[other] == rows.session_id[place]
        and abs(rows.position[other] - rows.position[place]) <= 2
    )


def session_numbers(rows: Rows) -> tuple[Ints, list[str | None]]:
    """A dense number for each row's session, and the sessions by number; a row without one has a number of its own."""
    numbers: list[int] = []
    sessions: list[str | None] = []
    known: dict[str, int] = {}
    for session_id in rows.session_id:
        number = known.get(session_id) if session_id is not None else None
        if number is None:
            number = len(sessions)
            sessions.append(session_id)
            if session_id is not None:
                known[session_id] = number
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


def keys_by_chunk(rows: Rows) -> tuple[Ints, Ints]:
    """Every key of every chunk of the rows, and the number of its chunk, counted over all rows in order."""
    ends = rows.terms == 0
    chunk = np.cumsum(ends) - ends
    return rows.terms[~ends], chunk[~ends]


def scored(rows: Rows, numbers: Ints, core: set[int]) -> Bools:
    """Which rows are scored: the candidates and those within two turns of one."""
    is_core = np.isin(rows.id, list(core))
    found = is_core.copy()
    for distance in range(1, SCORED_AROUND + 1):
        if distance < len(rows):
            same = numbers[distance:] == numbers[:-distance]
            found[distance:] |= is_core[:-distance] & same
            found[:-distance] |= is_core[distance:] & same
    return found
