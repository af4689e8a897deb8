"""A message's text as recall sees it: cleaned, cut into chunks and units, and turned into terms. Pure.

Figures (300 and 120 characters, the stop words, the stems) were chosen by measurement; see `fusion`.
"""

import re
import unicodedata
from functools import lru_cache

import snowballstemmer

CHUNK = 300
UNIT = 120
# What is indexed of one message; beyond it a pasted book would weigh as much as a month of talk.
MOST_CHARACTERS = 40_000
LONGEST_TOKEN = 40

# Function words carry no topic, and question words cost plain BM25 five points of recall.
_FUNCTION_WORDS = (
    "a an the and or but if then so of to in on at by for from with about into over after before as is are was"
    " were be been being am do does did done doing have has had having i me my mine we us our you your he him"
    " his she her it its they them their this that these those there here what which who whom whose when where"
    " why how not no yes can could will would shall should may might must just also than too very any some"
)
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
# Forms that the stemmer cannot know belong together, and names that families use beside each other.
_FORMS = (
    "go went gone goes|see saw seen|buy bought|make made|take took taken|get got gotten|give gave given|"
    "come came|run ran|eat ate eaten|drink drank drunk|drive drove driven|write wrote written|"
    "speak spoke spoken|begin began begun|break broke broken|choose chose chosen|fall fell fallen|feel felt|"
    "find found|fly flew flown|forget forgot forgotten|grow grew grown|hear heard|hold held|keep kept|"
    "know knew known|leave left|lose lost|meet met|pay paid|ride rode ridden|rise rose risen|say said|"
    "sell sold|send sent|sing sang sung|sit sat|sleep slept|spend spent|stand stood|swim swam swum|"
    "teach taught|tell told|think thought|throw threw thrown|understand understood|wake woke woken|"
    "wear wore worn|win won|lead led|build built|bring brought|catch caught|fight fought|draw drew drawn|"
    "bite bit bitten|hide hid hidden|show shown|mean meant|become became|child children kids kid|"
    "person people|man men|woman women|mouse mice|foot feet|tooth teeth|wife wives|life lives|"
    "mom mother mum|dad father|grandma grandmother|grandpa grandfather|photo picture pic|tv television"
)
_BASE_FORM = {form: line.split()[0] for line in _FORMS.split("|") for form in line.split()[1:]}

# Enough function words of a language to tell it in a sentence or two; English is what remains.
_TELLTALES = {
    "german": "der die das und ist nicht ich ein eine mit für auf wir mein meine war habe wie was wo wann",
    "french": "le la les des et est pas je un une avec pour dans nous mon ma que qui où quand était j c",
    "spanish": "el la los las y es no yo un una con para en mi que qué cuándo dónde era fue está",
    "italian": "il lo la gli e è non io un una con per nel mio mia che quando dove era sono della",
    "portuguese": "o a os as e é não eu um uma com para em meu minha que quando onde era foi está",
    "dutch": "de het een en is niet ik met voor op wij mijn was heb wat waar wanneer van",
    "swedish": "och att det är inte jag en ett med för på min mitt var när vad som har",
}
_TELLTALE_SETS = {language: frozenset(words.split()) for language, words in _TELLTALES.items()}
_BY_SCRIPT = {
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "ARMENIAN": "armenian",
    "TAMIL": "tamil",
}

_TOKEN = re.compile(r"[^\W_]+")
# Written without blanks between words: pairs of characters stand for words there.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_MARKS = (
    (re.compile(r"```\w*"), ""),
    (re.compile(r"^\s{0,3}(?:#{1,6}|>|[-*+]|\d+\.)\s+", re.MULTILINE), ""),
    (re.compile(r"\[([^\]\n]{0,300})\]\([^)\n]{0,500}\)"), r"\1"),
    (re.compile(r"[*_`~|]+"), ""),
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def clean(text: str) -> str:
    """The text without markdown marks."""
    text = text[:MOST_CHARACTERS]
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return text.strip()


