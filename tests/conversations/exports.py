"""Exports in ChatGPT's shape, made up for the tests: a chat as a chain of messages, with what a trap needs changed."""

import io
import json
import uuid
import zipfile
from typing import Any

from django.core.files.base import ContentFile

START = 1_684_000_000.0  # 13 May 2023


def message(role: str, text: str | None = None, at: Any = None, **changes: Any) -> dict[str, Any]:
    """One message; `changes` replace its members."""
    return {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "update_time": None,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **changes,
    }


def chat(*messages: dict[str, Any] | None, title: str | None = "A walk", **changes: Any) -> dict[str, Any]:
    """A chat whose messages follow each other; the ids are the same each time a chat of this id is made."""
    identity = changes.pop("id", None) or str(uuid.uuid4())
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    before = "root"
    for number, content in enumerate(messages):
        key = f"{identity}-{number}"
        mapping[before]["children"].append(key)
        node = None if content is None else {"id": key, **content}
        mapping[key] = {"id": key, "message": node, "parent": before, "children": []}
        before = key
    return {
        "title": title,
        "create_time": START,
        "update_time": START + 3600,
        "mapping": mapping,
        "current_node": before,
        "conversation_id": identity,
        "id": identity,
        **changes,
    }


def walk(identity: str, *, questions: int = 2, start: float = START) -> dict[str, Any]:
    """A chat of so many exchanges, one a minute."""
    said = []
    for number in range(questions):
        said.append(message("user", f"Question {number} of {identity}", start + 60 * number))
        said.append(message("assistant", f"Answer {number} of {identity}", start + 60 * number + 20))
    return chat(*said, id=identity, title=f"Walk {identity}", create_time=start)


def as_json(content: Any) -> ContentFile:
    return ContentFile(json.dumps(content).encode(), name="conversations.json")


def as_zip(files: dict[str, bytes]) -> ContentFile:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return ContentFile(packed.getvalue(), name="export.zip")
