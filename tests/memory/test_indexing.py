"""Indexing is a job over rows: it survives an absent embedder, and changes models without mixing them."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from werkzeug import Request, Response

from memory.embedding import PACKAGED_MODEL
from memory.indexing import _index_large_owners, index_pending
from memory.models import MemoryNode
from memory.recall_models import OwnerIndex, UnitVector, Utterance
from memory.retrieval import recall
from memory.search import By, search
from memory.services import delete_nodes
from memory.tasks import index_nodes, sweep_unindexed
from tests.memory.recalling import FILLER, NOW, remember

pytestmark = pytest.mark.django_db


@pytest.fixture
def other_model(httpserver, settings):
    def answer(request: Request) -> Response:
        asked = json.loads(request.data)["input"]
        rows = [{"index": n, "embedding": [len(text), text.count("a"), 1.0]} for n, text in enumerate(asked)]
        return Response(json.dumps({"data": rows}), content_type="application/json")

    httpserver.expect_request("/embeddings").respond_with_handler(answer)
    settings.NEURON_EMBEDDER_URL = httpserver.url_for("")
    settings.NEURON_EMBEDDER_MODEL = "letters"
    return httpserver


def models():
    return set(UnitVector.objects.values_list("model", flat=True))


def test_the_task_and_the_sweeper_index_what_is_due_and_may_run_twice(owner):
    nodes = [
        MemoryNode.objects.create(owner=owner, node_type="Knowledge", content=f"fact {n}") for n in range(3)
    ]
    index_nodes([str(nodes[0].pk)])
    assert Utterance.objects.count() == 1
    sweep_unindexed()
    sweep_unindexed()
    assert Utterance.objects.count() == UnitVector.objects.count() == 3


def test_without_an_embedder_words_still_find_and_vectors_come_later(owner, settings):
    settings.NEURON_EMBEDDER_URL, settings.NEURON_EMBEDDER_MODEL = "http://127.0.0.1:9", "away"
    nodes = remember(owner, *FILLER)
    assert models() == set()
    assert recall(owner, "my sister in Lisbon", now=NOW)[0].node == nodes[4]
    settings.NEURON_EMBEDDER_URL = ""
    index_pending()
    assert models() == {PACKAGED_MODEL}
    assert not Utterance.objects.filter(embedded_with="").exists()


def test_a_change_of_model_re_embeds_and_search_goes_on_meanwhile(owner, other_model):
    other_model.stop()
    nodes = remember(owner, *FILLER)
    Utterance.objects.update(embedded_with="")
    from django.conf import settings as live

    url, live.NEURON_EMBEDDER_URL = live.NEURON_EMBEDDER_URL, ""
    index_pending()
    assert models() == {PACKAGED_MODEL}
    live.NEURON_EMBEDDER_URL = url
    # The new model does not answer yet: the older vectors still rank.
    index_pending()
    assert recall(owner, "trouble with my vehicle", now=NOW)[0].channels["meaning"] > 0
    other_model.start()
    index_pending(limit=3)
    assert models() == {PACKAGED_MODEL, "letters"}
    for by in By:
        assert search(owner, "my sister in Lisbon", by=by).found[0].node == nodes[4]
    assert recall(owner, "trouble with my vehicle", now=NOW)
    for _ in range(5):
        index_pending()
    assert models() == {"letters"}
    assert recall(owner, "my sister in Lisbon", now=NOW)


def test_a_large_owners_vectors_are_walked_through_the_index(owner, other):
    nodes = remember(owner, *FILLER)
    remember(other, *FILLER)
    OwnerIndex.objects.filter(pk=owner.pk).update(chunks=10**6)
    _index_large_owners()
    assert OwnerIndex.objects.get(pk=owner.pk).approximate
    assert not UnitVector.objects.filter(owner=other, approximate=True).exists()
    assert UnitVector.objects.filter(owner=owner, approximate=False).count() == 0
    assert recall(owner, "trouble with my vehicle", now=NOW)[0].node == nodes[1]
    more = remember(owner, ("The bus broke down.", "Oh no."))
    assert UnitVector.objects.filter(utterance__node=more[0], approximate=True).exists()


def test_indexing_locks_nodes_then_the_owner_then_what_is_derived(owner):
    """As a deletion does. Else one holds the owner's row and waits for an utterance that the other holds."""
    with CaptureQueriesContext(connection) as indexing:
        nodes = remember(owner, *FILLER)
    with CaptureQueriesContext(connection) as deletion:
        delete_nodes(owner=owner, node_ids=[node.pk for node in nodes])
    order = ["memory_memorynode", "memory_ownerindex"]
    assert locked(indexing) == [*order, "memory_ownerindex", "memory_utterance"]
    assert locked(deletion)[:2] == order


def locked(captured: CaptureQueriesContext) -> list[str]:
    """The tables of the rows that these statements lock, in order."""
    statements = [query["sql"] for query in captured if "FOR UPDATE" in query["sql"]]
    return [one.split(' FROM "')[1].split('"')[0] for one in statements]
