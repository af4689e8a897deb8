"""What of a conversation goes to the remote engram, and what never does."""

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from conversations.models import Session
from conversations.receiving import receive
from conversations.services import create_session
from memory.engram import mirror
from memory.models import MirrorJob
from safety.mirroring import bell_node
from safety.models import BellEvent
from tests.conversations.talk import talked

HARD = "I am going to kill myself tonight"
SOFT = "I feel so hopeless and worthless, I can't cope any more"


@pytest.fixture(autouse=True)
def remote(settings: Settings) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    settings.ENGRAM_MIRROR_BELLS = True


def operations() -> list[str]:
    return sorted(MirrorJob.objects.values_list("operation", flat=True))


def temporary(owner: User) -> Session:
    session = create_session(owner=owner)
    session.temporary = True
    session.save()
    return session


@pytest.mark.parametrize("text", [HARD, SOFT])
def test_a_bell_is_mirrored_as_a_node_of_its_own(text: str, session: Session) -> None:
    receive(session=session, text=text, client_key="k")
    bell = BellEvent.objects.get()
    job = MirrorJob.objects.get(operation="put_bell")
    assert job.subject_id == bell.pk
    node = bell_node(bell.pk)
    assert node is not None
    assert node["node_type"] == "BellEvent"
    assert node["label"] == f"bell:{bell.level}"
    assert node["tags"] == ["safety", "bell", f"bell:{bell.level}"]
    assert node["content"] == f"BELL:{bell.level} | {bell.reason} | summary:{text[:80]}"


@pytest.mark.parametrize("text", [HARD, SOFT])
def test_no_bell_is_mirrored_unless_the_operator_says_so(
    text: str, session: Session, settings: Settings
) -> None:
    settings.ENGRAM_MIRROR_BELLS = False
    receive(session=session, text=text, client_key="k")
    assert BellEvent.objects.count() == 1
    assert operations() == []


@pytest.mark.parametrize("text", [HARD, SOFT])
def test_a_bell_of_a_temporary_chat_stays_here(text: str, owner: User) -> None:
    receive(session=temporary(owner), text=text, client_key="k")
    assert BellEvent.objects.count() == 1
    assert operations() == []


def test_turns_of_a_temporary_chat_stay_here(owner: User, session: Session) -> None:
    talked(temporary(owner), ("between us", "of course"))
    assert operations() == []
    talked(session, ("for good", "of course"))
    assert operations() == ["put_node", "put_node"]


def test_a_bell_is_told_as_its_level_alone(
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    kept: list[dict[str, str]] = []
    monkeypatch.setattr("memory.engram.awareness.keep_event", kept.append)
    with django_capture_on_commit_callbacks(execute=True):
        receive(session=session, text=HARD, client_key="k")
    assert [(event["what"], event["facts"]) for event in kept] == [("bell rung", '{"level": "hard"}')]


def test_the_mirror_reads_bells_as_the_safety_layer_writes_them() -> None:
    assert mirror._bell_readers == [bell_node]
