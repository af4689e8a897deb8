"""Writes of what comes from another engram, each in one transaction: what is newer wins, what is ours stays.

Used by the server for what it is sent, by sync and boot for what they fetched, and by the import of a snapshot.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid5

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction
from django.db.models import Q

from memory import services
from memory.engram.wire import WireEdge, WireNode
from memory.models import MemoryEdge, MemoryNode, MirrorJob, Tombstone
from memory.querysets import NEVER_GIVEN_OUT
from memory.recall_models import Utterance

AT_ONCE = 500
MOST_STATE_EVENTS = 1000
LONGEST_STATE_EVENT = 10_000
_NODE_VALUES = (
    "node_type",
    "tier",
    "label",
    "content",
    "payload",
    "tags",
    "salience",
    "importance",
    "confidence",
    "session_id",
    "turn_index",
    "occurred_at",
    "created_at",
    "updated_at",
    "version",
)
_EDGE_VALUES = ("kind", "weight", "created_at", "updated_at", "version")


class SomebodyElses(Exception):
    """The id is taken by a node or an edge of somebody else."""


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


def take_fetched(
    *,
    owner: AbstractBaseUser,
    nodes: Sequence[WireNode],
    edges: Sequence[WireEdge] = (),
    deleted: Sequence[UUID] = (),
) -> Taken:
    """Apply what was fetched from the remote engram, whole and validated. It is not mirrored back.

    A change of ours that is not sent yet stays, and will be sent with a higher version than the one that came in.
    Bells and state events are not taken: they belong where they were written.
    """
    with transaction.atomic():
        _lock(owner)
        wanted = [node for node in nodes if node.node_type not in NEVER_GIVEN_OUT]
        unsent = _unsent([*(node.id for node in wanted), *deleted])
        batch = _Batch(owner)
        batch.take_nodes([node for node in wanted if node.id not in unsent])
        batch.taken.kept = _outdo(owner, [node for node in wanted if node.id in unsent])
        batch.take_edges(edges)
        batch.taken.deleted = services.delete_nodes(
            owner=owner, node_ids=[pk for pk in deleted if pk not in unsent], mirrored=False
        )
    return batch.taken


def restore(
    *, owner: AbstractBaseUser, nodes: Iterable[Sequence[WireNode]], edges: Iterable[Sequence[WireEdge]]
) -> Taken:
    """Bring a snapshot back, batch by batch in one transaction: also what was deleted since, with a higher version.

    Raises SomebodyElses where an id is taken; nothing is changed then.
    """
    with transaction.atomic():
        _lock(owner)
        taken = Taken()
        for some_nodes in nodes:
            batch = _Batch(owner, revives=True)
            batch.take_nodes([node for node in some_nodes if node.node_type not in NEVER_GIVEN_OUT])
            for node in batch.written:
                services.enqueue_node(node)
            taken += batch.taken
        for some_edges in edges:
            batch = _Batch(owner)
            batch.take_edges(some_edges)
            for edge in batch.written_edges:
                services.enqueue_edge(edge)
            taken += batch.taken
        if taken.refused:
            raise SomebodyElses
    return taken


def take_node(*, owner: AbstractBaseUser, node: WireNode) -> bool:
    """Keep a node that was sent to us, unless we have it as new or newer. Raises SomebodyElses."""
    with transaction.atomic():
        _lock(owner)
        batch = _Batch(owner)
        batch.take_nodes([node])
        if batch.taken.refused:
            raise SomebodyElses
    return bool(batch.taken.nodes)


def take_edge(*, owner: AbstractBaseUser, edge: WireEdge) -> bool:
    """Keep an edge that was sent to us. Raises SomebodyElses, and MemoryNode.DoesNotExist while a node is missing."""
    with transaction.atomic():
        _lock(owner)
        batch = _Batch(owner)
        batch.take_edges([edge])
        if batch.taken.refused:
            raise SomebodyElses
        if (
            batch.missing
            and not Tombstone.objects.filter(owner_id=owner.pk, node_id__in=batch.missing).exists()
        ):
            raise MemoryNode.DoesNotExist
    return bool(batch.taken.edges)


def delete_node(*, owner: AbstractBaseUser, node_id: UUID, version: int) -> None:
    """Forget a node at the word of another engram. A tombstone stands even where the node never came."""
    with transaction.atomic():
        _lock(owner)
        services.delete_nodes(owner=owner, node_ids=[node_id], mirrored=False)
        Tombstone.objects.get_or_create(owner_id=owner.pk, node_id=node_id, defaults={"version": version})


def take_state_event(*, owner: AbstractBaseUser, event_id: str, content: str) -> None:
    """Keep an event of another Neuron, once per id; the newest MOST_STATE_EVENTS stay."""
    kind = MemoryNode.NodeType.STATE_EVENT
    with transaction.atomic():
        _lock(owner)
        _, made = MemoryNode.objects.get_or_create(
            pk=uuid5(_STATE_EVENTS, f"{owner.pk}:{event_id}"),
            defaults={
                "owner_id": owner.pk,
                "node_type": kind,
                "tier": MemoryNode.Tier.WORKING,
                "label": "state event",
                "content": content[:LONGEST_STATE_EVENT],
                "payload": {"id": event_id},
                "tags": ["state"],
            },
        )
        if made:
            standing = MemoryNode.objects.owned_by(owner).of_type(kind).newest_first()
            old = standing.values_list("pk", flat=True)[MOST_STATE_EVENTS : MOST_STATE_EVENTS + AT_ONCE]
            MemoryNode.objects.filter(pk__in=list(old)).delete()


_STATE_EVENTS = UUID("5f3b1c52-6d0f-4f0e-9a55-0d9f3a3d5c11")


def connect_threads(*, owner: AbstractBaseUser, session_ids: Iterable[UUID]) -> int:
    """Give each turn of these sessions that follows on nothing the edge to the turn before it. Returns how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        _lock(owner)
        cursor.execute(_CONNECT, [owner.pk, list(session_ids)])
        return int(cursor.rowcount)


