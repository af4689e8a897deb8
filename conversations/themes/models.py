"""The looking for themes: a run, and the notes that runs keep so that nothing is asked of a model twice.

Themes themselves are MemoryNodes with `summarises` edges to the turns they stand on.
"""

import uuid
from datetime import datetime
from typing import Self

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils import timezone


class ThemeRunQuerySet(models.QuerySet["ThemeRun"]):
    """Verbs for runs."""

    def for_owner(self, owner: AbstractBaseUser) -> Self:
        return self.filter(owner_id=owner.pk)

    def unfinished(self) -> Self:
        return self.filter(state__in=["waiting", "running"])

    def abandoned(self, now: datetime | None = None) -> Self:
        """Unfinished runs that no worker holds."""
        return self.unfinished().filter(Q(lease_until=None) | Q(lease_until__lt=now or timezone.now()))

    def newest_first(self) -> Self:
        return self.order_by("-created_at", "-id")


class ThemeRun(models.Model):
    """One look over everything a person said. Its windows, a week or a season, are read from what it found."""

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        STOPPED = "stopped", "stopped"
        FAILED = "failed", "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="theme_runs")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    read = models.CharField(
        max_length=64, blank=True, help_text="What memory held when it was read, as a hash."
    )
    model = models.CharField(max_length=120, blank=True, help_text="Empty where no model was asked.")
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0, help_text="How often a model was asked.")
    error = models.CharField(max_length=60, blank=True)
    tries = models.PositiveIntegerField(default=0)
    stop_requested = models.BooleanField(default=False)
    lease_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ThemeRunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner"],
                condition=Q(state__in=["waiting", "running"]),
                name="one_unfinished_theme_run_per_owner",
            ),
        ]
        indexes = [
            # The page: a person's newest run.
            models.Index(fields=["owner", "-created_at"], name="theme_run_recency"),
            # The sweeper: runs still to be worked off.
            models.Index(
                fields=["lease_until"],
                condition=Q(state__in=["waiting", "running"]),
                name="theme_run_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"themes of person {self.owner_id} ({self.state})"

    @property
    def is_settled(self) -> bool:
        return self.state not in (self.State.WAITING, self.State.RUNNING)


class ThemeNote(models.Model):
    """What a model wrote about a slice of a session, or about other notes. Found again by what it was made of."""

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    made_of = models.CharField(
        max_length=64, help_text="A hash of the model, the prompt and all that was read."
    )
    says = models.JSONField()
    node_ids = ArrayField(models.UUIDField(), help_text="The turns it speaks of; it goes with any of them.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "made_of"], name="one_theme_note_of_a_kind"),
        ]
        indexes = [
            # forget(): the notes that speak of a turn that is gone.
            GinIndex(fields=["node_ids"], name="theme_note_turns"),
        ]

    def __str__(self) -> str:
        return f"note {self.made_of[:8]}"
