"""Disguises are undone towards words of danger only, and no text makes a pattern run away."""

import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from safety.lexicon import lexicon
from safety.normalise import GRAVE, clean
from safety.screening import screen
from safety.validation import SentenceGate, find_harm
from safety.wording import plain_wording


def cleaned(text: str) -> str:
    return clean(text, trigger_words=lexicon().trigger_words)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("i want to k*ll myself", "i want to kill myself"),
        ("su**ide", "suicide"),
        ('"s*icidal"', '"suicidal"'),
        ("k-ll m*self", "kill myself"),
        ("kil myslef", "kill myself"),
        ("sucide, suiside and suicde", "suicide, suicide and suicide"),
        ("i feel worthles and hopless", "i feel worthless and hopeless"),
        ("i wanttodie", "i want to die"),
        ("k i l l m y s e l f", "kill myself"),
        ("killmyself", "kill myself"),
        ("k.i.l.l m.y.s.e.l.f", "kill myself"),
        ("kiiiill mysellllf", "kill myself"),
        ("ＫＩＬＬ", "kill"),
        ("k\u200bi\u00adll", "kill"),
        ("su1c1de", "suicide"),
        ("suісіdе", "suicide"),
    ],
)
def test_a_disguise_is_undone(typed: str, meant: str) -> None:
    assert cleaned(typed) == meant


@pytest.mark.parametrize(
    "text",
    [
        "f**k this sh*t, d**n it",
        "self-harm, co-worker, well-known",
        "kill_all, snake_case, __init__",
        "the hill, the mill, skill, kilt and pill",
        "an overdone steak",
        "undies, studied, bodied, goodbyes",
        "tonic, toning, knight",
        "a b2b meeting at 5am in r2d2 style",
        "2 * 3 * 4 = 24 and x-y",
        "e.g. this, i.e. that",
        "bookkeeper, balloon, committee",
    ],
)
def test_everyday_words_stay_as_they_are(text: str) -> None:
    assert cleaned(text) == text


@given(st.text(max_size=400))
def test_cleaning_is_lower_case_and_cleaning_twice_makes_no_new_words_of_danger(text: str) -> None:
    once = cleaned(text)
    assert once == once.lower() or not once.isascii()
    assert len(once) <= 4 * len(text) + 16  # NFKC writes some characters out


@given(st.lists(st.sampled_from([*"abcdefghijklmnopqrstuvwxyz"]), min_size=3, max_size=11))
def test_a_plain_word_changes_only_into_a_grave_one(letters: list[str]) -> None:
    word = "".join(letters)
    after = cleaned(word)
    if after not in (word, word.replace(" ", "")):
        known = {*GRAVE, *lexicon().trigger_words}
        stretched = any(word.count(one * 3) for one in set(word))
        assert stretched or all(part in known or part in word for part in after.split())


# Pieces that patterns are made of: what could make one of them try again and again.
WORDS = "i|want to|kill|myself|k*|*|-|_| |\n|\t|.|...|!|?|'|n't|a|aa|the|tablets|pills|in|gun|my|he|she|friend|you"
MARKS = [
    "1",
    "0",
    "4",
    '"',
    "<tool_call>",
    "{",
    '{"name":',
    "```",
    "x" * 40,
    "и",
    "\u200b",
    "\U0001f600",
    "\x00",
    "life",
    "not",
]
PIECES = st.sampled_from([*WORDS.split("|"), *MARKS])


@example([("x" * 40, 30), (" ", 2), ("a", 1)], "")  # "short" once took the fourth power of a word's length
@example([("a", 5000), (".", 5000)], "\n")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(st.lists(st.tuples(PIECES, st.integers(1, 400)), min_size=1, max_size=12), st.sampled_from(["", " "]))
def test_no_text_makes_a_pattern_run_away(parts: list[tuple[str, int]], between: str) -> None:
    text = between.join(between.join([piece] * times) for piece, times in parts)[:20_000]
    started = time.process_time()
    screen(text)
    plain_wording(cleaned(text))
    find_harm(text)
    gate = SentenceGate("soft_bell")
    gate.feed(text)
    gate.flush()
    # A run-away pattern takes minutes on such a text; the usual is some hundredths of a second.
    assert time.process_time() - started < 10
