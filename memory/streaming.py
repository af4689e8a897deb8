"""Reading the database between two pieces of a long answer, which holds no connection meanwhile."""

from collections.abc import Callable
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import connection

T = TypeVar("T")


async def read_between(query: Callable[[], T]) -> T:
    """What the query gives. A slow reader of the answer must not hold a connection of the pool until the next."""

    def run() -> T:
        try:
            return query()
        finally:
            if not connection.in_atomic_block:
                connection.close()

    return await sync_to_async(run)()
