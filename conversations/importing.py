"""Bringing old chats along: an upload becomes a job, a job's chats become sessions with the dates they had.

The job's row says how far it is; each chat is stored with its line of the report and the progress in one short
transaction, so that a job whose worker was killed goes on after the last chat it kept. What was said then rings
no bell now, and what would ring a hard one is left out.
"""

import logging
import uuid
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import DataError, transaction
from django.utils import timezone

import memory.services
from conversations.hints import hint_import
from conversations.imported import Line, Outcome, screened, store, title_of
from conversations.importers import Chat, Format, Unreadable, format_of
from conversations.importers.reading import Entry, NotAnExport, entries
from conversations.models import ImportedChat, ImportJob
from safety.normalise import replace_unstorable

logger = logging.getLogger(__name__)

# Pushed forward with every chat and within long ones; a worker silent for longer is taken for dead.
LEASE = timedelta(seconds=120)
GIVE_UP_AFTER = timedelta(hours=24)
# A clock that ran a little ahead when the export was made is no reason to doubt a date.
CLOCK_SKEW = timedelta(days=1)


class UploadTooLarge(Exception):
    """The file is over IMPORT_MAX_BYTES; nothing of it was kept."""


class LeaseLost(Exception):
    """Another worker has the job; this one stops without a trace."""


def start_import(*, owner: AbstractBaseUser, upload: "File[bytes]", hint: bool = True) -> ImportJob:
    """Store the file and make the job that works it off. Raises UploadTooLarge.

    Without `hint` no worker is woken: the caller runs the job itself.
    """
    if upload.size > settings.IMPORT_MAX_BYTES:
        raise UploadTooLarge
    job_id = uuid.uuid4()
    stored_as = default_storage.save(f"imports/{job_id}", upload)
    try:
        with transaction.atomic():
            job = ImportJob.objects.create(
                id=job_id,
                owner_id=owner.pk,
                file_name=replace_unstorable((upload.name or "chats").rsplit("/", 1)[-1])[:200],
                stored_as=stored_as,
                size=upload.size,
                # The caller's own run takes it; until then the sweeper must not.
                lease_until=None if hint else timezone.now() + LEASE,
            )
            if hint:
                transaction.on_commit(lambda: hint_import(job_id))
    except Exception:
        default_storage.delete(stored_as)
        raise
    return job


def run(job_id: UUID, *, own: bool = False) -> bool:
    """Work the job off from where it stands. False where another worker has it, or it is settled or gone.

    `own` takes over the lease that `start_import(hint=False)` left for its caller.
    """
    job = _claim(job_id, own=own)
    if job is None:
        return False
    try:
        _work_off(job)
    except LeaseLost:
        logger.warning("import %s went on elsewhere", job_id)
        return False
    return True


def sweep(*, now: datetime | None = None) -> int:
    """Wake imports that no worker holds; give up those that never came to an end. Returns how many."""
    now = now or timezone.now()
    swept = 0
    for job in ImportJob.objects.abandoned(now).order_by("created_at")[:50]:
        swept += 1
        if job.created_at < now - GIVE_UP_AFTER:
            _settle(
                job, "It did not come to an end within a day. What was taken is kept; send the file again."
            )
        else:
            hint_import(job.pk)
    return swept


# --- The job ------------------------------------------------------------------------------------------------


def _claim(job_id: UUID, *, own: bool) -> ImportJob | None:
    now = timezone.now()
    free = ImportJob.objects.filter(pk=job_id)
    free = free.filter(state=ImportJob.State.WAITING) if own else free.abandoned(now)
    if not free.update(state=ImportJob.State.RUNNING, lease_until=now + LEASE):
        return None
    return ImportJob.objects.select_related("owner").filter(pk=job_id, lease_until=now + LEASE).first()


def _push_lease(job: ImportJob, done_bytes: int | None = None) -> None:
    """Hold the job for longer. The lease itself is the token: whoever changed it has the job now."""
    lease = timezone.now() + LEASE
    done = max(job.done_bytes, done_bytes or 0)
    held = ImportJob.objects.filter(pk=job.pk, state=ImportJob.State.RUNNING, lease_until=job.lease_until)
    if not held.update(lease_until=lease, done_bytes=done):
        raise LeaseLost
    job.lease_until, job.done_bytes = lease, done


