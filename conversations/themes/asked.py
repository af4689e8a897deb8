"""Themes as an answer draws on them: in a window, of what weighed on somebody, and how one of them went over time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from numpy.typing import NDArray

from conversations.llm import words
from conversations.themes import runs
from conversations.themes.moves import Window
from conversations.themes.reading import Overview, Spot, Theme, overview, window_of
from memory.models import MemoryNode
from memory.retrieval import dense
from memory.retrieval.utterances import exchange

MOST_THEMES = 8
TURNS_OF_EACH = 2
TURNS_OF_ONE = 9
LONGEST_SUMMARY = 240
LONGEST_QUOTE = 160
# A theme is what is asked about when what was said of it is this near to "I talked about …", as cosine. On the labelled
# corpus the right theme of "work", "my boss", "music" or "money" lies at .36 to .60, the best for "politics" at .22.
NEAR_ENOUGH = 0.3
_WORRY = re.compile(
    r"\b(?:worr(?:y|ies|ied|ying)|afraid|scared?|fear|fright|dread|nervous|anxious|panic|stress|upset|angry|cried|cry|"
    r"awake|cannot|can't|could not|hurts?|pain|alone|ashamed|terrif|hopeless|tired|exhausted|lost|trouble|problem)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What goes into the head of the prompt's memory, and the turns' nodes to quote from, as they are to be told."""

    themes: list[dict[str, Any]]
    node_ids: tuple[UUID, ...]


def themes_asked_for(
    owner: AbstractBaseUser,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    recent: bool = False,
    worries: bool = False,
    tz: ZoneInfo,
) -> Asked:
    """The largest themes of the window, of the last month of talk (`recent`), or of everything."""
    runs.have_at_hand(owner=owner)
    now = timezone.now()
    if start is not None and end is not None:
        view = overview(owner, Window(start, end, start - (end - start)))
    else:
        view = overview(owner, window_of(owner, "month", now=now), everything=not recent)
    shown = list(view.shown)
    said = _said_at([spot for theme in shown for spot in theme.within]) if worries else {}
    if worries:
        weight = {theme.id: sum(_weighs(spot, said) for spot in theme.within) for theme in shown}
        shown = sorted((one for one in shown if weight[one.id]), key=lambda one: -weight[one.id])
    shown = shown[:MOST_THEMES]
    told = {theme.id: _telling(theme, said) for theme in shown}
    quotes = _quotes([(theme, told[theme.id]) for theme in shown], tz)
    return Asked(
        [_record(theme, tz) | {"quotes": quotes[theme.id]} for theme in shown],
        tuple(spot.node_id for spots in told.values() for spot in spots),
    )


def theme_asked_about(
    owner: AbstractBaseUser, topic: str, *, start: datetime | None, end: datetime | None, tz: ZoneInfo
) -> Asked:
    """The theme nearest to the topic, the largest without a topic; its turns from the first to the last."""
    runs.have_at_hand(owner=owner)
    view = overview(owner, window_of(owner, "month", now=timezone.now()), everything=True)
    theme = _nearest(owner, view, topic)
    if theme is None:
        return Asked([], ())
    spots = [
        spot for spot in theme.spots if (start is None or spot.at >= start) and (end is None or spot.at < end)
    ]
    spots = [spot for spot in spots if not spot.heavy]
    steps = _steps(spots, [topic, theme.name], tz)
    quotes = [quote for _, quote in steps]
    return Asked([_record(theme, tz) | {"quotes": quotes}], tuple(spot.node_id for spot, _ in steps))


