"""Where a new session may begin: up to three openings out of what was really said."""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.urls import reverse

from conversations.models import Turn
from safety.models import BellEvent

QUOTED = 90


@dataclass(frozen=True, slots=True)
class Opening:
    """A line to begin with: `says` is sent as a message; `href` leads back to where it was said."""

    label: str
    says: str = ""
    href: str = ""
    turn: Turn | None = None


def openings(owner: AbstractBaseUser) -> list[Opening]:
    """Look back over it all, or go on where one left off. Nothing said yet: no openings.

    Only plain talk is held out again: nothing from a session where a bell rang is quoted back on the first page.
    """
    recent = list(
        Turn.objects.for_owner(owner)
        .filter(status="complete", session__temporary=False, session__archived_at=None)
        .exclude(session__in=BellEvent.objects.for_owner(owner).exclude(session_id=None).values("session_id"))
        .select_related("session")
        .newest_first()[:12]
    )
    if not recent:
        return []
    found = [Opening("Summarise what we talked about lately", says="Summarise what we talked about lately.")]
    seen = set()
    for turn in recent:
        if turn.session_id not in seen:
            seen.add(turn.session_id)
            href = f"{reverse('session', args=[turn.session_id])}#turn-{turn.turn_index}"
            found.append(Opening(_first_words(turn.q), href=href, turn=turn))
    return found[:3]


def _first_words(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTED else line[:QUOTED].rsplit(" ", 1)[0] + "…"
