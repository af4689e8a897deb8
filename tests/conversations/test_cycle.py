"""One message through the layers, with a scripted model behind real HTTP."""

import pytest
from pytest_django import Settings

from conversations import cycle, receiving, services
from conversations.llm.providers import _first_served
from conversations.models import Session, Turn
from memory.models import MemoryNode
from safety.models import BellEvent
from tests.conversations.talk import say, talked
from tests.scripted_provider import Script, ScriptedProvider


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
    received = receiving.receive(session=session, text="I want to kill myself. zebracanary", client_key="k1")
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
        receiving.receive(session=session, text="I want to kill myself", client_key="k1")
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


@pytest.mark.usefixtures("built_in")
def test_the_built_in_responder_summarises_without_any_model(session: Session) -> None:
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
    provider: ScriptedProvider,
    session: Session,
    settings: Settings,
    script: Script,
    error: str | None,
    status: str,
) -> None:
    provider.default = script
    if script.hang_before:
        settings.NEURON_MODEL_TIMEOUT_S = 0.4
    turn = say(session, "Hello there")
    settings.NEURON_MODEL_TIMEOUT_S = 10
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


@pytest.mark.parametrize("mode", ["chat", "agentic"])
def test_a_made_up_tool_call_is_looked_up_and_answered_again(
    provider: ScriptedProvider, session: Session, mode: str
) -> None:
    talked(session, ("My sister moves to Lisbon in spring", "Lisbon is a fine place."))
    services.set_mode(session=session, mode=mode)
    provider.script(
        Script(text='<tool_call>{"name": "search_memory", "arguments": {"query": "x"}}</tool_call>'),
        Script(text="You spoke of your sister."),
    )
    turn = say(session, "what did we talk about lately? I forgot")
    assert (turn.status, turn.a) == ("complete", "You spoke of your sister.")
    assert len(provider.requests) == 2
    assert "Lisbon" in provider.system_prompts()[1]
    assert not provider.requests[1].get("tools")


# --- A soft bell stands above every fixed answer ----------------------------------------------------------------


DOSAGE = "I feel hopeless and I can't cope, can I stop taking my antidepressants now?"
REDIRECT = "That is a question for the person who prescribed it"


def test_a_message_that_a_policy_covers_is_answered_in_the_operators_words(
    provider: ScriptedProvider, session: Session
) -> None:
    assert say(session, "Can I stop taking my medication now?").a.startswith(REDIRECT)
    assert not provider.requests


def test_after_a_soft_bell_a_policys_words_guide_the_model_and_do_not_replace_it(
    provider: ScriptedProvider, session: Session
) -> None:
    provider.script(Script(text="That sounds heavy."))
    turn = say(session, DOSAGE)
    assert (turn.action, turn.a) == ("soft_bell", "That sounds heavy.")
    [prompt] = provider.system_prompts()
    assert prompt.startswith("The person may be in distress")
    assert f"Guidance for this message: {REDIRECT}" in prompt


def test_after_a_soft_bell_a_look_up_that_finds_nothing_is_the_models_to_tell(
    provider: ScriptedProvider, session: Session
) -> None:
    provider.script(Script(text="I am here."))
    turn = say(session, "I feel hopeless and I can't cope. What did we talk about lately?")
    assert (turn.action, turn.a) == ("soft_bell", "I am here.")
    assert "There is nothing to look back on yet" in provider.system_prompts()[0]


# --- The model's setting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["chat", "agentic"])
def test_a_model_setting_that_is_none_is_said_and_the_message_kept(
    provider: ScriptedProvider, session: Session, settings: Settings, mode: str
) -> None:
    settings.NEURON_MODEL = "lama"
    services.set_mode(session=session, mode=mode)
    turn = say(session, "Hello there")
    assert (turn.status, turn.error, turn.q) == ("failed", "not_configured", "Hello there")


def test_an_address_alone_is_asked_for_its_first_model_that_chats(
    provider: ScriptedProvider, session: Session, settings: Settings
) -> None:
    _first_served.cache_clear()
    settings.NEURON_MODEL = ""
    provider.models = ["nomic-embed", "served"]
    turn = say(session, "Hello there")
    assert (turn.status, turn.model) == ("complete", "served")
    assert provider.requests[0]["model"] == "served"


def test_an_address_that_lists_no_model_is_a_setting_to_mend(
    provider: ScriptedProvider, session: Session, settings: Settings
) -> None:
    _first_served.cache_clear()
    settings.NEURON_MODEL = ""
    provider.models = []
    assert say(session, "Hello there").error == "not_configured"


def test_a_model_without_tools_is_given_the_look_up_instead(
    provider: ScriptedProvider, session: Session
) -> None:
    talked(session, ("My sister moves to Lisbon in spring", "Lisbon is a fine place."))
    services.set_mode(session=session, mode="agentic")
    provider.default = Script(text="It was about your sister.", refuses_tools=True)
    turn = say(session, "Summarise the key themes across my recent conversations")
    assert (turn.status, turn.a) == ("complete", "It was about your sister.")
    assert "Lisbon" in provider.system_prompts()[-1]
    assert [bool(request.get("tools")) for request in provider.requests] == [True, False]
