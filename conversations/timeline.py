"""Time made visible: day lines, gaps in words, bells in their place, and sessions grouped by recency."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from django.utils import timezone

from conversations.models import Session, Turn
from safety.models import BellEvent

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
QUIET_HOURS = 4  # a pause within one day is worth a word from here on


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing on a session's page; exactly one of `day`/`gap`, `turn` or `bell` is what it shows."""

    kind: Literal["time", "turn", "bell"]
    day: date | None = None
    gap: str = ""
    turn: Turn | None = None
    bell: BellEvent | None = None
    latest: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Sessions under one heading of the list."""

    name: str
    sessions: list[Session]


def entries(turns: Sequence[Turn], bells: Sequence[BellEvent], before: datetime | None = None) -> list[Entry]:
    """Turns in order with their bells, a day line where the day changes, and gaps in words.

    `before` is when the turn just above this window was said, so that a window's first day line knows its gap.
    Soft bells belong to a turn and are shown by it; only the others have a place of their own.
    """
    moments: list[tuple[int, int, datetime, Turn | BellEvent]] = [
        (turn.turn_index, 0, turn.created_at, turn) for turn in turns
    ] + [(bell.after_index, 1, bell.created_at, bell) for bell in bells if bell.level == BellEvent.Level.HARD]
    moments.sort(key=lambda moment: moment[:3])
    shown: list[Entry] = []
    for position, (_, _, at, what) in enumerate(moments):
        line = _line(before, at)
        if line is not None:
            shown.append(line)
        latest = position == len(moments) - 1
        if isinstance(what, Turn):
            shown.append(Entry("turn", turn=what, latest=latest))
        else:
            shown.append(Entry("bell", bell=what, latest=latest))
        before = max(at, before) if before else at
    return shown


def _line(before: datetime | None, at: datetime) -> Entry | None:
    day = timezone.localdate(at)
    if before is None:
        return Entry("time", day=day)
    gap = gap_in_words(before, at)
    if day > timezone.localdate(before):
        return Entry("time", day=day, gap=gap)
    return Entry("time", gap=gap) if gap else None


def gap_in_words(before: datetime, after: datetime) -> str:
    """ "three weeks later"; empty for what is no pause worth naming."""
    hours = (after - before).total_seconds() / 3600
    days = (timezone.localdate(after) - timezone.localdate(before)).days
    if days < 1:
        return f"{_count(int(hours), 'hour')} later" if hours >= QUIET_HOURS else ""
    if days == 1:
        return "the next day"
    if days < 14:
        return f"{_count(days, 'day')} later"
    if days < 60:
        return f"{_count(days // 7, 'week')} later"
    if days < 730:
        return f"{_count(round(days / 30.44), 'month')} later"
    return f"{_count(days // 365, 'year')} later"


def _count(number: int, unit: str) -> str:
    return f"{NUMBERS[number] if number < len(NUMBERS) else number} {unit}{'' if number == 1 else 's'}"


def grouped(sessions: Iterable[Session], now: datetime | None = None) -> list[Group]:
    """Pinned first, then Today, Yesterday, This week, then months; within each as they came."""
    today = timezone.localdate(now)
    groups: dict[str, list[Session]] = {}
    for session in sessions:
        groups.setdefault("Pinned" if session.pinned else _recency(session.last_turn_at, today), []).append(
            session
        )
    return [Group(name, held) for name, held in groups.items()]


def _recency(at: datetime, today: date) -> str:
    day = timezone.localdate(at)
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=7):
        return "This week"
    return f"{day:%B %Y}" if day.year != today.year else f"{day:%B}"


def greeting(now: datetime | None = None) -> str:
    """A greeting that knows the hour of the person's day."""
    hour = timezone.localtime(now).hour
    if 5 <= hour < 12:
        return "Good morning"
    if 12 <= hour < 18:
        return "Good afternoon"
    if 18 <= hour < 23:
        return "Good evening"
    return "You are up late"
