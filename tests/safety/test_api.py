"""Bells over the API: for stewards, and for nobody else at all."""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations import receiving
from conversations.models import Session
from safety.models import BellEvent, BellReview, BellView

API = "/api/v1/bells"
CRISIS = "I am going to kill myself tonight, canaryword " + "and more words " * 10 + "tailword"


@pytest.fixture
def bell(session: Session) -> BellEvent:
    receiving.receive(session=session, text=CRISIS, client_key="k")
    return BellEvent.objects.get()


def calls(bell_id: Any) -> list[tuple[str, str, dict[str, str]]]:
    return [
        ("get", API, {}),
        ("get", f"{API}/{bell_id}", {}),
        ("post", f"{API}/{bell_id}/reviews", {"state": "resolved"}),
    ]


def test_for_others_there_is_nothing_here(
    owner_client: Client, other_client: Client, client: Client, bell: BellEvent, other: User
) -> None:
    other.is_staff = True  # staff alone is no steward
    other.save()
    for method, address, body in calls(bell.pk):
        for person in (owner_client, other_client):
            response = getattr(person, method)(address, body, content_type="application/json")
            assert response.status_code == 404
            assert response.headers["Content-Type"] == "application/problem+json"
        assert getattr(client, method)(address, body, content_type="application/json").status_code == 401
    assert not BellReview.objects.exists()
    assert not BellView.objects.exists()


def test_the_list_has_no_words_of_the_message(steward_client: Client, bell: BellEvent) -> None:
    response = steward_client.get(API)
    (listed,) = response.json()["results"]
    assert (listed["id"], listed["state"]) == (str(bell.pk), "open")
    assert b"canaryword" not in response.content


def test_opening_a_bell_is_kept(steward: User, steward_client: Client, bell: BellEvent) -> None:
    found = steward_client.get(f"{API}/{bell.pk}").json()
    assert found["person"] == "owner"
    assert "canaryword" in found["summary"]
    assert "tailword" not in str(found)
    assert found["signals"]
    view = BellView.objects.get()
    assert (view.bell, view.steward) == (bell, steward)


def test_a_review_is_appended_and_decides_the_state(steward_client: Client, bell: BellEvent) -> None:
    for state in ("acknowledged", "false_positive"):
        made = steward_client.post(
            f"{API}/{bell.pk}/reviews", {"state": state, "note": "Talked."}, "application/json"
        )
        assert (made.status_code, made.json()["steward"]) == (201, "steward")
    found = steward_client.get(f"{API}/{bell.pk}").json()
    assert found["state"] == "false_positive"
    assert [review["state"] for review in found["reviews"]] == ["acknowledged", "false_positive"]
    assert steward_client.get(f"{API}?state=open").json()["results"] == []
    assert len(steward_client.get(f"{API}?state=false_positive").json()["results"]) == 1
    assert steward_client.get(f"{API}?state=nonsense").json()["results"] == []


def test_a_bell_cannot_be_reopened_changed_or_removed(steward_client: Client, bell: BellEvent) -> None:
    assert (
        steward_client.post(f"{API}/{bell.pk}/reviews", {"state": "open"}, "application/json").status_code
        == 400
    )
    for method in ("put", "patch", "delete"):
        assert getattr(steward_client, method)(f"{API}/{bell.pk}").status_code == 405
    assert steward_client.get(f"{API}/{uuid.uuid4()}").status_code == 404


def test_a_steward_reads_no_turns(steward_client: Client, session: Session) -> None:
    assert steward_client.get(f"/api/v1/sessions/{session.pk}/turns").status_code == 404
