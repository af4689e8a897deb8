"""The ranking formula: what each utterance of a few threads is worth as an answer to a query. Pure.

    S = COV + 0.85·DK + 0.12·SPEAKER + 0.225·FIRST + 0.12·(WHEN ∧ TIMEWORD) + 0.3·DATE
        − 0.03·ln(chunks) − 0.1·QUESTION − 0.2·SHORT − 0.5·HUB

COV      Soft coverage. Each query term is credited once, where it stands best: in the same chunk 1; elsewhere in
         the message 0.5; one turn away 0.6 (0.7 in the question that the message answers), two 0.4, three 0.3;
         anywhere in the session 0.15. Weight of a term: idf^0.7. A word near it in meaning counts cos³ of it.
         COV = credited weight / whole weight, for the best chunk.
DK       d = half cos(query, message) + half its best cos(query, unit); an assistant's message cos(query, message)
         alone. DK = d + 0.45·max(d one turn away) + 0.15·max(d two away).
HUB      Mean cos to the five nearest other candidates: what is like everything answers nothing in particular.
SPEAKER  Exactly one speaker's first name is in the query, and the message is theirs.
FIRST    The query says I or my, and the message is the asking person's.
QUESTION The message is a question (in chats between people only).
SHORT    clip((60 − length) / 60, 0, 1).
DATE     Inside the time that the query names; a single day fades as exp(−|days|/4).

The terms are absolute, with no statistics per query but document frequency, so a score means the same over
400 messages and over 100,000, and one calibration turns it into a confidence.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Weights:
    """The formula's numbers. Multiplying them at random by 0.6–1.5 moves recall@10 by less than 0.02."""

    coverage: float = 1.0
    message: float = 0.5
    turn_1: float = 0.6
    answered: float = 0.7
    turn_2: float = 0.4
    turn_3: float = 0.3
    session: float = 0.15
    dense: float = 0.85
    dense_1: float = 0.45
    dense_2: float = 0.15
    speaker: float = 0.12
    first: float = 0.225
    when: float = 0.12
    date: float = 0.3
    chunks: float = 0.03
    question: float = 0.1
    short: float = 0.2
    hub: float = 0.5

    def without(self, channel: str) -> "Weights":
        """The weights with one channel left out, for measuring what it earns."""
        none = dict.fromkeys(CHANNELS[channel], 0.0)
        return replace(self, **none)


CHANNELS = {
    "lexical": ("coverage",),
    "dense": ("dense",),
    "thread, words": ("turn_1", "answered", "turn_2", "turn_3", "session"),
    "thread, meaning": ("dense_1", "dense_2"),
    "speaker": ("speaker", "first"),
    "time": ("when", "date"),
    "length": ("chunks", "short"),
    "question": ("question",),
    "hub": ("hub",),
}
HUB_NEIGHBOURS = 5
IDF_POWER = 0.7
NEAR_POWER = 3
# Logistic fit, on the five conversations used for tuning: does the best score belong to a question that this memory
# can answer (1,000 questions), or to one asked of somebody else's memory with the names changed (1,000)?
MIDDLE = 0.91
SLOPE = 7.5


@dataclass
class Scene:
    """Utterances in thread order (by session, then position), n of them, with c chunks and t query terms."""

    session: Ints  # (n,) dense numbers; an utterance without a session has one of its own
    position: Ints  # (n,)
    chunk_of: Ints  # (c,) row of each chunk's utterance, ascending, none left out
    presence: Floats  # (t, c) 1 where the term stands in the chunk, cos³ for a word near it
    in_session: Floats  # (t, sessions) the same for whole sessions, from the index
    weight: Floats  # (t,) idf^0.7
    dense: Floats  # (n,) d, 0 where unknown
    by_speaker: Bools  # (n,)
    by_asker: Bools  # (n,)
    is_question: Bools  # (n,)
    between_people: Bools  # (n,)
    has_time: Bools  # (n,)
    date: Floats  # (n,)
    length: Ints  # (n,)
    chunks: Ints  # (n,)


