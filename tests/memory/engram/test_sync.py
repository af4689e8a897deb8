"""Sync in: what is newer is taken, what is ours and unsent stays, and rubbish changes nothing."""

import hashlib
import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from conversations.services import create_session
from conversations.window import passages_of, recent_conversations
from memory.engram.screening import screen_held
from memory.engram.sync import MOST_PAGES, Synced, sync_engram
from memory.indexing import index_pending
from memory.models import EngramSync, MemoryEdge, MemoryNode, MirrorJob, Tombstone
from memory.retrieval import recall
from memory.services import delete_nodes, overwrite_node
from tests.memory.engram.protocol import LONG_AGO, a_node, an_edge
from tests.memory.engram.remote import BREAKS, RUBBISH, Engram, FaultProxy, answer
from tests.memory.recalling import remember

LATER = LONG_AGO.replace(hour=11).isoformat()
TABLES = (
    "memory_memorynode",
    "memory_memoryedge",
    "memory_tombstone",
    "memory_mirrorjob",
    "memory_utterance",
)


def fingerprint() -> str:
    """A hash of all that memory holds."""
    digest = hashlib.sha256()
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t ORDER BY 1")
            digest.update(repr(cursor.fetchall()).encode())
        cursor.execute("SELECT cursor, nodes_taken FROM memory_engramsync")
        digest.update(repr(cursor.fetchall()).encode())
    return digest.hexdigest()


def hold(engram: Engram, *nodes: dict[str, Any], edges: tuple[dict[str, Any], ...] = ()) -> None:
    """Put these into the remote, as another client of the same person does."""
    engram.nodes |= {node["id"]: node for node in nodes}
    engram.edges |= {edge["id"]: edge for edge in edges}
    engram.log.append(("put", nodes[0]["id"] if nodes else "", len(engram.log)))


def synced() -> Synced:
    result = sync_engram()
    assert result.error == ""
    return result


def test_what_the_remote_has_comes_in_and_is_found(owner: User, engram: Engram, proxy: FaultProxy) -> None:
    first = a_node(turn_index=0)
    second = a_node(
        session_id=first["session_id"], turn_index=1, q="Who swims in it?", a="Otters.", occurred_at=LATER
    )
    hold(engram, first, second)
    taken = synced().taken
    assert (taken.nodes, taken.edges, taken.deleted) == (2, 0, 0)
    # Connected though the remote sent no edge.
    edge = MemoryEdge.objects.get()
    assert (str(edge.source_id), str(edge.target_id), edge.kind) == (second["id"], first["id"], "follows")
    screen_held()
    index_pending()
    assert str(recall(owner, "Who swims in the lake?")[0].node.pk) == second["id"]
    assert recent_conversations(owner=owner)[0]["a"] == "Otters."
    assert synced().taken.changed == 0
    assert not MirrorJob.objects.exists()


def test_newer_wins_by_version_and_time_of_change(owner: User, engram: Engram, proxy: FaultProxy) -> None:
    node = a_node(version=2)
    hold(engram, node)
    synced()
    for change, content in (
        ({"version": 1, "content": "older"}, node["content"]),
        ({"version": 2, "content": "same version, later", "updated_at": LATER}, "same version, later"),
        ({"version": 2, "content": "same version, earlier"}, "same version, later"),
        ({"version": 3, "content": "newer"}, "newer"),
    ):
        hold(engram, {**node, **change})
        synced()
        assert MemoryNode.objects.get(pk=node["id"]).content == content


