"""The search page, the box beside every page, and the API: what they show, to whom, for anything one can type."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations.models import Session
from conversations.services import create_session
from memory.indexing import index_pending
from memory.search import COMMON_WORDS, NO_WORDS
from tests.conversations.talk import talked

API = "/api/v1/memory/search"
LONG_AGO = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def lisbon(owner: User) -> Session:
    session = create_session(owner=owner, title="Moving south")
    talked(
        session,
        ("Did you hear the news?", "No, tell me."),
        ("My sister moved to Lisbon.", "How does she like it?"),
        ("She found a flat near the river.", "A good start."),
        at=LONG_AGO,
    )
    garden = create_session(owner=owner, title="The garden in Lisbon")
    talked(garden, ("The tomatoes are late.", "Give them sun."), at=LONG_AGO + timedelta(days=40))
    index_pending()
    return session


def page(client: Client, **asked: object) -> str:
    answer = client.get(reverse("search"), asked)
    assert answer.status_code == 200
    return answer.content.decode().split("<main")[1]


def test_the_page_shows_titles_and_turns_marked_with_what_stands_around_them(
    owner_client: Client, lisbon: Session
) -> None:
    found = page(owner_client, q="lisbon sister")
    assert "My <mark>sister</mark> moved to <mark>Lisbon</mark>." in found
    assert "No, tell me." in found
    assert "How does she like it?" in found
    assert f'href="/sessions/{lisbon.pk}/?at=1#turn-1">Moving south</a>' in found
    assert "The garden in <mark>Lisbon</mark></a>" in page(owner_client, q="lisbon")


def test_what_is_jumped_to_is_there_to_be_marked(owner_client: Client, lisbon: Session) -> None:
    assert 'id="turn-1"' in owner_client.get(f"/sessions/{lisbon.pk}/?at=1").content.decode()


def test_a_search_is_limited_by_days_of_ones_own_calendar_kind_and_session(
    owner_client: Client, lisbon: Session
) -> None:
    def is_found(**limits: object) -> bool:
        return "<mark>sister</mark>" in page(owner_client, q="sister", by="words", **limits)

    assert is_found(since="2026-03-01", until="2026-03-01")
    assert not is_found(since="2026-03-02")
    assert not is_found(until="2026-02-28")
    assert is_found(type="Conversation")
    assert not is_found(type="Knowledge")
    assert is_found(session=lisbon.pk)
    assert not is_found(session=lisbon.owner.chat_sessions.exclude(pk=lisbon.pk).get().pk)


def test_htmx_gets_the_finds_alone_and_the_box_the_list(owner_client: Client, lisbon: Session) -> None:
    htmx = {"HX-Request": "true"}
    part = owner_client.get(reverse("search"), {"q": "sister"}, headers=htmx).content.decode()
    assert "<mark>sister</mark>" in part
    assert "<form" not in part
    box = owner_client.get(reverse("session-box"), {"q": "tomat"}, headers=htmx).content.decode()
    assert "The garden in Lisbon" in box
    assert "Moving south" not in box
    assert "<html" not in box
    assert "<main" in owner_client.get(reverse("session-box"), {"q": "tomat"}).content.decode()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("", "Words are found in any form"),
        ("?!", NO_WORDS),
        ("🦊", NO_WORDS),
        ("what is it that", COMMON_WORDS),
        ("\x00", NO_WORDS),
        ("\ud800".encode("utf-8", "surrogatepass"), NO_WORDS),
        ("zebracanary", "Nothing"),
        ("<script>alert</script>", "Nothing"),
        ("'; DROP TABLE x; --", "Nothing"),
        ("lisbon " * 14_300, "longer than"),
        ('"([" AND sister', "Nothing"),
    ],
)
@pytest.mark.parametrize("by", ["both", "words", "meaning"])
def test_whatever_is_searched_for_page_box_and_api_answer_clearly(
    owner_client: Client, lisbon: Session, query: str, says: str, by: str
) -> None:
    found = page(owner_client, q=query, by=by)
    assert says in found
    assert "<script>alert" not in found
    box = owner_client.get(reverse("session-box"), {"q": query}, headers={"HX-Request": "true"})
    assert box.status_code == 200
    answer = owner_client.get(API, {"q": query, "by": by})
    assert answer.status_code == 200
    assert not any(hit["sure"] for hit in answer.json()["hits"]) or "lisbon" in str(query)


@pytest.mark.parametrize(
    ("name", "value"),
    [("since", "no day"), ("until", "9999-12-31"), ("by", "magic"), ("type", "x\x00"), ("session", "no id")],
)
def test_a_limit_that_is_none_is_said_to_be(
    owner_client: Client, lisbon: Session, name: str, value: str
) -> None:
    assert "trouble" in page(owner_client, q="sister", **{name: value})
    assert owner_client.get(API, {"q": "x", name: value}).status_code == (200 if name == "until" else 400)


def test_nobody_finds_what_somebody_else_said(other_client: Client, lisbon: Session) -> None:
    for by in ("both", "words", "meaning"):
        assert "sister" not in page(other_client, q="Lisbon river", by=by)
        assert other_client.get(API, {"q": "Lisbon river", "by": by}).json()["hits"] == []
        assert other_client.get(API, {"q": "Lisbon", "by": by}).json()["sessions"] == []
    assert other_client.get(reverse("search"), {"q": "x", "session": lisbon.pk}).status_code == 404
    assert other_client.get(API, {"q": "x", "session": lisbon.pk}).status_code == 404
    box = other_client.get(reverse("session-box"), {"q": "Lisbon"}, headers={"HX-Request": "true"})
    assert b"Moving south" not in box.content


def test_the_api_gives_each_hit_with_its_place(owner_client: Client, lisbon: Session) -> None:
    answer = owner_client.get(
        API, {"q": "flat river", "by": "words", "since": "2026-02-01T00:00:00Z", "limit": 5}
    ).json()
    (hit,) = answer["hits"]
    assert (hit["session_id"], hit["turn_index"], hit["role"]) == (str(lisbon.pk), 2, "person")
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["flat", "river"]
    assert hit["link"] == f"/sessions/{lisbon.pk}/?at=2#turn-2"
    assert (hit["before"], hit["after"], hit["sure"]) == ("How does she like it?", "A good start.", True)
    assert answer["note"] == ""
    assert owner_client.get(API, {"q": "Lisbon"}).json()["sessions"][0]["title"] == "The garden in Lisbon"
    assert Client().get(API, {"q": "x"}).status_code == 401
