"""How the pages look and handle: axe, the keyboard, phone width, large text, and finding one's way."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from pytest_django import Settings

from conversations.keeping import keep_words
from conversations.letters import sending
from conversations.models import ImportedChat, ImportJob, Session, Turn
from conversations.themes import kept, runs
from safety.models import BellEvent
from tests.browser.conftest import Visitor, orm
from tests.conversations.exports import walk
from tests.conversations.themed import remember_topics
from tests.scripted_provider import Script

pytestmark = pytest.mark.browser

REPLY = """Of course:

```python
print("a line that is long enough to be wider than the column that a reply is given on any screen at all")
```

| Bed | Planted | Days |
|---|---|--:|
| North | beans | 3 |
"""


def garden(person: User, turns: int = 3) -> Session:
    """A session with code, a table, a gap of weeks, a bell, help lines, a failure and something drawn on."""
    start = datetime.now(UTC) - timedelta(days=30)
    session = Session.objects.create(owner=person, title="The garden", next_index=turns, last_turn_at=start)
    for index in range(turns):
        Turn.objects.create(
            session=session,
            owner=person,
            turn_index=index,
            q=f"Question {index}",
            a=REPLY if index % 3 == 0 else "",
            status="complete" if index % 3 != 1 else "failed",
            help_lines=index == 2,
            client_key=str(index),
            created_at=start + timedelta(days=20 * (index > 0), minutes=index),
            recalled=[
                {
                    "session_id": str(session.pk),
                    "turn_index": 0,
                    "occurred_at": start.isoformat(),
                    "title": "beans",
                }
            ],
        )
    BellEvent.objects.create(owner=person, session_id=session.pk, after_index=0, level="hard", reason="plan")
    return session


@pytest.fixture
def session(person: User) -> Session:
    return garden(person)


@pytest.fixture
def job(person: User, session: Session) -> ImportJob:
    job = ImportJob.objects.create(
        owner=person,
        file_name="chats.zip",
        size=100,
        done_bytes=30,
        state="running",
        lease_until=datetime.now(UTC) + timedelta(hours=1),
    )
    ImportedChat.objects.create(
        job=job, position=0, title="Hills", outcome="skipped", reason="Only pictures in it."
    )
    return job


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 820), ("dark", 390), ("light", 390)])
def test_no_page_has_a_fault_that_axe_knows_or_is_wider_than_its_window(
    session: Session, job: ImportJob, scheme: str, width: int, visitor: Visitor
) -> None:
    page = visitor.page
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    own, turn = f"/sessions/{session.pk}/", orm(lambda: session.turns.first())
    paths = (
        "/", own, f"{own}turns/0/edit/", f"{own}delete/", f"/import/{job.pk}/", "/import/", "/settings/", "/about/",
        "/settings/data/", "/search/?q=Question", "/sessions/", "/nothing/", f"/turns/{turn.pk}/drawn/",
        f"/turns/{turn.pk}/connected/", f"/turns/{turn.pk}/forget/", "/safety/",
    )  # fmt: skip
    assert faults(visitor, *paths) == []


def faults(visitor: Visitor, *paths: str) -> list[str]:
    """What axe finds on these pages, and which of them are wider than the window."""
    axe, found = Axe(), []
    for path in paths:
        visitor.open(path)
        found += [f"{path}: {fault['id']}" for fault in axe.run(visitor.page).response["violations"]]
        if is_too_wide(visitor.page):
            found.append(f"{path}: wider than the window")
    return found


def is_too_wide(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


def enlarge_text(page: Page) -> None:
    page.evaluate("document.documentElement.style.fontSize = '200%'")


@pytest.fixture
def looked_back(person: User, settings: Settings) -> list[str]:
    """Somebody with themes, facts and a letter to read: the pages that show them."""
    settings.NEURON_MODEL = ""
    told = remember_topics(person, ("garden", "guitar", "sleep"))
    assert runs.refresh(owner=person)
    fact = keep_words(owner=person, words="My sister Ada lives in Lisbon.")
    then = max(session.last_turn_at for session in told) + timedelta(hours=1)
    letter = sending.ask_now(owner=person, now=then)
    sending.deliver(letter.pk, now=then)
    theme = kept.themes_of(person)[0]
    return [
        "/themes/",
        f"/themes/{theme.pk}/",
        "/kept/",
        f"/kept/{fact.pk}/",
        "/letters/",
        f"/letters/{letter.pk}/",
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_nor_have_themes_facts_and_letters(
    looked_back: list[str], scheme: str, width: int, visitor: Visitor
) -> None:
    visitor.page.set_viewport_size({"width": width, "height": 844})
    visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    assert faults(visitor, *looked_back) == []
    for path in looked_back:
        page = visitor.open(path)
        enlarge_text(page)
        assert width < 1024 or not is_too_wide(page), path


def test_the_keyboard_alone_opens_a_theme_and_its_turns(looked_back: list[str], visitor: Visitor) -> None:
    page = visitor.open(looked_back[0])
    page.locator("main table a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/themes/[0-9a-f-]{36}/"))
    page.locator("main a[href*='#turn-']").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/sessions/.*#turn-"))


def test_text_twice_as_large_still_fits(session: Session, visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 1024, "height": 768})
    for path in ("/", f"/sessions/{session.pk}/", "/settings/"):
        visitor.open(path)
        enlarge_text(page)
        assert not is_too_wide(page), path
    visitor.open("/")
    enlarge_text(page)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport()


def focused(page: Page) -> str:
    return page.evaluate(
        "(document.activeElement.innerText || document.activeElement.ariaLabel || '').trim()"
    )


def test_the_keyboard_alone_is_enough(session: Session, visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/about/")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the page"
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    visitor.open("/")
    expect(visitor.composer()).to_be_focused()
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    expect(visitor.composer()).to_have_value("one\ntwo")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/sessions/"))
    expect(page.locator("#turn-0 .words")).to_have_text("one\ntwo")
    visitor.answered()
    menu = page.locator("details.menu summary")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Name")).to_be_hidden()
    expect(menu).to_be_focused()


def test_an_enter_that_chooses_a_word_of_an_input_method_does_not_send(visitor: Visitor) -> None:
    visitor.composer().fill("にほん")
    visitor.composer().dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    visitor.page.wait_for_timeout(300)
    expect(visitor.composer()).to_have_value("にほん")
    assert orm(lambda: Session.objects.filter(owner=visitor.person).count()) == 0


def test_on_a_phone_the_list_is_a_sheet_and_the_composer_stays_at_the_bottom(
    session: Session, visitor: Visitor
) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 700})
    visitor.open(f"/sessions/{session.pk}/")
    listed = page.get_by_role("link", name="The garden")
    expect(listed).to_be_hidden()
    page.get_by_role("button", name="Your conversations").click()
    expect(listed.first).to_be_visible()
    page.keyboard.press("Escape")
    expect(listed.first).to_be_hidden()
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport()


def test_what_was_drawn_on_opens_beside_the_reply_and_gives_the_focus_back(
    session: Session, visitor: Visitor
) -> None:
    page = visitor.open(f"/sessions/{session.pk}/")
    opener = page.locator("#turn-0").get_by_role("link", name="What I drew on")
    opener.click()
    expect(page.locator("#aside h2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#aside")).to_be_empty()
    expect(opener).to_be_focused()


def test_a_link_to_a_turn_far_up_opens_the_page_around_it_and_marks_it(
    person: User, visitor: Visitor
) -> None:
    session = orm(lambda: garden(person, turns=120))
    page = visitor.open(f"/sessions/{session.pk}/#turn-9")
    page.wait_for_url(re.compile(r"\?at=9#turn-9"))
    expect(page.locator("#turn-9 .words")).to_be_in_viewport()
    assert page.evaluate("document.querySelector(':target').id") == "turn-9"
    expect(page.locator("#turn-119")).to_have_count(0)
    visitor.say("From here on")
    visitor.answered(120)


def test_the_page_follows_an_answer_only_for_somebody_at_its_end(session: Session, visitor: Visitor) -> None:
    visitor.stack.provider.script(Script(text="A line of its own.\n\n" * 40, piece=20, pause=0.08))
    page = visitor.open(f"/sessions/{session.pk}/")
    visitor.say("At length, please")
    expect(page.locator("#turn-3 .reply")).to_contain_text("A line of its own.")
    page.evaluate("scrollTo(0, 0)")
    jump = page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_visible()
    assert page.evaluate("scrollY") == 0
    jump.click()
    visitor.answered(3)
    assert page.evaluate("document.scrollingElement.scrollHeight - scrollY - innerHeight") < 150


def test_code_is_copied_with_one_click(session: Session, visitor: Visitor) -> None:
    page = visitor.open(f"/sessions/{session.pk}/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#turn-0 .copy").click()
    expect(page.locator("#turn-0 .copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith('print("a line')


def test_nothing_is_loaded_from_another_host(session: Session, visitor: Visitor) -> None:
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    for path in ("/", f"/sessions/{session.pk}/", "/settings/", "/about/"):
        visitor.open(path)
    assert all(url.startswith((visitor.stack.url, "data:")) for url in asked)


def test_chats_are_brought_along_with_a_report_and_keep_their_dates(visitor: Visitor) -> None:
    page = visitor.open("/import/")
    export = json.dumps([walk("one"), walk("two")]).encode()
    page.get_by_label("The export").set_input_files(
        {"name": "conversations.json", "mimeType": "application/json", "buffer": export}
    )
    page.get_by_role("button", name="Bring them along").click()
    expect(page.locator(".counts")).to_contain_text("2 imported")
    expect(page.locator("progress")).to_have_count(0)
    page.get_by_role("link", name="Walk one").first.click()
    expect(page.locator("main")).to_contain_text("13 May 2023")
