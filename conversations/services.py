"""Writes of sessions and turns. Each is one short transaction; none holds one over a network or model call."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID, uuid4

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.utils import timezone
from psycopg.types.json import Jsonb

import memory.services
import safety.services
from conversations.hints import hint_answer
from conversations.keeping import forget_in_what_was_drawn_on, keep_what_was_asked
from conversations.models import Attempt, ImportedChat, Imprint, Mode, Profile, Session, Turn
from conversations.stream import forget_streams
from conversations.themes import kept
from memory.engram.awareness import Happening, note
from memory.models import MemoryNode
from neuron_site import invitation
from safety.models import BellEvent

# A worker pushes its lease forward every few seconds; one that is silent for longer is taken for dead.
LEASE = timedelta(seconds=20)
# How long a new turn may wait before the sweeper hints again.
PICK_UP = timedelta(seconds=5)
MOST_ATTEMPTS_WITHOUT_TEXT = 3
TITLE_LENGTH = 60
SAME_MINUTE = timedelta(minutes=1)


class ClientKeyReused(Exception):
    """The same client_key came with another text: it was not accepted, and the first turn stands."""


def profile_of(owner: AbstractBaseUser) -> Profile:
    """The person's settings, created at first use. Read with the person, they are not read again."""
    person = cast(User, owner)
    try:
        return person.profile
    except Profile.DoesNotExist:
        person.profile = Profile.objects.get_or_create(owner_id=owner.pk)[0]
        return person.profile


def note_use(*, profile: Profile, turn: Turn, notices: list[dict[str, str]], now: datetime) -> None:
    """Keep when a person was last here; notices that are owed now go onto the turn with the note that they were told.

    One transaction and before the model is asked: a worker that dies later takes no notice with it. What is less than
    a minute old is left as it is: it tells pauses of half an hour.
    """
    if not notices and profile.last_active_at and now - profile.last_active_at < SAME_MINUTE:
        return
    values: dict[str, Any] = {"last_active_at": now}
    with transaction.atomic():
        if notices:
            values["last_notice_at"] = now
            Turn.objects.filter(pk=turn.pk).update(notices=notices)
        Profile.objects.filter(pk=profile.pk).update(**values)


class InvitationSpent(Exception):
    """The link that makes the first owner opens nothing any more."""


def create_owner(*, token: str, username: str, password: str) -> User:
    """The first owner, who may do everything, the admin included. Raises InvitationSpent."""
    with transaction.atomic(), connection.cursor() as cursor:
        # Two people with the same link at the same moment: the second finds the first.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('neuron.first-owner'))")
        if not invitation.is_open(token):
            raise InvitationSpent
        return User.objects.create_superuser(username=username, password=password)


def create_session(
    *,
    owner: AbstractBaseUser,
    mode: str = Mode.CHAT,
    imprint: Imprint | None = None,
    title: str = "",
    session_id: UUID | None = None,
) -> Session:
    """An empty session; without an imprint it follows the person's choice, or the default.

    With a `session_id` the person's session of that id is made once, however often it is asked for.
    """
    first = {"mode": mode, "imprint": imprint, "title": title[:200]}
    return Session.objects.get_or_create(pk=session_id or uuid4(), owner_id=owner.pk, defaults=first)[0]


def rename_session(*, session: Session, title: str) -> Session:
    session.title = title.strip()[:200]
    session.save(update_fields=["title"])
    return session


def pin_session(*, session: Session, pinned: bool) -> Session:
    session.pinned = pinned
    session.save(update_fields=["pinned"])
    return session


def set_mode(*, session: Session, mode: str) -> Session:
    """Raises ValueError for a mode that is none."""
    session.mode = Mode(mode)
    session.save(update_fields=["mode"])
    return session


def delete_session(*, session: Session) -> None:
    """Forget a session for good: turns, answers, nodes, edges, what was kept of it, the streams, its line in a report.

    Forks keep what was said in them. Bells stay for review, with their 80 characters.
    """
    owner = session.owner
    with transaction.atomic():
        turn_ids = list(session.turns.values_list("pk", flat=True))
        nodes = MemoryNode.objects.owned_by(owner).in_session(session.pk)
        kept.forget_notes_of(node_ids=list(nodes.values_list("pk", flat=True)))
        memory.services.delete_session_nodes(owner=owner, session_id=session.pk)
        kept.mend(owner=owner)
        ImportedChat.objects.filter(session=session).update(title="", reason="deleted")
        forget_in_what_was_drawn_on(owner=owner, session_id=str(session.pk))
        session.delete()
        memory.services.rewrite_history(owner=owner)
        transaction.on_commit(lambda: forget_streams(turn_ids))


