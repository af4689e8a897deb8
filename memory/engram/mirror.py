"""Sending the outbox to the remote engram, in the order of each lane, until nothing is due.

Whatever is interrupted is sent again when its lease ends: a PUT carries its version and a DELETE may be repeated,
so the remote ends in the same state however often it hears of a change.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings

from memory.engram import outbox
from memory.engram.awareness import Happening, note, post_waiting
from memory.engram.breaker import Breaker
from memory.engram.client import EngramClient
from memory.engram.errors import EngramError, Kind
from memory.engram.wire import write_edge, write_node
from memory.models import MemoryEdge, MemoryNode, MirrorJob

logger = logging.getLogger(__name__)

# Sent jobs are marked in groups; what a killed sender had not marked is sent twice.
MARKED_AT_ONCE = 25
# An edge whose other node is still in the outbox waits for it this long at a time.
EDGE_WAIT_SECONDS = 2.0
# A remote that hangs must not take every thread of a worker from the people who talk.
SENDERS_PER_PROCESS = 2

# Set when the worker is told to go: what is not yet sent is given back.
stopping = threading.Event()
_places = threading.BoundedSemaphore(SENDERS_PER_PROCESS)

# Reads a bell as a node in wire form, None where there is none. The safety app, which knows bells, sets it.
BellReader = Callable[[UUID], dict[str, Any] | None]
_bell_readers: list[BellReader] = []


def read_bells_with(reader: BellReader) -> None:
    """Say who reads bells for the mirror; called once, at start."""
    _bell_readers[:] = [reader]


def send_due(*, seconds: float = 20.0) -> int:
    """Send what is due until nothing is, the remote does not take it, or the time is over. Returns how many went.

    Does nothing without a remote engram, while the breaker is open, or beside enough other senders of this process.
    """
    if not settings.ENGRAM_URL or not _places.acquire(blocking=False):
        return 0
    try:
        return _send_until(time.monotonic() + seconds)
    except EngramError as error:
        logger.info("the mirror waits: %s", error)
        return 0
    finally:
        _places.release()


def tell_what_happened() -> int:
    """Tell the remote what happened since the last time. Returns how many events it heard of."""
    if not settings.ENGRAM_URL:
        return 0
    try:
        with EngramClient.from_settings() as client:
            return post_waiting(client)
    except EngramError as error:
        logger.info("what happened waits: %s", error)
        return 0


def _send_until(end: float) -> int:
    number = 0
    breaker = Breaker.from_settings()
    with EngramClient.from_settings() as client:
        if not _remote_takes_calls(breaker, client):
            return 0
        if breaker.has_recovered():
            outbox.make_due_after_outage()
        while time.monotonic() < end and not stopping.is_set():
            claim = outbox.claim_jobs()
            if claim is None:
                break
            delivery = _Delivery(client, claim)
            go_on = delivery.carry_out()
            number += delivery.number
            if not go_on:
                break
    return number


def _remote_takes_calls(breaker: Breaker, client: EngramClient) -> bool:
    """Whether the breaker is closed. The probe that may close it asks for health, so no job's try is spent on it."""
    state = breaker.look()
    if not state.is_open:
        return True
    if state.seconds_left > 0:
        return False
    client.health()
    return True


