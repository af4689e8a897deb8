"""What an operator sees of the remote engram: the breaker, what waits and why, the sync, what happened."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import redis
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Count, Min, Q
from django.utils import timezone

from memory.engram.awareness import Event, recent_events
from memory.engram.breaker import Breaker, BreakerState
from memory.engram.errors import EngramError
from memory.engram.owner import engram_owner_id
from memory.models import EngramSync, MirrorJob

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Outbox:
    """Counts of jobs; `oldest` is when the longest waiting one was written."""

    waiting: int
    failed_before: int
    being_sent: int
    dead: int
    sent_lately: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class Status:
    """One look. `breaker` and `events` are None where Valkey does not answer."""

    at: datetime
    address: str
    owner: str
    breaker: BreakerState | None
    last_error_at: datetime | None
    outbox: Outbox
    stuck: list[MirrorJob]
    sync: EngramSync | None
    events: list[Event] | None

    @property
    def is_configured(self) -> bool:
        return bool(self.address)


def look(now: datetime | None = None) -> Status:
    """The present state, from here alone: the remote is not called."""
    now = now or timezone.now()
    owner_id = engram_owner_id()
    sync = EngramSync.objects.filter(owner=owner_id).select_related("owner").first()
    breaker = breaker_state()
    at = breaker.last_error_at if breaker else None
    return Status(
        at=now,
        address=settings.ENGRAM_URL,
        owner=_name(owner_id),
        breaker=breaker,
        last_error_at=datetime.fromtimestamp(at, UTC) if at else None,
        outbox=outbox_counts(now),
        stuck=stuck_jobs(),
        sync=sync,
        events=_events(),
    )


def breaker_state() -> BreakerState | None:
    """The breaker's state, or None where Valkey does not answer."""
    try:
        return Breaker.from_settings().look()
    except EngramError:
        return None


def outbox_counts(now: datetime) -> Outbox:
    """Two reads: what waits, from its own small index, and what was sent within the last minute."""
    waiting = MirrorJob.objects.waiting().aggregate(
        number=Count("pk"),
        failed=Count("pk", filter=Q(tries__gt=0)),
        taken=Count("pk", filter=Q(claim__isnull=False, due_at__gt=now)),
        oldest=Min("created_at"),
    )
    sent = MirrorJob.objects.filter(state=MirrorJob.State.SENT, sent_at__gte=now - timedelta(minutes=1))
    return Outbox(
        waiting=waiting["number"],
        failed_before=waiting["failed"],
        being_sent=waiting["taken"],
        dead=MirrorJob.objects.dead().count(),
        sent_lately=sent.count(),
        oldest=waiting["oldest"],
    )


def stuck_jobs() -> list[MirrorJob]:
    """The jobs an operator may want to look at: refused ones, then those that failed most often."""
    dead = list(MirrorJob.objects.dead().order_by("-pk")[:SHOWN])
    failing = MirrorJob.objects.waiting().filter(tries__gt=0).order_by("-tries", "pk")
    return dead + list(failing[: SHOWN - len(dead)])


def _name(owner_id: int | None) -> str:
    if owner_id is None:
        return ""
    return get_user_model().objects.get(pk=owner_id).get_username()


def _events() -> list[Event] | None:
    try:
        return recent_events(SHOWN)
    except (redis.exceptions.RedisError, OSError):
        return None
