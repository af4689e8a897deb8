"""A person's engram as one JSON file: written piece by piece, verified whole before anything of it is used.

The file is JSON with a node or an edge a line. Its last line says how many there are, and the SHA-256 of every byte
before that line. A file that was changed, cut or written over by another program is refused.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection
from django.utils import timezone

from memory.engram.batch import Taken
from memory.engram.fields import Fields, WireError, integer_from, parse_json, text_up_to
from memory.engram.giving import AT_ONCE, dumped
from memory.engram.taking import SomebodyElses, restore
from memory.engram.wire import WireEdge, WireNode, read_edge, read_node, write_edge, write_node
from memory.models import MemoryEdge, MemoryNode

FORMAT = "neuron-engram-1"
LONGEST_LINE = 64 * 2**20
_EDGES = b'],"edges":[\n'
T = TypeVar("T")


class BadSnapshot(Exception):
    """The file cannot be used. The sentence says why; nothing was changed."""


# --- Writing ----------------------------------------------------------------------------------------------------


def write_snapshot(owner: AbstractBaseUser) -> Iterator[str]:
    """The file in pieces. Bells, state events and what is worked out from the rest are not in it; nor is what was
    deleted while it was written."""
    digest = hashlib.sha256()

    def hashed(text: str) -> str:
        digest.update(text.encode())
        return text

    head = {"format": FORMAT, "person": owner.get_username(), "made_at": timezone.now().isoformat()}
    yield hashed(dumped(head)[:-1] + ',"nodes":[\n')
    written: set[UUID] = set()
    nodes = MemoryNode.objects.owned_by(owner).given_out().order_by("pk")
    for number, batch in enumerate(_batches(nodes)):
        yield hashed((",\n" if number else "") + ",\n".join(dumped(write_node(node)) for node in batch))
        written |= {node.pk for node in batch}
    yield hashed(("\n" if written else "") + _EDGES.decode())
    edges = 0
    for batch in _batches(MemoryEdge.objects.owned_by(owner).given_out().order_by("pk")):
        lines = [dumped(write_edge(edge)) for edge in batch if {edge.source_id, edge.target_id} <= written]
        if lines:
            yield hashed((",\n" if edges else "") + ",\n".join(lines))
            edges += len(lines)
    yield hashed("\n" if edges else "")
    counts = {"nodes": len(written), "edges": edges}
    yield f'],"counts":{dumped(counts)},"sha256":"{digest.hexdigest()}"}}\n'


def _batches(rows: Any) -> Iterator[list[Any]]:
    last = UUID(int=0)
    while batch := list(rows.filter(pk__gt=last)[:AT_ONCE]):
        yield batch
        last = batch[-1].pk


async def stream_snapshot(owner: AbstractBaseUser) -> AsyncIterator[str]:
    """The same for a download: no connection of the pool is held between two pieces."""
    pieces = write_snapshot(owner)

    def following() -> str | None:
        try:
            return next(pieces, None)
        finally:
            if not connection.in_atomic_block:
                connection.close()

    while (piece := await sync_to_async(following)()) is not None:
        yield piece


# --- Reading ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """What a sound file says of itself."""

    person: str
    made_at: str
    nodes: int
    edges: int


def verify(file: BinaryIO) -> Summary:
    """Read the whole file and check all of it. Raises BadSnapshot; the file is left at its end."""
    file.seek(0)
    digest = hashlib.sha256()
    ids: dict[str, set[UUID]] = {"nodes": set(), "edges": set()}
    place, head, tail = "nodes", b"", b""
    for number, line in enumerate(_lines(file)):
        if tail:
            raise BadSnapshot("Something stands behind the end of this file. Nothing was changed.")
        if number == 0:
            head = line
        elif line == _EDGES and place == "nodes":
            place = "edges"
        elif line.startswith(b'],"counts"') and place == "edges":
            tail = line
            continue
        else:
            one = _read(line, read_node if place == "nodes" else read_edge, number + 1)
            if one.id in ids[place]:
                raise BadSnapshot(f"Line {number + 1} of this file repeats an id. Nothing was changed.")
            ids[place].add(one.id)
        digest.update(line)
    summary, said = _summary(head, tail)
    if said != digest.hexdigest() or (summary.nodes, summary.edges) != (len(ids["nodes"]), len(ids["edges"])):
        raise BadSnapshot("This file was changed or damaged since it was written. Nothing was changed here.")
    return summary


def import_snapshot(*, owner: AbstractBaseUser, file: BinaryIO) -> Taken:
    """Bring back what the file holds: all of it or, with BadSnapshot, nothing. What is newer here stays."""
    verify(file)
    file.seek(0)
    lines = _lines(file)
    next(lines)
    try:
        return restore(
            owner=owner,
            nodes=_read_batches(lines, until=_EDGES, read=read_node),
            edges=_read_batches(lines, until=b'],"counts"', read=read_edge),
        )
    except SomebodyElses:
        raise BadSnapshot(
            "Some of what is in this file belongs to another account of this Neuron. Nothing was changed."
        ) from None


def _read_batches(lines: Iterator[bytes], *, until: bytes, read: Callable[[Any], T]) -> Iterator[list[T]]:
    batch: list[T] = []
    for line in lines:
        if line.startswith(until):
            break
        batch.append(read(parse_json(line.removesuffix(b"\n").removesuffix(b","))))
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    yield batch


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise BadSnapshot("A line of this file is too long to be one of Neuron's. Nothing was changed.")
        yield line


def _read(line: bytes, read: Callable[[Any], WireNode | WireEdge], number: int) -> WireNode | WireEdge:
    try:
        return read(parse_json(line.removesuffix(b"\n").removesuffix(b",")))
    except WireError as error:
        raise BadSnapshot(
            f"Line {number} of this file cannot be used: {error}. Nothing was changed."
        ) from None


def _summary(head: bytes, tail: bytes) -> tuple[Summary, str]:
    try:
        whole = Fields(parse_json(head + b"]}"))
        end = Fields(json.loads(b'{"":[' + tail))
        if whole.required("format", text_up_to(40)) != FORMAT:
            raise WireError("another format")
        counts = end.required("counts", Fields)
        summary = Summary(
            person=whole.required("person", text_up_to(200)),
            made_at=whole.required("made_at", text_up_to(40)),
            nodes=counts.required("nodes", integer_from(0)),
            edges=counts.required("edges", integer_from(0)),
        )
        return summary, end.required("sha256", text_up_to(64))
    except (WireError, ValueError):
        raise BadSnapshot("This is not a whole snapshot that Neuron wrote. Nothing was changed.") from None
