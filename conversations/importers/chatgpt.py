"""ChatGPT's export: each chat a tree of messages in `mapping`, of which the branch last shown is taken."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from conversations.importers.base import (
    LATER,
    UNDATED,
    Chat,
    Message,
    Unreadable,
    exchanges_from,
    moment,
    short_key,
)

# Never shown to the person as talk: what they told it about themselves, its thinking, what tools gave back.
HIDDEN_CONTENT = frozenset(
    {
        "user_editable_context",
        "model_editable_context",
        "thoughts",
        "reasoning_recap",
        "execution_output",
        "system_error",
        "tether_quote",
        "tether_browsing_display",
        "tether_browsing_code",
        "sonic_webpage",
        "computer_output",
        "app_pairing_content",
    }
)
HIDDEN_CHANNELS = frozenset({"analysis"})
NO_TITLES = frozenset({"", "new chat", "untitled", "new conversation"})
# A mark such as a citation stands between U+E200 and U+E201, its fields parted by U+E202; U+E203 to U+E206 wrap text.
_MARK = re.compile("\ue200([^\ue200\ue201]{0,20000})\ue201")
_MARK_SIGNS = re.compile("[\ue200-\ue2ff]")
_OLD_CITATION = re.compile("【\\d{1,4}(?::\\d{1,4})?†[^】]{0,200}】")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


class ChatGPT:
    """`conversations.json` as ChatGPT has exported it since 2023, and a single chat of that shape."""

    source = "chatgpt"

    def recognises(self, entry: object) -> bool:
        """By its tree, or by what stands around it where a damaged entry lost the tree."""
        if not isinstance(entry, dict):
            return False
        return isinstance(entry.get("mapping"), dict) or (
            "conversation_id" in entry and "chat_messages" not in entry and "messages" not in entry
        )

    def read(self, entry: object, *, latest: datetime) -> Chat:
        if not isinstance(entry, dict) or not isinstance(entry.get("mapping"), dict):
            raise Unreadable("Its messages are missing from the file.")
        mapping: dict[str, Any] = entry["mapping"]
        path = _path(mapping, entry.get("current_node"), latest)
        start = (
            moment(entry.get("create_time"), latest=latest)
            or _earliest(mapping, latest)
            or moment(entry.get("update_time"), latest=latest)
        )
        messages = _messages(mapping, path, start or UNDATED, latest)
        title = entry.get("title")
        title = " ".join(title.split()) if isinstance(title, str) else ""
        return Chat(
            external_id=_external_id(entry, messages),
            title="" if title.lower() in NO_TITLES else title,
            exchanges=exchanges_from(messages),
            temporary=any(
                entry.get(flag) is True
                for flag in ("is_do_not_remember", "is_temporary_chat", "is_temporary")
            ),
            undated=start is None,
            other_versions=_count_others(mapping, path),
        )


# --- The tree -----------------------------------------------------------------------------------------------


def _path(mapping: Mapping[str, Any], current: object, latest: datetime) -> list[str]:
    """The keys from the root to the message shown last. A circle or a missing parent ends it."""
    at = current if isinstance(current, str) and current in mapping else _newest_leaf(mapping, latest)
    path: list[str] = []
    seen: set[str] = set()
    while isinstance(at, str) and at in mapping and at not in seen:
        seen.add(at)
        path.append(at)
        at = _parent(mapping[at])
    path.reverse()
    return path


def _parent(node: object) -> str | None:
    parent = node.get("parent") if isinstance(node, dict) else None
    return parent if isinstance(parent, str) else None


def _newest_leaf(mapping: Mapping[str, Any], latest: datetime) -> str | None:
    """Where nothing says what was shown last: the newest message that nothing follows, the later one in the file."""
    parents = {_parent(node) for node in mapping.values()}
    leaves = [key for key in mapping if key not in parents] or list(mapping)
    dated = [
        (_time_of(mapping[key], latest) or UNDATED, position, key) for position, key in enumerate(leaves)
    ]
    return max(dated)[2] if dated else None


def _count_others(mapping: Mapping[str, Any], path: list[str]) -> int:
    """How many visible messages stand on other branches: answers given again, questions put differently."""
    taken = set(path)
    return sum(1 for key, node in mapping.items() if key not in taken and _visible(node) is not None)


# --- Messages -----------------------------------------------------------------------------------------------


def _messages(
    mapping: Mapping[str, Any], path: list[str], start: datetime, latest: datetime
) -> list[Message]:
    """The visible messages of the path, each strictly later than the one before it."""
    messages: list[Message] = []
    before: datetime | None = None
    for key in path:
        node = mapping[key]
        at = _time_of(node, latest)
        visible = _visible(node)
        if visible is None:
            continue
        at = at or before or start
        if before is not None and at <= before:
            at = before + LATER
        before = at
        messages.append(replace(visible, key=key, at=at))
    return messages


def _visible(node: object) -> Message | None:
    """The message of a node as the person saw it, without its place and time; None for all that was not talk."""
    message = node.get("message") if isinstance(node, dict) else None
    if not isinstance(message, dict):
        return None
    author, content, metadata = (_dict(message.get(name)) for name in ("author", "content", "metadata"))
    role = author.get("role")
    if role not in ("user", "assistant") or message.get("recipient") not in (None, "", "all"):
        return None
    if message.get("weight") is not None and message["weight"] == 0:
        return None
    if metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message"):
        return None
    if content.get("content_type") in HIDDEN_CONTENT or message.get("channel") in HIDDEN_CHANNELS:
        return None
    text = _text(content, metadata)
    if role == "assistant":
        text = without_marks(text)
    if not text.strip():
        return None
    model = metadata.get("model_slug") if role == "assistant" else None
    return Message("", role == "user", text, UNDATED, model[:120] if isinstance(model, str) else "")


def _time_of(node: object, latest: datetime) -> datetime | None:
    message = _dict(_dict(node).get("message"))
    metadata = _dict(message.get("metadata"))
    for value in (message.get("create_time"), message.get("update_time"), metadata.get("timestamp")):
        at = moment(value, latest=latest)
        if at is not None:
            return at
    return None


def _earliest(mapping: Mapping[str, Any], latest: datetime) -> datetime | None:
    return min((at for node in mapping.values() if (at := _time_of(node, latest)) is not None), default=None)


def _text(content: dict[str, Any], metadata: dict[str, Any]) -> str:
    """The words of a message; pictures and files are named in brackets where they stood."""
    parts = content.get("parts")
    pieces = [_piece(part) for part in parts] if isinstance(parts, list) else [_piece(parts)]
    if not any(pieces):
        pieces = [_plain(content)]
    attachments = metadata.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else []:
        name, kind = _dict(attachment).get("name"), _dict(attachment).get("mime_type")
        if isinstance(name, str) and name and not (isinstance(kind, str) and kind.startswith("image/")):
            pieces.append(f"[file: {name}]")
    return "\n\n".join(piece for piece in pieces if piece.strip())


def _plain(content: dict[str, Any]) -> str:
    """Contents without parts: code, and kinds we do not know, by their text."""
    text = content.get("text")
    if not isinstance(text, str) or not text:
        return ""
    if content.get("content_type") == "code":
        language = content.get("language")
        known = isinstance(language, str) and language.isalnum() and language != "unknown"
        return f"```{language if known else ''}\n{text}\n```"
    return text


def _piece(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = part.get("content_type")
    if kind == "image_asset_pointer":
        return "[picture]"
    text = part.get("text")  # an audio transcription, or a kind to come
    return text if isinstance(text, str) else ""


def without_marks(text: str) -> str:
    """The text without the private-use marks of citations and without old-style source brackets."""
    text = _MARK.sub(_marked, text)
    return _OLD_CITATION.sub("", _MARK_SIGNS.sub("", text))


def _marked(mark: re.Match[str]) -> str:
    """What the page showed for a mark: the name of an entity, the words of a link, nothing for a citation."""
    kind, _, fields = mark.group(1).partition("\ue202")
    if kind == "entity":
        quoted = _QUOTED.findall(fields)
        return quoted[1] if len(quoted) > 1 else ""
    return fields.partition("\ue202")[0] if kind == "url" else ""


# --- The chat -------------------------------------------------------------------------------------------------


def _external_id(entry: dict[str, Any], messages: list[Message]) -> str:
    """The chat's own id; where it has none, one that the same chat gets again."""
    for name in ("conversation_id", "id"):
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return short_key(value.strip())
    first = messages[0] if messages else None
    seed = f"{first.key}|{first.at.isoformat()}|{first.text}" if first else ""
    return "first:" + hashlib.sha256(seed.encode(errors="replace")).hexdigest()


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
