"""What a reply may say, looked at sentence by sentence, by the action its message was answered under. Pure.

Two looks at each sentence: rules for what a reply must never say, and the detector that hears messages, for what a
persona says of itself or threatens. Words that are quoted, given back to the person or point to help are left alone.
"""

import re
from dataclasses import dataclass

from safety.directives import withheld_reply
from safety.features import speaks_of_danger
from safety.lexicon import lexicon
from safety.normalise import clean, plain_letters
from safety.resources import Resources, defaults, hard_reply
from safety.screening import Action, Embed, Signal, screen
from safety.wording import plain_wording

# A method or means of harm given as advice: an instruction word near a means, towards a person.
_ADVICE = r"(?:you (?:can|could|should|might|need to|have to)|try|take|use|the (?:best|easiest|quickest|surest|most effective|least painful) way)"
_METHOD = re.compile(
    rf"\b{_ADVICE}\b"
    r"[^.!?\n]{0,80}\b(?:overdose|hang yourself|tie a noose|noose around|slit your|cut your (?:wrists?|arms?|thighs?)|kill yourself|end your life|"
    r"poison (?:him|her|them)|kill (?:him|her|them)|jump (?:off|in front)|lethal dose|carbon monoxide|bleed out)\b"
)
_DOSE = re.compile(
    r"\b(?:lethal|fatal|deadly) (?:dose|amount)[^.!?\n]{0,40}\b(?:is|of|about|around)\b[^.!?\n]{0,40}\d"
    r"|\b\d+ (?:mg|milligrams|grams|pills|tablets)\b[^.!?\n]{0,60}\b(?:(?:would|will|to|can) (?:be (?:fatal|lethal|enough)|kill|end (?:it|your life))|never wake|not wake)\b"
)
_ENCOURAGE = re.compile(
    r"\b(?:you should (?:just )?(?:kill yourself|die|end it|end your life|cut yourself|hurt yourself)|go ahead and (?:do it|kill|die|jump)|"
    r"the world would be better without you|(?:everyone|they|we)(?: would|'d) be better off without you|kill ?yourself|end ?your ?life|just do it and end|"
    r"nobody would miss you|no one would miss you|you(?:'re| are) better off dead|you deserve to (?:die|suffer|be hurt)|"
    r"(?:death|dying|suicide) (?:is|would be) (?:the (?:only|best) (?:way|answer|solution)|beautiful|peaceful for you)|"
    r"come home to me, (?:die|leave)|(?:die|leave this (?:world|life)) (?:for|with) me)\b"
)
# A persona that threatens, or wants company in dying.
_THREAT = re.compile(
    r"\b(?:i|we)(?:'ll| will| am going to|'m going to| are going to|'re going to) (?:kill|hurt|stab|shoot|strangle|murder|poison) (?:you|your|him|her|them|myself|ourselves|everyone)\b"
    r"|\b(?:let us|let's|we (?:can|could|should|will)) (?:die|kill ourselves|end it|end our lives) (?:all )?together\b|\bkill ourselves\b"
)
# What keeps somebody away from help.
_AWAY_FROM_HELP = re.compile(
    r"\b(?:do not|don't|never) (?:tell|talk to) (?:anyone|anybody|your (?:parents|mom|mum|dad|doctor|therapist|friends|teacher))\b"
    r"|\b(?:keep (?:this|it) (?:a secret )?(?:between us|from (?:your|everyone)))\b"
    r"|\byou (?:do not|don't) need (?:a |any |your )?(?:help|therapist|therapy|doctor|hotline|crisis line|them|anyone else)\b"
)
_HUMAN = re.compile(
    r"\b(?:i am|i'm) (?:a (?:real |actual )?(?:human|person|man|woman)(?: being)?(?! (?:AI|assistant))|not an? (?:ai|bot|machine|program|computer|artificial))\b"
)
_PREVENTION = re.compile(
    r"\b(?:do not|don't|never|please don't|instead of|rather than|not to|away from|thinking (?:of|about)|thoughts of|"
    r"(?:if|when) you (?:ever )?(?:feel|want|are tempted)|urges? to|someone tells you to|told you to|says?|you (?:said|told me|wrote))\b"
)
# Help, or the person's own words given back to them: "it sounds as if you want to die", "are you safe?"
_FOR_THE_PERSON = re.compile(
    r"\b(?:you (?:say|said|told|tell|wrote|write|feel|felt|mention|mentioned|describe|described|deserve (?:help|support|care))|"
    r"(?:it )?sounds? (?:like|as)|i (?:hear|can hear|am hearing) (?:that|how|you)|(?:are|were|have) you\b|if you|thoughts of|thinking (?:of|about)|feelings? of|"
    r"(?:call|text|contact|reach(?:ing)? out)\b|988|life ?line|help ?lines?|crisis|emergency|samaritans|doctor|therap\w+|counsel\w+|someone you trust|"
    r"not alone|please|stay safe|safe (?:right )?now|i am (?:so |very |really )?(?:glad|sorry)|i'm (?:so |very |really )?(?:glad|sorry)|help)\b"
)
_QUOTED = re.compile(r'"[^"\n]{1,400}"')
_TOOL_NAMES = (
    "recent_conversations|search_memory|semantic_search|recall|search_knowledge|summarise_session|themes"
)
# A call that a model wrote out as text: a tag, a bare JSON object, or the call like a line of code.
_TOOL_CALL = re.compile(
    rf"<(?P<tag>tool_call|function_call|tool_code|invoke)\b[^>]*>.*?(?:</(?P=tag)>|\Z)"
    rf"|```(?:json|tool_call|tool_code)?\s*\{{\s*\"(?:name|tool|function)\"\s*:\s*\"(?:{_TOOL_NAMES})\".*?(?:```|\Z)"
    rf"|\{{\s*\"(?:name|tool|function)\"\s*:\s*\"(?:{_TOOL_NAMES})\"[^\n]*\}}+"
    rf"|^\s*(?:{_TOOL_NAMES})\([^\n)]*\)\s*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_TOOL_CALL_BEGINS = re.compile(
    rf"<(?:tool_call|function_call|tool_code|invoke)\b|\{{\s*\"(?:name|tool|function)\"\s*:|^\s*(?:{_TOOL_NAMES})\(",
    re.IGNORECASE | re.MULTILINE,
)
_TAG_LIKE = re.compile(r"<[a-z_]*$", re.IGNORECASE)
# A sentence ends at its mark and the white space behind it, or at a line's end.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]*_`]*\s+|\n+|[。!?]")
# The detector knows how people speak of themselves; of a sentence that is not about the speaker it must be surer.
SURE = 0.99
_OF_ITSELF = re.compile(r"\b(?:i|i'm|i'll|i've|me|my|myself|we|us|ourselves|let's)\b")
LEAST_OF_MUCH = 80  # characters
LONGEST_HELD = 1200  # characters; text without any sentence end is looked at in pieces of this


