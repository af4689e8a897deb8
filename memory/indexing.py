"""Services that keep recall's tables in step with the nodes: read what is new, embed it, re-embed for a new model.

What is due is found in rows (`MemoryNode.indexed_version`, `Utterance.embedded_with`); running twice is harmless.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from memory import embedding
from memory.models import MemoryNode
from memory.recall_models import OwnerIndex, OwnerTerm, UnitVector, Utterance
from memory.retrieval.utterances import Prepared, Spoken, key, packed_keys, prepare, utterances_of

logger = logging.getLogger(__name__)

BATCH = 64
UTTERANCES_IN_A_BLOCK = 4096
# A vector takes about 2 ms to find its place in the HNSW index.
MOST_MOVED = 2000
# Above so many chunks the scan over an owner's vectors takes longer than an answer may wait.
MOST_SCANNED = 60_000


@dataclass(frozen=True)
class _Read:
    node: MemoryNode
    spoken: Spoken
    prepared: Prepared


def index_nodes(*, node_ids: Iterable[UUID]) -> int:
    """Make these nodes findable, by words at once and by meaning as soon as the embedder answers."""
    ids = list(node_ids)
    for start in range(0, len(ids), BATCH):
        _read_nodes(ids[start : start + BATCH])
        _embed(Utterance.objects.filter(node__in=ids[start : start + BATCH]))
    return len(ids)


def index_pending(*, limit: int = 1000) -> int:
    """Index up to `limit` nodes, and embed up to `limit` utterances, that are due. Returns how many were done."""
    due = list(
        MemoryNode.objects.unindexed().order_by("created_at", "id").values_list("pk", flat=True)[:limit]
    )
    index_nodes(node_ids=due)
    # Found by two ranges of one index: what has no vector yet, and what another model made.
    model = embedding.model_name()
    utterances = Utterance.objects.filter(
        Q(pk__in=Utterance.objects.filter(embedded_with="").values("pk")[:limit])
        | Q(pk__in=Utterance.objects.exclude(embedded_with__in=["", model]).values("pk")[:limit])
    )
    waiting = list(utterances.order_by("pk").values_list("pk", flat=True)[:limit])
    done = 0
    for start in range(0, len(waiting), BATCH):
        if not _embed(Utterance.objects.filter(pk__in=waiting[start : start + BATCH])):
            break
        done += len(waiting[start : start + BATCH])
    _index_large_owners()
    return len(due) + done


def _read_nodes(ids: Sequence[UUID]) -> None:
    """Write the utterances and words of these nodes, in place of those of an earlier version."""
    with transaction.atomic():
        # Nodes before the owner's counts, as deletion takes them: two writers never wait for each other.
        nodes = list(
            MemoryNode.objects.unindexed()
            .filter(pk__in=ids)
            .order_by("pk")
            .select_for_update(skip_locked=True)
        )
        if not nodes:
            return
        owners = sorted({node.owner_id for node in nodes})
        OwnerIndex.objects.bulk_create([OwnerIndex(owner_id=pk) for pk in owners], ignore_conflicts=True)
        indexes = OwnerIndex.hold(*owners)
        Utterance.objects.filter(node__in=nodes).delete()
        read = [_Read(node, spoken, prepare(spoken)) for node in nodes for spoken in _spoken(node)]
        _write_words(read)
        Utterance.objects.bulk_create([_as_row(one, indexes[one.node.owner_id]) for one in read])
        MemoryNode.objects.filter(pk__in=[node.pk for node in nodes]).update(indexed_version=F("version"))


def _spoken(node: MemoryNode) -> list[Spoken]:
    return utterances_of(
        node_type=node.node_type, content=node.content, payload=node.payload, turn_index=node.turn_index
    )


def _write_words(read: list[_Read]) -> None:
    words = {
        (one.node.owner_id, key(one.node.owner_id, term)): term
        for one in read
        for chunk in one.prepared.chunks
        for term in chunk
    }
    OwnerTerm.objects.bulk_create(
        [
            OwnerTerm(owner_id=owner_id, key=number, word=words[owner_id, number])
            for owner_id, number in sorted(words)
        ],
        ignore_conflicts=True,
    )


def _as_row(one: _Read, index: OwnerIndex) -> Utterance:
    node, prepared = one.node, one.prepared
    # The triggers keep the count; this copy of it places the rows of one batch.
    index.utterances += 1
    return Utterance(
        owner_id=node.owner_id,
        node=node,
        role=one.spoken.role,
        speaker=one.spoken.speaker,
        node_type=node.node_type,
        session_id=node.session_id if node.node_type == MemoryNode.NodeType.CONVERSATION else None,
        position=one.spoken.position,
        occurred_at=node.occurred_at,
        length=prepared.length,
        chunks=len(prepared.chunks),
        is_question=prepared.is_question,
        has_time=prepared.has_time,
        terms=packed_keys(node.owner_id, prepared.chunks),
        block=index.utterances // UTTERANCES_IN_A_BLOCK,
    )


def _embed(utterances: QuerySet[Utterance]) -> bool:
    """Embed what of these the configured model has not; False where it did not answer."""
    try:
        model = embedding.model_name()
        rows = list(utterances.exclude(embedded_with=model).select_related("node").order_by("pk"))
        texts = [_texts(row) for row in rows]
        # No transaction is open here: the embedder may be a network away.
        vectors = embedding.embed([text for some in texts for text in some]) if rows else None
    except embedding.EmbedderUnavailable as error:
        logger.warning("vectors are delayed: %s", error)
        return False
    if vectors is None:
        return True
    made: dict[int, list[UnitVector]] = {}
    large = set(OwnerIndex.objects.filter(chunks__gt=MOST_SCANNED).values_list("pk", flat=True))
    at = 0
    for row, some in zip(rows, texts, strict=True):
        made[row.pk] = [
            UnitVector(
                owner_id=row.owner_id,
                utterance_id=row.pk,
                unit=unit,
                model=model,
                embedding=vectors[at + unit],
                approximate=row.owner_id in large,
            )
            for unit in range(len(some))
        ]
        at += len(some)
    _write_vectors(made, model, {row.owner_id for row in rows})
    return True


def _texts(row: Utterance) -> list[str]:
    spoken = [one for one in _spoken(row.node) if one.role == row.role]
    return prepare(spoken[0]).to_embed if spoken else []


def _write_vectors(made: dict[int, list[UnitVector]], model: str, owners: set[int]) -> None:
    with transaction.atomic():
        OwnerIndex.hold(*owners)
        # Meanwhile a node may have been forgotten, and its utterances with it.
        alive = list(
            Utterance.objects.filter(pk__in=made)
            .order_by("pk")
            .select_for_update()
            .values_list("pk", flat=True)
        )
        UnitVector.objects.bulk_create([one for pk in alive for one in made[pk]], ignore_conflicts=True)
        Utterance.objects.filter(pk__in=alive).update(embedded_with=model)
        # The model before serves searches until the owner's last utterance has been embedded anew.
        for owner_id in sorted(owners):
            if not Utterance.objects.filter(owner_id=owner_id).exclude(embedded_with=model).exists():
                UnitVector.objects.filter(owner_id=owner_id).exclude(model=model).delete()


def _index_large_owners(*, most: int = MOST_MOVED) -> None:
    """Put up to `most` vectors of owners who outgrew the scan into the HNSW index; searches scan until all are in."""
    for index in OwnerIndex.objects.filter(chunks__gt=MOST_SCANNED, approximate=False):
        outside = UnitVector.objects.filter(owner_id=index.pk, approximate=False, unit=0)
        moved = UnitVector.objects.filter(pk__in=list(outside.values_list("pk", flat=True)[:most]))
        most -= moved.update(approximate=True)
        if most <= 0:
            return
        OwnerIndex.objects.filter(pk=index.pk).update(approximate=True)
