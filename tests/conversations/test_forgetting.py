"""What is forgotten is gone: looked for in every table and index, in Valkey, and through every way of searching."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from conversations import keeping, stream
from conversations.forgetting import forget_turn
from conversations.models import Session, Turn
from conversations.services import create_session, delete_session, fork_session, retry_turn
from conversations.tools import Toolbox
from conversations.window import search
from memory.connections import connect_pending
from memory.indexing import index_pending
from memory.models import MemoryNode
from memory.retrieval import recall
from memory.search import By
from memory.services import delete_nodes
from tests.conversations.talk import say, talked
from tests.memory.recalling import FILLER
from tests.scripted_provider import Script, ScriptedProvider

# Only ever said in the session that is forgotten, in its title, its answer, what was kept of it and whom it names.
SECRET = ("Zebracanary", "xylophone", "boathouse")
SAID = "My friend Zebracanary hid a xylophone in the boathouse."


@pytest.fixture(autouse=True)
def _no_streams_of_other_tests() -> None:
    valkey = redis.Redis.from_url(settings.REDIS_URL)
    for key in valkey.scan_iter("*answer*"):
        valkey.delete(key)


@pytest.fixture
def told(
    owner: User, session: Session, provider: ScriptedProvider, django_capture_on_commit_callbacks: Any
) -> Session:
    """A session with the secret, another that speaks of other things, and an answer that drew on the secret."""
    provider.default = Script(text="The xylophone is in the boathouse, says Zebracanary.")
    turn = say(session, SAID)
    say(session, "And how is the weather?")
    keeping.keep_turn(turn=turn)
    elsewhere = create_session(owner=owner, title="Elsewhere")
    talked(elsewhere, *FILLER)
    provider.default = Script(text="I do remember.")
    drew = say(elsewhere, "Where is the xylophone of Zebracanary?")
    assert drew.recalled
    # The question itself names it: it is asked in other words from here on.
    with django_capture_on_commit_callbacks(execute=True):
        forget_turn(turn=drew)
    asked = say(elsewhere, "Which musical instrument is hidden by the lake, friend?")
    Turn.objects.filter(pk=asked.pk).update(recalled=drew.recalled)
    index_pending()
    connect_pending()
    return session


def found_anywhere(owner: User) -> dict[str, str]:
    """Where one of the secret words still stands: rows of every table that has an owner or hangs on one, and Valkey."""
    places = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            " AND table_type = 'BASE TABLE'"
        )
        for (table,) in cursor.fetchall():
            for word in SECRET:
                cursor.execute(
                    f'SELECT count(*) FROM "{table}" AS row WHERE row::text ILIKE %s', [f"%{word[:7]}%"]
                )
                if cursor.fetchone()[0]:
                    places[table] = word
    valkey = redis.Redis.from_url(settings.REDIS_URL)
    for key in valkey.scan_iter("*"):
        held = valkey.dump(key)
        if held and any(word.encode()[:7] in held for word in SECRET):
            places[f"valkey {key!r}"] = "?"
    return places


def shown_anywhere(owner: User, client: Client) -> list[str]:
    """Which way of looking still shows one of the secret words."""
    toolbox = Toolbox(owner=owner, session=create_session(owner=owner), before=0, tz=ZoneInfo("UTC"))
    seen: dict[str, str] = {}
    for query in (*SECRET, "xylo", '"in the boathouse"', "musical instrument hidden by the lake"):
        seen[f"recall {query}"] = str([hit.snippet for hit in recall(owner, query)])
        seen[f"answer {query}"] = str(search(owner=owner, query=query))
        for by in By:
            answer = client.get("/api/v1/memory/search", {"q": query, "by": by})
            seen[f"api {by} {query}"] = answer.content.decode()
        for tool in (
            toolbox.search_memory,
            toolbox.semantic_search,
            toolbox.recall,
            toolbox.search_knowledge,
        ):
            seen[f"{tool.__name__} {query}"] = json.dumps(tool(query))
    seen["recent"] = json.dumps(toolbox.recent_conversations(1000))
    for address in (
        "/api/v1/nodes",
        "/api/v1/knowledge",
        "/api/v1/recent",
        "/api/v1/sessions",
        "/kept/",
        "/",
        "/sessions/",
    ):
        seen[address] = client.get(address).content.decode()
    for session in Session.objects.for_owner(owner):
        seen[f"page {session.pk}"] = client.get(f"/sessions/{session.pk}/").content.decode()
    return [way for way, text in seen.items() if any(word in text for word in SECRET)]


def test_the_secret_is_found_before_it_is_forgotten(owner: User, owner_client: Client, told: Session) -> None:
    tables = set(found_anywhere(owner))
    assert {"memory_memorynode", "memory_ownerterm", "conversations_turn", "conversations_session"} <= tables
    ways = " ".join(shown_anywhere(owner, owner_client))
    for way in (
        "recall",
        "answer",
        "api both",
        "api words",
        "api meaning",
        "search_memory",
        "search_knowledge",
    ):
        assert way in ways
    assert MemoryNode.objects.for_owner(owner).of_type("Entity").filter(label="Zebracanary").exists()


def test_a_deleted_session_is_gone_from_every_table_valkey_and_every_way_of_looking(
    owner: User, owner_client: Client, told: Session, django_capture_on_commit_callbacks: Any
) -> None:
    ids = list(MemoryNode.objects.filter(session_id=told.pk).values_list("pk", flat=True))
    with django_capture_on_commit_callbacks(execute=True):
        delete_session(session=told)
    assert found_anywhere(owner) == {}
    assert shown_anywhere(owner, owner_client) == []
    index_pending()
    connect_pending()
    assert found_anywhere(owner) == {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_utterance WHERE node_id = ANY(%s)", [ids])
        assert cursor.fetchone()[0] == 0
        cursor.execute(
            "SELECT count(*) FROM memory_unitvector WHERE utterance_id NOT IN (SELECT id FROM memory_utterance)"
        )
        assert cursor.fetchone()[0] == 0
        for table, width in (("memory_posting", 12), ("memory_signblock", 56)):
            cursor.execute(
                f"SELECT count(*) FROM {table}, memory_entries(entries, {width})"
                " WHERE substr(entry, 1, 8) NOT IN (SELECT int8send(id) FROM memory_utterance)"
            )
            assert cursor.fetchone()[0] == 0


def test_a_forgotten_turn_leaves_its_place_and_nothing_else(
    owner: User, owner_client: Client, told: Session, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        # Its second turn was answered in the same words by the script.
        for turn in told.turns.order_by("turn_index"):
            answer = owner_client.post(reverse("turn-forget", args=[turn.pk]))
            assert answer.status_code == 302
    assert found_anywhere(owner) == {}
    assert shown_anywhere(owner, owner_client) == []
    assert list(told.turns.order_by("turn_index").values_list("turn_index", "status")) == [
        (0, "forgotten"),
        (1, "forgotten"),
    ]
    assert "you had this forgotten" in owner_client.get(f"/sessions/{told.pk}/").content.decode()


def test_a_deleted_node_takes_its_edges_names_and_facts_along(owner: User, told: Session) -> None:
    node = MemoryNode.objects.get(owner=owner, session_id=told.pk, turn_index=0, node_type="Conversation")
    delete_nodes(owner=owner, node_ids=[node.pk])
    assert not MemoryNode.objects.filter(owner=owner, node_type="Entity", label="Zebracanary").exists()
    assert not MemoryNode.objects.filter(owner=owner, node_type="Knowledge").exists()


def test_the_streams_of_a_forgotten_turn_are_removed(
    owner: User, session: Session, django_capture_on_commit_callbacks: Any
) -> None:
    (turn,) = talked(session, (SAID, "I see."))
    publisher = stream.Publisher(turn)
    publisher.begin()
    publisher.text(SAID)
    assert any(place.startswith("valkey") for place in found_anywhere(owner))
    with django_capture_on_commit_callbacks(execute=True):
        forget_turn(turn=turn)
    assert found_anywhere(owner) == {}


def test_a_title_made_of_a_forgotten_turn_goes_in_the_session_and_its_forks(
    owner: User, session: Session
) -> None:
    talked(session, (SAID, "I see."), ("The weather is fine.", "Good."))
    session.refresh_from_db()
    fork = fork_session(session=session, at_index=1)
    forget_turn(turn=session.turns.get(turn_index=0))
    for one in (session, fork):
        one.refresh_from_db()
        assert one.title == "The weather is fine."


def test_only_its_owner_has_a_turn_forgotten_only_settled_and_for_good(
    owner: User, owner_client: Client, other_client: Client, session: Session
) -> None:
    (turn,) = talked(session, (SAID, "I see."))
    assert other_client.post(reverse("turn-forget", args=[turn.pk])).status_code == 404
    assert other_client.delete(f"/api/v1/turns/{turn.pk}").status_code == 404
    Turn.objects.filter(pk=turn.pk).update(status="answering")
    assert owner_client.post(reverse("turn-forget", args=[turn.pk])).status_code == 409
    assert owner_client.delete(f"/api/v1/turns/{turn.pk}").status_code == 409
    Turn.objects.filter(pk=turn.pk).update(status="complete")
    assert SAID[:40] in owner_client.get(reverse("turn-forget", args=[turn.pk])).content.decode()
    assert owner_client.delete(f"/api/v1/turns/{turn.pk}").status_code == 204
    turn.refresh_from_db()
    assert (turn.q, turn.a, turn.status) == ("", "", "forgotten")
    retry_turn(turn=turn)
    turn.refresh_from_db()
    assert turn.status == "forgotten"
