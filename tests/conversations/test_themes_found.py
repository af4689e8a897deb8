"""Themes without a model: which turns belong together, what they are called, and what became of them."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from conversations.themes.clustering import NO_CLUSTER, cluster
from conversations.themes.evaluation import evaluate
from conversations.themes.moves import Move, Window, came_to_rest, move_of
from conversations.themes.naming import LONGEST_NAME, clean_name, describe

CORPUS = Path(__file__).parent / "data" / "three_months.json"


# --- The labelled corpus ----------------------------------------------------------------------------------------


def test_every_topic_of_the_labelled_corpus_is_found_and_every_move_is_right() -> None:
    data = json.loads(CORPUS.read_text(encoding="utf-8"))
    report = evaluate(data)
    assert report.turns >= 240
    assert len(report.topics) == 8
    assert report.v_measure >= 0.80
    assert report.all_found
    moves = {topic.label: topic.found for topic in report.topics}
    assert moves == data["moves"]
    assert list(moves.values()).count("returning") == 2


def test_the_command_tells_the_measure_and_refuses_another_file(tmp_path: Path) -> None:
    told = StringIO()
    call_command("evaluate_themes", CORPUS, "--json", stdout=told)
    assert json.loads(told.getvalue())["v_measure"] >= 0.80
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(CommandError):
        call_command("evaluate_themes", tmp_path / "other.json")


# --- Clusters ---------------------------------------------------------------------------------------------------


def directions(*places: int) -> np.ndarray:
    """Unit vectors near the axes named, each a little different."""
    rows = np.random.default_rng(3).standard_normal((len(places), 16)).astype(np.float32) * 0.05
    for row, place in zip(rows, places, strict=True):
        row[place] += 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_turns_that_mean_the_same_are_one_cluster_the_largest_first() -> None:
    labels = cluster(directions(*[0] * 6, *[1] * 9), list(range(15)))
    assert labels.tolist() == [1] * 6 + [0] * 9


def test_a_turn_that_says_nothing_goes_with_its_thread() -> None:
    vectors = directions(*[0] * 6, *[1] * 6)
    vectors[2] = 0
    labels = cluster(vectors, ["a"] * 6 + ["b"] * 6)
    assert labels[2] == labels[1]


def test_a_pair_is_no_theme_and_few_turns_have_none() -> None:
    labels = cluster(directions(*[0] * 6, *[1] * 6, 2, 2), list(range(14)))
    assert all((labels == label).sum() >= 3 for label in set(labels.tolist()) - {NO_CLUSTER})
    assert set(cluster(directions(*[0] * 7), list(range(7)))) == {NO_CLUSTER}


def test_the_same_turns_give_the_same_clusters() -> None:
    vectors = directions(*[0, 1, 2] * 40)
    first, second = cluster(vectors, list(range(120))), cluster(vectors, list(range(120)))
    assert first.tolist() == second.tolist()


# --- Names ------------------------------------------------------------------------------------------------------

TEA = [("I bought a kettle for the kitchen and the kettle sings.", "A kettle that sings.")] * 3
SEA = [("We sailed the boat to the harbour, and the boat leaked.", "A leaking boat.")] * 3


def test_a_theme_is_named_by_what_sets_it_apart_and_quotes_the_person() -> None:
    tea, sea = describe([TEA, SEA])
    assert "kettle" in tea.name.lower()
    assert "boat" in sea.name.lower()
    assert tea.quotes
    assert tea.quotes[0][1] in TEA[0][0]


def test_a_name_is_one_plain_line() -> None:
    assert (
        clean_name("Rent\r\nBcc: all@evil.example\u202e and see https://evil.example/x now")
        == "Rent Bcc: and see now"
    )
    assert clean_name("visit evil.com/login please") == "visit please"
    assert len(clean_name("word " * 60)) <= LONGEST_NAME + 1


# --- Moves ------------------------------------------------------------------------------------------------------

START = datetime(2025, 11, 1, tzinfo=UTC)
MONTH = Window(START, START + timedelta(days=30), START - timedelta(days=30))


def days(*numbers: int) -> list[datetime]:
    """Moments so many days after the window's start, negative ones before."""
    return sorted(START + timedelta(days=number, hours=12) for number in numbers)


ALL = days(*range(-60, 30))


@pytest.mark.parametrize(
    ("theme", "move"),
    [
        (days(1, 2, 3), Move.NEW),
        (days(-50, -45, 3, 4), Move.RETURNING),
        (days(-10, -5, *range(1, 9)), Move.GROWING),
        (days(*range(-20, -8), 3), Move.FADING),
        (days(-9, -8, -7), Move.FADING),
        (days(-9, -8, -7, 2, 3, 4), Move.STEADY),
        (days(-50, -45), Move.QUIET),
    ],
)
def test_a_move_is_counted(theme: list[datetime], move: Move) -> None:
    assert move_of(theme, ALL, MONTH) == move


def test_what_was_brought_to_an_end_is_resolved() -> None:
    assert came_to_rest(["I dread the exam.", "I passed!"])
    assert came_to_rest(["The deposit came, so that is settled now."])
    assert not came_to_rest(["I passed the time with chess.", "It goes on.", "And on.", "No end."])
    assert move_of(days(-9, -8), ALL, MONTH, rested=True) == Move.RESOLVED


def test_talking_more_about_everything_makes_nothing_grow() -> None:
    busy = sorted([*days(*range(-60, 0)), *days(*range(30)), *days(*range(30)), *days(*range(30))])
    assert move_of(days(-9, -8, 1, 2, 3, 4), busy, MONTH) == Move.STEADY


def test_after_a_silence_of_everything_nothing_returns() -> None:
    spoken = [*days(*range(-90, -45)), *days(1, 2, 3)]
    assert move_of([*days(-50, -49, -48), *days(1, 2, 3)], spoken, MONTH) != Move.RETURNING
