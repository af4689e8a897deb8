"""The outbox: what is taken, by whom, in which order, and what becomes of it."""

import uuid
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from memory.engram import outbox
from memory.engram.errors import EngramError, Kind
from memory.models import MemoryNode, MirrorJob
from memory.services import connect, delete_nodes, enqueue_node

AWAY = EngramError(Kind.UNREACHABLE, "test")


@pytest.fixture(autouse=True)
def remote_is_set(settings: Settings) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"


def queue(owner: User, number: int, session_id: uuid.UUID | None = None) -> list[MirrorJob]:
    for index in range(number):
        enqueue_node(
            MemoryNode.objects.create(
                owner=owner, node_type="Knowledge", content="c", session_id=session_id, turn_index=index
            )
        )
    return list(MirrorJob.objects.order_by("id"))


def later(seconds: float) -> datetime:
    return timezone.now() + timedelta(seconds=seconds)


def test_a_lane_is_taken_in_order_and_by_one_sender(owner: User) -> None:
    jobs = queue(owner, 5, uuid.uuid4())
    claim = outbox.claim_jobs(most=3)
    assert claim is not None
    assert [job.pk for job in claim.jobs] == [job.pk for job in jobs[:3]]
    assert outbox.claim_jobs() is None


def test_many_lanes_are_taken_at_once(owner: User) -> None:
    jobs = queue(owner, 120)
    taken: set[int] = set()
    while claim := outbox.claim_jobs():
        assert not taken & {job.pk for job in claim.jobs}
        taken |= {job.pk for job in claim.jobs}
    assert taken == {job.pk for job in jobs}


def test_what_failed_holds_back_its_lane_and_no_other(owner: User) -> None:
    first, _second, *_ = queue(owner, 3, uuid.uuid4())
    claim = outbox.claim_jobs(most=1)
    assert claim is not None
    outbox.put_off(claim=claim, job=first, error=AWAY)
    (*_, elsewhere) = queue(owner, 1)
    claim = outbox.claim_jobs()
    assert claim is not None
    assert [job.pk for job in claim.jobs] == [elsewhere.pk]
    claim = outbox.claim_jobs(now=later(2))
    assert claim is not None
    assert len(claim.jobs) == 3


def test_a_lease_that_ends_gives_the_jobs_to_another_and_the_first_settles_nothing(owner: User) -> None:
    (job,) = queue(owner, 1)
    slow = outbox.claim_jobs()
    assert slow is not None
    assert outbox.claim_jobs(now=later(59)) is None
    quick = outbox.claim_jobs(now=later(61))
    assert quick is not None
    assert outbox.settle_sent(claim=slow, job_ids=[job.pk]) == 0
    assert outbox.settle_refused(claim=slow, job_id=job.pk, error=AWAY) == 0
    assert outbox.settle_sent(claim=quick, job_ids=[job.pk]) == 1
    assert outbox.settle_sent(claim=quick, job_ids=[job.pk]) == 0


def test_the_waiting_time_doubles_up_to_an_hour_and_never_in_step() -> None:
    for tries in range(12):
        assert 0.75 * 2**tries <= outbox.wait_seconds(tries) <= 2**tries
    assert 2700 <= outbox.wait_seconds(12) <= 3600
    assert 2700 <= outbox.wait_seconds(500) <= 3600
    assert len({outbox.wait_seconds(3) for _ in range(10)}) > 1


def test_a_failure_is_counted_and_said(owner: User) -> None:
    (job,) = queue(owner, 1)
    claim = outbox.claim_jobs()
    assert claim is not None
    outbox.put_off(claim=claim, job=job, error=EngramError(Kind.UNREACHABLE, "HTTP 503"))
    job.refresh_from_db()
    assert (job.tries, job.state, job.claim) == (1, "waiting", None)
    assert job.last_error == "unreachable: HTTP 503"
    assert job.due_at > timezone.now()


def test_after_an_outage_only_what_it_held_up_is_due_again(owner: User) -> None:
    for job, error in zip(queue(owner, 2), (AWAY, EngramError(Kind.BAD_ANSWER, "not JSON")), strict=True):
        MirrorJob.objects.filter(pk=job.pk).update(due_at=later(600), tries=8, last_error=str(error))
    assert outbox.make_due_after_outage() == 1
    claim = outbox.claim_jobs()
    assert claim is not None
    assert [job.last_error for job in claim.jobs] == [str(AWAY)]


def test_what_is_leased_is_not_made_due_by_the_end_of_an_outage(owner: User) -> None:
    queue(owner, 1)
    MirrorJob.objects.update(last_error=str(AWAY))
    assert outbox.claim_jobs() is not None
    assert outbox.make_due_after_outage() == 0


def test_sent_jobs_go_after_a_week(owner: User) -> None:
    old, new = queue(owner, 2)
    for job, days in ((old, 8), (new, 6)):
        moment = timezone.now() - timedelta(days=days)
        MirrorJob.objects.filter(pk=job.pk).update(state="sent", sent_at=moment)
    assert outbox.prune_sent() == 1
    assert MirrorJob.objects.get() == new


def test_everything_can_be_queued_once_for_a_remote_that_came_later(
    owner: User, other: User, settings: Settings
) -> None:
    settings.ENGRAM_URL = ""
    nodes = [MemoryNode.objects.create(owner=owner, node_type="Knowledge", content="c") for _ in range(3)]
    connect(source=nodes[0], target=nodes[1], kind="supports")
    MemoryNode.objects.create(owner=owner, node_type="StateEvent", content="theirs")
    MemoryNode.objects.create(owner=other, node_type="Knowledge", content="somebody else's")
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    assert outbox.enqueue_everything(owner_id=owner.pk) == 4
    assert outbox.enqueue_everything(owner_id=owner.pk) == 0
    claim = outbox.claim_jobs()
    assert claim is not None
    outbox.settle_sent(claim=claim, job_ids=[job.pk for job in claim.jobs])
    assert outbox.enqueue_everything(owner_id=owner.pk) == len(claim.jobs)


def test_a_deletion_stands_behind_what_is_being_sent(owner: User) -> None:
    (job,) = queue(owner, 1)
    claim = outbox.claim_jobs()
    assert claim is not None
    delete_nodes(owner=owner, node_ids=[job.subject_id])
    assert outbox.claim_jobs() is None
    outbox.settle_sent(claim=claim, job_ids=[job.pk])
    claim = outbox.claim_jobs()
    assert claim is not None
    assert [job.operation for job in claim.jobs] == ["delete_node"]
