"""Finding again what was said, and keeping it, at the browser."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from playwright.sync_api import expect

from conversations.models import Session
from conversations.services import create_session
from memory.connections import connect_pending
from memory.indexing import index_pending
from tests.browser.conftest import Visitor, orm
from tests.conversations.talk import talked
from tests.scripted_provider import Script

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


OTHER_TALK = [
    ("What should I cook tonight?", "A lentil soup keeps well and takes half an hour."),
    ("The car makes a rattling noise.", "Have the exhaust bracket looked at first."),
    ("I slept badly again.", "That sounds tiring. Shall we look at your evenings?"),
    ("Can you explain compound interest?", "Interest that itself earns interest, year after year."),
]


@pytest.fixture
def four_months(person: User) -> Session:
    """Something said four months ago, and twenty sessions since."""
    with transaction.atomic():
        first = create_session(owner=person, title="A new friend")
        said = ("I adopted a greyhound called Juno. She is afraid of the stairs.", "Give her time.")
        talked(first, OTHER_TALK[0], said, OTHER_TALK[1], at=LONG_AGO)
        for week in range(1, 21):
            session = create_session(owner=person, title=f"Week {week}")
            at = LONG_AGO + timedelta(days=5 * week)
            talked(session, OTHER_TALK[week % 4], OTHER_TALK[(week + 1) % 4], at=at)
        connect_pending()
    return first


def test_what_was_said_four_months_and_twenty_sessions_ago_is_answered_with_the_link_to_its_turn(
    four_months: Session, visitor: Visitor
) -> None:
    # A worker's first answer loads what it needs; how long that takes is not what is asked here.
    visitor.say("Good morning")
    visitor.answered()
    visitor.open()
    # The model knows nothing: it repeats what it was given.
    visitor.stack.provider.default = Script(echo_system=True)
    visitor.say("What is my greyhound called?")
    reply = visitor.answered()
    expect(reply).to_contain_text("I adopted a greyhound called Juno.")
    expect(reply).to_contain_text(LONG_AGO.strftime("%Y-%m-%d"))
    page = visitor.page
    chip = page.locator("#turn-0 .chips").get_by_role("link", name="A new friend").first
    expect(chip).to_contain_text(f"{LONG_AGO.day} {LONG_AGO:%B}")
    chip.click()
    expect(page).to_have_url(f"{visitor.stack.url}/sessions/{four_months.pk}/?at=1#turn-1")
    expect(page.locator("#turn-1 .words")).to_be_in_viewport()
    assert page.locator("#turn-1 .words").evaluate("it => getComputedStyle(it).outlineStyle") == "solid"


def test_what_is_asked_to_be_remembered_is_kept_pinned_corrected_and_forgotten(visitor: Visitor) -> None:
    page = visitor.page
    visitor.say("Please remember that my sister is called Ada.")
    visitor.answered()
    page.get_by_role("link", name="What I keep").click()
    fact = page.locator(".facts-kept li").filter(has_text="My sister is called Ada.")
    fact.get_by_role("button", name="Pin").click()
    expect(page.get_by_role("heading", name="Pinned")).to_be_visible()
    fact.get_by_role("link", name="Correct").click()
    page.get_by_label("It should say").fill("My sister is called Ida.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".facts-kept")).to_contain_text("My sister is called Ida.")
    visitor.open()
    visitor.say("Good evening")
    visitor.answered()
    assert "My sister is called Ida." in visitor.stack.provider.system_prompts()[-1]
    page.get_by_role("link", name="What I keep").click()
    page.get_by_role("button", name="Forget").click()
    expect(page.locator("main")).to_contain_text("Nothing yet.")


def test_a_turn_is_kept_and_shows_what_it_is_connected_with(moving: Session, visitor: Visitor) -> None:
    orm(connect_pending)
    page = visitor.open(f"/sessions/{moving.pk}/?at=30#turn-30")
    turn = page.locator("#turn-30")
    turn.hover()
    turn.get_by_role("button", name="Remember this").click()
    expect(turn).to_contain_text("Kept: “My sister Ada moved to Lisbon.”")
    turn.get_by_role("link", name="Connected").click()
    expect(page.locator("#aside")).to_contain_text("Kept from it")
    expect(page.locator("#aside").get_by_role("link", name="Lisbon", exact=True)).to_be_visible()
