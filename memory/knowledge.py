"""What a person asked to have remembered: kept in their own words, quoted, corrected, pinned. Services.

Forgetting is `memory.services.delete_nodes`, as of every node.
"""

from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from memory.absolute import absolute_dates
from memory.models import MemoryEdge, MemoryNode
from memory.services import connect, enqueue_node, overwrite_node

LABEL = "knowledge"
TAG, PINNED = "Knowledge", "pinned"
# A longer text is no fact but a letter; it stays in its turn.
LONGEST_FACT = 2000


def keep_fact(
    *,
    owner: AbstractBaseUser,
    words: str,
    said_at: datetime,
    tz: ZoneInfo,
    session_id: UUID | None = None,
    turn_index: int | None = None,
) -> MemoryNode:
    """Keep a person's words about themselves, with relative dates made absolute; `payload["quote"]` has them as said.

    Said in a turn, the turn's node supports the fact. The same words of the same turn are kept once. Raises
    ValueError for words that are none or more than LONGEST_FACT characters.
    """
    words = words.strip()
    if not 0 < len(words) <= LONGEST_FACT:
        raise ValueError(f"a fact has 1 to {LONGEST_FACT} characters")
    content = absolute_dates(words, said_at=said_at, tz=tz)
    with transaction.atomic():
        kept = MemoryNode.objects.owned_by(owner).knowledge()
        standing = (
            kept.filter(session_id=session_id, turn_index=turn_index, payload__quote=words).first()
            if session_id
            else None
        )
        if standing is not None:
            return standing
        node = MemoryNode.objects.create(
            owner_id=owner.pk,
            node_type=MemoryNode.NodeType.KNOWLEDGE,
            tier=MemoryNode.Tier.SEMANTIC,
            label=LABEL,
            content=content,
            payload={"quote": words, "said_at": said_at.isoformat()},
            tags=[TAG],
            session_id=session_id,
            turn_index=turn_index,
            occurred_at=said_at,
        )
        enqueue_node(node)
        if session_id is not None and turn_index is not None:
            turns = MemoryNode.objects.owned_by(owner).conversations()
            turn = turns.filter(session_id=session_id, turn_index=turn_index).first()
            # A turn that is not answered yet has no node; it is connected with its facts when it has.
            if turn is not None:
                connect(source=turn, target=node, kind=MemoryEdge.Kind.SUPPORTS)
    return node


def correct_fact(*, node: MemoryNode, words: str, now: datetime, tz: ZoneInfo) -> MemoryNode:
    """Say it anew, in the person's own words; the quote of what was first said stays. Raises ValueError as above."""
    words = words.strip()
    if not 0 < len(words) <= LONGEST_FACT:
        raise ValueError(f"a fact has 1 to {LONGEST_FACT} characters")
    content = absolute_dates(words, said_at=now, tz=tz)
    if content == node.content:
        return node
    return overwrite_node(
        node=node, content=content, payload={**node.payload, "corrected_at": now.isoformat()}
    )


def pin_fact(*, node: MemoryNode, pinned: bool) -> MemoryNode:
    """Pinned facts stand in every prompt, within its budget."""
    tags = [tag for tag in node.tags if tag != PINNED]
    return overwrite_node(node=node, tags=[*tags, PINNED] if pinned else tags)
