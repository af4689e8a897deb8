"""What themes are made of: every remembered turn of a person, in the order of its thread, and what it means."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Count, Max

from conversations import llm
from conversations.intents import looks_back
from conversations.models import Turn
from conversations.themes.clustering import Vectors
from memory import embedding, indexing
from memory.models import MemoryNode
from memory.retrieval import dense
from memory.retrieval.utterances import exchange

AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Said:
    """One turn. `heavy` says that it was answered under a soft bell: it is never quoted."""

    node_id: UUID
    thread: UUID
    at: datetime
    q: str
    a: str
    heavy: bool


def said_by(owner: AbstractBaseUser, *, only: Sequence[UUID] | None = None) -> list[Said]:
    """The turns memory holds, thread by thread from the oldest. What rang hard was never one of them.

    A question for themes is none of them either: it would make a theme of asking for themes.
    """
    nodes = MemoryNode.objects.for_owner(owner).conversations()
    if only is not None:
        nodes = nodes.filter(pk__in=only)
    heavy = set(
        Turn.objects.for_owner(owner)
        .filter(action=Turn.Action.SOFT_BELL)
        .values_list("session_id", "turn_index")
    )
    rows = nodes.values_list("pk", "session_id", "turn_index", "occurred_at", "content", "payload")
    told = [
        (index or 0, Said(pk, session or pk, at, *exchange(content, payload), (session, index) in heavy))
        for pk, session, index, at, content, payload in rows.iterator(chunk_size=2000)
    ]
    told = [(index, said) for index, said in told if not looks_back(said.q)]
    began: dict[UUID, datetime] = {}
    for _, said in told:
        began[said.thread] = min(said.at, began.get(said.thread, said.at))
    told.sort(key=lambda one: (began[one[1].thread], one[1].thread, one[0], one[1].node_id))
    return [said for _, said in told]


def make_searchable(owner: AbstractBaseUser, *, between: Callable[[], None]) -> None:
    """Have every turn embedded, so that none is left out; `between` is called now and then.

    Raises memory.embedding.EmbedderUnavailable where the embedder gives no vectors.
    """
    waiting = MemoryNode.objects.for_owner(owner).conversations().unindexed().values_list("pk", flat=True)
    ids = list(waiting)
    for start in range(0, len(ids), AT_ONCE):
        between()
        indexing.index_nodes(node_ids=ids[start : start + AT_ONCE])
    embedding.embed(["ready"])


def vectors_of(owner: AbstractBaseUser, told: Sequence[Said]) -> Vectors:
    """(n, dimensions) float32: what the person said in each turn; zeros where that has no vector."""
    known = dense.vectors_of_people(owner.pk, dense.searchable_model(owner.pk))
    size = len(next(iter(known.values()), ()))
    return np.stack([known.get(said.node_id, np.zeros(size, dtype=np.float32)) for said in told])


def fingerprint(owner: AbstractBaseUser) -> str:
    """What themes would be made of now, as a hash: the turns there are, and which model would read them."""
    nodes = MemoryNode.objects.for_owner(owner).conversations()
    held = nodes.aggregate(count=Count("pk"), latest=Max("updated_at"))
    return hashlib.blake2b(f"{held} {llm.described().name}".encode(), digest_size=16).hexdigest()
