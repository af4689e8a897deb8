"""What a message asks memory for."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from conversations.intents import Intent, Kind, recognise

NOW = datetime(2023, 5, 19, 12, tzinfo=UTC)  # a Friday


def intent(text: str) -> Intent:
    return recognise(text, now=NOW, tz=ZoneInfo("UTC"))


@pytest.mark.parametrize(
    "text",
    [
        "Summarise the key themes across my recent conversations",
        "What have we talked about lately?",
        "Summarise what we talked about this week",
        "what did we talk about the weekend",
        "Friday what did we talk about",
        "What was I worried about in March?",
    ],
)
def test_recent_talk_is_asked_for(text: str) -> None:
    assert intent(text).kind == Kind.RECENT


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("What did I say about my sister?", "my sister"),
        ("What did I say about the weekend in Lisbon?", "the weekend in Lisbon"),
        ("What did we say about the exam on Monday?", "the exam"),
        ("When did I first tell you about Lisbon?", "Lisbon"),
    ],
)
def test_a_topic_is_asked_for(text: str, topic: str) -> None:
    assert intent(text).kind == Kind.ABOUT
    assert intent(text).topic == topic


def test_this_conversation_and_all_themes_are_kinds_of_their_own() -> None:
    assert intent("Summarise this conversation").kind == Kind.THIS_CONVERSATION
    assert intent("Show me themes across everything").kind == Kind.THEMES


def test_the_window_is_the_one_that_was_named() -> None:
    found = intent("what did we talk about the weekend").window
    assert found is not None
    assert (found.start.day, found.end.day) == (13, 15)


def test_the_first_time_wants_the_oldest_first() -> None:
    assert intent("When did I first tell you about Lisbon?").oldest_first
    assert not intent("What did I say about Lisbon?").oldest_first


@pytest.mark.parametrize(
    "text",
    [
        "Yesterday I went swimming with Ana",
        "I'm looking forward to the weekend",
        "Can you help me write a letter?",
        "What did we talk about " + "x" * 600,
        "",
    ],
)
def test_talk_is_no_look_up_and_names_no_window(text: str) -> None:
    assert intent(text) == Intent(Kind.NONE)
