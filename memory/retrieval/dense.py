"""The channel of meaning: which utterances of an owner are near a query in the embedder's space."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from memory import embedding
from memory.retrieval import packed
from memory.retrieval.filters import Filters
from memory.retrieval.fusion import Floats, Ints

Vector = NDArray[np.float32]  # (dimensions,)
Vectors = NDArray[np.float32]  # (n, dimensions)

logger = logging.getLogger(__name__)

# A person waits for the answer: past this, words alone must do.
QUERY_TIMEOUT_S = 3.0
# Vectors compared exactly for each one wanted.
FIRST_LOOK = 8


def searchable_model(owner_id: int) -> str:
    """The model whose vectors this owner's memory can be ranked by.

    The configured one, unless another still made some of the vectors: then that one, which all older utterances
    have, until the last is embedded anew. Two models are never mixed.
    """
    return indexed(owner_id).model


@dataclass(frozen=True, slots=True)
class Indexed:
    """What an owner's index holds: `utterances` is how many there ever were, `approximate` whether their vectors are
    in the HNSW index, `model` the `searchable_model`.
    """

    chunks: int
    utterances: int
    approximate: bool
    model: str


def indexed(owner_id: int) -> Indexed:
    """The owner's index, in one statement."""
    current = embedding.model_name()
    with connection.cursor() as cursor:
        # Two ranges of the index on (owner, embedded_with), both empty nearly always.
        cursor.execute(
            "SELECT chunks, utterances, approximate, coalesce("
            " (SELECT embedded_with FROM memory_utterance"
            " WHERE owner_id = %s AND embedded_with > '' AND embedded_with < %s LIMIT 1),"
            " (SELECT embedded_with FROM memory_utterance WHERE owner_id = %s AND embedded_with > %s LIMIT 1))"
            " FROM memory_ownerindex WHERE owner_id = %s",
            [owner_id, current, owner_id, current, owner_id],
        )
        chunks, utterances, approximate, older = cursor.fetchone() or (0, 0, False, None)
    return Indexed(chunks, utterances, approximate, older or current)


def embed_query(query: str, model: str) -> Vector | None:
    """The query's vector in that model's space; None where nothing can make it now."""
    try:
        if model == embedding.model_name():
            return np.asarray(embedding.embed([query], timeout_s=QUERY_TIMEOUT_S)[0])
        if model == embedding.PACKAGED_MODEL:
            return np.asarray(embedding.embed_packaged([query])[0])
    except embedding.EmbedderUnavailable as error:
        logger.warning("searching by words alone: %s", error)
    return None


def candidates(
    owner_id: int,
    vector: Vector,
    model: str,
    filters: Filters,
    limit: int,
    *,
    approximate: bool,
) -> list[int]:
    """Ids of the utterances nearest to the query as wholes.

    A first look compares signs (the Hamming distance of the binary quantisation), and the best of it are compared
    exactly: of the 40 nearest of 20,000 this finds 37 to 38.
    """
    if approximate and model == embedding.PACKAGED_MODEL:
        return _nearest_approximately(owner_id, vector, filters, limit)
    near = filters.first(owner_id, _by_signs(owner_id, vector, model), FIRST_LOOK * limit)
    found = packed.fetch(
        "SELECT utterance_id FROM memory_unitvector"
        " WHERE utterance_id = ANY(%s::bigint[]) AND owner_id = %s AND model = %s AND unit = 0"
        " ORDER BY embedding <#> %s::halfvec LIMIT %s",
        [packed.literal(near), owner_id, model, as_literal(vector), limit],
    )
    return [pk for (pk,) in found]


