"""Strict readers of JSON values that a stranger sent: each takes one value, and raises WireError or fits a column."""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

MOST_DEPTH = 50
LARGEST_INTEGER = 2**31 - 1

T = TypeVar("T")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class WireError(ValueError):
    """What was read is not what the contract says. The message names the place, never the content."""


def parse_json(data: bytes) -> Any:
    """Strict JSON from UTF-8 bytes: no NaN or Infinity, no key twice, at most MOST_DEPTH deep.

    NUL and lone surrogates, which PostgreSQL cannot hold, become U+FFFD. Raises WireError.
    """
    try:
        value = json.loads(
            data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_without_repeats
        )
    except WireError:
        raise
    except UnicodeDecodeError:
        raise WireError("not UTF-8") from None
    except RecursionError:
        raise WireError("nested too deep") from None
    except ValueError:
        raise WireError("not JSON") from None
    return _storable(value, MOST_DEPTH)


def _refuse_constant(_name: str) -> Any:
    raise WireError("NaN or Infinity in it")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise WireError("a key twice in one object")
    return values


def _storable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise WireError("a number too large")
    if isinstance(value, dict | list):
        if not depth:
            raise WireError("nested too deep")
        if isinstance(value, list):
            return [_storable(one, depth - 1) for one in value]
        return {_UNSTORABLE.sub("\ufffd", key): _storable(one, depth - 1) for key, one in value.items()}
    return value


class Fields:
    """The keys of one JSON object, each read by a function that raises WireError."""

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise WireError("not an object")
        self._data = data

    def required(self, name: str, read: Callable[[Any], T]) -> T:
        if self._data.get(name) is None:
            raise WireError(f"{name} is missing")
        return self._read(name, read)

    def optional(self, name: str, read: Callable[[Any], T]) -> T | None:
        return None if self._data.get(name) is None else self._read(name, read)

    def _read(self, name: str, read: Callable[[Any], T]) -> T:
        try:
            return read(self._data[name])
        except WireError as error:
            raise WireError(f"{name}: {error}") from None


def array(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise WireError("not an array")
    return data


def uuid(value: Any) -> UUID:
    if not isinstance(value, str) or len(value) > 40:
        raise WireError("not a UUID")
    try:
        return UUID(value)
    except ValueError:
        raise WireError("not a UUID") from None


def text_up_to(most: int | None) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise WireError("not a string")
        if most is not None and len(value) > most:
            raise WireError(f"longer than {most} characters")
        return _UNSTORABLE.sub("\ufffd", value)

    return read


def json_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WireError("not an object")
    return value


def number(value: Any) -> float:
    # bool is an int to Python, not to JSON.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WireError("not a number")
    try:
        found = float(value)
    except OverflowError:
        raise WireError("a number too large") from None
    if not math.isfinite(found):
        raise WireError("a number too large")
    return found


def share(value: Any) -> float:
    found = number(value)
    if not 0.0 <= found <= 1.0:
        raise WireError("not between 0 and 1")
    return found


def integer_from(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise WireError("not a whole number")
        if not least <= value <= LARGEST_INTEGER:
            raise WireError(f"not between {least} and {LARGEST_INTEGER}")
        return value

    return read


def moment(value: Any) -> datetime:
    if not isinstance(value, str) or len(value) > 40:
        raise WireError("not a time")
    try:
        found = datetime.fromisoformat(value)
        if found.tzinfo is None:
            raise WireError("a time without its zone")
        return found.astimezone(UTC)
    except OverflowError:
        raise WireError("a time out of range") from None
    except WireError:
        raise
    except ValueError:
        raise WireError("not a time") from None
