"""Letters through a real SMTP server: one for a person and period under every fault, and nothing in them that was not
wished for."""

import os
import re
import signal
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from conversations.letters import sending
from conversations.letters.models import Digest, LetterPreference
from conversations.models import Session
from conversations.services import delete_session, profile_of
from conversations.themes import kept, runs
from tests.conftest import hashed_password
from tests.conversations.themed import remember_topics
from tests.mail_server import MailServer

pytestmark = pytest.mark.usefixtures("built_in")

# The corpus ends on Sunday, 30 November 2025.
SUNDAY = datetime(2025, 11, 30, 21, 30, tzinfo=UTC)
WEEK = timedelta(days=7)


@pytest.fixture
def sessions(owner: User) -> list[Session]:
    return remember_topics(owner, ("garden", "guitar", "sleep"), heavy="sleep")


@pytest.fixture
def preference(owner: User, sessions: list[Session]) -> LetterPreference:
    """Every Sunday at nine in the evening, Greenwich."""
    return wished(owner)


def wished(owner: User, **values: object) -> LetterPreference:
    preference = sending.preference_of(owner)
    chosen = {"rhythm": "weekly", "weekday": 6, "hour": 21, "address": "owner@example.org"} | values
    chosen |= {"confirmed_address": chosen["address"]}
    for name, value in chosen.items():
        setattr(preference, name, value)
    return sending.wish(preference=preference, now=SUNDAY - 4 * WEEK)


def run_all(now: datetime) -> None:
    """What beat and the workers do at this moment."""
    sending.sweep(now=now)
    for digest in Digest.objects.abandoned(now):
        sending.deliver(digest.pk, now=now)


def body(server: MailServer, kind: str = "plain") -> str:
    part = server.accepted[-1].get_body((kind,))
    assert part is not None
    return str(part.get_content())


# --- What it says -----------------------------------------------------------------------------------------------


