"""Who sees what: one's own pages, 404 for everybody else's, and the sign-in page for nobody in particular."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations.models import ImportJob, Session, Turn
from tests.conversations.talk import told


@pytest.fixture
def turn(session: Session) -> Turn:
    return told(session, "The canary sang.", "It did.")


@pytest.fixture
def job(owner: User) -> ImportJob:
    return ImportJob.objects.create(owner=owner, file_name="export.json", size=10)


Addresses = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def of_the_owner(session: Session, turn: Turn, job: ImportJob) -> list[tuple[str, str]]:
    """Every address that names something of the owner's, with its method."""
    return [
        ("get", reverse("session", args=[session.pk])),
        ("get", reverse("session-delete", args=[session.pk])),
        ("post", reverse("session-delete", args=[session.pk])),
        ("post", reverse("session-rename", args=[session.pk])),
        ("post", reverse("session-pin", args=[session.pk])),
        ("post", reverse("turn-post", args=[session.pk])),
        ("get", reverse("turn-edit", args=[session.pk, 0])),
        ("post", reverse("turn-fork", args=[session.pk, 0])),
        ("get", reverse("turn", args=[turn.pk])),
        ("get", reverse("turn-stream", args=[turn.pk])),
        ("post", reverse("turn-stop", args=[turn.pk])),
        ("post", reverse("turn-retry", args=[turn.pk])),
        ("post", reverse("turn-choose", args=[turn.pk, 1])),
        ("get", reverse("turn-drawn", args=[turn.pk])),
        ("get", reverse("import", args=[job.pk])),
    ]


OPEN_PAGES = [
    "home",
    "session-list",
    "older",
    "search",
    "imports",
    "settings",
    "data",
    "data-export",
    "data-memory",
    "about",
]


def test_the_owner_sees_every_page(owner_client: Client, of_the_owner: list[tuple[str, str]]) -> None:
    for method, address in of_the_owner:
        if method == "get":
            assert owner_client.get(address, follow=True).status_code == 200, address


@pytest.mark.parametrize("who", ["other_client", "steward_client"])
def test_somebody_elses_is_not_found_whatever_is_tried(
    who: str, request: pytest.FixtureRequest, of_the_owner: list[tuple[str, str]], turn: Turn
) -> None:
    client: Client = request.getfixturevalue(who)
    for method, address in of_the_owner:
        answer = getattr(client, method)(address, {"text": "Hello", "client_key": "mine", "title": "Taken"})
        assert answer.status_code == 404, address
        assert b"canary" not in answer.content
    turn.refresh_from_db()
    assert (turn.session.title, turn.status, turn.session.turns.count()) == ("", "complete", 1)


@pytest.mark.parametrize("who", ["owner_client", "other_client", "steward_client"])
def test_the_common_pages_are_open_to_each_and_hold_nothing_of_the_others(
    who: str, request: pytest.FixtureRequest, turn: Turn
) -> None:
    client: Client = request.getfixturevalue(who)
    for name in OPEN_PAGES:
        answer = client.get(reverse(name))
        assert answer.status_code == 200, name
        assert (b"canary" in b"".join(answer)) <= (who == "owner_client"), name


def test_nobody_is_sent_to_sign_in_and_back(client: Client, of_the_owner: list[tuple[str, str]]) -> None:
    addresses = [
        address for method, address in of_the_owner if method == "get" and not address.endswith("stream")
    ]
    for address in [*addresses, *(reverse(name) for name in OPEN_PAGES)]:
        answer = client.get(address)
        assert answer.status_code == 302, address
        assert answer["Location"].startswith("/accounts/login/?next=%2F"), address


def test_a_fragment_of_an_expired_sign_in_leads_the_whole_page_to_sign_in(
    client: Client, session: Session
) -> None:
    answer = client.post(
        reverse("turn-post", args=[session.pk]),
        {"text": "Hello", "client_key": "k"},
        headers={"HX-Request": "true", "Referer": f"http://testserver/sessions/{session.pk}/"},
    )
    assert answer.status_code == 401
    assert answer["HX-Redirect"] == f"/accounts/login/?next=%2Fsessions%2F{session.pk}%2F"


def test_another_site_cannot_choose_where_sign_in_leads(client: Client, session: Session) -> None:
    answer = client.post(
        reverse("turn-post", args=[session.pk]),
        headers={"HX-Request": "true", "Referer": "https://elsewhere.example/x"},
    )
    assert answer["HX-Redirect"] == "/accounts/login/?next=%2F"


def test_private_pages_are_kept_by_no_cache(owner_client: Client, session: Session) -> None:
    for address in ("/", reverse("session", args=[session.pk]), "/settings/", "/search/?q=x"):
        assert "no-store" in owner_client.get(address)["Cache-Control"]


def test_what_never_was_is_not_found(owner_client: Client) -> None:
    answer = owner_client.get(reverse("session", args=[uuid4()]))
    assert answer.status_code == 404
    assert b"There is nothing here" in answer.content


def test_no_page_asks_for_anything_inline(owner_client: Client, session: Session, turn: Turn) -> None:
    for address in (
        "/",
        reverse("session", args=[session.pk]),
        "/settings/",
        "/import/",
        "/about/",
        "/search/?q=canary",
    ):
        page = owner_client.get(address).content.decode()
        assert " style=" not in page, address
        assert "<style" not in page, address
        assert " on" + "click=" not in page, address
        assert 'src="http' not in page, address
