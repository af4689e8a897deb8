"""Recency: newest first by when it happened, ties by id, strict arguments."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from memory.models import MemoryNode

NOON = datetime(2026, 5, 12, 12, tzinfo=UTC)


def node(owner: User, at: datetime, content: str = "x") -> MemoryNode:
    return MemoryNode.objects.create(owner=owner, node_type="Conversation", content=content, occurred_at=at)


def test_the_newest_come_first_and_ties_are_broken_by_id(owner: User) -> None:
    nodes = [node(owner, NOON), node(owner, NOON), node(owner, NOON + timedelta(hours=1))]
    tied = sorted(nodes[:2], key=lambda one: one.pk, reverse=True)
    found = list(MemoryNode.objects.for_owner(owner).recent_by_type("Conversation", 10))
    assert found == [nodes[2], *tied]


def test_since_is_exclusive(owner: User) -> None:
    node(owner, NOON)
    later = node(owner, NOON + timedelta(microseconds=1))
    assert list(MemoryNode.objects.for_owner(owner).recent_by_type("Conversation", 10, since=NOON)) == [later]


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_outside_1_to_1000_is_refused(owner: User, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        MemoryNode.objects.for_owner(owner).recent_by_type("Conversation", limit)


def test_a_naive_time_is_refused(owner: User) -> None:
    with pytest.raises(ValueError, match="time zone"):
        MemoryNode.objects.for_owner(owner).recent_by_type("Conversation", 5, since=datetime(2026, 5, 1))  # noqa: DTZ001


def test_nobody_sees_somebody_elses(owner: User, other: User) -> None:
    node(owner, NOON, "sister")
    assert not MemoryNode.objects.for_owner(other).recent_by_type("Conversation", 10)
