"""What "yesterday" meant on the day it was said."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.absolute import absolute_dates

SAID = datetime(2026, 5, 12, 9, tzinfo=UTC)  # a Tuesday


def absolute(text: str, said_at: datetime = SAID, zone: str = "UTC") -> str:
    return absolute_dates(text, said_at=said_at, tz=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I met Ada yesterday", "I met Ada on 11 May 2026"),
        ("Yesterday I met Ada. Tomorrow too.", "On 11 May 2026 I met Ada. On 13 May 2026 too."),
        ("it has rained since yesterday", "it has rained since 11 May 2026"),
        ("tomorrow is my birthday", "13 May 2026 is my birthday"),
        ("Yesterday's dinner was good", "11 May 2026's dinner was good"),
        ("the day before yesterday I fell", "On 10 May 2026 I fell"),
        ("I slept badly last night", "I slept badly in the evening of 11 May 2026"),
        ("my exam is next Friday", "my exam is on 15 May 2026"),
        ("he left last Tuesday", "he left on 5 May 2026"),
        ("he leaves next Tuesday", "he leaves on 19 May 2026"),
        ("I was ill last week", "I was ill in the week of 4 May 2026"),
        ("we move next month", "we move in June 2026"),
        ("we moved three years ago", "we moved in 2023"),
        ("I start in two weeks", "I start in the week of 25 May 2026"),
        ("it began 10 days ago", "it began on 2 May 2026"),
        ("this year I quit", "In 2026 I quit"),
        ("in May I go, on Monday I rest, soon I sleep", "in May I go, on Monday I rest, soon I sleep"),
        ("yesterdays of my life", "yesterdays of my life"),
        ("in a day of work", "in a day of work"),
    ],
)
def test_relative_dates_become_dates(said: str, kept: str) -> None:
    assert absolute(said) == kept


def test_the_day_is_that_of_the_persons_own_calendar() -> None:
    late = datetime(2026, 5, 12, 23, tzinfo=UTC)
    assert absolute("I met her today", late) == "I met her on 12 May 2026"
    assert absolute("I met her today", late, "Asia/Tokyo") == "I met her on 13 May 2026"


def test_months_count_over_the_turn_of_the_year() -> None:
    assert absolute("last month", datetime(2026, 1, 31, tzinfo=UTC)) == "In December 2025"
    assert absolute("in 14 months", datetime(2026, 12, 31, tzinfo=UTC)) == "In February 2028"


@given(st.text(max_size=200))
def test_any_text_comes_through_and_stays_where_no_time_is_named(text: str) -> None:
    assert absolute(text).lower() == text.lower() or any(
        word in text.lower()
        for word in ("day", "week", "month", "year", "night", "morrow", "morning", "evening")
    )
