"""Searching for a person: conversations by their titles, and what memory finds, with where each stands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q
from django.urls import reverse

from conversations.models import Session, Turn
from memory.models import MemoryEdge, MemoryNode
from memory.search import By, Found, Limits, search

MOST_SESSIONS = 20
MOST_TITLE_WORDS = 8
MOST_ALIKE = 5


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found, the title of the conversation it stands in, and the address that opens there."""

    found: Found
    title: str
    href: str


@dataclass(frozen=True, slots=True)
class Searched:
    """Conversations found by title, hits in memory (the sure ones, or else only the nearest), and a note on both."""

    sessions: list[Session]
    hits: list[Hit]
    note: str

    @property
    def sure(self) -> bool:
        return any(hit.found.sure for hit in self.hits)


def find(
    owner: AbstractBaseUser, query: str, *, by: By = By.BOTH, limits: Limits | None = None, limit: int = 20
) -> Searched:
    """What a person finds for a query: titles that hold its words, and at most `limit` (1–100) hits."""
    results = search(owner, query, by=by, limits=limits, limit=limit)
    # A kind or a session narrows the search to what was said there.
    whole = limits is None or not (limits.node_types or limits.session_id)
    named = list(titled(owner, query, limits)) if by != By.MEANING and whole else []
    titles = _titles(owner, [found.node for found in results.found])
    hits = [Hit(found, *_place(found.node, titles)) for found in results.found]
    return Searched(named, hits, results.note)


def titled(owner: AbstractBaseUser, query: str, limits: Limits | None = None) -> "list[Session]":
    """Conversations whose title holds every word of the query, newest first."""
    words = query.replace("\x00", " ").encode("utf-8", "ignore").decode().replace('"', " ").split()
    if not words:
        return []
    named = Q()
    for word in words[:MOST_TITLE_WORDS]:
        named &= Q(title__icontains=word[:200])
    sessions = Session.objects.for_owner(owner).active().filter(named)
    if limits is not None and limits.since is not None:
        sessions = sessions.filter(last_turn_at__gte=limits.since)
    if limits is not None and limits.until is not None:
        sessions = sessions.filter(created_at__lt=limits.until)
    return list(sessions.newest_first()[:MOST_SESSIONS])


@dataclass(frozen=True, slots=True)
class Placed:
    """A remembered thing, the title of the conversation it was said in, and the address that opens there."""

    node: MemoryNode
    title: str
    href: str


def with_places(owner: AbstractBaseUser, nodes: Sequence[MemoryNode]) -> list[Placed]:
    """Where each was said; without an address what was said in no conversation that is still there."""
    titles = _titles(owner, nodes)
    return [Placed(node, *_place(node, titles)) for node in nodes]


@dataclass(frozen=True, slots=True)
class Connected:
    """What a turn is connected with: turns on the same topic, the likest first; what it names; what was kept of it."""

    alike: list[Placed]
    names: list[str]
    facts: list[Placed]


def connected_with(turn: Turn) -> Connected:
    """Nothing for a turn that is not remembered, or not connected yet."""
    owner = turn.owner
    of_turn = MemoryNode.objects.for_owner(owner).filter(
        session_id=turn.session_id, turn_index=turn.turn_index
    )
    node = of_turn.conversations().first()
    if node is None:
        return Connected([], [], [])
    shown = MemoryNode.objects.for_owner(owner).recallable()
    topic = MemoryEdge.objects.filter(kind=MemoryEdge.Kind.SAME_TOPIC).order_by("-weight", "id")
    earlier = topic.filter(source=node).values_list("target", flat=True)[:MOST_ALIKE]
    later = topic.filter(target=node).values_list("source", flat=True)[:MOST_ALIKE]
    ids = list(dict.fromkeys([*earlier, *later]))
    alike = shown.in_bulk(ids)
    names = (
        MemoryNode.objects.for_owner(owner)
        .of_type(MemoryNode.NodeType.ENTITY)
        .filter(edges_in__source=node, edges_in__kind=MemoryEdge.Kind.MENTIONS)
    )
    return Connected(
        alike=with_places(owner, [alike[pk] for pk in ids if pk in alike]),
        names=sorted(names.values_list("label", flat=True), key=str.lower),
        facts=with_places(owner, list(of_turn.knowledge().newest_first())),
    )


def _titles(owner: AbstractBaseUser, nodes: Iterable[MemoryNode]) -> dict[UUID, str]:
    sessions = Session.objects.for_owner(owner).filter(pk__in={node.session_id for node in nodes})
    return dict(sessions.values_list("pk", "title"))


def _place(node: MemoryNode, titles: dict[UUID, str]) -> tuple[str, str]:
    if node.session_id is None or node.session_id not in titles:
        if node.node_type == MemoryNode.NodeType.KNOWLEDGE:
            return "What you asked me to keep", f"{reverse('kept')}#kept-{node.pk}"
        return "An earlier talk" if node.node_type == MemoryNode.NodeType.CONVERSATION else node.label, ""
    href = reverse("session", args=[node.session_id])
    if node.turn_index is not None:
        href += f"?at={node.turn_index}#turn-{node.turn_index}"
    return titles[node.session_id] or "Untitled", href
