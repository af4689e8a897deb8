"""The channel of words: which utterances and sessions of an owner hold a query's terms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection

from memory.retrieval import packed
from memory.retrieval.fusion import Floats, Ints

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
    thread: Ints  # (p,) the number of its session, see `Rows.threads`


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


def by_weight(standing: Postings, ways: Sequence[Way], weights: Sequence[float]) -> Ints:
    """Ids of the utterances by falling weight of terms, each term counted once, ties to the newer."""
    ids, row = np.unique(standing.utterance, return_inverse=True)
    term = np.array([way.term for way in ways], dtype=np.int64)[standing.way]
    best = np.zeros((len(weights), len(ids)))
    np.maximum.at(best, (term, row), np.array([way.credit * weights[way.term] for way in ways])[standing.way])
    worth = best.sum(axis=0)
    return ids[np.lexsort((-ids, -worth))]


def credit_in_sessions(standing: Postings, ways: Sequence[Way], terms: int, threads: Ints) -> Floats:
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
