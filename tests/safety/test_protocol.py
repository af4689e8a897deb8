"""The public safety page, the yearly report, and the counting of referrals that were shown."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from conversations import cycle, receiving, stewardship
from conversations.models import Profile, Session
from memory.embedding import EmbedderUnavailable
from neuron_site import doctor
from safety import protocol, quality, services
from safety.models import BellEvent, Referral
from safety.resources import defaults
from safety.screening import detector_version
from tests.conversations.talk import say
from tests.scripted_provider import ScriptedProvider

HARD = "I have decided to kill myself tonight, canaryword"
WISH = "I wish I could fall asleep tonight and never wake up again"
ADDRESS = "/safety"


def text_of(client: Client, **headers: str) -> str:
    response = client.get(ADDRESS, headers=headers)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


# --- The page --------------------------------------------------------------------------------------------------


def test_everybody_sees_the_page(client: Client, owner_client: Client, steward_client: Client) -> None:
    for person in (client, owner_client, steward_client):
        content = text_of(person)
        assert "When somebody is in danger" in content
        assert person.get(ADDRESS + "/").status_code == 200
    assert client.post(ADDRESS).status_code == 405


def test_the_page_holds_protocol_layers_quality_and_help_lines(client: Client, db: None) -> None:
    content = text_of(client)
    for section in protocol.sections():
        assert section.title in content
    assert detector_version().split("+")[1] in content
    figures = quality.recorded().figures
    assert {figure.name for figure in figures} == set(quality.IN_WORDS)
    for figure in figures:
        assert figure.percent in content
        assert f"{figure.hits} of {figure.total}" in content
    for one in defaults().values():
        for number in one.emergency:
            assert number in content
    assert content.count("not verified with the provider") == sum(
        len(one.lines) for one in defaults().values() if one.country
    )
    assert "every 3 hours of continued use" in content
    assert "It says so where an account is made" in content


def test_the_page_follows_the_live_configuration(
    client: Client, db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = replace(stewardship.policies(), repeat_after=timedelta(hours=2))
    monkeypatch.setattr("conversations.protocol.policies", lambda: rules)
    monkeypatch.setattr(
        protocol, "recorded", lambda: replace(quality.recorded(), detector_version="lists-0+meaning-0-old")
    )
    content = text_of(client)
    assert "every 2 hours of continued use" in content
    assert "these figures are of lists-0+meaning-0-old" in content


def test_a_lost_embedder_is_said_on_the_page_and_by_the_doctor(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(texts: Any) -> None:
        raise EmbedderUnavailable("gone")

    assert doctor._screening().ok
    monkeypatch.setattr(protocol, "embed_packaged", gone)
    assert "The screen is degraded" in text_of(client)
    assert not doctor._screening().ok


def test_the_second_look_is_said_on_the_page(
    client: Client, db: None, settings: Settings, provider: ScriptedProvider
) -> None:
    settings.NEURON_SECOND_LOOK = True
    assert "put to the language model scripted" in text_of(client)
    settings.NEURON_SECOND_LOOK = False
    assert "no language model is asked about messages" in text_of(client)


def test_the_country_of_the_visitor_is_open(client: Client, owner_client: Client, owner: User) -> None:
    content = text_of(client, **{"Accept-Language": "de-DE"})
    assert "open> <summary>Germany" in content
    assert content.index("<summary>Germany") < content.index("<summary>Argentina")
    Profile.objects.update_or_create(owner=owner, defaults={"country": "CA"})
    assert "open> <summary>Canada" in text_of(owner_client, **{"Accept-Language": "de-DE"})


def test_the_page_is_linked_from_entrance_and_frame(
    client: Client, owner_client: Client, settings: Settings
) -> None:
    settings.SIGNUP_OPEN = True
    link = f'href="{reverse("safety")}"'
    for page in (client.get("/accounts/login/"), client.get("/accounts/signup/"), owner_client.get("/")):
        assert link in page.content.decode()


# --- Sign-up and minors ----------------------------------------------------------------------------------------


def test_the_sign_up_page_says_that_it_is_an_ai_and_takes_who_is_under_18(
    client: Client, db: None, settings: Settings
) -> None:
    settings.SIGNUP_OPEN = True
    content = client.get("/accounts/signup/").content.decode()
    assert "an AI, not with a person" in content
    assert "may not be suitable for some minors" in content
    given = {"password1": "a long enough one", "password2": "a long enough one"}
    client.post("/accounts/signup/", {**given, "username": "young", "is_minor": "on"})
    Client().post("/accounts/signup/", {**given, "username": "grown"})
    assert dict(Profile.objects.values_list("owner__username", "is_minor")) == {"young": True, "grown": False}


def test_who_said_to_be_under_18_cannot_take_it_back_but_staff_can(owner: User, owner_client: Client) -> None:
    page, given = reverse("settings"), {"time_zone": "UTC", "country": ""}
    owner_client.post(page, {**given, "is_minor": "on"})
    assert Profile.objects.get(owner=owner).is_minor
    assert 'name="is_minor"' not in owner_client.get(page).content.decode()
    owner_client.post(page, given)
    profile = Profile.objects.get(owner=owner)
    assert profile.is_minor
    admin = User.objects.create_superuser("boss", password="x")
    staff = Client()
    staff.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    address = reverse("admin:conversations_profile_change", args=[profile.pk])
    assert owner_client.post(address, {}).status_code == 302
    profile.refresh_from_db()
    assert profile.is_minor
    staff.post(address, {})
    profile.refresh_from_db()
    assert not profile.is_minor


# --- Referrals that were shown ---------------------------------------------------------------------------------


def post(client: Client, session: Session, text: str, key: str, **headers: str) -> Any:
    address = reverse("turn-post", args=[session.pk])
    return client.post(address, {"text": text, "client_key": key}, headers=headers)


def test_a_bell_is_no_referral_until_its_help_lines_are_shown(owner_client: Client, session: Session) -> None:
    receiving.receive(session=session, text=HARD, client_key="k")
    assert BellEvent.objects.count() == 1
    assert not Referral.objects.exists()
    owner_client.get(reverse("session", args=[session.pk]))
    assert Referral.objects.get().of == BellEvent.objects.get().pk


def test_a_referral_is_counted_once_however_often_it_is_seen(owner_client: Client, session: Session) -> None:
    post(owner_client, session, HARD, "k", **{"HX-Request": "true"})
    assert Referral.objects.filter(level="hard").count() == 1
    for _ in range(3):
        owner_client.get(reverse("session", args=[session.pk]))
    assert Referral.objects.count() == 1
    post(owner_client, session, HARD, "k2", **{"HX-Request": "true"})
    assert Referral.objects.count() == 2


def test_help_lines_beside_an_answer_count_once_it_is_there(
    provider: ScriptedProvider, owner_client: Client, session: Session
) -> None:
    received = receiving.receive(session=session, text=WISH, client_key="k")
    assert received.turn is not None
    assert received.turn.help_lines
    owner_client.get(reverse("session", args=[session.pk]))
    assert not Referral.objects.exists()
    cycle.answer(received.turn.pk)
    owner_client.get(reverse("turn", args=[received.turn.pk]), headers={"HX-Request": "true"})
    owner_client.get(reverse("session", args=[session.pk]))
    assert list(Referral.objects.values_list("level", "of")) == [("soft", received.turn.pk)]


def test_the_api_counts_them_too(owner_client: Client, session: Session) -> None:
    address = f"/api/v1/sessions/{session.pk}/turns"
    answer = owner_client.post(address, {"text": HARD}, content_type="application/json")
    assert answer.json()["action"] == "hard_bell"
    assert Referral.objects.get().level == "hard"


def test_plain_turns_are_no_referrals(
    provider: ScriptedProvider, owner_client: Client, session: Session
) -> None:
    say(session, "Hello there")
    owner_client.get(reverse("session", args=[session.pk]))
    assert not Referral.objects.exists()


# --- The report ------------------------------------------------------------------------------------------------


@pytest.fixture
def year_of_bells(owner: User, steward: User, session: Session) -> None:
    at = datetime(2026, 5, 4, tzinfo=UTC)
    made = [
        BellEvent.objects.create(
            owner=owner,
            session_id=session.pk,
            level=level,
            reason="plan",
            summary="canaryword",
            ideation_level=4 if level == "hard" else None,
            created_at=at,
        )
        for level in ("hard", "hard", "soft", "withheld")
    ]
    BellEvent.objects.create(owner=owner, level="hard", reason="plan", created_at=at.replace(year=2025))
    services.review_bell(bell=made[0], steward=steward, state="resolved", note="canarynote")
    services.review_bell(bell=made[1], steward=steward, state="false_positive")
    services.note_referrals(hard=[made[0].pk], soft=[made[2].pk, session.pk])
    Referral.objects.update(shown_at=at)


def report(*options: str) -> str:
    out = StringIO()
    call_command("safety_report", *options, stdout=out)
    return out.getvalue()


def test_the_report_counts_the_year_and_names_nobody(
    year_of_bells: None, owner: User, session: Session
) -> None:
    found = json.loads(report("2026", "--json"))
    expected = {
        "referrals": 3,
        "referrals_in_place": 1,
        "referrals_beside": 2,
        "hard_bells": 2,
        "soft_bells": 1,
        "withheld_replies": 1,
        "reviewed": 2,
        "resolved": 1,
        "false_positives": 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["ideation"]["some intent to act"] == 2
    assert json.loads(report("2025", "--json"))["hard_bells"] == 1
    words = report("2026")
    for section in found["protocol"]:
        assert section["title"] in words
    assert "       3 in all" in words
    bell_ids = map(str, BellEvent.objects.values_list("pk", flat=True))
    for of_somebody in ("canary", owner.username, str(session.pk), *bell_ids):
        assert of_somebody not in words
        assert of_somebody not in json.dumps(found)


def test_a_year_still_to_come_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="2999"):
        report("2999")
