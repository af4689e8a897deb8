"""Helpers of the engram tests: a token holder's client, and nodes as they come over the wire."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from conversations.tokens import create_token

LONG_AGO = datetime(2026, 1, 10, 9, tzinfo=UTC)


class TokenClient(Client):
    """A program with somebody's token, as another Neuron is one."""

    def __init__(self, person: User) -> None:
        super().__init__(headers={"Authorization": f"Bearer {create_token(owner=person)}"})

    def put_json(self, path: str, data: Any) -> Any:
        return self.put(path, data, content_type="application/json")

    def read(self, path: str) -> Any:
        """The JSON of a GET that succeeds, streamed or not."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.content
        return answer.json() if not answer.streaming else _gathered(answer)


def _gathered(answer: Any) -> Any:
    return json.loads(b"".join(answer))


def a_node(**values: Any) -> dict[str, Any]:
    """A Conversation node of a session that is not here."""
    q, a = values.pop("q", "How deep is the lake?"), values.pop("a", "Forty metres.")
    moment = LONG_AGO.isoformat()
    standard: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "node_type": "Conversation",
        "tier": "Episodic",
        "label": "chat:1768035600000",
        "content": f"Q: {q}\nA: {a}",
        "payload": {"q": q, "a": a},
        "tags": ["Conversation", "chat", "timestamped"],
        "salience": 0.5,
        "importance": 0.5,
        "confidence": 1.0,
        "session_id": str(uuid.uuid4()),
        "turn_index": 0,
        "occurred_at": moment,
        "created_at": moment,
        "updated_at": moment,
        "version": 1,
    }
    return {**standard, **values}


def an_edge(source: dict[str, Any], target: dict[str, Any], **values: Any) -> dict[str, Any]:
    moment = LONG_AGO.isoformat()
    standard: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "source": source["id"],
        "target": target["id"],
        "kind": "follows",
        "weight": 1.0,
        "created_at": moment,
        "updated_at": moment,
        "version": 1,
    }
    return {**standard, **values}
