"""Search by words, by meaning, or both: what is found, how it is shown, and that nothing breaks it."""

import uuid
from datetime import timedelta

import pytest

from memory.models import MemoryNode
from memory.search import COMMON_WORDS, NO_WORDS, SHORTENED, By, Limits, search
from memory.services import delete_nodes
from tests.memory.recalling import FILLER, LONG_AGO, remember

pytestmark = pytest.mark.django_db


def found(owner, query, by=By.BOTH, **limits):
    return [one.node for one in search(owner, query, by=by, limits=Limits(**limits)).found if one.sure]


def marked(owner, query, by=By.WORDS):
    return [[one.snippet[start:end] for start, end in one.marks] for one in search(owner, query, by=by).found]


def test_words_are_found_in_any_form_all_of_them_in_one_turn(owner):
    nodes = remember(owner, *FILLER)
    assert found(owner, "move Lisbon", By.WORDS) == [nodes[4]]
    assert found(owner, "rattle noise exhaust", By.WORDS) == [nodes[1]]
    assert found(owner, "Lisbon exhaust", By.WORDS) == []


def test_a_part_of_a_word_finds_it_while_it_is_typed(owner):
    nodes = remember(owner, *FILLER)
    for typed in ("Lis", "lisb", "isbo"):
        assert found(owner, typed, By.WORDS) == [nodes[4]]
    assert marked(owner, "lisb") == [["Lisbon"]]


def test_what_holds_the_words_is_sure_even_where_recall_is_not(owner):
    nodes = remember(owner, *[(f"Box number {n} is packed.", "One less.") for n in range(30)], *FILLER)
    assert found(owner, "lisb") == [nodes[34]]


def test_quoted_words_are_found_as_they_stand(owner):
    nodes = remember(
        owner,
        ("The river is near my flat.", "Nice."),
        ("I found a flat near the\nRiver.", "Good."),
        ("A flat. Near the river?", "Hm."),
    )
    assert found(owner, '"near the river"', By.WORDS) == [nodes[2], nodes[1]]
    assert found(owner, '"flat near the river"', By.WORDS) == [nodes[1]]
    assert found(owner, '"flat near the river"', By.BOTH) == [nodes[1]]
    assert marked(owner, "“near the river”") == [["Near the river"], ["near the River"]]


def test_meaning_finds_other_words(owner):
    nodes = remember(owner, *FILLER)
    assert search(owner, "trouble with my vehicle", by=By.MEANING).found[0].node == nodes[1]
    assert found(owner, "trouble with my vehicle", By.WORDS) == []


def test_by_words_the_newest_stands_first(owner):
    older = remember(owner, ("The cello was out of tune.", "Oh."))
    newer = remember(owner, ("The cello is in tune.", "Ah."), at=LONG_AGO + timedelta(days=9))
    assert found(owner, "cello tune", By.WORDS) == [*newer, *older]


def test_a_hit_is_shown_with_what_was_said_around_it(owner):
    remember(owner, *FILLER)
    said, answered = search(owner, "Lisbon January", by=By.WORDS).found[0], search(owner, "lentil").found[0]
    assert (said.role, said.before[:12], said.after[:9]) == ("person", "Interest tha", "Lisbon is")
    assert (answered.role, answered.before, answered.after) == (
        "assistant",
        "What should I cook tonight?",
        "The car makes a rattling noise.",
    )


def test_hits_are_limited_by_time_kind_and_session(owner):
    old = remember(owner, ("My cello is new.", "Play it."))
    new = remember(owner, ("My cello is old.", "Keep it."), at=LONG_AGO + timedelta(days=30))
    MemoryNode.objects.create(owner=owner, node_type="Knowledge", content="The cello came from Prague.")
    remember(owner)
    between = LONG_AGO + timedelta(days=9)
    for by in (By.WORDS, By.BOTH):
        assert found(owner, "cello", by, since=between, node_types=("Conversation",)) == new
        assert found(owner, "cello", by, until=between) == old
        assert found(owner, "cello", by, session_id=old[0].session_id) == old
        assert [one.content for one in found(owner, "cello", by, node_types=("Knowledge",))] == [
            "The cello came from Prague."
        ]


