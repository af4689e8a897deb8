"""Layer 1: what a message asks of us. Pure: text and past risk in, a screening out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from safety.lexicon import DATA, LexiconError, Match, lexicon, read_toml
from safety.normalise import clean

DETECTOR_VERSION = "lists-1"
SOFT_REASON = "wellbeing check needed"
Embed = Callable[[Sequence[str]], Any]

# Words after which a trigger word is denied; looked for in the few words before it.
_DENIALS = ("not", "n't", "never", "no longer", "without", "isn't", "nor")
_DENIAL_REACH = 24  # characters
_IDEATION_LEVELS = {
    "active_ideation": 2,
    "self_harm": 2,
    "means": 3,
    "plan": 4,
    "goodbye": 4,
    "overdose": 5,
    "attempt": 5,
}


class Action(StrEnum):
    """The only three answers there are; anything else is safe mode."""

    HARD_BELL = "hard_bell"
    SOFT_BELL = "soft_bell"
    PASS = "pass"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that was found: by which layer and rule, where in the matched text, and what it weighed."""

    layer: str
    rule: str
    span: tuple[int, int] | None
    weight: float
    matched: str  # "raw" or "cleaned"


@dataclass(frozen=True, slots=True)
class Screening:
    """The verdict on one message.

    `risk` (0–1) is what it leaves behind for the next: hand it back, decayed by time, as `past_risk`.
    `ideation_level` follows the C-SSRS (1 passive wish … 5 intent with a plan), or is None.
    """

    action: Action
    reason: str
    score: float
    risk: float
    ideation_level: int | None
    kind: str | None
    signals: tuple[Signal, ...]
    detector_version: str
    degraded: bool


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers of `screening.toml`, each between 0 and 1."""

    soft: float
    hard: float
    ambiguous_from: float
    history_share: float


@lru_cache(maxsize=1)
def thresholds() -> Thresholds:
    """Read once. Raises LexiconError naming the file."""
    content, _ = read_toml(DATA / "screening.toml")
    try:
        found = Thresholds(
            soft=float(content["thresholds"]["soft"]),
            hard=float(content["thresholds"]["hard"]),
            ambiguous_from=float(content["history"]["ambiguous_from"]),
            history_share=float(content["history"]["share"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LexiconError(f"screening.toml: {error} is missing or not a number") from error
    if not 0 < found.soft < found.hard <= 1:
        raise LexiconError("screening.toml: the soft threshold must lie between 0 and the hard one")
    return found


def screen(text: str, *, past_risk: float = 0.0, embed: Embed | None = None) -> Screening:
    """Screen one message by the phrase lists, on the text as typed and as cleaned.

    Raises nothing but what a broken data file raises. `embed` is taken for the detectors by meaning; without
    it the lists decide alone and the screening says so.
    """
    cleaned = clean(text, trigger_words=lexicon().trigger_words)
    signals: list[Signal] = []
    hard, softened = _hard(cleaned, text, signals)
    soft_score = _soft(cleaned, text, softened, signals)
    limits = thresholds()
    if hard is not None:
        return Screening(
            Action.HARD_BELL,
            hard.entry.reason,
            1.0,
            1.0,
            _IDEATION_LEVELS.get(hard.entry.group),
            hard.entry.group,
            tuple(signals),
            DETECTOR_VERSION,
            degraded=embed is None,
        )
    score = soft_score
    if score >= limits.ambiguous_from and past_risk > 0:
        score = min(1.0, score + limits.history_share * past_risk)
        signals.append(
            Signal("history", "past risk", None, round(limits.history_share * past_risk, 3), "cleaned")
        )
    rung = score >= limits.soft
    return Screening(
        Action.SOFT_BELL if rung else Action.PASS,
        SOFT_REASON if rung else "",
        round(score, 4),
        # Half of a soft score: distress is not danger, and only danger should colour the days after it.
        max(min(past_risk, 1.0), score / 2),
        1 if softened else None,
        "distress" if rung else None,
        tuple(signals),
        DETECTOR_VERSION,
        degraded=embed is None,
    )


def _hard(cleaned: str, raw: str, signals: list[Signal]) -> tuple[Match | None, list[Match]]:
    """The gravest hard match, and those that a denial turned soft."""
    idioms = list(lexicon().idioms.find(cleaned))
    gravest: Match | None = None
    softened: list[Match] = []
    for match in lexicon().hard.find(cleaned):
        idiom = _inside(match, idioms)
        if idiom is not None:
            signals.append(_signal("idiom", idiom, 0.0, raw))
            continue
        if match.entry.negatable and _denied(cleaned, match.start):
            softened.append(match)
            signals.append(_signal("hard list, denied", match, 0.5, raw))
            continue
        signals.append(_signal("hard list", match, match.entry.weight, raw))
        if gravest is None or _gravity(match) > _gravity(gravest):
            gravest = match
    return gravest, softened


def _gravity(match: Match) -> tuple[int, int]:
    return _IDEATION_LEVELS.get(match.entry.group, 3), match.end - match.start


def _soft(cleaned: str, raw: str, softened: list[Match], signals: list[Signal]) -> float:
    """1 − ∏(1 − weight) over distinct soft entries; denied hard ones count as half."""
    idioms = list(lexicon().idioms.find(cleaned))
    remaining = 0.5 ** min(len(softened), 3)
    seen: set[str] = set()
    longest: list[Match] = sorted(lexicon().soft.find(cleaned), key=lambda match: match.start - match.end)
    counted: list[Match] = []
    for match in longest:
        if match.entry.phrase in seen or _inside(match, counted) or _denied(cleaned, match.start):
            continue
        idiom = _inside(match, idioms)
        if idiom is not None:
            signals.append(_signal("idiom", idiom, 0.0, raw))
            continue
        seen.add(match.entry.phrase)
        counted.append(match)
        signals.append(_signal("soft list", match, match.entry.weight, raw))
        remaining *= 1 - match.entry.weight
    return 1 - remaining


def _inside(match: Match, others: list[Match]) -> Match | None:
    return next((other for other in others if other.start <= match.start and match.end <= other.end), None)


def _denied(cleaned: str, start: int) -> bool:
    before = cleaned[max(0, start - _DENIAL_REACH) : start].split()[-3:]
    return any(word in _DENIALS or word.endswith("n't") for word in before)


def _signal(layer: str, match: Match, weight: float, raw: str) -> Signal:
    as_typed = raw[match.start : match.end].lower() == match.entry.phrase
    return Signal(
        layer, match.entry.phrase, (match.start, match.end), weight, "raw" if as_typed else "cleaned"
    )
