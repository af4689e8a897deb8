"""What a cluster of turns is called and how it sounds: its distinctive terms and its typical sentences. Pure.

Terms are weighed by class-based TF-IDF (c-TF-IDF, Grootendorst 2022): a term's share of the cluster times
log(1 + A / f), with f its weight over all clusters and A the mean weight of a cluster.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from conversations.llm import words

MOST_TERMS = 3
MOST_QUOTES = 3
TERMS_TO_QUOTE_BY = 8
LONGEST_NAME = 80
# Terms are looked for in the turns most recent of so many; more would not change a name, only the time it takes.
TURNS_READ = 400
PAIR = 1.3  # how much more "driving lesson" says than "lesson"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ADDRESS = re.compile(
    r"\b(?:https?://|www\.)\S+|\S+@\S+\.\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|app|ru|cn|info|biz)\b\S*",
    re.I,
)

Exchange = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Described:
    """A cluster's distinctive terms, best first, and of which turn and what sentence each of its quotes is."""

    terms: tuple[str, ...]
    quotes: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        return name_of(self.terms)


def describe(clusters: Sequence[Sequence[Exchange]]) -> list[Described]:
    """Each cluster by what sets it apart from the others. Exchanges are (question, answer), in order of time."""
    read = [_spread(exchanges, TURNS_READ) for exchanges in clusters]
    talk = words.study(
        [[exchanges[at] for at in places] for exchanges, places in zip(clusters, read, strict=True)]
    )
    everywhere: Counter[str] = Counter()
    for weights in talk.weights:
        everywhere.update(weights)
    mean = sum(everywhere.values()) / max(1, len(clusters))
    found = []
    for weights, exchanges, places in zip(talk.weights, clusters, read, strict=True):
        total = sum(weights.values()) or 1
        score = {
            term: weight / total * math.log(1 + mean / everywhere[term]) * (PAIR if " " in term else 1)
            for term, weight in weights.items()
            if (weight >= 2 or len(places) < 10) and "'" not in term
        }
        ranked = sorted(score, key=lambda term: (-score[term], term))
        telling = words.without_parts(ranked, TERMS_TO_QUOTE_BY)
        terms = tuple(talk.spelling[term] for term in telling[:MOST_TERMS])
        found.append(Described(terms, _quotes(exchanges, places, telling)))
    return found


def _quotes(
    exchanges: Sequence[Exchange], places: Sequence[int], telling: Sequence[str]
) -> tuple[tuple[int, str], ...]:
    """Sentences of the person from the beginning, the middle and the end of the theme."""
    third = max(1, math.ceil(len(places) / MOST_QUOTES))
    quotes = []
    for start in range(0, len(places), third):
        part = places[start : start + third]
        at, said = words.quote([exchanges[place][0] for place in part], telling)
        if said:
            quotes.append((part[at], said))
    return tuple(quotes)


def _spread(exchanges: Sequence[Exchange], most: int) -> list[int]:
    """Which exchanges are read: all, or `most` spread evenly over them."""
    if len(exchanges) <= most:
        return list(range(len(exchanges)))
    return [round(place * (len(exchanges) - 1) / (most - 1)) for place in range(most)]


def name_of(terms: Sequence[str]) -> str:
    """ "Knee, surgeon and crutches"."""
    listed = ", ".join(terms[:-1]) + f" and {terms[-1]}" if len(terms) > 1 else "".join(terms)
    return clean_name(listed[:1].upper() + listed[1:])


def clean_name(text: str) -> str:
    """A name as one plain line: no control or direction marks, no addresses, at most LONGEST_NAME characters."""
    line = " ".join(_ADDRESS.sub(" ", _CONTROL.sub(" ", text)).split())
    return line if len(line) <= LONGEST_NAME else line[:LONGEST_NAME].rsplit(" ", 1)[0] + "…"
