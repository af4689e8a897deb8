"""Helpers of the recall tests: remember turns as the product does, and index them."""

import uuid
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User

from memory.indexing import index_pending
from memory.models import MemoryNode
from memory.services import remember_turn

LONG_AGO = datetime(2026, 1, 10, 9, tzinfo=UTC)
NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


def remember(
    owner: User, *turns: tuple[str, str], at: datetime = LONG_AGO, session_id: uuid.UUID | None = None
) -> list[MemoryNode]:
    """One session of turns (q, a), a minute apart, indexed."""
    session_id = session_id or uuid.uuid4()
    nodes = [
        remember_turn(
            owner=owner,
            session_id=session_id,
            turn_index=index,
            q=q,
            a=a,
            created_at=at + timedelta(minutes=index),
            source="web",
        )
        for index, (q, a) in enumerate(turns)
    ]
    index_pending()
    return nodes


FILLER = [
    ("What should I cook tonight?", "A lentil soup keeps well and takes half an hour."),
    ("The car makes a rattling noise.", "Have the exhaust bracket looked at first."),
    ("I slept badly again.", "That sounds tiring. Shall we look at your evenings?"),
    ("Can you explain compound interest?", "Interest that itself earns interest, year after year."),
    ("My sister moved to Lisbon in January.", "Lisbon is lovely in winter. How does she like it?"),
    ("She found a flat near the river.", "A flat by the river sounds like a good start."),
]
