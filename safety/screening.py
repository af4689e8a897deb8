"""Layer 1: what a message asks of us. Pure: text and past risk in, a screening out."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np

from safety.features import rule_bits, speaks_of_danger
from safety.lexicon import DATA, LexiconError, Match, lexicon, read_toml
from safety.normalise import clean
from safety.semantic import HARD_KINDS, KINDS, SOFT_KINDS, Reading, weights, windows
from safety.wording import plain_wording

logger = logging.getLogger(__name__)

LISTS_VERSION = "lists-1"
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
    `ideation_level` follows the C-SSRS (1 passive wish … 5 intent with a plan), or is None. `uncertain`: a second look
    could change it.
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
    uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers of `screening.toml`, each between 0 and 1."""

    soft: float
    hard: float
    hard_without_rule: float
    soft_by_lists: float
    floor_from: float
    ambiguous_from: float
    history_share: float
    unsure_hard: float
    unsure_soft: tuple[float, float]


@lru_cache(maxsize=1)
def thresholds() -> Thresholds:
    """Read once. Raises LexiconError naming the file."""
    content, _ = read_toml(DATA / "screening.toml")
    try:
        found = Thresholds(
            soft=float(content["thresholds"]["soft"]),
            hard=float(content["thresholds"]["hard"]),
            hard_without_rule=float(content["thresholds"]["hard_without_rule"]),
            soft_by_lists=float(content["thresholds"]["soft_by_lists"]),
            floor_from=float(content["thresholds"]["floor_from"]),
            ambiguous_from=float(content["history"]["ambiguous_from"]),
            history_share=float(content["history"]["share"]),
            unsure_hard=float(content["second_look"]["hard_from"]),
            unsure_soft=(
                float(content["second_look"]["soft_from"]),
                float(content["second_look"]["soft_to"]),
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LexiconError(f"screening.toml: {error} is missing or not a number") from error
    if not 0 < found.soft < found.hard <= 1:
        raise LexiconError("screening.toml: the soft threshold must lie between 0 and the hard one")
    return found


def detector_version() -> str:
    """What screens while the embedder works: the lists and the weights of the classifier."""
    return f"{LISTS_VERSION}+{weights().version}"


def screen(text: str, *, past_risk: float = 0.0, embed: Embed | None = None, lists: bool = True) -> Screening:
    """Screen one message: by the phrase lists on the text as typed and as cleaned, and by meaning.

    Raises nothing but what a broken data file raises. Without an embedder, or with one that fails, the lists decide
    alone and the screening is marked as degraded. `lists=False` is for measuring: meaning without its floor.
    """
    cleaned = clean(text, trigger_words=lexicon().trigger_words)
    signals: list[Signal] = []
    idioms = list(lexicon().idioms.find(cleaned))
    listed, softened = _hard(cleaned, text, idioms, signals)
    soft_score = _soft(cleaned, text, idioms, softened, signals)
    reading = _by_meaning(cleaned, embed, signals)
    version = detector_version() if reading else LISTS_VERSION
    if lists and listed is not None and (reading is None or listed.entry.floor):
        group, reason = listed.entry.group, listed.entry.reason
        return _hard_bell(group, reason, 1.0, signals, version, degraded=reading is None)
    hard, either = (reading.hard, reading.any) if reading else (0.0, soft_score)
    limits = thresholds()
    added = limits.history_share * min(past_risk, 1.0) if either >= limits.ambiguous_from else 0.0
    if added > 0:
        # What is unclear by itself is heard with what came before.
        signals.append(Signal("history", "past risk", None, round(added, 3), "cleaned"))
    kind: str | None = "distress" if soft_score else None
    if reading is not None:
        kind = _likeliest(reading.shares)
    if reading is not None and hard + added >= limits.hard and _speaks_of_danger(cleaned, hard, limits):
        gravest = _likeliest(reading.shares, HARD_KINDS)
        return _hard_bell(
            gravest, hard_reason(gravest), min(1.0, hard + added), signals, version, degraded=False
        )
    unsure = reading is not None and (
        hard + added >= limits.unsure_hard or limits.unsure_soft[0] <= either + added < limits.unsure_soft[1]
    )
    rung = either + added >= (limits.soft if reading else limits.soft_by_lists)
    plain_distress = soft_score >= limits.soft_by_lists and _of_oneself(cleaned)
    if lists and not rung and plain_distress and either >= limits.floor_from:
        # The floor: plain words of distress about oneself ring, unless the classifier is sure that they mean none.
        rung, either, kind = True, soft_score, "distress"
    return Screening(
        Action.SOFT_BELL if rung else Action.PASS,
        SOFT_REASON if rung else "",
        round(min(1.0, either + added), 4),
        # Half of distress: it is not danger, and only danger should colour the days after it.
        max(min(past_risk, 1.0), hard, either / 2),
        _level(kind, softened) if rung else None,
        kind if rung else None,
        tuple(signals),
        version,
        degraded=reading is None,
        uncertain=unsure,
    )


def _hard_bell(
    kind: str, reason: str, score: float, signals: list[Signal], version: str, *, degraded: bool
) -> Screening:
    level = _IDEATION_LEVELS.get(kind)
    return Screening(
        Action.HARD_BELL, reason, round(score, 4), 1.0, level, kind, tuple(signals), version, degraded
    )


def _by_meaning(cleaned: str, embed: Embed | None, signals: list[Signal]) -> Reading | None:
    """The classifier's reading, or None without a working embedder."""
    if embed is None:
        return None
    parts = windows(plain_wording(cleaned))
    try:
        vectors = list(np.asarray(embed([part or "?" for part in parts]), dtype=np.float32))
        reading = weights().read_all(vectors, [rule_bits(part) for part in parts])
    except LexiconError:
        raise
    except Exception:  # any failure of any embedder leaves the lists, and says so
        logger.exception("the embedder failed; the phrase lists screen alone")
        return None
    kind = _likeliest(reading.shares, KINDS)
    signals.append(Signal("meaning", kind, None, round(reading.any, 3), "cleaned"))
    signals.extend(
        Signal("example", f"{example.kind} {example.id}", None, example.likeness, "cleaned")
        for example in reading.nearest
    )
    return reading


def _speaks_of_danger(cleaned: str, hard: float, limits: Thresholds) -> bool:
    """Whether any rule supports what the classifier hears as danger; without one it must be surer to ring hard.

    It hears some warm, everyday messages as threats or goodbyes. They ring soft, and are answered.
    """
    if hard >= limits.hard_without_rule:
        return True
    return any(speaks_of_danger(part) for part in windows(plain_wording(cleaned)))


def _likeliest(shares: Mapping[str, float], among: Sequence[str] = (*HARD_KINDS, *SOFT_KINDS)) -> str:
    return max(among, key=lambda kind: shares[kind])


def hard_reason(kind: str) -> str:
    """Why a kind of danger rings, in words."""
    return next((entry.reason for entry in lexicon().hard.entries if entry.group == kind), "danger to life")


def ideation_of(kind: str) -> int | None:
    """The C-SSRS level that a kind of danger stands for."""
    return _IDEATION_LEVELS.get(kind)


def _level(kind: str | None, softened: list[Match]) -> int | None:
    if kind in _IDEATION_LEVELS:
        return _IDEATION_LEVELS[kind]
    return 1 if softened or kind == "passive_ideation" else None


def _hard(
    cleaned: str, raw: str, idioms: list[Match], signals: list[Signal]
) -> tuple[Match | None, list[Match]]:
    """The gravest hard match, and those that a denial turned soft."""
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


def _soft(cleaned: str, raw: str, idioms: list[Match], softened: list[Match], signals: list[Signal]) -> float:
    """1 − ∏(1 − weight) over distinct soft entries; denied hard ones count as half."""
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


_ONESELF = re.compile(r"\b(?:i|i'm|im|i've|ive|i'll|me|my|myself)\b")
_FEW_WORDS = 4  # "nobody understands", "so overwhelmed": said of oneself without saying so


def _of_oneself(cleaned: str) -> bool:
    return bool(_ONESELF.search(cleaned)) or len(cleaned.split()) <= _FEW_WORDS


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
