"""Services of the outbox: take what is due, settle what became of it. No call to anybody is made here.

Jobs of one lane are taken in order and by one sender at a time. A taken job carries its sender's claim and is due
again when the lease ends; only the claim's holder may settle it.
"""

import random
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, takewhile
from uuid import UUID

from django.db import connection, models, transaction
from django.db.models import F
from django.utils import timezone

from memory.engram.errors import EngramError, Kind
from memory.models import MirrorJob

LEASE = timedelta(seconds=60)
BATCH = 200
MOST_LANES = 50
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 3600.0
SENT_KEPT = timedelta(days=7)

# The head of each lane by one step of the index `mirror_lane` per lane, so that a lane of 100,000 jobs costs as much
# as a lane of one. It begins at a random lane: no lane waits behind another, and two senders seldom meet.
_HEADS = """
WITH RECURSIVE head AS (
    (SELECT lane, id, due_at FROM memory_mirrorjob
     WHERE state = 'waiting' AND lane >= %(first)s ORDER BY lane, id LIMIT 1)
    UNION ALL
    SELECT following.lane, following.id, following.due_at FROM head, LATERAL (
        SELECT lane, id, due_at FROM memory_mirrorjob
        WHERE state = 'waiting' AND lane > head.lane ORDER BY lane, id LIMIT 1
    ) AS following
)
SELECT id FROM head WHERE due_at <= %(now)s LIMIT %(most)s
"""
_FOLLOWING = """
SELECT job.* FROM unnest(%(lanes)s::uuid[]) AS wanted (lane), LATERAL (
    SELECT * FROM memory_mirrorjob
    WHERE state = 'waiting' AND lane = wanted.lane ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED
) AS job
ORDER BY job.lane, job.id
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """Jobs taken by one sender, lane by lane and in order within each; `until` is on the monotonic clock."""

    token: UUID
    jobs: list[MirrorJob]
    until: float


def claim_jobs(*, most: int = BATCH, now: datetime | None = None) -> Claim | None:
    """Take up to `most` due jobs, their lease pushed forward; None where nothing is due."""
    now = now or timezone.now()
    until = time.monotonic() + LEASE.total_seconds()
    heads = _heads(uuid.uuid4(), now) or _heads(UUID(int=0), now)
    if not heads:
        return None
    token = uuid.uuid4()
    with transaction.atomic():
        locked = MirrorJob.objects.waiting().filter(pk__in=heads, due_at__lte=now)
        lanes = list(locked.select_for_update(skip_locked=True).values_list("lane", flat=True))
        if not lanes:
            return None
        parameters = {"lanes": lanes, "most": max(1, most // len(lanes))}
        following = MirrorJob.objects.raw(_FOLLOWING, parameters)
        # A job that is not due holds back those behind it.
        taken = [
            job
            for _, of_lane in groupby(following, key=lambda job: job.lane)
            for job in takewhile(lambda job: job.due_at <= now, of_lane)
        ]
        MirrorJob.objects.filter(pk__in=[job.pk for job in taken]).update(claim=token, due_at=now + LEASE)
    return Claim(token, taken, until)


def _heads(first: UUID, now: datetime) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_HEADS, {"first": first, "now": now, "most": MOST_LANES})
        return [pk for (pk,) in cursor.fetchall()]


def settle_sent(*, claim: Claim, job_ids: Iterable[int], now: datetime | None = None) -> int:
    """Mark jobs as sent. Returns how many were still this claim's."""
    return _held(claim, job_ids).update(
        state=MirrorJob.State.SENT, sent_at=now or timezone.now(), claim=None, last_error=""
    )


def settle_refused(*, claim: Claim, job_id: int, error: EngramError) -> int:
    """Mark a job as dead: it was refused for good, and waits for an operator."""
    return _held(claim, [job_id]).update(
        state=MirrorJob.State.DEAD, tries=F("tries") + 1, claim=None, last_error=str(error)[:200]
    )


