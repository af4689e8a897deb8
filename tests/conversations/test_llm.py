"""A model's answer as it comes: deadlines, stopping, retries, and what is no answer at all."""

import importlib
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pytest_django import Settings

from conversations import cycle, llm
from conversations.llm.exchange import _retry_after
from conversations.llm.providers import ModelSettingError, _first_served, describe, described
from conversations.models import Session, Turn
from tests.conversations.talk import say
from tests.scripted_provider import Script, ScriptedProvider

stream = importlib.import_module("conversations.llm.stream")


def test_a_worker_that_is_told_to_go_closes_the_providers_socket(
    provider: ScriptedProvider, session: Session, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NEURON_MODEL_TIMEOUT_S = 20
    monkeypatch.setattr(cycle, "PROGRESS_SECONDS", 0.1)
    provider.script(Script(text="One. Two. ", hang_after=20))

    def tell_once_it_is_asked() -> None:
        while not provider.requests:
            time.sleep(0.02)
        time.sleep(0.3)
        cycle.shutting_down.set()

    telling = threading.Thread(target=tell_once_it_is_asked, daemon=True)
    telling.start()
    try:
        turn = say(session, "Hello there")
    finally:
        telling.join()
        cycle.shutting_down.clear()
    assert (turn.status, turn.error, turn.a.strip()) == ("interrupted", "worker_stopped", "One.")
    assert client_left(provider)


def test_a_person_who_stops_closes_the_providers_socket_and_keeps_what_came(
    provider: ScriptedProvider, session: Session, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NEURON_MODEL_TIMEOUT_S = 20
    monkeypatch.setattr(cycle, "PROGRESS_SECONDS", 0.1)
    provider.script(Script(text="One. Two. ", hang_after=20))

    keep = cycle.services.keep_progress

    def stop_and_keep(*, turn: Turn, text: str) -> bool | None:
        """The person presses Stop as soon as there is text."""
        if text:
            cycle.services.request_stop(turn=turn)
        return keep(turn=turn, text=text)

    monkeypatch.setattr(cycle.services, "keep_progress", stop_and_keep)
    turn = say(session, "Hello there")
    assert (turn.status, turn.a.strip()) == (Turn.Status.STOPPED, "One.")
    assert client_left(provider)


def client_left(provider: ScriptedProvider) -> bool:
    """Within 2 seconds the provider sees its client gone."""
    until = time.monotonic() + 2
    while not provider.closed_by_client and time.monotonic() < until:
        time.sleep(0.02)
    return bool(provider.closed_by_client)


def test_a_provider_that_drips_meets_the_total_deadline(
    provider: ScriptedProvider, session: Session, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NEURON_MODEL_TIMEOUT_S = 2
    monkeypatch.setattr(stream, "TOTAL_SECONDS_PER_SILENCE", 1)
    provider.script(Script(text="A drop. " * 100, piece=8, pause=0.1))
    turn = say(session, "Hello there")
    assert (turn.status, turn.error) == ("interrupted", "timeout")
    assert turn.a.startswith("A drop. ")
    assert client_left(provider)


@pytest.mark.parametrize(
    "script",
    [
        Script(body="<html>hello</html>", headers={"Content-Type": "text/html"}),
        Script(body='{"choices": 7}'),
        Script(body="data: {nonsense\n\n", headers={"Content-Type": "text/event-stream"}),
    ],
)
def test_an_answer_that_is_none_is_called_rubbish(
    provider: ScriptedProvider, session: Session, script: Script
) -> None:
    provider.default = script
    turn = say(session, "Hello there")
    assert (turn.status, turn.error) == ("failed", "rubbish")


def test_a_provider_is_left_alone_as_long_as_it_asks(provider: ScriptedProvider, session: Session) -> None:
    provider.script(Script(status=429, headers={"Retry-After": "0.3"}), Script(text="Here I am."))
    started = time.monotonic()
    assert say(session, "Hello there").a == "Here I am."
    assert time.monotonic() - started >= 0.3


def test_a_provider_that_asks_for_minutes_is_not_asked_again(
    provider: ScriptedProvider, session: Session
) -> None:
    provider.script(Script(status=429, headers={"Retry-After": "120"}))
    assert say(session, "Hello there").error == "rate_limited"
    assert len(provider.requests) == 1


def test_a_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    assert _retry_after({"retry-after": "3"}) == 3
    assert _retry_after({}) is None
    assert _retry_after({"retry-after": "soon"}) is None
    soon = _retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=30))})
    assert soon is not None
    assert 20 < soon <= 30


@pytest.mark.parametrize("setting", ["lama", "lama:3", "ollama:", ":x"])
def test_a_setting_that_is_none_says_what_it_may_be(settings: Settings, setting: str) -> None:
    settings.NEURON_MODEL = setting
    with pytest.raises(ModelSettingError, match="ollama:NAME"):
        describe()
    assert "ollama:NAME" in described().sentence
    assert not described().configured


def test_an_address_without_a_server_says_what_is_missing(settings: Settings) -> None:
    _first_served.cache_clear()
    settings.NEURON_MODEL = ""
    settings.NEURON_MODEL_URL = "http://127.0.0.1:9/v1"
    assert "NEURON_MODEL=openai:NAME" in llm.described().sentence


def test_the_provider_gets_the_instructions_the_history_and_the_message_in_order(
    provider: ScriptedProvider, session: Session
) -> None:
    """Messages go past the client library's look at each: whole, once, and beside its own fields."""
    provider.script(Script(text="Good morning."), Script(text="It does."))
    say(session, "Hello there")
    say(session, "The coffee smells good")
    request = provider.requests[-1]
    assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in request["messages"][1:]] == [
        "Hello there",
        "Good morning.",
        "The coffee smells good",
    ]
    assert (request["model"], request["stream"]) == ("scripted", True)
