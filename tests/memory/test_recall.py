"""Recall finds what was said: by words, by meaning, by its thread, by time, in any language."""

import uuid
from datetime import timedelta

import numpy as np
import pytest

from memory.indexing import index_pending
from memory.models import MemoryNode
from memory.recall_models import Utterance
from memory.retrieval import CONFIDENT, dense, recall
from memory.retrieval.filters import Filters
from tests.memory.recalling import FILLER, LONG_AGO, NOW, remember

pytestmark = pytest.mark.django_db


def first(owner, query, **options):
    return recall(owner, query, now=NOW, **options)[0]


def test_words_in_another_form_find_what_was_said(owner):
    nodes = remember(owner, *FILLER)
    hit = first(owner, "Where did my sister move?")
    assert hit.node == nodes[4]
    assert hit.role == "person"
    assert "Lisbon" in hit.snippet
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["sister", "moved"]


def test_other_words_for_the_same_thing_find_it(owner):
    nodes = remember(owner, *FILLER)
    assert first(owner, "trouble with my vehicle").node == nodes[1]
    assert first(owner, "insomnia").node == nodes[2]


def test_what_was_said_is_found_through_the_turn_before_it(owner):
    nodes = remember(owner, *FILLER)
    hits = recall(owner, "sister river flat", now=NOW)
    assert hits[0].node == nodes[5]


def test_an_assistants_message_is_found_as_its_own_with_its_neighbours(owner):
    nodes = remember(owner, *FILLER)
    hit = first(owner, "exhaust bracket")
    assert (hit.node, hit.role) == (nodes[1], "assistant")
    assert [(one.node_id, one.role) for one in hit.neighbours] == [
        (nodes[1].pk, "person"),
        (nodes[2].pk, "person"),
    ]


def test_a_first_conversation_is_not_searched_for_what_is_before_the_person_and_another_is(
    owner, monkeypatch
):
    here = remember(owner, *FILLER)[0].session_id
    embedded = []
    embed = dense.embed_query
    monkeypatch.setattr(dense, "embed_query", lambda *given: embedded.append(given) or embed(*given))
    assert recall(owner, "Where did my sister move?", except_from=(here, 0), now=NOW) == []
    assert embedded == []
    assert first(owner, "Where did my sister move?", except_from=(here, 5)).node.turn_index == 4
    there = remember(owner, ("My sister plays the oboe.", "A fine instrument."))
    assert first(owner, "What does my sister play?", except_from=(here, 0)).node == there[0]


def test_the_asking_persons_own_words_come_before_the_answers(owner):
    remember(owner, ("I want to learn the cello.", "The cello is a fine instrument to learn, go for it."))
    assert first(owner, "What did I want to learn?").role == "person"


def test_a_window_of_time_limits_the_hits(owner):
    old = remember(owner, ("I planted tomatoes.", "Good."), at=LONG_AGO)
    new = remember(owner, ("I planted tomatoes again.", "Good."), at=LONG_AGO + timedelta(days=90))
    later = recall(owner, "tomatoes", since=LONG_AGO + timedelta(days=1), now=NOW)
    earlier = recall(owner, "tomatoes", until=LONG_AGO + timedelta(days=1), now=NOW)
    assert {hit.node for hit in later} == set(new)
    assert {hit.node for hit in earlier} == set(old)
    assert {hit.node for hit in recall(owner, "tomatoes", session_id=old[0].session_id)} == set(old)


def test_a_time_named_in_the_question_raises_what_agrees_with_it(owner):
    remember(owner, ("We walked along the coast.", "Nice."), at=NOW - timedelta(days=120))
    near = remember(owner, ("We walked along the coast.", "Nice."), at=NOW - timedelta(days=1))
    far = remember(owner, ("We walked along the coast.", "Nice."), at=NOW.replace(month=3, day=5))
    assert first(owner, "Where did we walk yesterday?").node == near[0]
    assert first(owner, "Where did we walk in March?").node == far[0]


def test_kinds_of_node_can_be_chosen(owner):
    remember(owner, ("I am allergic to walnuts.", "Noted."))
    knowledge = MemoryNode.objects.create(owner=owner, node_type="Knowledge", content="Allergic to walnuts.")
    index_pending()
    hits = recall(owner, "walnuts", node_types=["Knowledge"])
    assert [(hit.node, hit.role) for hit in hits] == [(knowledge, "note")]


