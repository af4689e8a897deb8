"""JSON as the API takes it: bounded, never deep enough to break, and with nothing PostgreSQL cannot hold."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from safety.normalise import replace_unstorable

DEEPEST = 50


class TooLarge(APIException):
    """Not a `Problem`: that module imports DRF's views, which import this one by its setting."""

    status_code = 413
    default_code = "too_large"


class JSONParser(BaseParser):
    """DRF's own reads without limit, and answers 500 to 100,000 nested lists and to half surrogate pairs."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        content = stream.read(limit + 1)
        if len(content) > limit:
            raise TooLarge(
                f"The body is larger than {limit:,} bytes. Nothing was changed. Send it in smaller parts."
            )
        try:
            found = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite)
            return _storable(found, DEEPEST)
        except RecursionError:
            raise ParseError("The JSON is nested too deeply. Nothing was changed.") from None
        except ValueError:
            raise ParseError("The body is not JSON in UTF-8. Nothing was changed.") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("too large a number")
    return number


def _storable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return replace_unstorable(value)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        raise RecursionError
    if isinstance(value, list):
        return [_storable(one, depth - 1) for one in value]
    return {replace_unstorable(name): _storable(one, depth - 1) for name, one in value.items()}
