"""Edges of a turn: made by a job, once, within one owner, and gone with what they stood on."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from memory.connections import connect_node, connect_pending
from memory.knowledge import keep_fact
from memory.models import MemoryEdge, MemoryNode
from memory.retrieval import recall
from memory.services import delete_nodes, overwrite_node
from memory.tasks import sweep_unindexed
from tests.memory.recalling import FILLER, LONG_AGO, NOW, remember

pytestmark = pytest.mark.django_db
CELLO = "I practised the cello for two hours and my bow arm hurts."
CELLO_AGAIN = "I practised the cello for an hour, and my arm hurts again."


def edges(owner, kind):
    return [
        (edge.source, edge.target)
        for edge in MemoryEdge.objects.filter(owner=owner, kind=kind).select_related("source", "target")
    ]


def names(owner):
    return sorted(
        MemoryNode.objects.for_owner(owner).of_type("Entity").values_list("label", flat=True), key=str.lower
    )


def test_a_turn_is_connected_with_earlier_ones_on_its_topic_in_other_sessions(owner):
    (first,) = remember(owner, (CELLO, "Rest it."))
    remember(owner, *FILLER, at=LONG_AGO + timedelta(days=1))
    again = remember(owner, (CELLO_AGAIN, "Rest."), (CELLO_AGAIN, "Rest."), at=LONG_AGO + timedelta(days=2))
    assert connect_pending() == 1 + len(FILLER) + 2
    assert edges(owner, "same_topic") == [(again[0], first), (again[1], first)]
    assert 0.65 <= MemoryEdge.objects.filter(kind="same_topic").first().weight <= 1
    assert connect_pending() == 0


def test_what_a_turn_names_is_one_node_however_often_it_is_named(owner):
    remember(owner, ("My sister Ada moved to Lisbon.", "To Porto?"), ("I miss Ada, and Lisbon.", "Yes."))
    connect_pending()
    assert names(owner) == ["Ada", "Lisbon", "my sister"]
    assert len(edges(owner, "mentions")) == 5
    assert "Porto" not in names(owner)


def test_a_changed_turn_gets_new_edges_in_place_of_the_old(owner):
    (node,) = remember(owner, ("I met Ada in Lisbon.", "Nice."))
    connect_pending()
    overwrite_node(node=node, payload={**node.payload, "q": "I met Ada in Porto."}, content="Q: A:")
    remember(owner)
    connect_pending()
    assert sorted(target.label for _, target in edges(owner, "mentions")) == ["Ada", "Porto"]


def test_the_sweeper_connects_what_it_has_indexed_and_may_run_twice(owner):
    remember(owner, ("I met Ada in Lisbon.", "Nice."))
    sweep_unindexed()
    before = set(MemoryEdge.objects.values_list("pk", flat=True))
    assert before
    sweep_unindexed()
    for node in MemoryNode.objects.all():
        connect_node(node_id=node.pk)
    assert set(MemoryEdge.objects.values_list("pk", flat=True)) == before


def test_a_turn_waits_until_it_has_been_embedded(owner, settings):
    settings.NEURON_EMBEDDER_URL, settings.NEURON_EMBEDDER_MODEL = "http://127.0.0.1:9", "away"
    remember(owner, ("I met Ada in Lisbon.", "Nice."))
    assert connect_pending() == 0
    settings.NEURON_EMBEDDER_URL = ""
    remember(owner)
    assert connect_pending() == 1


def test_bells_and_what_is_held_are_never_connected(owner):
    MemoryNode.objects.create(owner=owner, node_type="BellEvent", content="BELL:hard | x | summary:Ada")
    (node,) = remember(owner, ("I met Ada in Lisbon.", "Nice."))
    MemoryNode.objects.filter(pk=node.pk).update(hold=MemoryNode.Hold.UNSCREENED)
    connect_node(node_id=node.pk)
    assert connect_pending() == 0
    assert MemoryEdge.objects.count() == 0


def test_names_are_never_recalled_themselves(owner):
    remember(owner, ("I met Ada in Lisbon.", "Nice."))
    sweep_unindexed()
    sweep_unindexed()
    assert {hit.node.node_type for hit in recall(owner, "Ada Lisbon", now=NOW)} == {"Conversation"}


def test_two_owners_with_the_same_words_share_no_edge_and_no_name(owner, other):
    for person in (owner, other):
        remember(person, (CELLO, "Rest it."), ("I miss Ada.", "Yes."))
        remember(
            person,
            (CELLO_AGAIN, "Rest."),
            ("Ada called from Lisbon.", "And?"),
            at=LONG_AGO + timedelta(days=2),
        )
    connect_pending()
    assert names(owner) == names(other) == ["Ada", "Lisbon"]
    for edge in MemoryEdge.objects.select_related("source", "target"):
        assert edge.owner_id == edge.source.owner_id == edge.target.owner_id
    assert len(edges(owner, "same_topic")) == len(edges(other, "same_topic")) == 1


def test_with_a_turn_go_its_edges_the_names_only_it_mentions_and_the_facts_only_it_supports(owner):
    kept, gone = remember(owner, ("I met Ada in Lisbon.", "Nice."), ("I met Ada in Porto.", "Nice."))
    for node in (kept, gone):
        keep_fact(
            owner=owner,
            words=node.payload["q"],
            said_at=NOW,
            tz=ZoneInfo("UTC"),
            session_id=node.session_id,
            turn_index=node.turn_index,
        )
    connect_pending()
    delete_nodes(owner=owner, node_ids=[gone.pk])
    assert names(owner) == ["Ada", "Lisbon"]
    facts = MemoryNode.objects.for_owner(owner).knowledge()
    assert [fact.content for fact in facts] == ["I met Ada in Lisbon."]
    assert not MemoryNode.objects.filter(content__contains="Porto").exists()
    assert all(source == kept for source, _ in edges(owner, "mentions") + edges(owner, "supports"))
