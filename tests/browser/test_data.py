"""Your data: the memory goes out as a file and comes back from one."""

import json

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from memory.models import MemoryNode
from memory.services import remember_turn
from tests.browser.conftest import Visitor, orm
from tests.memory.recalling import LONG_AGO

pytestmark = pytest.mark.browser


@pytest.fixture
def remembered(person: User) -> MemoryNode:
    session_id = "7f1b4c52-0000-4000-8000-000000000001"
    return remember_turn(
        owner=person,
        session_id=session_id,
        turn_index=0,
        q="How deep is the lake?",
        a="Forty metres.",
        created_at=LONG_AGO,
        source="web",
    )


def test_the_memory_is_downloaded_and_brought_back(remembered: MemoryNode, visitor: Visitor) -> None:
    page = visitor.open("/settings/")
    page.get_by_role("link", name="Take it along").click()
    expect(page.locator("main")).to_contain_text("1 memory")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download the memory").click()
    path = downloading.value.path()
    assert [node["id"] for node in json.loads(path.read_text())["nodes"]] == [str(remembered.pk)]
    orm(lambda: MemoryNode.objects.filter(pk=remembered.pk).delete())
    page.get_by_label("Bring a memory back").set_input_files(path)
    page.get_by_role("button", name="Bring it back").click()
    expect(page.locator("main")).to_contain_text("1 memory and 0 connections came back")
    assert orm(lambda: MemoryNode.objects.filter(pk=remembered.pk).exists())
    spoilt = path.read_bytes().replace(b"Forty", b"Fifty")
    page.get_by_label("Bring a memory back").set_input_files(
        {"name": "memory.json", "mimeType": "application/json", "buffer": spoilt}
    )
    page.get_by_role("button", name="Bring it back").click()
    expect(page.locator("main")).to_contain_text("changed or damaged")
