"""The wire format of the engram protocol: nodes and edges as JSON, written by us, read from anybody.

What comes in is checked whole and strictly before anything of it is used; `WireError` says where it is wrong
and never quotes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from memory.engram.fields import (
    Fields,
    WireError,
    array,
    integer_from,
    json_object,
    moment,
    number,
    share,
    text_up_to,
    uuid,
)
from memory.models import MemoryEdge, MemoryNode

MOST_TAGS = 1000
LONGEST_CURSOR = 4000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WireNode:
    """A node as it came over the wire; every value fits its column."""

    id: UUID
    node_type: str
    tier: str
    label: str
    content: str
    payload: dict[str, Any]
    tags: list[str]
    salience: float
    importance: float
    confidence: float
    session_id: UUID | None
    turn_index: int | None
    occurred_at: datetime
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class WireEdge:
    """An edge as it came over the wire. Its two nodes need not be known here."""

    id: UUID
    source: UUID
    target: UUID
    kind: str
    weight: float
    created_at: datetime
    updated_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class WireSync:
    """One answer of `GET /api/sync`: what changed since the cursor, and the cursor to ask with next."""

    nodes: list[WireNode]
    edges: list[WireEdge]
    deleted: list[UUID]
    cursor: str


# --- Writing ----------------------------------------------------------------------------------------------


def write_node(node: MemoryNode) -> dict[str, Any]:
    """The node as JSON values; `read_node` of it gives the same values back."""
    return {
        "id": str(node.id),
        "node_type": node.node_type,
        "tier": node.tier,
        "label": node.label,
        "content": node.content,
        "payload": node.payload,
        "tags": list(node.tags),
        "salience": node.salience,
        "importance": node.importance,
        "confidence": node.confidence,
        "session_id": str(node.session_id) if node.session_id else None,
        "turn_index": node.turn_index,
        "occurred_at": _written(node.occurred_at),
        "created_at": _written(node.created_at),
        "updated_at": _written(node.updated_at),
        "version": node.version,
    }


def write_edge(edge: MemoryEdge) -> dict[str, Any]:
    """The edge as JSON values; `read_edge` of it gives the same values back."""
    return {
        "id": str(edge.id),
        "source": str(edge.source_id),
        "target": str(edge.target_id),
        "kind": edge.kind,
        "weight": edge.weight,
        "created_at": _written(edge.created_at),
        "updated_at": _written(edge.updated_at),
        "version": edge.version,
    }


def _written(when: datetime) -> str:
    return when.astimezone(UTC).isoformat()


# --- Reading ----------------------------------------------------------------------------------------------


def read_node(data: Any) -> WireNode:
    """The node that this JSON value describes. Raises WireError.

    id, node_type, content, version, updated_at and one of occurred_at and created_at must be there; the rest
    may be missing or null and is then what a new node has.
    """
    fields = Fields(data)
    created_at = fields.optional("created_at", moment)
    occurred_at = fields.optional("occurred_at", moment)
    if created_at is None and occurred_at is None:
        raise WireError("occurred_at is missing")
    node_type = fields.required("node_type", text_up_to(40))
    if not node_type:
        raise WireError("node_type is empty")
    return WireNode(
        id=fields.required("id", uuid),
        node_type=node_type,
        tier=fields.optional("tier", _tier) or MemoryNode.Tier.EPISODIC.value,
        label=fields.optional("label", text_up_to(200)) or "",
        content=fields.required("content", text_up_to(None)),
        payload=fields.optional("payload", json_object) or {},
        tags=fields.optional("tags", _tags) or [],
        salience=_or(fields.optional("salience", share), 0.5),
        importance=_or(fields.optional("importance", share), 0.5),
        confidence=_or(fields.optional("confidence", share), 1.0),
        session_id=fields.optional("session_id", uuid),
        turn_index=fields.optional("turn_index", integer_from(0)),
        occurred_at=occurred_at or created_at,  # type: ignore[arg-type] # one of them is there
        created_at=created_at or occurred_at,  # type: ignore[arg-type]
        updated_at=fields.required("updated_at", moment),
        version=fields.required("version", integer_from(1)),
    )


def read_edge(data: Any) -> WireEdge:
    """The edge that this JSON value describes. Raises WireError."""
    fields = Fields(data)
    edge = WireEdge(
        id=fields.required("id", uuid),
        source=fields.required("source", uuid),
        target=fields.required("target", uuid),
        kind=fields.required("kind", text_up_to(40)),
        weight=_or(fields.optional("weight", number), 1.0),
        created_at=fields.optional("created_at", moment) or fields.required("updated_at", moment),
        updated_at=fields.required("updated_at", moment),
        version=fields.required("version", integer_from(1)),
    )
    if edge.source == edge.target:
        raise WireError("an edge to itself")
    if not edge.kind:
        raise WireError("kind is empty")
    return edge


def read_nodes(data: Any) -> list[WireNode]:
    """An array of nodes, no id twice. Raises WireError."""
    nodes = [_at(position, read_node, one) for position, one in enumerate(array(data))]
    _refuse_repeats(node.id for node in nodes)
    return nodes


def read_edges(data: Any) -> list[WireEdge]:
    """An array of edges, no id twice. Raises WireError."""
    edges = [_at(position, read_edge, one) for position, one in enumerate(array(data))]
    _refuse_repeats(edge.id for edge in edges)
    return edges


def read_sync(data: Any) -> WireSync:
    """One answer of the sync call. Raises WireError; an empty object is one, all four parts must be there."""
    fields = Fields(data)
    sync = WireSync(
        nodes=fields.required("nodes", read_nodes),
        edges=fields.required("edges", read_edges),
        deleted=fields.required("deleted", lambda value: [uuid(one) for one in array(value)]),
        cursor=fields.required("cursor", text_up_to(LONGEST_CURSOR)),
    )
    if not sync.cursor:
        raise WireError("cursor is empty")
    if {node.id for node in sync.nodes}.intersection(sync.deleted):
        raise WireError("a node both there and deleted")
    return sync


def _at(position: int, read: Callable[[Any], T], data: Any) -> T:
    try:
        return read(data)
    except WireError as error:
        raise WireError(f"entry {position}: {error}") from None


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _refuse_repeats(ids: Iterable[UUID]) -> None:
    seen: set[UUID] = set()
    for one in ids:
        if one in seen:
            raise WireError("an id twice")
        seen.add(one)


def _tier(value: Any) -> str:
    if value not in MemoryNode.Tier.values:
        raise WireError("no tier there is")
    return str(value)


def _tags(value: Any) -> list[str]:
    tags = [text_up_to(80)(one) for one in array(value)]
    if len(tags) > MOST_TAGS:
        raise WireError(f"more than {MOST_TAGS}")
    return tags