def _work_off(job: ImportJob) -> None:
    reported = set(job.chats.values_list("position", flat=True))
    trouble = ""
    try:
        with default_storage.open(job.stored_as) as file:
            for entry in entries(file, job.size):
                if entry.position not in reported:
                    _take(job, entry)
    except NotAnExport as error:
        trouble = str(error)
    except FileNotFoundError:
        trouble = "The uploaded file is gone. Send it again; what was taken before is kept."
    with transaction.atomic():
        _push_lease(job)
        memory.services.rewrite_history(owner=job.owner)
    _settle(job, trouble or _nothing_taken(job))


def _nothing_taken(job: ImportJob) -> str:
    """Why the job cannot be called done; empty where it can."""
    lines = list(job.chats.values_list("outcome", flat=True))
    if not lines:
        return "There are no chats in this file."
    if not {Outcome.IMPORTED, Outcome.UPDATED, Outcome.UNCHANGED} & set(lines):
        return "No chat could be taken from this file. The report says why, chat by chat."
    return ""


def _settle(job: ImportJob, error: str) -> None:
    state = ImportJob.State.FAILED if error else ImportJob.State.DONE
    with transaction.atomic():
        held = ImportJob.objects.filter(pk=job.pk, lease_until=job.lease_until).exclude(
            state__in=[ImportJob.State.DONE, ImportJob.State.FAILED]
        )
        done = job.done_bytes if error else job.size
        if not held.update(
            state=state,
            error=error,
            done_bytes=done,
            stored_as="",
            lease_until=None,
            finished_at=timezone.now(),
        ):
            raise LeaseLost
    if job.stored_as:
        # The words in it are in the sessions now; a second copy would outlive their deletion.
        default_storage.delete(job.stored_as)


# --- One chat -------------------------------------------------------------------------------------------------


def _take(job: ImportJob, entry: Entry) -> None:
    """One entry and its line of the report, in one transaction. An entry that cannot be used costs only itself."""
    done_bytes = job.size * entry.read_bytes // entry.all_bytes if entry.all_bytes else job.size
    known: Format | None = None
    chat: Chat | None = None
    line = Line(Outcome.FAILED, reason=entry.error)
    if not entry.error:
        known = format_of(entry.value)
        if known is None:
            line = Line(Outcome.SKIPPED, title_of(entry.value), "It is not a chat in a format Neuron reads.")
        else:
            chat, line = _read(known, entry)
    if chat is not None and known is not None:
        kept = screened(chat.exchanges, between=lambda: _push_lease(job))
        try:
            with transaction.atomic():
                _report(job, entry, store(job.owner, known.source, chat, kept), done_bytes)
            return
        except DataError as error:
            logger.warning(
                "chat %s of import %s was refused: %s", entry.position, job.pk, type(error).__name__
            )
            line = Line(Outcome.FAILED, reason="The database does not take what is in it.")
    with transaction.atomic():
        _report(job, entry, line, done_bytes)


def _read(known: Format, entry: Entry) -> tuple[Chat | None, Line]:
    try:
        return known.read(entry.value, latest=timezone.now() + CLOCK_SKEW), Line(Outcome.FAILED)
    except Unreadable as error:
        reason = str(error)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        # By its class alone: the message might quote the chat.
        logger.warning("a chat at position %s could not be read: %s", entry.position, type(error).__name__)
        reason = "It could not be read: its shape is not one we know."
    return None, Line(Outcome.FAILED, title_of(entry.value), reason)


def _report(job: ImportJob, entry: Entry, line: Line, done_bytes: int) -> None:
    _push_lease(job, done_bytes)
    ImportedChat.objects.create(
        job=job,
        position=entry.position,
        title=line.title,
        outcome=line.outcome,
        reason=line.reason[:300],
        turns_added=line.turns_added,
        turns_left_out=line.turns_left_out,
        session=line.session,
    )
