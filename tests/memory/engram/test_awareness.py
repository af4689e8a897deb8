"""What happened here reaches the remote and the operator: once, in batches, without anybody's words."""

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from pytest_django import Settings

from memory.engram import awareness, background, breaker, mirror
from memory.engram.awareness import Happening, note
from memory.engram.breaker import valkey
from tests.memory.engram.conftest import Events
from tests.memory.engram.remote import RUBBISH, Engram, FaultProxy, answer
from tests.stack import wait_for


def kept() -> list[str]:
    return [event.sentence for event in awareness.recent_events(100)]


def test_what_happened_is_told_once_and_in_batches(engram: Engram, proxy: FaultProxy, events: Events) -> None:
    for number in range(60):
        events.add(Happening.TURN_COMPLETED, index=number)
    proxy.choose = iter(["503 after", "", ""]).__next__
    assert mirror.tell_what_happened() == 0
    events.add(Happening.BELL_RUNG, level="hard")
    assert mirror.tell_what_happened() == 50
    assert mirror.tell_what_happened() == 11
    assert mirror.tell_what_happened() == 0
    assert len(engram.events) == 2
    told = "\n".join(engram.events.values()).splitlines()
    assert len(told) == 61
    assert told[-1].endswith("bell rung: level hard")
    assert all(event.posted for event in awareness.recent_events())


def test_events_are_dropped_after_a_bound_instead_of_piling_up(
    engram: Engram, proxy: FaultProxy, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST_EVENTS", 40)
    monkeypatch.setattr(breaker, "OPEN_MS", 0)
    proxy.choose = lambda: "503"
    for number in range(100):
        events.add(Happening.TURN_COMPLETED, index=number)
        if number % 30 == 0:
            mirror.tell_what_happened()
    proxy.choose = lambda: ""
    for _ in range(4):
        mirror.tell_what_happened()
    told = "\n".join(engram.events.values()).splitlines()
    indexes = [int(line.rpartition(" ")[2]) for line in told if "turn completed" in line]
    assert 0 < len(indexes) <= 40
    assert indexes == list(range(100 - len(indexes), 100))


def test_events_that_the_remote_refuses_do_not_hold_back_the_others(
    engram: Engram, proxy: FaultProxy, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUBBISH, "413", lambda: answer(b"{}", status=413))
    events.add(Happening.SYNC_DONE, nodes=1)
    proxy.choose = lambda: "413"
    mirror.tell_what_happened()
    events.add(Happening.SYNC_DONE, nodes=2)
    proxy.choose = lambda: ""
    mirror.tell_what_happened()
    assert [line.split(" ", 1)[1] for line in engram.events.values()] == ["sync done: nodes 2"]


def test_an_event_is_carried_in_the_background(proxy: FaultProxy, events: Events) -> None:
    note(Happening.BREAKER_OPENED, after="unreachable")
    wait_for(kept, what="the event")
    assert kept() == ["breaker opened: after unreachable"]


def test_what_concerns_somebody_else_is_not_kept(
    owner: User, other: User, proxy: FaultProxy, events: Events
) -> None:
    note(Happening.BELL_RUNG, owner_id=other.pk, level="soft")
    note(Happening.TURN_COMPLETED, owner_id=owner.pk)
    wait_for(kept, what="the event")
    assert kept() == ["turn completed"]


def test_without_a_remote_nothing_is_kept(settings: Settings, events: Events) -> None:
    settings.ENGRAM_URL = ""
    note(Happening.SYNC_DONE)
    assert not background._events


def test_while_valkey_is_away_the_newest_events_wait_here(
    settings: Settings, proxy: FaultProxy, events: Events
) -> None:
    here = settings.REDIS_URL
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    for number in range(background.MOST_EVENTS + 5):
        note(Happening.TURN_COMPLETED, index=number)
    assert len(background._events) == background.MOST_EVENTS
    settings.REDIS_URL = here
    note(Happening.TURN_COMPLETED, index=-1)
    wait_for(lambda: not background._events, what="the events to be carried")
    assert kept()[0] == "turn completed: index -1"


def test_a_change_is_noted_and_the_first_value_is_none(proxy: FaultProxy, events: Events) -> None:
    valkey(django_settings.REDIS_URL).delete("neuron:engram:last:model")
    for model in ("a", "a", "b", "b"):
        awareness.note_change("model", model, Happening.MODEL_CHANGED)
    wait_for(kept, what="the event")
    assert kept() == ["model changed: model b"]
