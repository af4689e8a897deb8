"""Time words in a question, as a window on the calendar of the person who asks. Pure."""

import calendar
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Northern seasons by whole months; winter begins in December of the year before.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
            "nine": 9, "ten": 10, "few": 3, "couple": 2}  # fmt: skip

_MONTH = (
    r"(?P<month>"
    + "|".join(name if name == "may" else f"{name}|{name[:3]}" for name in MONTHS)
    + r"|sept)\.?"
)
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(_NUMBERS) + r")(?: of)?"
_UNIT = r"(?P<unit>day|week|month|year)s?"


@dataclass(frozen=True, slots=True)
class Window:
    """The half-open window [start, end), both aware, and the words that named it."""

    start: datetime
    end: datetime
    phrase: str
    span: tuple[int, int]


def find_window(text: str, *, now: datetime, tz: ZoneInfo, loose: bool = False) -> Window | None:
    """The first window that the text names, or None. "recently" and "lately" name none.

    `loose` takes a bare "Friday" and "the weekend" for the last one, too: right in a look-up, wrong in talk.
    """
    today = now.astimezone(tz).date()
    found: list[_Found] = []
    for pattern, resolve in (*_RULES, *_LOOSE_RULES) if loose else _RULES:
        for match in pattern.finditer(text):
            days = resolve(match, today)
            if days is not None:
                found.append((match.start(), match.end(), *days))
    found += _spans(found, text) + _since(found, text, today)
    if not found:
        return None
    # The earliest, and of those the longest: "last week" before "week", "12 May 2023" before "May".
    start, end, first, after = min(found, key=lambda one: (one[0], one[0] - one[1]))
    return Window(_midnight(first, tz), _midnight(after, tz), text[start:end], (start, end))


def asks_for_the_first(text: str) -> bool:
    """Whether the earliest is wanted: "the first time", "when did I first"."""
    return bool(
        re.search(
            r"\bthe (?:very )?first time\b|\bdid (?:i|we|you) first\b|\bfirst (?:mention|talk|told)",
            text,
            re.I,
        )
    )


def _midnight(day: date, tz: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=tz).astimezone(UTC)


Days = tuple[date, date]
_Found = tuple[int, int, date, date]


def _spans(found: list[_Found], text: str) -> list[_Found]:
    """ "between" one of the found and another: from the first day of the one to the last of the other."""
    spans = []
    for start, end, first, _ in found:
        opening = re.search(r"\b(?:between|from)\s+$", text[:start], re.IGNORECASE)
        for later_start, later_end, last, after in found:
            between = text[end:later_start] if later_start > end else ""
            if opening and re.fullmatch(r"\s+(?:and|to|until|till)\s+", between, re.IGNORECASE):
                # "between 3 May and 10 May 2023", "from 20 December to 5 January": the first goes by the second.
                begins = next(
                    day for year in (last.year, last.year - 1) if (day := _in_year(first, year)) <= last
                )
                spans.append((opening.start(), later_end, begins, after))
    return spans


def _in_year(day: date, year: int) -> date:
    last_of_month = calendar.monthrange(year, day.month)[1]
    return date(year, day.month, min(day.day, last_of_month))


def _since(found: list[_Found], text: str, today: date) -> list[_Found]:
    """ "since" one of the found: from its first day until now."""
    since = []
    for start, end, first, _ in found:
        word = re.search(r"\bsince\s+$", text[:start], re.IGNORECASE)
        if word and first <= today:
            since.append((word.start(), end, first, today + timedelta(days=1)))
    return since


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def _month(year: int, number: int) -> Days:
    first = date(year, number, 1)
    return first, _add_months(first, 1)


