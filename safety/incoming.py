"""Text that came from elsewhere, as memory asks about it: may it be recalled?"""

from memory.embedding import EmbedderUnavailable, embed_packaged
from safety.screening import Action, Screening, screen
from safety.validation import find_harm


def is_danger(*, said: list[str], answered: str) -> bool:
    """Whether anything a person said would ring a hard bell, or a reply would be withheld.

    No bell is rung and no risk kept: it was said elsewhere, to somebody who has screened it or has not.
    """
    return any(_screen(text).action == Action.HARD_BELL for text in said) or bool(find_harm(answered))


def _screen(text: str) -> Screening:
    """By meaning where the embedder is there, by the lists alone where it is not."""
    try:
        return screen(text, embed=embed_packaged)
    except EmbedderUnavailable:
        return screen(text)
