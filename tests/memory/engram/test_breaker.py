"""The breaker: when it opens, what passes while it is open, and that clocks do not matter."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from django.conf import settings as django_settings

from memory.engram.breaker import Breaker, valkey
from memory.engram.client import EngramClient
from memory.engram.errors import EngramError, Kind
from tests.memory.engram.remote import RUBBISH, FaultProxy, answer
from tests.stack import ROOT, wait_for


class Ticks:
    """A machine's clock that stands until it is moved."""

    def __init__(self, boot: str = "this machine") -> None:
        self.boot, self.now = boot, 5_000

    def __call__(self) -> tuple[str, int]:
        return self.boot, self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def make(own_breaker: str) -> Callable[[Ticks], Breaker]:
    return lambda ticks: Breaker(valkey(django_settings.REDIS_URL), key=own_breaker, clock=ticks)


Make = Callable[[Ticks], Breaker]


def fail(breaker: Breaker) -> bool:
    return breaker.failed(breaker.ask(), "unreachable: test")


def test_it_opens_on_the_third_failure_in_a_row(make: Make, ticks: Ticks) -> None:
    breaker = make(ticks)
    assert [fail(breaker) for _ in range(3)] == [False, False, True]
    with pytest.raises(EngramError) as error:
        breaker.ask()
    assert error.value.kind is Kind.NOT_TRIED
    assert not error.value.is_failure


def test_a_success_between_failures_clears_the_count(make: Make, ticks: Ticks) -> None:
    breaker = make(ticks)
    for _ in range(50):
        assert not fail(breaker)
        assert not fail(breaker)
        assert not breaker.succeeded(breaker.ask())
    assert breaker.look().openings == 0


def test_one_probe_is_let_through_after_thirty_seconds_and_not_before(make: Make, ticks: Ticks) -> None:
    breaker = make(ticks)
    for _ in range(3):
        fail(breaker)
    ticks.now += 29_999
    with pytest.raises(EngramError):
        breaker.ask()
    ticks.now += 1
    assert breaker.ask().is_probe
    with pytest.raises(EngramError):
        make(ticks).ask()


def test_a_probe_that_succeeds_closes_and_clears(make: Make, ticks: Ticks) -> None:
    breaker = make(ticks)
    for _ in range(3):
        fail(breaker)
    ticks.now += 30_000
    assert breaker.succeeded(breaker.ask())
    assert breaker.look().name == "closed"
    assert not fail(breaker)
    assert not fail(breaker)


def test_a_probe_that_fails_opens_for_another_thirty_seconds(make: Make, ticks: Ticks) -> None:
    breaker = make(ticks)
    for _ in range(3):
        fail(breaker)
    ticks.now += 30_000
    probe = breaker.ask()
    ticks.now += 9_000
    assert breaker.failed(probe, "unreachable: again")
    ticks.now += 29_999
    with pytest.raises(EngramError):
        breaker.ask()
    ticks.now += 1
    assert breaker.ask().is_probe


def test_a_probe_whose_process_died_is_followed_by_another(make: Make, ticks: Ticks) -> None:
    breaker = make(ticks)
    for _ in range(3):
        fail(breaker)
    ticks.now += 30_000
    breaker.ask()
    ticks.now += 30_000
    assert breaker.ask().is_probe


def test_calls_that_began_before_say_nothing_about_the_state_after(make: Make, ticks: Ticks) -> None:
    breaker = make(ticks)
    slow = [breaker.ask() for _ in range(5)]
    for _ in range(3):
        fail(breaker)
    assert not breaker.succeeded(slow[0])
    assert breaker.look().is_open
    ticks.now += 29_000
    assert not breaker.failed(slow[1], "unreachable: late")
    ticks.now += 1_000
    assert breaker.succeeded(breaker.ask())
    assert [breaker.failed(late, "unreachable: late") for late in slow[2:]] == [False] * 3
    assert not breaker.look().is_open


@pytest.mark.parametrize("hour", [3_600_000, -3_600_000])
def test_a_clock_that_jumps_an_hour_changes_nothing(
    hour: int, make: Make, ticks: Ticks, own_breaker: str
) -> None:
    """The clock of Valkey's server seems to have jumped when the moment it noted lies an hour off."""
    breaker = make(ticks)
    for _ in range(3):
        fail(breaker)
    valkey(django_settings.REDIS_URL).hincrby(own_breaker, "since", -hour)
    ticks.now += 29_999
    with pytest.raises(EngramError):
        breaker.ask()
    ticks.now += 1
    assert breaker.ask().is_probe


def test_another_machine_waits_by_the_servers_clock(make: Make, ticks: Ticks, own_breaker: str) -> None:
    here, there = make(ticks), make(Ticks("another machine"))
    for _ in range(3):
        fail(here)
    with pytest.raises(EngramError):
        there.ask()
    valkey(django_settings.REDIS_URL).hincrby(own_breaker, "since", -30_000)
    assert there.ask().is_probe


def test_a_server_whose_clock_was_set_back_holds_nobody_for_longer_than_thirty_seconds(
    make: Make, ticks: Ticks, own_breaker: str
) -> None:
    here, there = make(ticks), make(Ticks("another machine"))
    for _ in range(3):
        fail(here)
    valkey(django_settings.REDIS_URL).hincrby(own_breaker, "since", 3_600_000)
    assert there.look().seconds_left <= 30


def test_without_valkey_nothing_is_called() -> None:
    breaker = Breaker(valkey("redis://127.0.0.1:1/0"), key="k")
    with pytest.raises(EngramError, match="cannot be asked"):
        breaker.ask()


@pytest.mark.processes
def test_four_waiting_processes_get_one_probe_together(own_breaker: str) -> None:
    breaker = Breaker(valkey(django_settings.REDIS_URL), key=own_breaker, open_ms=1)
    for _ in range(3):
        fail(breaker)
    command = [sys.executable, "-m", "tests.memory.engram.asking", own_breaker, "600000"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "neuron_site.settings"}
    pipe = subprocess.PIPE
    valkey(django_settings.REDIS_URL).hset(own_breaker, "wait", "600000")
    asking = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)
        for _ in range(4)
    ]
    for process in asking:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
    valkey(django_settings.REDIS_URL).hset(own_breaker, "wait", "0")
    wait_for(lambda: breaker.look().probes, what="a probe")
    time.sleep(0.3)
    assert sum(int(process.communicate("")[0]) for process in asking) == 1


def test_calls_stop_at_the_third_failure_and_others_are_spared(proxy: FaultProxy, own_breaker: str) -> None:
    proxy.choose = lambda: "503"
    for _ in range(10):
        with EngramClient.from_settings() as client, pytest.raises(EngramError):
            client.health()
    assert len(proxy.requests) == 3


def test_a_refusal_is_an_answer_and_no_failure(
    proxy: FaultProxy, own_breaker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUBBISH, "404", lambda: answer(b"{}", status=404))
    proxy.choose = lambda: "404"
    for _ in range(10):
        with EngramClient.from_settings() as client, pytest.raises(EngramError, match="refused"):
            client.nodes()
    assert len(proxy.requests) == 10
