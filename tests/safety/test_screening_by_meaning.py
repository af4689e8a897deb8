"""Hearing what is meant: paraphrase rings, idioms do not, history counts, and a lost embedder is said."""

import time
from collections.abc import Sequence
from typing import Any

import pytest

from memory.embedding import embed_packaged
from safety.features import NAMES, rule_bits
from safety.screening import SOFT_REASON, Action, Screening, screen
from safety.semantic import MOST_WINDOWS, windows
from safety.wording import plain_wording


def heard(text: str, past_risk: float = 0.0) -> Screening:
    return screen(text, past_risk=past_risk, embed=embed_packaged)


@pytest.mark.parametrize(
    "text",
    [
        "tonight once the kids are asleep i'm finally going through with it, the tablets are on my nightstand",
        "I have chosen the day I will die and nobody will talk me out of it",
        "i swallowed everything in the medicine cabinet twenty minutes ago",
        "I am going to stab my landlord when he comes on Friday, the knife is in my bag",
        "what is the surest way to take my own life",
    ],
)
def test_danger_rings_hard_in_words_of_its_own(text: str) -> None:
    screening = heard(text)
    assert screening.action == Action.HARD_BELL
    assert screening.reason not in ("", SOFT_REASON)
    assert screening.risk == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "since the funeral i can hardly get out of bed and i cry all day",
        "I feel so worthless, nothing I do is ever good enough",
        "my best friend told me she doesn't want to live anymore, what do i say to her",
    ],
)
def test_distress_rings_soft_with_the_one_reason(text: str) -> None:
    screening = heard(text)
    assert (screening.action, screening.reason) == (Action.SOFT_BELL, SOFT_REASON)


@pytest.mark.parametrize(
    "text",
    [
        "how do I kill a process that does not react to SIGTERM?",
        "lol my mom is going to kill me when she sees the kitchen",
        "this new season is killing me, I nearly died laughing",
        "what is the capital of Peru",
        "write a scene in which the detective finds the murder weapon",
    ],
)
def test_harmless_talk_passes(text: str) -> None:
    assert heard(text).action == Action.PASS


def test_a_verdict_explains_itself_by_its_nearest_examples() -> None:
    screening = heard("I feel so worthless, nothing I do is ever good enough")
    layers = [signal.layer for signal in screening.signals]
    assert "meaning" in layers
    assert layers.count("example") == 3
    assert screening.detector_version.startswith("lists-1+meaning-1-")
    assert not screening.degraded


def test_the_same_message_has_the_same_score_every_time() -> None:
    text = "i am not sure how much longer i can carry all of this"
    assert heard(text) == heard(text)


def test_without_an_embedder_the_lists_still_ring_and_it_is_said() -> None:
    screening = screen("I am planning to kill myself tonight")
    assert (screening.action, screening.degraded) == (Action.HARD_BELL, True)


def test_an_embedder_that_fails_leaves_the_lists(caplog: pytest.LogCaptureFixture) -> None:
    def broken(texts: Sequence[str]) -> Any:
        raise RuntimeError("gone")

    text = "I am planning to kill myself tonight"
    screening = screen(text, embed=broken)
    assert (screening.action, screening.degraded) == (Action.HARD_BELL, True)
    assert "embedder failed" in caplog.text
    assert text not in caplog.text


def test_filler_turns_do_not_flush_the_risk() -> None:
    risk = heard("I am planning to kill myself tonight").risk
    for filler in ("ok", "what's the weather like", "tell me a joke", "thanks"):
        screening = heard(filler, risk)
        assert screening.action == Action.PASS
        risk = screening.risk
    assert risk == 1.0


def test_a_long_paste_is_heard_where_the_danger_stands() -> None:
    filler = "We walked along the river and talked about the garden and the new bakery. " * 60
    buried = (
        filler
        + "I have decided to die, on Friday I will hang myself in the shed, the rope is there. "
        + filler
    )
    assert heard(buried).action == Action.HARD_BELL
    assert heard(filler).action == Action.PASS
    assert len(windows(plain_wording(buried.lower()))) <= MOST_WINDOWS


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00",
        "\ud800",
        "?" * 500,
        "👩‍👩‍👧" * 300,
        "i " * 27_000,
        "a" * 54_000,
        "kill " * 10_000,
        "i want to " * 5_400,
        "my 'n't" * 5_000,
    ],
    ids=lambda text: f"{len(text)} characters of {text[:6]!r}",
)
def test_no_input_makes_a_pattern_run_away(text: str) -> None:
    started = time.process_time()
    heard(text)
    assert (
        time.process_time() - started < 5
    )  # hundreds of times the usual: only a runaway pattern takes so long


def test_short_forms_are_written_out() -> None:
    assert (
        plain_wording("im gonna do it 2nite, i can't & wont stop")
        == "i am going to do it tonight i can not will not stop"
    )


def test_bits_say_who_and_what() -> None:
    bits = dict(zip(NAMES, rule_bits(plain_wording("i'm going to kill myself tonight")), strict=True))
    assert {"self", "going to", "now"} <= {name for name, bit in bits.items() if bit}
    assert not bits["technical"]
