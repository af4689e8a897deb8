"""Reads of bells."""

from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import Case, Value, When

if TYPE_CHECKING:
    from safety.models import BellEvent  # noqa: F401 (base classes name them)


class BellEventQuerySet(models.QuerySet["BellEvent"]):
    """Verbs for bells."""

    def for_owner(self, owner: AbstractBaseUser) -> Self:
        return self.filter(owner_id=owner.pk)

    def in_session(self, session_id: UUID) -> Self:
        return self.filter(session_id=session_id)

    def unreviewed(self) -> Self:
        return self.filter(state="open")

    def queue_order(self) -> Self:
        """Hard ones first, then the one that has waited longest."""
        severity = Case(When(level="hard", then=Value(0)), default=Value(1))
        return self.order_by(severity, "created_at", "id")
