"""The scripted model of the conversations tests."""

from tests.conversations.conftest import provider  # noqa: F401 (a fixture)