def test_a_letter_tells_what_moved_with_links_and_without_a_word_that_was_said(
    owner: User, preference: LetterPreference, mail_server: MailServer, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://neuron.example"
    run_all(SUNDAY)
    (message,) = mail_server.accepted
    assert message["Subject"] == "Your week with Neuron"
    assert message["To"] == "owner@example.org"
    text, html = body(mail_server), body(mail_server, "html")
    guitar = next(theme for theme in kept.themes_of(owner) if "mandolin" in theme.content)
    for form in (text, html):
        assert f"https://neuron.example/themes/{guitar.pk}/" in form
        assert guitar.label in form
        for turn in owner.turns.all():
            for sentence in turn.q.split(". "):
                assert sentence not in form
    assert Digest.objects.get().state == "sent"


def test_quotes_are_in_it_only_when_they_were_wished_for_and_never_of_what_rang_softly(
    owner: User, preference: LetterPreference, mail_server: MailServer
) -> None:
    wished(owner, with_quotes=True, rhythm="monthly", day=28, hour=9)
    LetterPreference.objects.update(since=SUNDAY - 10 * WEEK)
    run_all(SUNDAY)
    text = body(mail_server)
    quoted = [line.strip().strip('"') for line in text.splitlines() if line.startswith('  "')]
    assert quoted
    said = {turn.q: turn.action for turn in owner.turns.all()}
    for quote in quoted:
        assert [action for q, action in said.items() if quote in q] == ["pass"]


def test_what_was_heavy_is_told_of_gently_and_not_named(
    owner: User, sessions: list[Session], mail_server: MailServer
) -> None:
    wished(owner, rhythm="monthly", day=28, hour=9)
    LetterPreference.objects.update(since=SUNDAY - 10 * WEEK)
    run_all(SUNDAY)
    text = body(mail_server)
    sleep = next(
        theme
        for theme in kept.themes_of(owner)
        if theme.edges_out.filter(target__content__contains="ceiling").exists()
    )
    assert sleep.label not in text
    assert "Some of what you told me was heavy" in text


def test_injection_in_names_is_inert(
    owner: User, preference: LetterPreference, mail_server: MailServer
) -> None:
    runs.refresh(owner=owner)
    evil = 'Songs\r\nBcc: all@evil.example\r\n\r\n<script>alert(1)</script> [x](javascript:1) {{ 7|add:"7" }}'
    for theme in kept.themes_of(owner):
        kept.rename(theme=theme, name=evil)
    Session.objects.update(title=evil)
    User.objects.update(first_name=evil[:100])
    run_all(SUNDAY)
    (message,) = mail_server.accepted
    assert message["Bcc"] is None
    assert set(message.keys()) >= {"Subject", "To", "List-Unsubscribe"}
    assert "evil.example" not in str(message["Subject"])
    html = body(mail_server, "html")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "{{ 7|add" in html.replace("&quot;", '"')


# --- One for a period -------------------------------------------------------------------------------------------


def test_two_beats_and_two_workers_send_one(preference: LetterPreference, mail_server: MailServer) -> None:
    for minute in range(3):
        run_all(SUNDAY + timedelta(minutes=minute))
        run_all(SUNDAY + timedelta(minutes=minute))
    assert len(mail_server.accepted) == 1
    assert Digest.objects.count() == 1
    digest = Digest.objects.get()
    assert not sending.deliver(digest.pk, now=SUNDAY)


def test_a_letter_that_another_worker_writes_is_left_alone(
    preference: LetterPreference, mail_server: MailServer
) -> None:
    sending.sweep(now=SUNDAY)
    digest = Digest.objects.get()
    Digest.objects.update(state="writing", tries=1, lease_until=SUNDAY + timedelta(minutes=5))
    assert not sending.deliver(digest.pk, now=SUNDAY)
    # It died before it handed anything over: the next one sends it.
    assert sending.deliver(digest.pk, now=SUNDAY + timedelta(minutes=6))
    assert len(mail_server.accepted) == 1


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_worker_killed_after_the_server_said_yes_leaves_one_letter(
    mail_server: MailServer, transactional_db: None
) -> None:
    owner = User.objects.create(username="killed", password=hashed_password())
    remember_topics(owner, ("garden", "guitar"))
    runs.refresh(owner=owner)
    wished(owner)
    sending.sweep(now=SUNDAY)
    digest = Digest.objects.get()
    assert die_after_yes(digest.pk) == -signal.SIGKILL
    assert len(mail_server.accepted) == 1
    later = datetime.now(UTC) + timedelta(hours=1)
    digest.refresh_from_db()
    assert digest.state == "handing"
    for minute in range(3):
        sending.deliver(digest.pk, now=later + timedelta(minutes=minute))
    digest.refresh_from_db()
    assert digest.state == "unsure"
    assert len(mail_server.accepted) == 1
    assert digest in Digest.objects.for_owner(owner).to_read()


def die_after_yes(digest_id: UUID) -> int:
    """A process that delivers the letter and is killed between the server's yes and the row; how it ended."""
    import subprocess
    import sys

    from django.conf import settings
    from django.db import connection

    program = (
        "import os, signal, sys, django; django.setup()\n"
        "from datetime import datetime\n"
        "from conversations.letters import sending\n"
        "sending._settle = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sending.deliver(sys.argv[1], now=datetime.fromisoformat(sys.argv[2]))\n"
    )
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "neuron_site.settings",
        "DATABASE_URL": os.environ["DATABASE_URL"].replace(
            "/neuron?", f"/{connection.settings_dict['NAME']}?"
        ),
        "EMAIL_URL": f"smtp://{settings.EMAIL_HOST}:{settings.EMAIL_PORT}",
        "NEURON_MODEL": "",
        "PYTHONPATH": str(settings.BASE_DIR),
    }
    return subprocess.run(
        [sys.executable, "-c", program, str(digest_id), SUNDAY.isoformat()], env=environment, timeout=120
    ).returncode


def test_a_line_that_breaks_after_the_data_is_not_tried_again(
    preference: LetterPreference, mail_server: MailServer
) -> None:
    mail_server.mood = "hang_up"
    run_all(SUNDAY)
    assert Digest.objects.get().state == "unsure"
    mail_server.mood = "accept"
    run_all(SUNDAY + timedelta(hours=3))
    assert len(mail_server.accepted) == 1


def test_a_server_that_refuses_or_is_away_is_tried_again_and_given_up_in_the_end(
    preference: LetterPreference, mail_server: MailServer, settings: Settings
) -> None:
    mail_server.mood = "refuse"
    run_all(SUNDAY)
    assert Digest.objects.get().state == "waiting"
    run_all(SUNDAY + timedelta(seconds=30))
    assert Digest.objects.get().tries == 1
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    run_all(SUNDAY + timedelta(minutes=2))
    settings.EMAIL_PORT = port
    mail_server.mood = "accept"
    run_all(SUNDAY + timedelta(minutes=10))
    assert len(mail_server.accepted) == 1
    Digest.objects.update(state="waiting", tries=sending.MOST_TRIES - 1, lease_until=None)
    mail_server.mood = "refuse"
    run_all(SUNDAY + timedelta(hours=5))
    assert Digest.objects.get().state == "failed"


