"""Numbers into and out of PostgreSQL's arrays without a Python object, or a look at each, on the way. Pure."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEAD_BYTES = 20
_LENGTH_BYTES = 4


def literal(values: Iterable[int]) -> str:
    """An array of integers as text, for `%s::bigint[]`: the driver looks for quotes in every number of a list."""
    return "{" + ",".join(map(str, values)) + "}"


def numbers(sent: Iterable[bytes], kind: str) -> NDArray[Any]:
    """Those of arrays without NULL, one behind the other, as `array_send` gives them; `kind` is what numpy calls it.

    The wire form is a head of 20 bytes, then each number after its length.
    """
    return elements(b"".join(bytes(one)[HEAD_BYTES:] for one in sent), kind)


def elements(body: bytes, kind: str) -> NDArray[Any]:
    """The same without heads. Whole numbers become int64."""
    found = np.frombuffer(body, dtype=[("length", ">i4"), ("number", kind)])["number"]
    return found.astype(np.int64 if found.dtype.kind == "i" else found.dtype.newbyteorder("="))


def count(sent: bytes, kind: str) -> int:
    """How many numbers one such array holds."""
    return max(0, len(sent) - HEAD_BYTES) // (_LENGTH_BYTES + np.dtype(kind).itemsize)
