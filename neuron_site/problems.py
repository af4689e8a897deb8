"""Errors of the API as problem+json (RFC 9457): what happened, what was kept, what to do."""

from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions, status
from rest_framework.response import Response

CONTENT_TYPE = "application/problem+json"
DATABASE_AWAY = (
    "Neuron cannot reach its memory at the moment. Nothing of this was kept: send it again in a minute."
)


class Problem(exceptions.APIException):
    """A domain error the API answers with: a status, a short code and a sentence."""

    def __init__(self, *, status_code: int, code: str, detail: str) -> None:
        super().__init__(detail=detail, code=code)
        self.status_code = status_code


def body(status_code: int, title: str, detail: str, code: str, **more: Any) -> dict[str, Any]:
    """The problem object: RFC 9457's members plus `code`, a stable word programs can match on."""
    return {
        "type": "about:blank",
        "title": title,
        "status": status_code,
        "detail": detail,
        "code": code,
        **more,
    }


def database_is_away(error: Exception) -> bool:
    """Whether the connection failed, and not a statement: that has a SQLSTATE of its own.

    Classes 08 and 53 are a lost connection and a server without room; 57P is one that goes down or comes up.
    """
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(("08", "53", "57P"))


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn DRF's errors into problem+json; None for anything unknown, which becomes a plain 500."""
    # Imported here: these views read the settings, whose parsers need Problem from this very module.
    from rest_framework.views import exception_handler as drf_exception_handler

    if isinstance(error, Http404):
        error = exceptions.NotFound("There is nothing here by that name.")
    if database_is_away(error):
        error = Problem(status_code=503, code="database_away", detail=DATABASE_AWAY)
    response = drf_exception_handler(error, context)
    if response is None or not isinstance(error, exceptions.APIException):
        return response
    more: dict[str, Any] = {}
    codes = error.get_codes()
    if isinstance(error, exceptions.ValidationError):
        detail, code = "Some of what was sent cannot be used. Nothing was changed.", "invalid"
        more["errors"] = response.data
    else:
        detail, code = str(error.detail), codes if isinstance(codes, str) else error.default_code
    title = _TITLES.get(response.status_code, "Error")
    response.data = body(response.status_code, title, detail, code, **more)
    response.content_type = CONTENT_TYPE
    return response


def problem_response(request: HttpRequest, status_code: int, code: str, detail: str) -> JsonResponse:
    """The same shape for errors raised outside DRF (handlers of 404, 413 and 500 below /api/)."""
    title = _TITLES.get(status_code, "Error")
    return JsonResponse(body(status_code, title, detail, code), status=status_code, content_type=CONTENT_TYPE)


_TITLES = {
    status.HTTP_400_BAD_REQUEST: "Bad request",
    status.HTTP_401_UNAUTHORIZED: "Not signed in",
    status.HTTP_403_FORBIDDEN: "Not allowed",
    status.HTTP_404_NOT_FOUND: "Not found",
    status.HTTP_405_METHOD_NOT_ALLOWED: "Method not allowed",
    status.HTTP_409_CONFLICT: "Conflict",
    status.HTTP_413_REQUEST_ENTITY_TOO_LARGE: "Too large",
    status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: "Unsupported media type",
    status.HTTP_422_UNPROCESSABLE_ENTITY: "Cannot be used",
    status.HTTP_429_TOO_MANY_REQUESTS: "Too many requests",
    status.HTTP_500_INTERNAL_SERVER_ERROR: "Server error",
    status.HTTP_503_SERVICE_UNAVAILABLE: "Not available now",
}
