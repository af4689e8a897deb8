"""Help lines by country as the data file has them, and the fixed reply that names them.

What people are shown is `safety.help_lines`: these, with what staff have edited.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from safety.lexicon import DATA, LexiconError, read_toml

STALE_AFTER = timedelta(days=90)
_COUNTRY = re.compile(r"^[A-Z]{2}$")


@dataclass(frozen=True, slots=True)
class HelpLine:
    """One service. `sms_word` is what to send to `sms`; `verified_on` is None until a person confirmed it."""

    name: str
    phone: str
    sms: str
    sms_word: str
    url: str
    hours: str
    source: str
    verified_on: date | None

    @property
    def tel(self) -> str:
        """The number as a `tel:` address takes it."""
        return re.sub(r"[^\d+*#]", "", self.phone)

    def is_verified(self, today: date) -> bool:
        """Whether a person confirmed it within the last 90 days."""
        return self.verified_on is not None and today - self.verified_on <= STALE_AFTER


@dataclass(frozen=True, slots=True)
class Resources:
    """What is shown to somebody in this country; `country` is empty for the fallback."""

    country: str
    country_name: str
    emergency: tuple[str, ...]
    lines: tuple[HelpLine, ...]
    fallback_url: str

    def names(self) -> list[str]:
        return [line.name for line in self.lines] + [self.fallback_url]


@lru_cache(maxsize=1)
def defaults() -> dict[str, Resources]:
    """By country code; the fallback under "". Raises LexiconError naming the file."""
    return load(DATA / "crisis_resources.toml")


def load(path: Path) -> dict[str, Resources]:
    content, _ = read_toml(path)
    try:
        fallback = content.pop("fallback")
        url = str(fallback["url"])
        line = HelpLine(str(fallback["name"]), "", "", "", url, "", "", None)
        found = {"": Resources("", "", (str(fallback["emergency"]),), (line,), url)}
        for code, entry in content.items():
            if not _COUNTRY.match(code):
                raise LexiconError(f"{path.name}: {code!r} is not a country code")
            lines = tuple(_line(one) for one in entry["lines"])
            found[code] = Resources(code, str(entry["name"]), tuple(entry["emergency"]), lines, url)
    except (KeyError, TypeError, ValueError) as error:
        raise LexiconError(f"{path.name}: {error} is missing or wrong") from error
    if not all(one.lines and one.emergency for one in found.values()):
        raise LexiconError(f"{path.name}: a country without a line or an emergency number")
    return found


def _line(entry: dict[str, Any]) -> HelpLine:
    verified = str(entry.get("verified_on", ""))
    line = HelpLine(
        name=str(entry["name"]),
        phone=str(entry.get("phone", "")),
        sms=str(entry.get("sms", "")),
        sms_word=str(entry.get("sms_word", "")),
        url=str(entry.get("url", "")),
        hours=str(entry.get("hours", "")),
        source=str(entry["source"]),
        verified_on=date.fromisoformat(verified) if verified else None,
    )
    if not (line.phone or line.sms or line.url):
        raise ValueError(f"a way to reach {line.name}")
    return line


def country_from(accept_language: str) -> str:
    """The first country that an Accept-Language header names and we know, else ""."""
    for part in accept_language.split(","):
        tag = part.split(";")[0].strip().replace("_", "-").split("-")
        region = next((word.upper() for word in tag[1:] if len(word) == 2), "")
        if region in defaults():
            return region
    return ""


def hard_reply(resources: Resources) -> str:
    """The fixed reply to a hard bell, as Markdown: short, asks nothing, names help and one thing to do now."""
    ways = []
    for line in resources.lines:
        reach = []
        if line.phone:
            reach.append(f"call {line.phone}")
        if line.sms:
            reach.append(f"text {line.sms_word} to {line.sms}" if line.sms_word else f"text {line.sms}")
        if not reach:
            reach.append(line.url)
        ways.append(f"- **{line.name}**: {', or '.join(reach)}" + (f" ({line.hours})" if line.hours else ""))
    if resources.country:
        ways.append(f"- Help lines in other countries: {resources.fallback_url}")
    emergency = " or ".join(resources.emergency)
    return (
        "I am glad you said this, and I am taking it seriously. You do not have to carry it alone, and people are "
        "there for you right now:\n\n"
        + "\n".join(ways)
        + f"\n\nIf anyone is in danger at this moment, call **{emergency}**.\n\n"
        "One thing to do now: move away from anything that could be used to harm, and go to, or call, somebody you "
        "trust and stay with them. These feelings can pass, and help works.\n\n"
        "I'm here when you want to go on."
    )
