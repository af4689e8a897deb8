"""The remote engram, a fault proxy before it, and a breaker of the test's own."""

import json
import uuid
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django import Settings

from memory.engram import awareness, background
from memory.engram import breaker as breaker_module
from memory.engram.awareness import Happening
from memory.engram.breaker import Breaker, valkey
from memory.engram.client import EngramClient
from tests.memory.engram.remote import Engram, FaultProxy, serving
from tests.stack import wait_for


@pytest.fixture(autouse=True)
def own_breaker(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The key of a breaker that no other test knows."""
    key = f"neuron:test:breaker:{uuid.uuid4().hex}"
    monkeypatch.setattr(breaker_module, "KEY", key)
    yield key
    valkey(django_settings.REDIS_URL).delete(key)


@pytest.fixture
def engram() -> Engram:
    return Engram()


@pytest.fixture
def proxy(engram: Engram, settings: Settings) -> Iterator[FaultProxy]:
    """The way to the engram that ENGRAM_URL names; its limits are short."""
    with serving(engram) as port, FaultProxy(port) as running:
        settings.ENGRAM_URL = running.url
        settings.ENGRAM_TOKEN = "engram-token"
        settings.ENGRAM_TIMEOUT_MS = 1000
        settings.ENGRAM_CONNECT_TIMEOUT_MS = 1000
        yield running


@pytest.fixture
def make_client(proxy: FaultProxy, own_breaker: str) -> Callable[[], EngramClient]:
    """A client whose breaker never opens, for what concerns single calls."""

    def make() -> EngramClient:
        breaker = Breaker(valkey(django_settings.REDIS_URL), key=own_breaker, open_ms=0)
        return EngramClient(
            proxy.url, token="engram-token", breaker=breaker, connect_s=1.0, total_s=1.0, most_bytes=2**20
        )

    return make


class Events:
    """The list of what happened, without the thread that carries things there."""

    def add(self, what: Happening, **facts: int | str) -> None:
        fields = {"at": timezone.now().isoformat(), "what": what.value, "facts": json.dumps(facts)}
        valkey(django_settings.REDIS_URL).xadd(
            background.EVENTS_KEY, fields, maxlen=background.MOST_EVENTS, approximate=False
        )


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    """A list of the test's own, begun when what earlier tests noted has gone to theirs."""
    wait_for(lambda: not background._events, what="the events of earlier tests to be carried")
    own = f"neuron:test:{uuid.uuid4().hex}"
    monkeypatch.setattr(background, "EVENTS_KEY", f"{own}:events")
    for name in ("EVENTS_KEY", "POSTED_KEY", "POSTING_KEY", "LOCK_KEY"):
        monkeypatch.setattr(awareness, name, f"{own}:{'events' if name == 'EVENTS_KEY' else name}")
    yield Events()
    client = valkey(django_settings.REDIS_URL)
    client.delete(f"{own}:events", *(f"{own}:{name}" for name in ("POSTED_KEY", "POSTING_KEY", "LOCK_KEY")))