def test_moving_to_another_zone_brings_no_second_letter(
    owner: User, preference: LetterPreference, mail_server: MailServer
) -> None:
    for zone, hours in (("Asia/Tokyo", 3), ("America/Los_Angeles", 12), ("Pacific/Kiritimati", 20)):
        profile_of(owner)
        owner.profile.__class__.objects.update(time_zone=zone)
        for hour in range(hours):
            run_all(SUNDAY + timedelta(hours=hour))
    assert len(mail_server.accepted) == 1


def test_it_comes_at_the_hour_of_the_zone_they_are_in_now(
    owner: User, preference: LetterPreference, mail_server: MailServer
) -> None:
    profile_of(owner)
    owner.profile.__class__.objects.update(time_zone="Asia/Tokyo")
    LetterPreference.objects.update(since=SUNDAY - timedelta(days=2))
    run_all(datetime(2025, 11, 30, 11, 59, tzinfo=UTC))
    assert not mail_server.accepted
    run_all(datetime(2025, 11, 30, 12, 0, tzinfo=UTC))
    assert len(mail_server.accepted) == 1


def test_weeks_switched_off_send_one_and_an_empty_period_none(
    preference: LetterPreference, mail_server: MailServer
) -> None:
    run_all(SUNDAY - WEEK)
    assert len(mail_server.accepted) == 1
    run_all(SUNDAY + timedelta(days=2))
    assert len(mail_server.accepted) == 2
    run_all(SUNDAY + 9 * WEEK)
    assert len(mail_server.accepted) == 2
    assert Digest.objects.order_by("due_on").last().state == "empty"


def test_what_is_off_or_switched_off_meanwhile_sends_nothing(
    owner: User, preference: LetterPreference, mail_server: MailServer
) -> None:
    sending.sweep(now=SUNDAY)
    sending.stop_letters(owner_id=owner.pk)
    run_all(SUNDAY)
    run_all(SUNDAY + WEEK)
    assert not mail_server.accepted
    assert Digest.objects.get().state == "stopped"


def test_switched_on_it_begins_with_the_next_day_and_not_with_the_last(
    owner: User, sessions: list[Session], mail_server: MailServer
) -> None:
    preference = sending.preference_of(owner)
    preference.rhythm, preference.weekday, preference.hour, preference.address = (
        "weekly",
        6,
        21,
        "o@example.org",
    )
    sending.wish(preference=preference, now=SUNDAY)
    run_all(SUNDAY)
    assert not Digest.objects.exists()


# --- Without mail, on the pages, and stopping it ----------------------------------------------------------------


