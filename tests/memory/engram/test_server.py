"""Neuron as a remote engram: the contract's calls, for token holders, each of whom sees one person's nodes."""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory.models import MemoryEdge, MemoryNode, Tombstone
from memory.services import connect_derived, edge_id
from tests.memory.engram.protocol import LONG_AGO, TokenClient, a_node, an_edge


@pytest.fixture
def mine(owner: User) -> TokenClient:
    return TokenClient(owner)


@pytest.fixture
def theirs(other: User) -> TokenClient:
    return TokenClient(other)


def put(client: TokenClient, node: dict[str, Any]) -> Any:
    return client.put_json(f"/api/nodes/{node['id']}", node)


def test_health_is_for_everybody_and_all_else_for_token_holders(db: None, owner_client: Client) -> None:
    assert Client().get("/health").status_code == 200
    for path in ("/api/nodes", "/api/nodes/recent", "/api/edges", "/api/sync"):
        for stranger in (Client(), owner_client, Client(headers={"Authorization": "Bearer no"})):
            answer = stranger.get(path)
            assert answer.status_code == 401
            assert list(answer.json()) == ["error"]


def test_a_node_comes_back_as_it_was_put(mine: TokenClient) -> None:
    node = a_node(payload={"q": 'é\n"', "a": "b", "n": [1, 2.5, None, {"x": True}]}, label="a label")
    assert put(mine, node).status_code == 200
    [found] = mine.read("/api/nodes?limit=10")
    assert found.pop("occurred_at").startswith("2026-01-10T09:00:00")
    assert {key: value for key, value in node.items() if key in found} == {
        **found,
        "created_at": node["created_at"],
        "updated_at": node["updated_at"],
    }


def test_a_put_is_idempotent_and_an_older_version_never_overwrites_a_newer(mine: TokenClient) -> None:
    node = a_node(version=2)
    assert put(mine, node).json()["taken"] is True
    assert put(mine, node).json()["taken"] is False
    assert put(mine, {**node, "version": 1, "content": "older"}).status_code == 200
    later = LONG_AGO.replace(hour=10).isoformat()
    assert put(mine, {**node, "content": "same version, later", "updated_at": later}).json()["taken"] is True
    assert [one["content"] for one in mine.read("/api/nodes")] == ["same version, later"]


def test_nobody_sees_touches_or_learns_of_anothers_nodes(mine: TokenClient, theirs: TokenClient) -> None:
    first, second = a_node(turn_index=0), a_node(turn_index=1)
    edge = an_edge(second, first)
    put(mine, first), put(mine, second)
    mine.put_json(f"/api/edges/{edge['id']}", edge)
    for path in ("/api/nodes", "/api/nodes/recent?type=Conversation", "/api/edges"):
        assert theirs.read(path) == []
    assert theirs.read("/api/sync")["nodes"] == []
    assert put(theirs, {**first, "version": 9}).status_code == 404
    assert theirs.put_json(f"/api/edges/{edge['id']}", edge).status_code == 404
    assert theirs.delete(f"/api/nodes/{first['id']}").status_code == 204
    assert len(mine.read("/api/nodes")) == 2
    # The same turn of a session that another has, too.
    assert put(theirs, {**first, "id": str(uuid.uuid4())}).json()["taken"] is True


def test_deleting_twice_is_204_and_a_late_put_does_not_bring_it_back(mine: TokenClient) -> None:
    node = a_node(version=3)
    put(mine, node)
    for _ in range(2):
        assert mine.delete(f"/api/nodes/{node['id']}").status_code == 204
    assert put(mine, node).json()["taken"] is False
    assert not MemoryNode.objects.exists()
    assert put(mine, {**node, "version": 4}).json()["taken"] is True
    assert not Tombstone.objects.exists()


def test_what_is_deleted_before_it_came_never_comes(mine: TokenClient) -> None:
    node = a_node(version=2)
    assert mine.delete(f"/api/nodes/{node['id']}?version=2").status_code == 204
    assert put(mine, node).json()["taken"] is False
    assert mine.read("/api/nodes") == []


def test_edges_join_nodes_that_are_here(mine: TokenClient) -> None:
    first, second = a_node(), a_node()
    edge = an_edge(second, first)
    put(mine, second)
    early = mine.put_json(f"/api/edges/{edge['id']}", edge)
    assert (early.status_code, list(early.json())) == (409, ["error"])
    put(mine, first)
    for taken in (True, False):
        assert mine.put_json(f"/api/edges/{edge['id']}", edge).json()["taken"] is taken
    assert [one["id"] for one in mine.read("/api/edges")] == [edge["id"]]
    again = {**edge, "id": str(uuid.uuid4())}
    assert mine.put_json(f"/api/edges/{again['id']}", again).status_code == 200
    assert MemoryEdge.objects.count() == 1
    mine.delete(f"/api/nodes/{first['id']}")
    assert mine.put_json(f"/api/edges/{edge['id']}", {**edge, "version": 2}).json()["taken"] is False


