"""Boot: an empty engram is loaded from the remote, whole or not at all; a full one is left alone."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from memory.engram import boot
from memory.engram.boot import boot_engram
from memory.models import EngramSync, MemoryEdge, MemoryNode
from tests.memory.engram.protocol import a_node, an_edge
from tests.memory.engram.remote import BREAKS, RUBBISH, Engram, FaultProxy, answer
from tests.memory.engram.test_sync import BAD_PAGES, fingerprint, hold
from tests.memory.recalling import remember


class Pauses:
    """A clock that only counts."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The breaker of a boot is shut again after half a second, which nobody here waits for."""
    monkeypatch.setattr(boot, "SHUT_AGAIN_MS", 0)


def test_an_empty_engram_is_loaded(owner: User, engram: Engram, proxy: FaultProxy) -> None:
    first = a_node(turn_index=0)
    second = a_node(session_id=first["session_id"], turn_index=1)
    hold(engram, first, second, edges=(an_edge(second, first),))
    booted = boot_engram()
    assert (booted.nodes, booted.edges, booted.degraded) == (2, 1, False)
    assert MemoryEdge.objects.count() == 1
    assert EngramSync.objects.get().boot == booted.sentence


def test_one_that_holds_more_than_fifty_nodes_is_used_as_it_is(
    owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    hold(engram, a_node())
    remember(owner, *[(f"Question {number}", "Answer") for number in range(50)])
    assert boot_engram().nodes == 1
    assert MemoryNode.objects.count() == 51
    assert boot_engram().nodes == 0
    assert proxy.requests[-1][1] == "/api/edges"


def test_health_is_waited_for_once_a_second(owner: User, engram: Engram, proxy: FaultProxy) -> None:
    hold(engram, a_node())
    pauses = Pauses()
    proxy.choose = lambda: "503" if len(pauses.asked) < 7 else ""
    assert boot_engram(pause=pauses).nodes == 1
    assert pauses.asked == [1.0] * 7


def test_a_remote_that_never_gets_well_degrades_the_start(
    owner: User, engram: Engram, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = Pauses()
    proxy.choose = lambda: "503"
    booted = boot_engram(pause=pauses)
    assert booted.degraded
    assert booted.sentence.startswith("Degraded:")
    assert len(pauses.asked) in (59, 60)
    assert EngramSync.objects.get().boot_failed


@pytest.mark.parametrize(
    "fault", [*RUBBISH, *(one for one in BREAKS if one not in ("drip body", "hang", "drip head"))]
)
def test_rubbish_is_asked_for_three_times_and_changes_nothing(
    fault: str, owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    rejects(lambda path: fault if path.startswith("/api/nodes") else "", owner, engram, proxy)


@pytest.mark.parametrize("fault", [one for one in RUBBISH if one != "array"])
def test_rubbish_for_edges_changes_nothing_either(
    fault: str, owner: User, engram: Engram, proxy: FaultProxy
) -> None:
    rejects(lambda path: fault if path.startswith("/api/edges") else "", owner, engram, proxy)


@pytest.mark.parametrize(
    "page", ["one bad node of two", "no id", "the same id twice", "a naive time", "version nought"]
)
def test_one_bad_node_spoils_the_whole(
    page: str, owner: User, engram: Engram, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = json.loads(BAD_PAGES[page]().split(b"\r\n\r\n", 1)[1])["nodes"]
    monkeypatch.setitem(RUBBISH, "nodes", lambda: answer(json.dumps(nodes).encode()))
    rejects(lambda path: "nodes" if path.startswith("/api/nodes") else "", owner, engram, proxy)


def rejects(choose: Any, owner: User, engram: Engram, proxy: FaultProxy) -> None:
    remember(owner, ("Where is the boat?", "In the shed."))
    hold(engram, a_node())
    EngramSync.objects.get_or_create(owner=owner)
    before = fingerprint()
    answered = len(proxy.requests)
    pauses = Pauses()
    # The request is not written down yet when the fault is chosen: health comes first.
    proxy.choose = Choosing(choose, proxy)
    booted = boot_engram(pause=pauses)
    assert booted.degraded
    assert pauses.asked == [2.0, 2.0]
    assert fingerprint() == before
    assert len(proxy.requests) > answered


class Choosing:
    """The fault by the path, which the proxy does not tell: calls come in a fixed order."""

    def __init__(self, choose: Any, proxy: FaultProxy) -> None:
        self.choose = choose
        self.spoils_nodes = bool(choose("/api/nodes"))
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls == 1:
            return ""
        if self.spoils_nodes:
            return str(self.choose("/api/nodes"))
        return "" if self.calls % 2 == 0 else str(self.choose("/api/edges"))


def test_the_command_fails_where_it_is_degraded(
    owner: User,
    engram: Engram,
    proxy: FaultProxy,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boot, "HEALTH_SECONDS", 1)
    proxy.choose = lambda: "503"
    with pytest.raises(SystemExit):
        call_command("boot_engram")
    assert "Degraded" in capsys.readouterr().out


def test_before_anybody_lives_here_there_is_nobody_to_load_for(db: None, proxy: FaultProxy) -> None:
    assert "Nobody lives here yet" in boot_engram().sentence
    assert proxy.requests == []


def test_without_a_remote_nothing_is_said_to_be_wrong(owner: User, settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    assert not boot_engram().degraded
