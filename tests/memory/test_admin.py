"""The outbox in the admin: what is dead can be sent again."""

import uuid

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memory.models import MirrorJob

LIST = reverse("admin:memory_mirrorjob_changelist")


def job(owner: User, state: str) -> MirrorJob:
    return MirrorJob.objects.create(
        owner=owner, operation="put_node", subject_id=uuid.uuid4(), lane=uuid.uuid4(), state=state, tries=9
    )


def test_dead_jobs_are_sent_again_and_others_left(owner: User) -> None:
    owner.is_staff = owner.is_superuser = True
    owner.save()
    client = Client()
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    dead, sent = job(owner, "dead"), job(owner, "sent")
    response = client.post(
        LIST, {"action": "send_again", "_selected_action": [dead.pk, sent.pk]}, follow=True
    )
    assert "1 dead jobs are due again" in response.content.decode()
    dead.refresh_from_db()
    sent.refresh_from_db()
    assert (dead.state, dead.tries, sent.state, sent.tries) == ("waiting", 0, "sent", 9)
