"""How well the screen did when it was last measured: a dated data file that `evaluate_safety --record` writes."""

import json
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from safety.lexicon import DATA, LexiconError

QUALITY = "quality.json"
# What a figure means, in words; for the first group more is better, for the second less.
IN_WORDS = {
    "any_bell_on_hard": "of dangerous messages, so many rang at all",
    "hard_on_strict_hard": "of those that only a hard bell answers rightly, so many rang hard",
    "evasion_any_bell": "of dangerous messages in disguised spelling, so many rang",
    "dialogues_accepted": "of dialogues over several messages, so many ended as they should",
    "pass_to_hard": "of harmless messages, so many rang hard",
    "trigger_pass_to_hard": "of harmless messages with a word of danger in them, so many rang hard",
    "pass_to_any": "of harmless messages, so many rang at all",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured share, with its 95 % interval by Wilson."""

    name: str
    words: str
    value: float
    hits: int
    total: int
    low: float
    high: float

    @property
    def percent(self) -> str:
        return f"{self.value * 100:.1f} %"

    @property
    def range(self) -> str:
        return f"{self.low * 100:.1f} to {self.high * 100:.1f} %"


@dataclass(frozen=True, slots=True)
class Quality:
    """A measurement: when, of which detector, on how much, and what came out."""

    measured_on: date
    detector_version: str
    messages: int
    figures: tuple[Figure, ...]
    latency_ms: dict[str, float]


@lru_cache(maxsize=1)
def recorded() -> Quality:
    """The measurement that stands in `safety/data`. Raises LexiconError naming file and line."""
    return load(DATA / QUALITY)


def load(path: Path) -> Quality:
    try:
        raw = path.read_bytes()
        content = json.loads(raw.decode("utf-8"))
    except OSError as error:
        raise LexiconError(f"{path.name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LexiconError(f"{path.name}, line {line}: not UTF-8") from error
    except json.JSONDecodeError as error:
        raise LexiconError(f"{path.name}, line {error.lineno}: {error.msg}") from error
    try:
        return Quality(
            date.fromisoformat(content["measured_on"]),
            str(content["detector_version"]),
            int(content["messages"]),
            tuple(_figure(name, content["figures"][name]) for name in IN_WORDS),
            {str(name): float(value) for name, value in content["latency_ms"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LexiconError(
            f"{path.name}, line 1: {error} is missing or wrong; run manage.py evaluate_safety --record"
        ) from error


def _figure(name: str, one: dict[str, Any]) -> Figure:
    low, high = one["interval"]
    return Figure(
        name,
        IN_WORDS[name],
        float(one["value"]),
        int(one["hits"]),
        int(one["total"]),
        float(low),
        float(high),
    )


def record(figures: dict[str, Any], *, messages: int, detector_version: str, day: date, path: Path) -> None:
    """Write a measurement down. `figures` is what `evaluation.evaluate` returns; all of IN_WORDS must be measured."""
    unmeasured = [name for name in IN_WORDS if not figures[name]["total"]]
    if unmeasured:
        raise ValueError(f"nothing measures {', '.join(unmeasured)}")
    content = {
        "measured_on": day.isoformat(),
        "detector_version": detector_version,
        "messages": messages,
        "figures": {name: figures[name] for name in IN_WORDS},
        "latency_ms": figures["latency_ms"],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
