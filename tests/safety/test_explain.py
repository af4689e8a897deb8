"""A bell in words: how serious, why, and where in the kept words."""

from conversations import receiving
from conversations.models import Session
from safety import explain
from safety.examples import sentences
from safety.models import BellEvent
from safety.semantic import KINDS, weights


def test_every_kind_of_the_classifier_has_its_words() -> None:
    assert set(explain.KINDS) == set(KINDS)


def test_every_example_of_the_weights_can_be_quoted() -> None:
    missing = [one for one in weights().ids if one not in sentences()]
    assert not missing


def test_a_bell_keeps_what_the_screening_found(session: Session) -> None:
    receiving.receive(session=session, text="I have decided to kill myself tonight", client_key="k")
    bell = BellEvent.objects.get()
    assert (bell.level, bell.ideation_level, bell.score) == ("hard", 4, 1.0)
    assert bell.detector_version.startswith("lists-1+meaning-1-")
    layers = {signal["layer"] for signal in bell.signals}
    assert {"hard list", "meaning", "example"} <= layers
    listed = next(signal for signal in bell.signals if signal["layer"] == "hard list")
    start, end = listed["span"]
    assert bell.summary[start:end].lower() == listed["rule"]
    example = next(signal for signal in bell.signals if signal["layer"] == "example")
    assert example["rule"].split()[1] in sentences()


def test_reasons_are_sentences_with_the_nearest_examples_quoted() -> None:
    signals = [
        {"layer": "example", "rule": "plan 12345678", "span": None, "weight": 0.8, "matched": "cleaned"},
        {"layer": "meaning", "rule": "plan", "span": None, "weight": 0.9, "matched": "cleaned"},
        {"layer": "hard list", "rule": "end it tonight", "span": [0, 5], "weight": 1.0, "matched": "cleaned"},
        {"layer": "second look", "rule": "danger", "span": None, "weight": 0.0, "matched": "raw"},
    ]
    assert explain.reasons(signals, {"12345678": "our own sentence"}) == [
        "“end it tonight” is on the list of phrases that speak of danger. Weight 1.00. "
        "It was found once the spelling was cleaned.",
        "By its meaning it is closest to a plan to end one's life. Weight 0.90.",
        "A language model was asked as well, and heard danger.",
        "One of the nearest examples that the detector learnt from speaks of a plan to end one's life. "
        "It reads: “our own sentence” Likeness 0.80 of 1.",
    ]


def test_the_kept_words_are_marked_where_a_list_matched_them() -> None:
    def signal(span: object, matched: str = "raw") -> dict[str, object]:
        return {"layer": "hard list", "rule": "x", "span": span, "matched": matched}

    found = explain.marked("one two three", [signal([4, 7]), signal([0, 3], "cleaned"), signal([5, 99])])
    assert found == [("one ", False), ("two", True), (" three", True)]
    for odd in (None, [1], ["a", "b"], [-4, 2], "ab"):
        assert explain.marked("one", [signal(odd)]) == [("one", False)]
    assert explain.marked("", [signal([0, 3])]) == []
