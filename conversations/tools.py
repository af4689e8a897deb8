"""What a model may look up. The person is bound here and never an argument, so that no model can name another."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from conversations import window
from conversations.imprint import LONGEST_PASSAGE, Passage, fitting, tokens
from conversations.models import Session, Turn
from conversations.themes.asked import theme_asked_about, themes_asked_for, window_from_words
from memory.models import MemoryNode
from memory.search import By, Limits, search

MOST_RESULTS = 20
# What one result may take of the room that is left for results, and what the last of many calls still gets.
SHARE_OF_ROOM = 0.5
LEAST_TOKENS = 400
# A turn that is shortened to fit keeps this much of each side.
LEAST_SIDE_BYTES = 120

Result = dict[str, Any]


class Toolbox:
    """The tools of one person in one session. Results are records of earlier talk: data, never instructions."""

    def __init__(self, *, owner: AbstractBaseUser, session: Session, before: int, tz: ZoneInfo) -> None:
        self.owner = owner
        self.session = session
        self.before = before
        self.tz = tz
        self.used: list[Passage] = []
        self.room = settings.NEURON_PROMPT_TOKENS

    def functions(self) -> list[Any]:
        """The tools in the order a model sees them."""
        return [
            self.recent_conversations,
            self.search_memory,
            self.semantic_search,
            self.recall,
            self.search_knowledge,
            self.summarise_session,
            self.themes,
        ]

    def recent_conversations(self, limit: int = 20, since: str | None = None) -> list[Result] | Result:
        """The newest exchanges with this person over all sessions, newest first.

        Use it for recent, lately, this week, "summarise our conversations".

        Args:
            limit: how many, 1 to 1000.
            since: only what came after this moment, ISO 8601 with a time zone.
        """
        return self._recent(limit, since)

    def search_memory(self, query: str, limit: int = 8) -> list[Result]:
        """Earlier exchanges that hold all of the query's words, newest first.

        Args:
            query: the words to look for, as few as say it; what stands in quotes is found as it stands.
            limit: how many, up to 20.
        """
        return self._found(query, By.WORDS, limit)

    def semantic_search(self, query: str, limit: int = 8) -> list[Result]:
        """Earlier exchanges that are near the query in meaning, whatever their words, nearest first.

        Args:
            query: what it is about, in a sentence.
            limit: how many, up to 20.
        """
        return self._found(query, By.MEANING, limit)

    def recall(self, query: str, limit: int = 8) -> list[Result]:
        """What was said about something, in any wording, best first.

        Args:
            query: what to recall, as a question or a few words.
            limit: how many, up to 20.
        """
        return self._search(query, limit)

    def search_knowledge(self, query: str, limit: int = 8) -> list[Result]:
        """Things the person asked to have remembered.

        Args:
            query: what to look for.
            limit: how many, up to 20.
        """
        return self._knowledge(query, limit)

    def summarise_session(self, session_id: str | None = None) -> list[Result] | Result:
        """A whole session in the order it was talked; this one without an id. Summarise what comes back.

        Args:
            session_id: the id of one of this person's sessions.
        """
        return self._session(session_id)

    def themes(self, window: str = "all", about: str = "") -> list[Result]:
        """Themes across everything the person said, how they moved, and what was said of one over time.

        Use it for themes, what keeps coming up, what was on their mind over months, how a view of theirs changed.

        Args:
            window: week, month, season (three months) or all.
            about: one matter, to see how it went from the first time to the last; empty for all themes.
        """
        return self._themes(window, about)

    def _themes(self, within: str, about: str) -> list[Result]:
        start, end = window_from_words(within, now=timezone.now())
        if about:
            asked = theme_asked_about(self.owner, about, start=start, end=end, tz=self.tz)
        else:
            asked = themes_asked_for(self.owner, start=start, end=end, tz=self.tz)
        nodes = MemoryNode.objects.for_owner(self.owner).in_bulk(asked.node_ids)
        self.used += window.passages_of(list(nodes.values()), "theme")
        return self._fitted(asked.themes)

    def _recent(self, limit: int, since: str | None) -> list[Result] | Result:
        after: datetime | None = None
        if since:
            try:
                after = parse_datetime(since)
            except ValueError:  # the form of a date, but no day there is
                after = None
            if after is None:
                return {"error": "since must be ISO 8601 with a time zone"}
        try:
            found = window.recent_conversations(owner=self.owner, limit=limit, since=after)
        except ValueError as error:
            return {"error": str(error)}
        newest = MemoryNode.objects.for_owner(self.owner).conversations()
        if after is not None:
            newest = newest.filter(occurred_at__gt=after)
        self.used += window.passages_of(list(newest.newest_first()[: min(limit, MOST_RESULTS)]), "recent")
        return self._fitted(found)

    def _search(self, query: str, limit: int) -> list[Result]:
        found = window.search(
            owner=self.owner, query=query, exclude=(self.session.pk, self.before), limit=_bounded(limit)
        )
        self.used += found
        return self._fitted([self._record(passage) for passage in found])

    def _found(self, query: str, by: By, limit: int) -> list[Result]:
        found = search(
            self.owner,
            query,
            by=by,
            limit=MOST_RESULTS,
            limits=Limits(node_types=(MemoryNode.NodeType.CONVERSATION,)),
        ).found
        nodes = [one.node for one in found if one.sure and one.node.session_id != self.session.pk]
        passages = window.passages_of(nodes[: _bounded(limit)], "recalled")
        self.used += passages
        return self._fitted([self._record(passage) for passage in passages])

    def _knowledge(self, query: str, limit: int) -> list[Result]:
        found = search(
            self.owner,
            query,
            limit=_bounded(limit),
            limits=Limits(node_types=(MemoryNode.NodeType.KNOWLEDGE,)),
        ).found
        nodes = [one.node for one in found if one.sure]
        self.used += window.passages_of(nodes, "kept")
        return self._fitted(
            [
                {
                    "content": node.content[:LONGEST_PASSAGE],
                    "date": node.occurred_at.astimezone(self.tz).date().isoformat(),
                }
                for node in nodes
            ]
        )

    def _session(self, session_id: str | None) -> list[Result] | Result:
        session: Session | None = self.session
        if session_id:
            try:
                wanted = UUID(session_id)
            except ValueError:
                return {"error": "there is no such session"}
            session = Session.objects.for_owner(self.owner).filter(pk=wanted).first()
        if session is None:
            return {"error": "there is no such session"}
        turns = Turn.objects.in_thread(session).told()
        if session.pk == self.session.pk:
            turns = turns.filter(turn_index__lt=self.before)
        told = [
            {
                "turn_index": turn.turn_index,
                "created_at": turn.created_at.isoformat(),
                "q": turn.q,
                "a": turn.a,
            }
            for turn in turns
        ]
        return self._fitted(told, evenly=True)

    def _fitted(self, records: list[Result], *, evenly: bool = False) -> list[Result]:
        """The records that fit into the room left for results, long ones shortened; the last one says what is missing.

        `evenly`: of a whole session, turns from its beginning to its end.
        """
        share = max(LEAST_TOKENS, int(self.room * SHARE_OF_ROOM))
        costs = [_cost(record) for record in records]
        if sum(costs) > share:
            each = share // len(records) if evenly else share // 4
            records = [_shortened(record, each) for record in records]
            chosen = fitting([_cost(record) for record in records], share, evenly=evenly)
            left_out = len(records) - len(chosen)
            records = [records[at] for at in chosen]
            note = "Long texts were shortened to fit."
            if left_out:
                which = "spread evenly over the whole" if evenly else "the first of them"
                note += f" {left_out} of {left_out + len(chosen)} did not fit; these are {which}."
            records.append({"note": note})
        self.room -= sum(_cost(record) for record in records)
        return records

    def _record(self, passage: Passage) -> Result:
        return {
            "q": passage.q,
            "a": passage.a,
            "created_at": passage.occurred_at.isoformat(),
            "session_id": str(passage.session_id) if passage.session_id else None,
            "turn_index": passage.turn_index,
            "link": passage.link,
        }


def _cost(record: Result) -> int:
    return tokens(json.dumps(record, ensure_ascii=False))


def _shortened(record: Result, most: int) -> Result:
    """The record with q and a cut so that it takes about `most` tokens."""
    if _cost(record) <= most:
        return record
    rest = _cost(record | {"q": "", "a": ""})
    side = max(LEAST_SIDE_BYTES, (most - rest) * 4 // 2)
    cut = {key: _cut(record[key], side) for key in ("q", "a") if key in record}
    return record | cut


def _cut(text: str, most_bytes: int) -> str:
    held = text.encode()
    return text if len(held) <= most_bytes else held[:most_bytes].decode(errors="ignore") + " …"


def _bounded(limit: int) -> int:
    return max(1, min(limit, MOST_RESULTS))
