"""recall(): from a person's question to what was said about it, best first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from memory.models import MemoryNode
from memory.retrieval import dense, fusion, lexical, question, snippets, thread
from memory.retrieval.filters import Filters
from memory.retrieval.fusion import Floats, Scene, Weights
from memory.retrieval.lexical import Way
from memory.retrieval.question import Question
from memory.retrieval.thread import Row, Rows
from memory.retrieval.utterances import PERSON, SPEAKER, key

MOST_HITS = 100
CANDIDATES = 40
# Compared with each other for HUB. A recap chooses from more.
MOST_COMPARED = 150
MOST_RECAPPED = 300
# A recap wants the whole of a theme: this many times as many hits, from all over its time.
RECAP_WIDER = 3
RECAP_PER_SESSION = 4
# Below it nothing is put before a model or claimed to be remembered: "no confident hit" is an answer. Of questions
# that a memory can answer nine in ten have a confident hit (score 0.8), of another memory's questions one in four.
CONFIDENT = 0.3


@dataclass(frozen=True)
class Neighbour:
    """The utterance before or after a hit in its thread."""

    node_id: UUID
    role: str
    speaker: str
    text: str
    occurred_at: datetime


@dataclass(frozen=True)
class Hit:
    """One remembered utterance. `channels` is what each channel gave to `score`; `marks` are spans of `snippet`."""

    node: MemoryNode
    role: str
    speaker: str
    score: float
    confidence: float
    snippet: str
    marks: tuple[tuple[int, int], ...]
    channels: dict[str, float]
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Scored:
    """A row of the scene with its score and the rows next to it, before anything is fetched to show it."""

    row: Row
    beside: tuple[Row, ...]
    score: float
    channels: dict[str, float]


def recall(
    owner: AbstractBaseUser,
    query: str,
    *,
    limit: int = 10,
    since: datetime | None = None,
    until: datetime | None = None,
    node_types: Sequence[str] | None = None,
    session_id: UUID | None = None,
    except_from: tuple[UUID, int] | None = None,
    now: datetime | None = None,
    in_context: bool = True,
) -> list[Hit]:
    """What the owner's memory holds on a question, at most `limit` (1–100) utterances, best first.

    `since` and `until` bound [since, until) by `occurred_at` and must be aware; times that the query itself names
    ("last week", "in May") only raise what agrees with them. A recap question ("summarise what I said about …")
    widens to three times `limit`, spread over sessions, in order of time. A query that says nothing finds nothing.
    `except_from` leaves out a session from a turn_index on: what the asker has before them anyway. Without
    `in_context` the hits have no snippet and no neighbours, which a reader of whole nodes does not need.
    Raises ValueError for a limit or a time out of range.
    """
    if not 1 <= limit <= MOST_HITS:
        raise ValueError(f"limit must be between 1 and {MOST_HITS}, not {limit}")
    for moment in (since, until):
        if moment is not None and timezone.is_naive(moment):
            raise ValueError("a time must carry its time zone")
    zone = timezone.get_current_timezone()
    asked = question.read(
        query, now=now or timezone.now(), tz=zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC")
    )
    left_out = thread.ids_from(owner.pk, *except_from) if except_from else ()
    filters = Filters(since, until, tuple(node_types or ()), session_id, left_out)
    ranked = rank(owner.pk, asked, filters, weights=Weights(), most=MOST_RECAPPED if asked.recap else limit)
    if asked.recap:
        chosen = _spread(ranked, limit * RECAP_WIDER)
    else:
        chosen = ranked
    return _as_hits(owner, chosen, asked, in_context=in_context)


def rank(owner_id: int, asked: Question, filters: Filters, *, weights: Weights, most: int) -> list[Scored]:
    """The best candidates by falling score, ties to the newer."""
    index = dense.indexed(owner_id)
    # A person's first conversation is before them as a whole: there is nothing else to look through.
    if index.utterances <= len(filters.left_out) or not index.chunks or not asked.words:
        return []
    model = index.model
    ways, term_weights = _ways(owner_id, asked, index.chunks)
    affordable = lexical.affordable(ways)
    vector = dense.embed_query(asked.text, model) if weights.dense or weights.hub else None
    core = set()
    standing = lexical.postings(owner_id, affordable)
    if weights.coverage:
        held = lexical.by_weight(standing, affordable, term_weights.tolist())
        core |= set(filters.first(owner_id, held, CANDIDATES))
    if vector is not None:
        core |= set(
            dense.candidates(owner_id, vector, model, filters, CANDIDATES, approximate=index.approximate)
        )
    if not core:
        return []
    rows = thread.around(owner_id, sorted(core), filters)
    if not len(rows):
        return []
    wanted = thread.scored(rows, core) & rows.passes
    scene = _scene(rows, asked, ways, term_weights)
    scene.in_session[:] = lexical.credit_in_sessions(standing, affordable, len(term_weights), rows.threads)
    if vector is not None:
        scene.dense[:] = dense.nearness(owner_id, rows.id, vector, model)
    if asked.recap:
        # The longest messages of a theme say the most about it.
        weights = weights.without("length")
    scores, parts = fusion.score(scene, asks_when=asked.asks_when, weights=weights)
    chosen = np.nonzero(wanted)[0]
    # What is not among these before HUB is not among the hits after it.
    chosen = np.sort(chosen[np.argsort(-scores[chosen], kind="stable")[: max(most, MOST_COMPARED)]])
    parts["alike"] = np.zeros(len(rows))
    if vector is not None and weights.hub:
        parts["alike"][chosen] = -weights.hub * _hubness(owner_id, rows.id[chosen].tolist(), model)
        scores = scores + parts["alike"]
    best = chosen[np.lexsort((-rows.id[chosen], -rows.occurred_at[chosen], -scores[chosen]))[:most]]
    return [
        Scored(
            rows.at(i),
            thread.beside(rows, i),
            float(scores[i]),
            {name: float(part[i]) for name, part in parts.items()},
        )
        for i in best.tolist()
    ]


def _ways(owner_id: int, asked: Question, chunks: int) -> tuple[list[Way], Floats]:
    """Where to look for each term, and each term's weight."""
    keys = {way: key(owner_id, way) for term in asked.terms for way, _ in term.ways}
    frequency = lexical.frequencies(owner_id, list(keys.values())) if keys else {}
    ways: list[Way] = []
    own: list[int] = []
    for number, term in enumerate(asked.terms):
        found = [
            Way(keys[way], number, credit, frequency[keys[way]])
            for way, credit in term.ways
            if keys[way] in frequency
        ]
        if not found and len(term.word) >= 2:
            parts = lexical.part_words(owner_id, term.word)
            found = [Way(part, number, lexical.PART_WORD_CREDIT, count) for _, part, count in parts]
        ways += found
        own.append(max((way.chunks for way in found if way.credit == 1.0), default=0))
    return ways, fusion.idf(np.array(own, dtype=np.int64), chunks) ** fusion.IDF_POWER


