"""Only one person's memory goes to the remote engram."""

from django.contrib.auth.models import User
from pytest_django import Settings

from memory.engram.owner import engram_owner_id
from memory.models import MemoryNode, MirrorJob
from memory.services import enqueue_node


def queued_for(person: User) -> int:
    enqueue_node(MemoryNode.objects.create(owner=person, node_type="Knowledge", content="the attic"))
    return MirrorJob.objects.filter(owner=person).count()


def test_the_first_account_is_mirrored_and_no_other(owner: User, other: User, settings: Settings) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    assert (queued_for(owner), queued_for(other)) == (1, 0)


def test_a_named_account_is_mirrored_and_no_other(owner: User, other: User, settings: Settings) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    settings.ENGRAM_OWNER = "other"
    assert (queued_for(owner), queued_for(other)) == (0, 1)


def test_nothing_is_queued_without_a_remote_engram(owner: User, settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    assert queued_for(owner) == 0
    assert engram_owner_id() is None
    assert not MirrorJob.objects.exists()
