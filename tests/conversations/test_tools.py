"""What a model may look up: one person's talk, within limits of size."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from conversations import receiving
from conversations.imprint import tokens
from conversations.models import Session
from conversations.services import create_session
from conversations.tools import Toolbox
from tests.conversations.talk import talked

LONG_AGO = datetime(2023, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def toolbox(owner: User) -> Toolbox:
    session = create_session(owner=owner)
    return Toolbox(owner=owner, session=session, before=0, tz=ZoneInfo("UTC"))


def test_recent_conversations_are_newest_first_in_their_contracted_shape(
    toolbox: Toolbox, session: Session
) -> None:
    talked(session, ("one", "1"), at=LONG_AGO)
    talked(session, ("two", "2"), at=LONG_AGO + timedelta(days=1))
    newest, oldest = toolbox.recent_conversations()
    assert newest == {
        "q": "two",
        "a": "2",
        "created_at": "2023-05-02T12:00:00+00:00",
        "session_id": str(session.pk),
        "turn_index": 1,
    }
    assert oldest["q"] == "one"
    assert [one["q"] for one in toolbox.recent_conversations(20, LONG_AGO.isoformat())] == ["two"]


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_outside_1_to_1000_is_an_error_in_words(toolbox: Toolbox, limit: int) -> None:
    assert "between 1 and 1000" in toolbox.recent_conversations(limit)["error"]
    assert toolbox.recent_conversations(1000) == []


@pytest.mark.parametrize("since", ["2023-05-01T12:00:00", "2023-05-01", "lately", "2023-13-01T00:00:00Z"])
def test_a_since_without_time_zone_or_sense_is_refused(toolbox: Toolbox, since: str) -> None:
    assert "time zone" in toolbox.recent_conversations(20, since)["error"]


def test_no_tool_gives_another_persons_words(toolbox: Toolbox, other: User) -> None:
    theirs = create_session(owner=other)
    talked(theirs, ("my zebracanary in the garden", "zebracanary indeed"))
    for tool in toolbox.functions():
        for arguments in ([], ["zebracanary garden"], [str(theirs.pk)]):
            if tool.__name__ == "recent_conversations":
                arguments = []
            elif tool.__name__ != "summarise_session" and not arguments:
                continue
            assert "zebracanary" not in json.dumps(tool(*arguments))
    assert toolbox.summarise_session(str(theirs.pk)) == {"error": "there is no such session"}
    assert toolbox.summarise_session("no id") == {"error": "there is no such session"}


def test_no_tool_gives_what_rang_a_hard_bell(toolbox: Toolbox, session: Session) -> None:
    receiving.receive(session=session, text="I want to kill myself. zebracanary", client_key="k")
    talked(session, ("my garden", "fine"))
    given = [
        toolbox.recent_conversations(1000),
        toolbox.search_memory("kill zebracanary BELL hard"),
        toolbox.recall("zebracanary"),
        toolbox.search_knowledge("zebracanary"),
        toolbox.summarise_session(str(session.pk)),
    ]
    assert "garden" in json.dumps(given)
    assert "zebracanary" not in json.dumps(given)
    assert "BELL:" not in json.dumps(given)


def test_a_session_comes_in_the_order_it_was_talked(toolbox: Toolbox, session: Session) -> None:
    talked(session, ("one", "1"), ("two", "2"), ("three", "3"))
    assert [one["q"] for one in toolbox.summarise_session(str(session.pk))] == ["one", "two", "three"]


def test_a_long_session_is_shortened_evenly_to_its_room_and_says_so(
    toolbox: Toolbox, session: Session, settings: Settings
) -> None:
    talked(session, *[(f"question {number} " + "word " * 60, "answer " * 60) for number in range(30)])
    told = toolbox.summarise_session(str(session.pk))
    assert tokens(json.dumps(told)) < settings.NEURON_PROMPT_TOKENS * 0.6
    assert told[0]["turn_index"] == 0
    assert told[-2]["turn_index"] == 29
    assert "shortened" in told[-1]["note"]


def test_results_of_many_calls_stay_within_the_prompts_budget(
    toolbox: Toolbox, session: Session, settings: Settings
) -> None:
    talked(session, ("x" * 50_000, "y" * 50_000), *[("word " * 60, "answer " * 60) for _ in range(20)])
    given = [toolbox.recent_conversations(1000) for _ in range(3)]
    assert sum(tokens(json.dumps(one)) for one in given) < settings.NEURON_PROMPT_TOKENS * 1.3
    assert "did not fit" in given[-1][-1]["note"]
