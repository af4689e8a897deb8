"""Readers for the second look's tests, named in the settings as a real one is."""

import time

from safety.screening import Action
from safety.second_look import NoOpinion


class Scripted:
    """Answers what it is told to, and keeps what it was asked."""

    opinion: Action | Exception = Action.PASS
    delay = 0.0
    asked: list[str] = []

    def read(self, text: str, *, seconds: float) -> Action:
        Scripted.asked.append(text)
        time.sleep(Scripted.delay)
        if isinstance(Scripted.opinion, Exception):
            raise Scripted.opinion
        return Scripted.opinion

    def sentence(self) -> str:
        return "scripted"


def no_opinion() -> NoOpinion:
    return NoOpinion("scripted")
