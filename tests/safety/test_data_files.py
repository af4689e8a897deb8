"""A data file of the safety layer that was emptied, cut or changed stops the start, and the error says where."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from safety import checks, directives, lexicon, quality, resources, screening, seal, semantic

LOADERS: dict[str, Callable[[Path], object]] = {
    "hard.toml": lexicon.load,
    "soft.toml": lexicon.load,
    "idioms.toml": lexicon.load,
    "weights.json": semantic.load,
    "weights.sha256": semantic.load,
    "crisis_resources.toml": lambda folder: resources.load(folder / "crisis_resources.toml"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "data"
    shutil.copytree(lexicon.DATA, copy, ignore=shutil.ignore_patterns("examples"))
    return copy


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize(
    "mutate",
    [
        pytest.param(lambda raw: b"", id="emptied"),
        pytest.param(lambda raw: b"\n \n", id="blank"),
        pytest.param(lambda raw: raw[: len(raw) * 2 // 3 + 1], id="cut"),
        pytest.param(lambda raw: b"\xff\xfe" + raw, id="not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_by_name(folder: Path, name: str, mutate: Callable[[bytes], bytes]) -> None:
    path = folder / name
    path.write_bytes(mutate(path.read_bytes()))
    with pytest.raises(
        lexicon.LexiconError, match=r"weights" if "weights" in name else name.replace(".", r"\.")
    ) as no:
        LOADERS[name](folder)
    assert "line" in str(no.value)


@pytest.mark.parametrize("name", LOADERS)
def test_a_missing_file_is_refused_by_name(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(lexicon.LexiconError, match=name.replace(".", r"\.")):
        LOADERS[name](folder)


@pytest.mark.parametrize("name", ["hard.toml", "soft.toml", "idioms.toml"])
def test_an_unknown_key_is_refused_with_its_line(folder: Path, name: str) -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "wieght = 1.0\n", encoding="utf-8")
    with pytest.raises(lexicon.LexiconError, match=f"{name}, line {text.count(chr(10)) + 1}"):
        lexicon.load(folder)


def test_a_phrase_that_stands_twice_is_refused_with_its_line(folder: Path) -> None:
    path = folder / "soft.toml"
    path.write_text('[mild]\nweight = 0.2\nphrases = [\n  "lonely",\n  "lonely",\n]\n', encoding="utf-8")
    with pytest.raises(lexicon.LexiconError, match=r"soft\.toml, line 5: 'lonely' stands twice"):
        lexicon.load(folder)


def test_weights_that_were_changed_do_not_match_their_hash(folder: Path) -> None:
    path = folder / semantic.WEIGHTS
    path.write_text(path.read_text(encoding="utf-8").replace("meaning-1", "meaning-2", 1), encoding="utf-8")
    with pytest.raises(lexicon.LexiconError, match=r"weights\.sha256, line 1"):
        semantic.load(folder)


def _rehash(folder: Path) -> None:
    digest = hashlib.sha256((folder / semantic.WEIGHTS).read_bytes()).hexdigest()
    (folder / semantic.WEIGHTS_HASH).write_text(f"{digest}  {semantic.WEIGHTS}\n", encoding="utf-8")


@pytest.mark.parametrize(
    "key", ["format", "bits", "kinds", "embedder", "gamma", "calibration", "examples", "intercept"]
)
def test_weights_with_the_right_hash_but_without_a_part_are_refused(folder: Path, key: str) -> None:
    path = folder / semantic.WEIGHTS
    content = json.loads(path.read_text(encoding="utf-8"))
    del content[key]
    path.write_text(json.dumps(content), encoding="utf-8")
    _rehash(folder)
    with pytest.raises(lexicon.LexiconError, match=r"weights\.json, line 1"):
        semantic.load(folder)


def test_weights_trained_on_another_embedder_are_refused(folder: Path) -> None:
    path = folder / semantic.WEIGHTS
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"embedder": "bigger"}), encoding="utf-8")
    _rehash(folder)
    with pytest.raises(lexicon.LexiconError, match=r"the embedder 'bigger' .* train again"):
        semantic.load(folder)


def test_weights_cut_in_the_middle_name_the_line(folder: Path) -> None:
    path = folder / semantic.WEIGHTS
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:40]), encoding="utf-8")
    _rehash(folder)
    with pytest.raises(lexicon.LexiconError, match=r"weights\.json, line (39|40|41)"):
        semantic.load(folder)


def test_a_threshold_out_of_order_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "screening.toml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("[thresholds]\n", "[thresholds]\nsoft = 2\n"),
        encoding="utf-8",
    )
    monkeypatch.setattr(screening, "DATA", folder)
    screening.thresholds.cache_clear()
    try:
        with pytest.raises(lexicon.LexiconError, match=r"screening\.toml"):
            screening.thresholds()
    finally:
        screening.thresholds.cache_clear()


def test_the_start_stops_with_an_error_that_names_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "hard.toml").write_text("", encoding="utf-8")
    monkeypatch.setattr(lexicon, "DATA", folder)
    lexicon.lexicon.cache_clear()
    try:
        found = checks.safety_data_is_usable(None)
        assert [one.id for one in found] == ["safety.E001"]
        assert "hard.toml, line 1" in found[0].msg
        with pytest.raises(SystemCheckError, match=r"hard\.toml"):
            call_command("check")
    finally:
        lexicon.lexicon.cache_clear()


# --- The seal: a file that is still well-formed but not what it was ------------------------------------------------


@pytest.mark.parametrize("name", seal.SEALED)
@pytest.mark.parametrize(
    "mutate",
    [
        pytest.param(lambda raw: b"", id="emptied"),
        pytest.param(lambda raw: raw[:-2], id="without its end"),
        pytest.param(lambda raw: raw[: len(raw) // 2], id="cut"),
        pytest.param(lambda raw: b"\xff\xfe" + raw, id="not UTF-8"),
        pytest.param(lambda raw: raw.replace(b"e", b"f", 1), id="one letter changed"),
        pytest.param(lambda raw: raw + b"\n# more\n", id="something added"),
    ],
)
def test_the_seal_knows_every_change(folder: Path, name: str, mutate: Callable[[bytes], bytes]) -> None:
    seal.check(folder)
    path = folder / name
    path.write_bytes(mutate(path.read_bytes()))
    with pytest.raises(lexicon.LexiconError, match=name.replace(".", r"\.")) as no:
        seal.check(folder)
    assert "line" in str(no.value)
    seal.seal(folder)
    seal.check(folder)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "line 1: crisis_resources.toml is not sealed"),
        (b"\xff\n", "line 1: not UTF-8"),
        (b"abc  hard.toml\n", "line 1: not a SHA-256"),
    ],
)
def test_a_broken_seal_is_named(folder: Path, content: bytes, says: str) -> None:
    (folder / seal.SEAL).write_bytes(content)
    with pytest.raises(lexicon.LexiconError, match=f"SHA256SUMS, {says}"):
        seal.check(folder)
    (folder / seal.SEAL).unlink()
    with pytest.raises(lexicon.LexiconError, match="SHA256SUMS: cannot be read"):
        seal.check(folder)


@pytest.mark.parametrize("name", ["wellbeing_directive.txt", "safe_mode_refusal.txt", "withheld_reply.txt"])
@pytest.mark.parametrize(
    ("content", "says"), [(b" \n", "line 1: the file is empty"), (b"a\n\xff", "line 2: not UTF-8")]
)
def test_a_text_that_cannot_be_used_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, says: str
) -> None:
    monkeypatch.setattr(directives, "DATA", folder)
    (folder / name).write_bytes(content)
    with pytest.raises(lexicon.LexiconError, match=f"{name}, {says}"):
        directives._text(name)


@pytest.mark.parametrize(
    ("mutate", "says"),
    [
        (lambda text: "", "line 1: Expecting value"),
        (lambda text: text[: len(text) // 2], "line "),
        (lambda text: text.replace("any_bell_on_hard", "other"), "line 1: 'any_bell_on_hard' is missing"),
        (lambda text: text.replace("measured_on", "on"), "line 1: 'measured_on' is missing"),
    ],
)
def test_a_broken_record_of_quality_is_named(folder: Path, mutate: Callable[[str], str], says: str) -> None:
    path = folder / quality.QUALITY
    path.write_text(mutate(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(lexicon.LexiconError, match=f"quality.json, {says}"):
        quality.load(path)


def test_a_changed_list_stops_the_start_until_it_is_sealed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal, "DATA", folder)
    path = folder / "soft.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('"lonely", ', ""), encoding="utf-8")
    assert [one.id for one in checks.safety_data_is_usable(None)] == ["safety.E009"]
    with pytest.raises(SystemCheckError, match=r"soft\.toml, line 1"):
        call_command("check")
    call_command("seal_safety_data")
    assert checks.safety_data_is_usable(None) == []
