"""The second look: a language model is asked about a message that the screen itself is unsure of.

It may lift a message to a hard bell and settle soft against pass; it never lowers a hard bell, and is not asked about
one. Whatever goes wrong leaves the local verdict. Who is asked stands in the settings: safety knows no model.
"""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from safety.screening import SOFT_REASON, Action, Screening, Signal, hard_reason, ideation_of, thresholds
from safety.semantic import HARD_KINDS

logger = logging.getLogger(__name__)

SECONDS = 2.0
# After a failure nobody is asked for a while: an address that hangs must not cost each message two seconds.
PAUSE_SECONDS = 30.0
MOST_CHARACTERS = 4000
VERSION = "second-look-1"
_IN_WORDS = {
    Action.HARD_BELL: "danger",
    Action.SOFT_BELL: "distress",
    Action.PASS: "neither danger nor distress",
}


class NoOpinion(Exception):
    """The model could not be asked, or gave no answer of the kind asked for."""


class Reader(Protocol):
    """Somebody who can be asked."""

    def read(self, text: str, *, seconds: float) -> Action:
        """What a message asks of us. Raises NoOpinion."""

    def sentence(self) -> str:
        """Who would be asked, for people; empty while there is nobody."""


class _Pause:
    until = 0.0


_pause = _Pause()
# The answer is waited for here, so that not even a name that does not resolve takes longer than its time.
_waiting = ThreadPoolExecutor(max_workers=4, thread_name_prefix="second-look")


@lru_cache(maxsize=1)
def _reader_named(path: str) -> Reader:
    # By name and at the first use: whoever asks a model is above this app.
    reader: Reader = import_string(path)()
    return reader


def _reader() -> Reader:
    return _reader_named(settings.SECOND_LOOK_READER)


def who() -> str:
    """Who would be asked now; empty where it is turned off or there is nobody."""
    return _reader().sentence() if settings.NEURON_SECOND_LOOK else ""


def look(text: str, local: Screening) -> Screening:
    """The verdict after a second look, or the local one where it is sure, nobody can be asked, or asking fails."""
    if not local.uncertain or not settings.NEURON_SECOND_LOOK:
        return local
    if time.monotonic() < _pause.until:
        return local
    asked = _waiting.submit(_reader().read, text[:MOST_CHARACTERS], seconds=SECONDS)
    try:
        opinion = asked.result(timeout=SECONDS)
    except (NoOpinion, TooLate) as error:
        asked.cancel()
        _pause.until = time.monotonic() + PAUSE_SECONDS
        logger.warning("the second look gave no opinion (%s); the local verdict stands", type(error).__name__)
        return local
    except Exception:  # whatever a model's client does, the local verdict is there
        _pause.until = time.monotonic() + PAUSE_SECONDS
        logger.exception("the second look failed; the local verdict stands")
        return local
    return settled(local, opinion)


def settled(local: Screening, opinion: Action) -> Screening:
    """The local verdict with a model's opinion of it."""
    if local.action == Action.HARD_BELL:
        return local
    limits = thresholds()
    signal = Signal("second look", _IN_WORDS[opinion], None, 0.0, "raw")
    heard = replace(
        local,
        signals=(*local.signals, signal),
        detector_version=f"{local.detector_version}+{VERSION}",
        uncertain=False,
    )
    if opinion == Action.HARD_BELL:
        kind = local.kind if local.kind in HARD_KINDS else "active_ideation"
        return replace(
            heard,
            action=Action.HARD_BELL,
            reason=hard_reason(kind),
            score=max(local.score, limits.hard),
            risk=1.0,
            ideation_level=ideation_of(kind),
            kind=kind,
        )
    if opinion == Action.SOFT_BELL and local.action == Action.PASS:
        score = max(local.score, limits.soft)
        return replace(
            heard,
            action=Action.SOFT_BELL,
            reason=SOFT_REASON,
            score=score,
            risk=max(local.risk, score / 2),
            kind="distress",
        )
    if opinion == Action.PASS and local.action == Action.SOFT_BELL and local.ideation_level is None:
        # Where a wish to die was heard the help lines stay, whatever a model makes of it.
        return replace(heard, action=Action.PASS, reason="", kind=None)
    return heard
