"""Relative dates made absolute: what "yesterday" meant on the day it was said. Pure."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from memory.timewords import WEEKDAYS

_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
            "eight": 8, "nine": 9, "ten": 10}  # fmt: skip
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(_NUMBERS) + ")"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_WEEKDAY = "(?P<weekday>" + "|".join(WEEKDAYS) + ")"
# After one of these the date stands by itself: "since 11 May 2026", not "since on 11 May 2026".
_LED = re.compile(r"\b(?:since|until|till|from|by|before|after|for|of|to|on|in|and|than)\s+$", re.IGNORECASE)
# Before one of these it is what the sentence is about: "13 May 2026 is my birthday".
_SUBJECT = re.compile(r"^(?:['’]s|\s+(?:is|was|will|would|has|had))\b", re.IGNORECASE)
_NEAR = {
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
    "yesterday": -1,
    "today": 0,
    "tomorrow": 1,
}
_PARTS = {"this morning": (0, "morning"), "this afternoon": (0, "afternoon"), "this evening": (0, "evening"),
          "tonight": (0, "evening"), "last night": (-1, "evening"), "yesterday morning": (-1, "morning"),
          "yesterday evening": (-1, "evening"), "tomorrow morning": (1, "morning"),
          "tomorrow evening": (1, "evening")}  # fmt: skip


def absolute_dates(text: str, *, said_at: datetime, tz: ZoneInfo) -> str:
    """The text with its relative days, weeks, months and years as dates of the calendar of whoever said it.

    "I met Ada yesterday", said on 12 May 2026, becomes "I met Ada on 11 May 2026". What is open ("in May", "on
    Monday", "soon") stays as it is.
    """
    today = said_at.astimezone(tz).date()
    found: list[tuple[int, int, str, str]] = []
    for pattern, resolve in _RULES:
        for match in pattern.finditer(text):
            overlaps = any(match.start() < end and start < match.end() for start, end, *_ in found)
            if not overlaps:
                found.append((match.start(), match.end(), *resolve(match, today)))
    for start, end, preposition, day in sorted(found, reverse=True):
        alone = _LED.search(text[:start]) or _SUBJECT.match(text[end:])
        words = day if alone else f"{preposition} {day}"
        if not text[:start].strip() or text[:start].rstrip().endswith((".", "!", "?")):
            words = words[0].upper() + words[1:]
        text = text[:start] + words + text[end:]
    return text


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _week(day: date) -> str:
    return f"the week of {_day(day - timedelta(days=day.weekday()))}"


def _month(day: date, months: int) -> date:
    total = day.year * 12 + day.month - 1 + months
    return date(total // 12, total % 12 + 1, 1)


def _part(match: re.Match[str], today: date) -> tuple[str, str]:
    shift, part = _PARTS[" ".join(match.group().lower().split())]
    return "in", f"the {part} of {_day(today + timedelta(days=shift))}"


def _near(match: re.Match[str], today: date) -> tuple[str, str]:
    return "on", _day(today + timedelta(days=_NEAR[" ".join(match.group().lower().split())]))


def _calendar(match: re.Match[str], today: date) -> tuple[str, str]:
    steps = {"last": -1, "this": 0, "next": 1}[match["which"].lower()]
    match match["unit"].lower():
        case "week":
            return "in", _week(today + timedelta(weeks=steps))
        case "weekend":
            saturday = today - timedelta(days=today.weekday()) + timedelta(days=5, weeks=steps)
            return "on", f"the weekend of {_day(saturday)}"
        case "month":
            return "in", f"{_month(today, steps):%B %Y}"
        case _:
            return "in", str(today.year + steps)


def _weekday(match: re.Match[str], today: date) -> tuple[str, str]:
    number = WEEKDAYS.index(match["weekday"].lower())
    if match["which"].lower() == "last":
        return "on", _day(today - timedelta(days=(today.weekday() - number) % 7 or 7))
    return "on", _day(today + timedelta(days=(number - today.weekday()) % 7 or 7))


def _counted(match: re.Match[str], today: date) -> tuple[str, str]:
    forward = not match.group().lower().endswith("ago")
    count = _NUMBERS.get(match["count"].lower()) or int(match["count"])
    steps = count if forward else -count
    match match["unit"].lower():
        case "day":
            return "on", _day(today + timedelta(days=steps))
        case "week":
            return "in", _week(today + timedelta(weeks=steps))
        case "month":
            return "in", f"{_month(today, steps):%B %Y}"
        case _:
            return "in", str(today.year + steps)


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_Resolve = Callable[[re.Match[str], date], tuple[str, str]]
# The longer first: what they take is not taken again.
_RULES: tuple[tuple[re.Pattern[str], _Resolve], ...] = (
    (_rule("|".join(words.replace(" ", r"\s+") for words in _PARTS)), _part),
    (_rule("|".join(words.replace(" ", r"\s+") for words in _NEAR)), _near),
    (_rule(rf"(?P<which>last|next)\s+{_WEEKDAY}"), _weekday),
    (_rule(r"(?P<which>last|this|next)\s+(?P<unit>weekend|week|month|year)"), _calendar),
    (_rule(rf"{_COUNT}\s+{_UNIT}\s+ago"), _counted),
    (_rule(rf"in\s+{_COUNT}\s+{_UNIT}(?!\s+of\b)"), _counted),
)
