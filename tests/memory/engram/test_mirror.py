"""The mirror: what is remembered here stands there, equal and once, whatever the remote does meanwhile."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from memory.engram import breaker as breaker_module
from memory.engram import mirror, outbox
from memory.engram.wire import write_edge, write_node
from memory.models import MemoryEdge, MemoryNode, MirrorJob
from memory.services import (
    connect,
    delete_session_nodes,
    enqueue_node,
    overwrite_node,
    remember_turn,
    rewrite_history,
)
from tests.memory.engram.remote import RUBBISH, Engram, FaultProxy, answer, mostly_well


@pytest.fixture(autouse=True)
def there(proxy: FaultProxy, owner: User) -> None:
    """The remote is set, and its owner exists."""


def talk(owner: User, turns: int, session_id: uuid.UUID | None = None) -> uuid.UUID:
    session_id = session_id or uuid.uuid4()
    for index in range(turns):
        remember_turn(
            owner=owner,
            session_id=session_id,
            turn_index=index,
            q=f"question {index}",
            a="answer",
            created_at=timezone.now(),
            source="web",
        )
    return session_id


def knowledge(owner: User, **values: Any) -> MemoryNode:
    node = MemoryNode.objects.create(owner=owner, node_type="Knowledge", content="the attic", **values)
    enqueue_node(node)
    return node


def local_state(owner: User) -> tuple[dict[str, Any], dict[str, Any]]:
    nodes = MemoryNode.objects.filter(owner=owner)
    edges = MemoryEdge.objects.filter(owner=owner)
    return {str(node.pk): write_node(node) for node in nodes}, {
        str(edge.pk): write_edge(edge) for edge in edges
    }


def assert_mirrored(owner: User, engram: Engram) -> None:
    assert (engram.nodes, engram.edges) == local_state(owner)
    assert engram.doubled() == []


def states() -> list[str]:
    return list(MirrorJob.objects.order_by("id").values_list("state", flat=True))


def make_everything_due() -> None:
    """The time of every waiting period and lease passes."""
    MirrorJob.objects.waiting().update(due_at=timezone.now() - timedelta(seconds=1))


def send_all(rounds: int = 200) -> None:
    for _ in range(rounds):
        make_everything_due()
        mirror.send_due()
        if not MirrorJob.objects.waiting().exists():
            return
    raise AssertionError(f"{MirrorJob.objects.waiting().count()} jobs still wait after {rounds} rounds")


def test_turns_their_edges_and_the_history_stand_there_equal(owner: User, engram: Engram) -> None:
    talk(owner, 5)
    rewrite_history(owner=owner)
    mirror.send_due()
    assert len(engram.nodes) == 6
    assert len(engram.edges) == 4
    assert_mirrored(owner, engram)
    assert set(states()) == {"sent"}


def test_a_node_is_there_before_its_edges(owner: User, engram: Engram) -> None:
    talk(owner, 5)
    mirror.send_due()
    known: set[str] = set()
    for _, subject, _ in engram.log:
        if subject in engram.edges:
            assert {engram.edges[subject]["source"], engram.edges[subject]["target"]} <= known
        known.add(subject)


def test_the_newest_version_stands_there_and_overtaken_ones_are_not_sent(owner: User, engram: Engram) -> None:
    node = knowledge(owner)
    for number in range(5):
        overwrite_node(node=node, content=f"version {number}")
    mirror.send_due()
    assert engram.log == [("put", str(node.pk), 6)]
    assert_mirrored(owner, engram)


def test_an_edge_never_comes_before_a_node_that_was_changed_meanwhile(owner: User, engram: Engram) -> None:
    session_id = talk(owner, 2)
    first = MemoryNode.objects.get(session_id=session_id, turn_index=0)
    overwrite_node(node=first, content="another answer")
    mirror.send_due()
    assert set(states()) == {"sent"}
    assert_mirrored(owner, engram)


def test_forgetting_is_mirrored_and_what_was_not_yet_sent_never_is(owner: User, engram: Engram) -> None:
    kept, gone = talk(owner, 2), talk(owner, 2)
    mirror.send_due()
    never = talk(owner, 1)
    for session_id in (gone, never):
        delete_session_nodes(owner=owner, session_id=session_id)
    mirror.send_due()
    assert {node["session_id"] for node in engram.nodes.values()} == {str(kept)}
    assert not any(write[1] in engram.nodes for write in engram.log if write[0] == "delete")
    assert set(states()) == {"sent"}


def test_a_refusal_is_final_and_the_others_flow_on(owner: User, engram: Engram) -> None:
    lane = uuid.uuid4()
    nodes = [knowledge(owner, session_id=lane) for _ in range(4)]
    engram.refused = {str(nodes[1].pk)}
    mirror.send_due()
    assert states() == ["sent", "dead", "sent", "sent"]
    dead = MirrorJob.objects.dead().get()
    assert (dead.last_error, dead.tries) == ("refused: HTTP 422", 1)
    engram.refused = set()
    assert outbox.retry_all_dead() == 1
    mirror.send_due()
    assert_mirrored(owner, engram)


def test_a_wrong_token_kills_no_job(owner: User, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUBBISH, "401", lambda: answer(b"{}", status=401))
    proxy.choose = lambda: "401"
    for _ in range(5):
        knowledge(owner)
    mirror.send_due()
    assert states() == ["waiting"] * 5
    assert len(proxy.requests) == 1


def test_while_the_breaker_is_open_nothing_is_called_and_no_try_is_spent(
    owner: User, proxy: FaultProxy
) -> None:
    proxy.choose = lambda: "503"
    for _ in range(10):
        knowledge(owner)
    for _ in range(5):
        mirror.send_due()
    assert len(proxy.requests) == 3
    assert sorted(MirrorJob.objects.values_list("tries", flat=True)) == [0] * 7 + [1] * 3
    assert not MirrorJob.objects.exclude(claim=None).exists()


def test_when_the_remote_is_back_what_waited_goes_at_once(
    owner: User, proxy: FaultProxy, engram: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker_module, "OPEN_MS", 1)
    proxy.choose = lambda: "503"
    for _ in range(10):
        knowledge(owner)
    mirror.send_due()
    MirrorJob.objects.filter(tries=1).update(due_at=timezone.now() + timedelta(minutes=50), tries=12)
    proxy.choose = lambda: ""
    mirror.send_due()
    assert set(states()) == {"sent"}
    assert_mirrored(owner, engram)


def test_the_probe_asks_for_health_and_spends_no_jobs_try(
    owner: User, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker_module, "OPEN_MS", 1)
    proxy.choose = lambda: "503"
    knowledge(owner)
    for _ in range(3):
        make_everything_due()
        mirror.send_due()
    tries = MirrorJob.objects.get().tries
    make_everything_due()
    mirror.send_due()
    assert proxy.requests[-1][:2] == ("GET", "/health")
    assert MirrorJob.objects.get().tries == tries


def test_an_edge_waits_for_its_other_node(owner: User, engram: Engram, proxy: FaultProxy) -> None:
    source = knowledge(owner, session_id=uuid.uuid4())
    target = knowledge(owner, session_id=uuid.uuid4())
    connect(source=source, target=target, kind="supports")
    MirrorJob.objects.filter(subject_id=target.pk).update(due_at=timezone.now() + timedelta(minutes=1))
    mirror.send_due()
    assert (len(engram.nodes), len(engram.edges)) == (1, 0)
    assert MirrorJob.objects.get(operation="put_edge").tries == 0
    send_all()
    assert_mirrored(owner, engram)


def test_what_a_killed_sender_left_is_sent_again_and_stands_once(owner: User, engram: Engram) -> None:
    talk(owner, 4)
    mirror.send_due()
    MirrorJob.objects.update(state="waiting", claim=uuid.uuid4(), due_at=timezone.now())
    mirror.send_due()
    assert set(states()) == {"sent"}
    assert_mirrored(owner, engram)


def test_no_sender_begins_beside_two_others(owner: User, proxy: FaultProxy) -> None:
    knowledge(owner)
    with mirror._places, mirror._places:
        assert mirror.send_due() == 0
    assert mirror.send_due() == 1


def test_without_a_remote_nothing_is_looked_at(settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    assert mirror.send_due() == 0
    assert mirror.tell_what_happened() == 0


HARMLESS = ["slow", "duplicate", "reorder", "cut after", "503 after", "html after", "cut", "503", "object"]


@pytest.mark.parametrize("seed", range(3))
def test_through_any_mixture_of_faults_nothing_is_lost_or_doubled(
    seed: int, owner: User, proxy: FaultProxy, engram: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker_module, "OPEN_MS", 0)
    proxy.choose = mostly_well(seed, HARMLESS, 0.3)
    sessions = [talk(owner, 6) for _ in range(4)]
    mirror.send_due(seconds=1)
    for node in MemoryNode.objects.filter(owner=owner, session_id=sessions[0]):
        overwrite_node(node=node, content="another answer")
    delete_session_nodes(owner=owner, session_id=sessions[1])
    before = local_state(owner)
    send_all()
    # What was held back on the way comes in last of all.
    proxy.choose = lambda: ""
    knowledge(owner)
    send_all()
    assert engram.nodes.keys() == local_state(owner)[0].keys()
    assert engram.nodes.items() >= before[0].items()
    assert engram.doubled() == []
    assert local_state(owner)[0].items() >= before[0].items()


@pytest.mark.parametrize("fault", [name for name in RUBBISH if name not in ("gzip bomb", "a million nodes")])
def test_rubbish_confirms_nothing_and_changes_nothing_here(
    fault: str, owner: User, proxy: FaultProxy, engram: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker_module, "OPEN_MS", 0)
    talk(owner, 2)
    before = local_state(owner)
    proxy.choose = lambda: fault
    for _ in range(2):
        make_everything_due()
        mirror.send_due()
    assert local_state(owner) == before
    assert "sent" not in states()
    proxy.choose = lambda: ""
    send_all()
    assert_mirrored(owner, engram)
