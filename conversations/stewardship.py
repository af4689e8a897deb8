"""Layer 2: the operator's policies on a message, and the notices that are owed. Pure, over one data file."""

import re
import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

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
    """Read and check a policy file. Raises PolicyError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        notices = content["notices"]
        return Policies(
            policies=tuple(
                Policy(
                    name,
                    re.compile("|".join(rf"\b(?:{one})\b" for one in policy["match"]), re.IGNORECASE),
                    str(policy["redirect_to"]),
                )
                for name, policy in content.get("policy", {}).items()
            ),
            disclosure=str(notices["disclosure"]),
            break_reminder=str(notices["break_reminder"]),
            minor_break_reminder=str(notices["minor_break_reminder"]),
            repeat_after=timedelta(hours=float(notices["repeat_after_hours"])),
            pause=timedelta(minutes=float(notices["pause_minutes"])),
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PolicyError(f"{path.name}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise PolicyError(f"{path.name}: {error} is missing or cannot be used") from error


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
