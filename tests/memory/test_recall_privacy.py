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
from memory.recall_models import OwnerIndex, OwnerTerm, Posting, UnitVector, Utterance
from memory.retrieval import recall
from memory.retrieval.lexical import thread_number
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


def rows_of(owner):
    return {
        model.__name__: model.objects.filter(owner_id=owner.pk).count()
        for model in (Utterance, UnitVector, OwnerTerm, Posting)
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
        for number in terms:
            if number:
                counted[number] = counted.get(number, 0) + 1
    assert counted == dict(OwnerTerm.objects.filter(owner=owner).values_list("key", "chunks"))


def test_the_postings_name_each_utterance_once_for_each_of_its_words(owner, monkeypatch):
    monkeypatch.setattr(indexing, "UTTERANCES_IN_A_BLOCK", 3)
    remember(owner, *FILLER)
    nodes = remember(owner, *FILLER, ("The lake. The lake! The deep lake?", "Which lake?"))
    delete_nodes(owner=owner, node_ids=[node.pk for node in nodes[1::2]])
    standing = {
        (number, row.pk, thread_number(row.session_id))
        for row in Utterance.objects.filter(owner=owner)
        for number in row.terms
        if number
    }
    posted = [
        (posting.key, utterance, thread)
        for posting in Posting.objects.filter(owner=owner)
        for utterance, thread in zip(posting.utterances, posting.threads, strict=True)
    ]
    assert Posting.objects.filter(owner=owner).values("block").distinct().count() > 2
    assert sorted(posted) == sorted(standing)


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
