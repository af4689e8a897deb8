"""When a letter is due: at the local hour, once for each date, whatever clocks and zones do."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.letters.schedule import Period, Rhythm, Wish, due, moment, next_due

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
BERLIN, TOKYO, LOS_ANGELES = (
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("Asia/Tokyo"),
    ZoneInfo("America/Los_Angeles"),
)
SUNDAYS = Wish(Rhythm.WEEKLY, weekday=6, day=1, hour=9, since=LONG_AGO)


Found = list[tuple[datetime, Period]]


def letters(wish: Wish, tz: ZoneInfo, start: datetime, end: datetime, *, step: timedelta) -> Found:
    """All letters of this time, asked for at each step, with the moment at which each was found due."""
    found: Found = []
    now = start
    while now < end:
        last = (found[-1][1].due_on, found[-1][1].end) if found else None
        period = due(wish, now=now, tz=tz, last=last)
        if period is not None:
            found.append((now, period))
        now += step
    return found


@pytest.mark.parametrize("hour", [0, 2, 9, 23])
def test_each_week_has_one_at_its_local_hour_through_both_changes_of_the_clock(hour: int) -> None:
    wish = Wish(Rhythm.WEEKLY, weekday=6, day=1, hour=hour, since=LONG_AGO)
    # The clocks go forward at 2:00 on 30 March 2025 and back at 3:00 on 26 October, both Sundays.
    found = letters(
        wish,
        BERLIN,
        datetime(2025, 3, 3, tzinfo=UTC),
        datetime(2025, 11, 10, tzinfo=UTC),
        step=timedelta(minutes=15),
    )[1:]
    assert len(found) == 36
    for (now, period), (_, following) in pairwise(found):
        assert (following.due_on - period.due_on).days == 7
        assert period.end == following.start
        local = now.astimezone(BERLIN)
        # On the one day without a second hour it comes when the clock jumps to three.
        left_out = hour == 2 and period.due_on == date(2025, 3, 30)
        assert (local.date(), local.hour) == (period.due_on, 3 if left_out else hour)
        assert local.minute == 0


def test_the_hour_that_comes_twice_is_the_first() -> None:
    assert moment(date(2025, 10, 26), 2, BERLIN) == datetime(2025, 10, 26, 0, tzinfo=UTC)
    assert moment(date(2025, 3, 30), 2, BERLIN) == datetime(2025, 3, 30, 1, tzinfo=UTC)


def test_a_month_has_one() -> None:
    wish = Wish(Rhythm.MONTHLY, weekday=0, day=28, hour=7, since=LONG_AGO)
    found = letters(
        wish,
        TOKYO,
        datetime(2025, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
        step=timedelta(hours=1),
    )
    assert [period.due_on.month for _, period in found[1:]] == list(range(1, 13))
    assert found[2][1].start == moment(date(2025, 1, 28), 0, TOKYO)


def test_a_journey_west_or_east_brings_no_second_letter_and_loses_none() -> None:
    now = datetime(2025, 6, 1, 0, 30, tzinfo=UTC)  # 9:30 on a Sunday in Tokyo
    first = due(SUNDAYS, now=now, tz=TOKYO, last=None)
    assert first is not None
    last = (first.due_on, first.end)
    # Nine o'clock of that same Sunday comes again in Los Angeles.
    assert due(SUNDAYS, now=now + timedelta(hours=16), tz=LOS_ANGELES, last=last) is None
    second = due(SUNDAYS, now=now + timedelta(days=7, hours=16), tz=LOS_ANGELES, last=last)
    assert second is not None
    assert (second.due_on, second.start) == (date(2025, 6, 8), first.end)
    # And back: a day is skipped, not a letter.
    third = due(SUNDAYS, now=now + timedelta(days=14), tz=TOKYO, last=(second.due_on, second.end))
    assert third is not None
    assert third.start == second.end


def test_weeks_switched_off_bring_one_letter() -> None:
    found = letters(
        SUNDAYS,
        BERLIN,
        datetime(2025, 6, 1, tzinfo=UTC),
        datetime(2025, 6, 9, tzinfo=UTC),
        step=timedelta(hours=1),
    )
    last = (found[-1][1].due_on, found[-1][1].end)
    back = datetime(2025, 7, 30, 15, tzinfo=UTC)
    late = due(SUNDAYS, now=back, tz=BERLIN, last=last)
    assert late is not None
    assert late.due_on == date(2025, 7, 27)
    assert late.end - late.start == timedelta(days=7)
    assert due(SUNDAYS, now=back, tz=BERLIN, last=(late.due_on, late.end)) is None


def test_another_weekday_neither_tells_twice_nor_leaves_out() -> None:
    first = due(SUNDAYS, now=datetime(2025, 6, 1, 12, tzinfo=UTC), tz=BERLIN, last=None)
    assert first is not None
    last = (first.due_on, first.end)
    thursdays = Wish(Rhythm.WEEKLY, weekday=3, day=1, hour=9, since=LONG_AGO)
    assert due(thursdays, now=datetime(2025, 6, 5, 12, tzinfo=UTC), tz=BERLIN, last=last) is None
    second = due(thursdays, now=datetime(2025, 6, 12, 12, tzinfo=UTC), tz=BERLIN, last=last)
    assert second is not None
    assert second.start == first.end


def test_nothing_is_due_before_it_was_asked_for_or_when_it_is_off() -> None:
    now = datetime(2025, 6, 1, 12, tzinfo=UTC)
    late = Wish(Rhythm.WEEKLY, weekday=6, day=1, hour=9, since=now)
    assert due(late, now=now, tz=BERLIN, last=None) is None
    off = Wish(Rhythm.OFF, weekday=6, day=1, hour=9, since=LONG_AGO)
    assert due(off, now=now, tz=BERLIN, last=None) is None
    assert next_due(off, now=now, tz=BERLIN) is None


@settings(max_examples=60, deadline=None)
@given(
    now=st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    tz=st.sampled_from(
        ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"]
    ),
    rhythm=st.sampled_from([Rhythm.WEEKLY, Rhythm.MONTHLY]),
    weekday=st.integers(0, 6),
    day=st.integers(1, 28),
    hour=st.integers(0, 23),
)
def test_the_next_one_is_ahead_and_the_last_one_behind(
    now: datetime, tz: str, rhythm: Rhythm, weekday: int, day: int, hour: int
) -> None:
    wish = Wish(rhythm, weekday, day, hour, LONG_AGO)
    period, following = (
        due(wish, now=now, tz=ZoneInfo(tz), last=None),
        next_due(wish, now=now, tz=ZoneInfo(tz)),
    )
    assert period is not None
    assert following is not None
    assert period.due_at <= now < following
    assert period.start < period.end <= period.due_at
    again = due(wish, now=following, tz=ZoneInfo(tz), last=(period.due_on, period.end))
    assert again is not None
    assert again.start == period.end
