"""Nodes and edges on their way into one person's engram: what stands there already, and which of the two is newer."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection
from django.db.models import Q

from memory.columns import TransactionId
from memory.engram.wire import WireEdge, WireNode
from memory.models import MemoryEdge, MemoryNode, Tombstone
from memory.recall_models import OwnerIndex, Utterance

AT_ONCE = 500
# What a node or an edge that comes in brings beside its id and its ends.
_NODE_VALUES = tuple(one.name for one in fields(WireNode) if one.name != "id")
_EDGE_VALUES = tuple(one.name for one in fields(WireEdge) if one.name not in ("id", "source", "target"))


@dataclass
class Taken:
    """What became of what came in. `kept` had a change of ours that waits to be sent; `refused` was somebody else's."""

    nodes: int = 0
    edges: int = 0
    deleted: int = 0
    kept: int = 0
    refused: int = 0

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(
            self.nodes + other.nodes,
            self.edges + other.edges,
            self.deleted + other.deleted,
            self.kept + other.kept,
            self.refused + other.refused,
        )

    @property
    def changed(self) -> int:
        return self.nodes + self.edges + self.deleted


def _write(model: type[MemoryNode] | type[MemoryEdge], rows: Iterable[MemoryNode | MemoryEdge]) -> None:
    """Insert or overwrite rows of a table in one statement, whole.

    They come as one JSON array, each column by its own type: an ORM insert takes many times as long.
    """
    columns_of = [one for one in model._meta.concrete_fields if not isinstance(one, TransactionId)]
    values = [{one.column: getattr(row, one.attname) for one in columns_of} for row in rows]
    if not values:
        return
    columns = [str(one.column) for one in columns_of]
    names = ", ".join(columns)
    typed = ", ".join(f"{one.column} {one.db_type(connection)}" for one in columns_of)
    anew = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in ("id", "owner_id"))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({names}) SELECT {names} FROM json_to_recordset(%s::json)"
            f" AS row ({typed}) ON CONFLICT (id) DO UPDATE SET {anew}",
            [json.dumps(values, ensure_ascii=False, default=str)],
        )


@dataclass
class Batch:
    """Nodes and edges on their way into one person's engram, inside the caller's transaction."""

    owner: AbstractBaseUser
    revives: bool = False
    taken: Taken = field(default_factory=Taken)
    written: list[MemoryNode] = field(default_factory=list)
    written_edges: list[MemoryEdge] = field(default_factory=list)
    missing: set[UUID] = field(default_factory=set)

    def take_nodes(self, incoming: Sequence[WireNode]) -> None:
        for start in range(0, len(incoming), AT_ONCE):
            self._take_some(incoming[start : start + AT_ONCE])

    def _take_some(self, incoming: Sequence[WireNode]) -> None:
        places = Places(self.owner, incoming)
        written: dict[UUID, MemoryNode] = {}
        changed: set[UUID] = set()
        revived: set[UUID] = set()
        for one in incoming:
            gone = places.gone.get(one.id)
            if gone is not None and not self.revives and one.version <= gone:
                continue
            standing = places.find(one)
            if standing is None:
                node = MemoryNode(pk=one.id, owner_id=self.owner.pk)
            elif standing.owner_id != self.owner.pk:
                self.taken.refused += 1
                continue
            elif _is_newer(one, standing):
                node = standing
                places.lift(node)
                changed.add(node.pk)
            else:
                continue
            _overwrite(node, one, above=gone or 0)
            places.put(node)
            written[node.pk] = node
            if gone is not None:
                revived.add(one.id)
        Tombstone.objects.filter(owner_id=self.owner.pk, node_id__in=revived).delete()
        _write(MemoryNode, written.values())
        # What recall knew of the text before must not answer for the new one.
        OwnerIndex.hold(self.owner.pk)
        Utterance.objects.filter(node__in=changed).delete()
        self.taken.nodes += len(written)
        self.written += written.values()

    def take_edges(self, incoming: Sequence[WireEdge]) -> None:
        for start in range(0, len(incoming), AT_ONCE):
            self._take_some_edges(incoming[start : start + AT_ONCE])

    def _take_some_edges(self, incoming: Sequence[WireEdge]) -> None:
        ends = {pk for edge in incoming for pk in (edge.source, edge.target)}
        here = set(MemoryNode.objects.owned_by(self.owner).filter(pk__in=ends).values_list("pk", flat=True))
        self.missing |= ends - here
        by_id = MemoryEdge.objects.in_bulk([edge.id for edge in incoming])
        alike = MemoryEdge.objects.owned_by(self.owner).filter(source__in=ends & here)
        by_place = {(edge.source_id, edge.target_id, edge.kind): edge for edge in alike}
        written: dict[UUID, MemoryEdge] = {}
        for one in incoming:
            place = (one.source, one.target, one.kind)
            edge = by_place.get(place) or by_id.get(one.id)
            if edge is not None and edge.owner_id != self.owner.pk:
                self.taken.refused += 1
                continue
            if not {one.source, one.target} <= here:
                continue
            if edge is None:
                edge = MemoryEdge(pk=one.id, owner_id=self.owner.pk)
            elif not edge.derived and (one.version, one.updated_at) <= (edge.version, edge.updated_at):
                continue
            edge.derived = False
            edge.source_id, edge.target_id = one.source, one.target
            for name in _EDGE_VALUES:
                setattr(edge, name, getattr(one, name))
            written[edge.pk] = by_place[place] = edge
        _write(MemoryEdge, written.values())
        self.taken.edges += len(written)
        self.written_edges += written.values()


