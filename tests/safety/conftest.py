"""The scripted model of the conversations tests."""

from tests.conversations.conftest import built_in, provider  # noqa: F401 (fixtures)