@dataclass
class _Delivery:
    """One claim on its way. Every job of it ends as sent, refused, put off or given back."""

    client: EngramClient
    claim: outbox.Claim
    number: int = 0
    _open: dict[int, MirrorJob] = field(default_factory=dict)
    _sent: list[int] = field(default_factory=list)
    _held_up: set[UUID] = field(default_factory=set)

    def carry_out(self) -> bool:
        """Send the claim's jobs; False where no further call makes sense now."""
        self._open = {job.pk: job for job in self.claim.jobs}
        self._load()
        longest_call = (settings.ENGRAM_CONNECT_TIMEOUT_MS + settings.ENGRAM_TIMEOUT_MS) / 1000
        go_on = True
        for job in self.claim.jobs:
            if job.lane in self._held_up:
                continue
            # What is called after the lease might overtake another sender.
            if stopping.is_set() or time.monotonic() + longest_call > self.claim.until:
                break
            go_on = self._send_or_settle(job)
            if not go_on:
                break
        self._mark_sent()
        outbox.give_back(claim=self.claim, job_ids=self._open)
        return go_on

    def _send_or_settle(self, job: MirrorJob) -> bool:
        if self._waits_for_a_node(job):
            self._settled(job)
            self._held_up.add(job.lane)
            outbox.give_back(claim=self.claim, job_ids=[job.pk], after_s=EDGE_WAIT_SECONDS)
            return True
        try:
            self._send(job)
        except EngramError as error:
            return self._failed(job, error)
        self._settled(job)
        self._sent.append(job.pk)
        self.number += 1
        if len(self._sent) >= MARKED_AT_ONCE:
            self._mark_sent()
        return True

    def _failed(self, job: MirrorJob, error: EngramError) -> bool:
        self._mark_sent()
        if error.kind is Kind.NOT_TRIED:
            return False
        self._settled(job)
        if error.permanent and not self._is_still_here(job):
            # Deleted meanwhile, which is why: an edge goes with its other node in another lane.
            outbox.settle_sent(claim=self.claim, job_ids=[job.pk])
            return True
        if error.permanent:
            logger.warning("the remote engram refused job %s for good: %s", job.pk, error)
            outbox.settle_refused(claim=self.claim, job_id=job.pk, error=error)
            note(Happening.REFUSED, job=job.pk)
            return True
        self._held_up.add(job.lane)
        outbox.put_off(claim=self.claim, job=job, error=error)
        # With a wrong token every job would meet the same.
        return error.kind is not Kind.UNAUTHORISED

    def _is_still_here(self, job: MirrorJob) -> bool:
        if job.operation == MirrorJob.Operation.PUT_NODE:
            return MemoryNode.objects.filter(pk=job.subject_id).exists()
        if job.operation == MirrorJob.Operation.PUT_EDGE:
            return MemoryEdge.objects.filter(pk=job.subject_id).exists()
        return True

    def _settled(self, job: MirrorJob) -> None:
        del self._open[job.pk]

    def _mark_sent(self) -> None:
        if self._sent:
            outbox.settle_sent(claim=self.claim, job_ids=self._sent)
            self._sent = []

    # --- What is sent -------------------------------------------------------------------------------------

    def _load(self) -> None:
        subjects = defaultdict(list)
        for job in self.claim.jobs:
            subjects[job.operation].append(job.subject_id)
        self._nodes = MemoryNode.objects.in_bulk(subjects[MirrorJob.Operation.PUT_NODE])
        self._edges = MemoryEdge.objects.in_bulk(subjects[MirrorJob.Operation.PUT_EDGE])
        ends = {end for edge in self._edges.values() for end in (edge.source_id, edge.target_id)}
        waiting = MirrorJob.objects.waiting().filter(
            operation=MirrorJob.Operation.PUT_NODE, subject_id__in=ends
        )
        self._waiting: dict[UUID, list[int]] = defaultdict(list)
        for subject_id, pk in waiting.values_list("subject_id", "pk"):
            self._waiting[subject_id].append(pk)
        # What is sent is the node as it is now, so one call may do for several of its jobs.
        self._confirmed: dict[UUID, int] = {}

    def _waits_for_a_node(self, job: MirrorJob) -> bool:
        """Whether a node of this edge is still to be sent, by somebody else or later in another lane."""
        edge = self._edges.get(job.subject_id) if job.operation == MirrorJob.Operation.PUT_EDGE else None
        if edge is None:
            return False
        mine = {one.pk for one in self.claim.jobs} - set(self._open)
        return any(
            pk < job.pk and pk not in mine
            for end in (edge.source_id, edge.target_id)
            for pk in self._waiting[end]
        )

    def _send(self, job: MirrorJob) -> None:
        """Tell the remote; what was deleted or changed again meanwhile needs no call of its own."""
        match job.operation:
            case MirrorJob.Operation.DELETE_NODE:
                self.client.delete_node(job.subject_id, version=job.subject_version)
            case MirrorJob.Operation.PUT_NODE:
                node = self._nodes.get(job.subject_id)
                if node is not None and self._confirmed.get(node.pk, 0) < job.subject_version:
                    self.client.put_node(write_node(node))
                    self._confirmed[node.pk] = node.version
            case MirrorJob.Operation.PUT_EDGE:
                edge = self._edges.get(job.subject_id)
                if edge is not None:
                    self.client.put_edge(write_edge(edge))
            case MirrorJob.Operation.PUT_BELL:
                bells = [bell for reader in _bell_readers if (bell := reader(job.subject_id)) is not None]
                for bell in bells:
                    self.client.put_node(bell)
