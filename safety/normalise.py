"""What was typed, made plain for matching: case, quotes, invisible marks, look-alikes, stretched, spaced, masked and
misspelt words.

Only matching sees the cleaned text. What is stored and what a model reads is what the person typed.
"""

import re
import unicodedata
from functools import lru_cache

from confusable_homoglyphs import confusables
from rapidfuzz.distance import OSA

REPLACEMENT = "\ufffd"
# Zero-width and other format characters, soft hyphen, combining grapheme joiner, variation selectors, bidi marks.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_QUOTES = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"', "–": "-", "—": "-"}
)
# Three or more single letters held apart by one separator each; a run is cut at 64 letters to stay linear.
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .\-_/*·]){2,63}[^\W\d_](?![^\W_])")
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
_DOUBLED_WORD = re.compile(r"\b[a-z]{0,20}?([a-z])\1[a-z]{0,20}\b")
_LEET = str.maketrans(
    {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s", "!": "i", "|": "l"}
)
_LEET_WORD = re.compile(r"(?<!\S)(?=\S*[a-z])(?=\S*[013457@$!|])[a-z013457@$!|']{3,24}(?![\w@$|])")
# Masked and misspelt words are undone towards these alone, so that nothing harmless becomes a word of danger by a slip.
GRAVE = (
    *("kill", "killing", "killed", "suicide", "suicidal", "myself", "yourself", "dying", "death", "dead"),
    *("hang", "hanging", "overdose", "overdosed", "overdosing", "murder", "shoot", "stab", "pills", "noose"),
    *("goodbye", "worthless", "hopeless", "tonight", "harm", "hurt", "cutting", "wrists"),
)
# Those that no everyday word is one slip away from, and the known slips of shorter ones.
_MISSPELT = (
    *("suicide", "suicidal", "myself", "yourself", "overdose", "overdosed", "overdosing"),
    *("worthless", "hopeless", "goodbye", "tonight"),
)
_SLIPS = {
    "kil": "kill",
    "kll": "kill",
    "klil": "kill",
    "kiling": "killing",
    "killin": "killing",
    "killng": "killing",
    "dieing": "dying",
    "diying": "dying",
    "deth": "death",
    "deaht": "death",
}
_WORDS_OF_THEIR_OWN = {"overdone", "thyself", "goodbyes", "overdoses"}
_MASK = "*#_•●×"
_MASKED_WORD = re.compile(rf"(?<![^\s\"'(])[a-z][a-z{_MASK}\-]{{2,11}}(?![\w{_MASK}\-])")
_PLAIN_WORD = re.compile(r"(?<![a-z'])[a-z]{3,11}(?![a-z'])")
# What a spaced or a hurried hand leaves without blanks.
_RUN_TOGETHER = re.compile(
    r"(?<![a-z])(kill|killing|hang|hanging|shoot|shooting|hurt|hurting|cut|cutting|end|ending)"
    r"(myself|yourself|mylife|itall|me)(?![a-z])"
    r"|(?<![a-z])(want|wanna|going|gonna|ready)(to)?(die|kill)(myself)?(?![a-z])"
)
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def replace_unstorable(text: str) -> str:
    """NUL and lone surrogates, which PostgreSQL cannot hold, as U+FFFD. Everything else stays as it is."""
    return _NOT_STORABLE.sub(REPLACEMENT, text)


def clean(text: str, *, trigger_words: frozenset[str] = frozenset()) -> str:
    """The text as it is matched.

    `trigger_words` are those that a disguise is undone towards: a word written with digits becomes letters only
    where one of them results, so that "b2b" or "5am" stay.
    """
    text = plain_letters(text)
    text = _SPACED.sub(lambda run: re.sub(r"[ .\-_/*·]", "", run.group()), text)
    text = _STRETCHED.sub(r"\1\1", text)
    text = _DOUBLED_WORD.sub(lambda word: _squeeze(word.group(), trigger_words), text)
    text = _LEET_WORD.sub(lambda word: _unleet(word.group(), trigger_words), text)
    if trigger_words:
        text = _MASKED_WORD.sub(lambda word: _unmasked(word.group()), text)
        text = _RUN_TOGETHER.sub(_apart, text)
        text = _PLAIN_WORD.sub(lambda word: _spelt(word.group()), text)
    return re.sub(r"[^\S\n]+", " ", text)


def plain_letters(text: str) -> str:
    """Lower case without invisible marks, accents and look-alikes: NFKC, then one letter for another."""
    text = _INVISIBLE.sub("", text)
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    if not text.isascii():
        decomposed = unicodedata.normalize("NFD", text)
        text = "".join(_latin(mark) for mark in decomposed if not unicodedata.combining(mark))
    return text.lower()


@lru_cache(maxsize=4096)
def _latin(character: str) -> str:
    """The Latin letter a character is taken for by eye, or the character itself."""
    if character.isascii() or not character.isalpha():
        return character
    found = confusables.is_confusable(character, preferred_aliases=["latin"])
    if not found:
        return character
    for likeness in found[0]["homoglyphs"]:
        if len(likeness["c"]) == 1 and likeness["c"].isascii() and likeness["c"].isalpha():
            return str(likeness["c"])
    return character


def _squeeze(word: str, trigger_words: frozenset[str]) -> str:
    """`kiill` as `kill`, `suiicide` as `suicide`: a doubled letter goes where a trigger word results."""
    if word in trigger_words:
        return word
    for found in re.finditer(r"([a-z])\1", word):
        candidate = word[: found.start()] + word[found.start() + 1 :]
        if candidate in trigger_words:
            return candidate
    return word


def _unleet(word: str, trigger_words: frozenset[str]) -> str:
    plain = word.translate(_LEET)
    # 1 stands for l as often as for i.
    for candidate in (plain, word.replace("1", "l").replace("!", "l").translate(_LEET)):
        if candidate.strip("'.,") in trigger_words:
            return candidate
    return word


@lru_cache(maxsize=4096)
def _unmasked(word: str) -> str:
    """`k*ll` as `kill`, `su**ide` as `suicide`: where just one grave word fits and two letters in five are there."""
    letters = sum(character.isalpha() for character in word)
    if letters == len(word) or letters < 2 or letters < 0.4 * len(word):
        return word
    pattern = re.compile("".join(one if one.isalpha() else "[a-z]" for one in word))
    fitting = [grave for grave in GRAVE if pattern.fullmatch(grave)]
    return fitting[0] if len(fitting) == 1 else word


@lru_cache(maxsize=4096)
def _spelt(word: str) -> str:
    """A word that is one slip away from a long grave word, or a known slip of a short one."""
    if len(word) < 6:
        return _SLIPS.get(word, word)
    if word in _MISSPELT or word in _WORDS_OF_THEIR_OWN:
        return word
    found = [grave for grave in _MISSPELT if OSA.distance(word, grave, score_cutoff=1) <= 1]
    return found[0] if len(found) == 1 else _SLIPS.get(word, word)


def _apart(run: re.Match[str]) -> str:
    verb, whom, wish, to, what, self = run.groups()
    if verb:
        return f"{verb} " + {"mylife": "my life", "itall": "it all"}.get(whom, whom)
    if not to and wish in ("want", "going", "ready"):
        return run.group()
    return " ".join(word for word in (wish, to, what, self) if word)
