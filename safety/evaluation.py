"""Measuring the screen on labelled messages, disguised ones and dialogues: counts, shares and Wilson intervals."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

from safety.screening import Action, Screening

Screen = Callable[..., Screening]

LABELS = {Action.HARD_BELL: "hard", Action.SOFT_BELL: "soft", Action.PASS: "pass"}
# Harmless messages with a trigger word in them, by the sets' own kinds.
TRIGGER_KINDS = ("trigger", "sensitive", "mental_health", "lyrics", "past_recovered")
PREVALENCE = 0.005  # of dangerous messages, for the precision to expect in use
_RANK = {"pass": 0, "soft": 1, "hard": 2}


class EvaluationError(Exception):
    """A file is not in one of the three formats; the sentence says where."""


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `total`, with the 95 % interval by Wilson."""

    hits: int
    total: int

    @property
    def value(self) -> float | None:
        return self.hits / self.total if self.total else None

    def interval(self) -> tuple[float, float] | None:
        if not self.total:
            return None
        share, z = self.hits / self.total, 1.96
        middle = share + z * z / (2 * self.total)
        reach = z * sqrt(share * (1 - share) / self.total + z * z / (4 * self.total**2))
        below = 1 + z * z / self.total
        return max(0.0, (middle - reach) / below), min(1.0, (middle + reach) / below)


@dataclass(slots=True)
class Loaded:
    """What the files hold: messages, disguised messages and dialogues, told apart by their fields."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    evasions: list[dict[str, Any]] = field(default_factory=list)
    dialogues: list[dict[str, Any]] = field(default_factory=list)


def read_files(paths: Iterable[Path]) -> Loaded:
    """Read JSON arrays or JSON lines. Raises EvaluationError."""
    loaded = Loaded()
    for path in paths:
        for row in _rows(path):
            if not isinstance(row, dict) or "label" not in row or not ("turns" in row or "text" in row):
                raise EvaluationError(f"{path.name}: a row without label, or without text or turns")
            row.setdefault("accept", [row["label"]])
            kept = (
                loaded.dialogues
                if "turns" in row
                else loaded.evasions
                if "base_id" in row
                else loaded.messages
            )
            kept.append(row)
    return loaded


def _rows(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{path.name}: {error}") from error


def evaluate(loaded: Loaded, screen: Screen) -> dict[str, Any]:
    """All figures for one way of screening: `screen(text, past_risk=…)`. No text is in what comes back."""
    seconds: list[float] = []

    def heard(text: str, past_risk: float = 0.0) -> Screening:
        start = time.perf_counter()
        screening = screen(text, past_risk=past_risk)
        seconds.append(time.perf_counter() - start)
        return screening

    verdicts = [(row, LABELS[heard(row["text"]).action]) for row in loaded.messages]
    disguised = [(row, LABELS[heard(row["text"]).action]) for row in loaded.evasions]
    dialogues = [_dialogue(row, heard) for row in loaded.dialogues]
    return {
        **{name: _report(share) for name, share in _headline(verdicts).items()},
        "precision_at_half_percent": _precision(verdicts),
        "by_action": {label: _actions(verdicts, label) for label in ("hard", "soft", "pass")},
        "by_source": _grouped(verdicts, "source"),
        "by_kind": _grouped(verdicts, "kind"),
        "evasion_any_bell": _report(_share(disguised, lambda row, got: got != "pass")),
        "evasion_by_kind": {
            kind: _report(_share(rows, lambda row, got: got != "pass"))
            for kind, rows in _by(disguised, "kind").items()
        },
        "dialogues_accepted": _report(Share(sum(one["accepted"] for one in dialogues), len(dialogues))),
        "dialogues_hard": _report(
            Share(
                sum(one["any_bell"] for one in dialogues if one["label"] == "hard"),
                sum(one["label"] == "hard" for one in dialogues),
            )
        ),
        "latency_ms": _latency(seconds),
    }


def _dialogue(row: dict[str, Any], heard: Callable[..., Screening]) -> dict[str, Any]:
    """Screen the person's turns in order, risk carried on; the outcome is the gravest bell."""
    risk, gravest, last = 0.0, "pass", "pass"
    for turn in row["turns"]:
        if turn.get("role", "user") != "user":
            continue
        screening = heard(turn["text"], risk)
        risk, last = screening.risk, LABELS[screening.action]
        gravest = max(gravest, last, key=lambda label: _RANK[label])
    return {"label": row["label"], "accepted": gravest in row["accept"], "any_bell": gravest != "pass"}


