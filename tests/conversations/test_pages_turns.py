"""Saying something on the pages: with htmx and without JavaScript, once, twice, and when it cannot be taken."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations.models import Attempt, Session, Turn
from safety.models import BellEvent
from tests.conversations.talk import told

HTMX = {"HX-Request": "true"}
CRISIS = "I have the pills here and I am going to kill myself tonight, canary."


def say(client: Client, session: Session, text: str, key: str = "key-1", *, htmx: bool = True, **more: str):
    address = reverse("turn-post", args=[session.pk])
    return client.post(address, {"text": text, "client_key": key, **more}, headers=HTMX if htmx else {})


def test_a_message_is_answered_with_its_turn_which_opens_the_stream(
    owner_client: Client, session: Session
) -> None:
    page = say(owner_client, session, "Hello there").content.decode()
    turn = Turn.objects.get()
    assert (turn.q, turn.turn_index, turn.status) == ("Hello there", 0, "pending")
    assert f'sse-connect="/turns/{turn.pk}/stream"' in page
    assert 'id="client-key"' in page
    assert 'hx-swap-oob="true"' in page


def test_without_javascript_a_message_leads_back_to_the_page_which_says_that_it_is_answered(
    owner_client: Client, session: Session
) -> None:
    answer = say(owner_client, session, "Hello there", htmx=False)
    assert answer["Location"] == f"/sessions/{session.pk}/#turn-0"
    page = owner_client.get(answer["Location"]).content.decode()
    assert "Still answering" in page
    assert '<noscript><meta http-equiv="refresh"' in page


def test_sending_twice_makes_one_turn(owner_client: Client, session: Session) -> None:
    say(owner_client, session, "Hello")
    assert say(owner_client, session, "Hello").status_code == 200
    assert Turn.objects.count() == 1


def test_a_used_key_with_other_words_keeps_the_words_and_brings_a_fresh_key(
    owner_client: Client, session: Session
) -> None:
    say(owner_client, session, "First")
    answer = say(owner_client, session, "Second")
    assert (answer.status_code, answer["HX-Retarget"]) == (409, "#composer-note")
    assert b"Your words are kept" in answer.content
    assert b'id="client-key"' in answer.content
    plain = say(owner_client, session, "Second", htmx=False)
    assert plain.status_code == 409
    assert b">Second</textarea>" in plain.content
    assert Turn.objects.count() == 1


@pytest.mark.parametrize("text", ["", "   \n "])
def test_an_empty_message_is_not_sent(owner_client: Client, session: Session, text: str) -> None:
    answer = say(owner_client, session, text)
    assert answer.status_code == 422
    assert not Turn.objects.exists()


def test_a_message_that_is_too_long_is_not_sent(owner_client: Client, session: Session) -> None:
    assert say(owner_client, session, "x" * 100_001).status_code == 422
    assert not Turn.objects.exists()


def test_what_was_typed_is_what_is_kept(owner_client: Client, session: Session) -> None:
    say(owner_client, session, '  tab\there\r\n"quoted" \\ back\x00slash <b>&amp;</b>  ')
    assert Turn.objects.get().q == '  tab\there\n"quoted" \\ back\ufffdslash <b>&amp;</b>  '
    page = owner_client.get(reverse("session", args=[session.pk])).content.decode()
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in page


def test_the_first_message_begins_a_session_and_sending_it_twice_begins_one(owner_client: Client) -> None:
    message = {"text": "Hello", "client_key": "first"}
    answer = owner_client.post(reverse("begin"), message, headers=HTMX)
    assert answer["HX-Redirect"] == owner_client.post(reverse("begin"), message)["Location"]
    session = Session.objects.get()
    assert answer["HX-Redirect"] == f"/sessions/{session.pk}/#turn-0"


def test_the_same_key_of_two_people_begins_two_sessions(owner_client: Client, other_client: Client) -> None:
    for client in (owner_client, other_client):
        assert client.post(reverse("begin"), {"text": "Hello", "client_key": "first"}).status_code == 302
    assert Session.objects.count() == 2
    assert Session.objects.values("owner").distinct().count() == 2


def test_an_empty_first_message_begins_nothing(owner_client: Client) -> None:
    assert owner_client.post(reverse("begin"), {"text": " ", "client_key": "first"}).status_code == 422
    assert not Session.objects.exists()


def test_tools_are_switched_with_the_message(owner_client: Client, session: Session) -> None:
    say(owner_client, session, "Look it up", tools="1")
    assert Turn.objects.get().mode == "agentic"
    say(owner_client, session, "Thank you", "key-2")
    assert Turn.objects.get(turn_index=1).mode == "chat"


# --- Bells ----------------------------------------------------------------------------------------------------


def test_danger_is_answered_with_help_lines_and_its_words_are_on_no_page(
    owner_client: Client, owner: User, session: Session
) -> None:
    say(owner_client, session, "Hello")
    page = say(owner_client, session, CRISIS, "key-2").content.decode()
    assert "I am glad you said this" in page
    assert "canary" not in page
    assert BellEvent.objects.get().level == "hard"
    again = owner_client.get(reverse("session", args=[session.pk])).content.decode()
    assert "I am glad you said this" in again
    assert "canary" not in again
    assert Turn.objects.count() == 1


def test_help_lines_are_large_targets_of_the_persons_country(
    owner_client: Client, owner: User, session: Session
) -> None:
    from conversations.services import profile_of

    profile_of(owner)
    owner.profile.country = "US"
    owner.profile.save()
    page = say(owner_client, session, CRISIS).content.decode()
    assert 'href="tel:988"' in page
    assert 'href="sms:' in page
    assert 'href="tel:911"' in page


def test_once_the_talk_goes_on_the_card_is_a_small_marker_in_its_place(
    owner_client: Client, session: Session
) -> None:
    say(owner_client, session, "Hello")
    say(owner_client, session, CRISIS, "key-2")
    say(owner_client, session, "My sister is here now", "key-3")
    page = owner_client.get(reverse("session", args=[session.pk])).content.decode()
    assert "I am glad you said this" not in page
    assert page.index("turn-0") < page.index("bell-marker") < page.index("turn-1")


def test_danger_as_the_first_words_of_all_leads_to_the_card(owner_client: Client) -> None:
    answer = owner_client.post(reverse("begin"), {"text": CRISIS, "client_key": "first"}, headers=HTMX)
    assert "I am glad you said this" in owner_client.get(answer["HX-Redirect"]).content.decode()


def test_without_javascript_danger_leads_to_the_card(owner_client: Client, session: Session) -> None:
    answer = say(owner_client, session, CRISIS, htmx=False)
    assert "I am glad you said this" in owner_client.get(answer["Location"]).content.decode()


# --- Answers --------------------------------------------------------------------------------------------------


@pytest.fixture
def turn(session: Session) -> Turn:
    return told(session, "Hi", "Second answer", attempt=2)


def test_there_is_one_answer_to_flip_to_and_flipping_shows_it(owner_client: Client, turn: Turn) -> None:
    for number, text in ((1, "First answer"), (2, "Second answer")):
        Attempt.objects.create(turn=turn, number=number, a=text, status="complete")
    page = owner_client.get(reverse("turn", args=[turn.pk]), headers=HTMX).content.decode()
    assert "2 of 2" in page
    page = owner_client.post(reverse("turn-choose", args=[turn.pk, 1]), headers=HTMX).content.decode()
    assert "1 of 2" in page
    assert "First answer" in page
    assert owner_client.post(reverse("turn-choose", args=[turn.pk, 9]), headers=HTMX).status_code == 404


def test_one_answer_alone_is_not_flipped(owner_client: Client, turn: Turn) -> None:
    Attempt.objects.create(turn=turn, number=2, a="Second answer", status="complete")
    assert (
        b"Answers to choose among"
        not in owner_client.get(reverse("turn", args=[turn.pk]), headers=HTMX).content
    )


def test_another_answer_is_asked_for_and_waited_for(owner_client: Client, turn: Turn) -> None:
    page = owner_client.post(reverse("turn-retry", args=[turn.pk]), headers=HTMX).content.decode()
    assert "sse-connect" in page
    turn.refresh_from_db()
    assert turn.status == "pending"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("timeout", "took too long"),
        ("unreachable", "could not be reached"),
        ("rate_limited", "too many"),
        ("something-new", "did not answer"),
    ],
)
def test_a_failed_answer_says_what_happened_what_is_kept_and_what_to_do(
    owner_client: Client, turn: Turn, error: str, sentence: str
) -> None:
    Turn.objects.update(status="failed", a="", error=error)
    page = owner_client.get(reverse("turn", args=[turn.pk]), headers=HTMX).content.decode()
    assert sentence in page
    assert "Your message is kept" in page
    assert "Try again" in page


def test_an_answer_is_stopped(owner_client: Client, turn: Turn) -> None:
    Turn.objects.update(status="pending", a="")
    assert owner_client.post(reverse("turn-stop", args=[turn.pk]), headers=HTMX).status_code == 204
    turn.refresh_from_db()
    assert turn.status == "stopped"


def test_what_was_drawn_on_is_shown_dated_and_linked(
    owner_client: Client, turn: Turn, session: Session
) -> None:
    Turn.objects.update(
        recalled=[
            {
                "node_id": "1",
                "session_id": str(session.pk),
                "turn_index": 4,
                "occurred_at": "2025-05-12T10:00:00+00:00",
                "title": "your sister's move",
                "snippet": "She leaves on Friday.",
                "why": "the same place",
            }
        ]
    )
    page = owner_client.get(reverse("session", args=[session.pk])).content.decode()
    assert f'href="/sessions/{session.pk}/?at=4#turn-4"' in page
    assert "12 May 2025" in page
    panel = owner_client.get(reverse("turn-drawn", args=[turn.pk]), headers=HTMX).content.decode()
    assert "She leaves on Friday." in panel
    assert "the same place" in panel


def test_nothing_drawn_on_shows_no_chip(owner_client: Client, turn: Turn) -> None:
    assert b"chips" not in owner_client.get(reverse("turn", args=[turn.pk]), headers=HTMX).content


def test_an_earlier_message_said_differently_begins_a_conversation_that_shares_what_came_before(
    owner_client: Client, owner: User, session: Session, turn: Turn
) -> None:
    Session.objects.update(next_index=2, title="Garden")
    Turn.objects.create(
        session=session, owner=owner, turn_index=1, q="Beans", a="Good", status="complete", client_key="k2"
    )
    edit = owner_client.get(reverse("turn-edit", args=[session.pk, 1]), headers=HTMX)
    assert b">Beans</textarea>" in edit.content
    answer = owner_client.post(
        reverse("turn-fork", args=[session.pk, 1]), {"text": "Peas", "client_key": "k3"}, headers=HTMX
    )
    forked = Session.objects.get(forked_from=session)
    assert answer["HX-Redirect"] == f"/sessions/{forked.pk}/#turn-1"
    page = owner_client.get(answer["HX-Redirect"]).content.decode()
    assert ">Hi</div>" in page
    assert ">Peas</div>" in page
    assert ">Beans</div>" not in page
    assert session.turns.count() == 2
