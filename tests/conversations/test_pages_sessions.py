"""The list of sessions, one session, search, settings, imports, errors: what people see."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from knox.models import AuthToken

from conversations.models import ImportedChat, ImportJob, Session, Turn
from conversations.timeline import gap_in_words, greeting, grouped
from safety.models import BellEvent

NOW = datetime(2026, 11, 18, 15, tzinfo=UTC)  # a Wednesday


def talk(owner: User, title: str, *said: datetime, **more: object) -> Session:
    session = Session.objects.create(
        owner=owner, title=title, next_index=len(said), last_turn_at=said[-1] if said else NOW, **more
    )
    for index, at in enumerate(said):
        Turn.objects.create(
            session=session,
            owner=owner,
            turn_index=index,
            q=f"Question {index} of {title}",
            a=f"Answer {index}",
            status="complete",
            client_key=str(index),
            created_at=at,
        )
    return session


def test_sessions_are_listed_by_recency_under_words_for_it(owner: User) -> None:
    ages = {"a": 0, "b": 1, "c": 3, "d": 10, "e": 40, "f": 400}
    sessions = [talk(owner, name, NOW - timedelta(days=days)) for name, days in ages.items()]
    sessions[4].pinned = True
    groups = [(group.name, [one.title for one in group.sessions]) for group in grouped(sessions, NOW)]
    assert groups == [
        ("Today", ["a"]),
        ("Yesterday", ["b"]),
        ("This week", ["c"]),
        ("November", ["d"]),
        ("Pinned", ["e"]),
        ("October 2025", ["f"]),
    ]


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (timedelta(minutes=30), ""),
        (timedelta(hours=5), "five hours later"),
        (timedelta(days=1), "the next day"),
        (timedelta(days=3), "three days later"),
        (timedelta(days=21), "three weeks later"),
        (timedelta(days=92), "three months later"),
        (timedelta(days=800), "two years later"),
    ],
)
def test_a_gap_is_said_in_words(later: timedelta, words: str) -> None:
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert gap_in_words(start, start + later) == words


@pytest.mark.parametrize(
    ("hour", "words"),
    [(3, "You are up late"), (8, "Good morning"), (14, "Good afternoon"), (20, "Good evening")],
)
def test_the_greeting_knows_the_hour(hour: int, words: str) -> None:
    assert greeting(NOW.replace(hour=hour)) == words


def test_a_session_shows_its_days_and_the_weeks_between(owner_client: Client, owner: User) -> None:
    session = talk(owner, "Garden", NOW - timedelta(days=22), NOW - timedelta(days=1))
    page = owner_client.get(reverse("session", args=[session.pk])).content.decode()
    assert "Tuesday, 27 October 2026" in page
    assert "three weeks later" in page


def test_a_long_session_shows_its_end_and_a_link_opens_it_around_a_turn(
    owner_client: Client, owner: User
) -> None:
    session = talk(owner, "Long", *(NOW + timedelta(minutes=n) for n in range(100)))
    address = reverse("session", args=[session.pk])
    end = owner_client.get(address).content.decode()
    assert 'id="turn-99"' in end
    assert 'id="turn-10"' not in end
    assert "?at=59#turn-59" in end
    middle = owner_client.get(f"{address}?at=30").content.decode()
    assert 'id="turn-30"' in middle
    assert 'id="turn-99"' not in middle
    assert 'name="windowed"' in middle
    for nonsense in ("x", "-1", "9" * 30, "²"):
        assert owner_client.get(address, {"at": nonsense}).status_code == 200


def test_times_are_the_persons_own(owner_client: Client, owner: User) -> None:
    session = talk(owner, "Late", datetime(2026, 11, 18, 23, 30, tzinfo=UTC))
    owner_client.post(reverse("settings"), {"time_zone": "Europe/Athens", "country": "", "imprint": ""})
    page = owner_client.get(reverse("session", args=[session.pk])).content.decode()
    assert "Thursday, 19 November 2026" in page
    assert ">01:30</time>" in page


def test_signing_in_takes_the_browsers_time_zone_the_first_time_and_keeps_the_persons_choice_after(
    client: Client, owner: User
) -> None:
    credentials = {"login": "owner", "password": "correct horse battery"}
    client.post("/accounts/login/", {**credentials, "time_zone": "Asia/Tokyo"})
    assert client.session["time_zone"] == "Asia/Tokyo"
    client.post("/accounts/logout/")
    client.post("/accounts/login/", {**credentials, "time_zone": "Europe/Paris"})
    assert client.session["time_zone"] == "Asia/Tokyo"


def test_a_time_zone_that_is_none_is_not_believed(client: Client, owner: User) -> None:
    client.post(
        "/accounts/login/", {"login": "owner", "password": "correct horse battery", "time_zone": "../etc"}
    )
    assert client.session["time_zone"] == "UTC"


def test_rename_pin_and_delete(owner_client: Client, session: Session) -> None:
    owner_client.post(reverse("session-rename", args=[session.pk]), {"title": " Garden "})
    owner_client.post(reverse("session-pin", args=[session.pk]))
    session.refresh_from_db()
    assert (session.title, session.pinned) == ("Garden", True)
    assert b"Pinned" in owner_client.get("/").content
    assert b"Delete it" in owner_client.get(reverse("session-delete", args=[session.pk])).content
    answer = owner_client.post(reverse("session-delete", args=[session.pk]), follow=True)
    assert b"The conversation is deleted" in answer.content
    assert not Session.objects.exists()


def test_a_newcomer_is_offered_ways_to_begin_and_somebody_known_is_met_where_they_left_off(
    owner_client: Client, owner: User
) -> None:
    assert b"Bring your chats along" in owner_client.get("/").content
    session = talk(owner, "Garden", NOW)
    page = owner_client.get("/").content.decode()
    assert "Summarise what we talked about lately" in page
    assert f'href="/sessions/{session.pk}/#turn-0"' in page


def test_what_rang_a_bell_is_not_quoted_back_on_the_first_page(owner_client: Client, owner: User) -> None:
    session = talk(owner, "Hard", NOW)
    BellEvent.objects.create(owner=owner, session_id=session.pk, after_index=0, level="soft", reason="x")
    assert b"Question 0" not in owner_client.get("/").content


@pytest.mark.parametrize("address", ["home", "session-list", "search"])
def test_twice_the_sessions_cost_no_more_queries(owner_client: Client, owner: User, address: str) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert owner_client.get(reverse(address), {"q": "Question"}).status_code == 200
        return len(captured)

    for n in range(8):
        talk(owner, f"One {n}", NOW)
    few = queries()
    for n in range(8):
        talk(owner, f"Two {n}", NOW)
    assert queries() <= few


def test_twice_the_turns_cost_no_more_queries(owner_client: Client, owner: User) -> None:
    def queries(turns: int) -> int:
        session = talk(owner, f"{turns}", *(NOW + timedelta(minutes=n) for n in range(turns)))
        with CaptureQueriesContext(connection) as captured:
            assert owner_client.get(reverse("session", args=[session.pk])).status_code == 200
        return len(captured)

    assert queries(20) <= queries(10)


def test_a_token_is_shown_once_and_can_be_revoked_by_its_owner_alone(
    owner_client: Client, other_client: Client, owner: User
) -> None:
    page = owner_client.post(reverse("token-create")).content.decode()
    token = AuthToken.objects.get(user=owner)
    shown = page.split("<pre")[1].split("<code>")[1].split("</code>")[0]
    assert shown.startswith(token.token_key)
    assert shown not in owner_client.get(reverse("settings")).content.decode()
    assert other_client.post(reverse("token-revoke", args=[token.token_key])).status_code == 404
    owner_client.post(reverse("token-revoke", args=[token.token_key]))
    assert not AuthToken.objects.exists()


def test_settings_refuse_a_time_zone_that_is_none(owner_client: Client) -> None:
    assert owner_client.post(reverse("settings"), {"time_zone": "Mars/Olympus"}).status_code == 422


def test_an_import_in_progress_shows_how_far_it_is_and_asks_again(owner_client: Client, owner: User) -> None:
    job = ImportJob.objects.create(
        owner=owner, file_name="chats.zip", size=1000, done_bytes=400, state="running"
    )
    page = owner_client.get(reverse("import", args=[job.pk])).content.decode()
    assert 'max="1000" value="400"' in page
    assert 'hx-trigger="every 1s"' in page


def test_a_finished_import_reports_on_each_chat_and_stops_asking(owner_client: Client, owner: User) -> None:
    job = ImportJob.objects.create(owner=owner, file_name="chats.zip", size=10, done_bytes=10, state="done")
    session = talk(owner, "Garden", NOW)
    ImportedChat.objects.create(
        job=job, position=0, title="Garden", outcome="imported", turns_added=1, session=session
    )
    ImportedChat.objects.create(
        job=job, position=1, title="Odd", outcome="failed", reason="No messages in it."
    )
    page = owner_client.get(reverse("import", args=[job.pk])).content.decode()
    assert "every 1s" not in page
    assert f'href="/sessions/{session.pk}/"' in page
    assert "No messages in it." in page
    assert "<strong>1</strong> imported" in page


def test_an_import_that_found_nothing_does_not_say_success(owner_client: Client, owner: User) -> None:
    job = ImportJob.objects.create(owner=owner, file_name="empty.json", size=10, done_bytes=10, state="done")
    assert b"No chat was found" in owner_client.get(reverse("import", args=[job.pk])).content


def test_an_upload_begins_an_import(owner_client: Client, owner: User, settings, tmp_path) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path},
        },
    }
    answer = owner_client.post(reverse("imports"), {"upload": SimpleUploadedFile("chats.json", b"[]")})
    job = ImportJob.objects.get(owner=owner)
    assert answer["Location"] == reverse("import", args=[job.pk])


def test_an_upload_that_is_too_large_is_refused_in_words(owner_client: Client, settings) -> None:
    settings.IMPORT_MAX_BYTES = 1
    answer = owner_client.post(reverse("imports"), {"upload": SimpleUploadedFile("chats.json", b"[]")})
    assert answer.status_code == 422
    assert b"Nothing of it was kept" in answer.content
    assert not ImportJob.objects.exists()


def test_an_empty_upload_is_refused_in_words(owner_client: Client) -> None:
    answer = owner_client.post(reverse("imports"), {"upload": SimpleUploadedFile("chats.json", b"")})
    assert answer.status_code == 422
    assert b"empty" in answer.content


def test_about_says_which_model_and_which_safety_layer_are_at_work(owner_client: Client) -> None:
    from conversations.llm import describe
    from safety.screening import detector_version

    page = owner_client.get(reverse("about")).content.decode()
    assert describe().name in page
    assert detector_version() in page


def test_the_welcome_link_makes_the_first_owner_once(client: Client, db: None) -> None:
    from neuron_site.invitation import token

    address = reverse("welcome", args=[token()])
    assert client.get(reverse("welcome", args=["wrong"])).status_code == 404
    assert client.get(address).status_code == 200
    assert client.post(address, {"username": "ada", "password": "short"}).status_code == 422
    answer = client.post(
        address, {"username": "ada", "password": "correct horse battery", "time_zone": "Asia/Tokyo"}
    )
    assert answer["Location"] == "/"
    assert User.objects.get().is_superuser
    assert client.get("/").status_code == 200
    assert client.session["time_zone"] == "Asia/Tokyo"
    assert Client().get(address).status_code == 404
    assert Client().post(address, {"username": "eve", "password": "correct horse battery"}).status_code == 404


def test_signing_up_is_closed_until_the_operator_opens_it(client: Client, db: None, settings) -> None:
    settings.SIGNUP_OPEN = False
    assert b"Not open to everybody" in client.get("/accounts/signup/").content
    settings.SIGNUP_OPEN = True
    assert b"Make the account" in client.get("/accounts/signup/").content


def test_the_account_pages_wear_our_look(client: Client, owner_client: Client) -> None:
    for address in ("/accounts/login/", "/accounts/password/reset/"):
        assert b"neuron." in client.get(address).content
    for address in ("/accounts/logout/", "/accounts/password/change/"):
        assert b"Neuron" in owner_client.get(address).content


def test_a_page_without_its_token_says_what_to_do(owner: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post(reverse("begin"), {"text": "Hello", "client_key": "k"})
    assert answer.status_code == 403
    assert b"This page was open too long" in answer.content
    fragment = client.post(reverse("begin"), {"text": "Hello"}, headers={"HX-Request": "true"})
    assert b"Your words are kept" in fragment.content


def test_too_much_at_once_is_413(owner_client: Client) -> None:
    answer = owner_client.post(reverse("begin"), {"text": "x" * 3_000_000, "client_key": "k"})
    assert answer.status_code == 413
    assert b"too much at once" in answer.content


def test_only_those_who_look_after_neuron_are_led_to_the_review(
    owner_client: Client, steward_client: Client
) -> None:
    assert b"/admin/" not in owner_client.get("/").content
    assert b"/admin/" in steward_client.get("/").content


@time_machine.travel(NOW, tick=False)
def test_the_list_goes_on_where_the_side_ends(owner_client: Client, owner: User) -> None:
    for n in range(45):
        talk(owner, f"Talk {n:02}", NOW - timedelta(days=n))
    page = owner_client.get("/").content.decode()
    assert "Talk 39" in page
    assert "Talk 40" not in page
    older = owner_client.get(reverse("older"), headers={"HX-Request": "true"}).content.decode()
    assert "Talk 40" in older
    assert "Talk 39" not in older
