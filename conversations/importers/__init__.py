"""Old chats from elsewhere. One format is one file here, listed in FORMATS."""

from conversations.importers.base import Chat, Exchange, Format, Unreadable
from conversations.importers.chatgpt import ChatGPT

FORMATS: tuple[Format, ...] = (ChatGPT(),)

__all__ = ["FORMATS", "Chat", "Exchange", "Format", "Unreadable", "format_of"]


def format_of(entry: object) -> Format | None:
    """The format one entry of an export is in. Asked per entry: an export may mix them."""
    return next((known for known in FORMATS if known.recognises(entry)), None)