def put_off(*, claim: Claim, job: MirrorJob, error: EngramError, now: datetime | None = None) -> int:
    """Make a job that failed due again later: twice as long after each try, at most an hour, never in step."""
    wait = wait_seconds(job.tries)
    return _held(claim, [job.pk]).update(
        tries=F("tries") + 1,
        claim=None,
        last_error=str(error)[:200],
        due_at=(now or timezone.now()) + timedelta(seconds=wait),
    )


def wait_seconds(tries: int) -> float:
    """Seconds until the next try after `tries` earlier ones that failed, and this one."""
    longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(tries, 20))
    return longest * random.uniform(0.75, 1.0)  # noqa: S311 (spreads load, guards nothing)


def give_back(*, claim: Claim, job_ids: Iterable[int], after_s: float = 0.0) -> int:
    """Return untried jobs: due again after so many seconds, as if they had never been taken."""
    return _held(claim, job_ids).update(claim=None, due_at=timezone.now() + timedelta(seconds=after_s))


def _held(claim: Claim, job_ids: Iterable[int]) -> "models.QuerySet[MirrorJob]":
    return MirrorJob.objects.waiting().filter(pk__in=list(job_ids), claim=claim.token)


def make_due_after_outage(*, now: datetime | None = None) -> int:
    """Make due what waits only because the remote was away, now that it answers. Returns how many."""
    now = now or timezone.now()
    away = MirrorJob.objects.backing_off(now).filter(
        claim=None, last_error__startswith=f"{Kind.UNREACHABLE}:"
    )
    return away.order_by().update(due_at=now)


def make_all_due(*, now: datetime | None = None) -> int:
    """Make due whatever waits for its next try; what is being sent is left. Returns how many."""
    now = now or timezone.now()
    return MirrorJob.objects.backing_off(now).filter(claim=None).order_by().update(due_at=now)


def prune_sent(*, now: datetime | None = None) -> int:
    """Remove what was sent more than a week ago. Returns how many."""
    removed, _ = MirrorJob.objects.sent_before((now or timezone.now()) - SENT_KEPT).delete()
    return removed


def retry_all_dead() -> int:
    """Make every dead job due again, its tries forgotten. Returns how many."""
    return MirrorJob.objects.dead().update(
        state=MirrorJob.State.WAITING, tries=0, due_at=timezone.now(), last_error=""
    )


_EVERYTHING = """
INSERT INTO memory_mirrorjob (owner_id, operation, subject_id, subject_version, lane,
                              state, tries, due_at, last_error, created_at)
SELECT owner_id, %(operation)s, id, version, {lane}, 'waiting', 0, %(now)s, '', %(now)s
FROM {table} AS subject WHERE owner_id = %(owner)s {condition} ORDER BY {order}
ON CONFLICT (operation, subject_id, subject_version) DO UPDATE
SET state = 'waiting', due_at = excluded.due_at, tries = 0, claim = NULL
WHERE memory_mirrorjob.state <> 'waiting'
"""


def enqueue_everything(*, owner_id: int) -> int:
    """Put every node and edge of this person into the outbox, sent before or not. Returns how many were put there."""
    of_nodes = _EVERYTHING.format(
        table="memory_memorynode",
        lane="coalesce(session_id, id)",
        condition="AND NOT derived AND node_type NOT IN ('BellEvent', 'StateEvent')",
        order="created_at, id",
    )
    of_edges = _EVERYTHING.format(
        table="memory_memoryedge",
        lane="(SELECT coalesce(session_id, id) FROM memory_memorynode WHERE id = subject.source_id)",
        condition="AND NOT derived",
        order="id",
    )
    number, now = 0, timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        for statement, operation in ((of_nodes, "put_node"), (of_edges, "put_edge")):
            cursor.execute(statement, {"owner": owner_id, "now": now, "operation": operation})
            number += cursor.rowcount
    return number
