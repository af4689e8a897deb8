"""Writes of the safety app: screening with history, bells, their review."""

import logging
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, InterfaceError, transaction
from django.utils import timezone
from knox.models import AuthToken

import memory.services
from memory.embedding import embed_packaged
from memory.engram.awareness import Happening, note
from safety import fallback, second_look
from safety.mirroring import MIRRORED_LEVELS
from safety.models import (
    SUMMARY_LENGTH,
    BellEvent,
    BellReview,
    BellView,
    Referral,
    RiskState,
    StewardNotice,
)
from safety.screening import Action, Screening, Signal, detector_version, screen
from safety.validation import SentenceGate

logger = logging.getLogger(__name__)

# A night and a day later a crisis still counts by half. Turns alone take nothing away.
RISK_HALF_LIFE = timedelta(hours=24)
SOFT_REASON = "wellbeing check needed"


def warm_up() -> None:
    """Load what screening by meaning needs. Without it the lists work, and `doctor` says what is missing."""
    try:
        screen("Good morning.", embed=embed_packaged)
    except Exception:
        logger.exception("the detector could not be loaded")


def screen_message(*, owner_id: int, text: str, now: datetime | None = None) -> Screening:
    """Screen one message with what the person's recent messages left behind. What it leaves, `keep_risk` keeps.

    A database that does not answer costs the history, never the screening.
    """
    screening = screen(text, past_risk=_past_risk(owner_id, now or timezone.now()), embed=embed_packaged)
    return second_look.look(text, screening)


def keep_risk(*, owner_id: int, screening: Screening, now: datetime | None = None) -> None:
    """Keep what a screened message leaves behind for the next, once it has been acted upon: nobody waits for it.

    A database that does not answer costs the history.
    """
    left = {"risk": min(1.0, max(0.0, screening.risk)), "updated_at": now or timezone.now()}
    try:
        # One statement nearly always, and two messages of a person at once cannot collide.
        if not RiskState.objects.filter(owner_id=owner_id).update(**left):
            RiskState.objects.bulk_create(
                [RiskState(owner_id=owner_id, **left)],
                update_conflicts=True,
                unique_fields=["owner"],
                update_fields=["risk", "updated_at"],
            )
    except (DatabaseError, InterfaceError):
        logger.exception("the risk of a person could not be kept")


def screen_without_database(*, text: str) -> Screening:
    """Screen one message by itself, while nobody's history can be read."""
    return screen(text, embed=embed_packaged)


def _past_risk(owner_id: int, now: datetime) -> float:
    try:
        state = RiskState.objects.filter(owner_id=owner_id).first()
    except (DatabaseError, InterfaceError):
        logger.exception("the risk of a person could not be read")
        return 0.0
    if state is None:
        return 0.0
    age = max(timedelta(0), now - state.updated_at)
    return float(state.risk * 0.5 ** (age / RISK_HALF_LIFE))


def ring(
    *,
    owner_id: int,
    session_id: UUID | None,
    after_index: int,
    client_key: str,
    screening: Screening,
    text: str,
    resources_shown: list[str],
    mirrored: bool = True,
) -> BellEvent:
    """Write the bell of a screened message, once: to the database, or to the fallback file when that fails.

    Not `mirrored`, it stays here whatever the operator wants of other bells. Returns the event either way.
    Within a caller's transaction a database error is the caller's to handle:
    call `keep_in_fallback` with the same values there.
    """
    bell = draft_bell(
        owner_id=owner_id,
        session_id=session_id,
        after_index=after_index,
        client_key=client_key,
        screening=screening,
        text=text,
        resources_shown=resources_shown,
    )
    try:
        return save_bell(bell=bell, mirrored=mirrored)
    except (DatabaseError, InterfaceError):
        keep_in_fallback(bell=bell, mirrored=mirrored)
        return bell


def draft_bell(
    *,
    owner_id: int | None,
    session_id: UUID | None,
    after_index: int,
    client_key: str,
    screening: Screening,
    text: str,
    resources_shown: list[str],
) -> BellEvent:
    """The unsaved event of a screening that rang."""
    hard = screening.action == Action.HARD_BELL
    return BellEvent(
        id=uuid.uuid4(),
        owner_id=owner_id,
        session_id=session_id,
        after_index=after_index,
        client_key=client_key,
        level=BellEvent.Level.HARD if hard else BellEvent.Level.SOFT,
        reason=screening.reason if hard else SOFT_REASON,
        summary=text[:SUMMARY_LENGTH],
        score=screening.score,
        signals=[_as_record(signal) for signal in screening.signals],
        detector_version=screening.detector_version,
        ideation_level=screening.ideation_level,
        resources_shown=resources_shown,
    )


def _as_record(signal: Signal) -> dict[str, Any]:
    return {name: getattr(signal, name) for name in ("layer", "rule", "span", "weight", "matched")}