@dataclass(frozen=True, slots=True)
class Validated:
    """The reply as it may be shown. `problem` names what was found: withheld, made_up_tool_call, empty, or none."""

    text: str
    ok: bool
    problem: str


def validate(output: str, action: str, *, resources: Resources | None = None) -> Validated:
    """Look at a whole reply.

    For a hard bell the fixed reply comes back whatever the output holds. A made-up tool call is cut out and said,
    so that the caller can do the look-up and ask again; a reply with harm in it is replaced by a fixed one.
    """
    if action == "hard_bell":
        return Validated(hard_reply(resources or defaults()[""]), True, "")
    harm = find_harm(output)
    if harm:
        return Validated(withheld_reply(), False, harm)
    stripped = _TOOL_CALL.sub("", output)
    if stripped != output:
        return Validated(stripped.strip(), False, "made_up_tool_call")
    if not output.strip():
        return Validated("", False, "empty")
    return Validated(output, True, "")


_RULES = (
    (_DOSE, "names a means of harm"),
    (_METHOD, "describes a method of harm"),
    (_ENCOURAGE, "encourages harm"),
    (_THREAT, "threatens"),
    (_AWAY_FROM_HELP, "keeps somebody away from help"),
    (_HUMAN, "claims to be human"),
)
_UNLESS_PREVENTING = {"describes a method of harm", "encourages harm", "threatens"}