def pack(text: str, most: int) -> list[str]:
    """Whole sentences packed greedily to `most` characters; a short tail joins the part before it."""
    parts: list[str] = []
    current = ""
    for sentence in _sentences(text, most):
        if current and len(current) + 1 + len(sentence) > most:
            parts.append(current)
            current = sentence
        else:
            current = f"{current} {sentence}".strip()
    if current and parts and len(current) < most // 3:
        parts[-1] += " " + current
    elif current:
        parts.append(current)
    return parts or [""]


def _sentences(text: str, most: int) -> list[str]:
    found = []
    for line in text.split("\n"):
        for part in _SENTENCE_END.split(line):
            sentence = part.strip()
            # A sentence without end is cut at blanks.
            while len(sentence) > most * 3 // 2:
                cut = sentence.rfind(" ", most // 3, most)
                cut = cut if cut > 0 else most
                found.append(sentence[:cut])
                sentence = sentence[cut:].strip()
            if sentence:
                found.append(sentence)
    return found


def tokens(text: str) -> list[tuple[str, int, int]]:
    """Lower-case words with their place (start, end) in the text; unspaced scripts give pairs of characters."""
    found: list[tuple[str, int, int]] = []
    for match in _TOKEN.finditer(text):
        start = match.start()
        word = match.group()
        if word.isascii():
            found.append((word.lower(), start, match.end()))
            continue
        at = 0
        for run in _UNSPACED.finditer(word):
            if run.start() > at:
                found.append((_fold(word[at : run.start()]), start + at, start + run.start()))
            found += _pairs(run.group(), start + run.start())
            at = run.end()
        if at < len(word):
            found.append((_fold(word[at:]), start + at, match.end()))
    return found


def _pairs(run: str, start: int) -> list[tuple[str, int, int]]:
    if len(run) == 1:
        return [(run, start, start + 1)]
    return [(run[i : i + 2], start + i, start + i + 2) for i in range(len(run) - 1)]


def _fold(word: str) -> str:
    return unicodedata.normalize("NFKC", word).lower()


def language_of(text: str) -> str:
    """The Snowball stemmer for the text's words in Latin letters, by their function words; else English."""
    words = [word for word, _, _ in tokens(text[:2000])]
    votes = {language: sum(word in tells for word in words) for language, tells in _TELLTALE_SETS.items()}
    votes["english"] = sum(word in STOP_WORDS for word in words)
    # Ties go to English, whose stems are indexed for every text.
    return max(votes, key=lambda language: (votes[language], language == "english"))


def stems(word: str, language: str = "english") -> tuple[str, ...]:
    """The terms of a word: its stem, and where the text is in another language also that language's stem.

    The first is the same whatever the text's language, so a query always meets the same word in the index.
    """
    word = word[:LONGEST_TOKEN]
    first = _stem(_BASE_FORM.get(word, word), _stemmer_for(word))
    if language == "english" or not word.isalpha():
        return (first,)
    second = _stem(word, language)
    return (first,) if second == first else (first, second)


def terms(text: str, language: str | None = None) -> list[str]:
    """Distinct terms in order of appearance, without function words."""
    language = language or language_of(text)
    found: dict[str, None] = {}
    for word, _, _ in tokens(text):
        if word not in STOP_WORDS:
            found.update(dict.fromkeys(stems(word, language)))
    return list(found)


@lru_cache(maxsize=50_000)
def _stem(word: str, language: str) -> str:
    return str(_stemmer(language).stemWord(word))


@lru_cache(maxsize=32)
def _stemmer(language: str) -> snowballstemmer.basestemmer.BaseStemmer:
    return snowballstemmer.stemmer(language)


def _stemmer_for(word: str) -> str:
    if word.isascii():
        return "english"
    script = unicodedata.name(word[0], "").split(" ")[0]
    return _BY_SCRIPT.get(script, "english")
