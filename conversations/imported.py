"""One imported chat: screened, and stored as a session with its turns and their memory.

What was said long ago rings no bell now; what would ring a hard one is left out, of titles too.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Max

import memory.services
from conversations.importers import Chat, Exchange
from conversations.models import ImportedChat, Session, Turn
from conversations.services import make_node, title_from
from memory.embedding import EmbedderUnavailable, embed_packaged
from safety.normalise import replace_unstorable
from safety.screening import Action, Screening, screen

SCREENED_AT_ONCE = 50
LONGEST_TITLE = 200

Outcome = ImportedChat.Outcome


@dataclass(slots=True)
class Line:
    """What the report says of one chat."""

    outcome: str
    title: str = ""
    reason: str = ""
    turns_added: int = 0
    turns_left_out: int = 0
    session: Session | None = None


def title_of(entry: object) -> str:
    """What the report calls an entry that was not taken; crisis talk is no title."""
    title = entry.get("title") if isinstance(entry, dict) else None
    return safe_title(title) if isinstance(title, str) else ""


def safe_title(title: str) -> str:
    title = replace_unstorable(title).strip()[:LONGEST_TITLE]
    return "" if not title or _screen(title).action == Action.HARD_BELL else title


# --- Screening --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Screened:
    """An exchange as the database can hold it, and what screening said of it."""

    exchange: Exchange
    action: str


def screened(exchanges: Sequence[Exchange], *, between: Callable[[], None]) -> list[Screened]:
    """Each exchange by the person's own words. No bell is rung, and no risk kept: it was said long ago.

    `between` is called now and then: a chat of a thousand exchanges takes a while.
    """
    found: list[Screened] = []
    for number, exchange in enumerate(map(_storable, exchanges)):
        if number and number % SCREENED_AT_ONCE == 0:
            between()
        found.append(Screened(exchange, _screen(exchange.q).action if exchange.q else Action.PASS))
    return found


def _storable(exchange: Exchange) -> Exchange:
    return replace(
        exchange,
        key=replace_unstorable(exchange.key),
        q=replace_unstorable(exchange.q),
        a=replace_unstorable(exchange.a),
        model=replace_unstorable(exchange.model),
    )


def _screen(text: str) -> Screening:
    """By meaning where the embedder is there, by the lists alone where it is not."""
    try:
        return screen(text, embed=embed_packaged)
    except EmbedderUnavailable:
        return screen(text)


# --- Storing ----------------------------------------------------------------------------------------------------


def store(owner: AbstractBaseUser, source: str, chat: Chat, exchanges: list[Screened]) -> Line:
    """The chat's session with every exchange that is not there yet, inside the caller's transaction."""
    kept = [one for one in exchanges if one.action != Action.HARD_BELL]
    left_out = len(exchanges) - len(kept)
    if not exchanges:
        return Line(Outcome.SKIPPED, safe_title(chat.title), "Nothing was said in it.")
    external_id = replace_unstorable(chat.external_id)
    session = (
        Session.objects.for_owner(owner)
        .filter(source=source, external_id=external_id)
        .select_for_update()
        .first()
    )
    if not kept and session is None:
        return Line(Outcome.SKIPPED, reason=_left_out(left_out), turns_left_out=left_out)
    is_new = session is None
    if session is None:
        session = Session.objects.create(
            owner_id=owner.pk,
            title=_title(chat, kept, left_out),
            source=source,
            external_id=external_id,
            temporary=chat.temporary,
            created_at=kept[0].exchange.said_at,
            last_turn_at=kept[-1].exchange.said_at,
        )
    elif chat.temporary and not session.temporary:
        _forget(owner, session)
    added, completed = _add_turns(session, kept)
    reasons = [
        _left_out(left_out) if left_out else "",
        "It carries no date and stands before all others." if chat.undated else "",
        f"{_count(completed, 'answer')} had grown since." if completed else "",
        f"{_count(chat.other_versions, 'message')} of other versions of it were not taken."
        if chat.other_versions
        else "",
        "It was marked as not to be remembered, so memory does not hold it." if session.temporary else "",
    ]
    outcome = Outcome.IMPORTED if is_new else Outcome.UPDATED if added or completed else Outcome.UNCHANGED
    return Line(
        outcome,
        session.title,
        " ".join(reason for reason in reasons if reason),
        turns_added=added,
        turns_left_out=left_out,
        session=session,
    )


def _title(chat: Chat, kept: list[Screened], left_out: int) -> str:
    """The chat's own title, or one made from its first words that were kept.

    ChatGPT makes titles from what was said first; where something was left out, its title may speak of just that.
    """
    if chat.title and not left_out and (title := safe_title(chat.title)):
        return title
    first = kept[0].exchange
    return safe_title(title_from(first.q or first.a))


def _add_turns(session: Session, kept: list[Screened]) -> tuple[int, int]:
    """How many turns were new, and how many had a new answer. The session's row is locked or new."""
    standing = {
        turn.client_key: turn
        for turn in session.turns.filter(client_key__in=[one.exchange.key for one in kept])
    }
    new: list[Turn] = []
    completed: list[Turn] = []
    for one in kept:
        turn = standing.get(one.exchange.key)
        if turn is None:
            new.append(_turn(session, one, session.next_index + len(new)))
        elif (
            one.exchange.a and turn.a != one.exchange.a and turn.attempt == 0
        ):  # answered anew in Neuron, it is Neuron's
            turn.a, turn.answered_at = one.exchange.a, one.exchange.answered_at
            completed.append(turn)
    Turn.objects.bulk_create(new, batch_size=500)
    Turn.objects.bulk_update(completed, ["a", "answered_at"], batch_size=500)
    _remember(session, [*completed, *new])
    if new:
        session.next_index += len(new)
        latest = session.turns.aggregate(latest=Max("created_at"))["latest"]
        session.last_turn_at = latest or session.last_turn_at
        session.save(update_fields=["next_index", "last_turn_at"])
    return len(new), len(completed)


def _turn(session: Session, one: Screened, index: int) -> Turn:
    return Turn(
        session=session,
        owner_id=session.owner_id,
        turn_index=index,
        q=one.exchange.q,
        a=one.exchange.a,
        status=Turn.Status.COMPLETE,
        # Answered again one day, it is answered under the directive of its kind.
        action=Turn.Action.SOFT_BELL if one.action == Action.SOFT_BELL else Turn.Action.PASS,
        model=one.exchange.model,
        client_key=one.exchange.key,
        created_at=one.exchange.said_at,
        answered_at=one.exchange.answered_at,
    )


def _remember(session: Session, turns: Iterable[Turn]) -> None:
    if session.temporary:
        return
    for turn in turns:
        make_node(owner=session.owner, session=session, turn=turn)


def _forget(owner: AbstractBaseUser, session: Session) -> None:
    """The person has since marked the chat as not to be remembered."""
    session.temporary = True
    session.save(update_fields=["temporary"])
    memory.services.delete_session_nodes(owner=owner, session_id=session.pk)


def _left_out(number: int) -> str:
    was, it = ("was", "It spoke") if number == 1 else ("were", "They spoke")
    return (
        f"{_count(number, 'exchange')} {was} left out. {it} of danger to life, which Neuron keeps out of its memory. "
        "Nobody was told."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
