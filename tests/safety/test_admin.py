"""Review in the admin: the queue, one bell, what is kept of it, and who sees nothing."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations import receiving
from conversations.models import Session
from safety.models import BellEvent, BellReview, BellView

QUEUE = reverse("admin:safety_bellevent_changelist")
WEEKS = reverse("admin:safety_bellevent_weeks")
CRISIS = "I am going to kill myself tonight, canaryword " + "and more words " * 10 + "tailword"


def rang(owner: User | None = None, **values: Any) -> BellEvent:
    standard = {"level": "hard", "reason": "plan", "summary": "canaryword", "owner": owner}
    return BellEvent.objects.create(**{**standard, **values})


def page(bell: BellEvent) -> str:
    return reverse("admin:safety_bellevent_change", args=[bell.pk])


def review(bell: BellEvent) -> str:
    return reverse("admin:safety_bellevent_review", args=[bell.pk])


@pytest.fixture
def bell(session: Session) -> BellEvent:
    receiving.receive(session=session, text=CRISIS, client_key="k", country=lambda: "US")
    return BellEvent.objects.get()


def test_the_group_is_made_with_just_the_rights_needed(db: None) -> None:
    rights = Group.objects.get(name="Stewards").permissions.values_list("content_type__app_label", "codename")
    assert set(rights) == {("safety", "view_bellevent"), ("safety", "change_bellevent")}


def test_nobody_else_sees_anything(
    owner_client: Client, client: Client, bell: BellEvent, other: User
) -> None:
    other.is_staff = True
    other.save()
    staff = Client()
    staff.force_login(other, backend="django.contrib.auth.backends.ModelBackend")
    for address in (QUEUE, WEEKS, page(bell), review(bell)):
        for person in (owner_client, client):  # not staff: asked to sign in
            assert person.get(address).status_code == 302
        response = (
            staff.post(address, {"state": "resolved"}) if address == review(bell) else staff.get(address)
        )
        assert response.status_code in (403, 404)
        assert b"canaryword" not in response.content
    assert b"Bells to review" not in staff.get(reverse("admin:index")).content
    assert not BellReview.objects.exists()
    assert not BellView.objects.exists()


def test_a_steward_sees_bells_and_nothing_else(
    steward_client: Client, session: Session, bell: BellEvent
) -> None:
    index = steward_client.get(reverse("admin:index")).content.decode()
    assert "Bells to review" in index
    assert "canaryword" not in index
    for name in ("conversations_session", "conversations_turn", "memory_memorynode", "auth_user"):
        assert steward_client.get(reverse(f"admin:{name}_changelist")).status_code == 403


def test_the_queue_is_hard_first_then_oldest_and_without_words(owner: User, steward_client: Client) -> None:
    now = timezone.now()
    soft = rang(owner, level="soft", reason="wellbeing check needed", created_at=now - timedelta(days=3))
    young = rang(owner, created_at=now - timedelta(hours=1))
    old = rang(owner, created_at=now - timedelta(hours=30))
    rang(owner, state="resolved", created_at=now - timedelta(days=9))
    response = steward_client.get(QUEUE)
    shown = [bell.pk for bell in response.context["cl"].result_list]
    assert shown == [old.pk, young.pk, soft.pk]
    content = response.content.decode()
    assert "canaryword" not in content
    assert "1 day" in content
    assert "The oldest has waited for <strong>3 days</strong>" in content
    assert "wait for review, 2 of them hard" in content


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("today", {"young", "soft", "withheld"}),
        ("late", {"old"}),
        ("seen", {"seen"}),
        ("false", {"false"}),
        ("resolved", {"resolved"}),
        ("withheld", {"withheld"}),
        ("again", {"young", "old"}),
        ("all", {"young", "old", "soft", "seen", "false", "resolved", "withheld"}),
    ],
)
def test_filters_answer_questions(
    owner: User, other: User, steward_client: Client, question: str, expected: set[str]
) -> None:
    now = timezone.now()
    old = now - timedelta(days=30)
    made = {
        "young": rang(owner),
        "old": rang(owner, created_at=now - timedelta(days=2)),
        "soft": rang(other, level="soft"),
        "seen": rang(state="acknowledged", created_at=old),
        "false": rang(state="false_positive", created_at=old),
        "resolved": rang(state="resolved", created_at=old),
        "withheld": rang(level="withheld"),
    }
    shown = {bell.pk for bell in steward_client.get(QUEUE, {"show": question}).context["cl"].result_list}
    assert shown == {made[name].pk for name in expected}


def test_a_bell_reads_like_a_form(steward_client: Client, bell: BellEvent) -> None:
    content = steward_client.get(page(bell)).content.decode()
    for heading in (
        "When",
        "How serious",
        "Why it rang",
        "What was shown",
        "What was decided",
        "Who looked at it",
    ):
        assert f">{heading}</h2>" in content
    assert "canaryword" in content
    assert "tailword" not in content
    assert "is on the list of phrases that speak of danger" in content
    assert "988" in content or "Lifeline" in content
    assert "Nothing yet." in content


def test_opening_a_bell_is_kept_each_time(steward: User, steward_client: Client, bell: BellEvent) -> None:
    steward_client.get(page(bell))
    content = steward_client.get(page(bell)).content.decode()
    assert list(BellView.objects.values_list("bell", "steward")) == [(bell.pk, steward.pk)] * 2
    assert content.split("Who looked at it")[1].count("steward,") == 2


@pytest.mark.parametrize("state", ["acknowledged", "resolved", "false_positive"])
def test_one_click_decides_and_the_note_is_kept(
    steward: User, steward_client: Client, bell: BellEvent, state: str
) -> None:
    response = steward_client.post(
        review(bell), {"state": state, "note": "Called <b>back</b>.\0"}, follow=True
    )
    content = response.content.decode()
    assert "Called &lt;b&gt;back&lt;/b&gt;." in content
    bell.refresh_from_db()
    assert bell.state == state
    made = BellReview.objects.get()
    assert (made.steward, made.state) == (steward, state)


def test_history_only_grows(steward_client: Client, bell: BellEvent) -> None:
    for state in ("acknowledged", "resolved", "false_positive", "resolved"):
        steward_client.post(review(bell), {"state": state})
    assert list(bell.reviews.values_list("state", flat=True)) == [
        "acknowledged",
        "resolved",
        "false_positive",
        "resolved",
    ]


def test_nothing_is_added_changed_or_deleted(steward: User, steward_client: Client, bell: BellEvent) -> None:
    steward.is_superuser = True
    steward.save()
    assert steward_client.get(reverse("admin:safety_bellevent_add")).status_code == 403
    assert (
        steward_client.post(
            reverse("admin:safety_bellevent_delete", args=[bell.pk]), {"post": "yes"}
        ).status_code
        == 403
    )
    steward_client.post(page(bell), {"level": "soft", "summary": "other"})
    steward_client.post(
        QUEUE, {"action": "delete_selected", "_selected_action": [str(bell.pk)], "post": "yes"}
    )
    steward_client.post(review(bell), {"state": "open"})
    assert steward_client.get(review(bell)).status_code == 405
    bell.refresh_from_db()
    assert (bell.level, bell.state) == ("hard", "open")
    assert not bell.reviews.exists()
    assert steward_client.get(page(BellEvent(pk=uuid.uuid4()))).status_code == 404


def test_a_bell_stays_when_the_person_leaves(owner: User, steward_client: Client, bell: BellEvent) -> None:
    owner.delete()
    assert "The person has since left" in steward_client.get(page(bell)).content.decode()


def test_the_weeks_page_counts_and_judges(owner: User, steward_client: Client) -> None:
    now = timezone.now()
    for state, number in (("resolved", 3), ("false_positive", 1), ("acknowledged", 2)):
        for _ in range(number):
            made = rang(owner, created_at=now - timedelta(hours=5))
            steward_client.post(review(made), {"state": state})
    rang(owner, level="soft", created_at=now - timedelta(weeks=2))
    content = steward_client.get(WEEKS).content.decode()
    assert "Of 4 bells with a verdict, 3 were right to ring and 1 were false positives" in content
    assert "75 %" in content
    assert "5 hours" in content
    assert content.count("<rect") == 2
    assert "6 hard" in content
    assert "canaryword" not in content


def test_only_the_admin_has_the_relaxed_policy(steward_client: Client) -> None:
    policy = steward_client.get(QUEUE).headers["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-eval';" in policy + ";"
    elsewhere = steward_client.get("/accounts/login/").headers["Content-Security-Policy"]
    assert "unsafe" not in elsewhere


def test_the_queue_asks_the_database_no_more_for_many_bells(
    owner: User, steward_client: Client, django_assert_max_num_queries: Any
) -> None:
    for _ in range(40):
        rang(owner)
    with django_assert_max_num_queries(16):
        steward_client.get(QUEUE)
