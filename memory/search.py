"""Search in what is remembered: by the words it holds, by meaning, or both, each hit with what stands around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q
from django.utils import timezone

from memory.models import MemoryNode
from memory.recall_models import Utterance
from memory.retrieval import CONFIDENT, lexical, recall, text
from memory.retrieval.question import MOST_CHARACTERS, Question, Term, read
from memory.retrieval.snippets import Marks, cut, said
from memory.retrieval.utterances import ASSISTANT, key, utterances_of

MOST_FOUND = 100
# What stands before and after a hit is shown so far.
MOST_AROUND = 160
# Where nothing is surely meant, so many of the nearest are shown, and said to be no more than that.
MOST_UNSURE = 5
# Of a word that is in more messages than this, the ones indexed last are looked at.
MOST_LOOKED_AT = 5000
# Of so many, the most that recall gives, the nearest in meaning are taken.
MOST_COMPARED = 100
# What recall's channel of meaning gives to a hit that may be called near. Of 80 questions in two of LoCoMo's
# conversations the message that answers has more in 95 of 100.
NEAR = 0.5

NO_WORDS = "There are no words in this to look for. Write a word, a name or a question."
COMMON_WORDS = (
    "These words are in nearly everything that was said. Add one that says what you are looking for."
)
SHORTENED = f"This is longer than {MOST_CHARACTERS:,} characters: its beginning was looked for."

_PHRASE = re.compile(r"[\"“”„«»]([^\"“”„«»]+)[\"“”„«»]")


class By(StrEnum):
    """What a hit has in common with the query."""

    BOTH = "both"
    WORDS = "words"
    MEANING = "meaning"


@dataclass(frozen=True)
class Limits:
    """What hits are limited to: [since, until) by `occurred_at`, kinds, one session."""

    since: datetime | None = None
    until: datetime | None = None
    node_types: tuple[str, ...] = ()
    session_id: UUID | None = None


@dataclass(frozen=True)
class Found:
    """A remembered thing with the part of it that was found. `marks` are spans of `snippet`.

    `sure` is False where it is only the nearest there is. `before` and `after` stand beside it in its thread.
    """

    node: MemoryNode
    role: str
    speaker: str
    snippet: str
    marks: Marks
    sure: bool
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Results:
    """What was found, the sure first. `note` says why nothing could be looked for, or what was left out."""

    found: tuple[Found, ...] = ()
    note: str = ""


def search(
    owner: AbstractBaseUser,
    query: str,
    *,
    by: By = By.BOTH,
    limit: int = 20,
    limits: Limits | None = None,
    now: datetime | None = None,
) -> Results:
    """What the owner's memory holds for a query of any kind or length, at most `limit` (1–100) nodes.

    Words: all of them, in any form or as a part where a word is nowhere whole; what stands in quotes as it
    stands there; newest first. Meaning: the nearest first. Both: what recall is sure of, best first, then what holds
    the words. Raises ValueError for a limit or a time out of range.
    """
    if not 1 <= limit <= MOST_FOUND:
        raise ValueError(f"limit must be between 1 and {MOST_FOUND}, not {limit}")
    limits = limits or Limits()
    asked = _read(query, now=now)
    if not asked.words:
        return Results(note=NO_WORDS)
    if not asked.terms:
        return Results(note=COMMON_WORDS)
    found: list[Found] = []
    if by != By.WORDS:
        found += _by_recall(owner, asked, limits, by=by, limit=limit, now=now)
    if by != By.MEANING:
        found += _by_words(owner, asked, limits, limit=limit)
    chosen = _once([one for one in found if one.sure])[:limit] or _once(found)[: min(limit, MOST_UNSURE)]
    return Results(
        tuple(_with_surroundings(owner, chosen)), SHORTENED if len(query) > MOST_CHARACTERS else ""
    )


def _once(found: Sequence[Found]) -> list[Found]:
    """The first hit in each node: a turn may be found by both its sides and by both ways."""
    once: dict[UUID, Found] = {}
    for one in found:
        once.setdefault(one.node.pk, one)
    return list(once.values())


def _read(query: str, *, now: datetime | None) -> Question:
    zone = timezone.get_current_timezone()
    # Half of a surrogate pair and NUL can be held by no database and stand in no message.
    cleaned = query[:MOST_CHARACTERS].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return read(
        cleaned, now=now or timezone.now(), tz=zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC")
    )


def _by_recall(
    owner: AbstractBaseUser, asked: Question, limits: Limits, *, by: By, limit: int, now: datetime | None
) -> list[Found]:
    hits = recall(
        owner,
        asked.text,
        limit=MOST_COMPARED if by == By.MEANING else min(2 * limit, MOST_COMPARED),
        since=limits.since,
        until=limits.until,
        node_types=limits.node_types or None,
        session_id=limits.session_id,
        now=now,
        in_context=False,
    )
    phrases = _phrases(asked.text) if by == By.BOTH else []
    hits = [hit for hit in hits if all(one.search(said(hit.node, hit.role)) for one in phrases)]
    if by == By.MEANING:
        hits.sort(key=lambda hit: -hit.channels["meaning"])
    return [
        Found(
            hit.node,
            hit.role,
            hit.speaker,
            *cut(said(hit.node, hit.role), asked),
            sure=hit.channels["meaning"] >= NEAR if by == By.MEANING else hit.confidence >= CONFIDENT,
        )
        for hit in hits[: 2 * limit]
    ]


def _by_words(owner: AbstractBaseUser, asked: Question, limits: Limits, *, limit: int) -> list[Found]:
    terms = _held(owner, asked)
    if terms is None:
        return []
    nodes = MemoryNode.objects.for_owner(owner).recallable().filter(pk__in=_holding_all(owner, terms))
    nodes = nodes.occurred_between(limits.since, limits.until)
    if limits.node_types:
        nodes = nodes.of_type(*limits.node_types)
    if limits.session_id is not None:
        nodes = nodes.in_session(limits.session_id)
    phrases = _phrases(asked.text)
    for phrase in phrases:
        nodes = nodes.filter(content__iregex=phrase.pattern)
    # Without words near them in meaning: only what was looked for is marked.
    exactly = replace(asked, terms=tuple(one.term for one in terms))
    return [
        _shown(node, exactly, phrases)
        for node in nodes.order_by("-occurred_at", "-turn_index", "-id")[:limit]
    ]


def _holding_all(owner: AbstractBaseUser, terms: "list[_Held]") -> set[UUID]:
    """The nodes that hold every word, whoever said it in them; of very many those indexed last."""
    ways = [
        lexical.Way(number, place, 1.0, held.chunks)
        for place, held in enumerate(terms)
        for number in held.keys
    ]
    standing = lexical.postings(owner.pk, ways)
    term = np.array([way.term for way in ways])[standing.way]
    utterances: list[set[int]] = [
        set(standing.utterance[term == place].tolist()) for place in range(len(terms))
    ]
    rarest = min(utterances, key=len)
    newest = sorted(rarest)[-MOST_LOOKED_AT:]
    of_nodes = Utterance.objects.filter(owner_id=owner.pk, pk__in=newest).values("node")
    spoken = list(Utterance.objects.filter(owner_id=owner.pk, node__in=of_nodes).values_list("pk", "node_id"))
    nodes = {node for _, node in spoken}
    for some in utterances:
        nodes &= {node for pk, node in spoken if pk in some}
    return nodes


@dataclass(frozen=True)
class _Held:
    """A word of the query as the owner's memory holds it: the stems that stand for it, and their keys."""

    term: Term
    keys: list[int]
    chunks: int


