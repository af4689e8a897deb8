"""Themes stand at the remote as every other memory does, and lose there what they lose here."""

import pytest
from django.contrib.auth.models import User

from conversations.services import delete_session
from conversations.themes import kept, runs
from tests.conversations.themed import remember_topics
from tests.memory.engram.remote import Engram, FaultProxy
from tests.memory.engram.test_mirror import assert_mirrored, send_all

pytestmark = pytest.mark.usefixtures("built_in")


def test_a_deleted_sessions_share_of_the_themes_goes_at_the_remote_too(
    owner: User, proxy: FaultProxy, engram: Engram
) -> None:
    sessions = remember_topics(owner, ("garden", "guitar", "sleep"))
    assert runs.refresh(owner=owner)
    send_all()
    assert_mirrored(owner, engram)
    themes = {str(pk) for pk in kept.themes_of(owner).values_list("pk", flat=True)}
    assert themes <= engram.nodes.keys()

    gone = next(one for one in sessions if one.turns.filter(a__contains="Nine courgettes").exists())
    turns, edges = gone.turns.count(), len(engram.edges)
    delete_session(session=gone)
    send_all()
    assert_mirrored(owner, engram)
    assert len(engram.edges) <= edges - turns
    assert "Nine courgettes" not in str(engram.nodes)

    for session in sessions:
        if session is not gone:
            delete_session(session=session)
    send_all()
    assert_mirrored(owner, engram)
    assert not themes & engram.nodes.keys()
    assert engram.edges == {}