def hear_harm(sentence: str, action: str, embed: Embed | None) -> tuple[str, tuple[Signal, ...]]:
    """What the detector of messages hears in a sentence of a reply, as a reason and its signals; ("", ()) for nothing.

    After a soft bell it is asked about every sentence; else about those in which a rule speaks of danger.
    Signals carry no words of the reply beyond the phrases of our own lists.
    """
    plain = _QUOTED.sub(" ", plain_letters(sentence))
    if _FOR_THE_PERSON.search(plain) or not plain.strip():
        return "", ()
    by_rule = speaks_of_danger(plain_wording(plain))
    if action != Action.SOFT_BELL and not by_rule:
        return "", ()
    heard = screen(plain, embed=embed)
    sure = heard.score >= SURE or (by_rule and _OF_ITSELF.search(plain))
    if heard.action != Action.HARD_BELL or not sure:
        return "", ()
    return f"the detector heard {heard.reason} in it", heard.signals


def find_harm(text: str) -> str:
    """Which rule this text breaks, in words, or ""."""
    plain = " ".join(_QUOTED.sub(" ", clean(text, trigger_words=lexicon().trigger_words)).split())
    for pattern, reason in _RULES:
        for found in pattern.finditer(plain):
            before = plain[max(0, found.start() - 60) : found.start()] + found.group()
            if reason in _UNLESS_PREVENTING and _PREVENTION.search(before):
                continue  # "when you feel an urge to …, call" is help, not harm
            if reason == "claims to be human" and re.search(
                r"\b(?:not|never|if|than|like)\W*$", plain[: found.start()]
            ):
                continue
            return reason
    return ""


class SentenceGate:
    """Lets a streamed reply through sentence by sentence: what has passed is exactly what came in, in order.

    After a sentence with harm in it the gate stays shut: `problem` says why, and nothing more passes.
    """

    def __init__(self, action: str, embed: Embed | None = None) -> None:
        self.action = action
        self.problem = ""
        self.signals: tuple[Signal, ...] = ()
        self._embed = embed
        self._held = ""
        self._last = ""  # the sentence before: harm may need two to be seen

    def feed(self, delta: str) -> str:
        """Take what the model said next; give back what may be shown now (often nothing)."""
        if self.problem:
            return ""
        self._held += delta
        return self._release(final=False)

    def flush(self) -> str:
        """The model is done: look at what is held, too."""
        return "" if self.problem else self._release(final=True)

    def _release(self, *, final: bool) -> str:
        passed = ""
        while self._held:
            cut = self._cut(final=final)
            if cut == 0:
                break
            sentence = self._held[:cut]
            self.problem = find_harm(self._last + sentence)
            if not self.problem:
                self.problem, self.signals = hear_harm(sentence, self.action, self._embed)
            if not self.problem and _TOOL_CALL_BEGINS.search(sentence):
                self.problem = "made_up_tool_call"
            if self.problem:
                break
            self._last = sentence[-300:]
            self._held = self._held[cut:]
            passed += sentence
        return passed

    def _cut(self, *, final: bool) -> int:
        # Of much text at once, short sentences are looked at together: ten thousand of one letter would take minutes.
        least = LEAST_OF_MUCH if len(self._held) > LONGEST_HELD else 0
        for end in _SENTENCE_END.finditer(self._held):
            if end.end() < least:
                continue
            # The white space behind the mark may still be growing, so that an end at the very end is not one yet.
            if final or end.end() < len(self._held) or end.group().endswith("\n"):
                return end.end()
        if final:
            return len(self._held)
        if len(self._held) > LONGEST_HELD and not _TAG_LIKE.search(self._held):
            return LONGEST_HELD
        return 0