class Places:
    """What stands here already: by id, by turn, and the one history. Locked until the transaction ends."""

    def __init__(self, owner: AbstractBaseUser, incoming: Sequence[WireNode]) -> None:
        self.owner = owner
        self.by_id: dict[UUID, MemoryNode] = {}
        self.by_turn: dict[tuple[UUID, int], MemoryNode] = {}
        self.history: MemoryNode | None = None
        ids = [node.id for node in incoming]
        self._load(Q(pk__in=ids))
        # Only of turns that are not found at their node's id: sessions times indices is many more than pairs.
        apart = {turn for node in incoming if (turn := _turn(node)) and turn not in self.by_turn}
        sessions, indices = {session for session, _ in apart}, {index for _, index in apart}
        if apart:
            same = Q(session_id__in=sessions, turn_index__in=indices)
            self._load(Q(owner_id=owner.pk, node_type=MemoryNode.NodeType.CONVERSATION) & same)
        if any(node.node_type == MemoryNode.NodeType.HISTORY for node in incoming):
            self._load(Q(owner_id=owner.pk, node_type=MemoryNode.NodeType.HISTORY))
        tombstones = Tombstone.objects.filter(owner_id=owner.pk, node_id__in=ids)
        self.gone: dict[UUID, int] = dict(tombstones.values_list("node_id", "version"))

    def _load(self, wanted: Q) -> None:
        for node in MemoryNode.objects.filter(wanted).order_by("pk").select_for_update():
            self.put(self.by_id.get(node.pk, node))

    def find(self, one: WireNode) -> MemoryNode | None:
        """What the node is here: the node of the same turn, the one history that duplicates fold into, or itself."""
        turn = _turn(one)
        folded = self.by_turn.get(turn) if turn else None
        if one.node_type == MemoryNode.NodeType.HISTORY:
            folded = self.history
        return folded or self.by_id.get(one.id)

    def put(self, node: MemoryNode) -> None:
        self.by_id[node.pk] = node
        if node.owner_id != self.owner.pk:
            return
        turn = _turn(node)
        if turn is not None:
            self.by_turn[turn] = node
        elif node.node_type == MemoryNode.NodeType.HISTORY:
            self.history = node

    def lift(self, node: MemoryNode) -> None:
        """Take a node that is about to change from its place."""
        turn = _turn(node)
        if turn is not None:
            self.by_turn.pop(turn, None)
        elif node is self.history:
            self.history = None


def _turn(node: WireNode | MemoryNode) -> tuple[UUID, int] | None:
    """The turn that a node is the only Conversation of."""
    if node.node_type != MemoryNode.NodeType.CONVERSATION:
        return None
    return (node.session_id, node.turn_index) if node.session_id and node.turn_index is not None else None


def _is_newer(one: WireNode, standing: MemoryNode) -> bool:
    if one.id != standing.pk and one.node_type == MemoryNode.NodeType.HISTORY:
        # Another history has counted its own versions.
        return (one.occurred_at, one.updated_at) > (standing.occurred_at, standing.updated_at)
    return (one.version, one.updated_at) > (standing.version, standing.updated_at)


def _overwrite(node: MemoryNode, one: WireNode, *, above: int) -> None:
    version = max(one.version, above + 1, node.version if one.id != node.pk else 1)
    for name in _NODE_VALUES:
        setattr(node, name, getattr(one, name))
    node.version = version
    node.indexed_version = node.connected_version = 0
    is_bell = node.node_type == MemoryNode.NodeType.BELL_EVENT
    node.hold = MemoryNode.Hold.DANGER if is_bell else MemoryNode.Hold.UNSCREENED
