"""The notice that it is an AI: with the first turn, every three hours of use, and whatever becomes of the worker."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from conversations import cycle, receiving, services
from conversations.models import Profile, Session, Turn
from tests.conversations.talk import say
from tests.scripted_provider import Script, ScriptedProvider

pytestmark = pytest.mark.usefixtures("provider")


def shown(turn: Turn) -> list[str]:
    turn.refresh_from_db()
    return [notice["id"] for notice in turn.notices]


def here_for(session: Session, hours: float) -> None:
    """As if the last notice had been so long ago, and the person had not paused since."""
    now = timezone.now()
    Profile.objects.filter(owner=session.owner).update(
        last_active_at=now - timedelta(minutes=1), last_notice_at=now - timedelta(hours=hours)
    )


def test_the_first_turn_says_that_it_is_an_ai_and_the_second_does_not(session: Session) -> None:
    assert shown(say(session, "Hello there")) == ["disclosure"]
    assert shown(say(session, "And again")) == []


def test_after_three_hours_of_use_it_is_said_again_with_a_break(session: Session) -> None:
    say(session, "Hello there")
    here_for(session, 2.9)
    assert shown(say(session, "Still here")) == []
    here_for(session, 3.1)
    assert shown(say(session, "Still here now")) == ["disclosure", "break_reminder"]
    assert shown(say(session, "And now")) == []


def test_that_somebody_is_here_is_noted_once_a_minute(session: Session) -> None:
    def last_active_after(seconds: int) -> timedelta:
        """How long ago the person was last here by the books, after a turn so long after the one before."""
        Profile.objects.update(last_active_at=timezone.now() - timedelta(seconds=seconds))
        say(session, "Still here")
        return timezone.now() - Profile.objects.get(owner=session.owner).last_active_at

    say(session, "Hello there")
    assert last_active_after(40) >= timedelta(seconds=40)
    assert last_active_after(70) < timedelta(seconds=40)


def test_a_minor_is_told_in_words_of_their_own(session: Session) -> None:
    say(session, "Hello there")
    Profile.objects.filter(owner=session.owner).update(is_minor=True)
    here_for(session, 4)
    turn = say(session, "Still here")
    turn.refresh_from_db()
    assert "take a break now" in turn.notices[1]["text"]


def test_a_fixed_answer_carries_the_notice_too(session: Session) -> None:
    assert shown(say(session, "Can I stop taking my medication now?")) == ["disclosure"]


def test_a_model_that_fails_takes_no_notice_with_it(session: Session, provider: ScriptedProvider) -> None:
    provider.default = Script(status=401)
    turn = say(session, "Hello there")
    assert turn.status == "failed"
    assert shown(turn) == ["disclosure"]
    provider.default = Script(text="Hello.")
    services.retry_turn(turn=turn)
    cycle.answer(turn.pk)
    assert shown(turn) == ["disclosure"]


def test_a_worker_that_goes_takes_no_notice_with_it(session: Session) -> None:
    received = receiving.receive(session=session, text="Hello there", client_key=uuid.uuid4().hex)
    assert received.turn is not None
    cycle.shutting_down.set()
    try:
        cycle.answer(received.turn.pk)
    finally:
        cycle.shutting_down.clear()
    received.turn.refresh_from_db()
    assert received.turn.status == "pending"
    cycle.answer(received.turn.pk)
    assert shown(received.turn) == ["disclosure"]
