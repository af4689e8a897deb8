"""What every import format gives: chats made of exchanges, with their own dates."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Protocol

from django.utils.dateparse import parse_datetime

# What a chat without a single date is filed under. Never the present: it would pass for recent talk.
UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
# Two messages of one chat never share a moment.
LATER = timedelta(milliseconds=1)
LONGEST_KEY = 200


class Unreadable(Exception):
    """One entry that is in a known format and cannot be used; the sentence says why and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one side said and the other answered. Either may be empty: some chats begin with an answer.

    `key` is the same whenever the chat is exported again. `said_at` only grows within a chat.
    """

    key: str
    q: str
    a: str
    said_at: datetime
    answered_at: datetime | None
    model: str


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat. `title` is empty where the export had none worth keeping."""

    external_id: str
    title: str
    exchanges: tuple[Exchange, ...]
    temporary: bool
    undated: bool
    other_versions: int


class Format(Protocol):
    """One kind of export."""

    source: str

    def recognises(self, entry: object) -> bool:
        """Whether the entry is in this format, however damaged."""

    def read(self, entry: object, *, latest: datetime) -> Chat:
        """The chat in the entry; times after `latest` are taken for errors. Raises Unreadable."""


@dataclass(frozen=True, slots=True)
class Message:
    """One visible message, before messages are joined to exchanges."""

    key: str
    by_person: bool
    text: str
    at: datetime
    model: str = ""


def exchanges_from(messages: list[Message]) -> tuple[Exchange, ...]:
    """Messages in order, as exchanges.

    Each message of the person begins one, also where the one before got no answer; answers that follow each
    other are one answer; an answer before anything was asked stands with an empty question.
    """
    groups: list[list[Message]] = []
    for message in messages:
        if message.by_person or not groups:
            groups.append([message])
        else:
            groups[-1].append(message)
    return tuple(_exchange(group) for group in groups)


def _exchange(group: list[Message]) -> Exchange:
    first, answers = group[0], [message for message in group if not message.by_person]
    return Exchange(
        key=short_key(first.key),
        q=first.text if first.by_person else "",
        a="\n\n".join(answer.text for answer in answers),
        said_at=first.at,
        answered_at=answers[-1].at if answers else None,
        model=next((answer.model for answer in reversed(answers) if answer.model), ""),
    )


def short_key(key: str) -> str:
    """The key itself, or its digest where it is too long for its column."""
    return key if len(key) <= LONGEST_KEY else "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def moment(value: object, *, latest: datetime) -> datetime | None:
    """A time in any form exports use: seconds, milliseconds or microseconds, as number or string, or ISO 8601.

    None for what is no time, and for one that cannot be true: before 1990 or after `latest`.
    """
    found: datetime | None = None
    if isinstance(value, str):
        found = _from_text(value.strip())
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        found = _from_number(float(value))
    return found if found is not None and EARLIEST <= found <= latest else None


def _from_text(value: str) -> datetime | None:
    try:
        return _from_number(float(value))
    except ValueError:
        pass
    try:
        found = parse_datetime(value)
    except ValueError:
        return None
    if found is None:
        return None
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        return None


def _from_number(value: float) -> datetime | None:
    for scale in (1, 1_000, 1_000_000):
        # Seconds stay below this bound until the year 5138.
        if abs(value) / scale < 1e11:
            try:
                return datetime.fromtimestamp(value / scale, tz=UTC)
            except (ValueError, OverflowError, OSError):
                return None
    return None