def test_a_change_of_ours_that_is_not_sent_stays_and_will_be_sent_as_the_newer(
    owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    node = a_node()
    hold(engram, node)
    synced()
    ours = overwrite_node(node=MemoryNode.objects.get(pk=node["id"]), content="ours")
    assert MirrorJob.objects.waiting().count() == 1
    hold(engram, {**node, "version": 7, "content": "theirs"})
    assert synced().taken.kept == 1
    ours.refresh_from_db()
    assert (ours.content, ours.version) == ("ours", 8)
    assert MirrorJob.objects.filter(subject_id=ours.pk, subject_version=8).exists()
    MirrorJob.objects.update(state=MirrorJob.State.SENT)
    hold(engram, {**node, "version": 9, "content": "theirs, later"})
    synced()
    ours.refresh_from_db()
    assert ours.content == "theirs, later"


def test_deletions_apply_and_what_we_deleted_is_not_brought_back(
    owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    kept, gone, ours = a_node(), a_node(), a_node()
    hold(engram, kept, gone, ours)
    synced()
    engram._delete(gone["id"], 1)
    delete_nodes(owner=owner, node_ids=[uuid.UUID(ours["id"])])
    assert synced().taken.deleted == 1
    assert [str(pk) for pk in MemoryNode.objects.values_list("pk", flat=True)] == [kept["id"]]
    MirrorJob.objects.update(state=MirrorJob.State.SENT)
    synced()
    assert MemoryNode.objects.count() == 1
    # Only a version after our deletion is somebody's wish to have it again.
    hold(engram, {**ours, "version": 2})
    synced()
    assert MemoryNode.objects.count() == 2
    assert not Tombstone.objects.filter(node_id=ours["id"]).exists()


def test_a_deletion_there_does_not_take_what_we_changed_since(
    owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    node = a_node()
    hold(engram, node)
    synced()
    overwrite_node(node=MemoryNode.objects.get(pk=node["id"]), content="ours")
    engram._delete(node["id"], 1)
    synced()
    assert MemoryNode.objects.get().content == "ours"


def test_duplicates_of_the_history_fold_into_one(owner: User, engram: Engram, proxy: FaultProxy) -> None:
    for hour in (10, 12, 11):
        moment = LONG_AGO.replace(hour=hour).isoformat()
        values = {"occurred_at": moment, "updated_at": moment, "session_id": None, "turn_index": None}
        hold(engram, a_node(node_type="History", label="conv:history", content=f"{hour}", **values))
    synced()
    assert [node.content for node in MemoryNode.objects.of_type("History")] == ["12"]
    synced()
    assert MemoryNode.objects.of_type("History").count() == 1


def test_old_nodes_of_plain_text_are_read_as_question_and_answer(
    owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    old = a_node(
        content="Q: Where do the herons nest? A: On the island.", payload={}, session_id=None, turn_index=None
    )
    hold(engram, old)
    synced()
    screen_held()
    index_pending()
    [found] = recent_conversations(owner=owner)
    assert (found["q"], found["a"]) == ("Where do the herons nest?", "On the island.")
    [passage] = passages_of([hit.node for hit in recall(owner, "herons nest")][:1], "recalled")
    assert (passage.q, passage.a) == (found["q"], found["a"])


def test_bells_and_state_events_stay_where_they_were_written(
    owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    hold(engram, a_node(node_type="BellEvent"), a_node(node_type="StateEvent"))
    assert synced().taken.changed == 0
    assert not MemoryNode.objects.exists()


def test_a_session_that_is_not_here_or_not_theirs_lends_neither_link_nor_title(
    owner: User, other: User, engram: Engram, proxy: FaultProxy
) -> None:
    private = create_session(owner=other, title="A private matter")
    hold(engram, a_node(), a_node(session_id=str(private.pk)))
    synced()
    screen_held()
    passages = passages_of(list(MemoryNode.objects.for_owner(owner)), "recalled")
    assert len(passages) == 2
    for passage in passages:
        assert "private" not in passage.title
        assert passage.link == ""


def test_only_one_persons_memory_is_synced(
    owner: User, other: User, engram: Engram, proxy: FaultProxy, settings: Settings
) -> None:
    settings.ENGRAM_OWNER = other.username
    hers = remember(owner, ("Where is the boat?", "In the shed."))
    taken_id = a_node(id=str(hers[0].pk), version=9, content="theft")
    hold(engram, a_node(), taken_id)
    taken = synced().taken
    assert (taken.nodes, taken.refused) == (1, 1)
    hers[0].refresh_from_db()
    assert hers[0].content != "theft"
    assert MemoryNode.objects.owned_by(owner).count() == 1
    assert MemoryNode.objects.owned_by(other).count() == 1


def bad_page(**changes: Any) -> bytes:
    node = a_node()
    page = {"nodes": [a_node(), node], "edges": [], "deleted": [], "cursor": "x", **changes}
    return answer(json.dumps(page).encode())


ITSELF = {"id": str(uuid.UUID(int=1))}
BAD_PAGES: dict[str, Callable[[], bytes]] = {
    "one bad node of two": lambda: bad_page(nodes=[a_node(), a_node(salience=2)]),
    "no id": lambda: bad_page(nodes=[a_node(id=None)]),
    "the same id twice": lambda: bad_page(nodes=[a_node(id=str(uuid.UUID(int=1)))] * 2),
    "a naive time": lambda: bad_page(nodes=[a_node(updated_at="2026-01-01T00:00:00")]),
    "version nought": lambda: bad_page(nodes=[a_node(version=0)]),
    "an edge to itself": lambda: bad_page(edges=[an_edge(ITSELF, ITSELF)]),
    "no cursor": lambda: bad_page(cursor=""),
    "no deletions": lambda: bad_page(deleted=None),
    "a deletion of a name": lambda: bad_page(deleted=["everything"]),
    "nodes as an object": lambda: bad_page(nodes={}),
}


@pytest.mark.parametrize("fault", [*RUBBISH, *(one for one in BREAKS if one != "drip body")])
def test_rubbish_changes_nothing(fault: str, owner: User, engram: Engram, proxy: FaultProxy) -> None:
    unchanged_after(lambda: fault, owner, engram, proxy)


@pytest.mark.parametrize("page", BAD_PAGES)
def test_a_page_with_anything_wrong_in_it_changes_nothing(
    page: str, owner: User, engram: Engram, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUBBISH, "page", BAD_PAGES[page])
    unchanged_after(lambda: "page", owner, engram, proxy)


def unchanged_after(choose: Callable[[], str], owner: User, engram: Engram, proxy: FaultProxy) -> None:
    remember(owner, ("Where is the boat?", "In the shed."))
    hold(engram, a_node())
    synced()
    hold(engram, a_node())
    before = fingerprint()
    proxy.choose = choose
    failed = sync_engram()
    assert "Nothing was changed" in failed.sentence
    assert fingerprint() == before
    state = EngramSync.objects.get()
    assert state.last_error
    assert state.lease_until is None
    proxy.choose = lambda: ""
    assert synced().taken.nodes == 1


def test_a_second_sync_waits_for_its_turn_and_a_dead_one_is_taken_over(
    owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    hold(engram, a_node())
    EngramSync.objects.create(owner=owner, lease_until=timezone.now() + timedelta(minutes=1))
    assert sync_engram().is_off
    assert not MemoryNode.objects.exists()
    EngramSync.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    synced()
    assert MemoryNode.objects.count() == 1


def test_a_cursor_that_the_remote_refuses_or_another_remote_gave_is_dropped(
    owner: User, engram: Engram, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(engram, a_node())
    EngramSync.objects.create(owner=owner, address="http://elsewhere", cursor="theirs")
    synced()
    assert "/api/sync?since=" in [target for _, target, _ in proxy.requests]
    asked: list[str] = []
    monkeypatch.setitem(RUBBISH, "refusal", lambda: answer(b'{"error": "bad cursor"}', status=400))
    proxy.choose = lambda: "refusal" if not asked.append("") and len(asked) == 1 else ""
    synced()
    assert len(asked) > 1


def test_a_remote_without_end_is_left(
    owner: User, engram: Engram, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.engram.sync.MOST_PAGES", 5)
    assert MOST_PAGES > 5
    monkeypatch.setitem(RUBBISH, "more", lambda: bad_page(nodes=[a_node()], cursor=uuid.uuid4().hex))
    proxy.choose = lambda: "more"
    assert synced().taken.nodes == 5


def test_the_command_says_what_came_in_and_fails_where_it_could_not(
    owner: User, engram: Engram, proxy: FaultProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(engram, a_node())
    call_command("sync_engram")
    assert "Came in: 1 nodes" in capsys.readouterr().out
    proxy.choose = lambda: "503"
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("sync_engram")


def test_without_a_remote_there_is_nothing_to_do(owner: User, settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    assert sync_engram().sentence == "No remote engram is set."
