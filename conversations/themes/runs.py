"""Looking for themes as a job: its row says how far it is; a run whose worker was killed is taken up by another."""

import logging
import threading
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, User
from django.db import IntegrityError, transaction
from django.utils import timezone

from conversations import imprint, llm
from conversations.hints import hint_themes
from conversations.llm.asking import ask_for_json
from conversations.themes import kept
from conversations.themes.clustering import cluster
from conversations.themes.mapreduce import Reader, Says
from conversations.themes.material import Said, fingerprint, make_searchable, said_by, vectors_of
from conversations.themes.models import ThemeNote, ThemeRun
from memory.embedding import EmbedderUnavailable, embed_packaged
from memory.models import MemoryNode, Tombstone
from safety.screening import Action, screen
from safety.validation import validate

logger = logging.getLogger(__name__)

# Pushed forward with every call to a model. A call that takes longer is made twice, and one of the two is for nothing.
LEASE = timedelta(minutes=2)
MOST_TRIES = 3
# Turns that went by another way than with their session: the sweeper, which comes every 15 s, drops their notes.
FORGOTTEN_LATELY = timedelta(minutes=10)


class LeaseLost(Exception):
    """Another worker has the run."""


class Stopped(Exception):
    """The person asked to stop."""


class WorkerStopping(Exception):
    """The worker was told to go; the run waits for the next."""


def newest(owner: AbstractBaseUser) -> ThemeRun | None:
    return ThemeRun.objects.for_owner(owner).newest_first().first()


def is_fresh(owner: AbstractBaseUser) -> bool:
    """Whether the last look read all there is now. One that a failing model cut short is tried again when asked."""
    last = ThemeRun.objects.for_owner(owner).filter(state=ThemeRun.State.DONE).newest_first().first()
    return last is not None and last.read == fingerprint(owner)


def start(*, owner: AbstractBaseUser, hint: bool = True) -> ThemeRun:
    """The person's unfinished run, or a new one. Without `hint` the caller works it off."""
    try:
        with transaction.atomic():
            run = ThemeRun.objects.create(owner_id=owner.pk)
            if hint:
                transaction.on_commit(lambda: hint_themes(run.pk))
            return run
    except IntegrityError:
        return ThemeRun.objects.for_owner(owner).unfinished().get()


def refresh(
    *, owner: AbstractBaseUser, stopping: threading.Event | None = None, with_model: bool = True
) -> bool:
    """Look now, if there is anything new; False where another worker is looking already."""
    if is_fresh(owner):
        return True
    return work(start(owner=owner, hint=False).pk, stopping=stopping, with_model=with_model)


def have_at_hand(*, owner: AbstractBaseUser) -> None:
    """For an answer that is waited for: without a model look now; with one answer from what there is, found without
    it where there is nothing yet, and have it read meanwhile.
    """
    if is_fresh(owner):
        return
    if not llm.described().configured:
        refresh(owner=owner)
        return
    if not kept.themes_of(owner).exists():
        refresh(owner=owner, with_model=False)
    start(owner=owner)


def stop(*, run: ThemeRun) -> None:
    """Ask the run to stop; one that nobody works on is stopped here."""
    now = timezone.now()
    waiting = ThemeRun.objects.filter(pk=run.pk, state=ThemeRun.State.WAITING)
    if not waiting.update(state=ThemeRun.State.STOPPED, finished_at=now, lease_until=None):
        ThemeRun.objects.filter(pk=run.pk).unfinished().update(stop_requested=True)


def sweep() -> int:
    """Wake runs that no worker holds, and describe anew the themes that lost turns. Returns how many."""
    swept = 0
    for run in ThemeRun.objects.abandoned().order_by("created_at")[:50]:
        hint_themes(run.pk)
        swept += 1
    emptied = MemoryNode.objects.filter(node_type=MemoryNode.NodeType.THEME, payload__stale=True)
    for owner in User.objects.filter(pk__in=emptied.values("owner")):
        swept += kept.mend(owner=owner)
    lately = Tombstone.objects.filter(deleted_at__gt=timezone.now() - FORGOTTEN_LATELY)
    kept.forget_notes_of(node_ids=list(lately.values_list("node_id", flat=True)))
    return swept


def work(run_id: UUID, *, stopping: threading.Event | None = None, with_model: bool = True) -> bool:
    """Work the run off. False where another worker has it, or it is settled or gone."""
    run = _claim(run_id)
    if run is None:
        return False
    try:
        _look(run, stopping or threading.Event(), with_model=with_model)
    except LeaseLost:
        logger.warning("looking for themes %s went on elsewhere", run_id)
        return False
    except Stopped:
        _settle(run, ThemeRun.State.STOPPED)
    except WorkerStopping:
        _held(run).update(state=ThemeRun.State.WAITING, lease_until=None, tries=run.tries - 1)
        return False
    except EmbedderUnavailable:
        logger.warning("looking for themes %s: the embedder is away", run_id)
        _settle(run, ThemeRun.State.FAILED, "embedder_away")
    return True


