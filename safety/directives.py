"""The words that safety itself says or puts into a prompt, read from data files."""

from functools import lru_cache

from safety.lexicon import DATA, LexiconError


@lru_cache(maxsize=1)
def wellbeing_directive() -> str:
    """What stands in the system prompt of every answer to a soft bell. Raises LexiconError when it is gone."""
    return _text("wellbeing_directive.txt")


@lru_cache(maxsize=1)
def safe_mode_refusal() -> str:
    """The fixed answer when a message could not be screened."""
    return _text("safe_mode_refusal.txt")


@lru_cache(maxsize=1)
def withheld_reply() -> str:
    """The fixed answer in the place of a reply that did not pass validation."""
    return _text("withheld_reply.txt")


def _text(name: str) -> str:
    try:
        text = (DATA / name).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise LexiconError(f"{name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LexiconError(f"{name}, line {line}: not UTF-8") from error
    if not text:
        raise LexiconError(f"{name}, line 1: the file is empty")
    return text
