"""Review as a steward does it, in Chromium: the policy holds, the menus work, one click decides."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from playwright.sync_api import Page, sync_playwright

from safety.models import BellEvent
from tests.stack import PASSWORD

CHROMIUM = shutil.which("chromium")
PICTURES = Path(__file__).resolve().parents[2] / "test-results"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.processes,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


def in_chromium(work: Callable[[Page], None], **context: Any) -> None:
    """Run the work on a fresh page, in a thread of its own: Playwright keeps an event loop there, Django wants none."""

    def run() -> None:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            try:
                work(browser.new_context(**context).new_page())
            finally:
                browser.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()


def rang(**values: Any) -> BellEvent:
    signals = [
        {"layer": "hard list", "rule": "end it tonight", "span": [0, 5], "weight": 1.0, "matched": "cleaned"},
        {"layer": "history", "rule": "past risk", "span": None, "weight": 0.2, "matched": "cleaned"},
    ]
    standard = {
        "level": "hard",
        "reason": "plan",
        "summary": "I will end it tonight",
        "signals": signals,
        "score": 0.97,
    }
    return BellEvent.objects.create(
        **{**standard, "ideation_level": 4, "resources_shown": ["A help line"], **values}
    )


def sign_in(page: Page, url: str, name: str) -> None:
    page.goto(f"{url}/admin/")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", PASSWORD)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(f"{url}/admin/")


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_a_steward_reviews_the_queue(stack: Any, look: str) -> None:
    steward = stack.person()
    steward.is_staff = True
    steward.save()
    steward.user_permissions.add(
        *Permission.objects.filter(codename__in=["view_bellevent", "change_bellevent"])
    )
    for values in ({}, {"level": "soft", "reason": "wellbeing check needed", "ideation_level": None}):
        rang(owner=stack.person(), **values)
    in_chromium(
        lambda page: review(page, stack.url, steward.username, look),
        viewport={"width": 390, "height": 844} if look == "phone" else {"width": 1280, "height": 900},
        color_scheme="dark" if look == "dark" else "light",
    )
    assert BellEvent.objects.filter(state="resolved", reviews__steward=steward).count() == 1


def review(page: Page, url: str, name: str, look: str) -> None:
    wrong: list[str] = []
    page.on(
        "console",
        lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def keep(what: str) -> None:
        page.wait_for_load_state("networkidle")
        page.screenshot(path=PICTURES / f"admin-{what}-{look}.png", full_page=True)

    sign_in(page, url, name)
    assert page.get_by_text("for review").first.is_visible()
    keep("index")
    page.get_by_role("link", name="Open the queue").click()
    keep("queue")
    assert page.get_by_text("I will end it tonight").count() == 0
    page.locator("#result_list tbody a").first.click()
    page.get_by_role("heading", name="Why it rang").wait_for()
    keep("bell")
    page.get_by_label("Note").fill("Spoke with them; safe with family.")
    page.get_by_role("button", name="Resolve").click()
    page.get_by_text("Kept: resolved").wait_for()
    assert page.get_by_text("Spoke with them").is_visible()
    keep("decided")
    page.goto(f"{url}/admin/safety/bellevent/weeks/")
    page.get_by_role("heading", name="By week").wait_for()
    keep("weeks")
    assert wrong == [], "\n".join(sorted(set(wrong)))


def test_help_lines_are_verified_with_one_click_and_the_safety_page_says_so(stack: Any) -> None:
    editor = stack.person()
    editor.is_staff = True
    editor.save()
    editor.user_permissions.add(*Permission.objects.filter(content_type__model="editedhelpline"))
    seen: dict[str, Any] = {}

    def work(page: Page) -> None:
        wrong: list[str] = []
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        sign_in(page, stack.url, editor.username)
        page.goto(f"{stack.url}/admin/safety/editedhelpline/?country=CL")
        page.locator("input[name=_selected_action]").first.check()
        page.locator("select[name=action]").select_option("verify_today")
        page.locator("button[name=index]").first.click()
        page.get_by_text("verified today").wait_for()
        page.goto(f"{stack.url}/safety")
        page.get_by_role("heading", name="How well it does").wait_for()
        page.screenshot(path=PICTURES / "safety-phone.png", full_page=True)
        seen["wide"] = page.evaluate("document.documentElement.scrollWidth")
        seen["chile"] = page.locator("details.country", has_text="Chile").inner_text()
        seen["wrong"] = wrong

    in_chromium(work, viewport={"width": 390, "height": 844})
    assert seen["wrong"] == []
    assert seen["wide"] <= 390
    assert "not verified" not in seen["chile"]
