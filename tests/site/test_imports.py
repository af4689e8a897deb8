"""Every module that settings name by its dotted path can be the first one imported."""

import os
import subprocess
import sys

import pytest

from tests.stack import ROOT

FIRST = "import django; django.setup(); import importlib; importlib.import_module({name!r})"


@pytest.mark.parametrize(
    "name", ["conversations.views.errors", "neuron_site.parsers", "neuron_site.problems", "neuron_site.urls"]
)
def test_it_needs_no_other_module_before_it(name: str) -> None:
    """Django's checks import them in no fixed order; a circle among them stopped every third start."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST.format(name=name)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "neuron_site.settings", "SECRET_KEY": "imports"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("model", "library"),
    [("openai:any", "openai"), ("anthropic:any", "anthropic"), ("nonsense", "pydantic_ai")],
)
def test_a_worker_that_starts_has_what_asking_its_model_takes(model: str, library: str) -> None:
    """The client library takes more than a second to import, and the embedder as long: the first answers waited."""
    warm = (
        "import django; django.setup(); from conversations import tasks; tasks._load_what_answers_take();"
        f"import sys; assert {library!r} in sys.modules and 'onnxruntime' in sys.modules"
    )
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "neuron_site.settings",
        "SECRET_KEY": "imports",
        "NEURON_MODEL": model,
    }
    done = subprocess.run(
        [sys.executable, "-c", warm], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
