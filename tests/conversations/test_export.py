"""The export: everything one person said and was answered, and nothing else."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from conversations import exporters, receiving
from conversations.models import Session
from conversations.services import create_session
from tests.conversations.test_api import CRISIS, answered


def exported(person: User) -> Any:
    async def gather() -> str:
        return "".join([piece async for piece in exporters.write_export(person)])

    return json.loads(async_to_sync(gather)())


def test_all_sessions_and_turns_are_in_it_in_order(
    owner: User, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporters, "TURNS_AT_ONCE", 2)
    for number in range(5):
        answered(session, f"Question {number}", 'An "answer" 😀')
    create_session(owner=owner, title="Empty")
    found = exported(owner)
    assert (found["format"], found["person"]) == ("neuron-export-1", "owner")
    first, second = found["sessions"]
    assert [turn["q"] for turn in first["turns"]] == [f"Question {number}" for number in range(5)]
    assert first["turns"][0]["a"] == 'An "answer" 😀'
    assert (second["title"], second["turns"]) == ("Empty", [])


def test_nobody_elses_words_and_no_bell_are_in_it(owner: User, other: User, session: Session) -> None:
    answered(session, "How deep is the lake?", "Forty metres.")
    receiving.receive(session=session, text=CRISIS, client_key="k")
    assert exported(other)["sessions"] == []
    assert "canaryword" not in json.dumps(exported(owner))
