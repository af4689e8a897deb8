"""A bell in words, for the person who reviews it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
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
# The kinds of the classifier, as a steward reads them.
KINDS = {
    "plan": "a plan to end one's life",
    "means": "means to end one's life at hand",
    "goodbye": "a goodbye for good",
    "attempt": "a recent attempt",
    "overdose": "an overdose",
    "threat": "a threat to others",
    "active_ideation": "a wish to kill oneself",
    "self_harm": "self-harm",
    "passive_ideation": "a wish not to be there",
    "friend": "worry about somebody else's life",
    "distress": "distress",
    "illness": "living with an illness of the mind",
    "past": "something long past",
    "fiction": "fiction",
    "lyrics": "a song or a quote",
    "academic": "study or news",
    "idiom": "a figure of speech",
    "technical": "technical talk",
    "hyperbole": "an exaggeration",
    "calm_mental_health": "calm talk about health",
    "chat": "everyday talk",
    "twins": "everyday words that only sound alike",
}
LAYERS = {
    "hard list": "“{rule}” is on the list of phrases that speak of danger.",
    "hard list, denied": "“{rule}” is on that list, but was denied in the message, so it counted for less.",
    "soft list": "“{rule}” is on the list of phrases that speak of distress.",
    "idiom": "“{rule}” is a figure of speech and counted for nothing.",
    "history": "Earlier messages of the last days raised the score.",
    "meaning": "By its meaning it is closest to {rule}.",
    "example": "One of the nearest examples that the detector learnt from speaks of {rule}.",
    "second look": "A language model was asked as well, and heard {rule}.",
}


def seriousness(level: str, ideation_level: int | None) -> str:
    """How serious, in a sentence or two."""
    said = LEVELS.get(level, "")
    if ideation_level in IDEATION:
        said += f" It expresses {IDEATION[ideation_level]} (level {ideation_level} of 5)."
    return said


def reasons(signals: Iterable[Mapping[str, Any]], sentences: Mapping[str, str] | None = None) -> list[str]:
    """Why it rang, one sentence for each signal: lists first, then meaning, then examples, each the weightiest first.

    `sentences` are the examples by their ids, which are then quoted.
    """
    ordered = sorted(signals, key=lambda signal: (_LATE.get(str(signal.get("layer")), 0), -_weight(signal)))
    return list(dict.fromkeys(_reason(signal, sentences or {}) for signal in ordered))


_LATE = {"meaning": 1, "second look": 2, "history": 3, "example": 4}


def marked(summary: str, signals: Iterable[Mapping[str, Any]]) -> list[tuple[str, bool]]:
    """The kept words in pieces, each with whether a list matched it as it was typed."""
    spans = sorted(
        (start, min(end, len(summary)))
        for signal in signals
        if signal.get("matched") == "raw" and _is_span(signal.get("span"))
        for start, end in [signal["span"]]
        if start < len(summary)
    )
    pieces: list[tuple[str, bool]] = []
    at = 0
    for start, end in spans:
        if end > at:
            pieces += [(summary[at : max(start, at)], False), (summary[max(start, at) : end], True)]
            at = end
    pieces.append((summary[at:], False))
    return [piece for piece in pieces if piece[0]]


def _is_span(span: Any) -> bool:
    return (
        isinstance(span, Sequence) and len(span) == 2 and all(isinstance(at, int) and at >= 0 for at in span)
    )


def _weight(signal: Mapping[str, Any]) -> float:
    weight = signal.get("weight")
    return float(weight) if isinstance(weight, int | float) else 0.0


def _reason(signal: Mapping[str, Any], sentences: Mapping[str, str]) -> str:
    layer, rule = str(signal.get("layer", "")), str(signal.get("rule", ""))
    kind, _, example = rule.partition(" ") if layer == "example" else (rule, "", "")
    said = LAYERS.get(layer, f"{layer.capitalize()}: {{rule}}.").format(
        rule=KINDS.get(kind, rule.replace("_", " "))
    )
    if layer == "example":
        if example in sentences:
            said += f" It reads: “{sentences[example]}”"
        return said + f" Likeness {_weight(signal):.2f} of 1."
    if layer not in ("history", "idiom", "second look") and _weight(signal):
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
