"""Sync in: what changed at the remote engram, fetched by cursor, validated whole, applied page by page.

Never in anybody's way: it runs in the background, no transaction is open while the remote is asked, and whatever
the remote does wrong changes nothing here.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from memory.engram.awareness import Happening, note
from memory.engram.batch import Taken
from memory.engram.client import EngramClient
from memory.engram.errors import EngramError, Kind
from memory.engram.owner import engram_owner_id
from memory.engram.taking import connect_threads, take_fetched
from memory.engram.wire import WireSync
from memory.models import EngramSync, MemoryNode

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=2)
# A remote that never comes to an end is left for the next round.
MOST_PAGES = 1000


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync came to. `error` is empty where it went well; `is_off` where there is nobody or nothing to ask."""

    taken: Taken
    error: str = ""
    is_off: bool = False

    @property
    def sentence(self) -> str:
        if self.error or self.is_off:
            return self.error
        taken = self.taken
        kept = f" {taken.kept} kept as changed here." if taken.kept else ""
        return f"Came in: {taken.nodes} nodes, {taken.edges} edges, {taken.deleted} deletions.{kept}"


def sync_engram(*, client: EngramClient | None = None, now: datetime | None = None) -> Synced:
    """Bring the memory of the engram's owner up to date. One at a time; what is done is kept whatever comes after."""
    owner = engram_owner()
    if owner is None:
        reason = "Nobody lives here yet." if settings.ENGRAM_URL else "No remote engram is set."
        return Synced(Taken(), reason, is_off=True)
    state = _claim(owner, now or timezone.now())
    if state is None:
        return Synced(Taken(), "A sync is running already.", is_off=True)
    try:
        with client or EngramClient.from_settings() as remote:
            taken = _fetch_all(remote, owner, state)
    except EngramError as error:
        logger.warning("sync with the remote engram: %s", error)
        _settle(owner, error=str(error)[:200])
        return Synced(Taken(), f"The remote engram: {error}. Nothing was changed by it.")
    except BaseException:
        _settle(owner, error="interrupted")
        raise
    _settle(owner, error="")
    if taken.nodes or taken.edges or taken.deleted:
        note(Happening.SYNC_DONE, nodes=taken.nodes, edges=taken.edges, deletions=taken.deleted)
    return Synced(taken)


def engram_owner() -> AbstractBaseUser | None:
    """The person whose memory the remote engram holds."""
    owner_id = engram_owner_id()
    return None if owner_id is None else get_user_model().objects.get(pk=owner_id)


def state_of(owner: AbstractBaseUser) -> EngramSync:
    """The owner's row, made at first use."""
    return EngramSync.objects.get_or_create(owner_id=owner.pk)[0]


def _claim(owner: AbstractBaseUser, now: datetime) -> EngramSync | None:
    """Take the lease; None while somebody else holds it. A cursor of another address is forgotten."""
    state_of(owner)
    free = EngramSync.objects.filter(Q(lease_until=None) | Q(lease_until__lt=now), pk=owner.pk)
    if not free.update(lease_until=now + LEASE, tried_at=now):
        return None
    state = EngramSync.objects.get(pk=owner.pk)
    if state.address != settings.ENGRAM_URL:
        state.address, state.cursor = settings.ENGRAM_URL, ""
        state.save(update_fields=["address", "cursor"])
    return state


def _settle(owner: AbstractBaseUser, *, error: str) -> None:
    values: dict[str, Any] = {"last_error": error, "lease_until": None}
    if not error:
        values["synced_at"] = timezone.now()
    EngramSync.objects.filter(pk=owner.pk).update(**values)


def _fetch_all(remote: EngramClient, owner: AbstractBaseUser, state: EngramSync) -> Taken:
    """Page after page, until one says nothing new."""
    total = Taken()
    sessions: set[UUID] = set()
    seen: set[UUID] = set()
    cursor = state.cursor
    for _ in range(MOST_PAGES):
        page, cursor = _fetch(remote, cursor)
        ids = {node.id for node in page.nodes} | {edge.id for edge in page.edges} | {*page.deleted}
        # A remote without a memory of its cursors gives everything each time.
        if ids and ids <= seen:
            break
        total += _apply(owner, page)
        sessions |= {node.session_id for node in page.nodes if node.session_id and _is_turn(node.node_type)}
        if not ids or page.cursor == cursor:
            break
        seen |= ids
        cursor = page.cursor
    if total.nodes:
        connect_threads(owner=owner, session_ids=sessions)
    return total


def _fetch(remote: EngramClient, cursor: str) -> tuple[WireSync, str]:
    """The page after the cursor, and the cursor it was asked for with: one the remote will not have is dropped."""
    try:
        return remote.sync(cursor), cursor
    except EngramError as error:
        if error.kind is not Kind.REFUSED or not cursor:
            raise
    logger.warning("the remote engram refuses the cursor; everything is fetched anew")
    return remote.sync(""), ""


def _apply(owner: AbstractBaseUser, page: WireSync) -> Taken:
    """The page and its cursor in one transaction: nothing is taken twice, nothing is passed over."""
    with transaction.atomic():
        taken = take_fetched(owner=owner, nodes=page.nodes, edges=page.edges, deleted=page.deleted)
        EngramSync.objects.filter(pk=owner.pk).update(
            cursor=page.cursor,
            lease_until=timezone.now() + LEASE,
            nodes_taken=F("nodes_taken") + taken.nodes,
            edges_taken=F("edges_taken") + taken.edges,
            deletions_taken=F("deletions_taken") + taken.deleted,
        )
    return taken


def _is_turn(node_type: str) -> bool:
    return node_type == MemoryNode.NodeType.CONVERSATION
