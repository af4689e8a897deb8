"""Models that answer: which one, and its reply as it comes."""

from conversations.llm.events import Finished, ModelFailure, TextDelta, ToolUse
from conversations.llm.providers import ModelDescription, ModelSettingError, describe, described
from conversations.llm.stream import stream

__all__ = [
    "Finished",
    "ModelDescription",
    "ModelFailure",
    "ModelSettingError",
    "TextDelta",
    "ToolUse",
    "describe",
    "described",
    "stream",
]
