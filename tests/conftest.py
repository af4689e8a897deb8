"""Three people in every test (owner, other, steward), and the fixtures of the running stack."""

from functools import lru_cache

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from conversations.models import Session
from conversations.services import create_session

pytest_plugins = ["tests.stack", "tests.mail_server"]


@pytest.fixture(scope="session", autouse=True)
def static_files(django_test_environment: None) -> None:
    """Pages name static files by their hashed names, so these must have been collected."""
    call_command("collectstatic", interactive=False, verbosity=0)


@lru_cache(maxsize=1)
def hashed_password() -> str:
    """Hashed once: done for each person in each test it would take most of the suite's time."""
    return make_password("correct horse battery")


@pytest.fixture
def owner(db: None) -> User:
    return User.objects.create(username="owner", password=hashed_password())


@pytest.fixture
def other(db: None) -> User:
    return User.objects.create(username="other", password=hashed_password())


@pytest.fixture
def steward(db: None) -> User:
    """Reviews bells, and may see nothing else."""
    person = User.objects.create(username="steward", password=hashed_password(), is_staff=True)
    group, _ = Group.objects.get_or_create(name="Stewards")
    group.permissions.add(
        *Permission.objects.filter(
            content_type__app_label="safety", codename__in=["view_bellevent", "change_bellevent"]
        )
    )
    person.groups.add(group)
    return person


@pytest.fixture
def built_in(settings: Settings) -> None:
    """No model is set."""
    settings.NEURON_MODEL = ""
    settings.NEURON_MODEL_URL = ""


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def owner_client(owner: User) -> Client:
    return signed_in(owner)


@pytest.fixture
def other_client(other: User) -> Client:
    return signed_in(other)


@pytest.fixture
def steward_client(steward: User) -> Client:
    return signed_in(steward)


@pytest.fixture
def session(owner: User) -> Session:
    return create_session(owner=owner)


@pytest.fixture
def transactional_db(transactional_db: None, django_db_serialized_rollback: None) -> None:
    """Tests with transactions of their own leave what migrations made: without it those behind them miss it."""
