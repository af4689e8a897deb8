"""Which turns belong together: clusters of turns by what they mean and by the thread they stand in. Pure.

A message alone seldom says what it is about ("Yes, both of them"); its neighbours in the thread do. So each turn is
seen in the company of its thread when clusters are made, and by its own words alone when they are judged: the number
of clusters is the one whose silhouette over the turns' own vectors is best. On the labelled corpus of the tests that
finds the true number; judged with the company, or by the distance of a merge, it does not. Taking the largest number
that is nearly as good (0.8 of the best) gave finer themes, lost topics of smaller samples and told one move wrongly.
"""

from collections.abc import Hashable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Labels = NDArray[np.intp]

FEWEST_TURNS = 8  # below this there is nothing to compare
SMALLEST_CLUSTER = 3
MOST_CLUSTERS = 24  # more than anybody holds in mind
TURNS_PER_CLUSTER = 8  # no more clusters than this many turns for each
NO_CLUSTER = -1

# The weight of the turn before and after, and how it falls with each step further away.
NEIGHBOUR = 0.3
FALL = 0.6
REACH = 6
# What all of one person's talk has in common says nothing about its themes; this much of the mean is taken away.
COMMON = 0.7
# A turn less like its cluster's mean than this belongs to none.
LEAST_LIKENESS = 0.1
# The tree and its judging take time and memory with the square of the turns: of more than these, so many spread
# evenly are looked at, and the others join the cluster they are most like.
MOST_COMPARED = 1500
ROUNDS = 3


def cluster(vectors: Vectors, sessions: Sequence[Hashable]) -> Labels:
    """The cluster of each turn, 0 for the largest, NO_CLUSTER for a turn that belongs nowhere.

    `vectors` is (n, dimensions), each row the unit vector of a turn's message, a row of zeros where there is none;
    turns of one session stand together, in the order they were said. The same input gives the same clusters.
    """
    from sklearn.metrics import (
        silhouette_score,
    )  # 100 MB and two seconds, for the worker that looks for themes alone

    if len(vectors) < FEWEST_TURNS:
        return np.full(len(vectors), NO_CLUSTER)
    alone = _unit(vectors - COMMON * vectors.mean(axis=0))
    together = _in_company(alone, sessions)
    sample = _sample(len(vectors))
    distances = np.clip(1 - alone[sample] @ alone[sample].T, 0, 2)
    np.fill_diagonal(distances, 0)
    best, best_score = np.zeros(len(vectors), dtype=np.intp), -1.0
    for cut in _cuts(together[sample], most=len(vectors) // TURNS_PER_CLUSTER):
        labels = _refined(together, _means(together[sample], cut))
        if len(np.unique(labels[sample])) < 2:
            continue
        score = float(silhouette_score(distances, labels[sample], metric="precomputed"))
        if score > best_score:
            best, best_score = labels, score
    return _by_size(_without_strays(together, best))


def _in_company(alone: Vectors, sessions: Sequence[Hashable]) -> Vectors:
    """Each turn with its neighbours in the thread, nearer ones counting more."""
    together = alone.copy()
    start = 0
    for _, group in groupby(sessions):
        end = start + len(list(group))
        for step in range(1, min(REACH, end - start - 1) + 1):
            weight = NEIGHBOUR * FALL ** (step - 1)
            together[start : end - step] += weight * alone[start + step : end]
            together[start + step : end] += weight * alone[start : end - step]
        start = end
    return _unit(together)


def _cuts(together: Vectors, *, most: int) -> list[Labels]:
    """These turns in 2, 3 … clusters, by cutting one tree of average linkage over cosine distance."""
    from sklearn.cluster import AgglomerativeClustering

    count = len(together)
    distances = np.clip(1 - together @ together.T, 0, 2)
    tree = AgglomerativeClustering(
        n_clusters=2, metric="precomputed", linkage="average", compute_full_tree=True
    ).fit(distances)
    most = min(MOST_CLUSTERS, max(2, most), count - 1)
    return [_cut(tree.children_, count, clusters) for clusters in range(2, most + 1)]


def _cut(children: NDArray[np.intp], leaves: int, count: int) -> Labels:
    """The labels of the leaves when the tree's last merges are undone until `count` clusters are left."""
    members: dict[int, list[int]] = {leaf: [leaf] for leaf in range(leaves)}
    for number, (left, right) in enumerate(children[: leaves - count]):
        members[leaves + number] = members.pop(int(left)) + members.pop(int(right))
    labels = np.zeros(leaves, dtype=np.intp)
    for label, held in enumerate(members.values()):
        labels[held] = label
    return labels


def _refined(together: Vectors, means: Vectors) -> Labels:
    """Each turn in the cluster whose mean it is most like, the means following a few times over."""
    labels = np.asarray((together @ means.T).argmax(axis=1))
    for _ in range(ROUNDS - 1):
        labels = np.asarray((together @ _means(together, labels).T).argmax(axis=1))
    return labels


def _means(together: Vectors, labels: Labels) -> Vectors:
    return _unit(np.stack([together[labels == label].mean(axis=0) for label in np.unique(labels)]))


def _without_strays(together: Vectors, labels: Labels) -> Labels:
    _, labels = np.unique(labels, return_inverse=True)
    likeness = (together * _means(together, labels)[labels]).sum(axis=1)
    return np.where(likeness < LEAST_LIKENESS, NO_CLUSTER, labels)


def _by_size(labels: Labels) -> Labels:
    """Numbered from the largest; clusters of fewer than SMALLEST_CLUSTER turns are none."""
    found, sizes = np.unique(labels[labels != NO_CLUSTER], return_counts=True)
    order = [label for size, label in sorted(zip(-sizes, found, strict=True)) if -size >= SMALLEST_CLUSTER]
    numbered = np.full(len(labels), NO_CLUSTER)
    for number, label in enumerate(order):
        numbered[labels == label] = number
    return numbered


def _sample(count: int) -> Labels:
    return np.unique(np.linspace(0, count - 1, min(count, MOST_COMPARED)).astype(np.intp))


def _unit(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-9), dtype=np.float32)
