"""A worker that is told to go while it answers: nothing is lost, and it goes within seconds."""

import signal
import uuid

import pytest

from conversations.models import Session, Turn
from conversations.services import accept_turn, create_session, hint_answer
from tests.scripted_provider import Script
from tests.stack import Stack, wait_for

pytestmark = pytest.mark.processes


def ask(session: Session) -> Turn:
    turn = accept_turn(
        session=session,
        text="Tell me something long",
        client_key=uuid.uuid4().hex,
        action=Turn.Action.PASS,
        help_lines=False,
        bell=None,
    ).turn
    hint_answer(turn.pk)
    return turn


def test_a_half_answer_is_kept_as_interrupted(stack: Stack) -> None:
    stack.provider.script(Script(text="One sentence is here. " * 200, piece=22, pause=0.2))
    turn = ask(create_session(owner=stack.person()))
    wait_for(lambda: Turn.objects.filter(pk=turn.pk).exclude(a="").exists(), what="some text")
    stack.kill("worker", signal.SIGTERM)
    turn.refresh_from_db()
    assert (turn.status, turn.error) == (Turn.Status.INTERRUPTED, "worker_stopped")
    assert turn.a.startswith("One sentence is here.")
    assert stack.provider.closed_by_client


def test_an_answer_without_text_waits_for_the_next_worker(stack: Stack) -> None:
    stack.provider.script(Script(hang_before=60))
    turn = ask(create_session(owner=stack.person()))
    wait_for(lambda: stack.provider.requests, what="the request")
    stack.kill("worker", signal.SIGTERM)
    turn.refresh_from_db()
    assert (turn.status, turn.a) == (Turn.Status.PENDING, "")
    stack.start("worker")
    wait_for(lambda: Turn.objects.filter(pk=turn.pk, status=Turn.Status.COMPLETE).exists(), what="the answer")
