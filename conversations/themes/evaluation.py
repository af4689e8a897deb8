"""How well themes without a model find the topics of a labelled corpus, and how they moved. Leaves nothing behind.

The format: {"window": {"previous", "start", "end"}, "moves": {label: move},
"sessions": [{"turns": [{"at", "label", "q", "a"}]}]}, moments in ISO 8601 with a time zone.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from sklearn.metrics import homogeneity_completeness_v_measure

from conversations.themes.clustering import NO_CLUSTER, cluster
from conversations.themes.moves import Move, Window, came_to_rest, move_of
from conversations.themes.naming import describe
from memory.embedding import embed
from memory.retrieval.utterances import PERSON, Spoken, prepare

# A topic is found by a theme that holds at least half of it, and of which it is at least half.
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Topic:
    """A label, the theme that found it ("" for none), and its move as labelled and as found ("" where not labelled)."""

    label: str
    turns: int
    theme: str
    labelled: str
    found: str


@dataclass(frozen=True, slots=True)
class Report:
    turns: int
    themes: int
    homogeneity: float
    completeness: float
    v_measure: float
    topics: tuple[Topic, ...]

    @property
    def all_found(self) -> bool:
        return all(topic.theme for topic in self.topics)

    @property
    def moves_right(self) -> bool:
        return all(topic.labelled in ("", topic.found) for topic in self.topics)


def evaluate(data: dict[str, Any]) -> Report:
    """Cluster the corpus as production does, without a model. Turns that belong to no theme count as one cluster.

    Raises KeyError, TypeError or ValueError for a file of another shape.
    """
    turns = [(number, turn) for number, session in enumerate(data["sessions"]) for turn in session["turns"]]
    texts = [prepare(Spoken(PERSON, "", 0, turn["q"])).to_embed[0] for _, turn in turns]
    labels = cluster(embed(texts), [number for number, _ in turns])
    moments = [datetime.fromisoformat(turn["at"]) for _, turn in turns]
    truth = [str(turn["label"]) for _, turn in turns]
    homogeneity, completeness, v_measure = homogeneity_completeness_v_measure(truth, labels)
    members = [np.flatnonzero(labels == theme) for theme in range(labels.max() + 1)]
    names = [
        one.name
        for one in describe([[(turns[at][1]["q"], turns[at][1]["a"]) for at in held] for held in members])
    ]
    window = Window(**{name: datetime.fromisoformat(moment) for name, moment in data["window"].items()})
    sizes = Counter(truth)
    topics = []
    for label in sorted(sizes):
        theme = _found(label, sizes[label], truth, members)
        move: Move | str = ""
        if theme is not None:
            held = sorted(members[theme], key=lambda at: moments[at])
            rested = came_to_rest([turns[at][1]["q"] for at in held])
            move = move_of([moments[at] for at in held], sorted(moments), window, rested=rested)
        name = names[theme] if theme is not None else ""
        topics.append(Topic(label, sizes[label], name, data.get("moves", {}).get(label, ""), str(move)))
    themes = len(set(labels.tolist()) - {NO_CLUSTER})
    return Report(len(turns), themes, homogeneity, completeness, v_measure, tuple(topics))


def _found(label: str, size: int, truth: list[str], members: list[Any]) -> int | None:
    for theme, held in enumerate(members):
        own = sum(truth[at] == label for at in held)
        if own >= HALF * size and own >= HALF * len(held):
            return theme
    return None
