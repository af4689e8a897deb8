"""What a letter says: which themes moved, in a few lines, with links. No quotes unless the person wants them in mail.

It is written from facts, without a model, and from the themes as they are when it is read: one that has been deleted
or hidden since is not in it.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.urls import reverse

from conversations.letters.models import Digest
from conversations.themes.moves import Move, Window
from conversations.themes.reading import Overview, Theme, overview

MOST_LINES = 6
MOST_QUOTES = 3
_ORDER = (Move.RETURNING, Move.NEW, Move.GROWING, Move.RESOLVED, Move.FADING, Move.STEADY)
_SENTENCES = {
    Move.RETURNING: "came back",
    Move.NEW: "is new",
    Move.GROWING: "took more room than before",
    Move.RESOLVED: "seems to have come to rest",
    Move.FADING: "grew quieter",
    Move.STEADY: "went on as before",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One theme: `name` and `link`, and `became` behind it."""

    name: str
    link: str
    became: str
    turns: int
    quotes: tuple[str, ...]

    @property
    def count(self) -> str:
        return "" if not self.turns else "1 turn" if self.turns == 1 else f"{self.turns} turns"


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter's content. `heavy` says that something weighed on the person, of which no more is told."""

    digest: Digest
    lines: tuple[Line, ...]
    heavy: bool

    @property
    def is_empty(self) -> bool:
        return not self.lines and not self.heavy

    @property
    def period(self) -> str:
        return "month" if self.digest.monthly else "week"

    @property
    def subject(self) -> str:
        """Nothing of what was said: subjects are seen by others."""
        return f"Your {self.period} with Neuron"

    @property
    def link(self) -> str:
        return absolute(reverse("letter", args=[self.digest.pk]))

    @property
    def themes_link(self) -> str:
        return absolute(reverse("themes"))

    @property
    def settings_link(self) -> str:
        return absolute(reverse("letters"))


def absolute(path: str) -> str:
    return f"{settings.PUBLIC_URL}{path}"


def facts_of(owner: AbstractBaseUser, digest: Digest) -> list[dict[str, Any]]:
    """What moved in the letter's period: ids, moves and numbers."""
    view = _overview(owner, digest)
    told = [theme for theme in view.themes if not theme.hidden and theme.move in _SENTENCES]
    told.sort(key=lambda theme: (_ORDER.index(theme.move), -theme.turns))
    return [
        {"theme": str(theme.id), "move": str(theme.move), "turns": theme.turns}
        for theme in told[: MOST_LINES * 2]
    ]


def write(owner: AbstractBaseUser, digest: Digest, *, with_quotes: bool) -> Letter:
    """The letter of these facts, from the themes as they are now."""
    themes = {str(theme.id): theme for theme in _overview(owner, digest).themes if not theme.hidden}
    lines: list[Line] = []
    heavy = False
    for fact in digest.facts:
        theme = themes.get(fact["theme"])
        if theme is None:
            continue
        if theme.is_heavy:
            heavy = True
        elif len(lines) < MOST_LINES:
            lines.append(_line(theme, fact, with_quotes=with_quotes))
    return Letter(digest, tuple(lines), heavy)


def _line(theme: Theme, fact: dict[str, Any], *, with_quotes: bool) -> Line:
    within = {spot.node_id for spot in theme.within}
    quotes = [quote.text for quote in theme.quotes if quote.spot.node_id in within]
    return Line(
        name=theme.name,
        link=absolute(theme.link),
        became=_SENTENCES[Move(fact["move"])],
        turns=int(fact["turns"]),
        quotes=tuple(quotes[:MOST_QUOTES]) if with_quotes else (),
    )


def _overview(owner: AbstractBaseUser, digest: Digest) -> Overview:
    return overview(owner, Window(digest.start, digest.end, digest.start - (digest.end - digest.start)))
