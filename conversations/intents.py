"""What a message asks memory for, recognised on our side, so that the answer depends on no model's tool use. Pure."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from memory.timewords import Window, asks_for_the_first, find_window


class Kind(StrEnum):
    """Which look-up is meant."""

    RECENT = "recent"
    THIS_CONVERSATION = "this_conversation"
    ABOUT = "about"
    THEMES = "themes"
    REMEMBER = "remember"
    CHANGE = "change"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Intent:
    """A look-up: its kind, the window it names, what it is about, and whether the first time is asked for.

    `worries` narrows themes to what weighed on the person.
    """

    kind: Kind
    window: Window | None = None
    topic: str = ""
    oldest_first: bool = False
    worries: bool = False


_TALK = r"(?:conversations?|chats?|talks?|discussions?|messages|sessions)"
_SUMMARISE = r"(?:summari[sz]e|summary of|recap|sum up|go over|overview of|digest of|remind me (?:of|what))"
_WE_TALKED = r"(?:we|i|you and i)(?:'ve| have)? (?:been )?(?:talk(?:ed|ing)?|chatt(?:ed|ing)|discuss(?:ed|ing)?|sp(?:oke|oken))"
_THIS = re.compile(
    rf"\b{_SUMMARISE} (?:this|the current|our current) (?:{_TALK}|thread)\b|\bwhat (?:have|did) we (?:talk(?:ed)?|discuss(?:ed)?|cover(?:ed)?) (?:about )?(?:so far|in this {_TALK}|here)\b",
    re.I,
)
_THEMES = re.compile(
    r"\bthemes? (?:across|of|in|from) (?:everything|all (?:of )?(?:my|our)|my whole|our whole)\b|\bwhat (?:themes|topics|subjects) (?:keep|do i keep|come up)\b|"
    r"\bwhat (?:do|have) i (?:usually|mostly|always) (?:talk|talked) about\b|\bthemes across everything\b",
    re.I,
)
# "how has my view of work changed", "has my mood about the move shifted"
_CHANGE = re.compile(
    r"\b(?:how|have|has|did|in what way)\b[^.!?\n]{0,30}\bmy (?:view|opinion|mind|feelings?|thoughts?|thinking|attitude|mood|take|relationship)s?"
    r"(?: (?:of|on|about|towards?|with|to|around) (?P<topic>[^?.!\n]{2,120}?))? (?:been )?(?:chang(?:ed|e|ing)|shift(?:ed|ing)?|develop(?:ed|ing)?|evolved?|moved on|grown)\b",
    re.I,
)
_WORRIED = re.compile(r"\b(?:worr|anxious|afraid|troubl|weigh(?:ed|ing)? on|stress|on my mind)", re.I)
# Over more than this, what was said is told by its themes.
_LONG = timedelta(days=45)
_RECENT = re.compile(
    rf"\b(?:recent|latest|last few|past few|previous|lately|recently)\b.{{0,40}}\b{_TALK}\b|\b{_TALK}\b.{{0,30}}\b(?:lately|recently|this week|last week)\b|"
    rf"\bwhat (?:did|have|were|was) {_WE_TALKED}\b.{{0,30}}\b(?:lately|recently|about\s*\??$)|\b{_SUMMARISE}.{{0,40}}\b(?:our|my) {_TALK}\b|"
    rf"\b{_SUMMARISE} (?:what )?{_WE_TALKED}|\bwhat (?:have|did) {_WE_TALKED} about (?:lately|recently)\b|"
    rf"\b(?:what|anything).{{0,20}}{_WE_TALKED}.{{0,30}}\b(?:lately|recently)\b|\bwhat (?:have|was|did) i (?:been )?(?:say|said|talk(?:ed|ing)?|up to|on my mind).{{0,30}}\b(?:lately|recently)\b",
    re.I,
)
_ABOUT = re.compile(
    r"\bwhat (?:did|have|do|was|were) (?:i|we|you)(?:'ve| have)? (?:ever )?(?:say|said|tell|told|talk(?:ed)?|mention(?:ed)?|know|recommend(?:ed)?|suggest(?:ed)?|been (?:saying|worried)|worried)"
    r"(?: you| me| to you| to me)?(?: about)? (?P<topic1>[^?.!\n]{2,120})|"
    rf"\b(?:search|look|find)(?: in| through| up)?(?: my| our)? (?:memory|memories|{_TALK})? ?(?:for|about) (?P<topic2>[^?.!\n]{{2,120}})|"
    r"\b(?:do you|can you) (?:remember|recall)(?: when| what| that| how)? (?P<topic3>[^?.!\n]{2,120})|"
    rf"\b{_SUMMARISE} (?:what|everything|all) (?:i|we|you)(?:'ve| have)? (?:said|told you|talked|discussed|know) (?:about )?(?P<topic4>[^?.!\n]{{2,120}})|"
    r"\b(?:that|the|which|what) (?P<topic5>\w+(?: \w+){0,3}) (?:you|i|we) (?:recommended|mentioned|suggested|talked about|told you about)\b|"
    r"\bwhen did (?:i|we|you) (?:last |first )?(?P<topic6>[^?.!\n]{2,120})",
    re.I,
)
# "when did I first tell you about Lisbon": what it is about is Lisbon.
_SAYING = re.compile(
    r"^(?:tell you|talk(?: to you)?|speak|mention|say(?: anything)?)\b(?: about| of)? ?", re.I
)
_WINDOWED = re.compile(
    rf"\b(?:what|{_SUMMARISE}|themes?|worr|on my mind)\b.{{0,60}}\b(?:{_WE_TALKED}|i (?:say|said|been|was|talk(?:ed)?|worr(?:y|ied))|{_TALK}|worr|on my mind)\b|"
    rf"\bwhat (?:was|were|have|had) i (?:been )?(?:worried|thinking|talking)\b|\bwhat (?:did|have) {_WE_TALKED}|\b{_SUMMARISE}\b|\bwhat (?:did|have) we (?:talk|discuss|said|say)",
    re.I,
)


_ASKED = (
    r"(?:^|(?<=[.!?\n])\s*)(?:(?:hey|hi|ok|okay|oh|so|and|also|neuron)\b[,!]?\s+){0,3}"
    r"(?:please,?\s+|(?:could|can|would|will) you (?:please )?|i(?:'d| would) like you to |i want you to |i need you to "
    r"|you (?:should|must) (?:also )?){0,2}"
)
_KEEP = r"(?:remember|memori[sz]e|keep in mind|bear in mind|take note|make a note|note|don['’]?t forget|do not forget|never forget)"
# "remember that my sister's name is Ada"; not "remember that time we …", "remember when …", "remember to call".
_KEEP_THAT = re.compile(
    rf"{_ASKED}{_KEEP}(?:\s+this)?(?:\s*:\s*|,?\s+that\s+(?!(?:time|day|night|evening|one|thing|place|song|film|movie|book|guy|girl|man|woman|person|trip|we had)\b))"
    r"(?P<fact>\S.*)",
    re.I | re.S,
)
# "remember my birthday is on 3 May": whatever is said of somebody or something by a verb.
_KEEP_PLAIN = re.compile(
    rf"{_ASKED}(?:remember|don['’]?t forget|do not forget)\s+(?P<fact>(?:i|i['’]m|i['’]ve|my|our|we|the|his|her|their|he|she|they)\b[^?\n]*?"
    r"\b(?:is|are|am|was|were|has|have|had|will|can|cannot|hates?|loves?|likes?|prefers?|lives?|works?|means?|\w+n['’]t|['’]m|['’]s)\b.*)",
    re.I | re.S,
)
# "My sister's name is Ada. Please remember that."
_KEEP_ABOVE = re.compile(
    rf"^(?P<fact>.*\S[.!\n])\s*(?:please,?\s+)?{_KEEP} (?:that|this|it)(?: for me)?(?:,? please)?[.!\s]*$",
    re.I | re.S,
)
_SENTENCE_END = re.compile(
    r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bNo)(?<!\bProf)[.!](?=\s|$)|\n\s*\n"
)
LONGEST_ASKED = 4000


def asked_to_keep(text: str) -> str:
    """The person's own words that a message asks to have remembered, "" where it asks for nothing of the kind.

    One sentence of it, or, after a colon, everything down to an empty line.
    """
    if len(text) > LONGEST_ASKED:
        return ""
    found = _KEEP_THAT.search(text) or _KEEP_PLAIN.search(text)
    if found:
        fact = found["fact"]
        listed = text[found.start() : found.start("fact")].rstrip().endswith(":")
        end = re.search(r"\n\s*\n", fact) if listed else _SENTENCE_END.search(fact)
        fact = fact[: end.end()] if end else fact
        fact = re.sub(r"[,;]?\s+please(?=[.!?]?\s*$)", "", fact, flags=re.I).strip()
        # "Remember that I said so?" asks; "Can you remember that …?" tells.
        asks = fact.endswith("?") and not re.match(
            r"\W*(?:\w+\W+){0,2}?(?:can|could|will|would)\b", found[0], re.I
        )
        fact = fact.rstrip("? ") if fact.endswith("?") else fact
        return "" if asks else fact[:1].upper() + fact[1:]
    above = _KEEP_ABOVE.match(text)
    return above["fact"].strip() if above and "?" not in above["fact"] else ""


def recognise(text: str, *, now: datetime, tz: ZoneInfo) -> Intent:
    """The look-up a message asks for; Kind.NONE for ordinary talk. Messages over 600 characters are talk."""
    kept = asked_to_keep(text)
    if kept:
        return Intent(Kind.REMEMBER, topic=kept)
    if len(text) > 600:
        return Intent(Kind.NONE)
    named = find_window(text, now=now, tz=tz)
    # In a look-up a bare "Friday" is the last one.
    window = named or find_window(text, now=now, tz=tz, loose=True)
    if _THIS.search(text):
        return Intent(Kind.THIS_CONVERSATION)
    changed = _CHANGE.search(text)
    if changed:
        return Intent(Kind.CHANGE, window, _without(changed["topic"] or "", window).strip(" ,.'\""))
    if _THEMES.search(text):
        return Intent(Kind.THEMES, window)
    if (
        window is not None
        and window.end - window.start > _LONG
        and _WINDOWED.search(text)
        and _WORRIED.search(text)
    ):
        return Intent(Kind.THEMES, window, worries=True)
    if _RECENT.search(text):
        return Intent(Kind.RECENT, window)
    about = _ABOUT.search(text)
    if about:
        topic = next(group for group in about.groups() if group)
        if named is None and window is not None and not _stands_at_an_edge(window, text):
            window = None  # "what did I say about the weekend in Lisbon"
        topic = _SAYING.sub("", _without(topic, window)).strip(" ,.'\"")
        if topic.lower() in {"", "lately", "recently", "about", "to you", "you"}:
            return Intent(Kind.RECENT, window)
        return Intent(Kind.ABOUT, window, topic, asks_for_the_first(text))
    if window is not None and _WINDOWED.search(text):
        return Intent(Kind.RECENT, window)
    # "Yesterday I went swimming" is talk; what fits it may be of any day.
    return Intent(Kind.NONE)


def looks_back(text: str) -> bool:
    """Whether a message only asks what was talked about: it is no talk about anything itself."""
    return len(text) <= 200 and any(asks.search(text) for asks in (_THIS, _THEMES, _CHANGE, _RECENT))


def _stands_at_an_edge(window: Window, text: str) -> bool:
    start, end = window.span
    return not text[:start].strip() or not text[end:].strip(" ?.!,")


def _without(topic: str, window: Window | None) -> str:
    """The topic without its time words, and without the preposition that led to them."""
    if window is None:
        return topic
    return re.sub(
        r"\b(?:in|on|from|during|over|since|about)\s*$", "", topic.replace(window.phrase, "").strip()
    )
