"""Finding again what was said, at the browser."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from playwright.sync_api import expect

from conversations.models import Session
from conversations.services import create_session
from memory.indexing import index_pending
from tests.browser.conftest import Visitor
from tests.conversations.talk import talked

pytestmark = pytest.mark.browser
LONG_AGO = datetime.now(UTC) - timedelta(days=120)


@pytest.fixture
def moving(person: User) -> Session:
    session = create_session(owner=person, title="Moving south")
    filler = [(f"Box number {number} is packed.", "One less to think of.") for number in range(60)]
    # In one transaction, or the running worker would answer a turn first.
    with transaction.atomic():
        said = [*filler[:30], ("My sister Ada moved to Lisbon.", "How is she?"), *filler[30:]]
        talked(session, *said, at=LONG_AGO)
    index_pending()
    return session


def test_the_search_page_finds_as_one_types_and_opens_at_the_turn(moving: Session, visitor: Visitor) -> None:
    page = visitor.open("/search/")
    box = page.get_by_role("searchbox", name="Search in all that was said")
    found = page.locator("#found")
    box.press_sequentially("nothinglikeit")
    expect(found).to_contain_text("Nothing that is surely meant")
    box.fill("")
    box.press_sequentially("lisb")
    expect(found.locator("mark").first).to_have_text("Lisbon")
    expect(found).to_contain_text("How is she?")
    page.get_by_label("Meaning", exact=True).check(force=True)
    box.fill("where does my sibling live")
    expect(found).to_contain_text("My sister Ada moved to Lisbon.")
    found.get_by_role("link", name="Moving south").first.click()
    expect(page.locator("#turn-30 .words")).to_be_in_viewport()
    assert "turn-30" in page.evaluate("document.querySelector(':target').id")
    assert page.locator("#turn-30 .words").evaluate("it => getComputedStyle(it).outlineStyle") == "solid"


def test_the_box_narrows_the_list_as_one_types_and_leads_to_the_page(
    moving: Session, visitor: Visitor
) -> None:
    page = visitor.open("/")
    box = page.get_by_role("searchbox", name="Search your conversations")
    box.press_sequentially("nothinglikeit")
    expect(page.locator("#session-list")).to_contain_text("Nothing matches")
    box.fill("sister")
    expect(page.locator("#session-list")).to_contain_text("Moving south")
    box.press("Enter")
    expect(page.locator("#found mark").first).to_have_text("sister")


def test_searching_needs_no_javascript(moving: Session, visitor: Visitor) -> None:
    page = visitor.sign_in(visitor.new_page(java_script_enabled=False))
    page.goto(f"{visitor.stack.url}/search/")
    page.get_by_role("searchbox", name="Search in all that was said").fill("sister")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#found mark").first).to_have_text("sister")
    page.locator("#found").get_by_role("link", name="Moving south").first.click()
    expect(page.locator("#turn-30 .words")).to_be_in_viewport()
