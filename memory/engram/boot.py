"""Boot: an engram that is empty here is loaded from the remote one. What goes wrong never stops the start."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser

from memory.engram import breaker
from memory.engram.client import MOST_NODES, EngramClient
from memory.engram.errors import EngramError, Kind
from memory.engram.sync import engram_owner, state_of
from memory.engram.taking import connect_threads, take_fetched
from memory.engram.wire import WireEdge, WireNode
from memory.models import EngramSync, MemoryNode

logger = logging.getLogger(__name__)

# With more than this the local engram is used as it is, and the sync brings the rest.
ENOUGH_NODES = 50
HEALTH_SECONDS = 60
TRIES = 3
PAUSE_SECONDS = 2.0
SHUT_AGAIN_MS = 500


@dataclass(frozen=True, slots=True)
class Booted:
    """What the boot came to, in one sentence. `degraded`: the remote should have been loaded and was not."""

    sentence: str
    nodes: int = 0
    edges: int = 0
    degraded: bool = False


def boot_engram(*, pause: Callable[[float], None] = time.sleep) -> Booted:
    """Load the remote engram where the local one is all but empty. Raises nothing of the remote's."""
    owner = engram_owner()
    if owner is None:
        reason = "Nobody lives here yet; the sync will bring the engram."
        return Booted(reason if settings.ENGRAM_URL else "No remote engram is set.")
    if len(MemoryNode.objects.owned_by(owner).order_by()[: ENOUGH_NODES + 1]) > ENOUGH_NODES:
        booted = Booted("The local engram is used as it is; the sync brings what is new.")
    else:
        booted = _load(owner, pause)
    state_of(owner)
    EngramSync.objects.filter(pk=owner.pk).update(boot=booted.sentence[:200], boot_failed=booted.degraded)
    return booted


def _load(owner: AbstractBaseUser, pause: Callable[[float], None]) -> Booted:
    try:
        with _client() as remote:
            _wait_for_health(remote, pause)
            nodes, edges = _fetch(remote, pause)
    except EngramError as error:
        logger.warning("boot from the remote engram: %s", error)
        return Booted(
            f"Degraded: the remote engram was not loaded ({error}). Neuron works with what it has.",
            degraded=True,
        )
    # Whole and valid, in one transaction.
    taken = take_fetched(owner=owner, nodes=nodes, edges=edges)
    connect_threads(owner=owner, session_ids={node.session_id for node in nodes if node.session_id})
    return Booted(
        f"The remote engram was loaded: {taken.nodes} nodes, {taken.edges} edges.", taken.nodes, taken.edges
    )


def _client() -> EngramClient:
    """Behind a breaker of its own, which is shut again before the next second's try: a boot waits on purpose."""
    return EngramClient.from_settings(
        breaker=breaker.Breaker(
            breaker.valkey(settings.REDIS_URL), key=f"{breaker.KEY}:boot", open_ms=SHUT_AGAIN_MS
        )
    )


def _wait_for_health(remote: EngramClient, pause: Callable[[float], None]) -> None:
    until = time.monotonic() + HEALTH_SECONDS
    for _ in range(HEALTH_SECONDS):
        try:
            remote.health()
            return
        except EngramError as error:
            last = error
        if time.monotonic() >= until:
            break
        pause(1.0)
    raise last


def _fetch(remote: EngramClient, pause: Callable[[float], None]) -> tuple[list[WireNode], list[WireEdge]]:
    for attempt in range(TRIES):
        if attempt:
            pause(PAUSE_SECONDS)
        try:
            nodes = remote.nodes(MOST_NODES)
            if not nodes:
                raise EngramError(Kind.BAD_ANSWER, "it holds no nodes")
            return nodes, remote.edges()
        except EngramError as error:
            last = error
    raise last
