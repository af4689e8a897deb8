"""Writes of what comes from another engram, each in one transaction: what is newer wins, what is ours stays.

Used by the server for what it is sent, by sync and boot for what they fetched, and by the import of a snapshot.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID, uuid5

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction

from memory import services
from memory.engram.batch import AT_ONCE, Batch, Taken
from memory.engram.wire import WireEdge, WireNode
from memory.models import MemoryNode, MirrorJob, Tombstone
from memory.querysets import NEVER_GIVEN_OUT

MOST_STATE_EVENTS = 1000
LONGEST_STATE_EVENT = 10_000


class SomebodyElses(Exception):
    """The id is taken by a node or an edge of somebody else."""


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
        batch = Batch(owner)
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
            batch = Batch(owner, revives=True)
            batch.take_nodes([node for node in some_nodes if node.node_type not in NEVER_GIVEN_OUT])
            for node in batch.written:
                services.enqueue_node(node)
            taken += batch.taken
        for some_edges in edges:
            batch = Batch(owner)
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
        batch = Batch(owner)
        batch.take_nodes([node])
        if batch.taken.refused:
            raise SomebodyElses
    return bool(batch.taken.nodes)


def take_edge(*, owner: AbstractBaseUser, edge: WireEdge) -> bool:
    """Keep an edge that was sent to us. Raises SomebodyElses, and MemoryNode.DoesNotExist while a node is missing."""
    with transaction.atomic():
        _lock(owner)
        batch = Batch(owner)
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
        (id, owner_id, source_id, target_id, kind, weight, created_at, updated_at, version, derived)
    SELECT md5(id::text || before::text || 'follows')::uuid, owner_id, id, before, 'follows', 1.0, now(), now(), 1,
        false
    FROM thread
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
