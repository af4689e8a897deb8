"""The classifier by meaning: kernel regression over kinds, from a hashed and readable weights file.

A message is its embedding with the rule bits appended. It is compared with every training example by a Gaussian
kernel, and each example votes for kinds with the weights training gave it; the nearest ones are the explanation.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.embedding import PACKAGED_MODEL
from safety.features import NAMES
from safety.lexicon import DATA, LexiconError

Floats = NDArray[np.float32]

WEIGHTS = "weights.json"
WEIGHTS_HASH = "weights.sha256"
FORMAT = 1
HARD_KINDS = ("plan", "means", "goodbye", "attempt", "overdose", "threat", "active_ideation", "self_harm")
SOFT_KINDS = ("passive_ideation", "friend", "distress", "illness")
PASS_KINDS = (
    "past",
    "fiction",
    "lyrics",
    "academic",
    "idiom",
    "technical",
    "hyperbole",
    "calm_mental_health",
    "chat",
    "twins",
)
KINDS = (*HARD_KINDS, *SOFT_KINDS, *PASS_KINDS)
NEAREST = 3

# A message of up to so many words is read whole; a longer one in windows, and only in the most telling of them.
WHOLE_WORDS = 110
WINDOW_WORDS = 80
WINDOW_STEP = 60
MOST_WINDOWS = 6
LONGEST_WORD = 40  # characters of one "word" that are read; a paste without blanks must not cost seconds
_TELLING = re.compile(
    r"\b(?:myself|die|dying|dead|death|kill\w*|suicid\w*|end it|goodbye|pills?|overdos\w*|cut(?:ting)?|gun|hang\w*"
    r"|hurt\w*|alone|hopeless|worthless|burden|tonight|murder\w*|shoot|stab|my life|want to|going to)\b"
)


@dataclass(frozen=True, slots=True)
class Example:
    """A training example as it explains a verdict: its id in `safety/data/examples`, its kind, its likeness 0–1."""

    id: str
    kind: str
    likeness: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Calibrated probabilities of danger (`hard`) and of danger or distress (`any`), each kind's share, and why."""

    hard: float
    any: float
    shares: dict[str, float]
    nearest: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """What `weights.json` holds, ready for numpy. Vectors are rows of embedding and scaled bits."""

    version: str
    gamma: float
    sharpness: float
    bit_scale: float
    kinds: tuple[str, ...]
    intercept: Floats
    vectors: Floats
    squares: Floats
    votes: Floats
    ids: tuple[str, ...]
    example_kinds: tuple[str, ...]
    calibration: dict[str, tuple[float, float]]

    def read(self, embedded: Floats, bits: Floats) -> Reading:
        """Read one window: a unit vector (dimensions,) and its rule bits."""
        point = np.concatenate([embedded, bits * self.bit_scale]).astype(np.float32)
        distances = self.squares + float(point @ point) - 2 * (self.vectors @ point)
        likeness = np.exp(-self.gamma * np.maximum(distances, 0))
        scores = likeness @ self.votes + self.intercept
        shares = np.exp(self.sharpness * (scores - scores.max()))
        shares /= shares.sum()
        groups = {kind: float(share) for kind, share in zip(self.kinds, shares, strict=True)}
        hard = sum(groups[kind] for kind in HARD_KINDS)
        soft = sum(groups[kind] for kind in SOFT_KINDS)
        order = np.argsort(-likeness)[:NEAREST]
        nearest = tuple(
            Example(self.ids[at], self.example_kinds[at], round(float(likeness[at]), 3)) for at in order
        )
        return Reading(
            calibrated(hard, self.calibration["hard"]),
            calibrated(hard + soft, self.calibration["any"]),
            groups,
            nearest,
        )

    def read_all(self, embedded: Sequence[Floats], bits: Sequence[Floats]) -> Reading:
        """Read the windows of one text: danger from the most dangerous, distress from the most distressed."""
        readings = [self.read(vector, one) for vector, one in zip(embedded, bits, strict=True)]
        gravest = max(readings, key=lambda reading: (reading.hard, reading.any))
        return replace(gravest, any=max(reading.any for reading in readings))


