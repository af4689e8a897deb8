"""What goes to Valkey from a thread of its own: hints for the mirror, and what happened.

A request or an answer must not wait for a Valkey that hangs, so they only leave word here. Word may be lost with
the process: the sweeper finds what a hint would have told, and happenings are told or dropped.
"""

import logging
import threading
import time
from collections import deque
from typing import Any

from django.conf import settings
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from memory.engram.breaker import valkey

logger = logging.getLogger(__name__)

EVENTS_KEY = "neuron:engram:events"
MOST_EVENTS = 1000
# After one round the next waits this long, so that a burst of commits is one hint.
PAUSE_SECONDS = 0.25

_wake = threading.Event()
_hint = threading.Event()
_events: deque[dict[str, str]] = deque(maxlen=MOST_EVENTS)
_starting = threading.Lock()
_thread: threading.Thread | None = None


def hint_mirror() -> None:
    """Say that the outbox holds something new."""
    _hint.set()
    _begin()


def keep_event(event: dict[str, str]) -> None:
    """Add an event to the list in Valkey; while that is away the newest MOST_EVENTS are kept here."""
    _events.append(event)
    _begin()


def _begin() -> None:
    global _thread  # noqa: PLW0603 (one thread a process, anew in a forked one)
    _wake.set()
    with _starting:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_carry, name="engram-background", daemon=True)
            _thread.start()


def _carry() -> None:
    while True:
        _wake.wait()
        _wake.clear()
        _carry_events()
        if _hint.is_set():
            _hint.clear()
            _send_hint()
        time.sleep(PAUSE_SECONDS)


def _carry_events() -> None:
    client: Any = valkey(settings.REDIS_URL)
    while _events:
        try:
            client.xadd(EVENTS_KEY, _events[0], maxlen=MOST_EVENTS, approximate=False)
        except (RedisError, OSError):
            logger.warning("what happened is kept for later: Valkey does not answer")
            return
        _events.popleft()


def _send_hint() -> None:
    from memory.tasks import mirror  # tasks import the services that hint

    try:
        mirror.delay()
    except (OperationalError, RedisError, OSError):
        logger.warning("no broker to wake a worker for the mirror; the sweeper will find what is due")
