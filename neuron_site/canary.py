"""When a worker last did what it was asked, by the clock of the broker."""

import redis
from django.conf import settings

# beat asks every 15 s; three missed ones mean that something is down.
STALE_SECONDS = 45
_KEPT_SECONDS = 24 * 3600


def _client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2, decode_responses=True
    )


def _key(bearer: str) -> str:
    return f"neuron:canary:{bearer}"


def leave(bearer: str) -> None:
    """Note that a task of this bearer (beat, doctor) was carried out now."""
    with _client() as client:
        client.set(_key(bearer), client.time()[0], ex=_KEPT_SECONDS)


def age(bearer: str) -> float | None:
    """Seconds since the last canary, by the server's clock; None where there was none within a day."""
    with _client() as client:
        left = client.get(_key(bearer))
        return None if left is None else float(client.time()[0] - int(left))


def remove(bearer: str) -> None:
    with _client() as client:
        client.delete(_key(bearer))