def _add_months(first: date, months: int) -> date:
    total = first.year * 12 + first.month - 1 + months
    return date(total // 12, total % 12 + 1, 1)


def _near_day(match: re.Match[str], today: date) -> Days:
    word = match.group().lower()
    shift = {
        "today": 0,
        "tonight": 0,
        "this morning": 0,
        "yesterday": 1,
        "last night": 1,
        "the day before yesterday": 2,
    }
    first = today - timedelta(days=next(days for key, days in shift.items() if key == word))
    return first, first + timedelta(days=1)


def _calendar(match: re.Match[str], today: date) -> Days:
    back = 0 if match["which"].lower() == "this" else 1
    match match["unit"].lower():
        case "week":
            first = today - timedelta(days=today.weekday() + 7 * back)
            return first, first + timedelta(days=7)
        case "weekend":
            # "this weekend" said on a Monday is the one to come; "last weekend" the one that is over.
            first = today - timedelta(days=today.weekday() - 5 + 7 * back)
            return first, first + timedelta(days=2)
        case "month":
            first = _add_months(today.replace(day=1), -back)
            return first, _add_months(first, 1)
        case _:
            return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)


def _past_units(match: re.Match[str], today: date) -> Days:
    """The last so many days, weeks, months, years, today included."""
    count = _count(match)
    return _back(today, count, match["unit"]), today + timedelta(days=1)


def _ago(match: re.Match[str], today: date) -> Days:
    """So many units ago, with the slack people mean: a day for days, half a unit each way for longer ones."""
    count, unit = _count(match), match["unit"].lower()
    middle = _back(today, count, unit)
    slack = {"day": 0, "week": 4, "month": 16, "year": 183}[unit]
    return middle - timedelta(days=slack), min(middle + timedelta(days=slack + 1), today + timedelta(days=1))


def _count(match: re.Match[str]) -> int:
    raw = (match["count"] or "1").lower()
    return _NUMBERS.get(raw) or int(raw) if not raw.isdigit() else int(raw)


def _back(today: date, count: int, unit: str) -> date:
    match unit.lower():
        case "day":
            return today - timedelta(days=count)
        case "week":
            return today - timedelta(weeks=count)
        case "month":
            first = _add_months(today.replace(day=1), -count)
            return first + timedelta(days=min(today.day, (_add_months(first, 1) - first).days) - 1)
        case _:
            return today - timedelta(days=365 * count)


def _weekday(match: re.Match[str], today: date) -> Days:
    back = (today.weekday() - WEEKDAYS.index(match["weekday"].lower())) % 7 or 7
    first = today - timedelta(days=back)
    return first, first + timedelta(days=1)


def _named_month(match: re.Match[str], today: date) -> Days:
    number = _month_number(match["month"])
    return _month(int(match["year"]) if match["year"] else _latest_year(today, number), number)


def _latest_year(today: date, month: int) -> int:
    """The year of that month's last beginning."""
    return today.year if month <= today.month else today.year - 1


def _named_day(match: re.Match[str], today: date) -> Days | None:
    if _is_the_verb(match):
        return None
    month, day = _month_number(match["month"]), int(match["day"])
    # Without a year, the last such day there was: 29 February may be years back.
    years = [int(match["year"])] if match["year"] else range(today.year, today.year - 9, -1)
    for year in years:
        with suppress(ValueError):
            first = date(year, month, day)
            if match["year"] or first <= today:
                return first, first + timedelta(days=1)
    return None


def _is_the_verb(match: re.Match[str]) -> bool:
    """ "you may 5 times do it", "step 3 may help": "may" beside a number is not always the month."""
    if match["month"].lower() != "may" or match["year"]:
        return False
    before, after = match.string[: match.start()], match.string[match.end() :]
    if re.search(r"\b(?:i|you|we|he|she|it|they|this|that|who|one)\s+$", before, re.IGNORECASE):
        return True
    if match["month"] != "may" or re.search(
        r"\b(?:on|since|before|after|by|until|till|from|between|and|to|of|the)\s+$", before, re.IGNORECASE
    ):
        return False
    return not re.match(r"\s*(?:[?.!,;)]|$|(?:and|to|until|till)\b)", after, re.IGNORECASE)


def _days_of_one_month(match: re.Match[str], today: date) -> Days | None:
    """ "between 3 and 10 May"."""
    named = _named_day(match, today)
    if named is None:
        return None
    try:
        return named[0].replace(day=int(match["from"])), named[1]
    except ValueError:
        return None


