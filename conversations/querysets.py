"""Reads of sessions, turns and imports, each by owner."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import Q
from django.utils import timezone

if TYPE_CHECKING:
    from conversations.models import ImportJob, Session, Turn  # noqa: F401 (base classes name them)


class SessionQuerySet(models.QuerySet["Session"]):
    """Verbs for sessions."""

    def for_owner(self, owner: AbstractBaseUser) -> Self:
        return self.filter(owner_id=owner.pk)

    def active(self) -> Self:
        return self.filter(archived_at=None)

    def newest_first(self) -> Self:
        return self.order_by("-last_turn_at", "-id")


class TurnQuerySet(models.QuerySet["Turn"]):
    """Verbs for turns."""

    def for_owner(self, owner: AbstractBaseUser) -> Self:
        return self.filter(owner_id=owner.pk)

    def since(self, moment: datetime) -> Self:
        return self.filter(created_at__gt=moment)

    def complete(self) -> Self:
        return self.filter(status="complete")

    def told(self) -> Self:
        """Without the turns that the person had forgotten."""
        return self.exclude(status="forgotten")

    def unsettled(self) -> Self:
        return self.filter(status__in=["pending", "answering"])

    def abandoned(self, now: datetime | None = None) -> Self:
        """Unsettled turns whose lease ran out: no worker holds them any more."""
        return self.unsettled().filter(Q(lease_until=None) | Q(lease_until__lt=now or timezone.now()))

    def in_thread(self, session: "Session") -> Self:
        """What the session shows, in order: its origins' turns before each fork, then its own."""
        shown = Q(session=session)
        below, origin, fork_index = session, session.forked_from, session.forked_at
        while origin is not None and fork_index is not None:
            shown |= Q(session=origin, turn_index__lt=fork_index)
            below, fork_index = origin, min(fork_index, origin.forked_at or fork_index)
            origin = below.forked_from
        return self.filter(shown, owner_id=session.owner_id).order_by("turn_index", "id")

    def newest_first(self) -> Self:
        return self.order_by("-created_at", "-id")


class ImportJobQuerySet(models.QuerySet["ImportJob"]):
    """Verbs for imports."""

    def for_owner(self, owner: AbstractBaseUser) -> Self:
        return self.filter(owner_id=owner.pk)

    def abandoned(self, now: datetime | None = None) -> Self:
        return self.filter(state__in=["waiting", "running"]).filter(
            Q(lease_until=None) | Q(lease_until__lt=now or timezone.now())
        )

    def newest_first(self) -> Self:
        return self.order_by("-created_at", "-id")
