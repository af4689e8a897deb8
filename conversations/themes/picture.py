"""Themes over time as bands: the paths of an SVG, and the dates beneath. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

WIDTH, HEIGHT = 1000, 40  # units of the picture's own; it is stretched to the room there is
MOST_BINS = 26
THINNEST = 2.5  # a single turn can still be seen
STEPS = (timedelta(days=1), timedelta(days=7), timedelta(days=30), timedelta(days=91), timedelta(days=365))


@dataclass(frozen=True, slots=True)
class Axis:
    """The stretches of time that a picture has, and the moments to write beneath it."""

    edges: tuple[datetime, ...]

    @property
    def ticks(self) -> tuple[datetime, ...]:
        last = len(self.edges) - 1
        return (self.edges[0], self.edges[last // 2], self.edges[last])


def axis(start: datetime, end: datetime) -> Axis:
    """From start to end in days, weeks or longer, so that there are at most about MOST_BINS."""
    length = max(end - start, timedelta(days=1))
    step = next((step for step in STEPS if length / step <= MOST_BINS), length / MOST_BINS)
    bins = max(1, -(-length // step))
    return Axis(tuple(start + number * length / bins for number in range(bins + 1)))


def counts(moments: Sequence[datetime], over: Axis) -> list[int]:
    """How many of the moments fall into each stretch; those outside the axis into none."""
    found = [0] * (len(over.edges) - 1)
    for moment in moments:
        place = bisect_right(over.edges, moment) - 1
        if moment == over.edges[-1]:
            place = len(found) - 1
        if 0 <= place < len(found):
            found[place] += 1
    return found


def band(numbers: Sequence[int], most: int) -> str:
    """The path of one theme: a soft band along the middle, as thick as it was spoken of; `most` is the full height."""
    step = WIDTH / len(numbers)
    points = [(0.0, _half(numbers[0], most))]
    points += [((place + 0.5) * step, _half(number, most)) for place, number in enumerate(numbers)]
    points.append((float(WIDTH), _half(numbers[-1], most)))
    middle = HEIGHT / 2
    upper = [(x, middle - half) for x, half in points]
    lower = [(x, middle + half) for x, half in reversed(points)]
    return f"M{_at(upper[0])}{_curve(upper)}L{_at(lower[0])}{_curve(lower)}Z"


def _half(number: int, most: int) -> float:
    if not number:
        return 0.0
    return max(THINNEST, (HEIGHT / 2 - 1) * number / max(1, most))


def _curve(points: Sequence[tuple[float, float]]) -> str:
    parts = []
    for (x, y), (to_x, to_y) in pairwise(points):
        between = (x + to_x) / 2
        parts.append(f"C{_at((between, y))} {_at((between, to_y))} {_at((to_x, to_y))}")
    return "".join(parts)


def _at(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
