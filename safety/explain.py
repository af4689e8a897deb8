"""A bell in words, for the person who reviews it. Pure."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

LEVELS = {
    "hard": "Danger. The message was answered with help lines alone; no model answered it.",
    "soft": "Distress. The model answered, told to look after the person first.",
    "withheld": "A reply of the model was not shown, because of what was in it.",
}
# Columbia Suicide Severity Rating Scale, screening version: what each level of ideation means.
IDEATION = {
    1: "a wish to be dead",
    2: "thoughts of suicide",
    3: "thoughts of suicide and of how",
    4: "some intent to act",
    5: "intent, with a plan",
}
LAYERS = {
    "hard list": "“{rule}” is on the list of phrases that speak of danger.",
    "hard list, denied": "“{rule}” is on that list, but was denied in the message, so it counted for less.",
    "soft list": "“{rule}” is on the list of phrases that speak of distress.",
    "idiom": "“{rule}” is a figure of speech and counted for nothing.",
    "history": "Earlier messages of the last days raised the score.",
    "meaning": "By its meaning it is closest to: {rule}.",
    "example": "One of the nearest examples is of the kind: {rule}.",
    "second look": "A model was asked as well, and said: {rule}.",
}


def seriousness(level: str, ideation_level: int | None) -> str:
    """How serious, in a sentence or two."""
    said = LEVELS.get(level, "")
    if ideation_level in IDEATION:
        said += f" It expresses {IDEATION[ideation_level]} (level {ideation_level} of 5)."
    return said


def reasons(signals: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why it rang, one sentence for each signal, the weightiest first."""
    ordered = sorted(signals, key=lambda signal: -_weight(signal))
    return list(dict.fromkeys(_reason(signal) for signal in ordered))


def _weight(signal: Mapping[str, Any]) -> float:
    weight = signal.get("weight")
    return float(weight) if isinstance(weight, int | float) else 0.0


def _reason(signal: Mapping[str, Any]) -> str:
    layer, rule = str(signal.get("layer", "")), str(signal.get("rule", "")).replace("_", " ")
    if layer == "example":
        rule = rule.rsplit(" ", 1)[0]
    said = LAYERS.get(layer, f"{layer.capitalize()}: {{rule}}.").format(rule=rule)
    if layer not in ("history", "idiom") and _weight(signal):
        said += f" Weight {_weight(signal):.2f}."
    if signal.get("matched") == "cleaned" and "list" in layer:
        said += " It was found once the spelling was cleaned."
    return said


def waiting(time: timedelta) -> str:
    """A length of time as a person says it."""
    minutes = int(time.total_seconds() // 60)
    if minutes < 1:
        return "less than a minute"
    for size, name in ((60 * 24, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            number = minutes // size
            return f"{number} {name}" if number == 1 else f"{number} {name}s"
    raise AssertionError("unreachable")
