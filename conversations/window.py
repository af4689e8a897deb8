"""What memory has for a look-up: the passages, and a sentence to answer with where there are none."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.auth.models import AbstractBaseUser
from django.utils.timezone import localtime

from conversations.imprint import Passage
from conversations.intents import Intent, Kind
from conversations.models import Session, Turn
from conversations.themes.asked import Asked, theme_asked_about, themes_asked_for
from memory.models import MemoryNode
from memory.retrieval import CONFIDENT, recall
from memory.retrieval.utterances import exchange

# A look-up over recent talk reads so many turns at the most; the token budget of the prompt decides in the end.
MOST_RECENT_TURNS = 120
MOST_FOUND = 12
# The newest turns of the thread stand in the prompt as they were said; what was said before them is recalled.
RECENT_TURNS = 30
_NAMES_THEMES = re.compile(r"\bthemes?\b", re.I)
NOTHING_YET = (
    "There is nothing to look back on yet. Talk with me, or bring your old chats along on the import page, "
    "and ask me again."
)
KEPT = (
    "I will remember this: “{fact}”\n\nIt is among [what I keep for you](/kept/), where you can correct it, pin it "
    "or have it forgotten."
)
KEPT_OUT = "This conversation is kept out of memory, so this is not kept either. Tell me in another one."
MOST_PINNED = 50
KEPT_TITLE = "what you asked me to keep"


@dataclass(frozen=True, slots=True)
class Material:
    """What an answer may draw on. `fixed` is an answer that needs no model."""

    passages: tuple[Passage, ...]
    head: dict[str, Any]
    fixed: str | None = None


def gather(
    *,
    owner: AbstractBaseUser,
    session: Session,
    before: int,
    message: str,
    intent: Intent,
    tz: ZoneInfo,
    most_recent: int = MOST_RECENT_TURNS,
) -> Material:
    """Look up what the intent asks for, newest first for recent talk, best first for a topic."""
    head: dict[str, Any] = {"intent": str(intent.kind)}
    if intent.window:
        head["window"] = intent.window.phrase
    if intent.topic:
        head["topic"] = intent.topic
    if intent.oldest_first:
        head["order"] = "oldest first"
    nodes = MemoryNode.objects.for_owner(owner).conversations()
    in_prompt = (session.pk, max(0, before - RECENT_TURNS))
    if intent.kind == Kind.THIS_CONVERSATION:
        turns = Turn.objects.in_thread(session).told().filter(turn_index__lt=before)
        passages = tuple(_of_turn(turn, session) for turn in turns)
        return Material(
            passages, head, None if passages else "Nothing has been said in this conversation yet."
        )
    if intent.kind in (Kind.THEMES, Kind.CHANGE):
        asked = _themes(owner, intent, tz)
        if asked.themes:
            found_nodes = MemoryNode.objects.for_owner(owner).in_bulk(asked.node_ids)
            told = [found_nodes[pk] for pk in asked.node_ids if pk in found_nodes]
            return Material(passages_of(told, "theme"), head | _worries(intent) | {"themes": asked.themes})
        if intent.kind == Kind.CHANGE:
            # No theme of its own: what was said about it, from the first time on.
            intent = replace(intent, kind=Kind.ABOUT, oldest_first=True)
            head |= {"intent": str(Kind.ABOUT), "order": "oldest first"}
    if intent.kind in (Kind.RECENT, Kind.THEMES):
        found = nodes
        if intent.window:
            found = found.occurred_between(intent.window.start, intent.window.end)
        passages = passages_of(list(found.newest_first()[:most_recent]), "recent")
        if passages and _NAMES_THEMES.search(message):
            head["themes"] = themes_asked_for(owner, recent=True, tz=tz).themes
        return Material(passages, head, None if passages else _nothing(owner, intent, tz))
    if intent.kind == Kind.REMEMBER:
        note = KEPT_OUT if session.temporary else KEPT.format(fact=intent.topic)
        related = search(owner=owner, query=message, exclude=in_prompt, limit=4)
        return Material(related, head | {"note": note})
    if intent.kind == Kind.ABOUT:
        passages = search(owner=owner, query=intent.topic, intent=intent, exclude=in_prompt)
        return Material(passages, head, None if passages else _not_found(owner, intent, tz))
    passages = search(owner=owner, query=message, intent=intent, exclude=in_prompt, limit=4)
    return Material(passages, head)


def _themes(owner: AbstractBaseUser, intent: Intent, tz: ZoneInfo) -> Asked:
    start, end = (intent.window.start, intent.window.end) if intent.window else (None, None)
    if intent.kind == Kind.CHANGE:
        return theme_asked_about(owner, intent.topic, start=start, end=end, tz=tz)
    return themes_asked_for(owner, start=start, end=end, worries=intent.worries, tz=tz)


def _worries(intent: Intent) -> dict[str, bool]:
    return {"worries": True} if intent.worries else {}


def search(
    *,
    owner: AbstractBaseUser,
    query: str,
    intent: Intent | None = None,
    exclude: tuple[UUID, int] | None = None,
    limit: int = MOST_FOUND,
) -> tuple[Passage, ...]:
    """The person's exchanges, and what they asked to have kept, that recall is confident of, best first.

    `exclude` is a session and the turn_index from which the prompt holds it anyway. The intent's window is a limit.
    """
    window = intent.window if intent else None
    hits = recall(
        owner,
        query,
        limit=limit * 2,  # both sides of an exchange may be hits
        since=window.start if window else None,
        until=window.end if window else None,
        node_types=[MemoryNode.NodeType.CONVERSATION, MemoryNode.NodeType.KNOWLEDGE],
        except_from=exclude,
        in_context=False,
    )
    # What was kept and the turn it was said in say the same; what was kept may since have been corrected.
    places: dict[Any, MemoryNode] = {}
    for hit in hits:
        place = (hit.node.session_id, hit.node.turn_index) if hit.node.session_id else hit.node.pk
        if hit.confidence >= CONFIDENT and (
            place not in places or hit.node.node_type == MemoryNode.NodeType.KNOWLEDGE
        ):
            places[place] = hit.node
    found = list(places.values())[:limit]
    if intent and intent.oldest_first:
        found.sort(key=lambda node: (node.occurred_at, node.pk))
    return passages_of(found, "recalled")


def pinned_facts(*, owner: AbstractBaseUser, tz: ZoneInfo) -> list[dict[str, str]]:
    """What the person pinned, newest first: it stands in every prompt, as far as there is room."""
    pinned = MemoryNode.objects.for_owner(owner).knowledge().pinned().newest_first()
    return [
        {"date": occurred_at.astimezone(tz).strftime("%Y-%m-%d"), "kept": content}
        for occurred_at, content in pinned.values_list("occurred_at", "content")[:MOST_PINNED]
    ]


def passages_of(nodes: list[MemoryNode], why: str) -> tuple[Passage, ...]:
    """The nodes as passages. Nodes that came from elsewhere may name sessions that are not here, or not theirs."""
    if not nodes:
        return ()
    told = {node.pk: exchange(node.content, node.payload) for node in nodes}
    sessions = Session.objects.filter(
        pk__in={node.session_id for node in nodes}, owner__in={node.owner_id for node in nodes}
    )
    titles: dict[UUID | None, str] = dict(sessions.values_list("pk", "title"))
    return tuple(
        Passage(
            node_id=node.pk,
            session_id=node.session_id,
            turn_index=node.turn_index,
            occurred_at=node.occurred_at,
            title=titles.get(node.session_id) or _title(node),
            q=told[node.pk][0] or node.content,
            a=told[node.pk][1],
            why="kept" if node.node_type == MemoryNode.NodeType.KNOWLEDGE else why,
            is_here=node.session_id in titles,
        )
        for node in nodes
    )


def _title(node: MemoryNode) -> str:
    if node.node_type == MemoryNode.NodeType.KNOWLEDGE:
        return KEPT_TITLE
    # The label that every turn's node gets says nothing to a person.
    return "" if node.label.startswith("chat:") else node.label


def _of_turn(turn: Turn, session: Session) -> Passage:
    return Passage(
        turn.pk, turn.session_id, turn.turn_index, turn.created_at, session.title, turn.q, turn.a, "thread"
    )


def _nothing(owner: AbstractBaseUser, intent: Intent, tz: ZoneInfo) -> str:
    newest = _newest(owner)
    if newest is None:
        return NOTHING_YET
    phrase = intent.window.phrase if intent.window else ""
    return f"I have nothing from {_named(phrase)}. {_offer(newest, tz)}"


def _not_found(owner: AbstractBaseUser, intent: Intent, tz: ZoneInfo) -> str:
    newest = _newest(owner)
    if newest is None:
        return NOTHING_YET
    when = f" from {_named(intent.window.phrase)}" if intent.window else ""
    return f"I found nothing about {intent.topic}{when}. {_offer(newest, tz)}"


def _named(phrase: str) -> str:
    """ "in May" and "last week" as they stand behind "from"."""
    words = phrase.split(" ", 1)
    return words[1] if words[0].lower() in {"in", "on", "during", "from"} and len(words) > 1 else phrase


def _newest(owner: AbstractBaseUser) -> MemoryNode | None:
    return MemoryNode.objects.for_owner(owner).conversations().newest_first().first()


def _offer(node: MemoryNode, tz: ZoneInfo) -> str:
    passage = passages_of([node], "recent")[0]
    day = localtime(node.occurred_at, tz).strftime("%-d %B %Y")
    title = passage.title or "this conversation"
    return f"The newest I have is from {day}: [{title}]({passage.link})."


def recent_conversations(
    *, owner: AbstractBaseUser, limit: int = 20, since: datetime | None = None
) -> list[dict[str, Any]]:
    """The newest exchanges, newest first: `{"q","a","created_at","session_id","turn_index"}` each.

    Raises ValueError for a limit outside 1–1000 and for a naive `since`, which is exclusive.
    """
    nodes = MemoryNode.objects.for_owner(owner).recent_by_type(MemoryNode.NodeType.CONVERSATION, limit, since)
    return [
        {
            "q": q,
            "a": a,
            "created_at": node.occurred_at.isoformat(),
            "session_id": str(node.session_id) if node.session_id else None,
            "turn_index": node.turn_index,
        }
        for node in nodes
        for q, a in [exchange(node.content, node.payload)]
    ]
