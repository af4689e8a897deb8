"""The labelled corpus as something a person really said, for tests of themes."""

import json
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from conversations.models import Session, Turn
from conversations.services import create_session, make_node

CORPUS = Path(__file__).parent / "data" / "three_months.json"


def corpus() -> dict[str, Any]:
    return json.loads(CORPUS.read_text(encoding="utf-8"))


def remember_topics(owner: User, topics: Collection[str], *, heavy: str = "") -> list[Session]:
    """Sessions of the corpus with their turns about these topics alone; those about `heavy` rang softly."""
    sessions = []
    for told in corpus()["sessions"]:
        turns = [turn for turn in told["turns"] if turn["label"] in topics]
        if turns:
            sessions.append(remember(owner, turns, heavy=heavy))
    return sessions


def remember(owner: User, turns: list[dict[str, Any]], *, heavy: str = "") -> Session:
    """One session of such turns, complete and in memory, at the moments they name."""
    session = create_session(owner=owner, title=turns[0]["label"])
    for index, turn in enumerate(turns):
        at = datetime.fromisoformat(turn["at"])
        kept = Turn.objects.create(
            session=session,
            owner=owner,
            turn_index=index,
            q=turn["q"],
            a=turn["a"],
            status=Turn.Status.COMPLETE,
            action=Turn.Action.SOFT_BELL if turn["label"] == heavy else Turn.Action.PASS,
            client_key=f"{index}",
            created_at=at,
            answered_at=at,
        )
        make_node(owner=session.owner, session=session, turn=kept)
    session.next_index = len(turns)
    session.last_turn_at = datetime.fromisoformat(turns[-1]["at"])
    session.save()
    return session
