"""Telling stewards that a bell waits: by e-mail and webhook, without a word of the message.

A notice is a row, written with its bell. Sending may be tried often; each way is used once.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from safety import explain, statistics, webhook
from safety.models import StewardNotice
from safety.stewards import stewards

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
LONGEST_PAUSE = timedelta(hours=1)
GIVE_UP_AFTER = timedelta(days=2)
DIGEST_HOUR = 7


def sweep(*, now: datetime | None = None) -> int:
    """Make the day's digest due, and send what is due. Returns how many were settled."""
    now = now or timezone.now()
    make_digest_due(now=now)
    due = StewardNotice.objects.filter(settled_at=None, due_at__lte=now).order_by("due_at", "id")
    return sum(_send(notice_id, now) for notice_id in due.values_list("pk", flat=True)[:100])


def make_digest_due(*, now: datetime) -> None:
    """Once a day from seven o'clock on, where something waits."""
    local = timezone.localtime(now)
    if local.hour >= DIGEST_HOUR and statistics.queue(now).waiting:
        StewardNotice.objects.get_or_create(day=local.date(), defaults={"due_at": now})


def _send(notice_id: int, now: datetime) -> bool:
    """Claim the notice and use each way that has not been used. No transaction is open meanwhile."""
    mine = StewardNotice.objects.filter(pk=notice_id, settled_at=None)
    pause = LEASE
    if not mine.filter(due_at__lte=now).update(due_at=now + pause, tries=F("tries") + 1):
        return False
    notice = StewardNotice.objects.get(pk=notice_id)
    subject, body, event = _words(notice, now)
    if notice.mailed_at is None and _mail(subject, body):
        mine.update(mailed_at=now)
        notice.mailed_at = now
    if notice.posted_at is None and _post(event):
        mine.update(posted_at=now)
        notice.posted_at = now
    if (notice.mailed_at and notice.posted_at) or notice.created_at < now - GIVE_UP_AFTER:
        return bool(mine.update(settled_at=now))
    mine.update(due_at=now + min(LEASE * 2 ** min(notice.tries, 10), LONGEST_PAUSE))
    return False


def _words(notice: StewardNotice, now: datetime) -> tuple[str, str, dict[str, object]]:
    queue = statistics.queue(now)
    waits = f"{queue.waiting} in all wait for review, {queue.hard} of them hard."
    if notice.bell_id is not None:
        address = settings.PUBLIC_URL + reverse("admin:safety_bellevent_change", args=[notice.bell_id])
        body = f"A hard bell rang and waits for review:\n{address}\n\n{waits}\n"
        event: dict[str, object] = {"event": "hard_bell", "bell": str(notice.bell_id)}
        subject = "Neuron: a hard bell waits for review"
    else:
        address = settings.PUBLIC_URL + reverse("admin:safety_bellevent_changelist")
        longest = (
            f" The oldest has waited for {explain.waiting(queue.longest)}."
            if queue.longest is not None
            else ""
        )
        body = f"{waits}{longest}\n{address}\n"
        event = {"event": "digest"}
        subject = "Neuron: bells that wait for review"
    return subject, body, {**event, "waiting": queue.waiting, "hard": queue.hard, "url": address}


def _mail(subject: str, body: str) -> bool:
    """Whether it is done: sent, or nobody has an address."""
    addresses = list(stewards().exclude(email="").values_list("email", flat=True))
    if not addresses:
        return True
    try:
        EmailMessage(subject, body, to=[], bcc=addresses).send()
    except OSError as error:  # smtplib's errors and the network's
        logger.warning("stewards could not be told by e-mail: %s", type(error).__name__)
        return False
    return True


def _post(event: dict[str, object]) -> bool:
    """Whether it is done: taken, or there is no webhook."""
    if not webhook.is_configured():
        return True
    try:
        webhook.post(event)
    except webhook.WebhookFailed as error:
        logger.warning("the stewards' webhook did not take a notice: %s", error)
        return False
    return True
