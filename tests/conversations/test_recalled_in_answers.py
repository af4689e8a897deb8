"""What an answer draws on is what recall found: in other words, from long ago, with its turn."""

from datetime import timedelta

import pytest

from conversations import window
from memory.indexing import index_pending
from tests.memory.recalling import FILLER, LONG_AGO, remember

pytestmark = pytest.mark.django_db


def test_something_said_twenty_sessions_ago_in_other_words_is_drawn_on(owner):
    told = remember(owner, ("I adopted a greyhound called Juno.", "What a lovely name."), at=LONG_AGO)
    for week in range(1, 21):
        remember(owner, FILLER[week % 4], at=LONG_AGO + timedelta(weeks=week))
    passages = window.search(owner=owner, query="What is the name of my dog?")
    assert passages[0].node_id == told[0].pk
    assert (passages[0].session_id, passages[0].turn_index) == (told[0].session_id, 0)


def test_what_the_prompt_holds_of_the_thread_is_not_drawn_on_again(owner):
    told = remember(owner, ("I adopted a greyhound called Juno.", "What a lovely name."))
    index_pending()
    assert window.search(owner=owner, query="greyhound Juno", exclude=(told[0].session_id, 0)) == ()


def test_the_beginning_of_a_long_thread_is_drawn_on_when_the_prompt_holds_only_its_end(owner):
    told = remember(owner, ("I adopted a greyhound called Juno.", "What a lovely name."), *FILLER)
    index_pending()
    passages = window.search(owner=owner, query="greyhound Juno", exclude=(told[0].session_id, 1))
    assert [passage.turn_index for passage in passages] == [0]


def test_somebody_elses_words_are_never_drawn_on(owner, other):
    remember(other, ("I adopted a greyhound called Juno.", "What a lovely name."))
    index_pending()
    assert window.search(owner=owner, query="greyhound Juno") == ()


def test_nothing_is_drawn_on_for_what_was_never_said(owner):
    remember(owner, *FILLER)
    assert window.search(owner=owner, query="the submarine in Reykjavik harbour") == ()