def _held(owner: AbstractBaseUser, asked: Question) -> list[_Held] | None:
    """Each of the query's words; None where one of them is nowhere."""
    language = text.language_of(asked.text)
    stems = {term.word: text.stems(term.word, language) for term in asked.terms}
    keys = [key(owner.pk, stem) for some in stems.values() for stem in some]
    counted = lexical.frequencies(owner.pk, keys)
    held = []
    for word, some in stems.items():
        whole = {stem: key(owner.pk, stem) for stem in some if key(owner.pk, stem) in counted}
        count = sum(counted[one] for one in whole.values())
        if not whole and (len(word) > 1 or not word.isascii()):
            found = lexical.part_words(owner.pk, word[: text.LONGEST_TOKEN])
            whole = {stem: number for stem, number, _ in found}
            count = sum(chunks for _, _, chunks in found)
        if not whole:
            return None
        held.append(_Held(Term(word, tuple((stem, 1.0) for stem in whole)), list(whole.values()), count))
    return held


def _phrases(query: str) -> list[re.Pattern[str]]:
    """What stands in quotes, to be found as it stands, whatever its case and line breaks. Read by PostgreSQL too."""
    quoted = [phrase.split() for phrase in _PHRASE.findall(query)]
    return [
        re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE) for words in quoted if words
    ]


