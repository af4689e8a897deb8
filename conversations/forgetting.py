"""Forgetting one turn for good: its words, its answers, and all that memory made of them. Its place stays."""

from django.db import transaction

import memory.services
from conversations import services
from conversations.keeping import forget_in_what_was_drawn_on
from conversations.models import Session, Turn
from conversations.stream import forget_streams
from conversations.themes import kept
from memory.models import MemoryNode


class NotSettled(Exception):
    """The turn is still being answered."""


def forget_turn(*, turn: Turn) -> Turn:
    """Empty a settled turn, so that `turn_index` keeps no gap, and delete every node made of it. Raises NotSettled.

    What was kept of it goes too, and its part in themes, in the rolling history, in the session's title and in what
    other answers say they drew on. A bell that it rang stays for review, with its 80 characters.
    """
    owner = turn.owner
    with transaction.atomic():
        session = Session.objects.select_for_update().get(pk=turn.session_id)
        locked = Turn.objects.select_for_update().get(pk=turn.pk)
        if not locked.is_settled:
            raise NotSettled
        nodes = MemoryNode.objects.owned_by(owner).filter(session_id=session.pk, turn_index=locked.turn_index)
        ids = list(nodes.exclude(node_type=MemoryNode.NodeType.BELL_EVENT).values_list("pk", flat=True))
        kept.forget_notes_of(node_ids=ids)
        memory.services.delete_nodes(owner=owner, node_ids=ids)
        kept.mend(owner=owner)
        forget_in_what_was_drawn_on(owner=owner, session_id=str(session.pk), turn_index=locked.turn_index)
        _forget_in_titles(session, locked)
        locked.attempts.all().delete()
        locked.q, locked.a, locked.status = "", "", Turn.Status.FORGOTTEN
        locked.recalled, locked.help_lines, locked.error = [], False, ""
        locked.save(update_fields=["q", "a", "status", "recalled", "help_lines", "error"])
        memory.services.rewrite_history(owner=owner)
        transaction.on_commit(lambda: forget_streams([locked.pk]))
    return locked


def _forget_in_titles(session: Session, turn: Turn) -> None:
    """A title that was made of the turn is made anew of the one that follows; forks have taken it over."""
    made = services.title_from(turn.q)
    following = session.turns.filter(turn_index__gt=turn.turn_index).exclude(q="").order_by("turn_index")
    for one in [session, *session.forks.all()]:
        if made and one.title == made:
            one.title = services.title_from(following.values_list("q", flat=True).first() or "")
            one.save(update_fields=["title"])
