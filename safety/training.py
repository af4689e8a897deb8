"""Training of the classifier by meaning from our own examples: deterministic, and written as a readable file.

Regularised least squares with a Gaussian kernel, one target a kind: one linear system, so that the same examples
always give the same weights, one row of votes per example. Chosen by counts on a development set, where it was
level with or above a support vector machine and kernel logistic regression; it trains in seconds. Calibration is
Platt's, on predictions for examples left out in groups of near-duplicates.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safety.examples import example_id
from safety.features import NAMES, rule_bits
from safety.lexicon import LexiconError, lexicon
from safety.normalise import clean
from safety.semantic import FORMAT, HARD_KINDS, KINDS, SOFT_KINDS, WEIGHTS, WEIGHTS_HASH
from safety.wording import plain_wording

Floats = NDArray[np.float64]
Embed = Callable[[list[str]], Any]

GAMMA = 0.8
BIT_SCALE = 0.15
RIDGE = 0.3
SHARPNESS = 6.0  # of the softmax that turns votes into shares
FOLDS = 5
NEAR_DUPLICATE = 0.9  # cosine: such examples are left out together
VECTOR_SCALE = 1 / 508  # int8 steps of an embedding's coordinate, ±0.25


@dataclass(frozen=True, slots=True)
class Example:
    """One line of `safety/data/examples/*.jsonl`."""

    id: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """Examples as the kernel sees them: quantised vectors with scaled bits, and the packed halves for the file."""

    examples: list[Example]
    steps: NDArray[np.int8]
    bits: NDArray[np.uint8]

    def points(self) -> Floats:
        return np.hstack([self.steps * VECTOR_SCALE, self.bits * BIT_SCALE]).astype(np.float64)


def read_examples(paths: Sequence[Path]) -> list[Example]:
    """All examples, each text once, in a fixed order. Raises LexiconError naming file and line."""
    found: dict[str, Example] = {}
    for path in sorted(paths):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                text, kind = str(row["text"]), str(row["kind"])
            except (ValueError, KeyError, TypeError) as error:
                raise LexiconError(f"{path.name}, line {number}: {error}") from error
            if kind not in KINDS:
                raise LexiconError(f"{path.name}, line {number}: {kind!r} is not one of the kinds")
            key = plain_wording(clean(text))
            found.setdefault(key, Example(example_id(text), text, kind))
    return sorted(found.values(), key=lambda example: (example.kind, example.id))


def prepare(examples: list[Example], embed: Embed) -> Prepared:
    """Examples worded, embedded and looked at by the rules, as a message is at its screening."""
    words = [
        plain_wording(clean(example.text, trigger_words=lexicon().trigger_words)) for example in examples
    ]
    embedded = np.asarray(embed([one or "?" for one in words]))
    steps = np.clip(np.rint(embedded / VECTOR_SCALE), -127, 127).astype(np.int8)
    return Prepared(examples, steps, np.stack([rule_bits(one) for one in words]).astype(np.uint8))


def train(prepared: Prepared, embedder: str) -> dict[str, Any]:
    """The content of the weights file."""
    points = prepared.points()
    kinds = np.array([example.kind for example in prepared.examples])
    votes, intercept = _fit(points, kinds)
    votes = votes.astype("<f2")
    rows = [
        {
            "id": example.id,
            "kind": example.kind,
            "vector": base64.b64encode(prepared.steps[at].tobytes()).decode(),
            "bits": np.packbits(prepared.bits[at]).tobytes().hex(),
            "votes": base64.b64encode(votes[at].tobytes()).decode(),
        }
        for at, example in enumerate(prepared.examples)
    ]
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:8]
    return {
        "format": FORMAT,
        "version": f"meaning-{FORMAT}-{digest}",
        "embedder": embedder,
        "gamma": GAMMA,
        "sharpness": SHARPNESS,
        "bit_scale": BIT_SCALE,
        "vector_scale": VECTOR_SCALE,
        "kinds": list(KINDS),
        "bits": list(NAMES),
        "intercept": [round(float(value), 5) for value in intercept],
        "calibration": _calibrate(prepared, points, kinds),
        "examples": rows,
    }


def write(content: dict[str, Any], folder: Path) -> None:
    """The weights file, one example a line, and its SHA-256 beside it (`sha256sum -c` reads it)."""
    head = {key: value for key, value in content.items() if key != "examples"}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rows = ",\n".join(json.dumps(row) for row in content["examples"])
    text = "{\n" + "\n".join(lines) + '\n"examples": [\n' + rows + "\n]}\n"
    (folder / WEIGHTS).write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / WEIGHTS_HASH).write_text(f"{digest}  {WEIGHTS}\n", encoding="utf-8")


def _fit(points: Floats, kinds: NDArray[np.str_]) -> tuple[Floats, Floats]:
    targets = (kinds[:, None] == np.array(KINDS)[None]).astype(np.float64)
    intercept = targets.mean(axis=0)
    system = _kernel(points, points) + RIDGE * np.eye(len(points))
    return np.linalg.solve(system, targets - intercept), intercept


def _kernel(left: Floats, right: Floats) -> Floats:
    squares = (left**2).sum(1)[:, None] + (right**2).sum(1)[None] - 2 * left @ right.T
    return np.asarray(np.exp(-GAMMA * np.maximum(squares, 0)))


def _shares(scores: Floats) -> tuple[Floats, Floats]:
    shares = np.exp(SHARPNESS * (scores - scores.max(axis=1, keepdims=True)))
    shares /= shares.sum(axis=1, keepdims=True)
    hard = shares[:, [KINDS.index(kind) for kind in HARD_KINDS]].sum(1)
    return hard, hard + shares[:, [KINDS.index(kind) for kind in SOFT_KINDS]].sum(1)


def _left_out(prepared: Prepared, points: Floats, kinds: NDArray[np.str_]) -> tuple[Floats, Floats]:
    folds = _folds(prepared)
    hard, either = np.zeros(len(kinds)), np.zeros(len(kinds))
    for fold in range(FOLDS):
        out = folds == fold
        votes, intercept = _fit(points[~out], kinds[~out])
        hard[out], either[out] = _shares(_kernel(points[out], points[~out]) @ votes + intercept)
    return hard, either


def _folds(prepared: Prepared) -> NDArray[np.int64]:
    """Near-duplicates share a fold: a union of everything closer than NEAR_DUPLICATE, dealt out by a hash."""
    embedded = prepared.steps * VECTOR_SCALE
    near = embedded @ embedded.T > NEAR_DUPLICATE
    leader = np.arange(len(embedded))
    for at in range(len(embedded)):
        leader[at] = leader[np.flatnonzero(near[at])[0]]
    names = [prepared.examples[at].id for at in leader]
    return np.array([int(hashlib.sha256(name.encode()).hexdigest(), 16) % FOLDS for name in names])


def _calibrate(prepared: Prepared, points: Floats, kinds: NDArray[np.str_]) -> dict[str, list[float]]:
    from sklearn.linear_model import LogisticRegression  # only training needs scikit-learn

    hard, either = _left_out(prepared, points, kinds)
    lines = {}
    for name, shares, positive in (("hard", hard, HARD_KINDS), ("any", either, HARD_KINDS + SOFT_KINDS)):
        clipped = np.clip(shares, 1e-6, 1 - 1e-6)
        odds = np.log(clipped / (1 - clipped))[:, None]
        # Both sides count alike: the share of danger among our examples says nothing about that among messages.
        machine = LogisticRegression(C=1e6, class_weight="balanced").fit(odds, np.isin(kinds, positive))
        lines[name] = [round(float(machine.coef_[0, 0]), 5), round(float(machine.intercept_[0]), 5)]
    return lines
