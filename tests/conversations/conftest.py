"""Who answers in a test: a scripted model behind real HTTP, or the built-in responder."""

import importlib
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.scripted_provider import ScriptedProvider


@pytest.fixture
def provider(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedProvider]:
    """The model of this test; the pauses between tries are short."""
    monkeypatch.setattr(importlib.import_module("conversations.llm.stream"), "FIRST_PAUSE_SECONDS", 0.02)
    with ScriptedProvider() as running:
        settings.NEURON_MODEL = "openai:scripted"
        settings.NEURON_MODEL_URL = running.url
        settings.NEURON_MODEL_KEY = "scripted"
        settings.NEURON_MODEL_TIMEOUT_S = 10
        settings.NEURON_SECOND_LOOK = False
        yield running
