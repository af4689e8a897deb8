"""The channel of words: which utterances and sessions of an owner hold a query's terms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

# Postings read for one query. Past it the commonest terms are scored among the candidates that rarer ones found.
MOST_POSTINGS = 5000
# A part of a word that no word begins or ends with is hardly what was meant.
MOST_PART_WORDS = 20
PART_WORD_CREDIT = 0.6


@dataclass(frozen=True)
class Way:
    """One key to look for: the term it stands for, what it counts (0 to 1), and in how many chunks it is."""

    key: int
    term: int
    credit: float
    chunks: int


@dataclass(frozen=True)
class Filters:
    """What hits are limited to."""

    since: datetime | None = None
    until: datetime | None = None
    node_types: tuple[str, ...] = ()
    session_id: UUID | None = None
    except_from: tuple[UUID, int] | None = (
        None  # a session, and the position from which its utterances are left out
    )
    sql: str = field(init=False, default="")
    values: tuple[Any, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        clauses: list[tuple[str, Any]] = []
        if self.since is not None:
            clauses.append((" AND u.occurred_at >= %s", self.since))
        if self.until is not None:
            clauses.append((" AND u.occurred_at < %s", self.until))
        if self.node_types:
            clauses.append((" AND u.node_type = ANY(%s)", list(self.node_types)))
        if self.session_id is not None:
            clauses.append((" AND u.session_id = %s", self.session_id))
        values = [value for _, value in clauses]
        if self.except_from is not None:
            clauses.append((" AND (u.session_id IS DISTINCT FROM %s OR u.position < %s)", None))
            values += self.except_from
        object.__setattr__(self, "sql", "".join(clause for clause, _ in clauses))
        object.__setattr__(self, "values", tuple(values))


def frequencies(owner_id: int, keys: Sequence[int]) -> dict[int, int]:
    """In how many of the owner's chunks each key is; a key that is in none is not in the answer."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key, chunks FROM memory_ownerterm WHERE owner_id = %s AND key = ANY(%s) AND chunks > 0",
            [owner_id, list(keys)],
        )
        return dict(cursor.fetchall())


def part_words(owner_id: int, part: str) -> dict[int, int]:
    """Keys of the owner's words that hold this part, with their frequencies; for a word that is nowhere whole."""
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key, chunks FROM memory_ownerterm WHERE owner_id = %s AND word LIKE %s AND chunks > 0"
            " ORDER BY length(word), key LIMIT %s",
            [owner_id, f"%{escaped}%", MOST_PART_WORDS],
        )
        return dict(cursor.fetchall())


def affordable(ways: Sequence[Way]) -> list[Way]:
    """The rarest ways within the budget of postings, one at least."""
    chosen: list[Way] = []
    spent = 0
    for way in sorted(ways, key=lambda way: (way.chunks, way.key)):
        spent += way.chunks
        if chosen and spent > MOST_POSTINGS:
            break
        chosen.append(way)
    return chosen


_MATCHES = """
    FROM unnest(%s::bigint[], %s::int[], %s::float8[]) AS way (key, term, worth)
    JOIN memory_utterance u ON u.terms @> ARRAY[way.key]
    WHERE u.owner_id = %s"""


def candidates(
    owner_id: int, ways: Sequence[Way], weights: Sequence[float], filters: Filters, limit: int
) -> list[int]:
    """Ids of the utterances with the greatest weight of terms, each term counted once."""
    if not ways:
        return []
    worth = [way.credit * weights[way.term] for way in ways]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM (SELECT u.id, way.term, max(way.worth) AS worth"
            + _MATCHES
            + filters.sql
            + " GROUP BY 1, 2) AS matched GROUP BY id ORDER BY sum(worth) DESC, id DESC LIMIT %s",
            [[w.key for w in ways], [w.term for w in ways], worth, owner_id, *filters.values, limit],
        )
        return [row[0] for row in cursor.fetchall()]


def sessions(owner_id: int, ways: Sequence[Way], session_ids: Sequence[str]) -> list[tuple[int, float, str]]:
    """For each of these sessions the terms that stand anywhere in it: (term, credit, session)."""
    if not ways or not session_ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            # Materialised: joined the other way round, each of the sessions' messages would be compared with each key.
            "WITH matched AS MATERIALIZED (SELECT way.term, way.worth, u.session_id"
            + _MATCHES
            + ") SELECT term, max(worth), session_id::text FROM matched"
            " WHERE session_id = ANY(%s::uuid[]) GROUP BY 1, 3",
            [
                [w.key for w in ways],
                [w.term for w in ways],
                [w.credit for w in ways],
                owner_id,
                list(session_ids),
            ],
        )
        return [(term, credit, session) for term, credit, session in cursor.fetchall()]
