"""Services that keep themes as nodes of memory: matched with the ones there were, renamed, merged, hidden, mended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

import memory.services
from conversations.themes.material import Said, said_by
from conversations.themes.models import ThemeNote
from conversations.themes.moves import came_to_rest
from conversations.themes.naming import Described, clean_name, describe
from memory.models import MemoryEdge, MemoryNode
from memory.querysets import MemoryNodeQuerySet

# A theme found again is the one that shares this much of its turns (intersection over union).
SAME = 0.25
MOSTLY = 0.5
NAMELESS = "Something without a name"


@dataclass(frozen=True, slots=True)
class Found:
    """A theme as it was found: its turns, in order of time, and what is said of them. `made_by` names the model."""

    turns: tuple[Said, ...]
    name: str
    summary: str = ""
    made_by: str = ""
    rested: bool = False
    quotes: tuple[tuple[UUID, str], ...] = ()

    @property
    def ids(self) -> set[UUID]:
        return {said.node_id for said in self.turns}


@dataclass
class _Standing:
    """A theme there is already."""

    node: MemoryNode
    ids: set[UUID]
    found: list[Found] = field(default_factory=list)

    @property
    def chosen(self) -> dict[str, Any]:
        return dict(self.node.payload.get("chosen", {}))


def extracted(groups: Sequence[Sequence[Said]]) -> list[Found]:
    """Each group of turns as a theme, described without a model: distinctive terms, typical quotes."""
    turns = [tuple(sorted(group, key=lambda said: (said.at, said.node_id))) for group in groups]
    described = describe([[(said.q, said.a) for said in group] for group in turns])
    return [_extracted(group, one) for group, one in zip(turns, described, strict=True)]


def _extracted(turns: tuple[Said, ...], described: Described) -> Found:
    quotes = tuple((turns[at].node_id, text) for at, text in described.quotes if not turns[at].heavy)
    return Found(
        turns=turns,
        name=described.name or NAMELESS,
        summary=" ".join(f"“{text}”" for _, text in quotes),
        rested=came_to_rest([said.q for said in turns]),
        quotes=quotes,
    )


def keep(*, owner: AbstractBaseUser, found: Sequence[Found]) -> None:
    """Make these the person's themes. One that was there before keeps its node, its name if the person gave it one,
    and whether it is hidden; what the person merged stays together; what was not found again is forgotten.
    """
    with transaction.atomic():
        standing = _standing(owner)
        new = _matched(standing, found)
        for theme in standing:
            if theme.found:
                _write(owner, theme.node, _united(theme.found), theme.chosen)
        for one in new:
            _write(owner, None, one, {})
        gone = [theme.node.pk for theme in standing if not theme.found]
        if gone:
            memory.services.delete_nodes(owner=owner, node_ids=gone)


def themes_of(owner: AbstractBaseUser) -> MemoryNodeQuerySet:
    """The person's theme nodes that were made here; what another engram calls a theme is left as it is."""
    nodes = MemoryNode.objects.for_owner(owner).of_type(MemoryNode.NodeType.THEME)
    return nodes.filter(payload__has_key="chosen")


def evidence(themes: Iterable[MemoryNode]) -> dict[UUID, set[UUID]]:
    """The turns' nodes that each theme stands on."""
    held: dict[UUID, set[UUID]] = {theme.pk: set() for theme in themes}
    edges = MemoryEdge.objects.filter(kind=MemoryEdge.Kind.SUMMARISES, source__in=held)
    for source, target in edges.values_list("source", "target"):
        held[source].add(target)
    return held


def _standing(owner: AbstractBaseUser) -> list[_Standing]:
    nodes = list(themes_of(owner).order_by("created_at", "pk").select_for_update())
    held = evidence(nodes)
    return [_Standing(node, held[node.pk]) for node in nodes]


def _matched(standing: list[_Standing], found: Sequence[Found]) -> list[Found]:
    """Deal what was found to the themes there are; returns what is new."""
    left = []
    for one in found:
        chosen = next(
            (old for old in standing if old.chosen and len(one.ids & old.ids) > MOSTLY * len(one.ids)), None
        )
        if chosen is not None:
            chosen.found.append(one)
        else:
            left.append(one)
    pairs = sorted(
        (
            (-len(one.ids & old.ids) / len(one.ids | old.ids), at, place)
            for at, one in enumerate(left)
            for place, old in enumerate(standing)
            if not old.found
        ),
    )
    dealt: set[int] = set()
    for likeness, at, place in pairs:
        if -likeness >= SAME and at not in dealt and not standing[place].found:
            standing[place].found.append(left[at])
            dealt.add(at)
    return [one for at, one in enumerate(left) if at not in dealt]


