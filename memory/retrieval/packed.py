"""Numbers into and out of PostgreSQL without a Python object, or a look at each, on the way.

Numbers that are read whole stand packed: one behind the other in a `bytea`, most significant byte first. So they are
stored (`Utterance.terms`, the entries of `Posting` and `SignBlock`), and so a column of many rows is asked for:
`string_agg(int8send(id), '')`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import psycopg
from django.db import connection
from numpy.typing import NDArray


def literal(values: Iterable[int]) -> str:
    """An array of integers as text, for `%s::bigint[]`: the driver looks for quotes in every number of a list."""
    return "{" + ",".join(map(str, values)) + "}"


def fetch(query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of a query, sent as bytes: Django's own cursor has every `bytea` spelled out in hexadecimal."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(query, values, binary=True)
        return cursor.fetchall()


def numbers(sent: bytes | None, kind: str) -> NDArray[Any]:
    """Packed numbers of one kind, numpy's name for it; `None` for none. Whole numbers become int64."""
    found = np.frombuffer(sent or b"", dtype=kind)
    return found.astype(np.int64 if found.dtype.kind == "i" else found.dtype.newbyteorder("="))
