"""Services of letters: what a person wishes, which are due, and each handed to the mail server once.

Between the server's yes and our row there is no transaction, so a letter is marked as being handed over before it is.
Where a worker died or the line broke after that, nobody knows whether it arrived, and it is not sent again: one letter
too few can be read on its page, one too many cannot be taken back. Up to then a letter may be tried again.
"""

import logging
import smtplib
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core import signing
from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from conversations.hints import hint_confirmation, hint_letter
from conversations.letters.models import Digest, LetterPreference
from conversations.letters.schedule import Rhythm, due, next_due
from conversations.letters.writing import Letter, absolute, facts_of, write
from conversations.services import profile_of
from conversations.themes import runs
from memory.models import MemoryNode

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=15)  # looking for themes comes first
THEMES_WAITED_FOR = timedelta(minutes=30)
FIRST_PAUSE = timedelta(minutes=1)
MOST_TRIES = 8  # with doubling pauses, about two hours
ASKED_A_DAY = 5
CONFIRMATION_PAUSE = timedelta(minutes=1)
CONFIRMATION_RUNS_OUT = timedelta(days=7)
NO_MAIL = "django.core.mail.backends.dummy.EmailBackend"
# The server said no, or was not reached: nothing was taken, and trying again sends no second letter.
_NOT_TAKEN = (
    smtplib.SMTPSenderRefused,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPDataError,
    smtplib.SMTPHeloError,
    smtplib.SMTPAuthenticationError,
    smtplib.SMTPNotSupportedError,
)

State = Digest.State


class AskedTooOften(Exception):
    """Enough letters were asked for today, or one is on its way."""


# --- What the person wishes -------------------------------------------------------------------------------------


def preference_of(owner: AbstractBaseUser) -> LetterPreference:
    return LetterPreference.objects.get_or_create(owner_id=owner.pk)[0]


def wish(*, preference: LetterPreference, now: datetime | None = None) -> LetterPreference:
    """Keep a changed preference. Letters that are switched on begin with the next due day."""
    now = now or timezone.now()
    before = LetterPreference.objects.filter(pk=preference.pk).values_list("rhythm", flat=True).first()
    if before == Rhythm.OFF:
        preference.since = now
    tz = ZoneInfo(profile_of(preference.owner).time_zone)
    preference.next_due_at = next_due(preference.wish, now=now, tz=tz)
    preference.save()
    return preference


def stop_letters(*, owner_id: int) -> None:
    """No more letters, those that wait included."""
    LetterPreference.objects.filter(owner_id=owner_id).update(rhythm=Rhythm.OFF, next_due_at=None)
    Digest.objects.filter(owner_id=owner_id, state=State.WAITING).update(
        state=State.STOPPED, settled_at=timezone.now(), lease_until=None
    )


def stop_token(owner_id: int) -> str:
    """What opens the page that stops this person's letters, and nothing else. It does not run out."""
    return signing.Signer(salt="letters.stop").sign(str(owner_id))


def owner_of_token(token: str) -> int | None:
    """Whose letters the token stops; None for one that is not ours."""
    try:
        return int(signing.Signer(salt="letters.stop").unsign(token))
    except (signing.BadSignature, ValueError):
        return None


def has_mail() -> bool:
    """Whether this Neuron has a mail server."""
    return settings.EMAIL_BACKEND != NO_MAIL


def can_mail(preference: LetterPreference) -> bool:
    """Whether letters go out by mail. To an address that nobody confirmed they do not: it may be a stranger's."""
    return has_mail() and preference.is_confirmed


# --- Whose address it is ----------------------------------------------------------------------------------------


def wants_confirmation(preference: LetterPreference) -> bool:
    """Whether there is an address that letters would go to if its holder said yes."""
    return has_mail() and bool(preference.address) and not preference.is_confirmed


def ask_to_confirm(*, preference: LetterPreference, now: datetime | None = None) -> bool:
    """Have a mail sent that asks the holder of the address; False where one was sent a moment ago."""
    now = now or timezone.now()
    asked = LetterPreference.objects.filter(pk=preference.pk).exclude(
        asked_to_confirm_at__gt=now - CONFIRMATION_PAUSE
    )
    if not asked.update(asked_to_confirm_at=now):
        return False
    hint_confirmation(preference.owner_id)
    return True