def score(scene: Scene, *, asks_when: bool, weights: Weights) -> tuple[Floats, dict[str, Floats]]:
    """S without HUB for each utterance, and what each channel gave to it."""
    w = weights
    parts = {
        "words": w.coverage * coverage(scene, w),
        "meaning": w.dense * dense_kernel(scene, w),
        "speaker": w.speaker * scene.by_speaker + w.first * scene.by_asker,
        "time": w.date * scene.date + w.when * (scene.has_time & asks_when),
        "form": -w.chunks * np.log(np.maximum(scene.chunks, 1))
        - w.question * (scene.is_question & scene.between_people)
        - w.short * np.clip((60 - scene.length) / 60, 0, 1),
    }
    return np.sum(list(parts.values()), axis=0), parts


def coverage(scene: Scene, w: Weights) -> Floats:
    """COV for each utterance: the share of the query's weight that stands in it or around it."""
    n = len(scene.session)
    if not n or not len(scene.weight):
        return np.zeros(n)
    starts = np.searchsorted(scene.chunk_of, np.arange(n))
    in_message = np.maximum.reduceat(scene.presence, starts, axis=1)
    around = np.maximum(w.message * in_message, w.session * scene.in_session[:, scene.session])
    for distance, credit in ((1, w.turn_1), (2, w.turn_2), (3, w.turn_3)):
        before = credit * _neighbour(scene, in_message, -distance)
        if distance == 1:
            answers = _neighbour(scene, scene.is_question.astype(float), -1) > 0
            before = np.where(answers, before / max(credit, 1e-9) * w.answered, before)
        around = np.maximum(around, np.maximum(before, credit * _neighbour(scene, in_message, distance)))
    credited = scene.weight @ np.maximum(scene.presence, around[:, scene.chunk_of])
    return np.asarray(np.maximum.reduceat(credited, starts) / scene.weight.sum())


def dense_kernel(scene: Scene, w: Weights) -> Floats:
    """DK for each utterance: its own nearness in meaning, and some of its neighbours'."""
    d = scene.dense
    one = np.maximum(_neighbour(scene, d, 1), _neighbour(scene, d, -1))
    two = np.maximum(_neighbour(scene, d, 2), _neighbour(scene, d, -2))
    return np.asarray(d + w.dense_1 * one + w.dense_2 * two)


def hubness(vectors: NDArray[np.float32]) -> Floats:
    """HUB for each candidate: mean cos to its nearest others. `vectors` (n, dimensions) are of unit length."""
    n = len(vectors)
    nearest = min(HUB_NEIGHBOURS, n - 1)
    if nearest < 1:
        return np.zeros(n)
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -1)
    return np.asarray(
        np.partition(alike, n - nearest, axis=1)[:, n - nearest :].mean(axis=1), dtype=np.float64
    )


def idf(frequency: NDArray[np.int64], chunks: int) -> Floats:
    """ln(1 + (N − df + ½) / (df + ½)) over chunks."""
    frequency = np.minimum(frequency, chunks)
    return np.asarray(np.log(1 + (chunks - frequency + 0.5) / (frequency + 0.5)))


def confidence(scores: Floats) -> Floats:
    """0..1: how likely it is that a memory whose best hit has this score holds what was asked for."""
    return np.asarray(1 / (1 + np.exp(-SLOPE * (scores - MIDDLE))))


def _neighbour(scene: Scene, values: Floats, offset: int) -> Floats:
    """The value `offset` turns on in the same thread, 0 where there is none.

    Positions may leave a gap of one (an answer that never came), and a larger one is no neighbour.
    """
    found = np.zeros_like(values)
    k = abs(offset)
    if k >= values.shape[-1]:
        return found
    near = (scene.session[k:] == scene.session[:-k]) & (scene.position[k:] - scene.position[:-k] <= 2 * k)
    if offset > 0:
        found[..., :-k] = np.where(near, values[..., k:], 0)
    else:
        found[..., k:] = np.where(near, values[..., :-k], 0)
    return found
