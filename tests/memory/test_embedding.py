"""The embedders: the packaged model on this machine, and an address that speaks OpenAI's form."""

import json

import numpy as np
import pytest
from werkzeug import Request, Response

from memory.embedding import EmbedderUnavailable, RemoteEmbedder, embed, embed_packaged, model_name


def test_vectors_are_of_unit_length_and_keep_the_order_of_the_texts():
    texts = ["a long walk by the river with the dog " * 9, "tax return", "a stroll along the water", ""]
    vectors = embed(texts)
    assert vectors.shape == (4, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[2] > vectors[1] @ vectors[2] + 0.2


def test_a_text_has_the_same_vector_alone_and_in_a_batch():
    alone = embed_packaged(["my sister moved"])[0]
    among = embed_packaged(["my sister moved", "something a good deal longer than the other text " * 8])[0]
    assert np.array_equal(alone, among)


def test_surrogates_nul_and_megabytes_are_embedded_like_any_text():
    assert embed(["\ud83d lone", "a\x00b", "word " * 200_000]).shape == (3, 384)


def test_no_text_gives_no_vector():
    assert embed([]).shape == (0, 384)


def _answer(request: Request) -> Response:
    asked = json.loads(request.data)["input"]
    rows = [{"index": i, "embedding": [float(len(text)), 0.0, 3.0]} for i, text in enumerate(asked)]
    return Response(json.dumps({"data": rows[::-1]}), content_type="application/json")


def test_a_remote_embedder_is_asked_in_batches_and_normalised(httpserver, settings):
    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(_answer)
    settings.NEURON_EMBEDDER_URL = httpserver.url_for("/v1")
    settings.NEURON_EMBEDDER_MODEL = "bigger"
    settings.NEURON_EMBEDDER_KEY = "secret"
    vectors = embed(["x" * (i + 1) for i in range(40)])
    assert model_name() == "bigger"
    assert vectors.shape == (40, 3)
    assert np.allclose(vectors[3], np.array([4, 0, 3]) / 5)
    assert len(httpserver.log) == 2
    assert httpserver.log[0][0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, ""),
        (200, "[]"),
        (200, '{"error": "no"}'),
        (200, '{"data": []}'),
        (200, '{"data": [{"index": 0, "embedding": "no"}]}'),
        (200, '{"data": [{"index": 0, "embedding": [NaN, 1]}]}'),
        (302, ""),
        (500, "oops"),
    ],
)
def test_a_bad_answer_is_a_failure(httpserver, status, body):
    httpserver.expect_request("/embeddings").respond_with_data(body, status=status)
    with pytest.raises(EmbedderUnavailable):
        RemoteEmbedder(url=httpserver.url_for(""), name="m").embed(["one"], timeout_s=3)


def test_an_address_where_nobody_listens_is_a_failure():
    with pytest.raises(EmbedderUnavailable):
        RemoteEmbedder(url="http://127.0.0.1:9", name="m").embed(["one"], timeout_s=1)