Verdicts = Sequence[tuple[dict[str, Any], str]]


def _headline(verdicts: Verdicts) -> dict[str, Share]:
    hard = [one for one in verdicts if one[0]["label"] == "hard"]
    strict = [one for one in hard if one[0]["accept"] == ["hard"]]
    harmless = [one for one in verdicts if one[0]["label"] == "pass"]
    trigger = [one for one in harmless if str(one[0].get("kind", "")).startswith(TRIGGER_KINDS)]
    soft = [one for one in verdicts if one[0]["label"] == "soft"]
    return {
        "any_bell_on_hard": _share(hard, lambda row, got: got != "pass" or "pass" in row["accept"]),
        "hard_on_strict_hard": _share(strict, lambda row, got: got == "hard"),
        "pass_to_hard": _share(harmless, lambda row, got: got == "hard" and "hard" not in row["accept"]),
        "trigger_pass_to_hard": _share(
            trigger, lambda row, got: got == "hard" and "hard" not in row["accept"]
        ),
        "pass_to_any": _share(harmless, lambda row, got: got not in row["accept"]),
        "any_bell_on_soft": _share(soft, lambda row, got: got in row["accept"] or got != "pass"),
        "accepted": _share(verdicts, lambda row, got: got in row["accept"]),
    }


def _share(verdicts: Verdicts, hit: Callable[[dict[str, Any], str], bool]) -> Share:
    return Share(sum(hit(row, got) for row, got in verdicts), len(verdicts))


def _report(share: Share) -> dict[str, Any]:
    interval = share.interval()
    return {
        "value": None if share.value is None else round(share.value, 4),
        "hits": share.hits,
        "total": share.total,
        "interval": None if interval is None else [round(bound, 4) for bound in interval],
    }


def _precision(verdicts: Verdicts) -> dict[str, float | None]:
    """Of bells that ring, how many are for danger, if one message in 200 is dangerous."""
    figures = _headline(verdicts)
    found: dict[str, float | None] = {}
    hard_rung = _share([one for one in verdicts if one[0]["label"] == "hard"], lambda row, got: got == "hard")
    for name, true, false in (
        ("hard_bell", hard_rung.value, figures["pass_to_hard"].value),
        ("any_bell", figures["any_bell_on_hard"].value, figures["pass_to_any"].value),
    ):
        if true is None or false is None:
            found[name] = None
            continue
        rung = PREVALENCE * true + (1 - PREVALENCE) * false
        found[name] = round(PREVALENCE * true / rung, 4) if rung else None
    return found


def _actions(verdicts: Verdicts, label: str) -> dict[str, int]:
    counts = {"hard": 0, "soft": 0, "pass": 0}
    for row, got in verdicts:
        if row["label"] == label:
            counts[got] += 1
    return counts


def _by(verdicts: Verdicts, key: str) -> dict[str, list[tuple[dict[str, Any], str]]]:
    groups: dict[str, list[tuple[dict[str, Any], str]]] = defaultdict(list)
    for row, got in verdicts:
        groups[str(row.get(key, ""))].append((row, got))
    return dict(sorted(groups.items()))


def _grouped(verdicts: Verdicts, key: str) -> dict[str, Any]:
    return {
        name: {
            "messages": len(rows),
            **{part: _report(share) for part, share in _headline(rows).items() if share.total},
        }
        for name, rows in _by(verdicts, key).items()
    }


def _latency(seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {}
    ordered = sorted(seconds)
    return {
        "p50": round(ordered[len(ordered) // 2] * 1000, 2),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] * 1000, 2),
        "max": round(ordered[-1] * 1000, 2),
    }
