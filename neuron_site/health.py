"""`/livez` and `/readyz`, for machines: the process answers; the process can do its work."""

import logging

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memory.engram.status import breaker_state

logger = logging.getLogger(__name__)


@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 with both parts true, or 503 that says which one is not.

    The remote engram is told of beside them: Neuron is ready without it.
    """
    parts = {"database": _database_answers(), "broker": _broker_answers()}
    beside = {"engram": _engram()} if settings.ENGRAM_URL else {}
    return JsonResponse({**parts, **beside}, status=200 if all(parts.values()) else 503)


def _engram() -> dict[str, str | int | None]:
    state = breaker_state()
    if state is None:
        return {"breaker": "unknown"}
    return {
        "breaker": state.name,
        "failures_in_a_row": state.failures_in_a_row,
        "failures": state.failures,
        "successes": state.successes,
        "openings": state.openings,
        "last_error": state.last_error,
        "last_error_at": state.last_error_at,
    }


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except (DatabaseError, InterfaceError):
        logger.warning("not ready: the database does not answer")
        return False
    return True


def _broker_answers() -> bool:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
            return bool(client.ping())
    except (redis.exceptions.RedisError, OSError):
        logger.warning("not ready: the broker does not answer")
        return False
