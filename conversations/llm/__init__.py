"""Models that answer: which one, and its reply as it comes."""

from conversations.llm.events import Finished, ModelFailure, TextDelta, ToolUse
from conversations.llm.listening import listen
from conversations.llm.providers import ModelDescription, ModelSettingError, describe, described

__all__ = [
    "Finished",
    "ModelDescription",
    "ModelFailure",
    "ModelSettingError",
    "TextDelta",
    "ToolUse",
    "describe",
    "described",
    "listen",
]
