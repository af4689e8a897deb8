"""Phrase lists: read from TOML, checked whole, compiled once. A list is never silently skipped."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import ahocorasick

DATA = Path(__file__).resolve().parent / "data"
LISTS = ("hard.toml", "soft.toml", "idioms.toml")
GAP = "…"
_GAP_PATTERN = r"(?:\s+[\w']+){0,3}\s+"
MOST_PHRASE_LENGTH = 120


class LexiconError(Exception):
    """A data file cannot be used; the sentence names the file and, where there is one, the line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One phrase of a list, as matched: lower case, straight quotes.

    `floor`: it rings by itself. One that stands under `heard` rings something harmless in measurement, too: it
    decides only while nothing reads the meaning.
    """

    phrase: str
    group: str
    weight: float
    reason: str
    negatable: bool
    floor: bool


@dataclass(frozen=True, slots=True)
class Match:
    """Where an entry stands in a text, half-open."""

    entry: Entry
    start: int
    end: int


class PhraseList:
    """One compiled list: Aho-Corasick for plain phrases, a bounded pattern for each with a gap."""

    def __init__(self, name: str, entries: list[Entry]) -> None:
        self.name = name
        self.entries = entries
        self._automaton = ahocorasick.Automaton()
        self._gapped: list[tuple[re.Pattern[str], str, Entry]] = []
        for entry in entries:
            if GAP in entry.phrase:
                parts = [re.escape(part.strip()) for part in entry.phrase.split(GAP)]
                pattern = re.compile(r"(?<!\w)" + _GAP_PATTERN.join(parts) + r"(?!\w)")
                self._gapped.append((pattern, entry.phrase.split(GAP)[0].strip(), entry))
            else:
                self._automaton.add_word(entry.phrase, entry)
        if len(self._automaton):
            self._automaton.make_automaton()

    def find(self, text: str) -> Iterator[Match]:
        """Every entry in the cleaned text, at word boundaries."""
        if len(self._automaton):
            for last, entry in self._automaton.iter(text):
                start, end = last + 1 - len(entry.phrase), last + 1
                if _bounded(text, start, end):
                    yield Match(entry, start, end)
        for pattern, first, entry in self._gapped:
            if first in text:
                for found in pattern.finditer(text):
                    yield Match(entry, found.start(), found.end())


def _bounded(text: str, start: int, end: int) -> bool:
    before = start == 0 or not (text[start - 1].isalnum() and text[start].isalnum())
    after = end == len(text) or not (text[end].isalnum() and text[end - 1].isalnum())
    return before and after


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All lists, and the words that a disguise is undone towards."""

    hard: PhraseList
    soft: PhraseList
    idioms: PhraseList
    trigger_words: frozenset[str]


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The lists of `safety/data`, compiled once. Raises LexiconError."""
    return load(DATA)


def load(folder: Path) -> Lexicon:
    """Read, check and compile the lists of a folder. Raises LexiconError naming file and line."""
    hard, soft, idioms = (PhraseList(name.removesuffix(".toml"), read_list(folder / name)) for name in LISTS)
    words = {
        word for entry in (*hard.entries, *soft.entries) for word in re.findall(r"[a-z]{3,}", entry.phrase)
    }
    return Lexicon(hard, soft, idioms, frozenset(words))


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """A data file's content and its text. Raises LexiconError for one that is missing, not UTF-8, not TOML, empty."""
    try:
        text = path.read_bytes().decode("utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise LexiconError(f"{path.name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LexiconError(f"{path.name}, line {line}: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        end = "" if "line" in str(error) else f", line {len(text.splitlines()) or 1}"
        raise LexiconError(f"{path.name}{end}: {error}") from error
    if not content:
        raise LexiconError(f"{path.name}, line 1: the file is empty")
    return content, text


def read_list(path: Path) -> list[Entry]:
    content, text = read_toml(path)
    entries: list[Entry] = []
    seen: dict[str, str] = {}
    for group, table in content.items():
        where = f"{path.name}, line {_line_of(text, f'[{group}]')}"
        if not isinstance(table, dict):
            raise LexiconError(f"{path.name}, line {_line_of(text, group)}: {group} must be a table")
        unknown = set(table) - {"phrases", "weight", "reason", "negatable", "heard"}
        if unknown:
            key = sorted(unknown)[0]
            raise LexiconError(f"{path.name}, line {_line_of(text, key)}: {key} is not a known key")
        phrases, heard = table.get("phrases"), table.get("heard", [])
        weight = table.get("weight", 1.0)
        if not isinstance(phrases, list) or not phrases:
            raise LexiconError(f"{where}: [{group}] has no phrases")
        if not isinstance(heard, list):
            raise LexiconError(f"{where}: heard of [{group}] must be a list of phrases")
        if not isinstance(weight, int | float) or not 0 < weight <= 1:
            raise LexiconError(f"{where}: the weight of [{group}] must be above 0 and at most 1")
        for place, phrase in enumerate([*phrases, *heard]):
            floor = place < len(phrases)
            entries.append(_entry(path, text, group, table, phrase, float(weight), floor=floor))
            if phrase in seen:
                raise LexiconError(
                    f"{path.name}, line {_line_of(text, phrase, last=True)}: {phrase!r} stands twice"
                )
            seen[phrase] = group
    return entries


def _entry(
    path: Path, text: str, group: str, table: dict[str, Any], phrase: Any, weight: float, *, floor: bool
) -> Entry:
    if not isinstance(phrase, str) or not phrase.strip() or len(phrase) > MOST_PHRASE_LENGTH:
        raise LexiconError(
            f"{path.name}, line {_line_of(text, f'[{group}]')}: a phrase of [{group}] is not usable"
        )
    if phrase != phrase.lower() or phrase != phrase.strip():
        raise LexiconError(
            f"{path.name}, line {_line_of(text, phrase)}: {phrase!r} must be lower case, without blanks around"
        )
    reason, negatable = str(table.get("reason", "")), bool(table.get("negatable", False))
    return Entry(phrase, group, weight, reason, negatable, floor)


def _line_of(text: str, needle: str, *, last: bool = False) -> int:
    position = text.rfind(needle) if last else text.find(needle)
    return text.count("\n", 0, max(position, 0)) + 1