_CONNECT = """
    WITH thread AS (
        SELECT id, owner_id, lag(id) OVER (PARTITION BY session_id ORDER BY turn_index) AS before
        FROM memory_memorynode
        WHERE owner_id = %s AND session_id = ANY(%s) AND node_type = 'Conversation' AND turn_index IS NOT NULL
    )
    INSERT INTO memory_memoryedge
        (id, owner_id, source_id, target_id, kind, weight, created_at, updated_at, version)
    SELECT gen_random_uuid(), owner_id, id, before, 'follows', 1.0, now(), now(), 1 FROM thread
    WHERE before IS NOT NULL
        AND NOT EXISTS (SELECT FROM memory_memoryedge WHERE source_id = thread.id AND kind = 'follows')
    ON CONFLICT DO NOTHING
"""


def _lock(owner: AbstractBaseUser) -> None:
    """One at a time takes in for one person, until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_TAKING, owner.pk])


_TAKING = 0x6E65  # any number that no other lock uses


def _unsent(ids: Sequence[UUID]) -> set[UUID]:
    """Those of these nodes with a change or a deletion of ours that the remote has not heard of."""
    jobs = MirrorJob.objects.filter(subject_id__in=ids).exclude(state=MirrorJob.State.SENT)
    return set(jobs.exclude(operation=MirrorJob.Operation.PUT_EDGE).values_list("subject_id", flat=True))


def _outdo(owner: AbstractBaseUser, incoming: Sequence[WireNode]) -> int:
    """Raise our unsent versions above those that came in, or the remote would refuse them as old."""
    versions = {node.id: node.version for node in incoming}
    nodes = MemoryNode.objects.owned_by(owner).filter(pk__in=versions).order_by("pk").select_for_update()
    for node in nodes:
        if node.version <= versions[node.pk]:
            services.overwrite_node(node=node, above=versions[node.pk])
    return len(incoming)


@dataclass
class _Batch:
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
        places = _Places(self.owner, incoming)
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
        MemoryNode.objects.bulk_create(
            written.values(),
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=[*_NODE_VALUES, "hold", "indexed_version"],
        )
        # What recall knew of the text before must not answer for the new one.
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
            elif (one.version, one.updated_at) <= (edge.version, edge.updated_at):
                continue
            edge.source_id, edge.target_id = one.source, one.target
            for name in _EDGE_VALUES:
                setattr(edge, name, getattr(one, name))
            written[edge.pk] = by_place[place] = edge
        MemoryEdge.objects.bulk_create(
            written.values(),
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["source_id", "target_id", *_EDGE_VALUES],
        )
        self.taken.edges += len(written)
        self.written_edges += written.values()


class _Places:
    """What stands here already: by id, by turn, and the one history. Locked until the transaction ends."""

    def __init__(self, owner: AbstractBaseUser, incoming: Sequence[WireNode]) -> None:
        self.owner = owner
        self.by_id: dict[UUID, MemoryNode] = {}
        self.by_turn: dict[tuple[UUID, int], MemoryNode] = {}
        self.history: MemoryNode | None = None
        ids = [node.id for node in incoming]
        wanted = Q(pk__in=ids)
        turns = [one for one in (_turn(node) for node in incoming) if one is not None]
        if turns:
            sessions, indices = zip(*turns, strict=True)
            same = Q(session_id__in=set(sessions), turn_index__in=set(indices))
            wanted |= Q(owner_id=owner.pk, node_type=MemoryNode.NodeType.CONVERSATION) & same
        if any(node.node_type == MemoryNode.NodeType.HISTORY for node in incoming):
            wanted |= Q(owner_id=owner.pk, node_type=MemoryNode.NodeType.HISTORY)
        for node in MemoryNode.objects.filter(wanted).order_by("pk").select_for_update():
            self.put(node)
        tombstones = Tombstone.objects.filter(owner_id=owner.pk, node_id__in=ids)
        self.gone: dict[UUID, int] = dict(tombstones.values_list("node_id", "version"))

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
    node.indexed_version = 0
    is_bell = node.node_type == MemoryNode.NodeType.BELL_EVENT
    node.hold = MemoryNode.Hold.DANGER if is_bell else MemoryNode.Hold.UNSCREENED
