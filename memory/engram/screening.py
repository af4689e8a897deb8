"""Screening of what came from elsewhere: until it is done the text is on hold, and neither shown nor recalled.

Done after the text is stored, in the background, because it costs about 10 ms a text. How to screen is not memory's
to know: ENGRAM_SCREENING names a function of the layer above.
"""

import re
import time
from typing import Protocol, cast

from django.conf import settings
from django.db.models import QuerySet
from django.utils.module_loading import import_string

from memory.models import MemoryNode
from memory.retrieval.utterances import exchange

AT_ONCE = 50


_OUR_LABEL = re.compile(r"chat:\d+")
_OUR_TAGS = {"Conversation", "chat", "timestamped"}


class IsDanger(Protocol):
    """Whether what a person said, text by text, or what was answered is nothing to recall."""

    def __call__(self, *, said: list[str], answered: str) -> bool: ...


def screen_held(*, seconds: float = 10.0) -> int:
    """Screen nodes on hold, the oldest first, for about so long. Returns how many are screened now."""
    is_danger = cast(IsDanger, import_string(settings.ENGRAM_SCREENING))
    until = time.monotonic() + seconds
    done = 0
    while time.monotonic() < until:
        nodes = list(MemoryNode.objects.unscreened().order_by("created_at", "id")[:AT_ONCE])
        if not nodes:
            break
        for node in nodes:
            said, answered = _texts(node)
            hold = MemoryNode.Hold.NONE
            if is_danger(said=said, answered=answered):
                hold = MemoryNode.Hold.DANGER
            # Not a newer text that came in meanwhile.
            same = MemoryNode.objects.filter(pk=node.pk, version=node.version, updated_at=node.updated_at)
            done += same.filter(hold=MemoryNode.Hold.UNSCREENED).update(hold=hold)
    return done


def held_back(owner_id: int) -> "QuerySet[MemoryNode]":
    """What screening keeps out of this person's recall."""
    return MemoryNode.objects.filter(owner_id=owner_id, hold=MemoryNode.Hold.DANGER).exclude(
        node_type=MemoryNode.NodeType.BELL_EVENT
    )


def _texts(node: MemoryNode) -> tuple[list[str], str]:
    """What a person said, each text once, and what was answered. A node's fields need not agree with each other."""
    said, answered = [node.content], ""
    if node.node_type == MemoryNode.NodeType.CONVERSATION:
        q, answered = exchange(node.content, node.payload)
        agrees = node.content.split() == f"Q: {q}\nA: {answered}".split()
        said = [q] if agrees else [q, node.content]
    else:
        said += [one for one in _strings(node.payload) if one not in node.content]
    names = [*({*node.tags} - _OUR_TAGS), "" if _OUR_LABEL.fullmatch(node.label) else node.label]
    said.append(". ".join(sorted(name for name in names if name)))
    return [text for text in said if text.strip()], answered


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.values() for text in _strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in _strings(one)]
    return []
