"""A real Chromium before the running stack. Playwright keeps an event loop in this thread, where Django rightly
refuses its ORM: people are made before the browser starts, and looks at the database go through `orm`."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.stack import Stack

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
QUIET += ["--disable-component-update", "--disable-sync"]
# What the browser itself reports of answers that a test provokes.
EXPECTED = ("Failed to load resource", "net::ERR", "htmx:", "Response Status Error Code", "[object Event]")
T = TypeVar("T")
expect.set_options(timeout=15_000)

if not CHROMIUM.exists():
    collect_ignore_glob = ["test_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not CHROMIUM.exists():
        terminalreporter.write_line(
            f"The browser tests were skipped: there is no {CHROMIUM} (apt install chromium)."
        )


def orm(look: Callable[[], T]) -> T:
    """Run a look at the database in a thread without an event loop."""

    def run() -> T:
        try:
            return look()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


class Visitor:
    """Somebody at the browser."""

    def __init__(self, stack: Stack, browser: Browser, person: User, key: str) -> None:
        self.stack, self.browser, self.person, self.key = stack, browser, person, key
        self.complaints: list[str] = []
        self.page = self.new_page()

    def new_page(self, **options: object) -> Page:
        """A page in a browser of its own; `context` is the way to a second tab."""
        context: BrowserContext = self.browser.new_context(viewport={"width": 1200, "height": 800}, **options)  # type: ignore[arg-type]
        context.set_default_timeout(15_000)
        context.on("page", self._listen)
        return context.new_page()

    def _listen(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self._note(line.type, line.text))

    def _note(self, kind: str, text: str) -> None:
        if kind == "error" and not any(word in text for word in EXPECTED):
            self.complaints.append(text)

    def sign_in(self, page: Page) -> Page:
        page.context.add_cookies(
            [{"name": f"neuron_session_{self.stack.port}", "value": self.key, "url": self.stack.url}]
        )
        page.goto(self.stack.url)
        return page

    def open(self, path: str = "/") -> Page:
        self.page.goto(self.stack.url + path)
        return self.page

    def composer(self, page: Page | None = None):
        return (page or self.page).get_by_label("Your message", exact=True)

    def say(self, text: str) -> None:
        self.composer().fill(text)
        self.composer().press("Enter")

    def answered(self, index: int = 0, page: Page | None = None):
        """The reply to a turn, once it is there in full."""
        turn = (page or self.page).locator(f"#turn-{index}:not([data-answering])")
        expect(turn).to_be_visible()
        return turn.locator(".reply")


@pytest.fixture
def person(stack: Stack) -> User:
    return stack.person()


@pytest.fixture
def visitor(stack: Stack, person: User) -> Iterator[Visitor]:
    """Signed in, on the first page. Fails the test for any script error or breach of the content security policy."""
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        someone = Visitor(stack, browser, person, key)
        someone.sign_in(someone.page)
        yield someone
        browser.close()
    assert someone.complaints == []
