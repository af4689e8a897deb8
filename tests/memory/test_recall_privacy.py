"""No owner sees another's memory through any channel, and what is deleted is gone from every table."""

import uuid

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import indexing
from memory.indexing import index_pending
from memory.models import MemoryNode
from memory.recall_models import OwnerIndex, OwnerTerm, Posting, SignBlock, UnitVector, Utterance
from memory.retrieval import packed, recall
from memory.services import delete_nodes, delete_session_nodes
from tests.memory.recalling import FILLER, NOW, remember

pytestmark = pytest.mark.django_db


def test_two_owners_with_the_same_words_find_their_own_alone(owner, other):
    mine, theirs = remember(owner, *FILLER), remember(other, *FILLER)
    for query in ("my sister in Lisbon", "vehicle trouble", "summarise all that I said", "Lisb"):
        for person, nodes in ((owner, mine), (other, theirs)):
            hits = recall(person, query, now=NOW)
            assert hits
            assert {hit.node for hit in hits} <= set(nodes)
            assert {one.node_id for hit in hits for one in hit.neighbours} <= {node.pk for node in nodes}


def test_neighbours_come_from_the_owners_thread_even_if_session_ids_collide(owner, other):
    session = uuid.uuid4()
    MemoryNode.objects.create(
        owner=other,
        node_type="Knowledge",
        content="zebra secret",
        session_id=session,
    )
    remember(owner, *FILLER, session_id=session)
    hits = recall(owner, "zebra sister Lisbon", session_id=session)
    assert all(hit.node.owner_id == owner.pk for hit in hits)


WORDS = st.sampled_from(["sister", "river", "garden", "cello", "walnut", "lighthouse", "熊猫", "Fahrrad"])
SENTENCE = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mine=st.lists(SENTENCE, max_size=4), theirs=st.lists(SENTENCE, max_size=4), query=SENTENCE)
def test_whatever_is_said_and_asked_only_the_owners_nodes_come_back(db, mine, theirs, query):
    people = [User.objects.create(username=uuid.uuid4().hex) for _ in range(2)]
    for person, sentences in zip(people, (mine, theirs), strict=True):
        if sentences:
            remember(person, *[(sentence, "I see.") for sentence in sentences])
    for person in people:
        hits = recall(person, query, now=NOW)
        assert all(hit.node.owner_id == person.pk for hit in hits)
        assert bool(hits) == MemoryNode.objects.for_owner(person).exists()


def cut(entries, width):
    return [entries[at : at + width] for at in range(0, len(entries), width)]


def rows_of(owner):
    return {
        model.__name__: model.objects.filter(owner_id=owner.pk).count()
        for model in (Utterance, UnitVector, OwnerTerm, Posting, SignBlock)
    }


def test_deleting_a_node_leaves_nothing_of_it_in_any_table(owner):
    remember(owner, *FILLER)
    before = rows_of(owner), OwnerIndex.objects.get(pk=owner.pk).chunks
    terms = set(OwnerTerm.objects.filter(owner=owner).values_list("word", "chunks"))
    secret = remember(owner, ("The xylophone is hidden in the boathouse.", "The boathouse it is."))
    assert recall(owner, "xylophone")[0].node == secret[0]

    delete_nodes(owner=owner, node_ids=[secret[0].pk])

    assert (rows_of(owner), OwnerIndex.objects.get(pk=owner.pk).chunks) == before
    assert set(OwnerTerm.objects.filter(owner=owner).values_list("word", "chunks")) == terms
    for query in ("xylophone", "boathouse", "xylo", "musical instrument hidden by the lake"):
        assert all("boathouse" not in hit.snippet for hit in recall(owner, query, now=NOW))


def test_deleting_a_session_or_a_person_deletes_all_that_was_derived(owner, other):
    nodes = remember(owner, *FILLER)
    remember(other, *FILLER)
    kept = rows_of(other)
    delete_session_nodes(owner=owner, session_id=nodes[0].session_id)
    assert set(rows_of(owner).values()) == {0}
    assert recall(owner, "sister Lisbon") == []
    remember(owner, *FILLER)
    owner.delete()
    assert set(rows_of(owner).values()) == {0}
    assert rows_of(other) == kept


def test_the_databases_counts_are_those_of_the_rows(owner):
    remember(owner, *FILLER)
    nodes = remember(owner, *FILLER)
    delete_nodes(owner=owner, node_ids=[node.pk for node in nodes[::2]])
    counted: dict[int, int] = {}
    for terms in Utterance.objects.filter(owner=owner).values_list("terms", flat=True):
        for number in packed.numbers(terms, ">i8").tolist():
            if number:
                counted[number] = counted.get(number, 0) + 1
    assert counted == dict(OwnerTerm.objects.filter(owner=owner).values_list("key", "chunks"))


