"""The web's part of the layered cycle, short and without a model: L1 safety, then a turn that waits, or a bell."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, InterfaceError

import safety.services
from conversations import services
from conversations.models import Profile, Session, Turn
from safety.directives import safe_mode_refusal
from safety.help_lines import for_country
from safety.models import BellEvent
from safety.normalise import replace_unstorable
from safety.resources import Resources, country_from
from safety.screening import Action, Screening
from safety.validation import validate

logger = logging.getLogger(__name__)

LONGEST_MESSAGE = 100_000
LONGEST_KEY = 64


class UnusableMessage(Exception):
    """The message cannot be taken; the sentence says why, and what was kept."""


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a message: a turn that will be answered, a bell with its fixed reply, or a refusal."""

    turn: Turn | None = None
    bell: BellEvent | None = None
    reply: str | None = None
    resources: Resources | None = None
    refused: bool = False
    replayed: bool = False


def receive(
    *, session: Session, text: str, client_key: str, country: Callable[[], str] = lambda: ""
) -> Received:
    """Take one message of a session. Whose help lines to show, `country`, is asked only where some are shown.

    Raises UnusableMessage for an empty or too long one, and services.ClientKeyReused.
    """
    text = replace_unstorable(text)
    if not text.strip():
        raise UnusableMessage("There is nothing in this message. Write something and send it again.")
    if len(text) > LONGEST_MESSAGE:
        raise UnusableMessage(
            f"This message has {len(text):,} characters and {LONGEST_MESSAGE:,} are the most. "
            "Nothing was lost: shorten it and send it again."
        )
    if not 0 < len(client_key) <= LONGEST_KEY:
        raise UnusableMessage(f"client_key must have 1 to {LONGEST_KEY} characters.")
    # L1. Whatever is not one of the three answers is safe mode.
    screening = screen(session.owner_id, text)
    if screening is None or screening.action == Action.HARD_BELL:
        # What was accepted before stands, whatever is heard in it now.
        standing = services.find_turn(session=session, client_key=client_key, text=text)
        if standing is not None:
            return Received(turn=standing, replayed=True)
    if screening is None:
        return Received(reply=safe_mode_refusal(), resources=for_country(country()), refused=True)
    try:
        if screening.action == Action.HARD_BELL:
            return hard_bell(
                owner_id=session.owner_id,
                session_id=session.pk,
                after_index=session.next_index - 1,
                client_key=client_key,
                text=text,
                screening=screening,
                resources=for_country(country()),
                mirrored=not session.temporary,
            )
        return _accept(session, text, client_key, screening, country)
    finally:
        safety.services.keep_risk(owner_id=session.owner_id, screening=screening)


def screen(owner_id: int, text: str) -> Screening | None:
    """L1 for a text of this person's; None is safe mode. The caller keeps the risk that the text leaves."""
    return _answered_by(lambda: safety.services.screen_message(owner_id=owner_id, text=text))


def _answered_by(ask: Callable[[], Screening]) -> Screening | None:
    """What it answers, or None where that is none of the three: safe mode."""
    try:
        screening = ask()
    except Exception:
        logger.exception("safe mode: a message could not be screened")
        return None
    if screening.action not in tuple(Action):
        logger.error("safe mode: screening answered %r", screening.action)
        return None
    return screening


def hard_bell(
    *,
    owner_id: int,
    session_id: UUID | None,
    after_index: int,
    client_key: str,
    text: str,
    screening: Screening,
    resources: Resources,
    mirrored: bool,
) -> Received:
    """Ring, and answer with the fixed reply: no turn, no memory, no model. Works without a database."""
    bell = safety.services.ring(
        owner_id=owner_id,
        session_id=session_id,
        after_index=after_index,
        client_key=client_key,
        screening=screening,
        text=text,
        resources_shown=resources.names(),
        mirrored=mirrored,
    )
    reply = validate("", Action.HARD_BELL, resources=resources).text
    return Received(bell=bell, reply=reply, resources=resources)


def receive_without_database(
    *,
    owner_id: int | None,
    session_id: UUID | None,
    text: str,
    client_key: str,
    accept_language: str,
    token_digest: str = "",
) -> Received | None:
    """While the database is away, and without waiting for it: a hard bell is heard all the same and goes into the
    fallback file. None for every other message.

    Whose API token it is cannot be asked either: its digest stands for the owner until the file is replayed.
    """
    text = replace_unstorable(text)
    screening = _answered_by(lambda: safety.services.screen_without_database(text=text))
    if screening is None or screening.action != Action.HARD_BELL:
        return None
    country = settings.NEURON_COUNTRY or country_from(accept_language)
    resources = for_country(country, ask_database=False)
    bell = safety.services.draft_bell(
        owner_id=owner_id,
        session_id=session_id,
        after_index=-1,
        client_key=client_key[:LONGEST_KEY],
        screening=screening,
        text=text,
        resources_shown=resources.names(),
    )
    # Whether the session is a temporary one cannot be asked, so this bell is not mirrored.
    safety.services.keep_in_fallback(bell=bell, mirrored=False, token_digest=token_digest)
    return Received(
        bell=bell, reply=validate("", Action.HARD_BELL, resources=resources).text, resources=resources
    )


def _accept(
    session: Session, text: str, client_key: str, screening: Screening, country: Callable[[], str]
) -> Received:
    soft = screening.action == Action.SOFT_BELL
    help_lines = soft and screening.ideation_level is not None
    resources = for_country(country()) if help_lines else None
    bell = None
    if soft:
        bell = safety.services.draft_bell(
            owner_id=session.owner_id,
            session_id=session.pk,
            after_index=session.next_index,
            client_key=client_key,
            screening=screening,
            text=text,
            resources_shown=resources.names() if resources else [],
        )
    try:
        accepted = services.accept_turn(
            session=session,
            text=text,
            client_key=client_key,
            action=Turn.Action.SOFT_BELL if soft else Turn.Action.PASS,
            help_lines=help_lines,
            bell=bell,
        )
    except (DatabaseError, InterfaceError):
        if bell is not None:
            safety.services.keep_in_fallback(bell=bell, mirrored=not session.temporary)
        raise
    return Received(turn=accepted.turn, replayed=accepted.replayed, resources=resources)


def person_country(owner: AbstractBaseUser, accept_language: str) -> str:
    """Whose help lines: the person's own choice, then the operator's, then what the browser's language suggests."""
    chosen = Profile.objects.filter(owner_id=owner.pk).values_list("country", flat=True).first()
    return chosen or settings.NEURON_COUNTRY or country_from(accept_language)