def _united(found: Sequence[Found]) -> Found:
    """Several as one, called what the largest is called."""
    if len(found) == 1:
        return found[0]
    largest = max(found, key=lambda one: len(one.turns))
    turns = {said.node_id: said for one in found for said in one.turns}
    return Found(
        turns=tuple(sorted(turns.values(), key=lambda said: (said.at, said.node_id))),
        name=largest.name,
        summary=" ".join(one.summary for one in found if one.summary),
        made_by=largest.made_by,
        rested=all(one.rested for one in found),
        quotes=tuple(quote for one in found for quote in one.quotes),
    )


def _write(
    owner: AbstractBaseUser, node: MemoryNode | None, found: Found, chosen: dict[str, Any]
) -> MemoryNode:
    name = str(chosen.get("name") or found.name)
    payload = {
        "chosen": chosen,
        "name": found.name,
        "summary": found.summary,
        "made_by": found.made_by,
        "rested": found.rested,
        "quotes": [{"node": str(node_id), "text": text} for node_id, text in found.quotes],
    }
    return memory.services.write_summary(
        owner=owner,
        node=node,
        node_type=MemoryNode.NodeType.THEME,
        label=name,
        content=f"{name}\n{found.summary}".strip(),
        payload=payload,
        of=found.ids,
    )


# --- What the person does with a theme --------------------------------------------------------------------------


def rename(*, theme: MemoryNode, name: str) -> None:
    """Call it as the person wants; an empty name gives back the one it was found with."""
    name = clean_name(name)
    chosen = dict(theme.payload.get("chosen", {})) | {"name": name}
    if not name:
        del chosen["name"]
    shown = name or str(theme.payload.get("name", NAMELESS))
    summary = str(theme.payload.get("summary", ""))
    memory.services.overwrite_node(
        node=theme,
        label=shown,
        content=f"{shown}\n{summary}".strip(),
        payload=theme.payload | {"chosen": chosen},
    )


def hide(*, theme: MemoryNode, hidden: bool) -> None:
    """Keep it out of the page, of answers and of letters, or let it in again."""
    chosen = dict(theme.payload.get("chosen", {})) | {"hidden": True}
    if not hidden:
        del chosen["hidden"]
    memory.services.overwrite_node(node=theme, payload=theme.payload | {"chosen": chosen})


def merge(*, owner: AbstractBaseUser, theme: MemoryNode, into: MemoryNode) -> None:
    """Make two themes one, which later looks keep as one. Raises ValueError for a theme and itself."""
    if theme.pk == into.pk:
        raise ValueError("a theme cannot be merged into itself")
    with transaction.atomic():
        held = evidence([theme, into])
        told = said_by(owner, only=list(held[theme.pk] | held[into.pk]))
        chosen = dict(into.payload.get("chosen", {})) | {"merged": True}
        chosen.setdefault("name", into.label)
        _write(owner, into, extracted([told])[0], chosen)
        memory.services.delete_nodes(owner=owner, node_ids=[theme.pk])


# --- When turns are forgotten -----------------------------------------------------------------------------------


def mend(*, owner: AbstractBaseUser) -> int:
    """Describe anew, from the turns that are left, the themes that lost some. Returns how many.

    The caller may hold the transaction in which the turns went.
    """
    with transaction.atomic():
        emptied = list(themes_of(owner).filter(payload__stale=True).order_by("pk").select_for_update())
        held = evidence(emptied)
        told = {said.node_id: said for said in said_by(owner, only=list(set().union(*held.values())))}
        groups = [[told[node_id] for node_id in held[node.pk] if node_id in told] for node in emptied]
        for node, found in zip(emptied, extracted(groups), strict=True):
            _write(owner, node, found, dict(node.payload.get("chosen", {})))
    return len(emptied)


def forget_notes_of(*, node_ids: Sequence[UUID]) -> None:
    """Drop what models noted of turns that are gone."""
    if node_ids:
        ThemeNote.objects.filter(node_ids__overlap=list(node_ids)).delete()
