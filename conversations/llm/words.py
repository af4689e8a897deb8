"""What a stretch of talk was about: its nouns and names, and a sentence that shows it. Pure; no model.

A word counts as a noun by the company it keeps in this very talk ("the garden", "about painting"), so that no
list of nouns is needed; verbs, praise and small talk are left out by a list of common words.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

QUOTE_LENGTH = 180
SHORTEST_QUOTE = 25

COMMON = frozenset(
    (Path(__file__).resolve().parent.parent / "data" / "common_words.txt").read_text(encoding="utf-8").split()
)
_ASIDE = re.compile(r"\[[^\]\n]{0,300}\]|```.*?```|`[^`\n]*`|https?://\S+", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*[\"”’)]*")
_PIECE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[^\w\s]")
_DETERMINER = re.compile(
    r"an?|the|my|your|our|his|her|their|its|this|that|these|those|some|any|no|each|every|another"
)
_PREPOSITION = re.compile(r"of|about|for|with|from|into|at|in|on|through|during|without|by")
_BEFORE_A_VERB = re.compile(
    r"(?:i|you|we|they|he|she|it|who)(?:'(?:ll|d|ve))?|to|will|would|can|could|should|might|may|must|"
    r"(?:do|did|does|wo|ca)n't|let's|please|not|never|always|just|really"
)
_NO_NOUN = re.compile(r"(?:ly|ful|ous|able|ible|ive|less|est|ised|ized)$")
_GREETING = re.compile(
    r"^\W*(?:hey|hi|hello|wow|woah|whoa|thanks|thank|yeah|yep|yes|no|nope|oh|ok|okay|cool|great|congrats|aw|"
    r"haha|awesome|sure|totally|absolutely|glad|sorry|phew|woohoo|good|nice|bye|oops)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|we're|our)\b", re.IGNORECASE)


@dataclass
class _Company:
    """How one word was used."""

    times: int = 0
    noun: int = 0
    verb: int = 0
    capital: int = 0
    called: int = 0  # somebody is addressed by it


@dataclass
class Talk:
    """The terms of each stretch of talk, with their weight in it; written as they were said."""

    weights: list[Counter[str]]
    spread: Counter[str] = field(default_factory=Counter)
    spelling: dict[str, str] = field(default_factory=dict)


def plain(text: str) -> str:
    """The text without code, addresses and notes in brackets."""
    return " ".join(_ASIDE.sub(" ", text).replace("’", "'").split())


def sentences(text: str) -> list[str]:
    return [one.strip() for one in _SENTENCE.findall(plain(text)) if one.strip()]


def study(stretches: Sequence[Sequence[tuple[str, str]]]) -> Talk:
    """Terms of each stretch out of its exchanges; the person's own words count double."""
    read = [
        [
            (pieces, share)
            for q, a in stretch
            for text, share in ((q, 1.0), (a, 0.5))
            for pieces in _pieces(text)
        ]
        for stretch in stretches
    ]
    company = _company(pieces for stretch in read for pieces, _ in stretch)
    talk = Talk([Counter() for _ in read])
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    for weights, stretch in zip(talk.weights, read, strict=True):
        for pieces, share in stretch:
            for term, said in _terms(pieces, company):
                weights[term] += share  # type: ignore[assignment]
                spellings[term][said] += 1
        talk.spread.update(weights.keys())
    talk.spelling = {term: counts.most_common(1)[0][0] for term, counts in spellings.items()}
    return talk


def _pieces(text: str) -> list[list[str]]:
    return [_PIECE.findall(sentence) for sentence in sentences(text)]


def _key(word: str) -> str:
    """A word without its plural, so that "painting" and "paintings" are one."""
    low = word.lower().removesuffix("'s")
    if len(low) > 4 and low.endswith("ies"):
        return low[:-3] + "y"
    if len(low) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", low):
        return low[:-2]
    return low[:-1] if len(low) > 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")) else low


def _is(kind: re.Pattern[str], word: str) -> bool:
    return kind.fullmatch(word) is not None


def _is_content(word: str) -> bool:
    low = word.lower()
    return len(low) > 3 and low[0].isalpha() and low not in COMMON and _key(low) not in COMMON


