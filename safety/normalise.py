"""What was typed, made plain for matching: case, quotes, invisible marks, look-alikes, stretched, spaced, masked and
misspelt words.

Only matching sees the cleaned text. What is stored and what a model reads is what the person typed.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import ahocorasick
from confusable_homoglyphs import confusables

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
_MASK = "*#_•●×%^~+&?"
# Masked down to the first letter, or too short for two: each stands for one word only.
_BARE = {
    "k***": "kill",
    "k******": "killing",
    "s******": "suicide",
    "s*******": "suicidal",
    "d*e": "die",
    "d**": "die",
}
_MASKED_WORD = re.compile(rf"(?<![^\s\"'(])[a-z][a-z{re.escape(_MASK)}\-]{{2,11}}(?![\w*#_])")
# What a spaced or a hurried hand leaves without blanks.
_RUN_TOGETHER = re.compile(
    r"(?<![a-z])(kill|killing|hang|hanging|shoot|shooting|hurt|hurting|cut|cutting|end|ending)"
    r"(myself|yourself|mylife|itall|me)(?![a-z])"
    r"|(?<![a-z])(want|wanna|going|gonna|ready)(to)?(die|kill)(myself)?(?![a-z])"
)
# Whether there is anything at all for the dearer patterns to look at.
_LEET_MARK = re.compile(r"[a-z'][013457@$!|]|[013457@$!|][a-z]")
_MASK_MARK = re.compile(rf"[a-z][{re.escape(_MASK)}\-]")
_BLANKS = re.compile(r"[^\S\n]+")
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
    if trigger_words:
        if _LEET_MARK.search(text):
            text = _LEET_WORD.sub(lambda word: _unleet(word.group(), trigger_words), text)
        if _MASK_MARK.search(text):
            text = _MASKED_WORD.sub(lambda word: _unmasked(word.group()), text)
        text = _RUN_TOGETHER.sub(_apart, text)
        text = _spelt(text, _slips(trigger_words))
    return _BLANKS.sub(" ", text)


def plain_letters(text: str) -> str:
    """Lower case without invisible marks, accents and look-alikes: NFKC, then one letter for another."""
    if text.isascii():
        return text.replace("`", "'").lower()
    text = _INVISIBLE.sub("", text)
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    if text.isascii():
        return text.lower()
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
    word, marks = _without_marks_behind(word)
    if word in _BARE:
        return _BARE[word] + marks
    letters = sum(character.isalpha() for character in word)
    if letters == len(word) or letters < 2 or letters < 0.4 * len(word):
        return word + marks
    pattern = re.compile("".join(one if one.isalpha() else "[a-z]" for one in word))
    fitting = [grave for grave in GRAVE if pattern.fullmatch(grave)]
    return (fitting[0] if len(fitting) == 1 else word) + marks


def _without_marks_behind(word: str) -> tuple[str, str]:
    """The word and the question marks or hyphens behind it, which belong to the sentence."""
    bare = word.rstrip("?-&+")
    return bare, word[len(bare) :]


@lru_cache(maxsize=4)
def _slips(trigger_words: frozenset[str]) -> Any:
    """All spellings that are undone, as one automaton: a doubled letter in a trigger word, one slip in a long grave
    word, and the known slips of short ones. What two words could have become stays as it is.
    """
    meant: dict[str, str] = {}
    for word in trigger_words:
        for at in range(len(word)):
            meant[word[: at + 1] + word[at:]] = word
    unclear: set[str] = set()
    for word in _MISSPELT:
        for slip in _one_slip(word):
            if meant.setdefault(slip, word) != word:
                unclear.add(slip)
    automaton = ahocorasick.Automaton()
    for slip, word in (meant | _SLIPS).items():
        if slip not in unclear and slip not in trigger_words and slip not in _WORDS_OF_THEIR_OWN:
            automaton.add_word(slip, (slip, word))
    automaton.make_automaton()
    return automaton


def _one_slip(word: str) -> Iterator[str]:
    """The word with one letter left out, another in its place, one more, or two exchanged."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        yield from (before + one + after for one in letters)
        if after:
            yield before + after[1:]
            yield from (before + one + after[1:] for one in letters)
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]


def _spelt(text: str, slips: Any) -> str:
    """The text with every whole word that is a slip as the word that was meant."""
    parts: list[str] = []
    done = 0
    for last, (slip, word) in slips.iter(text):
        start, end = last + 1 - len(slip), last + 1
        if start < done or not _is_whole_word(text, start, end):
            continue
        parts += [text[done:start], word]
        done = end
    return "".join([*parts, text[done:]]) if parts else text


def _is_whole_word(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (before.isalnum() or before in ("'", "_")) and not (after.isalnum() or after in ("'", "_"))


def _apart(run: re.Match[str]) -> str:
    verb, whom, wish, to, what, self = run.groups()
    if verb:
        return f"{verb} " + {"mylife": "my life", "itall": "it all"}.get(whom, whom)
    if not to and wish in ("want", "going", "ready"):
        return run.group()
    return " ".join(word for word in (wish, to, what, self) if word)
