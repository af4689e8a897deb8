"""Two people say the same words: whatever is asked, by whatever way, each finds only what is their own."""

import json
import uuid
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations import keeping
from conversations.finding import connected_with, find
from conversations.models import Session
from conversations.services import create_session
from conversations.tools import Toolbox
from conversations.window import pinned_facts, search
from memory.connections import connect_pending
from memory.knowledge import pin_fact
from memory.models import MemoryEdge, MemoryNode
from memory.retrieval import recall
from memory.search import By
from tests.conversations.talk import talked

pytestmark = pytest.mark.django_db

# Each person's words carry a mark of theirs where recall does not look for it: in the answers' addresses and titles.
WORDS = st.sampled_from(
    ["my sister Ada", "Lisbon", "the garden", "a cello", "walnuts", "the lighthouse", "熊猫", "Fahrrad"]
)
SENTENCE = st.lists(WORDS, min_size=2, max_size=5).map(" and ".join)
QUERY = st.one_of(
    SENTENCE, SENTENCE.map('"{}"'.format), st.sampled_from(["Lisb", "what did I say about Ada?"])
)


def tell(person: User, sentences: list[str]) -> list[Session]:
    """Two sessions with the same sentences, so that there are topics, names, facts and neighbours."""
    sessions = []
    for _ in range(2):
        session = create_session(owner=person, title=f"of {person.username}")
        turns = talked(session, *[(f"I saw {one} once more today.", "Did you?") for one in sentences])
        for turn in turns[:1]:
            pin_fact(node=keeping.keep_turn(turn=turn), pinned=True)
        sessions.append(session)
    connect_pending()
    return sessions


def seen_by(person: User, sessions: list[Session], query: str) -> Iterator[tuple[str, Any]]:
    """Every node, session and text that each way of looking gives to a person."""
    for hit in recall(person, query, limit=20):
        yield "recall", hit.node.pk
        yield from (("neighbour", one.node_id) for one in hit.neighbours)
    for by in By:
        searched = find(person, query, by=by, limit=50)
        yield from ((f"search {by}", hit.found.node.pk) for hit in searched.hits)
        yield from ((f"title {by}", session.pk) for session in searched.sessions)
    for passage in search(owner=person, query=query):
        yield "answer", passage.node_id
        yield "answer", passage.session_id
    toolbox = Toolbox(owner=person, session=create_session(owner=person), before=0, tz=ZoneInfo("UTC"))
    for tool in (toolbox.search_memory, toolbox.semantic_search, toolbox.recall, toolbox.search_knowledge):
        for record in json.loads(json.dumps(tool(query))):
            if record.get("session_id"):
                yield tool.__name__, uuid.UUID(record["session_id"])
    yield from (("tool", passage.node_id) for passage in toolbox.used)
    for session in sessions:
        for turn in session.turns.all():
            connected = connected_with(turn)
            yield from (("connected", one.node.pk) for one in [*connected.alike, *connected.facts])


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sentences=st.lists(SENTENCE, min_size=1, max_size=3, unique=True), query=QUERY)
def test_by_no_way_does_anybody_see_what_somebody_else_said(
    db: None, sentences: list[str], query: str
) -> None:
    people = [User.objects.create(username=uuid.uuid4().hex) for _ in range(2)]
    told = {person: tell(person, sentences) for person in people}
    for person in people:
        own = set(MemoryNode.objects.filter(owner=person).values_list("pk", flat=True))
        own |= set(Session.objects.filter(owner=person).values_list("pk", flat=True))
        seen = list(seen_by(person, told[person], query))
        assert [way for way, what in seen if what not in own] == []
        assert len(pinned_facts(owner=person, tz=ZoneInfo("UTC"))) == 2
    for edge in MemoryEdge.objects.select_related("source", "target"):
        assert edge.owner_id == edge.source.owner_id == edge.target.owner_id


def test_the_ways_of_looking_do_see_what_is_ones_own(owner: User, other: User) -> None:
    sentences = ["my sister Ada and the garden in Lisbon", "the garden of my sister Ada"]
    told = {person: tell(person, sentences) for person in (owner, other)}
    ways = {way for way, _ in seen_by(owner, told[owner], "my sister Ada in the garden")}
    assert ways >= {
        "recall", "neighbour", "search both", "search words", "search meaning", "answer", "search_memory",
        "semantic_search", "tool", "connected",
    }  # fmt: skip
