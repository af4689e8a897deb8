"""Time words as windows on the calendar of the person who asks."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory.timewords import Window, asks_for_the_first, find_window

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2023, 5, 18, 22, 30, tzinfo=UTC)  # in Berlin a Friday, the 19th


def window(text: str, now: datetime = NOW, *, loose: bool = False) -> Window | None:
    return find_window(text, now=now, tz=BERLIN, loose=loose)


def days(text: str, now: datetime = NOW, *, loose: bool = False) -> tuple[str, str] | None:
    """First and last day."""
    found = window(text, now, loose=loose)
    if found is None:
        return None
    first, after = found.start.astimezone(BERLIN).date(), found.end.astimezone(BERLIN).date()
    return first.isoformat(), (after - timedelta(days=1)).isoformat()


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what did I do yesterday", "2023-05-18", "2023-05-18"),
        ("this week", "2023-05-15", "2023-05-21"),
        ("last week", "2023-05-08", "2023-05-14"),
        ("last weekend", "2023-05-13", "2023-05-14"),
        ("in the last three days", "2023-05-16", "2023-05-19"),
        ("on Friday", "2023-05-12", "2023-05-12"),
        ("in March", "2023-03-01", "2023-03-31"),
        ("in June", "2022-06-01", "2022-06-30"),
        ("on 12 May", "2023-05-12", "2023-05-12"),
        ("on May 25th", "2022-05-25", "2022-05-25"),
        ("since March", "2023-03-01", "2023-05-19"),
        ("since 12 May", "2023-05-12", "2023-05-19"),
        ("since Monday", "2023-05-15", "2023-05-19"),
        ("since yesterday", "2023-05-18", "2023-05-19"),
        ("since last week", "2023-05-08", "2023-05-19"),
        ("between 3 May and 10 May", "2023-05-03", "2023-05-10"),
        ("between May 3 and May 10", "2023-05-03", "2023-05-10"),
        ("between 3 and 10 May", "2023-05-03", "2023-05-10"),
        ("from 20 December to 5 January", "2022-12-20", "2023-01-05"),
        ("between 3 May and 10 May 2021", "2021-05-03", "2021-05-10"),
        ("between March and April", "2023-03-01", "2023-04-30"),
        ("between Monday and yesterday", "2023-05-15", "2023-05-18"),
        ("29 February", "2020-02-29", "2020-02-29"),
        ("on 29 February 2023", "2023-02-01", "2023-02-28"),
        ("last winter", "2022-12-01", "2023-02-28"),
        ("2023-05-03", "2023-05-03", "2023-05-03"),
        ("in 2021", "2021-01-01", "2021-12-31"),
    ],
)
def test_words_name_a_window(text: str, first: str, last: str) -> None:
    assert days(f"What did we talk about {text}?") == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "You may 5 times do it",
        "Step 3 may help",
        "I may go",
        "31 April",
        "lately",
        "Friday is my day",
        "plans for the weekend",
        "",
    ],
)
def test_other_words_name_none(text: str) -> None:
    assert window(text) is None


def test_in_a_look_up_a_bare_weekday_and_the_weekend_are_the_last_ones() -> None:
    assert days("Wednesday what did we say", loose=True) == ("2023-05-17", "2023-05-17")
    assert days("what about the weekend", loose=True) == ("2023-05-13", "2023-05-14")


def test_a_day_begins_at_the_persons_own_midnight() -> None:
    found = window("today")
    assert found is not None
    assert found.start == datetime(2023, 5, 18, 22, tzinfo=UTC)
    assert found.end == datetime(2023, 5, 19, 22, tzinfo=UTC)


def test_a_day_on_which_the_clocks_change_has_its_own_length() -> None:
    found = find_window("on 26 March", now=NOW, tz=BERLIN)
    assert found is not None
    assert found.end - found.start == timedelta(hours=23)


def test_the_last_29th_of_february_is_this_years_in_a_leap_year() -> None:
    assert days("on 29 February", datetime(2024, 3, 5, tzinfo=UTC)) == ("2024-02-29", "2024-02-29")


def test_the_phrase_is_what_stood_in_the_text() -> None:
    found = window("Tell me, since 12 May, what was it?")
    assert found is not None
    assert found.phrase == "since 12 May"


def test_the_first_time_is_asked_for_in_several_ways() -> None:
    assert asks_for_the_first("When did I first tell you about Lisbon?")
    assert not asks_for_the_first("First, a question about Lisbon")
