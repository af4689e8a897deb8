"""The seal of the data files: the SHA-256 of each, so that one that was cut or changed by accident stops the start.

A list that lost its second half is still a valid list; only its hash tells.
"""

import hashlib
from pathlib import Path

from safety.lexicon import DATA, LexiconError

SEAL = "SHA256SUMS"
SEALED = (
    "crisis_resources.toml",
    "hard.toml",
    "idioms.toml",
    "quality.json",
    "safe_mode_refusal.txt",
    "screening.toml",
    "soft.toml",
    "wellbeing_directive.txt",
    "withheld_reply.txt",
)


def check(folder: Path | None = None) -> None:
    """Compare each data file with the seal. Raises LexiconError naming the file, and the line of the seal."""
    folder = folder or DATA
    promised = _promised(folder / SEAL)
    for name in SEALED:
        line, digest = promised.get(name, (1, ""))
        if not digest:
            raise LexiconError(f"{SEAL}, line {line}: {name} is not sealed")
        found = _digest(folder / name)
        if found != digest:
            raise LexiconError(
                f"{name}, line 1: the file was changed since it was sealed ({SEAL}, line {line}). "
                "If the change is meant, run manage.py seal_safety_data"
            )


def seal(folder: Path | None = None) -> None:
    """Write the seal of the files as they stand (`sha256sum -c` reads it)."""
    folder = folder or DATA
    lines = [f"{_digest(folder / name)}  {name}\n" for name in SEALED]
    (folder / SEAL).write_text("".join(lines), encoding="utf-8")


def _promised(path: Path) -> dict[str, tuple[int, str]]:
    """By file name: its line in the seal and the hash that stands there."""
    try:
        lines = path.read_bytes().decode("utf-8").splitlines()
    except OSError as error:
        raise LexiconError(f"{path.name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise LexiconError(f"{path.name}, line {number}: not UTF-8") from error
    promised = {}
    for number, line in enumerate(lines, 1):
        digest, _, name = line.partition("  ")
        if len(digest) != 64 or not name:
            raise LexiconError(f"{path.name}, line {number}: not a SHA-256 and a file's name")
        promised[name] = (number, digest)
    return promised


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise LexiconError(f"{path.name}: cannot be read ({error.strerror})") from error
