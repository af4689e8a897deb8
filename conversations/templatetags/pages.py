"""Filters of the pages: markdown, moments, chips, and errors in words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

import safety.help_lines
import safety.resources
from conversations.markdown import render
from conversations.models import Turn

register = template.Library()

TROUBLES = {
    "timeout": "The model took too long to answer.",
    "unreachable": "The model could not be reached.",
    "rate_limited": "The model is asked by too many at the moment.",
    "server_error": "The model reported an error of its own.",
    "refused": "The model would not answer this.",
    "cut_off": "The answer broke off. What had come is kept above.",
    "rubbish": "The model sent something that is no answer.",
    "not_configured": "The model that is set cannot be used. About says which one it is.",
    "withheld": "The answer was held back, because parts of it were not safe to show.",
    "worker_stopped": "The answering was interrupted. What had come is kept.",
    "worker_lost": "The answering was interrupted. What had come is kept.",
}


@register.simple_tag
def signup_is_open() -> bool:
    return bool(settings.SIGNUP_OPEN)


@register.filter
def markdown(text: str) -> SafeString:
    return render(text)


@register.filter
def trouble(turn: Turn) -> str:
    """What happened, in a sentence; empty where nothing did."""
    if turn.status == Turn.Status.FAILED:
        return TROUBLES.get(turn.error, "The model did not answer.")
    if turn.status == Turn.Status.INTERRUPTED:
        return TROUBLES.get(turn.error, "The answer broke off. What had come is kept.")
    return ""


@register.filter
def day(moment: datetime) -> str:
    """ "12 May", with the year where it is not this one."""
    local = timezone.localtime(moment)
    return (
        f"{local.day} {local:%B}" if local.year == timezone.localdate().year else f"{local.day} {local:%B %Y}"
    )


@register.filter
def moment(value: datetime, shown: str = "time") -> SafeString:
    """A `<time>`: the time of day ("time"), the day ("day"), or the time today and the day otherwise ("short")."""
    local = timezone.localtime(value)
    today = local.date() == timezone.localdate()
    if shown == "time" or (shown == "short" and today):
        text = f"{local:%H:%M}"
    else:
        text = f"{local.day} {local:%b}" if shown == "short" else day(value)
    full = f"{local:%A}, {local.day} {local:%B %Y, %H:%M}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', local.isoformat(timespec="minutes"), full, text
    )


@dataclass(frozen=True, slots=True)
class Chip:
    """Something drawn on: when it was said, what it was, why it came to mind, where it stands."""

    at: datetime | None
    title: str
    snippet: str
    why: str
    href: str


@register.filter
def chips(recalled: list[dict[str, Any]]) -> list[Chip]:
    return [_chip(item) for item in recalled]


def _chip(item: dict[str, Any]) -> Chip:
    session_id, index = item.get("session_id"), item.get("turn_index")
    href = ""
    if session_id:
        href = reverse("session", args=[session_id])
        if index is not None:
            href += f"?at={index}#turn-{index}"
    why = item.get("why") or ""
    if not href and why == "kept":
        href = f"{reverse('kept')}#kept-{item.get('node_id')}"
    return Chip(
        at=parse_datetime(item.get("occurred_at") or ""),
        title=item.get("title") or item.get("snippet", "")[:60] or "an earlier talk",
        snippet=item.get("snippet") or "",
        why=why if isinstance(why, str) else ", ".join(map(str, why)),
        href=href,
    )


@register.filter
def help_lines(country: str) -> "safety.resources.Resources":
    """The help lines of a country, or the ones that hold everywhere."""
    return safety.help_lines.for_country(country)


@dataclass(frozen=True, slots=True)
class Flip:
    """Where the shown answer stands among a turn's answers, and the numbers of its neighbours."""

    position: int
    total: int
    previous: int | None
    next: int | None


@register.filter
def answers(turn: Turn) -> Flip | None:
    """The answers of a turn to flip between; None where there is only one."""
    if turn.attempt < 2:
        return None
    shown = [attempt for attempt in turn.attempts.all() if attempt.a]
    at = next((i for i, attempt in reversed(list(enumerate(shown))) if attempt.a == turn.a), None)
    if len(shown) < 2 or at is None:
        return None
    return Flip(
        position=at + 1,
        total=len(shown),
        previous=shown[at - 1].number if at else None,
        next=shown[at + 1].number if at + 1 < len(shown) else None,
    )


@register.filter
def marked(text: str, query: str) -> SafeString:
    """The text with the words of a query marked."""
    words = [re.escape(word) for word in query.split()]
    if not words:
        return conditional_escape(text)
    parts = re.split(f"({'|'.join(words)})", text, flags=re.IGNORECASE)
    return format_html_join(
        "", "{}{}", ((part, _mark(hit)) for part, hit in zip_longest(parts[::2], parts[1::2]))
    )


def _mark(hit: str | None) -> SafeString | str:
    return format_html("<mark>{}</mark>", hit) if hit else ""


@register.filter
def spanned(text: str, spans: Sequence[tuple[int, int]]) -> SafeString:
    """The text with the given spans of it marked; spans that touch or overlap become one."""
    joined: list[list[int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([start, end])
    parts: list[tuple[str | SafeString]] = []
    at = 0
    for start, end in joined:
        parts += [(text[at:start],), (_mark(text[start:end]),)]
        at = end
    return format_html_join("", "{}", [*parts, (text[at:],)])