@pytest.mark.parametrize("wanted", [1, 2, 3, 100])
def test_a_filter_keeps_the_order_and_finds_what_stands_far_behind(owner, other, wanted):
    remember(owner, *FILLER, *FILLER)
    remember(other, *FILLER)
    told = remember(owner, ("The kettle is new.", ""), ("The kettle broke.", ""), ("A kettle again.", ""))
    everything = np.array(sorted(Utterance.objects.values_list("pk", flat=True)))
    wished = sorted(Utterance.objects.get(node=node).pk for node in told)
    filters = Filters(session_id=told[0].session_id, left_out=(wished[1],))
    assert filters.first(owner.pk, everything, wanted) == [wished[0], wished[2]][:wanted]
    assert filters.first(other.pk, everything, wanted) == []
    assert Filters().first(owner.pk, everything, wanted) == everything[:wanted].tolist()


@pytest.mark.parametrize("kind", ["BellEvent", "StateEvent", "History"])
def test_bells_states_and_the_history_are_never_found(owner, kind):
    MemoryNode.objects.create(owner=owner, node_type=kind, content="a zeppelin over the harbour")
    index_pending()
    assert recall(owner, "zeppelin over the harbour") == []


def test_a_changed_node_is_found_by_its_new_words_alone(owner):
    session = uuid.uuid4()
    remember(owner, ("My cat is called Biscuit.", "Sweet."), session_id=session)
    remember(owner, ("My dog is called Pepper.", "Sweet."), session_id=session)
    assert first(owner, "Pepper").node.payload["q"].startswith("My dog")
    assert "Biscuit" not in " ".join(hit.snippet for hit in recall(owner, "Biscuit"))


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("我昨天和妹妹去了动物园看熊猫。", "熊猫"),
        ("昨日は京都でお寺を見ました。", "京都のお寺"),
        ("어제 도서관에서 책을 빌렸어요.", "도서관"),
        (
            "Gestern habe ich mit meinen Schwestern die Fahrräder repariert.",
            "Wann habe ich das Fahrrad repariert?",
        ),
        ("Вчера мы смотрели старые фотографии.", "старая фотография"),
        ("Das Donaudampfschifffahrtsmuseum war geschlossen.", "dampfschiff"),
    ],
)
def test_any_language_and_parts_of_words_are_found(owner, said, asked):
    remember(owner, *FILLER)
    node = remember(owner, (said, "👍"))[0]
    assert first(owner, asked).node == node


def test_a_recap_widens_over_sessions_in_order_of_time(owner):
    for month in range(1, 6):
        remember(
            owner,
            (f"The garden in month {month}: I worked on the beds.", "Well done."),
            ("Then I watered the garden.", "Good."),
            at=LONG_AGO.replace(month=month),
        )
    hits = recall(owner, "Summarise what I said about the garden", limit=5, now=NOW)
    times = [hit.node.occurred_at for hit in hits]
    assert len(hits) > 5
    assert times == sorted(times)
    assert {time.month for time in times} == {1, 2, 3, 4, 5}


def test_what_was_never_said_has_no_confident_hit(owner):
    remember(owner, *FILLER)
    assert all(hit.confidence < CONFIDENT for hit in recall(owner, "the submarine in Reykjavik harbour"))
    assert first(owner, "Where did my sister move?").confidence > CONFIDENT


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "?!... ---",
        "the of and is it",
        "🙂🙃👍",
        "a\x00b \x00",
        "\ud83d lone \udc00",
        "' OR 1=1; -- \" \\ %_% $$ {} [] ()",
        'NOT "sister" AND (moved | !river) <-> :*',
        "sister " * 15_000,
        "x" * 100_000,
        "\u202egnirts ﷽ é́́",
    ],
)
def test_hostile_queries_have_a_clear_answer(owner, query):
    remember(owner, *FILLER)
    assert isinstance(recall(owner, query), list)


def test_a_query_that_says_nothing_finds_nothing(owner):
    remember(owner, *FILLER)
    for query in ("", "  ", "?!", "🙂"):
        assert recall(owner, query) == []


def test_limits_and_naive_times_are_refused(owner):
    for limit in (0, 101):
        with pytest.raises(ValueError, match="limit"):
            recall(owner, "x", limit=limit)
    with pytest.raises(ValueError, match="time zone"):
        recall(owner, "x", since=NOW.replace(tzinfo=None))
