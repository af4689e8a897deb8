"""System checks: an address of the remote engram that cannot be used stops the start."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from memory.engram.addresses import url_problem


@register
def engram_url_is_usable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Also that the token can stand in a header, so that no call is ever made in vain for it."""
    found: list[CheckMessage] = []
    problem = url_problem(settings.ENGRAM_URL) if settings.ENGRAM_URL else ""
    if problem:
        hint = "Set it to the remote engram's address, such as https://engram.example, or unset it."
        found.append(Error(f"ENGRAM_URL {problem}.", hint=hint, id="memory.E001"))
    token = settings.ENGRAM_TOKEN
    if not token.isascii() or any(sign <= " " or sign == "\x7f" for sign in token):
        hint = "Copy the token again, whole and without blanks."
        found.append(Error("ENGRAM_TOKEN holds signs no token has.", hint=hint, id="memory.E002"))
    return found
