"""Reads of the protocol between engrams: what is given to whoever holds a person's token, in bounded pieces."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser

from memory.engram import wire
from memory.engram.cursor import EDGES, NODES, Cursor
from memory.models import MemoryEdge, MemoryNode, Tombstone
from memory.streaming import read_between

AT_ONCE = 500
# One page of a sync. The reader holds it whole, and gives up on an answer after ten seconds or 64 MiB.
PAGE_ROWS = 5000
PAGE_CHARACTERS = 8_000_000
T = TypeVar("T")


async def write_array(
    ids: Callable[[], list[UUID]], rows: Callable[[list[UUID]], list[str]]
) -> AsyncIterator[str]:
    """A JSON array in pieces: the ids first, then their rows, AT_ONCE at a time.

    No query and no connection is open between two pieces, so that a slow reader holds nothing up. What was
    deleted in between is left out. Asynchronous, because a synchronous generator is gathered whole.
    """
    chosen = await read_between(ids)
    yield "["
    separator = ""
    for start in range(0, len(chosen), AT_ONCE):
        written = await read_between(partial(rows, chosen[start : start + AT_ONCE]))
        if written:
            yield separator + ",\n".join(written)
            separator = ",\n"
    yield "]"


def newest_nodes(owner: AbstractBaseUser, limit: int) -> list[UUID]:
    """The ids of the newest nodes that are given out, newest first."""
    return list(_nodes(owner).newest_first().values_list("pk", flat=True)[:limit])


def recent_nodes(owner: AbstractBaseUser, node_type: str, limit: int, since: datetime | None) -> list[UUID]:
    """The ids of the newest nodes of one kind, newest first. Raises ValueError as `recent_by_type` does."""
    nodes = MemoryNode.objects.owned_by(owner).exclude(node_type=MemoryNode.NodeType.BELL_EVENT)
    return list(nodes.recent_by_type(node_type, limit, since).values_list("pk", flat=True))


def nodes_by_id(owner: AbstractBaseUser, ids: list[UUID]) -> list[str]:
    """The nodes as JSON, in the order of the ids."""
    found = MemoryNode.objects.owned_by(owner).in_bulk(ids)
    return [dumped(wire.write_node(found[pk])) for pk in ids if pk in found]


def edges_of(owner: AbstractBaseUser) -> list[UUID]:
    """The ids of all edges between nodes that are given out."""
    return list(MemoryEdge.objects.owned_by(owner).given_out().order_by("pk").values_list("pk", flat=True))


def edges_by_id(owner: AbstractBaseUser, ids: list[UUID]) -> list[str]:
    """The edges as JSON, in the order of the ids."""
    found = MemoryEdge.objects.owned_by(owner).in_bulk(ids)
    return [dumped(wire.write_edge(found[pk])) for pk in ids if pk in found]


def changes(owner: AbstractBaseUser, cursor: Cursor) -> str:
    """One page of what changed since the cursor, as the JSON object that answers a sync.

    Nodes by id, then edges by id, so that each edge comes after its nodes; deletions with the first page. Ids do not
    change, so a node that is changed while the round goes on keeps its place in it.
    """
    page = _Page(deleted=_deleted(owner, cursor))
    at = cursor
    if at.phase == NODES:
        last = page.fill(page.nodes, _changed(_nodes(owner), at), wire.write_node, at.after)
        if last is not None:
            return page.ending_at(Cursor(at.system, at.since, at.until, NODES, last))
        at = Cursor(at.system, at.since, at.until, EDGES)
    edges = _changed(MemoryEdge.objects.owned_by(owner).given_out(), at)
    last = page.fill(page.edges, edges, wire.write_edge, at.after)
    if last is not None:
        return page.ending_at(Cursor(at.system, at.since, at.until, EDGES, last))
    return page.ending_at(at.next_round())


@dataclass
class _Page:
    """A page while it is filled."""

    deleted: list[str]
    nodes: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    rows_left: int = PAGE_ROWS
    characters_left: int = PAGE_CHARACTERS

    def fill(
        self,
        into: list[str],
        rows: Any,
        write: Callable[[Any], dict[str, Any]],
        after: UUID | None,
    ) -> UUID | None:
        """Take rows above `after` while there is room. The last id taken where there are more, None at the end."""
        last = after or UUID(int=0)
        while True:
            batch = list(rows.filter(pk__gt=last).order_by("pk")[:AT_ONCE])
            for row in batch:
                if self.rows_left <= 0 or self.characters_left <= 0:
                    return last
                into.append(dumped(write(row)))
                self.rows_left -= 1
                self.characters_left -= len(into[-1])
                last = row.pk
            if len(batch) < AT_ONCE:
                return None

    def ending_at(self, cursor: Cursor) -> str:
        return (
            f'{{"nodes":[{",".join(self.nodes)}],"edges":[{",".join(self.edges)}],'
            f'"deleted":[{",".join(self.deleted)}],"cursor":{dumped(str(cursor))}}}'
        )


def _nodes(owner: AbstractBaseUser) -> Any:
    return MemoryNode.objects.owned_by(owner).given_out()


def _changed(rows: Any, at: Cursor) -> Any:
    return rows if at.since is None else rows.filter(changed_in__unseen_in=at.since)


def _deleted(owner: AbstractBaseUser, cursor: Cursor) -> list[str]:
    """What was deleted since; all that ever was for somebody without a cursor, who may have lost it."""
    if cursor.after is not None or cursor.phase != NODES:
        return []
    gone = _changed(Tombstone.objects.filter(owner_id=owner.pk), cursor)
    return [dumped(str(pk)) for pk in gone.order_by("pk").values_list("node_id", flat=True)]


def dumped(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