def test_nothing_that_is_surely_meant_is_said_to_be_so(owner):
    remember(owner, *FILLER)
    results = search(owner, "the submarine in Reykjavik harbour")
    assert results.found
    assert not any(one.sure for one in results.found)


def test_bells_entities_and_states_are_never_found(owner):
    for kind in ("BellEvent", "StateEvent", "History", "Entity"):
        MemoryNode.objects.create(owner=owner, node_type=kind, content="zebracanary")
    remember(owner, *FILLER)
    for by in By:
        assert all("zebra" not in one.snippet for one in search(owner, "zebracanary", by=by).found)


@pytest.mark.parametrize("by", list(By))
def test_only_ones_own_is_found_by_any_way_and_beside_any_hit(owner, other, by):
    session = uuid.uuid4()
    mine = remember(owner, *FILLER, session_id=session)
    theirs = remember(other, *[(f"{q} secretly", f"{a} secretly") for q, a in FILLER])
    # Somebody else's turn under the same session id, just where the thread around a hit is read.
    MemoryNode.objects.filter(pk=theirs[0].pk).update(session_id=session, turn_index=len(FILLER))
    for query in ("sister Lisbon", "secretly", "vehicle", '"rattling noise"', "flat river", "sist"):
        for one in search(owner, query, by=by).found:
            assert one.node in mine
            assert "secretly" not in one.snippet + one.before + one.after


@pytest.mark.parametrize("by", list(By))
def test_what_is_deleted_is_found_by_no_way(owner, by):
    secret = remember(owner, ("The xylophone is in the boathouse.", "The boathouse it is."))
    remember(owner, *FILLER)
    assert search(owner, "xylophone boathouse", by=by).found[0].node == secret[0]
    delete_nodes(owner=owner, node_ids=[secret[0].pk])
    for query in ("xylophone", '"the boathouse"', "xylo", "boathouse xylophone"):
        assert all("boathouse" not in one.snippet for one in search(owner, query, by=by).found)


ODD = {
    "empty": ("", NO_WORDS),
    "blanks": (" \t\n", NO_WORDS),
    "punctuation": ("?!… --- :: \"\" '' ()", NO_WORDS),
    "emoji": ("🦊🎉👩‍👩‍👧", NO_WORDS),
    "stop words": ("what is it that we have and would do", COMMON_WORDS),
    "stop words in quotes": ('"it is what it is"', COMMON_WORDS),
    "NUL": ("\x00", NO_WORDS),
    "lone surrogates": ("\ud800\udfff\ud83d", NO_WORDS),
    "long": ("lisbon " * 14_300, SHORTENED),
    "long without a blank": ("lisbon" * 16_700, SHORTENED),
    "long punctuation": ("(" * 100_000, NO_WORDS),
    "long in quotes": ('"' + "lisbon " * 14_000 + '"', SHORTENED),
    "operators": ("sister AND NOT (lisbon | -moved) & !x:* <-> y", ""),
    "an open quote": ('"sister', ""),
    "quotes": ("' \" '' sister \"\" '; DROP TABLE memory_memorynode; --", ""),
    "patterns": ("sister .* %_% \\ [a-z]+ (?P<x>)", ""),
    "a pattern in quotes": ('"sister (moved" "[" "\\"', ""),
    "NUL inside": ("my\x00sister", ""),
    "a surrogate inside": ("my sister\ud83d moved", ""),
}


@pytest.mark.parametrize("by", list(By))
@pytest.mark.parametrize("name", list(ODD))
def test_whatever_is_searched_for_there_is_a_clear_answer(owner, name, by):
    remember(owner, *FILLER)
    query, note = ODD[name]
    results = search(owner, query, by=by)
    assert results.note == note
    if note in (NO_WORDS, COMMON_WORDS):
        assert results.found == ()


def test_a_surrogate_or_nul_in_a_query_does_not_hide_what_it_asks_for(owner):
    nodes = remember(owner, *FILLER)
    assert found(owner, "my sister\ud83d moved", By.WORDS) == found(owner, "my\x00sister moved", By.WORDS)
    assert found(owner, "sister moved", By.WORDS) == [nodes[4]]


@pytest.mark.parametrize("limit", [0, 101])
def test_a_limit_out_of_range_is_refused(owner, limit):
    with pytest.raises(ValueError, match="between 1 and 100"):
        search(owner, "sister", limit=limit)
