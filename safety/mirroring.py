"""Bells as nodes of the remote engram: made of the BellEvent when one is sent, so that no second copy stands here."""

from typing import Any
from uuid import UUID

from memory.engram.wire import write_node
from memory.models import MemoryNode
from safety.models import BellEvent

# A withheld reply is the model's, not the person's.
MIRRORED_LEVELS = (BellEvent.Level.HARD, BellEvent.Level.SOFT)


def bell_node(bell_id: UUID) -> dict[str, Any] | None:
    """The bell as a node on the wire, of the kind that recall never sees; None where there is none."""
    bell: BellEvent | None = BellEvent.objects.filter(pk=bell_id, level__in=MIRRORED_LEVELS).first()
    if bell is None:
        return None
    label = f"bell:{bell.level}"
    return write_node(
        MemoryNode(
            id=bell.pk,
            node_type=MemoryNode.NodeType.BELL_EVENT,
            tier=MemoryNode.Tier.EPISODIC,
            label=label,
            content=f"BELL:{bell.level} | {bell.reason} | summary:{bell.summary}",
            tags=["safety", "bell", label],
            session_id=bell.session_id,
            occurred_at=bell.created_at,
            created_at=bell.created_at,
            updated_at=bell.created_at,
        )
    )
