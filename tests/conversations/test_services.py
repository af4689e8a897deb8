"""Sessions and turns: order without gaps, claims, retries, forks, forgetting, the sweeper."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from conversations import services
from conversations.models import Session, Turn
from memory.models import MemoryEdge, MemoryNode


def accept(session: Session, text: str = "hello", key: str = "") -> Turn:
    return services.accept_turn(
        session=session, text=text, client_key=key or uuid.uuid4().hex, action=Turn.Action.PASS
    ).turn


def complete(session: Session, text: str = "hello", answer: str = "Hi.") -> Turn:
    turn = accept(session, text)
    claimed = services.claim_turn(turn_id=turn.pk)
    assert claimed is not None
    assert services.settle_turn(turn=claimed, status=Turn.Status.COMPLETE, text=answer)
    return claimed


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_eight_writers_at_once_leave_no_gap_and_the_same_key_makes_one_turn() -> None:
    person = User.objects.create_user("crowd")
    session = services.create_session(owner=person)
    barrier = threading.Barrier(8)

    def write(number: int) -> None:
        try:
            barrier.wait()
            for message in range(5):
                accept(session, f"message {number}.{message}")
            accept(session, "the same", key="same")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    indexes = list(session.turns.order_by("turn_index").values_list("turn_index", flat=True))
    assert indexes == list(range(41))


def test_a_used_key_with_another_text_is_refused_and_the_first_turn_stands(session: Session) -> None:
    first = accept(session, "one", key="k")
    with pytest.raises(services.ClientKeyReused):
        accept(session, "two", key="k")
    assert list(session.turns.values_list("pk", "q")) == [(first.pk, "one")]


def test_a_message_to_a_deleted_session_is_refused_and_nothing_is_made(session: Session) -> None:
    gone = Session.objects.get(pk=session.pk)
    services.delete_session(session=session)
    with pytest.raises(Session.DoesNotExist):
        accept(gone)
    assert not Turn.objects.exists()


def test_accepting_brings_the_session_at_hand_up_to_date(session: Session) -> None:
    turn = accept(session, "About my garden")
    assert (session.title, session.next_index, session.last_turn_at) == (
        "About my garden",
        1,
        turn.created_at,
    )
    fresh = Session.objects.get(pk=session.pk)
    assert (fresh.title, fresh.next_index) == (session.title, session.next_index)


def test_a_turn_is_claimed_once_and_only_when_the_one_before_it_is_settled(session: Session) -> None:
    first, second = accept(session, "one"), accept(session, "two")
    assert services.claim_turn(turn_id=second.pk) is None
    held = services.claim_turn(turn_id=first.pk)
    assert held is not None
    assert services.claim_turn(turn_id=first.pk) is None
    services.settle_turn(turn=held, status=Turn.Status.COMPLETE, text="done")
    assert services.claim_turn(turn_id=second.pk) is not None


def test_a_late_worker_cannot_settle_what_was_taken_over(session: Session) -> None:
    turn = accept(session)
    late = services.claim_turn(turn_id=turn.pk)
    assert late is not None
    Turn.objects.filter(pk=turn.pk).update(status=Turn.Status.PENDING)
    current = services.claim_turn(turn_id=turn.pk)
    assert current is not None
    assert not services.settle_turn(turn=late, status=Turn.Status.COMPLETE, text="too late")
    assert services.keep_progress(turn=late, text="too late") is None
    assert services.settle_turn(turn=current, status=Turn.Status.COMPLETE, text="in time")
    turn.refresh_from_db()
    assert turn.a == "in time"


def test_a_completed_turn_becomes_a_node_that_follows_the_one_before(session: Session) -> None:
    complete(session, "one")
    complete(session, "two")
    earlier, later = MemoryNode.objects.for_owner(session.owner).conversations().order_by("turn_index")
    assert MemoryEdge.objects.get().source == later
    assert MemoryEdge.objects.get().target == earlier


def test_the_rolling_history_is_one_node_overwritten(session: Session) -> None:
    for text in ("one", "two", "three"):
        complete(session, text)
    history = MemoryNode.objects.get(node_type="History")
    assert history.label == "conv:history"
    assert "three" in history.content
    assert history.version > 1


def test_deleting_a_session_leaves_its_words_nowhere(session: Session, owner: User) -> None:
    kept = services.create_session(owner=owner)
    complete(kept, "the garden")
    complete(session, "my xylophonecanary")
    services.delete_session(session=session)
    assert not MemoryNode.objects.filter(content__contains="xylophonecanary").exists()
    assert not Turn.objects.filter(q__contains="xylophonecanary").exists()
    assert "the garden" in MemoryNode.objects.get(node_type="History").content


def test_deleting_a_session_takes_it_out_of_what_other_turns_drew_on(session: Session, owner: User) -> None:
    other = services.create_session(owner=owner)
    turn = accept(other)
    claimed = services.claim_turn(turn_id=turn.pk)
    assert claimed is not None
    drawn = {"session_id": str(session.pk), "turn_index": 0, "title": "my xylophonecanary"}
    services.settle_turn(turn=claimed, status=Turn.Status.COMPLETE, text="hm", recalled=[drawn])
    services.delete_session(session=session)
    turn.refresh_from_db()
    assert turn.recalled == []
    assert turn.attempts.get().recalled == []


def test_another_answer_keeps_the_first_and_either_can_be_chosen(session: Session) -> None:
    turn = complete(session, answer="first")
    services.retry_turn(turn=turn)
    again = services.claim_turn(turn_id=turn.pk)
    assert again is not None
    services.settle_turn(turn=again, status=Turn.Status.COMPLETE, text="second")
    assert list(turn.attempts.values_list("a", flat=True)) == ["first", "second"]
    chosen = services.choose_attempt(turn=turn, number=1)
    assert chosen.a == "first"
    assert MemoryNode.objects.for_owner(session.owner).conversations().get().payload["a"] == "first"


def test_a_second_answer_that_fails_leaves_the_first_standing(session: Session) -> None:
    turn = complete(session, answer="first")
    services.retry_turn(turn=turn)
    again = services.claim_turn(turn_id=turn.pk)
    assert again is not None
    services.settle_turn(turn=again, status=Turn.Status.FAILED, text="", error="timeout")
    turn.refresh_from_db()
    assert (turn.status, turn.a) == ("complete", "first")


def test_a_fork_shows_what_came_before_and_goes_on_by_itself(session: Session) -> None:
    for text in ("one", "two", "three"):
        complete(session, text)
    fork = services.fork_session(session=session, at_index=1)
    complete(fork, "another two")
    assert [turn.q for turn in Turn.objects.in_thread(fork)] == ["one", "another two"]
    assert [turn.turn_index for turn in Turn.objects.in_thread(fork)] == [0, 1]
    twice = services.fork_session(session=fork, at_index=0)
    assert [turn.q for turn in Turn.objects.in_thread(twice)] == []
    assert [turn.q for turn in Turn.objects.in_thread(session)] == ["one", "two", "three"]


def test_the_sweeper_returns_a_turn_without_text_and_settles_one_with_text(session: Session) -> None:
    turn = accept(session)
    held = services.claim_turn(turn_id=turn.pk)
    assert held is not None
    later = timezone.now() + timedelta(minutes=1)
    services.sweep_turns(now=later)
    turn.refresh_from_db()
    assert turn.status == Turn.Status.PENDING
    held = services.claim_turn(turn_id=turn.pk)
    assert held is not None
    services.keep_progress(turn=held, text="Half an answer")
    services.sweep_turns(now=later + timedelta(minutes=1))
    turn.refresh_from_db()
    assert (turn.status, turn.a, turn.error) == ("interrupted", "Half an answer", "worker_lost")


def test_stopping_a_turn_that_nobody_answers_yet_settles_it(session: Session) -> None:
    turn = accept(session)
    services.request_stop(turn=turn)
    turn.refresh_from_db()
    assert turn.status == Turn.Status.STOPPED
    assert services.claim_turn(turn_id=turn.pk) is None


def test_a_temporary_session_is_not_remembered(owner: User) -> None:
    session = services.create_session(owner=owner)
    session.temporary = True
    session.save()
    complete(session, "between us")
    assert not MemoryNode.objects.for_owner(owner).conversations().exists()
