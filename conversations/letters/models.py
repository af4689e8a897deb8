"""What a person wishes of letters, and the letters there were. A letter's words are not kept: it is written anew."""

import uuid
from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from conversations.letters.schedule import Rhythm, Wish

# A change of time zone can bring a due moment forward by so much.
ZONES_APART = timedelta(hours=27)


class LetterPreferenceQuerySet(models.QuerySet["LetterPreference"]):
    def perhaps_due(self, now: datetime) -> Self:
        """Those whose letter may be due, wherever they have moved since it was last worked out."""
        return self.exclude(rhythm=Rhythm.OFF).filter(
            Q(next_due_at=None) | Q(next_due_at__lte=now + ZONES_APART)
        )


class LetterPreference(models.Model):
    """Whether, when and where a person wants letters. Off until they ask."""

    class Weekday(models.IntegerChoices):
        MONDAY = 0
        TUESDAY = 1
        WEDNESDAY = 2
        THURSDAY = 3
        FRIDAY = 4
        SATURDAY = 5
        SUNDAY = 6

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="letter_preference"
    )
    rhythm = models.CharField(
        max_length=10,
        choices=[(Rhythm.OFF, "no letters"), (Rhythm.WEEKLY, "every week"), (Rhythm.MONTHLY, "every month")],
        default=Rhythm.OFF,
    )
    weekday = models.PositiveSmallIntegerField(choices=Weekday.choices, default=Weekday.SUNDAY)
    day = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1), MaxValueValidator(28)]
    )
    hour = models.PositiveSmallIntegerField(default=9, validators=[MaxValueValidator(23)])
    address = models.EmailField(blank=True)
    confirmed_address = models.EmailField(
        blank=True, help_text="The address whose holder said yes; letters go to no other."
    )
    asked_to_confirm_at = models.DateTimeField(null=True, blank=True)
    with_quotes = models.BooleanField(default=False)
    since = models.DateTimeField(default=timezone.now, help_text="Nothing that was due before is sent.")
    next_due_at = models.DateTimeField(
        null=True, blank=True, help_text="A hint for the sweeper, not a promise."
    )

    objects = LetterPreferenceQuerySet.as_manager()

    class Meta:
        indexes = [
            # perhaps_due(): whose letter may be due.
            models.Index(fields=["next_due_at"], condition=~Q(rhythm="off"), name="letter_next_due"),
        ]

    def __str__(self) -> str:
        return f"letters of person {self.owner_id}: {self.rhythm}"

    @property
    def is_confirmed(self) -> bool:
        return bool(self.address) and self.address == self.confirmed_address

    @property
    def wish(self) -> Wish:
        return Wish(Rhythm(self.rhythm), self.weekday, self.day, self.hour, self.since)


class DigestQuerySet(models.QuerySet["Digest"]):
    def for_owner(self, owner: AbstractBaseUser) -> Self:
        return self.filter(owner_id=owner.pk)

    def unsettled(self) -> Self:
        return self.filter(state__in=["waiting", "writing", "handing"])

    def abandoned(self, now: datetime) -> Self:
        """Unsettled letters that no worker holds and that may be tried now."""
        return self.unsettled().filter(Q(lease_until=None) | Q(lease_until__lt=now), not_before__lte=now)

    def to_read(self) -> Self:
        """Those with something in them, newest first."""
        return self.filter(state__in=["sent", "unsure", "shown", "failed"]).order_by("-created_at", "-id")


class Digest(models.Model):
    """One letter of one person: for a period, or because they asked for one now."""

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        WRITING = "writing", "being written"
        HANDING = "handing", "being handed to the mail server"
        SENT = "sent", "sent"
        UNSURE = "unsure", "handed over, without an answer"
        SHOWN = "shown", "to be read here"
        EMPTY = "empty", "nothing to tell"
        STOPPED = "stopped", "no longer wanted"
        FAILED = "failed", "could not be sent, to be read here"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="digests")
    due_on = models.DateField(help_text="The local date it is for.")
    asked = models.BooleanField(default=False, help_text="Asked for by hand: belongs to no period.")
    monthly = models.BooleanField(default=False)
    start = models.DateTimeField()
    end = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    facts = models.JSONField(
        default=list, help_text="Which themes moved how: ids, moves and numbers, no words."
    )
    tries = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    settled_at = models.DateTimeField(null=True, blank=True)

    objects = DigestQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "due_on"], condition=Q(asked=False), name="one_digest_per_period"
            ),
        ]
        indexes = [
            # A person's letters, newest first.
            models.Index(fields=["owner", "-created_at"], name="digest_recency"),
            # The sweeper: letters still to be sent.
            models.Index(
                fields=["not_before"],
                condition=Q(state__in=["waiting", "writing", "handing"]),
                name="digest_unsettled",
            ),
        ]

    def __str__(self) -> str:
        return f"letter of {self.due_on} ({self.state})"
