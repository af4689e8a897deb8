"""Themes told without a model: what they are, how they moved, where they were said."""

import re
from collections.abc import Sequence
from typing import Any

MADE_WITHOUT = "I found them without a language model, by what your turns have in common."
_BECAME = {
    "new": "is new",
    "growing": "takes more room than before",
    "steady": "goes on as before",
    "fading": "has grown quieter",
    "returning": "has come back",
    "come to rest": "seems to have come to rest",
    "quiet now": "is quiet now",
}


def tell(themes: Sequence[dict[str, Any]], *, window: str = "", worries: bool = False) -> str:
    """The themes, the largest first, each with its link, its move and a sentence of the person's."""
    if not themes:
        return ""
    named = f" in what you told me ({plain(window)})" if window else " what you told me"
    what = "This is what weighed on you" if worries else "These themes run through"
    made = "" if any(theme["by"] for theme in themes) else f" {MADE_WITHOUT}"
    opening = f"{what}{named if window or not worries else ''}, the largest first.{made}"
    return f"{opening}\n\n" + "\n".join(_line(theme) for theme in themes)


def _line(theme: dict[str, Any]) -> str:
    turns = "1 turn" if theme["turns"] == 1 else f"{theme['turns']} turns"
    last = f"[{theme['last']}]({theme['last_link']})" if theme["last_link"] else theme["last"]
    line = (
        f"- [{plain(theme['name'])}]({theme['link']}) {_BECAME.get(theme['became'], '')}: "
        f"{turns}, {theme['share']} of it, last on {last}."
    )
    if theme["says"]:
        return f"{line} {plain(theme['says'])}"
    quote = next(iter(theme["quotes"][::-1]), None)
    return f"{line} You said: “{plain(quote['said'])}”" if quote else line


def tell_change(theme: dict[str, Any]) -> str:
    """How one theme went: what was said of it from the first time to the last."""
    parts = [
        f"You first spoke of [{plain(theme['name'])}]({theme['link']}) on {theme['first']}, and last on "
        f"{theme['last']}. Of late it {_BECAME.get(theme['became'], 'goes on')}."
    ]
    if theme["says"]:
        parts.append(plain(theme["says"]))
    lines = [f"- [{one['day']}]({one['link']}): “{plain(one['said'])}”" for one in theme["quotes"]]
    if lines:
        parts.append("This is how you spoke of it, from the first time on:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def plain(text: str) -> str:
    """Text that stands in Markdown as it is."""
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", text)