def fork_session(*, session: Session, at_index: int) -> Session:
    """A session that shows this one's turns before `at_index` and goes on from there.

    Raises ValueError where the session has no turn at that index.
    """
    if not Turn.objects.in_thread(session).filter(turn_index=at_index).exists():
        raise ValueError("there is no turn to fork at")
    return Session.objects.create(
        owner_id=session.owner_id,
        title=session.title,
        imprint=session.imprint,
        mode=session.mode,
        temporary=session.temporary,
        forked_from=session,
        forked_at=at_index,
        next_index=at_index,
    )


@dataclass(frozen=True, slots=True)
class Accepted:
    """A turn, and whether this very message had been accepted before."""

    turn: Turn
    replayed: bool


def find_turn(*, session: Session, client_key: str, text: str) -> Turn | None:
    """The turn an earlier sending of this message made. Raises ClientKeyReused where its text was another."""
    turn = session.turns.filter(client_key=client_key).first()
    if turn is not None and turn.q != text:
        raise ClientKeyReused
    return turn


# The row's lock keeps `turn_index` without gap or repeat. One statement, because the person waits for it.
_TAKE_NEXT_INDEX = """
    UPDATE conversations_session
    SET next_index = next_index + 1, last_turn_at = %(now)s,
        title = CASE WHEN title = '' THEN %(title)s ELSE title END
    WHERE id = %(session)s AND NOT EXISTS (
        SELECT FROM conversations_turn WHERE session_id = %(session)s AND client_key = %(client_key)s
    )
    RETURNING next_index, title, mode, temporary
"""


def accept_turn(
    *,
    session: Session,
    text: str,
    client_key: str,
    action: str,
    help_lines: bool = False,
    bell: BellEvent | None = None,
    now: datetime | None = None,
) -> Accepted:
    """Take the next index and insert the turn as pending; a soft bell goes into the same transaction.

    `session` is brought up to date with its row. Raises ClientKeyReused, and Session.DoesNotExist where it was deleted.
    """
    now = now or timezone.now()
    given: dict[str, Any] = {
        "session": session.pk,
        "now": now,
        "title": title_from(text),
        "client_key": client_key,
    }
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(_TAKE_NEXT_INDEX, given)
                taken = cursor.fetchone()
            if taken is None:
                standing = find_turn(session=session, client_key=client_key, text=text)
                if standing is None:
                    raise Session.DoesNotExist
                return Accepted(standing, replayed=True)
            session.next_index, session.title, session.mode, session.temporary = taken
            session.last_turn_at = now
            turn = Turn.objects.create(
                session=session,
                owner_id=session.owner_id,
                turn_index=session.next_index - 1,
                q=text,
                action=action,
                help_lines=help_lines,
                mode=session.mode,
                client_key=client_key,
                lease_until=now + PICK_UP,
                created_at=now,
            )
            if bell is not None:
                bell.after_index = turn.turn_index
                safety.services.save_bell(bell=bell, mirrored=not session.temporary)
            transaction.on_commit(lambda: hint_answer(turn.pk))
    except IntegrityError:
        # One turn of a client_key in a session: another sending of this message was first, by a moment.
        standing = find_turn(session=session, client_key=client_key, text=text)
        if standing is None:
            raise
        return Accepted(standing, replayed=True)
    return Accepted(turn, replayed=False)


def title_from(text: str) -> str:
    """A title out of the first message: its first line, cut at a word."""
    line = next((line.strip(" #*>-\t") for line in text.splitlines() if line.strip(" #*>-\t")), "")
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0].rstrip(",;:.") + "…"


# Written out, because the person waits for it and the ORM takes longer to put it together than PostgreSQL to do it.
_CLAIM = """
    UPDATE conversations_turn turn
    SET status = 'answering', attempt = attempt + 1, lease_until = %(lease_until)s, stop_requested = false,
        a = '', error = ''
    WHERE id = %(turn)s AND status = 'pending' AND NOT EXISTS (
        SELECT FROM conversations_turn earlier
        WHERE earlier.session_id = turn.session_id AND earlier.turn_index < turn.turn_index
            AND earlier.status IN ('pending', 'answering')
    )
"""