def calibrated(share: float, line: tuple[float, float]) -> float:
    """Platt's line on the log odds of a share: `slope, offset`."""
    share = min(max(share, 1e-6), 1 - 1e-6)
    return float(1 / (1 + np.exp(-(line[0] * np.log(share / (1 - share)) + line[1]))))


def windows(wording: str) -> list[str]:
    """The parts of a text that are read: the whole, or of a long paste its beginning, end and most telling middle."""
    words = [word[:LONGEST_WORD] for word in wording.split()]
    if len(words) <= WHOLE_WORDS:
        return [" ".join(words)]
    starts = range(0, max(1, len(words) - WINDOW_WORDS + WINDOW_STEP), WINDOW_STEP)
    parts = [" ".join(words[start : start + WINDOW_WORDS]) for start in starts]
    if len(parts) <= MOST_WINDOWS:
        return parts
    between = range(1, len(parts) - 1)
    telling = sorted(between, key=lambda at: (-len(set(_TELLING.findall(parts[at]))), at))[: MOST_WINDOWS - 2]
    return [parts[at] for at in sorted({0, len(parts) - 1, *telling})]


@lru_cache(maxsize=1)
def weights() -> Weights:
    """The weights of `safety/data`, checked against their hash and read once. Raises LexiconError."""
    return load(DATA)


def load(folder: Path) -> Weights:
    """Read and check a folder's weights. Raises LexiconError naming file and line."""
    raw = _read(folder / WEIGHTS)
    promised = _read(folder / WEIGHTS_HASH).split()
    found = hashlib.sha256(raw).hexdigest()
    if not promised or promised[0] != found.encode():
        raise LexiconError(
            f"{WEIGHTS_HASH}, line 1: {WEIGHTS} does not have this SHA-256 (it has {found[:12]}…)"
        )
    try:
        content = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise LexiconError(f"{WEIGHTS}, line {line}: not UTF-8") from error
    except json.JSONDecodeError as error:
        raise LexiconError(f"{WEIGHTS}, line {error.lineno}: {error.msg}") from error
    try:
        return _unpacked(content)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise LexiconError(f"{WEIGHTS}, line 1: {error} is missing or wrong; train again") from error


def _read(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise LexiconError(f"{path.name}: cannot be read ({error.strerror})") from error
    if not raw.strip():
        raise LexiconError(f"{path.name}, line 1: the file is empty")
    return raw


def _unpacked(content: dict[str, Any]) -> Weights:
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r}")
    if tuple(content["bits"]) != NAMES:
        raise ValueError("the list of rule bits")
    if set(content["kinds"]) != set(KINDS):
        raise ValueError("the list of kinds")
    if content["embedder"] != PACKAGED_MODEL:
        raise ValueError(f"the embedder {content['embedder']!r}")
    rows = content["examples"]
    scale, bit_scale = float(content["vector_scale"]), float(content["bit_scale"])
    embedded = (
        np.stack([np.frombuffer(base64.b64decode(row["vector"]), dtype=np.int8) for row in rows]) * scale
    )
    packed = np.stack([np.frombuffer(bytes.fromhex(row["bits"]), dtype=np.uint8) for row in rows])
    bits = np.unpackbits(packed, axis=1, count=len(NAMES)) * bit_scale
    votes = np.stack([np.frombuffer(base64.b64decode(row["votes"]), dtype="<f2") for row in rows])
    if votes.shape[1] != len(content["kinds"]):
        raise ValueError("the number of votes")
    vectors = np.hstack([embedded, bits]).astype(np.float32)
    return Weights(
        version=str(content["version"]),
        gamma=float(content["gamma"]),
        sharpness=float(content["sharpness"]),
        bit_scale=bit_scale,
        kinds=tuple(content["kinds"]),
        intercept=np.array(content["intercept"], dtype=np.float32),
        vectors=vectors,
        squares=(vectors * vectors).sum(axis=1),
        votes=votes.astype(np.float32),
        ids=tuple(str(row["id"]) for row in rows),
        example_kinds=tuple(str(row["kind"]) for row in rows),
        calibration={key: (float(line[0]), float(line[1])) for key, line in content["calibration"].items()},
    )
