"""One question to a model that is answered as a whole, not talked: its JSON object, or nothing."""

import json
from contextlib import closing
from typing import Any

from conversations.imprint import Draft
from conversations.llm.events import ModelFailure, TextDelta
from conversations.llm.listening import listen

LONGEST_ANSWER = 64_000  # characters


def ask_for_json(*, system: str, message: str) -> dict[str, Any] | None:
    """The first JSON object in the model's answer; None where there is none to read. Raises ModelFailure."""
    text = _gather(Draft(system=system, history=(), message=message, with_tools=False))
    start = text.find("{")
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _gather(draft: Draft) -> str:
    text = ""
    with closing(listen(draft)) as events:
        for event in events:
            if isinstance(event, TextDelta):
                text += event.text
            if len(text) > LONGEST_ANSWER:
                raise ModelFailure("rubbish", "the answer does not end", permanent=True)
    return text