def test_recent_nodes_are_of_one_kind_newest_first(mine: TokenClient) -> None:
    times = [LONG_AGO.replace(day=day).isoformat() for day in (11, 13, 12)]
    for moment in times:
        put(mine, a_node(occurred_at=moment))
    put(mine, a_node(node_type="Theme"))
    found = mine.read("/api/nodes/recent?type=Conversation&limit=2")
    assert [one["occurred_at"][8:10] for one in found] == ["13", "12"]
    since = "2026-01-12T09:00:00%2B00:00"
    assert len(mine.read(f"/api/nodes/recent?type=Conversation&since={since}")) == 1
    for wrong in ("limit=0", "limit=1001", "limit=x", "since=2026-01-12", "since=yesterday"):
        assert mine.get(f"/api/nodes/recent?{wrong}").status_code == 400


def test_bells_are_kept_and_given_to_nobody(mine: TokenClient) -> None:
    bell = a_node(node_type="BellEvent", content="BELL:hard | x | summary:canaryword", payload={})
    assert put(mine, bell).status_code == 200
    assert MemoryNode.objects.get().content == bell["content"]
    for path in ("/api/nodes", "/api/nodes/recent?type=BellEvent", "/api/sync"):
        assert "canaryword" not in str(mine.read(path))


def test_there_is_one_history_and_duplicates_fold_into_it(mine: TokenClient) -> None:
    def history(hour: int, **values: Any) -> dict[str, Any]:
        moment = LONG_AGO.replace(hour=hour).isoformat()
        values = {"occurred_at": moment, "updated_at": moment, "content": str(hour), **values}
        return a_node(node_type="History", label="conv:history", session_id=None, turn_index=None, **values)

    for one in (history(10), history(12), history(11, version=7)):
        assert put(mine, one).status_code == 200
    assert [node.content for node in MemoryNode.objects.of_type("History")] == ["12"]


def test_a_state_event_is_stored_once_per_id(mine: TokenClient, theirs: TokenClient) -> None:
    event = {"id": "event-1", "content": "sync done"}
    for client in (mine, mine, theirs):
        assert client.post("/api/neuron/state-events", event, "application/json").status_code == 200
    assert MemoryNode.objects.of_type("StateEvent").count() == 2
    assert [one["content"] for one in mine.read("/api/nodes/recent?type=StateEvent")] == ["sync done"]
    assert mine.read("/api/nodes") == []
    for wrong in ({}, [], {"id": "", "content": "x"}, {"id": 1, "content": "x"}):
        assert mine.post("/api/neuron/state-events", wrong, "application/json").status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b'{"id":',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"salience": NaN}',
    ],
)
def test_a_bad_body_is_refused_with_an_error_and_changes_nothing(mine: TokenClient, body: bytes) -> None:
    node = a_node()
    answer = mine.put(f"/api/nodes/{node['id']}", body, content_type="application/json")
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert not MemoryNode.objects.exists()


def test_a_body_over_the_limit_and_another_id_are_refused(mine: TokenClient) -> None:
    node = a_node()
    assert put(mine, {**node, "content": "x" * 2_700_000}).status_code == 413
    assert mine.put_json(f"/api/nodes/{uuid.uuid4()}", node).status_code == 400
    assert put(mine, {**node, "salience": 2}).status_code == 400
    assert not MemoryNode.objects.exists()


def test_what_came_in_is_not_shown_before_it_is_screened(
    mine: TokenClient, owner: User, owner_client: Client
) -> None:
    put(mine, a_node())
    assert not MemoryNode.objects.for_owner(owner).exists()
    assert owner_client.get("/api/v1/nodes").json()["results"] == []


def test_what_was_worked_out_here_is_given_to_nobody_and_what_is_sent_is(
    mine: TokenClient, owner: User
) -> None:
    first, second = a_node(), a_node()
    put(mine, first), put(mine, second)
    nodes = [MemoryNode.objects.get(pk=node["id"]) for node in (first, second)]
    connect_derived(source=nodes[0], targets={(nodes[1].pk, "same_topic"): 0.7})
    MemoryNode.objects.create(owner=owner, node_type="Entity", label="Lisbon", content="Lisbon", derived=True)
    assert (mine.read("/api/edges"), len(mine.read("/api/nodes"))) == ([], 2)
    seen = mine.read("/api/sync")
    assert (len(seen["nodes"]), seen["edges"]) == (2, [])
    sent = an_edge(first, second, kind="same_topic")
    assert mine.put_json(f"/api/edges/{sent['id']}", sent).json()["taken"] is True
    assert [one["id"] for one in mine.read("/api/edges")] == [
        str(edge_id(nodes[0].pk, nodes[1].pk, "same_topic"))
    ]