def send_confirmation(owner_id: int) -> None:
    """Ask the holder of an address whether letters may go there. What cannot be sent can be asked for again."""
    preference = LetterPreference.objects.filter(owner_id=owner_id).first()
    if preference is None or not wants_confirmation(preference):
        return
    token = signing.dumps([owner_id, preference.address], salt="letters.confirm")
    link = absolute(reverse("letters-confirm", args=[token]))
    message = EmailMessage(
        subject="May Neuron write to this address?",
        body=render_to_string("letters/confirm.txt", {"link": link, "neuron": settings.PUBLIC_URL}),
        to=[preference.address],
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        message.send()
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("an address could not be asked to confirm itself (%s)", type(error).__name__)
        LetterPreference.objects.filter(pk=preference.pk).update(asked_to_confirm_at=None)


def address_of_token(token: str) -> tuple[int, str] | None:
    """The person and the address that a link confirms; None for a link that is not ours or has run out."""
    try:
        owner_id, address = signing.loads(token, salt="letters.confirm", max_age=CONFIRMATION_RUNS_OUT)
    except signing.BadSignature:
        return None
    return int(owner_id), str(address)


def confirm_address(*, owner_id: int, address: str) -> bool:
    """False where the person has named another address since."""
    named = LetterPreference.objects.filter(owner_id=owner_id, address=address)
    return bool(named.update(confirmed_address=address))


# --- Which are due ----------------------------------------------------------------------------------------------


def sweep(*, now: datetime | None = None) -> int:
    """Make the rows of letters that are due, and wake those that no worker holds. Returns how many were made."""
    now = now or timezone.now()
    made = 0
    for preference in LetterPreference.objects.perhaps_due(now).select_related("owner").iterator():
        made += _make_due(preference, now)
    for digest in Digest.objects.abandoned(now).order_by("not_before")[:100]:
        hint_letter(digest.pk)
    return made


def _make_due(preference: LetterPreference, now: datetime) -> bool:
    tz = ZoneInfo(profile_of(preference.owner).time_zone)
    letters = Digest.objects.for_owner(preference.owner).filter(asked=False)
    last = letters.order_by("-due_on").values_list("due_on", "end").first()
    period = due(preference.wish, now=now, tz=tz, last=last)
    made = False
    if period is not None:
        # Two beats at once: the second finds the first one's row.
        _, made = Digest.objects.get_or_create(
            owner_id=preference.owner_id,
            due_on=period.due_on,
            asked=False,
            defaults={
                "monthly": preference.rhythm == Rhythm.MONTHLY,
                "start": period.start,
                "end": period.end,
                "not_before": period.due_at,
                "created_at": now,
            },
        )
    following = next_due(preference.wish, now=now, tz=tz)
    LetterPreference.objects.filter(pk=preference.pk, rhythm=preference.rhythm).update(next_due_at=following)
    return made


def ask_now(*, owner: AbstractBaseUser, now: datetime | None = None) -> Digest:
    """A letter about the time up to now, that stands for no period. Raises AskedTooOften."""
    now = now or timezone.now()
    asked = Digest.objects.for_owner(owner).filter(asked=True)
    lately = asked.filter(created_at__gt=now - timedelta(days=1)).count()
    if lately >= ASKED_A_DAY or asked.unsettled().exists():
        raise AskedTooOften
    digest = upto_now(owner, now=now)
    digest.save()
    hint_letter(digest.pk)
    return digest


def upto_now(owner: AbstractBaseUser, *, now: datetime) -> Digest:
    """The letter that would be written now, not kept: of the last week, or the last month."""
    monthly = preference_of(owner).rhythm == Rhythm.MONTHLY
    tz = ZoneInfo(profile_of(owner).time_zone)
    return Digest(
        owner_id=owner.pk,
        due_on=now.astimezone(tz).date(),
        asked=True,
        monthly=monthly,
        start=now - timedelta(days=30 if monthly else 7),
        end=now,
        not_before=now,
        created_at=now,
    )


# --- One letter -------------------------------------------------------------------------------------------------


def deliver(digest_id: UUID, *, now: datetime | None = None) -> bool:
    """Write and send one letter, or put it on its page. False where it is not this worker's to send, or not yet."""
    now = now or timezone.now()
    digest = _claim(digest_id, now)
    if digest is None:
        return False
    preference = preference_of(digest.owner)
    if not digest.asked and preference.rhythm == Rhythm.OFF:
        return _settle(digest, State.STOPPED)
    talk = MemoryNode.objects.for_owner(digest.owner).conversations()
    if not talk.occurred_between(digest.start, digest.end).exists():
        return _settle(digest, State.EMPTY)
    if not runs.refresh(owner=digest.owner) and now < digest.created_at + THEMES_WAITED_FOR:
        # Another worker is looking for themes.
        _release(digest, now + FIRST_PAUSE, tries=digest.tries - 1)
        return False
    digest.facts = facts_of(digest.owner, digest)
    letter = write(digest.owner, digest, with_quotes=preference.with_quotes)
    if letter.is_empty:
        return _settle(digest, State.EMPTY)
    if not can_mail(preference):
        return _settle(digest, State.SHOWN)
    return _mail(digest, message_of(letter, preference), now)


def _mail(digest: Digest, message: EmailMultiAlternatives, now: datetime) -> bool:
    connection = get_connection()
    message.connection = connection
    try:
        connection.open()
    except (smtplib.SMTPException, OSError) as error:
        return _try_later(digest, error, now)
    if not _held(digest).update(state=State.HANDING, lease_until=timezone.now() + LEASE, facts=digest.facts):
        connection.close()
        return False
    try:
        message.send()
    except _NOT_TAKEN as error:
        return _try_later(digest, error, now)
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("letter %s was handed over without an answer (%s)", digest.pk, type(error).__name__)
        return _settle(digest, State.UNSURE)
    finally:
        _close(connection)
    return _settle(digest, State.SENT)


def _close(connection: Any) -> None:
    try:
        connection.close()
    except (smtplib.SMTPException, OSError):
        logger.info("the mail server closed the line first")


def _claim(digest_id: UUID, now: datetime) -> Digest | None:
    free = Digest.objects.filter(pk=digest_id).abandoned(now)
    # Found here, it was being handed over when its worker died.
    if free.filter(state=State.HANDING).update(state=State.UNSURE, settled_at=now, lease_until=None):
        logger.warning("letter %s was handed over by a worker that died; it is not sent again", digest_id)
        return None
    for digest in free:
        mine = (
            Digest.objects.filter(pk=digest_id, tries=digest.tries)
            .abandoned(now)
            .exclude(state=State.HANDING)
        )
        lease = max(now, timezone.now()) + LEASE
        if mine.update(state=State.WRITING, tries=digest.tries + 1, lease_until=lease):
            return Digest.objects.select_related("owner").get(pk=digest_id)
    return None


def _held(digest: Digest) -> Any:
    """The letter, if it is still this worker's: the number of tries is the token."""
    return Digest.objects.filter(pk=digest.pk, tries=digest.tries, state__in=[State.WRITING, State.HANDING])


def _settle(digest: Digest, state: str) -> bool:
    return bool(
        _held(digest).update(state=state, facts=digest.facts, settled_at=timezone.now(), lease_until=None)
    )


def _release(digest: Digest, not_before: datetime, *, tries: int) -> None:
    _held(digest).update(state=State.WAITING, lease_until=None, not_before=not_before, tries=tries)


def _try_later(digest: Digest, error: Exception, now: datetime) -> bool:
    logger.warning("letter %s was not taken (%s)", digest.pk, type(error).__name__)
    if digest.tries >= MOST_TRIES:
        return _settle(digest, State.FAILED)
    _release(digest, now + FIRST_PAUSE * 2 ** (digest.tries - 1), tries=digest.tries)
    return False


def message_of(letter: Letter, preference: LetterPreference) -> EmailMultiAlternatives:
    """The letter as mail: text and HTML, with the headers of RFC 8058 that stop it with one click."""
    stop = absolute(reverse("letters-stop", args=[stop_token(preference.owner_id)]))
    context = {"letter": letter, "stop": stop}
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    message = EmailMultiAlternatives(
        subject=letter.subject,
        body=render_to_string("letters/mail.txt", context),
        to=[preference.address],
        headers={
            # The same for every try, so that what sees both can tell that they are one.
            "Message-ID": f"<{letter.digest.pk}@{host}>",
            "List-Unsubscribe": f"<{stop}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
        },
    )
    message.attach_alternative(render_to_string("letters/mail.html", context), "text/html")
    return message
