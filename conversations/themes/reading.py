"""Themes as they are shown: how much of a window each takes, when it was spoken of, and what became of it."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Max
from django.urls import reverse

from conversations.models import Session, Turn
from conversations.themes.kept import NAMELESS, themes_of
from conversations.themes.moves import Move, Window, move_of
from memory.models import MemoryEdge, MemoryNode

# A theme of which so much was said under soft bells is told of gently, without its name, outside of the pages.
HEAVY_SHARE = 1 / 3

WEEK, MONTH, SEASON = timedelta(days=7), timedelta(days=30), timedelta(days=91)
LENGTHS = {"week": WEEK, "month": MONTH, "season": SEASON}
IN_WORDS = {
    Move.NEW: "new",
    Move.GROWING: "growing",
    Move.STEADY: "steady",
    Move.FADING: "fading",
    Move.RETURNING: "returning",
    Move.RESOLVED: "come to rest",
    Move.QUIET: "quiet now",
}


@dataclass(frozen=True, slots=True)
class Spot:
    """A turn that a theme stands on."""

    node_id: UUID
    at: datetime
    session_id: UUID | None
    turn_index: int | None
    heavy: bool

    @property
    def link(self) -> str:
        """Where it stands on the pages, "" for what belongs to no session."""
        if self.session_id is None:
            return ""
        return f"/sessions/{self.session_id}/?at={self.turn_index}#turn-{self.turn_index}"


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of the person, and where it was said."""

    text: str
    spot: Spot


@dataclass(frozen=True, slots=True)
class Theme:
    """A theme in a window. `spots` are all its turns, from the oldest; `share` is of the window's turns, 0 to 1."""

    id: UUID
    name: str
    summary: str
    made_by: str
    hidden: bool
    spots: tuple[Spot, ...]
    within: tuple[Spot, ...]
    share: float
    move: Move
    quotes: tuple[Quote, ...]

    @property
    def link(self) -> str:
        return reverse("theme", args=[self.id])

    @property
    def turns(self) -> int:
        return len(self.within)

    @property
    def first(self) -> datetime:
        return self.spots[0].at

    @property
    def last(self) -> datetime:
        return self.spots[-1].at

    @property
    def became(self) -> str:
        """The move in a word or three."""
        return IN_WORDS[self.move]

    @property
    def is_heavy(self) -> bool:
        told = self.within or self.spots
        return sum(spot.heavy for spot in told) >= HEAVY_SHARE * len(told)

    @property
    def latest(self) -> Spot:
        return (self.within or self.spots)[-1]


@dataclass(frozen=True, slots=True)
class Overview:
    """All themes of a person in a window, the largest first, and how many turns the window has in all."""

    themes: tuple[Theme, ...]
    window: Window
    turns: int

    @property
    def shown(self) -> tuple[Theme, ...]:
        """The themes that the window speaks of and that are not hidden."""
        return tuple(theme for theme in self.themes if theme.turns and not theme.hidden)


def window_of(owner: AbstractBaseUser, name: str, *, now: datetime) -> Window:
    """The week, month or season up to now; for "all", everything, its moves being those of the last month.

    A silence at the end is not counted: the window ends with the last turn that a theme stands on.
    """
    edges = MemoryEdge.objects.filter(
        owner_id=owner.pk, kind=MemoryEdge.Kind.SUMMARISES, source__in=themes_of(owner)
    )
    newest = edges.aggregate(newest=Max("target__occurred_at"))["newest"]
    end = min(now, newest) if newest else now
    return Window.ending(end + timedelta(microseconds=1), LENGTHS.get(name, MONTH))


def overview(owner: AbstractBaseUser, window: Window, *, everything: bool = False) -> Overview:
    """The person's themes in the window; with `everything`, all turns count and the window only tells the moves."""
    nodes = list(themes_of(owner).order_by("created_at", "pk"))
    spots = spots_of(owner, nodes)
    spoken = sorted(
        MemoryNode.objects.for_owner(owner).conversations().values_list("occurred_at", flat=True).iterator()
    )
    counted = (
        len(spoken) if everything else bisect_left(spoken, window.end) - bisect_left(spoken, window.start)
    )
    themes = [
        _theme(node, spots[node.pk], spoken, window, counted, everything) for node in nodes if spots[node.pk]
    ]
    themes.sort(key=lambda theme: (-theme.turns, -len(theme.spots), theme.id))
    return Overview(tuple(themes), window, counted)


def spots_of(owner: AbstractBaseUser, nodes: Sequence[MemoryNode]) -> dict[UUID, list[Spot]]:
    """The turns of each theme, from the oldest."""
    heavy = set(
        Turn.objects.for_owner(owner)
        .filter(action=Turn.Action.SOFT_BELL)
        .values_list("session_id", "turn_index")
    )
    here = set(Session.objects.for_owner(owner).values_list("pk", flat=True))
    edges = MemoryEdge.objects.filter(
        owner_id=owner.pk, kind=MemoryEdge.Kind.SUMMARISES, source__in=nodes
    ).order_by("target__occurred_at", "target__turn_index", "target")
    rows = edges.values_list(
        "source", "target", "target__occurred_at", "target__session_id", "target__turn_index"
    )
    found: dict[UUID, list[Spot]] = {node.pk: [] for node in nodes}
    for source, target, at, session, index in rows.iterator(chunk_size=2000):
        # What came from another engram may name sessions that are not here.
        found[source].append(
            Spot(target, at, session if session in here else None, index, (session, index) in heavy)
        )
    return found


def _theme(
    node: MemoryNode,
    spots: list[Spot],
    spoken: Sequence[datetime],
    window: Window,
    counted: int,
    everything: bool,
) -> Theme:
    within = spots if everything else [spot for spot in spots if window.start <= spot.at < window.end]
    by_node = {str(spot.node_id): spot for spot in spots}
    payload = node.payload
    return Theme(
        id=node.pk,
        name=node.label or NAMELESS,
        summary=str(payload.get("summary", "")),
        made_by=str(payload.get("made_by", "")),
        hidden=bool(payload.get("chosen", {}).get("hidden")),
        spots=tuple(spots),
        within=tuple(within),
        share=len(within) / counted if counted else 0.0,
        move=move_of([spot.at for spot in spots], spoken, window, rested=bool(payload.get("rested"))),
        quotes=tuple(
            Quote(str(quote["text"]), by_node[quote["node"]])
            for quote in payload.get("quotes", [])
            if quote.get("node") in by_node and not by_node[quote["node"]].heavy
        ),
    )
