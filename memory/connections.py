"""Services that connect a turn with what there was before: turns on the same topic, what it names, facts it supports.

A job per turn, found in rows (`MemoryNode.connected_version`); running twice is harmless. The edges are for looking and
walking; recall does not rank by them. They are derived, so another engram makes its own and they are not mirrored.
"""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from memory.mentions import names_in
from memory.models import MemoryEdge, MemoryNode
from memory.recall_models import OwnerIndex, UnitVector, Utterance
from memory.retrieval import dense
from memory.retrieval.filters import Filters
from memory.retrieval.utterances import ASSISTANT, utterances_of
from memory.services import connect, connect_derived

# Cosine of two messages that are called of one topic: chosen by reading the nearest pairs of one of LoCoMo's
# conversations, which below 0.6 share a tone rather than a topic. Of the 582 messages there half have a nearest
# one above 0.7.
SAME_TOPIC = 0.65
MOST_ALIKE = 3
NEAREST = 40
# A shorter message ("Thanks!") is like very many.
LEAST_LENGTH = 30


def connect_pending(*, limit: int = 200) -> int:
    """Connect up to `limit` turns that are due, the earliest first. Returns how many were done."""
    waits = Utterance.objects.filter(node=OuterRef("pk"), embedded_with="")
    due = (
        MemoryNode.objects.conversations()
        .filter(connected_version__lt=F("version"), indexed_version=F("version"), hold=0)
        .filter(~Exists(waits))
    )
    ids = list(due.order_by("created_at", "id").values_list("pk", flat=True)[:limit])
    for node_id in ids:
        connect_node(node_id=node_id)
    return len(ids)


def connect_node(*, node_id: UUID) -> None:
    """Make the edges of one turn as it stands, in place of those of an earlier version."""
    node = MemoryNode.objects.conversations().filter(pk=node_id, hold=0).select_related("owner").first()
    if node is None:
        return
    said = [
        spoken.text
        for spoken in utterances_of(
            node_type=node.node_type,
            content=node.content,
            payload=node.payload,
            turn_index=node.turn_index,
        )
        if spoken.role != ASSISTANT
    ]
    alike = _alike(node)
    with transaction.atomic():
        # All that edges will join, before the owner's row: whoever indexes a node holds it and then asks for that row.
        joined = Q(pk__in=[node.pk, *alike])
        if node.session_id is not None:
            joined |= Q(
                node_type=MemoryNode.NodeType.KNOWLEDGE,
                session_id=node.session_id,
                turn_index=node.turn_index,
            )
        held = MemoryNode.objects.owned_by(node.owner).filter(joined).order_by("pk")
        nodes = {one.pk: one for one in held.select_for_update(no_key=True)}
        locked = nodes.pop(node.pk, None)
        if locked is None or locked.version != node.version:
            return
        # The owner's row keeps two turns from making one name twice, and a deletion from coming between.
        OwnerIndex.hold(node.owner_id)
        kind = MemoryEdge.Kind
        targets: dict[tuple[UUID, str], float] = {
            (pk, kind.SAME_TOPIC): alike[pk] for pk in alike.keys() & nodes.keys()
        }
        targets |= {(entity.pk, kind.MENTIONS): 1.0 for entity in _named(node, said)}
        old = MemoryEdge.objects.filter(source=locked, kind__in=[kind.SAME_TOPIC, kind.MENTIONS])
        old.exclude(target__in=[target for target, _ in targets]).delete()
        connect_derived(source=locked, targets=targets)
        for fact in nodes.values():
            if fact.node_type == MemoryNode.NodeType.KNOWLEDGE:
                connect(source=locked, target=fact, kind=kind.SUPPORTS)
        MemoryNode.objects.filter(pk=locked.pk).update(connected_version=locked.version)


def _alike(node: MemoryNode) -> dict[UUID, float]:
    """The nearest earlier turns of other sessions by what the person said in them, with their cosine."""
    index = dense.indexed(node.owner_id)
    model = index.model
    own = (
        UnitVector.objects.filter(owner_id=node.owner_id, utterance__node=node, unit=0, model=model)
        .exclude(utterance__role=ASSISTANT)
        .filter(utterance__length__gte=LEAST_LENGTH)
        .values_list("utterance_id", flat=True)
        .first()
    )
    if own is None:
        return {}
    _, vectors = dense.vectors(node.owner_id, [own], model)
    if not len(vectors):
        return {}
    vector = vectors[0]
    near = dense.candidates(
        node.owner_id,
        vector,
        model,
        Filters(until=node.occurred_at, node_types=(MemoryNode.NodeType.CONVERSATION,)),
        NEAREST,
        approximate=index.approximate,
    )
    node_of = dict(
        Utterance.objects.filter(pk__in=near, owner_id=node.owner_id, length__gte=LEAST_LENGTH)
        .exclude(role=ASSISTANT)
        .exclude(session_id=node.session_id)
        .values_list("pk", "node_id")
    )
    found, vectors = dense.vectors(node.owner_id, list(node_of), model)
    if not found:
        return {}
    cosines = np.clip(vectors @ vector, 0, 1)
    best = [at for at in np.argsort(-cosines)[:MOST_ALIKE] if cosines[at] >= SAME_TOPIC]
    return {node_of[found[at]]: round(float(cosines[at]), 4) for at in best}


def _named(node: MemoryNode, said: Sequence[str]) -> list[MemoryNode]:
    """The Entity nodes of what these words name, made where there are none yet. The owner's row is locked."""
    entities = MemoryNode.objects.owned_by(node.owner).of_type(MemoryNode.NodeType.ENTITY)
    known = {label.lower(): pk for pk, label in entities.values_list("pk", "label")}
    names = names_in("\n".join(said), known)
    fresh = [
        MemoryNode(
            owner_id=node.owner_id,
            node_type=MemoryNode.NodeType.ENTITY,
            tier=MemoryNode.Tier.SEMANTIC,
            label=name,
            content=name,
            tags=["Entity"],
            derived=True,
            occurred_at=node.occurred_at,
        )
        for name in names
        if name.lower() not in known
    ]
    MemoryNode.objects.bulk_create(fresh)
    standing = [known[name.lower()] for name in names if name.lower() in known]
    return [*fresh, *MemoryNode.objects.filter(pk__in=standing)]