def _steps(spots: Sequence[Spot], about: Sequence[str], tz: ZoneInfo) -> list[tuple[Spot, dict[str, str]]]:
    """Out of each stretch of these turns the sentence that tells most, in order of time; greetings tell nothing."""
    said = _said_at(spots)
    size = max(1, -(-len(spots) // TURNS_OF_ONE))
    steps = []
    for start in range(0, len(spots), size):
        stretch = spots[start : start + size]
        at, sentence = words.quote([said.get(spot.node_id, "") for spot in stretch], about)
        if sentence:
            steps.append((stretch[at], _quote(stretch[at], sentence, tz)))
    return steps


def _record(theme: Theme, tz: ZoneInfo) -> dict[str, Any]:
    return {
        "name": theme.name,
        "link": theme.link,
        "became": theme.became,
        "turns": theme.turns,
        "share": f"{theme.share:.0%}",
        "first": theme.first.astimezone(tz).strftime("%-d %B %Y"),
        "last": theme.latest.at.astimezone(tz).strftime("%-d %B %Y"),
        "last_link": theme.latest.link,
        "says": theme.summary[:LONGEST_SUMMARY] if theme.made_by else "",
        "by": theme.made_by,
    }


def _telling(theme: Theme, said: dict[UUID, str]) -> Sequence[Spot]:
    """The turns of a theme to quote: those with its quotes, or the heaviest; the newest where there are none."""
    light = [spot for spot in theme.within if not spot.heavy]
    if said:
        return [spot for spot in light if _weighs(spot, said)][-TURNS_OF_EACH:]
    within = {spot.node_id for spot in light}
    quoted = [quote.spot for quote in theme.quotes if quote.spot.node_id in within]
    return (quoted or light)[-TURNS_OF_EACH:]


def _quotes(told: Sequence[tuple[Theme, Sequence[Spot]]], tz: ZoneInfo) -> dict[UUID, list[dict[str, str]]]:
    """A sentence of the person out of each of these turns, with its day and its link."""
    said = _said_at([spot for _, spots in told for spot in spots])
    quotes: dict[UUID, list[dict[str, str]]] = {}
    for theme, spots in told:
        quotes[theme.id] = []
        for spot in spots:
            text = words.plain(said.get(spot.node_id, ""))
            _, sentence = words.quote([text], [theme.name])
            quote = sentence or text[:LONGEST_QUOTE]
            if quote:
                quotes[theme.id].append(_quote(spot, quote, tz))
    return quotes


def _quote(spot: Spot, said: str, tz: ZoneInfo) -> dict[str, str]:
    return {"day": spot.at.astimezone(tz).strftime("%-d %B %Y"), "link": spot.link, "said": said}


def _said_at(spots: Sequence[Spot]) -> dict[UUID, str]:
    rows = MemoryNode.objects.filter(pk__in=[spot.node_id for spot in spots])
    return {
        pk: exchange(content, payload)[0]
        for pk, content, payload in rows.values_list("pk", "content", "payload")
    }


def _weighs(spot: Spot, said: dict[UUID, str]) -> bool:
    return spot.heavy or bool(_WORRY.search(said.get(spot.node_id, "")))


def _nearest(owner: AbstractBaseUser, view: Overview, topic: str) -> Theme | None:
    themes = [theme for theme in view.themes if not theme.hidden]
    if not themes or not topic:
        return themes[0] if themes else None
    wanted = set(words.keys(topic))
    named = [theme for theme in themes if wanted & set(words.keys(theme.name))]
    if named:
        return named[0]
    model = dense.searchable_model(owner.pk)
    asked = dense.embed_query(f"I talked about {topic}", model)
    if asked is None:
        return None
    known = dense.vectors_of_people(owner.pk, model)
    nearness = [_nearness(theme, asked, known) for theme in themes]
    best = int(np.argmax(nearness))
    return themes[best] if nearness[best] >= NEAR_ENOUGH else None


def _nearness(theme: Theme, asked: NDArray[np.float32], known: dict[UUID, NDArray[np.float32]]) -> float:
    """The cosine of the question and the mean of what was said about the theme."""
    rows = [known[spot.node_id] for spot in theme.spots if spot.node_id in known]
    if not rows:
        return 0.0
    mean = np.mean(rows, axis=0)
    return float(mean @ asked / max(1e-9, float(np.linalg.norm(mean))))


def window_from_words(within: str, *, now: datetime) -> tuple[datetime | None, datetime | None]:
    """The window that a tool names: week, month, season, or everything."""
    days = {"week": 7, "month": 30, "season": 91}.get(within)
    return (now - timedelta(days=days), now) if days else (None, None)
