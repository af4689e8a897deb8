"""The people, places and things that a message names: by capitals, and by kin ("my sister"). No model. Pure."""

import re
from collections.abc import Collection, Iterator

from memory.retrieval.text import STOP_WORDS
from memory.timewords import MONTHS, WEEKDAYS

MOST_NAMES = 12
LONGEST_NAME = 80

_KIN = {
    "mum": "mother", "mom": "mother", "mama": "mother", "dad": "father", "papa": "father", "grandma": "grandmother",
    "granny": "grandmother", "grandpa": "grandfather", "neighbor": "neighbour", "roommate": "flatmate",
}  # fmt: skip
_KINDS = (
    "sister|brother|mother|father|mum|mom|mama|dad|papa|wife|husband|partner|girlfriend|boyfriend|fiancée?|son|daughter"
    "|aunt|uncle|cousin|niece|nephew|grandmother|grandfather|grandma|granny|grandpa|boss|manager|therapist|doctor"
    "|dentist|landlord|landlady|flatmate|roommate|neighbou?r|dog|cat|best friend"
)
_MINE = re.compile(
    rf"\bmy (?:(?:little|big|older|younger|elder|late|dear|new|old|twin) )?({_KINDS})\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"[^.!?:;\n\"“”()]+")
_WORD = re.compile(r"[^\W\d_][\w'’&-]*")
# Inside a name: "the Bay of Biscay", "Ursula von der Leyen".
_LINK_WORDS = "of de da do del della di du la le van von der den el al"
_LINKS = frozenset(_LINK_WORDS.split())
# Written with a capital without being anybody.
_CALLS = (
    "i i'm i've i'd i'll hi hey hello dear ok okay oh wow yes yeah yep nope thanks thank please sorry god lol omg btw"
    " tv pc pm am mr mrs ms dr prof sir madam neuron ai image photo well also maybe today tomorrow yesterday tonight"
)
_NOBODY = STOP_WORDS | frozenset(MONTHS) | frozenset(WEEKDAYS) | frozenset(_CALLS.split())
_NOBODY |= frozenset(_KINDS.replace("fiancée?", "fiancé|fiancée").replace("u?r", "ur").split("|"))


def names_in(message: str, known: Collection[str] = ()) -> list[str]:
    """What the message names, in order of appearance, each once whatever its case.

    A capital at the beginning of a sentence says nothing by itself: such a word counts where it is one of the
    `known` names (in lower case), or stands with a capital elsewhere in the message, too.
    """
    sure: dict[str, str] = {}
    leading: list[str] = []
    for sentence in _SENTENCE.findall(message):
        for name, leads in _names(sentence):
            if leads:
                leading.append(name)
            else:
                sure.setdefault(name.lower(), name)
    for name in leading:
        first, _, rest = name.partition(" ")
        if rest and rest.lower() not in known and rest.lower() not in sure:
            sure.setdefault(name.lower(), name)  # "Little Women is a book."
        elif rest:
            sure.setdefault(rest.lower(), rest)  # "Congrats Ada!"
        elif first.lower() in known or first.lower() in sure:
            sure.setdefault(first.lower(), first)
    for match in _MINE.finditer(message):
        kin = match[1].lower()
        name = f"my {_KIN.get(kin, kin)}"
        sure.setdefault(name, name)
    return [name for name in sure.values() if len(name) <= LONGEST_NAME][:MOST_NAMES]


def _names(sentence: str) -> Iterator[tuple[str, bool]]:
    """Runs of words with capitals, and whether the sentence begins with the run."""
    words = [match.group().strip("'’&-") for match in _WORD.finditer(sentence)]
    words = [re.sub(r"['’]s$", "", word) for word in words]
    capitals = [_has_capital(word) for word in words]
    longer = [word for word in words[1:] if len(word) > 1]
    if len(words) >= 4 and sum(word[0].isupper() for word in longer) > len(longer) * 0.7:
        return  # A headline, or shouting.
    at = 0
    while at < len(words):
        if not capitals[at]:
            at += 1
            continue
        end = at + 1
        while end < len(words) and (capitals[end] or _links(words, capitals, end)):
            end += 1
        yield " ".join(words[at:end]), at == 0
        at = end


def _has_capital(word: str) -> bool:
    bare = re.split("['’]", word)[0]
    if len(bare) < 2:  # An initial, or I; but O'Neill is somebody.
        return bare.upper() == "O" and word[2:3].isupper()
    # Up to five capitals in a row are an acronym, more are shouting.
    return bare[0].isupper() and bare.lower() not in _NOBODY and not (bare.isupper() and len(bare) > 5)


def _links(words: list[str], capitals: list[bool], at: int) -> bool:
    """Whether a small word leads from one capital to the next."""
    following = next((place for place in range(at, len(words)) if words[place] not in _LINKS), len(words))
    return at < following < len(words) and following - at <= 2 and capitals[following]