def claim_turn(*, turn_id: UUID, now: datetime | None = None) -> Turn | None:
    """Take a pending turn for answering; None where it is taken, settled, gone, or not yet its session's next.

    The row count decides, so two workers never answer one turn.
    """
    now = now or timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"turn": turn_id, "lease_until": now + LEASE})
        if not cursor.rowcount:
            return None
    claimed: Turn = Turn.objects.select_related("session", "owner__profile").get(pk=turn_id)
    return claimed


_KEEP_PROGRESS = """
    UPDATE conversations_turn SET a = %(a)s, lease_until = %(lease_until)s
    WHERE id = %(turn)s AND attempt = %(attempt)s AND status = 'answering'
    RETURNING stop_requested
"""


def keep_progress(*, turn: Turn, text: str, now: datetime | None = None) -> bool | None:
    """Keep what was answered so far and push the lease forward.

    Returns whether the person asked to stop, or None where the turn is no longer this worker's.
    """
    lease_until = (now or timezone.now()) + LEASE
    given: dict[str, Any] = {"turn": turn.pk, "attempt": turn.attempt, "a": text, "lease_until": lease_until}
    with connection.cursor() as cursor:
        cursor.execute(_KEEP_PROGRESS, given)
        held = cursor.fetchone()
    return None if held is None else bool(held[0])


def hand_back(*, turn: Turn) -> bool:
    """Return a turn that this worker holds and has no text for: the sweeper gives it to the next worker.

    False where it was not this worker's any more.
    """
    held = Turn.objects.filter(pk=turn.pk, attempt=turn.attempt, status=Turn.Status.ANSWERING)
    return bool(held.update(status=Turn.Status.PENDING, lease_until=None))


# The row count decides whether the turn is still this worker's. Gives the turn that waited for this one, if any.
_SETTLE = """
    WITH settled AS (
        UPDATE conversations_turn
        SET status = %(status)s, a = %(a)s, model = %(model)s, error = %(error)s, recalled = %(recalled)s,
            answered_at = %(answered_at)s, lease_until = NULL
        WHERE id = %(turn)s AND attempt = %(attempt)s AND status = 'answering'
        RETURNING id, session_id, turn_index
    ), attempt AS (
        INSERT INTO conversations_attempt (turn_id, number, a, status, model, recalled, created_at)
        SELECT id, %(attempt)s, %(a)s, %(status)s, %(model)s, %(recalled)s, %(answered_at)s FROM settled
    )
    SELECT (
        SELECT id FROM conversations_turn waiting
        WHERE waiting.session_id = settled.session_id AND waiting.status = 'pending'
            AND waiting.turn_index > settled.turn_index
        ORDER BY waiting.turn_index LIMIT 1
    )
    FROM settled
"""


def settle_turn(
    *,
    turn: Turn,
    status: str,
    text: str,
    model: str = "",
    error: str = "",
    recalled: list[dict[str, Any]] | None = None,
    now: datetime | None = None,
) -> bool:
    """Settle a turn this worker holds, with its memory, in one transaction. False where it was not its any more.

    A failed second answer leaves the first one standing.
    """
    values: dict[str, Any] = {
        "status": str(status),
        "a": text,
        "model": model,
        "error": error,
        "recalled": recalled or [],
        "answered_at": now or timezone.now(),
    }
    given = values | {"recalled": Jsonb(values["recalled"]), "turn": turn.pk, "attempt": turn.attempt}
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_SETTLE, given)
            settled = cursor.fetchone()
        if settled is None:
            return False
        for name, value in values.items():
            setattr(turn, name, value)
        turn.lease_until = None
        if status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
            earlier = turn.attempts.filter(status=Turn.Status.COMPLETE).last()
            if earlier is not None:
                _show(turn, earlier)
        elif status in (Turn.Status.COMPLETE, Turn.Status.STOPPED):
            remember(turn=turn)
            if not turn.session.temporary:
                transaction.on_commit(
                    lambda: note(Happening.TURN_COMPLETED, owner_id=turn.owner_id), robust=True
                )
        keep_what_was_asked(turn=turn)
        waiting = settled[0]
        if waiting is not None:
            transaction.on_commit(lambda: hint_answer(waiting))
    return True


