"""Writes of the engram. Each is one short transaction, and tells the outbox in the same one."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Greatest
from django.utils import timezone

from memory.engram.background import hint_mirror
from memory.engram.owner import engram_owner_id
from memory.models import MemoryEdge, MemoryNode, MirrorJob, Tombstone
from memory.recall_models import OwnerIndex

HISTORY_TURNS = 20


def remember_turn(
    *,
    owner: AbstractBaseUser,
    session_id: UUID,
    turn_index: int,
    q: str,
    a: str,
    created_at: datetime,
    source: str,
    mirrored: bool = True,
) -> MemoryNode:
    """The Conversation node of a completed turn, connected to the turn before it.

    Written twice (a regenerated answer, a repeated import) it is overwritten with a higher version.
    The caller holds the transaction that completes the turn.
    """
    label = f"chat:{int(created_at.timestamp() * 1000)}"
    payload = {
        "q": q,
        "a": a,
        "created_at": created_at.isoformat(),
        "source": source,
        "label": label,
        "session_id": str(session_id),
        "turn_index": turn_index,
    }
    values: dict[str, Any] = {
        "label": label,
        "content": f"Q: {q}\nA: {a}",
        "payload": payload,
        "tags": ["Conversation", "chat", "timestamped"],
        "occurred_at": created_at,
    }
    with transaction.atomic(savepoint=False):
        until_here = MemoryNode.objects.owned_by(owner).conversations().in_session(session_id)
        newest = until_here.filter(turn_index__lte=turn_index).order_by("-turn_index")
        last = newest.values_list("pk", "turn_index").first()
        if last is not None and last[1] == turn_index:
            return overwrite_node(node=MemoryNode.objects.get(pk=last[0]), mirrored=mirrored, **values)
        node = MemoryNode.objects.create(
            owner_id=owner.pk,
            node_type=MemoryNode.NodeType.CONVERSATION,
            session_id=session_id,
            turn_index=turn_index,
            **values,
        )
        # Before its edge, which the remote takes only when both nodes are there.
        if mirrored:
            enqueue_node(node)
        if last is not None:
            # The node is new, so the edge is.
            edge = MemoryEdge.objects.create(
                owner_id=owner.pk, source=node, target_id=last[0], kind=MemoryEdge.Kind.FOLLOWS
            )
            if mirrored:
                enqueue_edge(edge)
    return node


def edge_id(source: UUID, target: UUID, kind: str) -> UUID:
    """The id of an edge made by Neuron: two engrams that make the same one agree on it."""
    return UUID(hashlib.md5(f"{source}{target}{kind}".encode(), usedforsecurity=False).hexdigest())


def connect(*, source: MemoryNode, target: MemoryNode, kind: str, weight: float = 1.0) -> MemoryEdge:
    """The edge of this kind between two nodes of one owner; there is never a second one."""
    if source.owner_id != target.owner_id:
        raise ValueError("an edge joins two nodes of the same owner")
    with transaction.atomic(savepoint=False):
        edge, made = MemoryEdge.objects.get_or_create(
            source=source,
            target=target,
            kind=kind,
            defaults={
                "id": edge_id(source.pk, target.pk, kind),
                "owner_id": source.owner_id,
                "weight": weight,
            },
        )
        if made:
            enqueue_edge(edge)
    return edge


def connect_derived(*, source: MemoryNode, targets: Mapping[tuple[UUID, str], float]) -> None:
    """Edges that are worked out here, to nodes of the same owner: the weight of each by its target and kind.

    They are neither mirrored nor given out. An edge that stands already keeps its weight.
    """
    edges = [
        MemoryEdge(
            id=edge_id(source.pk, target, kind),
            owner_id=source.owner_id,
            source=source,
            target_id=target,
            kind=kind,
            weight=weight,
            derived=True,
        )
        for (target, kind), weight in targets.items()
    ]
    MemoryEdge.objects.bulk_create(edges, ignore_conflicts=True)


def overwrite_node(*, node: MemoryNode, mirrored: bool = True, above: int = 0, **values: Any) -> MemoryNode:
    """Change a node in place, one version higher, and higher than `above`. What it says now was said here."""
    with transaction.atomic(savepoint=False):
        MemoryNode.objects.filter(pk=node.pk).update(
            **values,
            version=Greatest(F("version"), above) + 1,
            updated_at=timezone.now(),
            hold=MemoryNode.Hold.NONE,
        )
        node.refresh_from_db()
        if mirrored:
            enqueue_node(node)
    return node


# The person waits for the end of the transaction that this stands in: read and written in one statement.
_REWRITE_HISTORY = r"""
    UPDATE memory_memorynode history
    SET content = newest.content, payload = newest.payload, occurred_at = newest.occurred_at,
        version = history.version + 1, updated_at = %(now)s, hold = 0
    FROM (
        SELECT coalesce(string_agg(content, E'\n\n' ORDER BY occurred_at, id), '') AS content,
            jsonb_build_object('nodes', coalesce(jsonb_agg(id ORDER BY occurred_at DESC, id DESC), '[]')) AS payload,
            coalesce(max(occurred_at), %(now)s) AS occurred_at
        FROM (
            SELECT id, content, occurred_at FROM memory_memorynode
            WHERE owner_id = %(owner)s AND node_type = 'Conversation' AND hold = 0
            ORDER BY occurred_at DESC, id DESC LIMIT %(turns)s
        ) AS turn
    ) AS newest
    WHERE history.owner_id = %(owner)s AND history.node_type = 'History'
