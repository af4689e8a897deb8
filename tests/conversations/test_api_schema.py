"""The API against its own description: generated requests over HTTP, every answer as described, never a 500."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from conversations.models import Session, Turn
from conversations.services import create_session
from conversations.tokens import create_token

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = 10


def calls() -> list[tuple[str, str]]:
    """Every call of the description, by method and path."""
    paths = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())["paths"]
    return [(method.upper(), path) for path, operations in paths.items() for method in operations]


@pytest.mark.processes
@pytest.mark.parametrize(("method", "path"), calls(), ids=lambda value: value)
def test_every_call_answers_as_described(stack: Any, method: str, path: str) -> None:
    person = stack.person()
    person.is_staff = person.is_superuser = True
    person.save()
    session = create_session(owner=person)
    turn = Turn.objects.create(
        session=session,
        owner=person,
        turn_index=0,
        q="Hello",
        a="Good day.",
        status="complete",
        client_key="k",
    )
    Session.objects.filter(pk=session.pk).update(next_index=1)
    # An id that is made up is never there; these are, so that calls reach further than a 404.
    known = {"session_id": str(session.pk), "turn_id": str(turn.pk)}
    headers = {"Authorization": f"Bearer {create_token(owner=person)}", "Prefer": "respond-async"}
    schema = schemathesis.openapi.from_url(f"{stack.url}/api/schema")

    @given(case=schema[path][method].as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        for name in set(case.path_parameters or {}) & set(known):
            case.path_parameters[name] = known[name]
        # An empty message or file fits its type, and is refused all the same.
        case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

    check()
