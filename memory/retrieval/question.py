"""A query as recall understands it: its terms and words near them, its times, whether it asks for a recap."""

import gzip
import math
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

from memory.retrieval import text
from memory.retrieval.fusion import NEAR_POWER
from memory.timewords import MONTHS, find_window

# A longer query is a pasted text: its beginning says what it is about.
MOST_CHARACTERS = 2000
MOST_TERMS = 24

_WHEN = re.compile(
    r"\b(?:when|what (?:date|day|month|year|time)|how long|since when|which (?:day|month|year))\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:I|i|my|My|me|mine|I've|I'm|I'd)\b")
_RECAP = re.compile(
    r"\b(?:summari[sz]e|summary of|recap|in (?:which|what) order|everything (?:that )?(?:i|we)|all (?:that )?(?:i|we)"
    r"|an overview of|what have (?:i|we) (?:said|told|talked|been))\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
# Words of a message that place it in time.
_TIME_WORDS = (
    "yesterday today tomorrow tonight ago last next week weekend month year monday tuesday wednesday thursday friday"
    " saturday sunday morning recently since spring summer autumn fall winter day days weeks months years"
)
TIME_WORDS = frozenset(_TIME_WORDS.split()) | frozenset(MONTHS)


@dataclass(frozen=True)
class Term:
    """One thing the query asks for: ways to write it, each with what it counts (1 the word, cos³ one near it)."""

    word: str
    ways: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Day:
    """A month that the query names, perhaps with its day or year."""

    month: int
    day: int | None
    year: int | None


@dataclass(frozen=True)
class Question:
    """The parsed query."""

    text: str
    terms: tuple[Term, ...]
    words: frozenset[str]
    first_person: bool
    asks_when: bool
    recap: bool
    days: tuple[Day, ...]
    window: tuple[datetime, datetime] | None


def read(query: str, *, now: datetime, tz: ZoneInfo) -> Question:
    """Parse a query of any kind or length; what says nothing has no terms."""
    query = query[:MOST_CHARACTERS].replace("\x00", " ").strip()
    window = find_window(query, now=now, tz=tz)
    days = _named_days(query)
    return Question(
        text=query,
        terms=_terms(query),
        words=frozenset(word for word, _, _ in text.tokens(query)),
        first_person=bool(_FIRST_PERSON.search(query)),
        asks_when=bool(_WHEN.search(query)),
        recap=bool(_RECAP.search(query)),
        days=days,
        window=(window.start, window.end) if window and not days else None,
    )


def _terms(query: str) -> tuple[Term, ...]:
    language = text.language_of(query)
    found: dict[str, Term] = {}
    for word, _, _ in text.tokens(query):
        if word in text.STOP_WORDS or len(found) >= MOST_TERMS:
            continue
        own = text.stems(word, language)
        if own[0] in found:
            continue
        ways = dict.fromkeys(own, 1.0)
        for stem, cosine in near_words(word):
            ways.setdefault(stem, cosine**NEAR_POWER)
        found[own[0]] = Term(word, tuple(ways.items()))
    return tuple(found.values())


def date_credit(question: Question, moment: datetime) -> float:
    """DATE: how well a moment agrees with the time that the query names, 0 to 1."""
    best = 0.0
    for named in question.days:
        if moment.month == named.month and named.year in (None, moment.year):
            best = max(best, 0.5)
        if named.day:
            try:
                day = moment.replace(month=named.month, day=named.day, year=named.year or moment.year)
            except ValueError:  # 31 June
                continue
            best = max(best, math.exp(-abs((moment - day).days) / 4))
    if question.window is not None:
        start, end = question.window
        outside = max((start - moment).total_seconds(), (moment - end).total_seconds(), 0) / 86_400
        best = max(best, math.exp(-outside / 4))
    return best


def _named_days(query: str) -> tuple[Day, ...]:
    year = _YEAR.search(query)
    named = []
    for number, month in enumerate(MONTHS, start=1):
        # "may" is a month only with a capital inside a sentence, or beside a number.
        name = month if month != "may" else "(?-i:May)"
        match = re.search(
            rf"(?:\b(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b{name}\b(?:\s+(?P<after>\d{{1,2}})\b)?",
            query,
            re.IGNORECASE,
        )
        if match is None or (month == "may" and match.start() == 0 and not match["after"]):
            continue
        day = match["before"] or match["after"]
        named.append(Day(number, int(day) if day else None, int(year[1]) if year else None))
    return tuple(named)


def has_time(message: str) -> bool:
    """TIMEWORD: whether a message has a word or a year that places it in time."""
    return bool(_YEAR.search(message)) or any(word in TIME_WORDS for word, _, _ in text.tokens(message))


def near_words(word: str) -> tuple[tuple[str, float], ...]:
    """Stems of words near this one in the packaged embedder's space, with their cosine (0.5 to 1), nearest first."""
    line = _near_lines().get(word, "")
    return tuple((stem, int(cosine) / 100) for stem, cosine in (pair.split(":") for pair in line.split()))


@lru_cache(maxsize=1)
def _near_lines() -> dict[str, str]:
    """Made by `benchmarks/near_words.py` from the embedder's own vocabulary; read at the first query."""
    packed = (Path(__file__).parent / "data" / "near_words.txt.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    return dict(line.split(" ", 1) for line in lines)
