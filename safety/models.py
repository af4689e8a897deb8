"""Bells, their review, and the risk a person carries from message to message."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Case, Q, Value, When
from django.utils import timezone

from safety.querysets import BellEventQuerySet

SUMMARY_LENGTH = 80


class BellEvent(models.Model):
    """A message that rang, or a reply that was withheld. Never deleted; the message is kept to 80 characters."""

    class Level(models.TextChoices):
        HARD = "hard", "hard bell"
        SOFT = "soft", "soft bell"
        WITHHELD = "withheld", "withheld reply"

    class State(models.TextChoices):
        OPEN = "open", "open"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        RESOLVED = "resolved", "resolved"
        FALSE_POSITIVE = "false_positive", "false positive"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Kept when the person leaves: the review's record stays, without them.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="bells"
    )
    # A plain id: a bell outlives the session it rang in.
    session_id = models.UUIDField(null=True, blank=True)
    after_index = models.IntegerField(
        default=-1, help_text="The turn after which it rang; -1 before the first."
    )
    client_key = models.CharField(max_length=64, blank=True)
    level = models.CharField(max_length=10, choices=Level.choices)
    reason = models.CharField(max_length=120)
    summary = models.CharField(max_length=SUMMARY_LENGTH, blank=True)
    score = models.FloatField(default=0.0)
    signals = models.JSONField(default=list, blank=True)
    detector_version = models.CharField(max_length=64, blank=True)
    ideation_level = models.PositiveSmallIntegerField(null=True, blank=True)
    resources_shown = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)

    objects = BellEventQuerySet.as_manager()

    class Meta:
        constraints = [
            # A message sent twice rings once.
            models.UniqueConstraint(
                fields=["session_id", "client_key"], condition=~Q(client_key=""), name="one_bell_per_message"
            ),
            models.CheckConstraint(
                condition=Q(ideation_level__isnull=True) | Q(ideation_level__range=(1, 5)),
                name="ideation_level_1_to_5",
            ),
        ]
        indexes = [
            # The steward's queue: open ones, hard first, oldest first.
            models.Index(
                Case(When(level="hard", then=Value(0)), default=Value(1)),
                "created_at",
                "id",
                condition=Q(state="open"),
                name="bell_queue",
            ),
            # The markers of one session's page.
            models.Index(fields=["owner", "session_id", "after_index"], name="bell_of_session"),
        ]

    def __str__(self) -> str:
        return f"{self.get_level_display()}, {self.reason}"


class BellReview(models.Model):
    """One step of a bell's review. Append-only: the latest decides the bell's state."""

    bell = models.ForeignKey(BellEvent, on_delete=models.PROTECT, related_name="reviews")
    steward = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=20, choices=BellEvent.State.choices)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return f"{self.state} by {self.steward}"


class BellView(models.Model):
    """That a steward opened a bell. Append-only: who saw what stays known."""

    bell = models.ForeignKey(BellEvent, on_delete=models.PROTECT, related_name="views")
    steward = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return f"seen by {self.steward}"


class StewardNotice(models.Model):
    """That stewards are to be told, of one bell or once a day of all that wait. Written with the bell itself."""

    bell = models.OneToOneField(BellEvent, null=True, on_delete=models.PROTECT, related_name="notice")
    day = models.DateField(null=True, unique=True, help_text="For the daily digest.")
    tries = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now, help_text="Not before; doubles as the lease.")
    mailed_at = models.DateTimeField(null=True)
    posted_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(bell__isnull=False, day=None) | Q(bell=None, day__isnull=False),
                name="notice_of_a_bell_or_a_day",
            ),
        ]
        indexes = [
            # The sweeper: notices still to be sent.
            models.Index(fields=["due_at"], condition=Q(settled_at=None), name="notice_due"),
        ]

    def __str__(self) -> str:
        return f"digest of {self.day}" if self.day else f"notice of bell {self.bell_id}"


class EditedHelpLine(models.Model):
    """A help line as the admin shows it. Once somebody edited it, it stands in the place of the data file's of that
    country and name; a row that nobody edited only follows the file.
    """

    country = models.CharField(max_length=2, help_text="Two letters, as in the data file: US, DE …")
    name = models.CharField(max_length=120)
    phone = models.CharField(max_length=40, blank=True)
    sms = models.CharField("text number", max_length=40, blank=True)
    sms_word = models.CharField("text this word", max_length=40, blank=True)
    url = models.URLField(blank=True)
    hours = models.CharField(max_length=80, blank=True)
    source = models.CharField(max_length=200, help_text="Where it was looked up: the provider's own page.")
    verified_on = models.DateField(
        null=True, blank=True, help_text="When somebody last confirmed it with the provider."
    )
    shown = models.BooleanField(default=True, help_text="The last line of a country is shown in any case.")
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    edited_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = "help line"
        ordering = ["country", "id"]
        constraints = [
            models.UniqueConstraint(fields=["country", "name"], name="one_help_line_of_a_name"),
            models.CheckConstraint(condition=~Q(phone="", sms="", url=""), name="help_line_can_be_reached"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.country})"


class Referral(models.Model):
    """That help lines were shown for a bell or a turn: once, however often its page is opened.

    It says nothing of the person: `of` is the id of the bell or the turn, which may long be gone.
    """

    class Level(models.TextChoices):
        HARD = "hard", "in place of an answer"
        SOFT = "soft", "beside an answer"

    of = models.UUIDField(unique=True)
    level = models.CharField(max_length=4, choices=Level.choices)
    shown_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"help lines {self.get_level_display()}"


class RiskState(models.Model):
    """What recent messages of a person leave behind, 0 to 1; it fades with time, not with filler turns."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="risk_state"
    )
    risk = models.FloatField(default=0.0)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(risk__range=(0, 1)), name="risk_between_0_and_1"),
        ]

    def __str__(self) -> str:
        return f"risk of person {self.owner_id}"
