"""A model's reply for plain code: one thread, one loop and its connections from one reply to the next."""

import threading
from typing import Any

import pytest
from pytest_django import Settings

from conversations.imprint import Draft
from conversations.llm import ModelFailure, TextDelta, listen
from tests.scripted_provider import Script, ScriptedProvider

DRAFT = Draft(system="Be kind.", history=(), message="Hello", with_tools=True)


def reply(*functions: Any) -> str:
    return "".join(event.text for event in listen(DRAFT, functions) if isinstance(event, TextDelta))


def in_a_thread_of_its_own(work: Any) -> None:
    """A new thread has no loop yet, and so no connections."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again where the test sees it
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def test_the_next_reply_comes_over_the_same_connection(provider: ScriptedProvider) -> None:
    def work() -> None:
        assert [reply(), reply(), reply()] == ["I hear you. Tell me more."] * 3
        assert provider.connections == 1

    in_a_thread_of_its_own(work)


def test_a_connection_that_the_provider_closed_meanwhile_is_made_anew(provider: ScriptedProvider) -> None:
    provider.script(Script(text="One.", hangs_up=True), Script(text="Two."))

    def work() -> None:
        assert [reply(), reply()] == ["One.", "Two."]
        assert provider.connections == 2

    in_a_thread_of_its_own(work)


def test_another_setting_is_another_client(provider: ScriptedProvider, settings: Settings) -> None:
    with ScriptedProvider(default=Script(text="I am another.")) as other:

        def work() -> None:
            assert reply() == "I hear you. Tell me more."
            settings.NEURON_MODEL_URL = other.url
            assert reply() == "I am another."

        in_a_thread_of_its_own(work)


def test_a_tool_is_called_in_the_thread_that_asks(provider: ScriptedProvider) -> None:
    provider.script(Script(tool=("look", {"about": "May"})), Script(text="So it was."))
    called: list[tuple[str, threading.Thread]] = []

    def look(about: str) -> str:
        """Look something up.

        Args:
            about: what to look for.
        """
        called.append((about, threading.current_thread()))
        return "It rained."

    assert reply(look) == "So it was."
    assert called == [("May", threading.current_thread())]
    described = provider.requests[0]["tools"][0]["function"]
    assert described["description"] == "Look something up."
    assert list(described["parameters"]["properties"]) == ["about"]
    assert "It rained." in str(provider.requests[1]["messages"])


def test_what_a_tool_raises_is_a_failure_of_the_reply(provider: ScriptedProvider) -> None:
    provider.script(Script(tool=("look", {})))

    def look() -> str:
        """Look something up."""
        raise ValueError("broken")

    with pytest.raises(ModelFailure):
        reply(look)


def test_silence_is_told_and_a_reply_that_is_left_closes_the_providers_socket(
    provider: ScriptedProvider,
) -> None:
    provider.script(Script(text="One. Two. ", hang_after=5))
    events = listen(DRAFT, patience=0.05)
    while next(events) is not None:
        pass
    events.close()
    provider.queue.clear()
    assert reply() == "I hear you. Tell me more."
    assert len(provider.closed_by_client) == 1
