"""A word in a hard-bell message is found nowhere afterwards but in the bell's summary."""

import uuid
from contextlib import closing

import pytest
import redis
from django.db import connection

from conversations.models import Turn
from conversations.services import create_session
from safety.models import BellEvent
from tests.stack import Stack, wait_for

pytestmark = pytest.mark.processes


def tables_that_hold(word: str) -> set[str]:
    """Every table of the database with a row that has the word in any column."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        found = set()
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {table} AS row WHERE row::text LIKE %s", [f"%{word}%"])
            if cursor.fetchone()[0]:
                found.add(table)
    return found


def keys_that_hold(url: str, word: str) -> list[bytes]:
    client = redis.Redis.from_url(url)
    return [key for key in client.scan_iter() if word.encode() in (client.dump(key) or b"")]


def test_a_word_in_a_hard_bell_is_found_nowhere_else(stack: Stack) -> None:
    word = f"canary{uuid.uuid4().hex[:10]}"
    person = stack.person()
    session = create_session(owner=person)
    with closing(stack.signed_in(person)) as client:

        def post(text: str) -> str:
            data = {"text": text, "client_key": uuid.uuid4().hex}
            return client.post(f"/sessions/{session.pk}/turns/", data=data, follow_redirects=True).text

        post("Hello there, it is raining here")
        card = post(f"I am going to kill myself tonight, {word}")
        post("What did we talk about lately?")
        wait_for(
            lambda: Turn.objects.filter(session=session, status="complete").count() == 2, what="both answers"
        )
        pages = [
            client.get(path).text for path in ("/", f"/sessions/{session.pk}/", f"/search/?q={word[:6]}")
        ]
        answer = client.get("/api/v1/export", follow_redirects=True)
        answer.raise_for_status()
        export = answer.text

    assert BellEvent.objects.get(owner=person).summary.endswith(word)
    assert tables_that_hold(word) == {"safety_bellevent"}
    assert keys_that_hold(stack.environment["REDIS_URL"], word) == []
    assert word not in stack.provider.everything_received()
    assert word not in card
    assert not any(word in page for page in pages)
    assert word not in export
    assert all(word not in stack.log(name).read_text() for name in ("web", "worker", "beat"))
