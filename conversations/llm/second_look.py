"""The configured model as the second look of the safety layer: one word about a message, within its time."""

import asyncio
import re
import time
from contextlib import aclosing
from functools import lru_cache

from conversations.imprint import PROMPTS, Draft
from conversations.llm.events import ModelFailure, TextDelta
from conversations.llm.providers import BUILT_IN, ModelSettingError, describe
from safety.screening import Action
from safety.second_look import NoOpinion

_WORDS = {"danger": Action.HARD_BELL, "distress": Action.SOFT_BELL, "neither": Action.PASS}
_ANSWER = re.compile(r"\b(danger|distress|neither)\b")
LONGEST_ANSWER = 200  # characters; more is no answer


class ModelReader:
    """Asks the model that answers."""

    def read(self, text: str, *, seconds: float) -> Action:
        """Raises NoOpinion where no model is set, it fails, or it answers anything but one of the three words."""
        try:
            if describe().kind == BUILT_IN:
                raise NoOpinion("no model is set")
            said = asyncio.run(_ask(text, seconds))
        except (ModelSettingError, ModelFailure, TimeoutError) as error:
            raise NoOpinion(type(error).__name__) from error
        named = set(_ANSWER.findall(said.lower()))
        if len(named) != 1 or len(said) > LONGEST_ANSWER:
            raise NoOpinion("not one of the three words")
        return _WORDS[named.pop()]

    def sentence(self) -> str:
        try:
            description = describe()
        except ModelSettingError:
            return ""
        return "" if description.kind == BUILT_IN else description.name


async def _ask(text: str, seconds: float) -> str:
    from conversations.llm.exchange import once  # see stream.stream

    draft = Draft(
        system=_instructions(), history=(), message=f"<message>\n{text}\n</message>", with_tools=False
    )
    said = ""
    ends_at = time.monotonic() + seconds
    async with asyncio.timeout(seconds), aclosing(once(draft, (), seconds, ends_at)) as pieces:
        async for piece in pieces:
            if isinstance(piece, TextDelta):
                said += piece.text
            if len(said) > LONGEST_ANSWER:
                break
    return said


@lru_cache(maxsize=1)
def _instructions() -> str:
    return (PROMPTS / "second_look.txt").read_text(encoding="utf-8").strip()
