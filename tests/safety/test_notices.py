"""Stewards are told that a bell waits, once by each way, and never what was said."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import call_command
from pytest_django.fixtures import Settings
from pytest_httpserver import HTTPServer

from conversations import receiving
from conversations.models import Session
from safety import notices
from safety.models import BellEvent, StewardNotice
from safety.services import review_bell

CRISIS = "I am going to kill myself tonight, canaryword"
NIGHT = datetime(2026, 5, 4, 3, tzinfo=UTC)


@pytest.fixture
def bell(session: Session, steward: User) -> BellEvent:
    steward.email = "steward@neuron.example"
    steward.save()
    receiving.receive(session=session, text=CRISIS, client_key="k")
    bell = BellEvent.objects.get()
    StewardNotice.objects.update(due_at=NIGHT, created_at=NIGHT)
    return bell


@pytest.fixture
def hook(httpserver: HTTPServer, settings: Settings) -> HTTPServer:
    settings.NEURON_STEWARD_WEBHOOK = httpserver.url_for("/hook")
    return httpserver


def test_a_hard_bell_is_told_once_by_each_way_and_without_content(bell: BellEvent, hook: HTTPServer) -> None:
    hook.expect_request("/hook", method="POST").respond_with_data("")
    assert notices.sweep(now=NIGHT) == 1
    assert notices.sweep(now=NIGHT + timedelta(hours=2)) == 0
    (letter,) = mail.outbox
    assert letter.bcc == ["steward@neuron.example"]
    assert str(bell.pk) in letter.body
    ((request, _),) = hook.log
    assert json.loads(request.data)["event"] == "hard_bell"
    told = letter.subject + letter.body + request.data.decode()
    for secret in ("canaryword", "kill", "owner", bell.reason):
        assert secret not in told


def test_a_webhook_that_fails_is_tried_again_and_the_mail_is_not(bell: BellEvent, hook: HTTPServer) -> None:
    hook.expect_ordered_request("/hook").respond_with_data("", status=500)
    hook.expect_ordered_request("/hook").respond_with_data("", status=302, headers={"Location": "/elsewhere"})
    hook.expect_ordered_request("/hook").respond_with_data("")
    for hour in range(3):
        notices.sweep(now=NIGHT + timedelta(hours=hour))
    assert len(mail.outbox) == 1
    assert len(hook.log) == 3
    assert StewardNotice.objects.get().settled_at is not None


def test_a_notice_that_cannot_be_sent_is_given_up(bell: BellEvent, settings: Settings) -> None:
    settings.NEURON_STEWARD_WEBHOOK = "http://127.0.0.1:9/nobody"
    assert notices.sweep(now=NIGHT) == 0
    assert notices.sweep(now=NIGHT + timedelta(days=3)) == 1


def test_a_soft_bell_is_left_to_the_digest(session: Session) -> None:
    receiving.receive(session=session, text="I feel hopeless and worthless, I can't cope", client_key="k")
    assert BellEvent.objects.get().level == "soft"
    assert not StewardNotice.objects.exists()


def test_the_digest_comes_once_a_day_and_only_while_something_waits(bell: BellEvent, steward: User) -> None:
    notices.sweep(now=NIGHT)
    mail.outbox.clear()
    for hour in (5, 6, 9):  # eight o'clock, nine, noon
        notices.sweep(now=NIGHT + timedelta(hours=hour))
    (letter,) = mail.outbox
    assert "1 in all wait for review" in letter.body
    assert "canaryword" not in letter.body
    review_bell(bell=bell, steward=steward, state="resolved")
    notices.sweep(now=NIGHT + timedelta(days=1, hours=6))
    assert len(mail.outbox) == 1


def test_confirmed_false_positives_become_examples(steward: User, tmp_path: Path) -> None:
    for text, state in (("deadline is killing me", "false_positive"), ("other words", "resolved")):
        made = BellEvent.objects.create(level="hard", reason="plan", summary=text)
        review_bell(bell=made, steward=steward, state=state)
    said = StringIO()
    call_command("export_false_positives", stdout=said)
    (line,) = said.getvalue().splitlines()
    example = json.loads(line)
    assert (example["text"], example["cut"]) == ("deadline is killing me", False)
    call_command("export_false_positives", tmp_path / "examples.jsonl")
    assert json.loads((tmp_path / "examples.jsonl").read_text()) == example