"""


def rewrite_history(*, owner: AbstractBaseUser) -> None:
    """Overwrite the rolling history of a person, `conv:history`, with their newest exchanges.

    It is one node, created at first use.
    """
    given = {"owner": owner.pk, "now": timezone.now(), "turns": HISTORY_TURNS}
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_REWRITE_HISTORY, given)
        if not cursor.rowcount:
            MemoryNode.objects.get_or_create(
                owner_id=owner.pk,
                node_type=MemoryNode.NodeType.HISTORY,
                defaults={
                    "label": "conv:history",
                    "tier": MemoryNode.Tier.WORKING,
                    "tags": ["Conversation", "history"],
                },
            )
            cursor.execute(_REWRITE_HISTORY, given)
        if settings.ENGRAM_URL:
            enqueue_node(MemoryNode.objects.owned_by(owner).of_type(MemoryNode.NodeType.HISTORY).get())


def delete_nodes(*, owner: AbstractBaseUser, node_ids: Iterable[UUID], mirrored: bool = True) -> int:
    """Forget nodes for good, with edges and everything derived. Returns how many.

    A tombstone is left of each, and the outbox hears of it.
    """
    with transaction.atomic():
        ids = list(node_ids)
        facts = MemoryEdge.objects.filter(kind=MemoryEdge.Kind.SUPPORTS, source__in=ids).values("target")
        held = MemoryNode.objects.owned_by(owner).filter(Q(pk__in=ids) | Q(pk__in=facts))
        found = list(held.order_by("pk").select_for_update())
        # Behind the nodes, as whoever indexes or connects takes it: what stands on these alone stays so until it goes.
        OwnerIndex.hold(owner.pk)
        nodes = [node for node in found if node.pk in set(ids)]
        nodes += standing_on(owner, [node.pk for node in nodes])
        now = timezone.now()
        Tombstone.objects.bulk_create(
            [
                Tombstone(owner_id=node.owner_id, node_id=node.pk, version=node.version, deleted_at=now)
                for node in nodes
            ],
            update_conflicts=True,
            unique_fields=["owner", "node_id"],
            update_fields=["version", "deleted_at"],
        )
        # What is still to be sent of them must not arrive after their deletion. What is being sent now keeps
        # its place in the lane, so that the deletion waits for it.
        MirrorJob.objects.waiting().filter(subject_id__in=[node.pk for node in nodes], claim=None).delete()
        for node in nodes if mirrored else []:
            _enqueue(
                owner_id=node.owner_id,
                operation=MirrorJob.Operation.DELETE_NODE,
                subject_id=node.pk,
                version=node.version,
                lane=node.session_id or node.pk,
            )
        touched = summaries_of([node.pk for node in nodes])
        MemoryNode.objects.filter(pk__in=[node.pk for node in nodes]).delete()
        _withdraw(owner, touched)
    return len(nodes)


def standing_on(owner: AbstractBaseUser, node_ids: list[UUID]) -> list[MemoryNode]:
    """Names that these mention, and facts that these support, and that nothing else does: they go with them."""
    kinds = [MemoryEdge.Kind.MENTIONS, MemoryEdge.Kind.SUPPORTS]
    edges = MemoryEdge.objects.filter(kind__in=kinds)
    by_others = edges.filter(target=OuterRef("pk")).exclude(source__in=node_ids)
    by_these = edges.filter(source__in=node_ids).exclude(target__in=node_ids)
    return list(
        MemoryNode.objects.owned_by(owner)
        .of_type(MemoryNode.NodeType.ENTITY, MemoryNode.NodeType.KNOWLEDGE)
        .filter(pk__in=by_these.values("target"))
        .filter(~Exists(by_others))
        .order_by("pk")
        .select_for_update()
    )


def summaries_of(node_ids: Iterable[UUID]) -> list[UUID]:
    """The nodes that summarise any of these."""
    edges = MemoryEdge.objects.filter(kind=MemoryEdge.Kind.SUMMARISES, target__in=list(node_ids))
    return list(edges.order_by("source").values_list("source", flat=True).distinct())


def _withdraw(owner: AbstractBaseUser, summary_ids: list[UUID]) -> None:
    """Take back what summaries say of nodes that are gone: one that stood on them alone goes too, any other is
    emptied, but for what the person chose, until it has been written again from what is left.
    """
    left = MemoryNode.objects.owned_by(owner).filter(pk__in=summary_ids)
    standing = MemoryEdge.objects.filter(kind=MemoryEdge.Kind.SUMMARISES, source__in=left)
    supported = set(standing.values_list("source", flat=True))
    for node in left.filter(pk__in=supported):
        chosen = node.payload.get("chosen", {})
        name = str(chosen.get("name", ""))
        overwrite_node(node=node, label=name, content=name, payload={"chosen": chosen, "stale": True})
    alone = [node.pk for node in left if node.pk not in supported]
    if alone:
        delete_nodes(owner=owner, node_ids=alone)


def write_summary(
    *,
    owner: AbstractBaseUser,
    node: MemoryNode | None,
    node_type: str,
    label: str,
    content: str,
    payload: dict[str, Any],
    of: Iterable[UUID],
) -> MemoryNode:
    """The node, new where None is given, that says `content` of the nodes `of`, and its edges to exactly those.

    What has not changed is not written again. Ids that are not this owner's, or gone, are left out.
    """
    with transaction.atomic():
        wanted = dict(
            MemoryNode.objects.owned_by(owner).filter(pk__in=list(of)).values_list("pk", "occurred_at")
        )
        says: dict[str, Any] = {
            "label": label[:200],
            "content": content,
            "payload": payload,
            "occurred_at": max(wanted.values(), default=timezone.now()),
        }
        if node is None:
            node = MemoryNode.objects.create(
                owner_id=owner.pk,
                node_type=node_type,
                tier=MemoryNode.Tier.SEMANTIC,
                tags=[node_type],
                **says,
            )
            enqueue_node(node)
        elif any(getattr(node, name) != value for name, value in says.items()):
            node = overwrite_node(node=node, **says)
        edges = MemoryEdge.objects.filter(source=node, kind=MemoryEdge.Kind.SUMMARISES)
        edges.exclude(target__in=wanted).delete()
        standing = set(edges.values_list("target", flat=True))
        made = MemoryEdge.objects.bulk_create(
            [
                MemoryEdge(
                    id=edge_id(node.pk, target, MemoryEdge.Kind.SUMMARISES),
                    owner_id=owner.pk,
                    source=node,
                    target_id=target,
                    kind=MemoryEdge.Kind.SUMMARISES,
                )
                for target in wanted
                if target not in standing
            ],
            batch_size=1000,
        )
        if settings.ENGRAM_URL:
            for edge in made:
                enqueue_edge(edge)
    return node


def delete_session_nodes(*, owner: AbstractBaseUser, session_id: UUID) -> int:
    """Forget every node of a session but its bells, which stewards keep for review."""
    ids = (
        MemoryNode.objects.owned_by(owner)
        .in_session(session_id)
        .exclude(node_type=MemoryNode.NodeType.BELL_EVENT)
        .values_list("pk", flat=True)
    )
    return delete_nodes(owner=owner, node_ids=list(ids))


def retry_dead_jobs(*, job_ids: Iterable[int]) -> int:
    """Make dead mirror jobs due again, their tries forgotten. Returns how many were dead."""
    return MirrorJob.objects.filter(pk__in=list(job_ids), state=MirrorJob.State.DEAD).update(
        state=MirrorJob.State.WAITING, tries=0, due_at=timezone.now(), last_error=""
    )


def enqueue_node(node: MemoryNode) -> None:
    """Put the node's present version into the outbox, inside the caller's transaction."""
    _enqueue(
        owner_id=node.owner_id,
        operation=MirrorJob.Operation.PUT_NODE,
        subject_id=node.pk,
        version=node.version,
        lane=node.session_id or node.pk,
    )


def enqueue_edge(edge: MemoryEdge) -> None:
    """Put the edge's present version into the outbox, behind its source, inside the caller's transaction."""
    _enqueue(
        owner_id=edge.owner_id,
        operation=MirrorJob.Operation.PUT_EDGE,
        subject_id=edge.id,
        version=edge.version,
        lane=edge.source.session_id or edge.source_id,
    )


def enqueue_bell(*, owner_id: int, bell_id: UUID) -> None:
    """Put a bell into the outbox, if the operator wants bells mirrored; its node is made when it is sent."""
    if settings.ENGRAM_MIRROR_BELLS:
        _enqueue(
            owner_id=owner_id,
            operation=MirrorJob.Operation.PUT_BELL,
            subject_id=bell_id,
            version=1,
            lane=bell_id,
        )


def _enqueue(*, owner_id: int, operation: str, subject_id: UUID, version: int, lane: UUID) -> None:
    # What is never sent would never be taken away again.
    if not settings.ENGRAM_URL or owner_id != engram_owner_id():
        return
    # One statement: whoever talks waits for the end of this transaction.
    job = MirrorJob(
        owner_id=owner_id,
        operation=operation,
        subject_id=subject_id,
        subject_version=version,
        lane=lane,
    )
    MirrorJob.objects.bulk_create([job], ignore_conflicts=True)
    transaction.on_commit(hint_mirror)