def _last_weekend(match: re.Match[str], today: date) -> Days:
    """The one that has begun last."""
    first = today - timedelta(days=(today.weekday() - 5) % 7)
    return first, first + timedelta(days=2)


def _iso_day(match: re.Match[str], today: date) -> Days | None:
    try:
        first = date.fromisoformat(match.group())
    except ValueError:
        return None
    return first, first + timedelta(days=1)


def _season(match: re.Match[str], today: date) -> Days:
    number = SEASONS[match["season"].lower()]
    if match["year"]:
        first = date(int(match["year"]), number, 1)
    else:
        first = date(_latest_year(today, number), number, 1)
        if (match["which"] or "").lower().endswith("last") and first <= today < _add_months(first, 3):
            first = first.replace(year=first.year - 1)
    return first, _add_months(first, 3)


def _year(match: re.Match[str], today: date) -> Days:
    year = int(match["year"])
    return date(year, 1, 1), date(year + 1, 1, 1)


def _since_month(match: re.Match[str], today: date) -> Days:
    return _named_month(match, today)[0], today + timedelta(days=1)


def _between_months(match: re.Match[str], today: date) -> Days:
    last_number = _month_number(match["last"])
    last = _month(int(match["year"]) if match["year"] else _latest_year(today, last_number), last_number)
    first_number = _month_number(match["month"])
    first_year = last[0].year if first_number <= last_number else last[0].year - 1
    return _month(first_year, first_number)[0], last[1]


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_ANY_MONTH = _MONTH.replace("(?P<month>", "(?P<last>")
# "may" the verb must not be the month: it needs a word before it that makes it one.
_RULES = (
    (_rule("the day before yesterday|today|tonight|this morning|yesterday|last night"), _near_day),
    (_rule(r"(?P<which>this|last|previous)\s+(?P<unit>weekend|week|month|year)"), _calendar),
    (_rule(rf"(?:the\s+)?(?:last|past|previous)\s+{_COUNT}\s+{_UNIT}"), _past_units),
    (_rule(rf"(?:the\s+)past\s+(?P<count>)?{_UNIT}"), _past_units),
    (_rule(rf"{_COUNT}\s+{_UNIT}\s+ago"), _ago),
    (
        _rule(
            r"(?:(?:on|last|this past)\s+|(?<=since )|(?<=between )|(?<=from ))(?P<weekday>"
            + "|".join(WEEKDAYS)
            + ")"
        ),
        _weekday,
    ),
    (_rule(rf"since\s+{_MONTH}(?:\s+{_YEAR})?"), _since_month),
    (
        _rule(rf"(?:between|from)\s+{_MONTH}\s+(?:and|to|until)\s+{_ANY_MONTH}(?:\s+{_YEAR})?"),
        _between_months,
    ),
    (
        _rule(rf"(?:in|during|of|all|last|back in|early in|late in|all of)\s+{_MONTH}(?:,?\s+{_YEAR})?"),
        _named_month,
    ),
    (_rule(rf"{_MONTH},?\s+{_YEAR}"), _named_month),
    (
        _rule(
            r"(?:between|from)\s+(?:the\s+)?(?P<from>[0-3]?\d)(?:st|nd|rd|th)?\s+(?:and|to|until|till)\s+(?:the\s+)?"
            rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"
        ),
        _days_of_one_month,
    ),
    (_rule(rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"), _named_day),
    (_rule(rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?"), _named_day),
    (_rule(r"(?:19|20)\d\d-\d\d-\d\d"), _iso_day),
    (
        _rule(
            r"(?P<which>in|this|last|during|all|over the|in the|the whole|during the|all of last)\s+"
            rf"(?P<season>spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?{_YEAR})?"
        ),
        _season,
    ),
    (_rule(rf"(?:in|during|of|all of)\s+{_YEAR}"), _year),
)
_LOOSE_RULES = (
    (_rule(r"(?:(?:over|at|on|during)\s+)?the\s+weekend"), _last_weekend),
    (_rule("(?P<weekday>" + "|".join(WEEKDAYS) + ")"), _weekday),
)