def _by_signs(owner_id: int, vector: Vector, model: str) -> Ints:
    """All of the owner's utterances, by the Hamming distance of their signs."""
    blocks = packed.fetch(
        "SELECT entries FROM memory_signblock WHERE owner_id = %s AND model = %s ORDER BY block",
        [owner_id, model],
    )
    signs = np.packbits(vector > 0)
    entries = np.frombuffer(b"".join(sent for (sent,) in blocks), dtype=np.uint8).reshape(-1, 8 + len(signs))
    ids = packed.numbers(entries[:, :8].tobytes(), ">i8")
    # As few and wide numbers as the row divides into.
    width = 8 if len(signs) % 8 == 0 else 1
    wide, asked = entries.view(f"u{width}")[:, 8 // width :], signs.view(f"u{width}")
    distance = np.zeros(len(ids), dtype=np.uint16)
    for column in range(len(asked)):
        distance += np.bitwise_count(wide[:, column] ^ asked[column])
    return ids[np.argsort(distance, kind="stable")]


def _nearest_approximately(owner_id: int, vector: Vector, filters: Filters, limit: int) -> list[int]:
    size, model = embedding.PACKAGED_DIMENSIONS, embedding.PACKAGED_MODEL
    near = f"v.embedding::halfvec({size}) <#> %s::halfvec({size})"
    joined = " JOIN memory_utterance u ON u.id = v.utterance_id" if filters.sql else ""
    with transaction.atomic(), connection.cursor() as cursor:
        # The index holds all large owners: it is walked on until enough of this one's have been met.
        cursor.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
        cursor.execute(f"SET LOCAL hnsw.ef_search = {min(max(limit, 40), 1000)}")
        cursor.execute(
            f"SELECT v.utterance_id FROM memory_unitvector v{joined}"
            f" WHERE v.unit = 0 AND v.approximate AND v.model = '{model}' AND v.owner_id = %s{filters.sql}"
            f" AND v.utterance_id <> ALL(%s::bigint[]) ORDER BY {near} LIMIT %s",
            [owner_id, *filters.values, packed.literal(filters.left_out), as_literal(vector), limit],
        )
        return [row[0] for row in cursor.fetchall()]


def nearness(owner_id: int, utterance_ids: Ints, vector: Vector, model: str) -> Floats:
    """d of each utterance: half the cosine of the whole, half that of its best unit (the whole, where it has none).

    0 where there is no vector.
    """
    [(sent_ids, sent_units, sent_nears)] = packed.fetch(
        "SELECT string_agg(int8send(utterance_id), ''), string_agg(int2send(unit), ''),"
        " string_agg(float8send(-(embedding <#> %s::halfvec)), '') FROM memory_unitvector"
        " WHERE utterance_id = ANY(%s::bigint[]) AND model = %s AND owner_id = %s",
        [as_literal(vector), packed.literal(utterance_ids.tolist()), model, owner_id],
    )
    ids, is_whole = packed.numbers(sent_ids, ">i8"), packed.numbers(sent_units, ">i2") == 0
    near = packed.numbers(sent_nears, ">f8")
    order = np.argsort(utterance_ids)
    place = order[np.searchsorted(utterance_ids, ids, sorter=order)]
    whole = np.zeros(len(utterance_ids))
    whole[place[is_whole]] = near[is_whole]
    unit = np.full(len(utterance_ids), -np.inf)
    np.maximum.at(unit, place[~is_whole], near[~is_whole])
    return (whole + np.where(np.isinf(unit), whole, unit)) / 2


def vectors(owner_id: int, utterance_ids: Sequence[int], model: str) -> tuple[list[int], Vectors]:
    """The utterances among these that have a vector as wholes, and those vectors."""
    rows = packed.fetch(
        "SELECT utterance_id, halfvec_send(embedding) FROM memory_unitvector"
        " WHERE utterance_id = ANY(%s::bigint[]) AND model = %s AND owner_id = %s AND unit = 0",
        [packed.literal(utterance_ids), model, owner_id],
    )
    return [pk for pk, _ in rows], _read([sent for _, sent in rows])


def vectors_of_people(owner_id: int, model: str) -> dict[UUID, Vector]:
    """What the person said in each turn, by its node: the vector of the whole message."""
    rows = packed.fetch(
        "SELECT u.node_id, halfvec_send(v.embedding) FROM memory_unitvector v"
        " JOIN memory_utterance u ON u.id = v.utterance_id"
        " WHERE v.owner_id = %s AND v.model = %s AND v.unit = 0 AND u.role IN ('person', 'speaker')",
        [owner_id, model],
    )
    return dict(zip([node_id for node_id, _ in rows], _read([sent for _, sent in rows]), strict=True))


def _read(sent: Sequence[bytes]) -> Vectors:
    """The wire form of each: two 16-bit numbers (dimensions, unused), then half floats, most significant byte first."""
    if not sent:
        return np.zeros((0, 0), dtype=np.float32)
    return np.frombuffer(b"".join(sent), dtype=">f2").reshape(len(sent), -1)[:, 2:].astype(np.float32)


def as_literal(vector: Vector) -> str:
    return "[" + ",".join(f"{number:.6g}" for number in vector.tolist()) + "]"
