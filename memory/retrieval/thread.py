"""The channel of the thread: candidates with the turns around them, in order, as the formula wants them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from memory.retrieval import packed
from memory.retrieval.filters import Filters
from memory.retrieval.fusion import Bools, Floats, Ints

# A candidate's neighbours two turns away are candidates too. The formula looks three turns around each; what the
# outermost would lend to those two away changes no figure of the evaluation.
SCORED_AROUND = 2
FETCHED_AROUND = 3
# PostgreSQL counts microseconds from the beginning of 2000.
_TIMES_FROM = 946_684_800


class Row(NamedTuple):
    """One utterance of the scene, for showing it."""

    id: int
    node_id: UUID
    role: str
    speaker: str
    session: int
    position: int
    occurred_at: float  # seconds since 1970


@dataclass(frozen=True)
class Rows:
    """Utterances in thread order, n of them, by column: a search reads a thousand and shows ten."""

    id: Ints
    session: Ints  # dense numbers; a row without a session has one of its own
    threads: Ints  # (sessions,) the first four bytes of each session's id, as a number; 0 for none
    position: Ints
    occurred_at: Floats
    length: Ints
    chunks: Ints
    is_question: Bools
    has_time: Bools
    passes: Bools  # the filters; a neighbour of a candidate need not
    role: list[str]
    speaker: list[str]
    node_ids: bytes  # 16 of each
    terms: Ints  # the keys of all chunks of all rows, each chunk ended by a 0

    def __len__(self) -> int:
        return len(self.id)

    def at(self, place: int) -> Row:
        return Row(
            int(self.id[place]),
            UUID(bytes=self.node_ids[16 * place : 16 * place + 16]),
            self.role[place],
            self.speaker[place],
            int(self.session[place]),
            int(self.position[place]),
            float(self.occurred_at[place]),
        )


# The packed ones of the columns that `around` asks for, whether the row passes being the first.
_KINDS = ("?", ">i8", ">i4", ">i8", ">i4", ">i4", "?", "?")
_COLUMNS = (
    "string_agg(int8send(id), ''), string_agg(int4send(position), ''), string_agg(timestamptz_send(occurred_at), ''),"
    " string_agg(int4send(length), ''), string_agg(int4send(chunks), ''), string_agg(boolsend(is_question), ''),"
    " string_agg(boolsend(has_time), ''), string_agg(uuid_send(node_id), ''),"
    " string_agg(coalesce(uuid_send(session_id), int8send(0) || int8send(0)), ''),"
    " string_agg(role, ' '), array_agg(speaker), string_agg(terms, '')"
)


def around(owner_id: int, ids: Sequence[int], filters: Filters) -> Rows:
    """These utterances and the three on each side of them in their threads, by session and position."""
    wanted = packed.literal(ids)
    # Spans that touch are joined, so that no row is met twice.
    [(*numbers, nodes, sessions, role, speaker, terms)] = packed.fetch(
        f"SELECT string_agg(boolsend(TRUE{filters.sql}), ''), {_COLUMNS} FROM ("
        "SELECT u.* FROM memory_utterance u"
        " WHERE u.id = ANY(%s::bigint[]) AND u.owner_id = %s AND u.session_id IS NULL"
        " UNION ALL SELECT u.* FROM ("
        "SELECT session_id, unnest(range_agg(int4range(position - %s, position + %s, '[]'))) AS span"
        " FROM memory_utterance WHERE id = ANY(%s::bigint[]) AND owner_id = %s AND session_id IS NOT NULL"
        " GROUP BY session_id) AS around"
        # OFFSET 0 has each span looked up by itself: the planner takes 80 of them for 8,000, and would read the table.
        " CROSS JOIN LATERAL (SELECT * FROM memory_utterance"
        " WHERE owner_id = %s AND session_id = around.session_id"
        " AND position >= lower(span) AND position < upper(span) OFFSET 0) AS u"
        " ORDER BY session_id, position, id) AS u",
        [*filters.values, wanted, owner_id, FETCHED_AROUND, FETCHED_AROUND, wanted, owner_id, owner_id],
    )
    passes, found, position, occurred_at, length, chunks, is_question, has_time = (
        packed.numbers(sent, kind) for sent, kind in zip(numbers, _KINDS, strict=True)
    )
    session, threads = _sessions(packed.numbers(sessions, ">u8").reshape(-1, 2))
    return Rows(
        id=found,
        session=session,
        threads=threads,
        position=position,
        occurred_at=occurred_at / 1e6 + _TIMES_FROM,
        length=length,
        chunks=chunks,
        is_question=is_question,
        has_time=has_time,
        passes=passes & np.isin(found, filters.left_out, invert=True),
        role=role.split() if role else [],
        speaker=speaker or [],
        node_ids=nodes or b"",
        terms=packed.numbers(terms, ">i8"),
    )


def _sessions(ids: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The number of each row's session, and the thread number of each session, from (n, 2) halves of their ids.

    Two sessions that share a thread number lend each other a little credit.
    """
    begins = np.ones(len(ids), dtype=bool)
    begins[1:] = (ids[1:] != ids[:-1]).any(axis=1) | ~ids[1:].any(axis=1)
    first = (ids[begins, 0] >> np.uint64(32)).astype(np.uint32).view(np.int32)
    return np.cumsum(begins) - 1, first.astype(np.int64)


def beside(rows: Rows, place: int) -> tuple[Row, ...]:
    """The rows right before and after this one in its thread."""
    return tuple(
        rows.at(other)
        for other in (place - 1, place + 1)
        if 0 <= other < len(rows)
        and rows.session[other] == rows.session[place]
        and abs(rows.position[other] - rows.position[place]) <= 2
    )


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


def scored(rows: Rows, core: set[int]) -> Bools:
    """Which rows are scored: the candidates and those within two turns of one."""
    is_core = np.isin(rows.id, list(core))
    found = is_core.copy()
    for distance in range(1, SCORED_AROUND + 1):
        if distance < len(rows):
            same = rows.session[distance:] == rows.session[:-distance]
            found[distance:] |= is_core[:-distance] & same
            found[:-distance] |= is_core[distance:] & same
    return found
