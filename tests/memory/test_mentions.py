"""Who and what a message names, told by capitals and kin alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.mentions import LONGEST_NAME, MOST_NAMES, names_in


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("My sister Ada moved to Lisbon.", ["Ada", "Lisbon", "my sister"]),
        ("We sailed the Bay of Biscay with Ursula von der Leyen.", ["Bay of Biscay", "Ursula von der Leyen"]),
        ("Yesterday I met Tom, on Monday, in May, at IKEA", ["Tom", "IKEA"]),
        ("I live in New York City.", ["New York City"]),
        ("I met Ada Lovelace.", ["Ada Lovelace"]),
        ("Little Women is a good book.", ["Little Women"]),
        ("it is Ada's book and O'Neill's", ["Ada", "O'Neill"]),
        ("my mum and my older brother", ["my mother", "my brother"]),
        ("Rain fell. Nothing helped.", []),
        ("I CAN NOT BELIEVE THIS AT ALL", []),
        ("How To Cook Rice At Home", []),
        ("Hello! I'm fine, I've eaten. You're kind.", []),
        ("Мы были в Москве с Анной", ["Москве", "Анной"]),
        ("", []),
    ],
)
def test_what_a_message_names(message: str, names: list[str]) -> None:
    assert names_in(message) == names


def test_a_capital_at_the_beginning_counts_for_a_name_that_is_known() -> None:
    assert names_in("Ada called.") == []
    assert names_in("Ada called.", {"ada"}) == ["Ada"]
    assert names_in("Ada called. I like Ada.") == ["Ada"]
    assert names_in("Congrats Ada, well done.", {"ada"}) == ["Ada"]


@given(st.text(max_size=400))
def test_of_any_text_there_are_few_names_and_short_ones(message: str) -> None:
    names = names_in(message)
    assert len(names) <= MOST_NAMES
    assert all(0 < len(name) <= LONGEST_NAME for name in names)
    assert len({name.lower() for name in names}) == len(names)
