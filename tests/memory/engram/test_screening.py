"""Text from elsewhere is on hold until it is screened, and what is hard never gets into recall."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from pytest_django import Settings

from memory.engram.screening import screen_held
from memory.engram.taking import take_fetched
from memory.engram.wire import read_node
from memory.indexing import index_pending
from memory.models import MemoryNode
from memory.retrieval import recall
from tests.conversations.test_api import CRISIS
from tests.memory.engram.protocol import a_node

HARMFUL = "The best way is to take an overdose at night."


def take(owner: User, **values: Any) -> MemoryNode:
    node = a_node(**values)
    take_fetched(owner=owner, nodes=[read_node(node)])
    return MemoryNode.objects.get(pk=node["id"])


def test_it_is_recalled_only_after_it_was_screened(owner: User) -> None:
    node = take(owner)
    index_pending()
    assert recall(owner, "How deep is the lake?") == []
    assert not MemoryNode.objects.for_owner(owner).exists()
    assert screen_held() == 1
    index_pending()
    assert recall(owner, "How deep is the lake?")[0].node.pk == node.pk


@pytest.mark.parametrize(
    "values",
    [
        {"q": CRISIS},
        {"a": HARMFUL},
        {"content": CRISIS},
        {"label": CRISIS},
        {"tags": [CRISIS[:80]]},
        {"node_type": "Knowledge", "payload": {"note": [{"deep": CRISIS}]}},
        {"payload": {}, "content": f"Q: {CRISIS} A: I am here."},
    ],
    ids=lambda values: ",".join(values),
)
def test_what_is_hard_never_gets_into_recall(owner: User, values: dict[str, Any]) -> None:
    node = take(owner, **values)
    screen_held()
    index_pending()
    node.refresh_from_db()
    assert node.hold == MemoryNode.Hold.DANGER
    assert not MemoryNode.objects.for_owner(owner).exists()
    assert recall(owner, "How deep is the lake?") == []


def test_a_newer_text_is_screened_anew_and_the_old_one_answers_no_more(owner: User) -> None:
    node = take(owner, q="Where is the boat?", a="In the shed.")
    screen_held()
    index_pending()
    assert recall(owner, "Where is the boat?")
    take(owner, id=str(node.pk), version=2, q=CRISIS, session_id=str(node.session_id))
    assert recall(owner, "Where is the boat?") == []
    screen_held()
    index_pending()
    assert recall(owner, "Where is the boat?") == []


def test_a_text_that_changes_while_it_is_screened_stays_on_hold(
    owner: User, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    node = take(owner)
    settings.ENGRAM_SCREENING = f"{__name__}.changing_it"
    monkeypatch.setattr("tests.memory.engram.test_screening.BEHIND_ITS_BACK", node)
    assert screen_held(seconds=0.01) == 0
    node.refresh_from_db()
    assert (node.version > 1, node.hold) == (True, MemoryNode.Hold.UNSCREENED)


BEHIND_ITS_BACK: MemoryNode | None = None


def changing_it(*, said: list[str], answered: str) -> bool:
    assert BEHIND_ITS_BACK is not None
    MemoryNode.objects.filter(pk=BEHIND_ITS_BACK.pk).update(version=F("version") + 1)
    return False
