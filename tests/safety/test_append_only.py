"""The record of bells only grows, whoever writes to it: proven against the database itself."""

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, models, transaction

from conversations import receiving
from conversations.models import Session
from safety.models import BellEvent, BellReview, BellView
from safety.services import note_view, review_bell


@pytest.fixture
def bell(session: Session, steward: User) -> BellEvent:
    receiving.receive(session=session, text="I am going to kill myself tonight", client_key="k")
    bell = BellEvent.objects.get()
    note_view(bell=bell, steward=steward)
    review_bell(bell=bell, steward=steward, state="acknowledged", note="called")
    return bell


def refused(statement: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    except IntegrityError:
        return True
    return False


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM safety_bellevent",
        "DELETE FROM safety_bellreview",
        "DELETE FROM safety_bellview",
        "UPDATE safety_bellevent SET summary = ''",
        "UPDATE safety_bellevent SET level = 'soft'",
        "UPDATE safety_bellevent SET created_at = created_at + interval '1 day'",
        "UPDATE safety_bellevent SET signals = '[]'",
        "UPDATE safety_bellevent SET owner_id = (SELECT max(id) FROM auth_user)",
        "UPDATE safety_bellreview SET note = 'other'",
        "UPDATE safety_bellreview SET state = 'resolved'",
        "UPDATE safety_bellview SET created_at = now()",
    ],
)
def test_sql_cannot_change_what_was_recorded(bell: BellEvent, statement: str) -> None:
    assert refused(statement)
    assert BellEvent.objects.get().summary == bell.summary
    assert BellReview.objects.get().note == "called"
    assert BellView.objects.count() == 1


@pytest.mark.parametrize("model", [BellEvent, BellReview, BellView])
def test_the_orm_cannot_delete(bell: BellEvent, model: type[models.Model]) -> None:
    with pytest.raises((IntegrityError, models.ProtectedError)), transaction.atomic():
        model._default_manager.get().delete()
    assert model._default_manager.count() == 1


def test_the_state_follows_the_review_and_the_person_may_leave(
    bell: BellEvent, owner: User, steward: User
) -> None:
    review_bell(bell=bell, steward=steward, state="resolved")
    owner.delete()
    standing = BellEvent.objects.get()
    assert (standing.state, standing.owner) == ("resolved", None)
    assert standing.reviews.count() == 2


def test_a_steward_who_decided_something_cannot_be_deleted(bell: BellEvent, steward: User) -> None:
    with pytest.raises(models.ProtectedError):
        steward.delete()
