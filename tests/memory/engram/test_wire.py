"""The wire format: what we write reads back equal, and nothing wrong is read at all."""

import json
import uuid
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engram.fields import MOST_DEPTH, WireError, parse_json
from memory.engram.wire import read_edge, read_node, read_nodes, read_sync, write_edge, write_node
from memory.models import MemoryEdge, MemoryNode

WHEN = "2026-05-04T03:02:01.000009+00:00"
NODE: dict[str, Any] = {
    "id": str(uuid.UUID(int=1)),
    "node_type": "Knowledge",
    "content": "the key is under the pot",
    "occurred_at": WHEN,
    "updated_at": WHEN,
    "version": 3,
}
EDGE: dict[str, Any] = {
    "id": str(uuid.UUID(int=2)),
    "source": str(uuid.UUID(int=1)),
    "target": str(uuid.UUID(int=3)),
    "kind": "follows",
    "updated_at": WHEN,
    "version": 1,
}

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | storable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(storable, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.builds(
        MemoryNode,
        id=st.uuids(),
        node_type=storable.filter(bool).map(lambda text: text[:40]),
        tier=st.sampled_from(MemoryNode.Tier.values),
        label=storable.map(lambda text: text[:200]),
        content=storable,
        payload=st.dictionaries(storable, values, max_size=4),
        tags=st.lists(storable.map(lambda text: text[:80]), max_size=4),
        salience=st.floats(0, 1),
        importance=st.floats(0, 1),
        confidence=st.floats(0, 1),
        session_id=st.none() | st.uuids(),
        turn_index=st.none() | st.integers(0, 2**31 - 1),
        occurred_at=moments,
        created_at=moments,
        updated_at=moments,
        version=st.integers(1, 2**31 - 1),
    )
)
def test_a_node_reads_back_as_it_was_written(node: MemoryNode) -> None:
    written = json.dumps(write_node(node)).encode()
    read = read_node(parse_json(written))
    assert asdict(read) == {name: getattr(node, name) for name in asdict(read)}


def test_an_edge_reads_back_as_it_was_written() -> None:
    edge = MemoryEdge(source_id=uuid.uuid4(), target_id=uuid.uuid4(), kind="supports", weight=0.1 + 0.2)
    read = read_edge(parse_json(json.dumps(write_edge(edge)).encode()))
    assert (read.id, read.source, read.target) == (edge.id, edge.source_id, edge.target_id)
    assert (read.kind, read.weight, read.updated_at) == (edge.kind, edge.weight, edge.updated_at)


def test_what_a_simple_client_leaves_out_has_the_values_of_a_new_node() -> None:
    node = read_node({**NODE, "payload": None})
    assert (node.tier, node.salience, node.confidence) == ("Episodic", 0.5, 1.0)
    assert node.created_at == node.occurred_at == datetime(2026, 5, 4, 3, 2, 1, 9, tzinfo=UTC)
    assert (node.payload, node.tags, node.session_id) == ({}, [], None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "1"},
        {"id": None},
        {"id": 7},
        {"node_type": ""},
        {"node_type": "x" * 41},
        {"tier": "Eternal"},
        {"tier": []},
        {"label": "x" * 201},
        {"content": None},
        {"content": 3},
        {"payload": []},
        {"payload": "{}"},
        {"tags": "a,b"},
        {"tags": [1]},
        {"salience": 1.01},
        {"salience": True},
        {"importance": "0.5"},
        {"confidence": 10**400},
        {"session_id": "none"},
        {"turn_index": -1},
        {"turn_index": 1.0},
        {"occurred_at": None},
        {"occurred_at": "2026-05-04T03:02:01"},
        {"occurred_at": 1700000000},
        {"updated_at": "0001-01-01T00:00:00+14:00"},
        {"version": 0},
        {"version": True},
        {"version": 2**31},
    ],
)
def test_a_node_with_one_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        read_node({**NODE, **wrong})


@pytest.mark.parametrize(
    "wrong", [{"source": EDGE["target"]}, {"kind": ""}, {"weight": "1"}, {"target": None}, {"version": None}]
)
def test_an_edge_with_one_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        read_edge({**EDGE, **wrong})


@pytest.mark.parametrize("rubbish", [None, {}, "nodes", [None], [[]], [{}], [NODE, NODE], {"error": "no"}])
def test_what_is_no_array_of_nodes_is_refused(rubbish: Any) -> None:
    with pytest.raises(WireError):
        read_nodes(rubbish)


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": None},
        {"edges": {}},
        {"deleted": [1]},
        {"cursor": ""},
        {"cursor": 12},
        {"deleted": [NODE["id"]]},
    ],
)
def test_a_sync_is_read_whole_or_not_at_all(change: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"nodes": [NODE], "edges": [EDGE], "deleted": [], "cursor": "17"}
    assert read_sync(whole).cursor == "17"
    with pytest.raises(WireError):
        read_sync({**whole, **change})


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"<html></html>",
        b'{"a": ',
        b'{"a": NaN}',
        b"[Infinity]",
        b"[1e999]",
        b'{"a": 1, "a": 2}',
        b'"\xff"',
        b'\xef\xbb\xbf{"a": 1}',
        b"[" * 10_000 + b"]" * 10_000,
        b"[" * (MOST_DEPTH + 1) + b"]" * (MOST_DEPTH + 1),
        b"9" * 5000,
    ],
)
def test_what_is_not_strict_json_is_refused(rubbish: bytes) -> None:
    with pytest.raises(WireError):
        parse_json(rubbish)


def test_what_the_database_cannot_hold_is_replaced() -> None:
    assert parse_json(rb'{"\u0000k": ["\ud800", "\ud83d\ude00"]}') == {"�k": ["�", "\U0001f600"]}


def test_errors_never_quote_what_was_read() -> None:
    with pytest.raises(WireError) as error:
        read_nodes([NODE, {**NODE, "tier": "a secret"}])
    assert str(error.value) == "entry 1: tier: no tier there is"
