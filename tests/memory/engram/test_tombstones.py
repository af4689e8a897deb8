"""What a deleted node leaves behind: its id, and nothing that could be sent of it."""

import uuid

from django.contrib.auth.models import User
from pytest_django import Settings

from memory.models import MemoryNode, MirrorJob, Tombstone
from memory.services import delete_nodes, enqueue_node


def remembered(owner: User) -> MemoryNode:
    node = MemoryNode.objects.create(owner=owner, node_type="Knowledge", content="the attic", version=4)
    enqueue_node(node)
    return node


def test_a_deleted_node_leaves_a_tombstone_of_its_version(owner: User, settings: Settings) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    node = remembered(owner)
    delete_nodes(owner=owner, node_ids=[node.pk])
    stone = Tombstone.objects.get()
    assert (stone.owner_id, stone.node_id, stone.version) == (owner.pk, node.pk, 4)
    assert [job.operation for job in MirrorJob.objects.all()] == ["delete_node"]


def test_tombstones_are_written_without_a_remote_engram_too(owner: User, settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    node = remembered(owner)
    delete_nodes(owner=owner, node_ids=[node.pk])
    assert Tombstone.objects.count() == 1
    assert not MirrorJob.objects.exists()


def test_nobody_elses_node_is_deleted_or_marked(owner: User, other: User) -> None:
    node = remembered(owner)
    assert delete_nodes(owner=other, node_ids=[node.pk]) == 0
    assert not Tombstone.objects.exists()


def test_what_is_being_sent_keeps_its_place_before_the_deletion(owner: User, settings: Settings) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    node = remembered(owner)
    MirrorJob.objects.update(claim=uuid.uuid4())
    delete_nodes(owner=owner, node_ids=[node.pk])
    jobs = MirrorJob.objects.order_by("id")
    assert [job.operation for job in jobs] == ["put_node", "delete_node"]
    assert len({job.lane for job in jobs}) == 1