def _claim(run_id: UUID) -> ThemeRun | None:
    lease = timezone.now() + LEASE
    free = ThemeRun.objects.filter(pk=run_id).abandoned()
    if free.filter(tries__gte=MOST_TRIES).update(
        state=ThemeRun.State.FAILED, error="given_up", lease_until=None
    ):
        return None
    for run in free:
        held = ThemeRun.objects.filter(pk=run.pk, tries=run.tries).abandoned()
        if held.update(state=ThemeRun.State.RUNNING, lease_until=lease, tries=run.tries + 1):
            return ThemeRun.objects.select_related("owner").get(pk=run_id)
    return None


def _held(run: ThemeRun) -> Any:
    """The run, if it is still this worker's: the number of tries is the token."""
    return ThemeRun.objects.filter(pk=run.pk, state=ThemeRun.State.RUNNING, tries=run.tries)


def _step(run: ThemeRun, stopping: threading.Event, **values: Any) -> None:
    """Hold the run for longer and say how far it is; the wish to stop is heard here."""
    if not _held(run).update(lease_until=timezone.now() + LEASE, **values):
        raise LeaseLost
    if stopping.is_set():
        raise WorkerStopping
    if _held(run).filter(stop_requested=True).exists():
        raise Stopped


def _settle(run: ThemeRun, state: str, error: str = "") -> None:
    if not _held(run).update(state=state, error=error, lease_until=None, finished_at=timezone.now()):
        raise LeaseLost


def _look(run: ThemeRun, stopping: threading.Event, *, with_model: bool) -> None:
    owner, error, found = run.owner, "", None
    make_searchable(owner, between=lambda: _step(run, stopping))
    read, told = fingerprint(owner), said_by(owner)
    description = llm.described()
    whole = with_model or not description.configured
    if description.configured and with_model and told:
        notebook, model = _Notebook(owner), _Model(description.name)
        reader = Reader(
            model=model,
            notebook=notebook,
            budget=settings.NEURON_PROMPT_TOKENS,
            step=lambda done, total: _step(run, stopping, done=done, total=total, calls=reader.calls),
            is_safe=_is_safe,
        )
        try:
            found = reader.themes(told)
        except llm.ModelFailure as failure:
            # Themes without a model are better than none; the notes that were made are kept for the next look.
            logger.warning("looking for themes %s: the model gave no whole answer (%s)", run.pk, failure.code)
            error = failure.code
        else:
            _step(run, stopping, model=model.name, calls=reader.calls)
            notebook.drop_unused()
    if found is None:
        found = _clustered(owner, told)
    with transaction.atomic():
        # The row is locked by this until the themes are in: a worker that lost the lease writes nothing.
        _step(run, stopping, read=read if whole and not error else "")
        kept.keep(owner=owner, found=found)
        _settle(run, ThemeRun.State.DONE, error)


def _clustered(owner: AbstractBaseUser, told: Sequence[Said]) -> list[kept.Found]:
    if not told:
        return []
    labels = cluster(vectors_of(owner, told), [said.thread for said in told])
    groups: list[list[Said]] = [[] for _ in range(labels.max() + 1)]
    for said, label in zip(told, labels.tolist(), strict=True):
        if label >= 0:
            groups[label].append(said)
    return kept.extracted(groups)


def _is_safe(text: str) -> bool:
    """Whether a line that a model wrote may be shown: it passes validation, and speaks of no danger."""
    return (
        validate(text, Action.SOFT_BELL).ok and screen(text, embed=embed_packaged).action != Action.HARD_BELL
    )


class _Model:
    """The configured model, asked through the one function that makes every system prompt."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, task: str, message: str, *, heavy: bool) -> dict[str, Any] | None:
        system = imprint.system_prompt(
            imprint=None, soft_bell=heavy, now=timezone.now(), tz=ZoneInfo("UTC"), task=task
        )
        return ask_for_json(system=system, message=message)


class _Notebook:
    """Notes in the database, each written as soon as it is made."""

    def __init__(self, owner: AbstractBaseUser) -> None:
        self.owner = owner
        self.used: set[str] = set()

    def find(self, made_of: str) -> Says | None:
        self.used.add(made_of)
        found = ThemeNote.objects.filter(owner_id=self.owner.pk, made_of=made_of)
        says: Says | None = found.values_list("says", flat=True).first()
        return says

    def keep(self, made_of: str, says: Says, node_ids: Iterable[UUID]) -> None:
        self.used.add(made_of)
        ThemeNote.objects.update_or_create(
            owner_id=self.owner.pk, made_of=made_of, defaults={"says": says, "node_ids": list(node_ids)}
        )

    def drop_unused(self) -> None:
        """What this run did not read is of talk that changed, or of another model."""
        ThemeNote.objects.filter(owner_id=self.owner.pk).exclude(made_of__in=self.used).delete()
