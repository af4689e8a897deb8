"""The cursor of a sync: whatever commits when, everybody who asks again and again has seen everything."""

import itertools
import threading
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from memory.engram import cursor, giving
from memory.engram.cursor import BadCursor, begin
from memory.models import MemoryEdge, MemoryNode
from memory.services import connect, delete_nodes, overwrite_node
from tests.memory.engram.protocol import TokenClient

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


def node(owner: User, content: str = "The lake is deep.") -> MemoryNode:
    return MemoryNode.objects.create(owner=owner, node_type="Knowledge", content=content)


def contents(answer: dict[str, Any]) -> list[str]:
    return sorted(one["content"] for one in answer["nodes"])


def test_each_change_comes_once_and_an_idle_sync_is_empty(owner: User) -> None:
    mine = TokenClient(owner)
    first, second = node(owner, "first"), node(owner, "second")
    edge = connect(source=second, target=first, kind="same_topic")
    answer = mine.read("/api/sync")
    assert contents(answer) == ["first", "second"]
    assert [one["id"] for one in answer["edges"]] == [str(edge.pk)]
    idle = mine.read(f"/api/sync?since={answer['cursor']}")
    assert (idle["nodes"], idle["edges"], idle["deleted"]) == ([], [], [])
    overwrite_node(node=first, content="first, edited")
    delete_nodes(owner=owner, node_ids=[second.pk])
    answer = mine.read(f"/api/sync?since={idle['cursor']}")
    assert (contents(answer), answer["deleted"]) == (["first, edited"], [str(second.pk)])


def test_what_is_only_ours_is_no_change(owner: User) -> None:
    mine = TokenClient(owner)
    one = node(owner)
    seen = mine.read("/api/sync")["cursor"]
    MemoryNode.objects.filter(pk=one.pk).update(indexed_version=1, hold=2)
    assert mine.read(f"/api/sync?since={seen}")["nodes"] == []


def test_a_change_made_before_the_answer_and_committed_after_it_is_not_missed(owner: User) -> None:
    mine = TokenClient(owner)
    written, may_commit = threading.Event(), threading.Event()

    def slowly() -> None:
        with transaction.atomic():
            node(owner, "early, committed late")
            written.set()
            may_commit.wait(10)
        connection.close()

    writer = threading.Thread(target=slowly)
    writer.start()
    assert written.wait(10)
    node(owner, "late, committed early")
    answer = mine.read("/api/sync")
    assert contents(answer) == ["late, committed early"]
    may_commit.set()
    writer.join()
    answer = mine.read(f"/api/sync?since={answer['cursor']}")
    assert contents(answer) == ["early, committed late"]


def test_a_long_answer_comes_in_pages_while_nodes_change_in_between(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giving, "AT_ONCE", 2)
    monkeypatch.setattr(giving._Page, "rows_left", 3)
    mine = TokenClient(owner)
    nodes = [node(owner, f"{number}") for number in range(10)]
    edges = [connect(source=a, target=b, kind="same_topic") for a, b in itertools.pairwise(nodes)]
    held: dict[str, str] = {}
    held_edges: set[str] = set()
    seen, pages = "", 0
    while True:
        answer = mine.read(f"/api/sync?since={seen}")
        held |= {one["id"]: one["content"] for one in answer["nodes"]}
        # No edge before its nodes.
        assert all({one["source"], one["target"]} <= set(held) for one in answer["edges"])
        held_edges |= {one["id"] for one in answer["edges"]}
        for gone in answer["deleted"]:
            held.pop(gone, None)
        seen = answer["cursor"]
        pages += 1
        if pages < 5:
            overwrite_node(node=nodes[pages], content=f"edited {pages}")
            nodes.append(node(owner, f"new {pages}"))
        if pages == 3:
            delete_nodes(owner=owner, node_ids=[nodes[9].pk])
        if not (answer["nodes"] or answer["edges"] or answer["deleted"]):
            break
        assert pages < 50
    standing = {str(one.pk): one.content for one in MemoryNode.objects.all()}
    assert held == standing
    assert held_edges >= {str(pk) for pk in MemoryEdge.objects.values_list("pk", flat=True)}
    assert len(edges) - 1 == MemoryEdge.objects.count()


def test_a_cursor_of_another_database_or_a_later_time_counts_as_nothing_seen(owner: User) -> None:
    mine = TokenClient(owner)
    node(owner)
    seen = mine.read("/api/sync")["cursor"]
    system, snapshot = seen.split("~")
    elsewhere = f"{int(system) + 1}~{snapshot}"
    end = int(snapshot.split(":")[1]) + 1_000_000
    later = f"{system}~{end}:{end}:"
    for given in (elsewhere, later):
        assert len(mine.read(f"/api/sync?since={given}")["nodes"]) == 1


@pytest.mark.parametrize(
    "given",
    [
        "x",
        "1",
        "1~",
        "1~2:1:",
        "1~1:5:9",
        "1~1:5:3,2",
        "1~0:0:",
        "1~1:2:~~n~00",
        "1~9999999999999999999:1:",
        "'",
        "١~١:٢:",
    ],
)
def test_what_is_no_cursor_is_refused(owner: User, given: str) -> None:
    with pytest.raises(BadCursor):
        begin(given)
    answer = TokenClient(owner).get("/api/sync", {"since": given})
    assert (answer.status_code, list(answer.json())) == (400, ["error"])


def test_a_cursor_is_written_as_it_is_read(db: None) -> None:
    now = begin("")
    within = cursor.Cursor(now.system, None, now.until, cursor.EDGES, uuid.uuid4())
    for one in (within, cursor.Cursor(now.system, now.until, now.until, cursor.NODES, uuid.uuid4())):
        assert begin(str(one)) == one
    assert begin(str(now)).since == now.until
