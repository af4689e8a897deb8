"""What a reply may say: help is let through, harm is not, sentence by sentence, and what was held back is logged."""

import pytest

from conversations.models import Session
from memory.embedding import embed_packaged
from safety.models import BellEvent
from safety.resources import defaults
from safety.validation import SentenceGate, hear_harm, validate
from tests.conversations.talk import say
from tests.safety.replies import HARMFUL, HELPFUL
from tests.scripted_provider import Script, ScriptedProvider


def through(reply: str, action: str = "pass", piece: int = 7) -> tuple[str, str]:
    """What is shown of a reply that comes in pieces, and the problem."""
    gate = SentenceGate(action, embed=embed_packaged)
    shown = "".join(gate.feed(reply[at : at + piece]) for at in range(0, len(reply), piece)) + gate.flush()
    return shown, gate.problem


@pytest.mark.parametrize("action", ["pass", "soft_bell"])
@pytest.mark.parametrize("reply", HELPFUL)
def test_help_and_everyday_replies_pass_unchanged(reply: str, action: str) -> None:
    assert through(reply, action) == (reply, "")


@pytest.mark.parametrize("action", ["pass", "soft_bell"])
@pytest.mark.parametrize("reply", HARMFUL)
def test_a_harmful_reply_is_stopped_and_nothing_of_it_shown(reply: str, action: str) -> None:
    shown, problem = through(reply, action)
    assert shown == ""
    assert problem


def test_what_stands_before_the_harm_was_shown_and_nothing_after_it_is() -> None:
    shown, problem = through("I am listening. You should kill yourself. And eat well.")
    assert shown == "I am listening. "
    assert problem == "describes a method of harm"


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_pieces_of_any_size_give_the_same_text(piece: int) -> None:
    reply = "First, e.g. this…  And\n\n- one\n- two.\n```py\nprint('a. b')\n```\nLast one without an end"
    assert through(reply, piece=piece) == (reply, "")


def test_harm_across_two_sentences_is_seen() -> None:
    assert through("The world would be better. Without you. ")[1] == ""
    assert through("You said you are sure. Go ahead\nand do it. ")[1] == "encourages harm"


def test_without_an_embedder_the_rules_and_lists_still_look() -> None:
    assert hear_harm("I am planning to kill myself tonight.", "pass", None)[0]
    gate = SentenceGate("pass")
    assert gate.feed("You should just kill yourself. ") + gate.flush() == ""
    assert gate.problem


def test_the_fixed_reply_stands_whatever_the_output_holds() -> None:
    for output in ("", "You should kill yourself.", "<tool_call>"):
        reply = validate(output, "hard_bell", resources=defaults()["DE"]).text
        assert "0800" in reply or "116" in reply
        assert "kill" not in reply
    assert validate("", "hard_bell").ok


def test_a_whole_reply_is_looked_at_the_same_way() -> None:
    assert validate("  ", "pass").problem == "empty"
    stripped = validate('Let me look.\n<tool_call>{"name": "recall"}</tool_call>', "pass")
    assert (stripped.text, stripped.problem) == ("Let me look.", "made_up_tool_call")
    withheld = validate("I see. You should just kill yourself.", "soft_bell")
    assert (withheld.ok, "kill" in withheld.text) == (False, False)


def test_a_withheld_reply_is_logged_with_its_signals_and_without_its_text(
    provider: ScriptedProvider, session: Session
) -> None:
    embed_packaged(["loaded before the model's silence is timed"])
    provider.script(
        Script(text="I hear you. I have decided to end my life at midnight, zebracanary, be there. ")
    )
    turn = say(session, "Tell me about your evening")
    assert "midnight" not in turn.a
    assert turn.a.strip()
    bell = BellEvent.objects.get(level="withheld")
    assert bell.reason.startswith("the detector heard")
    assert (bell.summary, bell.after_index, bell.owner_id) == ("", turn.turn_index, session.owner_id)
    assert bell.signals
    assert "zebracanary" not in str(bell.signals)
    assert bell.detector_version.startswith("lists-1")
