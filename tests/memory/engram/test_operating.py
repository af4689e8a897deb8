"""An operator sees what is stuck and why, and sends it again: in the admin, by command, on the health page."""

import json
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from memory.engram import mirror
from memory.engram.awareness import Happening
from memory.models import MirrorJob
from neuron_site import doctor
from tests.memory.engram.conftest import Events
from tests.memory.engram.remote import Engram, FaultProxy
from tests.memory.engram.test_mirror import knowledge

PAGE = reverse("admin:memory_mirrorjob_engram")


@pytest.fixture
def operator(owner: User) -> Client:
    owner.is_staff = owner.is_superuser = True
    owner.save()
    client = Client()
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def refused(owner: User, proxy: FaultProxy, engram: Engram) -> MirrorJob:
    """A node that the remote refused for good."""
    node = knowledge(owner)
    engram.refused = {str(node.pk)}
    mirror.send_due()
    engram.refused = set()
    return MirrorJob.objects.get()


def command(*options: str) -> str:
    out = StringIO()
    call_command("mirror_engram", *options, stdout=out)
    return out.getvalue()


def test_the_page_says_what_is_stuck_and_why(operator: Client, refused: MirrorJob, events: Events) -> None:
    events.add(Happening.BELL_RUNG, level="soft")
    page = operator.get(PAGE).content.decode()
    assert "refused: HTTP 422" in page
    assert "1 refused for good" in page
    assert "bell rung: level soft" in page
    assert "closed" in page
    part = operator.get(PAGE, headers={"HX-Request": "true"}).content.decode()
    assert "refused: HTTP 422" in part
    assert "<html" not in part


def test_the_page_sends_refused_jobs_again(operator: Client, refused: MirrorJob, engram: Engram) -> None:
    answer = operator.post(PAGE, {"do": "retry"}, follow=True)
    assert "1 refused jobs are due again" in answer.content.decode()
    mirror.send_due()
    assert list(engram.nodes) == [str(refused.subject_id)]


def test_the_page_sends_at_once_what_waits_for_its_next_try(
    operator: Client, owner: User, proxy: FaultProxy, engram: Engram
) -> None:
    proxy.choose = lambda: "500"
    knowledge(owner)
    mirror.send_due()
    proxy.choose = lambda: ""
    assert mirror.send_due() == 0
    operator.post(PAGE, {"do": "send"})
    assert mirror.send_due() == 1


def test_the_page_is_for_operators(
    owner_client: Client, steward_client: Client, proxy: FaultProxy, events: Events
) -> None:
    assert owner_client.get(PAGE).status_code == 302
    assert steward_client.get(PAGE).status_code == 403
    assert steward_client.post(PAGE, {"do": "retry"}).status_code == 403


def test_the_page_says_so_without_a_remote(operator: Client, settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    assert "No remote engram is set" in operator.get(PAGE).content.decode()


def test_the_command_says_what_is_stuck_and_sends_it_again(refused: MirrorJob, engram: Engram) -> None:
    said = command()
    assert f"{refused.pk}  put_node {refused.subject_id}  dead, 1 tries: refused: HTTP 422" in said
    assert "0 wait, 0 of them failed before; 1 refused." in said
    said = command("--retry", "--send")
    assert "1 refused jobs are due again." in said
    assert "1 were sent." in said
    assert list(engram.nodes) == [str(refused.subject_id)]


def test_the_command_queues_everything_for_a_remote_that_came_later(
    owner: User, proxy: FaultProxy, engram: Engram
) -> None:
    knowledge(owner)
    MirrorJob.objects.all().delete()
    assert "1 nodes and edges were queued." in command("--everything", "--send")
    assert len(engram.nodes) == 1


def test_the_command_needs_a_remote(db: None, settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    with pytest.raises(CommandError, match="set ENGRAM_URL"):
        command()


def test_the_doctor_tells_of_refusals_and_of_an_open_breaker(
    owner: User, refused: MirrorJob, proxy: FaultProxy
) -> None:
    finding = doctor._mirror()
    assert not finding.ok
    assert "1 refused; breaker closed" in finding.detail
    command("--retry")
    proxy.choose = lambda: "503"
    for _ in range(3):
        MirrorJob.objects.update(due_at="2026-01-01T00:00:00Z")
        mirror.send_due()
    finding = doctor._mirror()
    assert (finding.ok, finding.serious) == (False, False)
    assert "breaker open, last error: unreachable: HTTP 503" in finding.detail


def test_the_health_page_tells_of_the_breaker_and_is_ready_without_the_remote(
    owner: User, client: Client, proxy: FaultProxy
) -> None:
    proxy.choose = lambda: "503"
    for _ in range(3):
        knowledge(owner)
    mirror.send_due()
    answer = client.get("/readyz")
    assert answer.status_code == 200
    told = json.loads(answer.content)["engram"]
    assert (told["breaker"], told["openings"], told["failures"]) == ("open", 1, 3)
    assert told["last_error"] == "unreachable: HTTP 503"
