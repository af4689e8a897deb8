"""Everything that matters, by reload alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.scripted_provider import Script

pytestmark = pytest.mark.browser


def test_one_talks_stops_and_reads_without_javascript(visitor: Visitor) -> None:
    visitor.stack.provider.script(
        Script(text="Slowly, then. " * 40, piece=8, pause=0.2), Script(text="At once.")
    )
    page = visitor.sign_in(visitor.new_page(java_script_enabled=False))
    visitor.composer(page).fill("Hello")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#turn-0 .words")).to_have_text("Hello")
    # Playwright's own text look-up passes over noscript.
    assert "Still answering" in page.locator("#turn-0").inner_text()
    expect(page.locator("#turn-0 .reply")).to_contain_text("Slowly, then.")  # by the page's own reload
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turn-0")).to_contain_text("You stopped this answer.")
    page.get_by_role("button", name="Try again").click()
    expect(visitor.answered(0, page)).to_have_text("At once.")
    page.get_by_role("button", name="Earlier answer").click()
    expect(page.locator(".flip")).to_contain_text("1 of 2")


def test_danger_is_answered_without_javascript_too(visitor: Visitor) -> None:
    page = visitor.sign_in(visitor.new_page(java_script_enabled=False))
    visitor.composer(page).fill("I have the pills here and I am going to kill myself tonight.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".bell")).to_contain_text("I am glad you said this")
