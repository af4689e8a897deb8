"""Remembered nodes over the API."""

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memory.models import MemoryNode

API = "/api/v1/nodes"


def node(owner: User, **values: object) -> MemoryNode:
    standard = {"node_type": "Knowledge", "content": "The lake is deep.", "occurred_at": timezone.now()}
    return MemoryNode.objects.create(owner=owner, **{**standard, **values})


def test_only_ones_own_nodes_and_no_bells(owner: User, owner_client: Client, other_client: Client) -> None:
    mine = node(owner)
    bell = node(owner, node_type="BellEvent", content="BELL:hard | x | summary:canaryword")
    assert [one["id"] for one in owner_client.get(API).json()["results"]] == [str(mine.pk)]
    assert owner_client.get(f"{API}/{mine.pk}").json()["content"] == "The lake is deep."
    assert other_client.get(API).json()["results"] == []
    assert other_client.get(f"{API}/{mine.pk}").status_code == 404
    assert owner_client.get(f"{API}/{bell.pk}").status_code == 404
    assert owner_client.get(f"{API}?type=BellEvent").json()["results"] == []


def test_nodes_are_read_by_kind_and_never_written(owner: User, owner_client: Client) -> None:
    node(owner)
    node(owner, node_type="Theme")
    assert len(owner_client.get(f"{API}?type=Theme").json()["results"]) == 1
    assert owner_client.get(f"{API}?type=%00").json()["results"] == []
    assert owner_client.post(API, {}, "application/json").status_code == 405
    assert owner_client.delete(f"{API}/{MemoryNode.objects.first().pk}").status_code == 405
