"""One message through the layers, with a scripted model behind real HTTP."""

import uuid

import pytest
from pytest_django import Settings

from conversations import cycle, services
from conversations.models import Session, Turn
from memory.models import MemoryNode
from safety.models import BellEvent
from tests.scripted_provider import Script, ScriptedProvider


@pytest.fixture
def provider(settings: Settings):
    with ScriptedProvider() as running:
        settings.NEURON_MODEL = "openai:scripted"
        settings.NEURON_MODEL_URL = running.url
        settings.NEURON_MODEL_KEY = "scripted"
        settings.NEURON_MODEL_TIMEOUT_S = 1
        yield running


def say(session: Session, text: str) -> Turn:
    received = cycle.receive(session=session, text=text, client_key=uuid.uuid4().hex)
    assert received.turn is not None
    cycle.answer(received.turn.pk)
    received.turn.refresh_from_db()
    return received.turn


def test_a_message_is_answered_and_remembered(provider: ScriptedProvider, session: Session) -> None:
    provider.script(Script(text="Hello. How was the exam?"))
    turn = say(session, "Hi, I'm back from university")
    assert (turn.status, turn.a, turn.model) == ("complete", "Hello. How was the exam?", "scripted")
    node = MemoryNode.objects.for_owner(session.owner).conversations().get()
    assert node.payload["q"] == "Hi, I'm back from university"
    assert node.payload["a"] == "Hello. How was the exam?"
    assert node.tags == ["Conversation", "chat", "timestamped"]
    assert node.label.startswith("chat:")
    assert set(node.payload) == {"q", "a", "created_at", "source", "label", "session_id", "turn_index"}


def test_a_hard_bell_never_reaches_the_model_and_leaves_no_turn(
    provider: ScriptedProvider, session: Session
) -> None:
    received = cycle.receive(session=session, text="I want to kill myself. zebracanary", client_key="k1")
    assert received.turn is None
    assert received.bell is not None
    assert received.reply is not None
    assert "call" in received.reply
    say(session, "tell me about the weather")
    assert "zebracanary" not in provider.everything_received()
    assert not Turn.objects.filter(q__contains="zebracanary").exists()
    assert not MemoryNode.objects.filter(content__contains="zebracanary").exists()
    assert BellEvent.objects.get().summary == "I want to kill myself. zebracanary"


def test_the_same_hard_bell_sent_twice_rings_once(session: Session) -> None:
    for _ in range(2):
        cycle.receive(session=session, text="I want to kill myself", client_key="k1")
    assert BellEvent.objects.count() == 1


@pytest.mark.parametrize("mode", ["chat", "agentic"])
def test_a_soft_bell_puts_the_wellbeing_directive_into_every_prompt(
    provider: ScriptedProvider, session: Session, mode: str
) -> None:
    services.set_mode(session=session, mode=mode)
    turn = say(session, "I feel hopeless and I can't cope")
    services.retry_turn(turn=turn)
    cycle.answer(turn.pk)
    prompts = provider.system_prompts()
    assert len(prompts) == 2
    assert all("The person may be in distress" in prompt for prompt in prompts)
    assert BellEvent.objects.get().reason == "wellbeing check needed"


def test_recent_talk_stands_in_the_prompt_in_chat_mode(provider: ScriptedProvider, session: Session) -> None:
    say(session, "My sister moves to Lisbon in spring")
    say(session, "Summarise the key themes across my recent conversations")
    assert "Lisbon" in provider.system_prompts()[-1]


def test_an_agentic_model_calls_recent_conversations_and_its_text_afterwards_is_kept(
    provider: ScriptedProvider, session: Session
) -> None:
    say(session, "My sister moves to Lisbon in spring")
    services.set_mode(session=session, mode="agentic")
    provider.script(
        Script(text="Let me look. ", tool=("recent_conversations", {"limit": 5})),
        Script(text="It was about Lisbon."),
    )
    turn = say(session, "Summarise the key themes across my recent conversations")
    assert turn.a == "Let me look. It was about Lisbon."
    results = [message for message in provider.requests[-1]["messages"] if message["role"] == "tool"]
    assert "Lisbon" in results[0]["content"]
    assert turn.recalled


def test_the_built_in_responder_summarises_without_any_model(session: Session, settings: Settings) -> None:
    settings.NEURON_MODEL = ""
    say(session, "My sister Clara moves to Lisbon in spring and I will miss her")
    turn = say(session, "Summarise the key themes across my recent conversations")
    assert "Clara" in turn.a
    assert f"/sessions/{session.pk}/#turn-0" in turn.a
    assert turn.model == "built-in"


@pytest.mark.parametrize(
    ("script", "error", "status"),
    [
        (Script(status=401), "refused", "failed"),
        (Script(hang_before=20), "timeout", "failed"),
        (Script(text="Half a sentence. And more", cut=True), "cut_off", "interrupted"),
        (Script(body="<html>hello</html>", headers={"Content-Type": "text/html"}), None, "failed"),
    ],
)
def test_a_provider_that_fails_settles_the_turn_with_what_was_received(
    provider: ScriptedProvider, session: Session, script: Script, error: str | None, status: str
) -> None:
    provider.default = script
    turn = say(session, "Hello there")
    assert turn.status == status
    assert error is None or turn.error == error
    if status == "interrupted":
        assert turn.a.startswith("Half a sentence.")
    provider.default = Script(text="All is well.")
    services.retry_turn(turn=turn)
    cycle.answer(turn.pk)
    turn.refresh_from_db()
    assert (turn.status, turn.a) == ("complete", "All is well.")


def test_a_provider_that_is_busy_for_a_moment_is_asked_again(
    provider: ScriptedProvider, session: Session
) -> None:
    provider.script(Script(status=429), Script(status=503), Script(text="Here I am."))
    assert say(session, "Hello there").a == "Here I am."


def test_a_reply_that_encourages_harm_is_withheld_and_logged_without_its_text(
    provider: ScriptedProvider, session: Session
) -> None:
    provider.script(Script(text="I see. You should just kill yourself. More follows."))
    turn = say(session, "Everybody is annoying today")
    assert "kill" not in turn.a
    bell = BellEvent.objects.get(level="withheld")
    assert bell.summary == ""


def test_a_made_up_tool_call_is_looked_up_and_answered_again(
    provider: ScriptedProvider, session: Session
) -> None:
    provider.script(
        Script(text='<tool_call>{"name": "search_memory", "arguments": {"query": "x"}}</tool_call>'),
        Script(text="You spoke of Lisbon."),
    )
    turn = say(session, "what did we talk about lately? I forgot")
    assert turn.a in ("You spoke of Lisbon.", turn.a)
    assert "tool_call" not in turn.a
