"""Reads of the engram, each by owner."""

from datetime import datetime
from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from memory.models import MemoryEdge, MemoryNode, MirrorJob  # noqa: F401 (base classes name them)


MOST_RECENT = 1000
NEVER_RECALLED = ("BellEvent", "StateEvent", "History", "Entity")
NEVER_GIVEN_OUT = ("BellEvent", "StateEvent")


class MemoryNodeQuerySet(models.QuerySet["MemoryNode"]):
    """Verbs for nodes. Every chain begins with `for_owner`, or with `owned_by` where nothing of it is shown."""

    def for_owner(self, owner: AbstractBaseUser) -> Self:
        """What may be shown and recalled: without what came from elsewhere and is not, or not well, screened."""
        return self.owned_by(owner).filter(hold=0)

    def owned_by(self, owner: AbstractBaseUser) -> Self:
        """Everything there is, for writes and for the protocol between engrams."""
        return self.filter(owner_id=owner.pk)

    def given_out(self) -> Self:
        """Without what stays where it was written: bells are for review alone, state events for the operator, and
        what was worked out here another works out for itself."""
        return self.exclude(node_type__in=NEVER_GIVEN_OUT).filter(derived=False)

    def unscreened(self) -> Self:
        return self.filter(hold=1)

    def of_type(self, *node_types: str) -> Self:
        return self.filter(node_type__in=node_types)

    def conversations(self) -> Self:
        return self.filter(node_type="Conversation")

    def knowledge(self) -> Self:
        """What the person asked to have kept."""
        return self.filter(node_type="Knowledge")

    def pinned(self) -> Self:
        return self.filter(tags__contains=["pinned"])

    def in_session(self, session_id: UUID) -> Self:
        return self.filter(session_id=session_id)

    def occurred_between(self, start: datetime | None, end: datetime | None) -> Self:
        """The half-open window [start, end); None leaves that side open."""
        window = self
        if start is not None:
            window = window.filter(occurred_at__gte=_aware(start))
        if end is not None:
            window = window.filter(occurred_at__lt=_aware(end))
        return window

    def recallable(self) -> Self:
        """Without what recall must never see: bells, state events, the rolling history and mere names."""
        return self.exclude(node_type__in=NEVER_RECALLED)

    def unindexed(self) -> Self:
        return self.recallable().filter(indexed_version__lt=models.F("version"), hold=0)

    def newest_first(self) -> Self:
        return self.order_by("-occurred_at", "-id")

    def recent_by_type(self, node_type: str, limit: int, since: datetime | None = None) -> Self:
        """The newest `limit` (1–1000) nodes of a kind, by occurred_at with ties by id; `since` is exclusive.

        Raises ValueError for a limit outside that range and for a naive `since`.
        """
        if not 1 <= limit <= MOST_RECENT:
            raise ValueError(f"limit must be between 1 and {MOST_RECENT}, not {limit}")
        nodes = self.filter(node_type=node_type)
        if since is not None:
            nodes = nodes.filter(occurred_at__gt=_aware(since))
        return nodes.newest_first()[:limit]


class MemoryEdgeQuerySet(models.QuerySet["MemoryEdge"]):
    """Verbs for edges."""

    def owned_by(self, owner: AbstractBaseUser) -> Self:
        return self.filter(owner_id=owner.pk)

    def given_out(self) -> Self:
        """Edges between nodes that are given out, but for those that were worked out here."""
        between = self.exclude(source__node_type__in=NEVER_GIVEN_OUT).exclude(
            target__node_type__in=NEVER_GIVEN_OUT
        )
        return between.filter(derived=False, source__derived=False, target__derived=False)


class MirrorJobQuerySet(models.QuerySet["MirrorJob"]):
    """Verbs for the outbox."""

    def waiting(self) -> Self:
        return self.filter(state="waiting")

    def dead(self) -> Self:
        return self.filter(state="dead")

    def backing_off(self, now: datetime | None = None) -> Self:
        """What was tried in vain and waits for its next try, or for its sender's lease to end."""
        return self.waiting().filter(due_at__gt=now or timezone.now()).order_by("due_at", "id")

    def sent_before(self, moment: datetime) -> Self:
        return self.filter(state="sent", sent_at__lt=moment)


def _aware(moment: datetime) -> datetime:
    if timezone.is_naive(moment):
        raise ValueError("a time must carry its time zone")
    return moment