def _company(all_pieces: Iterable[list[str]]) -> dict[str, _Company]:
    company: dict[str, _Company] = defaultdict(_Company)
    for pieces in all_pieces:
        for at, word in enumerate(pieces):
            if not _is_content(word):
                continue
            one = company[_key(word)]
            before = pieces[at - 1].lower() if at else ""
            after = pieces[at + 1] if at + 1 < len(pieces) else "."
            two_before = pieces[at - 2].lower() if at > 1 else ""
            head = not _is_content(after)  # what another content word follows may be its adjective
            one.times += 1
            one.verb += _is(_BEFORE_A_VERB, before)
            one.noun += _is(_DETERMINER, before) and head
            one.noun += _is(_PREPOSITION, before)
            one.noun += head and _is(_DETERMINER, two_before) and not _is(_BEFORE_A_VERB, before)
            one.capital += at > 0 and word[0].isupper() and before not in {".", '"', "“"}
            alone = not after[0].isalnum()
            one.called += (
                alone
                and word[0].isupper()
                and (at == 0 or before == "," or _GREETING.match(before) is not None)
            )
    return company


def _kind(word: str, company: dict[str, _Company]) -> str:
    """name, noun, other (may stand before a noun), or "" for what is no term at all."""
    if not _is_content(word):
        return ""
    one = company[_key(word)]
    if one.called * 2 >= one.times and one.called:
        return ""
    if one.capital * 2 > one.times:
        return "name"
    if one.verb * 2 > one.times or _NO_NOUN.search(word.lower()):
        return ""
    if one.noun * 3 >= one.times and one.noun > one.verb and not word.lower().endswith("ed"):
        return "noun"
    return "other"


def _terms(pieces: list[str], company: dict[str, _Company]) -> list[tuple[str, str]]:
    """Names, nouns and pairs that end in one, each with its spelling."""
    found = []
    kinds = [_kind(word, company) for word in pieces]
    for at, (word, kind) in enumerate(zip(pieces, kinds, strict=True)):
        if kind not in ("name", "noun"):
            continue
        said = (word if kind == "name" else word.lower()).removesuffix("'s")
        found.append((_key(word), said))
        if at and kinds[at - 1]:
            before = pieces[at - 1] if kinds[at - 1] == "name" else pieces[at - 1].lower()
            found.append((f"{_key(pieces[at - 1])} {_key(word)}", f"{before} {said}"))
    return found


def keys(text: str) -> list[str]:
    """The words of a text as terms are kept, in order; common ones only where there are no others."""
    said = [piece for piece in _PIECE.findall(plain(text)) if piece[0].isalpha()]
    return [_key(one) for one in said if _is_content(one)] or [_key(one) for one in said]


def is_greeting(text: str) -> bool:
    return _GREETING.match(text) is not None


def without_parts(terms: Iterable[str], count: int) -> list[str]:
    """The first `count` terms, none of which shares a word with one before it."""
    chosen: list[str] = []
    for term in terms:
        if not any(set(term.split()) & set(other.split()) for other in chosen):
            chosen.append(term)
        if len(chosen) == count:
            break
    return chosen


def quote(said: Iterable[str], terms: Sequence[str]) -> tuple[int, str]:
    """Which text, and its sentence that tells most: of the terms, in the first person, no question, no greeting.

    An empty sentence where no text has one that is worth quoting.
    """
    worth = {
        word: 1.0 / (1 + place / 3) for place, term in reversed(list(enumerate(terms))) for word in keys(term)
    }
    best, best_score = (0, ""), 0.6
    for at, text in enumerate(said):
        for sentence in sentences(text):
            if not SHORTEST_QUOTE <= len(sentence) <= QUOTE_LENGTH:
                continue
            held = {_key(piece) for piece in _PIECE.findall(sentence)}
            score = sum(value for word, value in worth.items() if word in held)
            score += 0.7 * bool(_FIRST_PERSON.search(sentence)) + min(len(sentence), 90) / 300
            score -= 1.5 * sentence.endswith("?") + 0.8 * bool(_GREETING.match(sentence))
            score -= 0.5 * bool(re.match(r"(?:you|your|it's|that's|that|it)\b", sentence, re.IGNORECASE))
            if score > best_score:
                best, best_score = (at, sentence), score
    return best
