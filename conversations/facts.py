"""What a person writes on the page of what is kept: screened like any message before anything is done with it."""

from uuid import uuid4

from django.contrib.auth.models import AbstractBaseUser

from conversations import keeping, receiving
from memory.models import MemoryNode
from safety.directives import safe_mode_refusal
from safety.help_lines import for_country
from safety.normalise import replace_unstorable
from safety.screening import Action
from safety.services import keep_risk, note_referrals


class NotKept(Exception):
    """What was written rang a hard bell, or could not be screened: nothing of it is kept, and this is the answer."""

    def __init__(self, received: receiving.Received) -> None:
        super().__init__(received.reply)
        self.received = received


def keep(*, owner: AbstractBaseUser, words: str, country: str) -> MemoryNode:
    """Raises NotKept, and NothingToKeep for words that are none or too many."""
    return keeping.keep_words(owner=owner, words=_screened(owner, words, country))


def correct(*, owner: AbstractBaseUser, node: MemoryNode, words: str, country: str) -> MemoryNode:
    """Raises NotKept, and NothingToKeep for words that are none or too many; the fact then stays as it was."""
    return keeping.correct(owner=owner, node=node, words=_screened(owner, words, country))


def _screened(owner: AbstractBaseUser, words: str, country: str) -> str:
    words = replace_unstorable(words)
    screening = receiving.screen(owner.pk, words)
    if screening is None:
        raise NotKept(
            receiving.Received(reply=safe_mode_refusal(), resources=for_country(country), refused=True)
        )
    keep_risk(owner_id=owner.pk, screening=screening)
    if screening.action == Action.HARD_BELL:
        received = receiving.hard_bell(
            owner_id=owner.pk,
            session_id=None,
            after_index=-1,
            client_key=uuid4().hex,
            text=words,
            screening=screening,
            resources=for_country(country),
            mirrored=True,
        )
        if received.bell is not None:
            note_referrals(hard=[received.bell.pk])  # page and API both answer with the help lines
        raise NotKept(received)
    return words
