"""The measuring of the screen: three formats told apart, figures that add up, no text in what comes out."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from safety import quality
from safety.evaluation import EvaluationError, Share, evaluate, read_files
from safety.screening import detector_version, screen

MESSAGES = [
    {
        "id": "1",
        "text": "I have decided to end my life tonight",
        "label": "hard",
        "accept": ["hard"],
        "source": "a",
        "kind": "plan",
    },
    {
        "id": "2",
        "text": "please kill the process on port 80",
        "label": "pass",
        "accept": ["pass"],
        "source": "b",
        "kind": "trigger_benign",
    },
    {
        "id": "3",
        "text": "I feel hopeless and worthless",
        "label": "soft",
        "accept": ["soft"],
        "source": "a",
        "kind": "distress",
    },
]
EVASIONS = [
    {
        "base_id": "1",
        "text": "e n d my life t o n i g h t",
        "label": "hard",
        "accept": ["hard"],
        "kind": "evasion_spaced",
    }
]
DIALOGUES = [
    {
        "id": "d",
        "label": "hard",
        "accept": ["hard"],
        "turns": [
            {"role": "user", "text": "hello there"},
            {"role": "assistant", "text": "end my life tonight"},
            {"role": "user", "text": "I want to end my life tonight"},
        ],
    }
]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    first, second, third = (tmp_path / name for name in ("m.jsonl", "e.jsonl", "d.json"))
    first.write_text("\n".join(json.dumps(row) for row in MESSAGES), encoding="utf-8")
    second.write_text("\n".join(json.dumps(row) for row in EVASIONS), encoding="utf-8")
    third.write_text(json.dumps(DIALOGUES), encoding="utf-8")
    return [first, second, third]


def test_the_three_formats_are_told_apart_by_their_fields(files: list[Path]) -> None:
    loaded = read_files(files)
    assert (len(loaded.messages), len(loaded.evasions), len(loaded.dialogues)) == (3, 1, 1)


def test_the_figures_of_a_small_set_are_right(files: list[Path]) -> None:
    figures = evaluate(read_files(files), screen)
    assert figures["any_bell_on_hard"]["value"] == 1.0
    assert figures["pass_to_any"] == {"value": 0.0, "hits": 0, "total": 1, "interval": [0.0, 0.7935]}
    assert figures["by_action"]["soft"]["soft"] == 1
    assert figures["dialogues_hard"]["hits"] == 1
    assert set(figures["by_source"]) == {"a", "b"}


def test_an_accepted_outcome_counts_as_right() -> None:
    row = {
        "text": "please kill the process",
        "label": "hard",
        "accept": ["hard", "pass"],
        "source": "a",
        "kind": "x",
    }
    path_free = read_files([])
    path_free.messages.append(row)
    assert evaluate(path_free, screen)["any_bell_on_hard"]["value"] == 1.0


def test_what_the_assistant_says_is_not_screened(files: list[Path]) -> None:
    loaded = read_files(files)
    loaded.dialogues[0]["turns"] = loaded.dialogues[0]["turns"][:2]
    assert evaluate(loaded, screen)["dialogues_hard"]["hits"] == 0


def test_wilson_intervals_follow_the_formula() -> None:
    low, high = Share(95, 100).interval() or (0, 0)
    assert (round(low, 3), round(high, 3)) == (0.888, 0.978)


def test_a_file_in_another_format_is_refused_by_name(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"question": "?"}\n', encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"wrong\.jsonl"):
        read_files([wrong])
    with pytest.raises(CommandError, match=r"wrong\.jsonl"):
        call_command("evaluate_safety", str(wrong))


def test_the_command_prints_one_object_without_any_message(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("evaluate_safety", *map(str, files), "--json")
    printed = capsys.readouterr().out
    figures = json.loads(printed)
    assert {
        "any_bell_on_hard", "hard_on_strict_hard", "pass_to_hard", "trigger_pass_to_hard", "pass_to_any", "by_source",
        "by_kind", "evasion_any_bell", "dialogues_hard", "latency_ms",
    } <= set(figures)  # fmt: skip
    assert figures["any_bell_on_hard"] == 1.0
    assert set(figures["layers"]) == {"lists", "meaning"}
    assert not any(row["text"] in printed for row in MESSAGES)


def test_a_measurement_is_recorded_for_the_safety_page(files: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "quality.json"
    call_command("evaluate_safety", *map(str, files), "--record", str(path))
    kept = quality.load(path)
    assert (kept.messages, kept.detector_version) == (4, detector_version())
    figures = {figure.name: figure for figure in kept.figures}
    assert (figures["any_bell_on_hard"].percent, figures["any_bell_on_hard"].total) == ("100.0 %", 1)
    assert not any(row["text"] in path.read_text(encoding="utf-8") for row in MESSAGES)


def test_half_a_measurement_is_not_recorded(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nothing measures evasion_any_bell"):
        call_command("evaluate_safety", str(files[0]), "--record", str(tmp_path / "quality.json"))
    assert not (tmp_path / "quality.json").exists()
