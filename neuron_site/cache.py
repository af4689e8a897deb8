"""The cache: Valkey's, taken for empty while it is away. What is cached is kept in the database too."""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.redis import RedisCache
from redis import ConnectionPool
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


class SharedPool:
    """One pool of connections for the process.

    Django makes a cache for each thread, and under ASGI each request has a thread of its own: each would connect anew.
    """

    from_url = staticmethod(cache(ConnectionPool.from_url))


class ForgivingRedisCache(RedisCache):
    """Sign-in and pages go on without a cache: a read finds nothing, a write is not kept."""

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._forgiving(lambda: super(ForgivingRedisCache, self).get(key, default, version), default)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._forgiving(lambda: super(ForgivingRedisCache, self).set(key, value, timeout, version), None)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return bool(
            self._forgiving(lambda: super(ForgivingRedisCache, self).add(key, value, timeout, version), True)
        )

    def delete(self, key: Any, version: int | None = None) -> bool:
        return bool(self._forgiving(lambda: super(ForgivingRedisCache, self).delete(key, version), False))

    def has_key(self, key: Any, version: int | None = None) -> bool:
        return bool(self._forgiving(lambda: super(ForgivingRedisCache, self).has_key(key, version), False))

    def _forgiving(self, call: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return call()
        except (RedisError, OSError):
            logger.warning("the cache does not answer; going on without it")
            return otherwise