def _scene(rows: Rows, asked: Question, ways: list[Way], term_weights: Floats) -> Scene:
    roles = np.array(rows.role)
    presence = np.zeros((len(term_weights), int(rows.chunks.sum())))
    _fill(presence, rows, ways)
    first_names = [
        speaker.split()[0].lower() if role == SPEAKER else ""
        for speaker, role in zip(rows.speaker, rows.role, strict=True)
    ]
    named = set(first_names) & asked.words
    return Scene(
        session=rows.session,
        position=rows.position,
        chunk_of=np.repeat(np.arange(len(rows)), rows.chunks),
        presence=presence,
        in_session=np.zeros((len(term_weights), len(rows.threads))),
        weight=term_weights,
        dense=np.zeros(len(rows)),
        by_speaker=np.array([len(named) == 1 and name in named for name in first_names]),
        by_asker=(roles == PERSON) & asked.first_person,
        is_question=rows.is_question,
        between_people=roles == SPEAKER,
        has_time=rows.has_time,
        date=_dates(rows, asked),
        length=rows.length,
        chunks=rows.chunks,
    )


def _dates(rows: Rows, asked: Question) -> Floats:
    if not asked.days and asked.window is None:
        return np.zeros(len(rows))
    return np.array(
        [question.date_credit(asked, datetime.fromtimestamp(at, UTC)) for at in rows.occurred_at.tolist()]
    )


def _fill(presence: Floats, rows: Rows, ways: list[Way]) -> None:
    """Mark in each chunk the terms that stand in it, by the best way they do."""
    if not ways:
        return
    keys, chunk = thread.keys_by_chunk(rows)
    of_key: dict[int, list[Way]] = {}
    for way in ways:
        of_key.setdefault(way.key, []).append(way)
    wanted = np.array(sorted(of_key), dtype=np.int64)
    at = np.searchsorted(wanted, keys).clip(max=len(wanted) - 1)
    for place in np.nonzero(wanted[at] == keys)[0]:
        for way in of_key[int(keys[place])]:
            cell = (way.term, chunk[place])
            presence[cell] = max(presence[cell], way.credit)


def _hubness(owner_id: int, ids: list[int], model: str) -> Floats:
    found, vectors = dense.vectors(owner_id, ids, model)
    place = {pk: number for number, pk in enumerate(ids)}
    hub = np.zeros(len(ids))
    hub[[place[pk] for pk in found]] = fusion.hubness(vectors)
    return hub


def _spread(ranked: list[Scored], most: int) -> list[Scored]:
    """The best of a theme from many sessions rather than many of one, in order of time."""
    taken: Counter[int] = Counter()
    chosen = []
    for one in ranked:
        if taken[one.row.session] < RECAP_PER_SESSION:
            taken[one.row.session] += 1
            chosen.append(one)
        if len(chosen) == most:
            break
    return sorted(chosen, key=lambda one: (one.row.occurred_at, one.row.position, one.row.id))


def _as_hits(
    owner: AbstractBaseUser, chosen: list[Scored], asked: Question, *, in_context: bool
) -> list[Hit]:
    if not chosen:
        return []
    needed = {one.row.node_id for one in chosen}
    if in_context:
        needed |= {row.node_id for one in chosen for row in one.beside}
    nodes = MemoryNode.objects.for_owner(owner).recallable().in_bulk(needed)
    confidences = fusion.confidence(np.array([one.score for one in chosen]))
    hits = []
    for one, confidence in zip(chosen, confidences, strict=True):
        node = nodes.get(one.row.node_id)
        if node is None:  # forgotten since the search began
            continue
        snippet, marks = snippets.cut(snippets.said(node, one.row.role), asked) if in_context else ("", ())
        around = tuple(
            Neighbour(
                row.node_id,
                row.role,
                row.speaker,
                snippets.said(nodes[row.node_id], row.role),
                nodes[row.node_id].occurred_at,
            )
            for row in one.beside
            if in_context and row.node_id in nodes
        )
        hits.append(
            Hit(
                node,
                one.row.role,
                one.row.speaker,
                one.score,
                float(confidence),
                snippet,
                marks,
                one.channels,
                around,
            )
        )
    return hits
