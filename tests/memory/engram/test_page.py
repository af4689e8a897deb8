"""The operator's page in Chromium: it follows what happens without being loaded again, under the policy."""

import threading
import uuid
from collections.abc import Iterator
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest
from django.contrib.auth.models import User
from django.core.wsgi import get_wsgi_application
from playwright.sync_api import Page

from memory.engram import mirror
from memory.engram.awareness import Happening
from memory.models import MirrorJob
from tests.browser.test_admin import CHROMIUM, PICTURES, in_chromium, sign_in
from tests.memory.engram.conftest import Events
from tests.memory.engram.remote import Engram, FaultProxy
from tests.memory.engram.test_mirror import knowledge

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def site(transactional_db: None) -> Iterator[str]:
    """Neuron's own pages and static files on loopback, in this process."""
    with Server(("127.0.0.1", 0), Quiet) as server:
        server.set_app(get_wsgi_application())
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_an_operator_watches_and_sends_again(
    look: str, owner: User, proxy: FaultProxy, engram: Engram, events: Events, site: str
) -> None:
    owner.is_staff = owner.is_superuser = True
    owner.save()
    node = knowledge(owner)
    engram.refused = {str(node.pk)}
    mirror.send_due()
    engram.refused = set()
    events.add(Happening.MODEL_CHANGED, model="llama")
    proxy.choose = lambda: "503"
    for _ in range(3):
        knowledge(owner)
    mirror.send_due()
    in_chromium(
        lambda page: watch(page, site, look, events),
        viewport={"width": 390, "height": 844} if look == "phone" else {"width": 1280, "height": 900},
        color_scheme="dark" if look == "dark" else "light",
    )
    assert not MirrorJob.objects.dead().exists()


def watch(page: Page, url: str, look: str, events: Events) -> None:
    wrong: list[str] = []
    page.on(
        "console",
        lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    sign_in(page, url, "owner")
    page.goto(f"{url}/admin/memory/mirrorjob/")
    page.get_by_role("link", name="The remote engram").click()
    page.get_by_text("refused: HTTP 422").wait_for()
    page.get_by_text("unreachable: HTTP 503").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=PICTURES / f"engram-{look}.png", full_page=True)
    # Nothing is clicked: the page looks by itself.
    mark = uuid.uuid4().hex[:8]
    events.add(Happening.MODEL_CHANGED, model=mark)
    page.get_by_text(f"model changed: model {mark}").wait_for()
    page.get_by_role("button", name="Send refused ones again").click()
    page.get_by_text("1 refused jobs are due again.").wait_for()
    assert wrong == [], "\n".join(sorted(set(wrong)))
