"""What comes of asking a model: pieces of its reply, or one kind of failure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The model looks something up."""

    name: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is complete."""

    model: str


class ModelFailure(Exception):
    """The model gave no whole answer. `code` is kept with the turn; `permanent` says that trying again is no use.

    `wait` is how many seconds the provider asked to be left alone.
    """

    def __init__(
        self, code: str, detail: str = "", *, permanent: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.permanent = permanent
        self.wait = wait