def remember(*, turn: Turn) -> None:
    """The turn's Conversation node and the rolling history, inside the caller's transaction."""
    if turn.session.temporary:
        return
    make_node(owner=turn.owner, session=turn.session, turn=turn)
    memory.services.rewrite_history(owner=turn.owner)


def make_node(*, owner: AbstractBaseUser, session: Session, turn: Turn) -> MemoryNode:
    """The Conversation node of a turn of this session of theirs, inside the caller's transaction."""
    return memory.services.remember_turn(
        owner=owner,
        session_id=session.pk,
        turn_index=turn.turn_index,
        q=turn.q,
        a=turn.a,
        created_at=turn.created_at,
        source=session.source,
    )


def _show(turn: Turn, attempt: Attempt) -> None:
    Turn.objects.filter(pk=turn.pk).update(
        a=attempt.a, status=attempt.status, model=attempt.model, recalled=attempt.recalled
    )
    turn.refresh_from_db()


def choose_attempt(*, turn: Turn, number: int) -> Turn:
    """Show another of the turn's answers; memory follows. Raises ValueError where there is none to show."""
    with transaction.atomic():
        locked: Turn = Turn.objects.select_for_update().get(pk=turn.pk)
        attempt = locked.attempts.filter(number=number).first()
        if attempt is None or not locked.is_settled:
            raise ValueError("there is no such answer to show")
        _show(locked, attempt)
        if attempt.status == Turn.Status.COMPLETE:
            remember(turn=locked)
    return locked


def request_stop(*, turn: Turn) -> None:
    """Ask the worker to stop; a turn that no worker holds yet is settled here."""
    with transaction.atomic():
        waiting = Turn.objects.filter(pk=turn.pk, status=Turn.Status.PENDING)
        if waiting.update(status=Turn.Status.STOPPED, answered_at=timezone.now(), lease_until=None):
            turn.refresh_from_db()
            remember(turn=turn)
            keep_what_was_asked(turn=turn)
            return
        Turn.objects.filter(pk=turn.pk, status=Turn.Status.ANSWERING).update(stop_requested=True)


def retry_turn(*, turn: Turn) -> Turn:
    """Answer a settled turn once more; the answers there are stay. A turn still being answered is left alone."""
    with transaction.atomic():
        settled = Turn.objects.filter(pk=turn.pk).exclude(
            status__in=[Turn.Status.PENDING, Turn.Status.ANSWERING, Turn.Status.FORGOTTEN]
        )
        if settled.update(
            status=Turn.Status.PENDING, a="", error="", answered_at=None, lease_until=timezone.now() + PICK_UP
        ):
            transaction.on_commit(lambda: hint_answer(turn.pk))
        turn.refresh_from_db()
    return turn


def sweep_turns(*, now: datetime | None = None) -> int:
    """Settle or wake turns that no worker holds: the guarantee behind every lost message. Returns how many."""
    now = now or timezone.now()
    swept = 0
    for turn in Turn.objects.abandoned(now).order_by("created_at")[:200]:
        swept += _sweep(turn, now)
    return swept


def _sweep(turn: Turn, now: datetime) -> bool:
    if turn.status == Turn.Status.PENDING:
        Turn.objects.filter(pk=turn.pk, status=Turn.Status.PENDING).update(lease_until=now + PICK_UP)
        hint_answer(turn.pk)
        return True
    if turn.a:
        return settle_turn(
            turn=turn, status=Turn.Status.INTERRUPTED, text=turn.a, error="worker_lost", now=now
        )
    if turn.attempt >= MOST_ATTEMPTS_WITHOUT_TEXT:
        return settle_turn(turn=turn, status=Turn.Status.FAILED, text="", error="worker_lost", now=now)
    returned = Turn.objects.filter(
        Q(lease_until__lt=now), pk=turn.pk, attempt=turn.attempt, status=Turn.Status.ANSWERING
    ).update(status=Turn.Status.PENDING, lease_until=now + PICK_UP)
    if returned:
        hint_answer(turn.pk)
    return bool(returned)
