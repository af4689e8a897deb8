"""Sessions, turns, imports and imprints in the admin."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations.models import Imprint, Session
from tests.conversations.test_api import answered

LOOKED_AT = ("conversations_session", "conversations_turn", "conversations_importjob", "memory_memorynode")


@pytest.fixture
def admin_client(owner: User) -> Client:
    owner.is_staff = owner.is_superuser = True
    owner.save()
    client = Client()
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_every_page_opens(admin_client: Client, session: Session) -> None:
    turn = answered(session, "How deep is the lake?", "Forty metres.")
    for name in (*LOOKED_AT, "conversations_imprint", "memory_mirrorjob", "safety_bellevent"):
        assert admin_client.get(reverse(f"admin:{name}_changelist")).status_code == 200, name
    assert (
        admin_client.get(reverse("admin:conversations_session_change", args=[session.pk])).status_code == 200
    )
    content = admin_client.get(reverse("admin:conversations_turn_change", args=[turn.pk])).content.decode()
    assert "Forty metres." in content


def test_lists_show_no_words(admin_client: Client, session: Session) -> None:
    answered(session, "How deep is the canaryword lake?", "Forty canaryword metres.")
    for name in LOOKED_AT:
        assert b"canaryword" not in admin_client.get(reverse(f"admin:{name}_changelist")).content, name


def test_what_was_said_is_looked_at_and_never_changed(admin_client: Client, session: Session) -> None:
    turn = answered(session, "How deep is the lake?", "Forty metres.")
    change = reverse("admin:conversations_turn_change", args=[turn.pk])
    assert admin_client.post(change, {"q": "other"}).status_code == 403
    assert (
        admin_client.post(
            reverse("admin:conversations_turn_delete", args=[turn.pk]), {"post": "yes"}
        ).status_code
        == 403
    )
    for name in LOOKED_AT:
        assert admin_client.get(reverse(f"admin:{name}_add")).status_code == 403
    turn.refresh_from_db()
    assert turn.q == "How deep is the lake?"


def test_an_imprint_can_be_written(admin_client: Client) -> None:
    form = {"name": "Juniper", "voice": "dry", "system_prompt": "You are Juniper."}
    assert admin_client.post(reverse("admin:conversations_imprint_add"), form).status_code == 302
    assert Imprint.objects.get(name="Juniper").voice == "dry"


def test_others_are_sent_to_sign_in(owner_client: Client) -> None:
    assert owner_client.get(reverse("admin:index")).status_code == 302
