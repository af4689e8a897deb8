"""Layer 2: the operator's policies on a message, and the notices that are owed. Pure, over one data file."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

POLICY_FILE = Path(__file__).resolve().parent / "data" / "stewardship.toml"


class PolicyError(Exception):
    """The policy file cannot be used; the sentence names file and place."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Messages that match are answered with the operator's words instead of a model's."""

    name: str
    pattern: re.Pattern[str]
    redirect_to: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person is told beside an answer."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Policies:
    policies: tuple[Policy, ...]
    disclosure: str
    break_reminder: str
    minor_break_reminder: str
    repeat_after: timedelta
    pause: timedelta


@dataclass(frozen=True, slots=True)
class Use:
    """What is known of a person's continued use."""

    last_active_at: datetime | None
    last_notice_at: datetime | None
    is_minor: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Proceed, or answer with `redirect_to`; and the notices owed now."""

    redirect_to: str | None
    policy: str | None
    notices: tuple[Notice, ...]


@lru_cache(maxsize=1)
def policies() -> Policies:
    return load(POLICY_FILE)


def load(path: Path) -> Policies:
    """Read and check a policy file. Raises PolicyError, which names file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path.name}: cannot be read as UTF-8 text ({error})") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        named = re.search(r"line (\d+)", str(error))
        line = int(named[1]) if named else text.count("\n") + 1
        raise PolicyError(f"{path.name}, line {line}: {error}") from error
    policies = _table(path, text, content, "policy") if "policy" in content else {}
    notices = _table(path, text, content, "notices")
    place = partial(_place, path, text, "[notices]")
    return Policies(
        policies=tuple(_policy(path, text, name, one) for name, one in policies.items()),
        disclosure=_sentence(notices, "disclosure", place),
        break_reminder=_sentence(notices, "break_reminder", place),
        minor_break_reminder=_sentence(notices, "minor_break_reminder", place),
        repeat_after=timedelta(hours=_amount(notices, "repeat_after_hours", place)),
        pause=timedelta(minutes=_amount(notices, "pause_minutes", place)),
    )


def _policy(path: Path, text: str, name: str, content: Any) -> Policy:
    place = partial(_place, path, text, f"[policy.{name}]")
    if not isinstance(content, dict):
        raise PolicyError(f"{place()}: {name} is not a policy with match and redirect_to")
    wanted = content.get("match")
    if not (isinstance(wanted, list) and wanted and all(isinstance(one, str) and one for one in wanted)):
        raise PolicyError(f"{place('match')}: match must be a list of regular expressions")
    for one in wanted:
        try:
            re.compile(one)
        except re.error as error:
            raise PolicyError(f"{place('match')}: {one!r} is not a regular expression ({error})") from error
    pattern = re.compile("|".join(rf"\b(?:{one})\b" for one in wanted), re.IGNORECASE)
    return Policy(name, pattern, _sentence(content, "redirect_to", place))


def _place(path: Path, text: str, section: str, key: str = "") -> str:
    """File and line of a key in a section; the section's own line where the key is not there, else the last one."""
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if line.strip() == section), None)
    if at is None:
        return f"{path.name}, line {max(1, len(lines))}"
    for number in range(at + 1, len(lines)):
        if lines[number].lstrip().startswith("["):
            break
        if key and re.match(rf"\s*{key}\s*=", lines[number]):
            return f"{path.name}, line {number + 1}"
    return f"{path.name}, line {at + 1}"


def _table(path: Path, text: str, content: dict[str, Any], name: str) -> dict[str, Any]:
    table = content.get(name)
    if not isinstance(table, dict):
        raise PolicyError(f"{_place(path, text, f'[{name}]')}: the table [{name}] is missing")
    return table


def _sentence(table: dict[str, Any], key: str, place: Callable[[str], str]) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise PolicyError(f"{place(key)}: {key} must be a sentence")
    return value


def _amount(table: dict[str, Any], key: str, place: Callable[[str], str]) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1_000_000:
        raise PolicyError(f"{place(key)}: {key} must be a number above 0")
    return float(value)


def decide(message: str, *, use: Use, now: datetime) -> Decision:
    """What the policies say of a message, and which notices are owed: at first use, and every 3 h of continued use.

    Use is continued while no pause is longer than `pause_minutes`; after a longer one the clock begins anew, with
    the disclosure that opens every stretch of use.
    """
    rules = policies()
    hit = next((policy for policy in rules.policies if policy.pattern.search(message)), None)
    owed: list[Notice] = []
    fresh = use.last_active_at is None or now - use.last_active_at > rules.pause
    if use.last_notice_at is None or (fresh and now - use.last_notice_at > rules.repeat_after):
        owed.append(Notice("disclosure", rules.disclosure))
    elif now - use.last_notice_at >= rules.repeat_after:
        owed.append(Notice("disclosure", rules.disclosure))
        reminder = rules.minor_break_reminder if use.is_minor else rules.break_reminder
        owed.append(Notice("break_reminder", reminder))
    return Decision(hit.redirect_to if hit else None, hit.name if hit else None, tuple(owed))