def save_bell(*, bell: BellEvent, mirrored: bool = True) -> BellEvent:
    """Insert the event unless the same message rang already; the one that stands is returned."""
    with transaction.atomic():
        if bell.client_key:
            standing: BellEvent | None = BellEvent.objects.filter(
                session_id=bell.session_id, client_key=bell.client_key
            ).first()
            if standing is not None:
                return standing
        bell.save(force_insert=True)
        if bell.level == BellEvent.Level.HARD:
            StewardNotice.objects.create(bell=bell)
        if bell.owner_id is not None:
            if mirrored and bell.level in MIRRORED_LEVELS:
                memory.services.enqueue_bell(owner_id=bell.owner_id, bell_id=bell.pk)
            transaction.on_commit(
                lambda: note(Happening.BELL_RUNG, owner_id=bell.owner_id, level=bell.level), robust=True
            )
    return bell


_FIELDS = (
    "session_id",
    "after_index",
    "client_key",
    "level",
    "reason",
    "summary",
    "score",
    "signals",
    "detector_version",
    "ideation_level",
    "resources_shown",
)


def keep_in_fallback(*, bell: BellEvent, mirrored: bool = True, token_digest: str = "") -> None:
    """Put an event that the database did not take into the fallback file.

    `token_digest` is that of the API token whose owner rang, where the owner cannot be asked for.
    """
    event: dict[str, Any] = {name: getattr(bell, name) for name in _FIELDS}
    event |= {
        "id": str(bell.id),
        "owner_id": bell.owner_id,
        "session_id": str(bell.session_id) if bell.session_id else None,
        "created_at": bell.created_at.isoformat(),
        "mirrored": mirrored,
        "token_digest": token_digest,
    }
    fallback.append(event)


def replay_fallback() -> int:
    """Bring waiting events into the database, once each. Returns how many were new there."""
    new = 0
    with fallback.taken() as events:
        for event in events:
            owner_id = event["owner_id"]
            if event.get("token_digest"):
                holder = AuthToken.objects.filter(digest=event["token_digest"])
                owner_id = holder.values_list("user_id", flat=True).first()
                if owner_id is None:
                    logger.warning(
                        "a bell of the fallback file came with a token that nobody has; it is dropped"
                    )
                    continue
            bell = BellEvent(
                id=UUID(event["id"]),
                owner_id=owner_id,
                created_at=datetime.fromisoformat(event["created_at"]),
                **{name: event[name] for name in _FIELDS},
            )
            # A line of an earlier version does not say; what may not be mirrored must not be.
            mirrored = event.get("mirrored", False)
            standing = BellEvent.objects.filter(pk=bell.pk).exists()
            if not standing and save_bell(bell=bell, mirrored=mirrored).pk == bell.pk:
                new += 1
            if bell.level == BellEvent.Level.HARD:
                note_referrals(hard=[bell.pk])  # its help lines were shown, and could not be counted then
    return new


def review_bell(*, bell: BellEvent, steward: AbstractBaseUser, state: str, note: str = "") -> BellReview:
    """Append one step to a bell's review; its state follows. Raises ValueError for a state that is none."""
    if state not in BellEvent.State.values or state == BellEvent.State.OPEN:
        raise ValueError(f"a review ends in acknowledged, resolved or false_positive, not {state!r}")
    with transaction.atomic():
        BellEvent.objects.select_for_update().get(pk=bell.pk)
        review = BellReview.objects.create(bell=bell, steward_id=steward.pk, state=state, note=note)
        BellEvent.objects.filter(pk=bell.pk).update(state=state)
        bell.state = state
    return review


def note_view(*, bell: BellEvent, steward: AbstractBaseUser) -> BellView:
    """Keep that a steward opened a bell, each time they do."""
    return BellView.objects.create(bell=bell, steward_id=steward.pk)


def reply_gate(*, action: str) -> SentenceGate:
    """What a streamed reply to a message screened as `action` has to pass, sentence by sentence."""
    return SentenceGate(action, embed=embed_packaged)


def withheld_reply(
    *, owner_id: int, session_id: UUID, after_index: int, reason: str, signals: Sequence[Signal]
) -> None:
    """Log that a reply of the model was withheld: a bell of its own kind, without the text."""
    bell = BellEvent(
        owner_id=owner_id,
        session_id=session_id,
        after_index=after_index,
        level=BellEvent.Level.WITHHELD,
        reason=reason[:120],
        signals=[_as_record(signal) for signal in signals],
        detector_version=detector_version(),
    )
    try:
        save_bell(bell=bell)
    except (DatabaseError, InterfaceError):
        keep_in_fallback(bell=bell)


# --- Referrals ------------------------------------------------------------------------------------------------


def note_referrals(*, hard: Iterable[UUID] = (), soft: Iterable[UUID] = ()) -> None:
    """Count that help lines were shown for these bells and turns, each once. A database that fails costs the count."""
    shown = [Referral(of=of, level=Referral.Level.HARD) for of in hard]
    shown += [Referral(of=of, level=Referral.Level.SOFT) for of in soft]
    if not shown:
        return
    try:
        Referral.objects.bulk_create(shown, ignore_conflicts=True)
    except (DatabaseError, InterfaceError):
        logger.warning("%d shown referrals could not be counted", len(shown))