def test_without_a_mail_server_or_an_address_the_letter_stands_on_its_page(
    owner: User, owner_client: Client, other_client: Client, preference: LetterPreference, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = sending.NO_MAIL
    run_all(SUNDAY)
    digest = Digest.objects.get()
    assert digest.state == "shown"
    page = owner_client.get(f"/letters/{digest.pk}/").content.decode()
    theme = kept.themes_of(owner).get(pk=digest.facts[0]["theme"])
    assert theme.label in page
    assert str(digest.pk) in owner_client.get("/letters/").content.decode()
    assert other_client.get(f"/letters/{digest.pk}/").status_code == 404


def test_a_deleted_session_is_gone_from_letters_that_were(
    owner: User,
    owner_client: Client,
    preference: LetterPreference,
    sessions: list[Session],
    mail_server: MailServer,
) -> None:
    run_all(SUNDAY)
    digest = Digest.objects.get()
    names = {theme.label for theme in kept.themes_of(owner)}
    for session in sessions:
        delete_session(session=session)
    page = owner_client.get(f"/letters/{digest.pk}/").content.decode()
    assert not any(name in page for name in names)
    assert "What it spoke of is no longer kept." in page
    preview = owner_client.get("/letters/").content.decode()
    assert not any(name in preview for name in names)


def test_one_click_stops_it_without_signing_in_and_looking_does_not(
    owner: User, preference: LetterPreference, mail_server: MailServer, settings: Settings
) -> None:
    run_all(SUNDAY)
    (message,) = mail_server.accepted
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    address = message["List-Unsubscribe"].strip(" \r\n<>")
    path = address.removeprefix(settings.PUBLIC_URL)
    nobody = Client(enforce_csrf_checks=True)
    assert nobody.get(path).status_code == 200
    assert LetterPreference.objects.get().rhythm == "weekly"
    assert nobody.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert LetterPreference.objects.get().rhythm == "off"
    run_all(SUNDAY + WEEK)
    assert len(mail_server.accepted) == 1
    assert nobody.post(path[:-3] + "xx/").status_code == 404


def confirmation_path(server: MailServer, settings: Settings) -> str:
    """Where the link of the mail that asks leads."""
    link = re.search(r"http\S+/letters/confirm/\S+", body(server))
    assert link
    return link[0].removeprefix(settings.PUBLIC_URL)


def test_no_letter_goes_to_an_address_whose_holder_has_not_said_yes(
    owner: User,
    owner_client: Client,
    preference: LetterPreference,
    mail_server: MailServer,
    settings: Settings,
) -> None:
    wish = {"rhythm": "weekly", "weekday": 6, "day": 1, "hour": 21, "address": "typo@example.org"}
    answer = owner_client.post("/letters/", wish, follow=True)
    assert "A mail with a link is on its way to typo@example.org" in answer.content.decode()
    sending.send_confirmation(owner.pk)
    (asked,) = mail_server.accepted
    assert asked["To"] == "typo@example.org"
    assert owner.username not in asked.as_string()
    sending.deliver(sending.ask_now(owner=owner, now=SUNDAY).pk, now=SUNDAY)
    assert len(mail_server.accepted) == 1
    assert Digest.objects.get().state == "shown"

    path, nobody = confirmation_path(mail_server, settings), Client()
    assert nobody.get(path).status_code == 200
    assert LetterPreference.objects.get().confirmed_address == "owner@example.org"
    assert "Thank you" in nobody.post(path).content.decode()
    sending.deliver(sending.ask_now(owner=owner, now=SUNDAY).pk, now=SUNDAY)
    assert [message["To"] for message in mail_server.accepted] == ["typo@example.org"] * 2


def test_a_link_confirms_its_own_address_alone_and_runs_out(
    owner: User,
    owner_client: Client,
    preference: LetterPreference,
    mail_server: MailServer,
    settings: Settings,
) -> None:
    LetterPreference.objects.update(address="first@example.org")
    sending.send_confirmation(owner.pk)
    path = confirmation_path(mail_server, settings)
    LetterPreference.objects.update(address="second@example.org")
    assert "Another address" in Client().post(path).content.decode()
    assert LetterPreference.objects.get().confirmed_address == "owner@example.org"
    assert Client().get(path[:-4] + "xxx/").status_code == 404
    with time_machine.travel(datetime.now(UTC) + timedelta(days=8)):
        assert Client().get(path).status_code == 404


def test_the_confirmation_is_asked_for_once_a_minute_and_again_when_the_server_refused(
    owner_client: Client, owner: User, preference: LetterPreference, mail_server: MailServer
) -> None:
    LetterPreference.objects.update(address="me@example.org")
    preference.refresh_from_db()
    assert sending.ask_to_confirm(preference=preference)
    assert not sending.ask_to_confirm(preference=preference)
    assert "not confirmed" in owner_client.get("/letters/").content.decode()
    answer = owner_client.post("/letters/confirm/", follow=True)
    assert "wait a minute" in answer.content.decode()
    mail_server.mood = "refuse"
    sending.send_confirmation(owner.pk)
    assert sending.ask_to_confirm(preference=preference)


def test_the_page_keeps_what_is_wished_and_one_can_be_sent_now(
    owner: User, owner_client: Client, sessions: list[Session], mail_server: MailServer
) -> None:
    wish = {"rhythm": "weekly", "weekday": 2, "day": 1, "hour": 8, "address": "me@example.org"}
    assert owner_client.post("/letters/", wish).status_code == 302
    assert LetterPreference.objects.get().next_due_at is not None
    assert owner_client.post("/letters/", wish | {"hour": 24}).status_code == 422
    assert owner_client.post("/letters/", wish | {"address": "me@example.org\nBcc: x@y.z"}).status_code == 422
    sending.confirm_address(owner_id=owner.pk, address="me@example.org")
    digest = sending.ask_now(owner=owner, now=SUNDAY)
    with pytest.raises(sending.AskedTooOften):
        sending.ask_now(owner=owner, now=SUNDAY)
    assert sending.deliver(digest.pk, now=SUNDAY)
    assert len(mail_server.accepted) == 1
    # It stands for no period: the letter of the week still comes.
    assert not Digest.objects.filter(asked=False).exists()
