"""What became of a theme since the window before: new, growing, fading, returning, resolved. Pure.

A move is counted, never guessed: by how many of a window's turns were about the theme, and how many of the window
before it. Only whether something was brought to an end is read from the words.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Move(StrEnum):
    """A theme's move. QUIET is one that neither this window nor the one before spoke of."""

    NEW = "new"
    GROWING = "growing"
    STEADY = "steady"
    FADING = "fading"
    RETURNING = "returning"
    RESOLVED = "resolved"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Window:
    """The half-open window [start, end), and how far back the one before it reaches."""

    start: datetime
    end: datetime
    previous: datetime

    @classmethod
    def ending(cls, end: datetime, length: timedelta) -> "Window":
        return cls(end - length, end, end - 2 * length)


# By number and by share at once: when somebody talks more, every theme has more turns, and none of them grew.
GROWS_BY, FADES_TO = 1.5, 0.5
SHARE_GROWS_BY, SHARE_FADES_TO = 1.2, 0.8
LEAST_GROWTH = 2
# Whether a theme came to rest is read in its last turns.
LAST_TURNS = 3
_THIS_IS = r"(?:it|that|this|all|everything)(?:'s| is| was| has been)? (?:finally |all |now )?"
_ENDED = re.compile(
    rf"\b(?:{_THIS_IS}(?:over|done|behind (?:me|us)|sorted|settled|resolved|finished)"
    r"|(?:sorted|settled|resolved|finished|over and done|put it behind me)(?: now| at last| for good)?(?=[.!])"
    r"|(?:i|we) (?:finally |have |'ve )?(?:passed|got the (?:job|all-clear|keys|results?)|let it go|came through)"
    r"|(?:i|we) (?:have |'ve )?made (?:my|our) peace|the all-clear"
    r"|no longer (?:worr(?:y|ies|ied)|bothers?|troubles?|hurts?)|not worried (?:about it )?any ?more)(?!\w)",
    re.I,
)


def came_to_rest(said: Sequence[str]) -> bool:
    """Whether the last of what was said about a theme speaks of an end. `said` is in order of time."""
    return any(_ENDED.search(text.replace("’", "'")) for text in said[-LAST_TURNS:])


def before(window: Window, spoken: Sequence[datetime]) -> tuple[datetime, datetime]:
    """The window to compare with: the one before, or where nothing at all was said in it, the last that had talk.

    After a holiday not everything is "returning". `spoken` holds the moments of all turns, in order.
    """
    first, after = bisect_left(spoken, window.previous), bisect_left(spoken, window.start)
    if first < after or after == 0:
        return window.previous, window.start
    last = spoken[after - 1]
    return last - (window.start - window.previous), last + timedelta(microseconds=1)


def move_of(
    theme: Sequence[datetime], spoken: Sequence[datetime], window: Window, *, rested: bool = False
) -> Move:
    """The move of a theme whose turns were at these moments, among all turns at `spoken`; both in order of time."""
    compared = before(window, spoken)
    now, then = _count(theme, window.start, window.end), _count(theme, *compared)
    earlier = bisect_left(theme, compared[0])
    if not now:
        if not then:
            return Move.QUIET
        return Move.RESOLVED if rested else Move.FADING
    if not then:
        return Move.RETURNING if earlier else Move.NEW
    share_now = now / max(1, _count(spoken, window.start, window.end))
    share_then = then / max(1, _count(spoken, *compared))
    if rested and now <= then:
        return Move.RESOLVED
    if now >= GROWS_BY * then and now - then >= LEAST_GROWTH and share_now >= SHARE_GROWS_BY * share_then:
        return Move.GROWING
    if now <= FADES_TO * then and share_now <= SHARE_FADES_TO * share_then:
        return Move.FADING
    return Move.STEADY


def _count(moments: Sequence[datetime], start: datetime, end: datetime) -> int:
    return bisect_left(moments, end) - bisect_left(moments, start)
