"""Themes asked for in chat: across everything, of a season's worries, and how a view changed; in every mode."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from conversations.intents import Kind, recognise
from conversations.models import Mode, Session
from conversations.services import create_session, delete_session
from conversations.themes import kept, runs
from conversations.themes.models import ThemeRun
from tests import theme_reader
from tests.conversations.talk import say
from tests.conversations.themed import remember_topics
from tests.scripted_provider import Script, ScriptedProvider

TOPICS = ("garden", "work", "sleep")
NOW = datetime(2025, 11, 30, 21, tzinfo=UTC)


@pytest.fixture
def told(owner: User) -> list[Session]:
    return remember_topics(owner, TOPICS)


@pytest.mark.parametrize(
    ("text", "kind", "topic"),
    [
        ("Themes across everything", Kind.THEMES, ""),
        ("What was I worried about this autumn?", Kind.THEMES, ""),
        ("How has my view of work changed?", Kind.CHANGE, "work"),
        ("how have my feelings about the move changed over time", Kind.CHANGE, "the move"),
        ("Has my mind changed?", Kind.CHANGE, ""),
        ("What was I worried about last week?", Kind.RECENT, ""),
        ("My view of the lake has changed since they built the hotel and I like it less", Kind.NONE, ""),
    ],
)
def test_what_is_asked_for(text: str, kind: Kind, topic: str) -> None:
    found = recognise(text, now=NOW, tz=ZoneInfo("UTC"))
    assert (found.kind, found.topic) == (kind, topic)


@pytest.mark.usefixtures("built_in")
def test_themes_across_everything_without_a_model_each_with_links(
    owner: User, session: Session, owner_client: Client, told: list[Session]
) -> None:
    answer = say(session, "Themes across everything")
    themes = list(kept.themes_of(owner))
    assert len(themes) == len(TOPICS)
    for theme in themes:
        assert f"](/themes/{theme.pk}/)" in answer.a
        assert owner_client.get(f"/themes/{theme.pk}/").status_code == 200
    for session_id, index in re.findall(r"\]\(/sessions/([0-9a-f-]+)/\?at=\d+#turn-(\d+)\)", answer.a):
        assert any(str(one.pk) == session_id for one in told)
        assert owner_client.get(f"/sessions/{session_id}/?at={index}").status_code == 200
    assert "without a language model" in answer.a
    assert answer.recalled


@pytest.mark.usefixtures("built_in")
def test_the_worries_of_a_season_come_from_its_turns(session: Session, told: list[Session]) -> None:
    with time_machine.travel(NOW, tick=True):
        answer = say(session, "What was I worried about this autumn?").a
    assert answer.startswith("This is what weighed on you")
    assert "/themes/" in answer


@pytest.mark.usefixtures("built_in")
def test_how_a_view_changed_is_told_from_the_first_time_on(session: Session, told: list[Session]) -> None:
    answer = say(session, "How has my view of work changed?").a
    days = [
        datetime.strptime(f"{day} +0000", "%d %B %Y %z")
        for day in re.findall(r"^- \[(\d+ \w+ 2025)\]", answer, re.M)
    ]
    assert len(days) >= 5
    assert days == sorted(days)
    assert days[0].month == 9
    assert days[-1].month == 11
    assert "manager" in answer


@pytest.mark.usefixtures("built_in")
def test_key_themes_of_recent_talk_come_before_the_conversations(
    session: Session, told: list[Session]
) -> None:
    answer = say(session, "Summarise the key themes across my recent conversations").a
    assert answer.index("/themes/") < answer.index("The conversations:")


@pytest.mark.usefixtures("built_in")
def test_nothing_said_yet_and_a_hidden_theme(owner: User, session: Session) -> None:
    assert "There is nothing to look back on yet" in say(session, "Themes across everything").a
    remember_topics(owner, TOPICS)
    runs.refresh(owner=owner)
    hidden = kept.themes_of(owner).first()
    assert hidden is not None
    kept.hide(theme=hidden, hidden=True)
    assert str(hidden.pk) not in say(session, "Themes across everything").a


@pytest.mark.usefixtures("built_in")
def test_a_deleted_session_is_in_no_answer(owner: User, session: Session, told: list[Session]) -> None:
    say(session, "Themes across everything")
    for one in told:
        if one.title == "garden":
            delete_session(session=one)
    answer = say(create_session(owner=owner), "Themes across everything").a
    assert "allotment" not in answer.lower()


@pytest.mark.usefixtures("built_in")
def test_what_rang_softly_is_not_quoted(owner: User, session: Session) -> None:
    remember_topics(owner, ["sleep", "garden"], heavy="sleep")
    answer = say(session, "Themes across everything").a
    assert "ceiling" not in answer
    assert "three again" not in answer


# --- With a model -----------------------------------------------------------------------------------------------


@pytest.fixture
def reader(provider: ScriptedProvider, settings: Settings) -> ScriptedProvider:
    settings.NEURON_MODEL_TIMEOUT_S = 60
    provider.default = Script(respond=theme_reader.respond, piece=4000)
    return provider


def test_in_chat_mode_the_prompt_gives_the_themes(
    owner: User, session: Session, told: list[Session], reader: ScriptedProvider
) -> None:
    answer = say(session, "Themes across everything").a
    for theme in kept.themes_of(owner):
        assert f"(/themes/{theme.pk}/)" in answer
    # Nobody waits for a model to read months of talk: that goes on meanwhile, as a job.
    assert len(reader.requests) == 1
    runs.work(ThemeRun.objects.unfinished().get().pk)
    assert "The allotment" in say(create_session(owner=owner), "Themes across everything").a


def test_with_tools_the_model_asks_for_them(
    owner: User, told: list[Session], reader: ScriptedProvider
) -> None:
    session = create_session(owner=owner, mode=Mode.AGENTIC)
    reader.script(
        Script(tool=("themes", {"window": "all"})), Script(text="Your allotment runs through it all.")
    )
    answer = say(session, "Themes across everything")
    assert answer.a == "Your allotment runs through it all."
    result = next(one["content"] for one in reader.requests[-1]["messages"] if one["role"] == "tool")
    assert "/themes/" in result
    assert answer.recalled
    reader.script(Script(tool=("themes", {"about": "work"})), Script(text="You warmed to her."))
    say(session, "How has my view of work changed?")
    assert "manager" in next(
        one["content"] for one in reader.requests[-1]["messages"][::-1] if one["role"] == "tool"
    )
