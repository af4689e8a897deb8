"""One wording for many spellings: contractions, chat shorthand and known euphemisms, written out. Pure.

What the classifier reads. A post without apostrophes or commas and a careful letter come out alike, so that
meaning is compared and not manners.
"""

import re

_KEPT = re.compile(r"[a-z0-9]+(?:'[a-z]+)*|[?]|[^\x00-\x7f]+")

_WHOLE = {
    "im": "i am",
    "i'm": "i am",
    "ive": "i have",
    "i've": "i have",
    "i'd": "i would",
    "i'll": "i will",
    "dont": "do not",
    "don't": "do not",
    "dnt": "do not",
    "cant": "can not",
    "can't": "can not",
    "cannot": "can not",
    "wont": "will not",
    "won't": "will not",
    "didnt": "did not",
    "doesnt": "does not",
    "isnt": "is not",
    "wasnt": "was not",
    "werent": "were not",
    "arent": "are not",
    "aint": "is not",
    "ain't": "is not",
    "couldnt": "could not",
    "wouldnt": "would not",
    "shouldnt": "should not",
    "havent": "have not",
    "hasnt": "has not",
    "hadnt": "had not",
    "youre": "you are",
    "theyre": "they are",
    "hes": "he is",
    "shes": "she is",
    "thats": "that is",
    "whats": "what is",
    "theres": "there is",
    "let's": "let us",
    "wanna": "want to",
    "gonna": "going to",
    "gunna": "going to",
    "gotta": "have to",
    "finna": "going to",
    "tryna": "trying to",
    "imma": "i am going to",
    "ima": "i am going to",
    "u": "you",
    "ur": "your",
    "r": "are",
    "ya": "you",
    "idk": "i do not know",
    "idc": "i do not care",
    "idec": "i do not care",
    "rn": "right now",
    "tn": "tonight",
    "2nite": "tonight",
    "2night": "tonight",
    "tonite": "tonight",
    "tmrw": "tomorrow",
    "tmr": "tomorrow",
    "tmw": "tomorrow",
    "tomoro": "tomorrow",
    "2moro": "tomorrow",
    "2morrow": "tomorrow",
    "bc": "because",
    "cuz": "because",
    "cos": "because",
    "coz": "because",
    "bcuz": "because",
    "ppl": "people",
    "smth": "something",
    "plz": "please",
    "pls": "please",
    "thx": "thanks",
    "tbh": "to be honest",
    "fr": "for real",
    "ngl": "not going to lie",
    "abt": "about",
    "wit": "with",
    "w/": "with",
    "anymore": "any more",
    "everytime": "every time",
    "alot": "a lot",
    "yrs": "years",
    "mos": "months",
    "wk": "week",
    "hrs": "hours",
    "bf": "boyfriend",
    "gf": "girlfriend",
    "bff": "best friend",
    "fam": "family",
    "mum": "mom",
    "mam": "mom",
    "meds": "medication",
    "otc": "over the counter",
    "lyfe": "life",
    "lif": "life",
    # Ways round the word.
    "kms": "kill myself",
    "kys": "kill yourself",
    "ctb": "kill myself",
    "unalive": "kill",
    "unaliving": "killing",
    "unalived": "killed",
    "sewerslide": "suicide",
    "sewercide": "suicide",
    "sui": "suicide",
    "selfharm": "self harm",
    "suicidality": "suicidal thoughts",
    "od": "overdose",
    "oding": "overdosing",
    "oded": "overdosed",
    "od'd": "overdosed",
}
_ENDINGS = {
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "n't": " not",
    "'m": " am",
    "'d": " would",
    "'s": "",
}
_IS = {
    "it's",
    "that's",
    "he's",
    "she's",
    "what's",
    "there's",
    "who's",
    "here's",
    "where's",
    "how's",
    "everything's",
}
_SPLIT = [
    (re.compile(r"\b(ca|do|wo|did|does|is|was|were|are|could|would|should|have|has|had)n t\b"), r"\1n't"),
    (re.compile(r"\b(i|you|we|they|he|she|it|that|there|what) (m|ve|ll|re|d|s)\b(?! [a-z] )"), r"\1'\2"),
]
_PHRASES = [
    (
        re.compile(
            r"\b(?:catch|catching) the bus\b(?= (?:tonight|soon|tomorrow|and leave|for good|to the other side))"
        ),
        "kill myself",
    ),
    (re.compile(r"\b(?:off|offing|delete|deleting|end|ending) (my ?self)\b"), "kill myself"),
    (re.compile(r"\bmy self\b"), "myself"),
    (
        re.compile(
            r"\bill (?=(?:be|do|never|just|kill|end|die|have|go|probably|see|finally|take|always|still|make|not)\b)"
        ),
        "i will ",
    ),
    (re.compile(r"\b(?:bleed|bleeding) out\b"), "bleed to death"),
]


def plain_wording(cleaned: str) -> str:
    """A cleaned text (lower case, straight quotes) in one wording: short forms written out, marks but `?` dropped."""
    for pattern, replacement in _SPLIT:
        cleaned = pattern.sub(replacement, cleaned)
    words = " ".join(_written_out(word) for word in _KEPT.findall(cleaned))
    for pattern, replacement in _PHRASES:
        words = pattern.sub(replacement, words)
    return words


def _written_out(word: str) -> str:
    whole = _WHOLE.get(word)
    if whole is not None:
        return whole
    if "'" in word:
        if word in _IS:
            return word[:-2] + " is"
        for ending, full in _ENDINGS.items():
            if word.endswith(ending):
                return word[: -len(ending)] + full
        return word.replace("'", "")
    return word
