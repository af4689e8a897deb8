"""When a letter is due, on the calendar of the person it is for. Pure.

A due day is a local date, and a letter belongs to it: whatever becomes of the clock or the zone meanwhile, there is
one letter for one date. Only the latest due day counts, so that a machine that was off for a week sends one letter.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo


class Rhythm(StrEnum):
    OFF = "off"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


SHORTEST = {Rhythm.WEEKLY: 7, Rhythm.MONTHLY: 28}  # days between two letters, also after a change of the day


@dataclass(frozen=True, slots=True)
class Wish:
    """What the person asked for: `weekday` 0 is Monday, `day` 1 to 28 of the month, `hour` 0 to 23 of their own day."""

    rhythm: Rhythm
    weekday: int
    day: int
    hour: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """What one letter is about: the half-open time [start, end), due on a local date at a moment."""

    due_on: date
    due_at: datetime
    start: datetime
    end: datetime


def due(wish: Wish, *, now: datetime, tz: ZoneInfo, last: tuple[date, datetime] | None) -> Period | None:
    """The period whose letter is due now, None for none. `last` is the last letter's due date and its period's end."""
    if wish.rhythm == Rhythm.OFF:
        return None
    day = _latest_day(wish, now, tz)
    due_at = moment(day, wish.hour, tz)
    if due_at < wish.since:
        return None
    if last is not None and (day - last[0]).days < SHORTEST[wish.rhythm]:
        return None
    start = moment(_before(day, wish.rhythm), 0, tz)
    # What was said since the last letter, unless that is long ago: nothing is told twice, and nothing left out.
    if last is not None and moment(_before(_before(day, wish.rhythm), wish.rhythm), 0, tz) <= last[1]:
        start = last[1]
    return Period(day, due_at, start, moment(day, 0, tz))


def next_due(wish: Wish, *, now: datetime, tz: ZoneInfo) -> datetime | None:
    """The moment after `now` at which a letter is due by the calendar alone; None where none is wished for."""
    if wish.rhythm == Rhythm.OFF:
        return None
    day = _latest_day(wish, now, tz)
    step = timedelta(days=1)
    following = day + step
    while not _is_day(wish, following):
        following += step
    return moment(following, wish.hour, tz)


def moment(day: date, hour: int, tz: ZoneInfo) -> datetime:
    """The first moment of that local hour. One that a change of the clock leaves out begins when the clock jumps."""
    return datetime.combine(day, time(hour), tzinfo=tz).astimezone(UTC)


def _latest_day(wish: Wish, now: datetime, tz: ZoneInfo) -> date:
    day = now.astimezone(tz).date()
    while not _is_day(wish, day) or moment(day, wish.hour, tz) > now:
        day -= timedelta(days=1)
    return day


def _is_day(wish: Wish, day: date) -> bool:
    return day.weekday() == wish.weekday if wish.rhythm == Rhythm.WEEKLY else day.day == wish.day


def _before(day: date, rhythm: Rhythm) -> date:
    """The same day one period earlier."""
    if rhythm == Rhythm.WEEKLY:
        return day - timedelta(days=7)
    month_before = day.replace(day=1) - timedelta(days=1)
    return month_before.replace(day=min(day.day, 28))
