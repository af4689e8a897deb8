"""Environment variables, read strictly: a bad value stops the start with a line that names it."""

from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

env = environ.Env()

BASE_DIR = Path(__file__).resolve().parent.parent
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str = "") -> str:
    """The variable's value without surrounding blanks; `default` where it is unset or empty."""
    return str(env.str(name, default="")).strip() or default


def boolean(name: str, *, default: bool = False) -> bool:
    """One of 1/true/yes/on or 0/false/no/off; anything else stops the start."""
    raw = text(name).lower()
    if not raw:
        return default
    if raw in _TRUE:
        return True
    if raw in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be yes or no, not {raw!r}.")


def integer(name: str, *, default: int, least: int = 0, most: int = 2**31) -> int:
    """A whole number between `least` and `most`, both included; anything else stops the start."""
    raw = text(name)
    if not raw:
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None
    if not least <= value <= most:
        raise ImproperlyConfigured(f"{name} must be between {least} and {most}, not {value}.")
    return value


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, blanks dropped."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def folder(name: str, default: Path) -> Path:
    """An absolute path; it need not exist yet."""
    raw = text(name)
    return Path(raw).expanduser().resolve() if raw else default