def test_the_postings_name_each_utterance_once_for_each_of_its_words(owner, monkeypatch):
    monkeypatch.setattr(indexing, "UTTERANCES_IN_A_BLOCK", 3)
    remember(owner, *FILLER)
    nodes = remember(owner, *FILLER, ("The lake. The lake! The deep lake?", "Which lake?"))
    delete_nodes(owner=owner, node_ids=[node.pk for node in nodes[1::2]])
    standing = {
        (number, row.pk, row.session_id.bytes[:4])
        for row in Utterance.objects.filter(owner=owner)
        for number in packed.numbers(row.terms, ">i8").tolist()
        if number
    }
    posted = [
        (posting.key, int.from_bytes(entry[:8], "big"), entry[8:])
        for posting in Posting.objects.filter(owner=owner)
        for entry in cut(posting.entries, 12)
    ]
    assert Posting.objects.filter(owner=owner).values("block").distinct().count() > 2
    assert sorted(posted) == sorted(standing)


def test_the_blocks_hold_the_signs_of_each_whole_vector_once(owner, other):
    remember(other, *FILLER)
    remember(owner, *FILLER)
    nodes = remember(owner, *FILLER, ("One thing after another. " * 30, "Much was said."))
    delete_nodes(owner=owner, node_ids=[node.pk for node in nodes[1::2]])
    for person in (owner, other):
        standing = {
            (vector.utterance_id, np.packbits(np.array(vector.embedding) > 0).tobytes())
            for vector in UnitVector.objects.filter(owner=person, unit=0)
        }
        blocks = [
            (int.from_bytes(entry[:8], "big"), entry[8:])
            for block in SignBlock.objects.filter(owner=person)
            for entry in cut(block.entries, 8 + 384 // 8)
        ]
        assert sorted(blocks) == sorted(standing)
        assert len(standing) == Utterance.objects.filter(owner=person).count() > 0


def test_blocks_are_of_a_thousand_and_lose_what_is_deleted_from_any(owner):
    node = remember(owner, ("Hello.", ""))[0]
    spoken = Utterance.objects.get(node=node)
    with connection.cursor() as cursor:
        # Of utterances that there are not: the database asks for them at the end of the transaction alone.
        for first, last in ((1, 700), (701, 1500), (1501, 4000)):
            cursor.execute(
                "INSERT INTO memory_unitvector (owner_id, utterance_id, unit, model, embedding, approximate)"
                " SELECT %s, %s + n, 0, 'a model', ARRAY[n - 1000, 1, -1]::real[]::halfvec, false"
                " FROM generate_series(%s, %s) AS n",
                [owner.pk, spoken.pk, first, last],
            )
        blocks = SignBlock.objects.filter(owner=owner, model="a model").order_by("block")
        assert [len(block.entries) // 9 for block in blocks] == [1024, 1024, 1024, 928]
        cursor.execute(
            "DELETE FROM memory_unitvector WHERE model = 'a model' AND (utterance_id - %s) NOT IN (1, 999, 1001, 4000)",
            [spoken.pk],
        )
    assert [cut(bytes(block.entries), 9) for block in blocks.all()] == [
        [(spoken.pk + 1).to_bytes(8, "big") + b"\x40", (spoken.pk + 999).to_bytes(8, "big") + b"\x40",
         (spoken.pk + 1001).to_bytes(8, "big") + b"\xc0"],
        [(spoken.pk + 4000).to_bytes(8, "big") + b"\xc0"],
    ]  # fmt: skip
    UnitVector.objects.filter(model="a model").delete()
    assert not blocks.all()


def test_no_two_owners_share_a_key(owner, other):
    remember(owner, *FILLER)
    remember(other, *FILLER)
    keys = [set(OwnerTerm.objects.filter(owner=one).values_list("key", flat=True)) for one in (owner, other)]
    assert not keys[0] & keys[1]


def test_indexing_twice_changes_nothing(owner):
    nodes = remember(owner, *FILLER)
    before = rows_of(owner)
    MemoryNode.objects.filter(pk__in=[node.pk for node in nodes]).update(indexed_version=0)
    index_pending()
    index_pending()
    assert rows_of(owner) == before


def test_a_node_forgotten_while_it_is_embedded_leaves_no_vector(owner):
    nodes = remember(owner, *FILLER)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memory_unitvector")
    Utterance.objects.update(embedded_with="")
    nodes[0].delete()
    index_pending()
    assert not UnitVector.objects.filter(utterance__node=nodes[0].pk).exists()
    assert np.isfinite(recall(owner, "sister")[0].score)