def _shown(node: MemoryNode, asked: Question, phrases: Sequence[re.Pattern[str]]) -> Found:
    """The node by that of its sides, and that part of it, which holds most of what was looked for."""
    best: tuple[int, Found] | None = None
    for spoken in utterances_of(
        node_type=node.node_type, content=node.content, payload=node.payload, turn_index=node.turn_index
    ):
        snippet, marks = _phrase_in(spoken.text, phrases) or cut(spoken.text, asked)
        worth = len(marks) + sum(len(phrases) + 1 for one in phrases if one.search(spoken.text))
        if best is None or worth > best[0]:
            best = (worth, Found(node, spoken.role, spoken.speaker, snippet, marks, sure=True))
    return best[1] if best else Found(node, "note", "", node.content[: text.CHUNK], (), sure=True)


def _phrase_in(whole: str, phrases: Sequence[re.Pattern[str]]) -> tuple[str, Marks] | None:
    for phrase in phrases:
        for chunk in text.pack(text.clean(whole), text.CHUNK):
            spans = tuple(match.span() for match in phrase.finditer(chunk))
            if spans:
                return chunk, spans
    return None


def _with_surroundings(owner: AbstractBaseUser, found: Sequence[Found]) -> list[Found]:
    """Each with what was said just before and after it in its session."""
    threads = [one.node for one in found if one.node.node_type == MemoryNode.NodeType.CONVERSATION]
    places = [(node.session_id, node.turn_index) for node in threads if node.turn_index is not None]
    beside = Q(pk__in=[])
    for session_id, index in places:
        beside |= Q(session_id=session_id, turn_index__in=[index - 1, index + 1])
    thread = {
        (node.session_id, node.turn_index): node
        for node in MemoryNode.objects.for_owner(owner).conversations().filter(beside)
    }
    return [_placed(one, thread) for one in found]


def _placed(one: Found, thread: dict[tuple[UUID | None, int | None], MemoryNode]) -> Found:
    node = one.node
    if node.node_type != MemoryNode.NodeType.CONVERSATION or node.turn_index is None:
        return one
    earlier = _sides(thread.get((node.session_id, node.turn_index - 1)))
    later = _sides(thread.get((node.session_id, node.turn_index + 1)))
    own = _sides(node)
    if one.role == ASSISTANT:
        before, after = own[:1] if len(own) > 1 else earlier[-1:], later[:1]
    else:
        before, after = earlier[-1:], own[1:2] or later[:1]
    return replace(one, before=_short("".join(before)), after=_short("".join(after)))


def _sides(node: MemoryNode | None) -> list[str]:
    if node is None:
        return []
    spoken = utterances_of(
        node_type=node.node_type, content=node.content, payload=node.payload, turn_index=node.turn_index
    )
    return [one.text for one in spoken]


def _short(whole: str) -> str:
    flat = " ".join(whole.split())
    return flat if len(flat) <= MOST_AROUND else flat[:MOST_AROUND].rsplit(" ", 1)[0] + " …"
