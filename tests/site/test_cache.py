"""The cache: one pool of connections for all threads."""

import threading

from django.core.cache import cache, caches


def test_the_caches_of_two_threads_share_their_connections() -> None:
    cache.set("known", "yes")
    pools = []

    def read() -> None:
        assert caches["default"].get("known") == "yes"
        pools.append(caches["default"]._cache._get_connection_pool(write=False))

    for _ in range(2):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    assert len(pools) == 2
    assert pools[0] is pools[1]
