"""What can go wrong with the remote engram: one error type, which says what kind and whether it is for good."""

from enum import StrEnum


class Kind(StrEnum):
    """Why a call came to nothing."""

    UNREACHABLE = "unreachable"  # no connection, no answer in time, cut off, 408, 429 or 5xx
    BAD_ANSWER = "bad answer"  # something answered that is no engram, or not a sound one
    REFUSED = "refused"  # a 4xx: this request will never be taken
    UNAUTHORISED = "unauthorised"  # a 401: no request will be taken before the token is mended
    NOT_TRIED = "not tried"  # the breaker is open, or cannot be asked


class EngramError(Exception):
    """A call to the remote engram came to nothing. The message holds no one's words."""

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind

    @property
    def permanent(self) -> bool:
        """Whether the same request will be refused again however often it is made."""
        return self.kind is Kind.REFUSED

    @property
    def is_failure(self) -> bool:
        """Whether the breaker counts it: a refusal is an answer, and what was not tried is no call."""
        return self.kind in (Kind.UNREACHABLE, Kind.BAD_ANSWER)
