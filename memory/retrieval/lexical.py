"""The channel of words: which utterances and sessions of an owner hold a query's terms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from memory.retrieval import packed

Ints = NDArray[np.int64]

# Postings read for one query. Past it the commonest terms are scored among the candidates that rarer ones found.
MOST_POSTINGS = 5000
# A part of a word that no word begins or ends with is hardly what was meant.
MOST_PART_WORDS = 20
PART_WORD_CREDIT = 0.6
_ENTRY = np.dtype([("utterance", ">i8"), ("thread", ">i4")])


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
    left_out: tuple[int, ...] = ()  # utterances that are no hits, whatever they hold
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
        object.__setattr__(self, "sql", "".join(clause for clause, _ in clauses))
        object.__setattr__(self, "values", tuple(value for _, value in clauses))


def frequencies(owner_id: int, keys: Sequence[int]) -> dict[int, int]:
    """In how many of the owner's chunks each key is; a key that is in none is not in the answer."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key, chunks FROM memory_ownerterm WHERE owner_id = %s AND key = ANY(%s::bigint[])"
            " AND chunks > 0",
            [owner_id, packed.literal(keys)],
        )
        return dict(cursor.fetchall())


def part_words(owner_id: int, part: str) -> list[tuple[str, int, int]]:
    """The owner's words that hold this part, shortest first: word, key, frequency. For one that is nowhere whole."""
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT word, key, chunks FROM memory_ownerterm WHERE owner_id = %s AND word LIKE %s AND chunks > 0"
            " ORDER BY length(word), key LIMIT %s",
            [owner_id, f"%{escaped}%", MOST_PART_WORDS],
        )
        return list(cursor.fetchall())


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


@dataclass(frozen=True)
class Postings:
    """Where the ways stand: for each of p places the way's number, the utterance, and its session's thread number."""

    way: Ints  # (p,)
    utterance: Ints  # (p,)
    thread: Ints  # (p,) the number of its session, see `Rows.thread`


def postings(owner_id: int, ways: Sequence[Way]) -> Postings:
    """Every utterance that holds a way."""
    of_key: dict[int, list[int]] = {}
    for number, way in enumerate(ways):
        of_key.setdefault(way.key, []).append(number)
    found = packed.fetch(
        "SELECT key, entries FROM memory_posting WHERE owner_id = %s AND key = ANY(%s::bigint[])",
        [owner_id, packed.literal(of_key)],
    )
    rows = [(number, sent) for key, sent in found for number in of_key[key]]
    entries = np.frombuffer(b"".join(sent for _, sent in rows), dtype=_ENTRY)
    return Postings(
        np.repeat(
            np.array([number for number, _ in rows], dtype=np.int64),
            [len(sent) // _ENTRY.itemsize for _, sent in rows],
        ),
        entries["utterance"].astype(np.int64),
        entries["thread"].astype(np.int64),
    )


def candidates(
    standing: Postings, allowed: NDArray[np.bool_], ways: Sequence[Way], weights: Sequence[float], limit: int
) -> list[int]:
    """Ids of the allowed utterances with the greatest weight of terms, each term counted once, ties to the newer."""
    ids, row = np.unique(standing.utterance[allowed], return_inverse=True)
    term = np.array([way.term for way in ways], dtype=np.int64)[standing.way[allowed]]
    best = np.zeros((len(weights), len(ids)))
    np.maximum.at(
        best, (term, row), np.array([way.credit * weights[way.term] for way in ways])[standing.way[allowed]]
    )
    worth = best.sum(axis=0)
    return [int(ids[i]) for i in np.lexsort((-ids, -worth))[:limit]]


def credit_in_sessions(
    standing: Postings, ways: Sequence[Way], terms: int, threads: Ints
) -> NDArray[np.float64]:
    """(terms, sessions): the best credit of each term anywhere in each of these sessions, one at least."""
    credit = np.zeros((terms, len(threads)))
    order = np.argsort(threads, kind="stable")
    place = np.searchsorted(threads[order], standing.thread).clip(max=len(order) - 1)
    here = (threads[order][place] == standing.thread) & (standing.thread != 0)
    way = standing.way[here]
    term = np.array([one.term for one in ways], dtype=np.int64)
    worth = np.array([one.credit for one in ways])
    np.maximum.at(credit, (term[way], order[place[here]]), worth[way])
    return credit


def passing(owner_id: int, ids: Ints, filters: Filters) -> NDArray[np.bool_]:
    """Which of these utterances the filters let through."""
    passes = np.isin(ids, filters.left_out, invert=True)
    if filters.sql:
        # Of very many it is quicker to read all of the owner's.
        few = len(ids) <= MOST_POSTINGS
        [(sent,)] = packed.fetch(
            "SELECT string_agg(int8send(u.id), '') FROM memory_utterance u"
            f" WHERE u.owner_id = %s{filters.sql}" + (" AND u.id = ANY(%s::bigint[])" if few else ""),
            [owner_id, *filters.values, *([packed.literal(np.unique(ids).tolist())] if few else [])],
        )
        passes &= np.isin(ids, packed.numbers(sent, ">i8"))
    return passes
