"""Saying something and having it answered and indexed at once, as web and worker do together."""

import uuid
from datetime import datetime

from conversations import cycle, receiving, services
from conversations.models import Session, Turn
from memory.indexing import index_pending


def say(session: Session, text: str) -> Turn:
    """One message through all layers."""
    received = receiving.receive(session=session, text=text, client_key=uuid.uuid4().hex)
    assert received.turn is not None
    cycle.answer(received.turn.pk)
    received.turn.refresh_from_db()
    index_pending()
    return received.turn


def talked(session: Session, *exchanges: tuple[str, str], at: datetime | None = None) -> list[Turn]:
    """Exchanges that were talked and are remembered, without a model; at a moment of the past where one is given."""
    turns = []
    for q, a in exchanges:
        accepted = services.accept_turn(
            session=session, text=q, client_key=uuid.uuid4().hex, action=Turn.Action.PASS, now=at
        )
        claimed = services.claim_turn(turn_id=accepted.turn.pk)
        assert claimed is not None
        services.settle_turn(turn=claimed, status=Turn.Status.COMPLETE, text=a)
        turns.append(claimed)
    index_pending()
    return turns


def told(session: Session, q: str, a: str, **more: object) -> Turn:
    """The session's first turn, settled, as a row alone: nothing remembers it."""
    Session.objects.filter(pk=session.pk).update(next_index=1)
    return Turn.objects.create(
        session=session,
        owner_id=session.owner_id,
        turn_index=0,
        q=q,
        a=a,
        status="complete",
        client_key="k",
        **more,
    )
