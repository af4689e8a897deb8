"""The stream of an answer: it only reads, ends at once for a settled turn, and keeps private what is private."""

import asyncio
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

import conversations.stream
from conversations.models import Session, Turn
from conversations.stream import Publisher
from conversations.views import stream
from tests.conversations.talk import told


@pytest.fixture
def turn(session: Session) -> Turn:
    return told(session, "Hi", "Good **day**.")


def events(person: User | None, turn_id: object) -> tuple[object, list[dict[str, str]]]:
    """The response and all of its events, each as its fields."""

    async def read() -> tuple[object, str]:
        client = AsyncClient()
        if person is not None:
            await client.aforce_login(person, backend="django.contrib.auth.backends.ModelBackend")
        response = await client.get(
            reverse("turn-stream", args=[turn_id]), headers={"Accept": "text/event-stream"}
        )
        if not response.streaming:
            return response, ""
        return response, b"".join([part async for part in response.streaming_content]).decode()

    response, text = async_to_sync(read)()
    found = []
    for block in text.split("\n\n"):
        fields: dict[str, str] = {}
        for line in block.splitlines():
            name, _, value = line.partition(": ")
            fields[name] = f"{fields[name]}\n{value}" if name in fields else value
        if "event" in fields:
            found.append(fields)
    return response, found


def test_a_settled_turn_is_answered_at_once_with_its_final_html_then_done(owner: User, turn: Turn) -> None:
    response, came = events(owner, turn.pk)
    assert [event["event"] for event in came] == ["final", "done"]
    assert "<p>Good <strong>day</strong>.</p>" in came[0]["data"]
    assert "sse-connect" not in came[0]["data"]
    assert 'id="live"' in came[0]["data"]
    assert response["Content-Type"].startswith("text/event-stream")
    assert response["Cache-Control"] == "no-cache, no-transform"
    assert response["X-Accel-Buffering"] == "no"


def test_what_the_worker_publishes_comes_as_snapshots_of_the_whole_sanitised_reply(turn: Turn) -> None:
    publisher = Publisher(turn)
    publisher.begin()
    publisher.status("looking through May…")
    publisher.text("One. ")
    publisher.text("<b>Two.</b>")
    publisher.done()

    async def shown() -> list[str]:
        events = stream._with_heartbeats(conversations.stream.read(turn))
        return [await stream._html(event) async for event in events if event and event.kind == "text"]

    assert async_to_sync(shown)() == ["<p>One. &lt;b&gt;Two.&lt;/b&gt;</p>\n"]


def test_an_answer_on_its_way_expires_some_time_after_its_last_word(turn: Turn) -> None:
    client = conversations.stream._client()
    publisher = Publisher(turn)
    publisher.begin()
    publisher.text("One. ")
    assert 0 < client.ttl(publisher.key) <= conversations.stream.KEPT_SECONDS
    client.expire(publisher.key, 5)
    publisher.text("Two.")
    assert client.ttl(publisher.key) <= 5  # renewed once a minute
    publisher.renewed_at -= conversations.stream.RENEWED_AFTER_SECONDS
    publisher.done()
    assert client.ttl(publisher.key) > 5


def test_another_attempt_begins_with_an_empty_stream(turn: Turn) -> None:
    turn.attempt = 1
    Publisher(turn).text("Of the first attempt.")
    turn.attempt = 2
    publisher = Publisher(turn)
    publisher.begin()
    assert not conversations.stream._client().exists(publisher.key)


def test_a_silent_stream_breathes(owner: User, turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.01)

    async def slow():
        await asyncio.sleep(0.05)
        yield stream.Event("text", "Hello", "1")

    async def read() -> list[object]:
        return [event async for event in stream._with_heartbeats(slow())]

    came = async_to_sync(read)()
    assert came[0] is None
    assert came[-1] == stream.Event("text", "Hello", "1")


@pytest.mark.parametrize("who", ["other", "steward"])
def test_somebody_elses_stream_is_not_found(who: str, request: pytest.FixtureRequest, turn: Turn) -> None:
    response, came = events(request.getfixturevalue(who), turn.pk)
    assert (response.status_code, came) == (404, [])


def test_a_stream_that_never_was_is_not_found(owner: User) -> None:
    assert events(owner, uuid4())[0].status_code == 404


def test_somebody_signed_out_gets_a_notice_in_place_of_the_reply_and_then_the_end(turn: Turn) -> None:
    response, came = events(None, turn.pk)
    assert response.status_code == 200
    assert [event["event"] for event in came] == ["final", "done"]
    assert "You are signed out" in came[0]["data"]
    assert "Good" not in came[0]["data"]


def test_a_post_to_the_stream_is_refused(owner_client: Client, turn: Turn) -> None:
    assert owner_client.post(reverse("turn-stream", args=[turn.pk])).status_code == 405
