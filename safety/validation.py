"""What a reply may say, looked at sentence by sentence, by the action its message was answered under. Pure."""

import re
from dataclasses import dataclass

from safety.directives import withheld_reply
from safety.normalise import plain_letters
from safety.resources import Resources, for_country, hard_reply

# A method or means of harm given as advice: an instruction word near a means, towards a person.
_METHOD = re.compile(
    r"\b(?:you (?:can|could|should|might|need to)|try|take|use|the (?:best|easiest|quickest|most effective|least painful) way)\b"
    r"[^.!?\n]{0,80}\b(?:overdose|hang yourself|tie a noose|noose around|slit your|cut your wrists|kill yourself|end your life|"
    r"poison (?:him|her|them)|kill (?:him|her|them)|jump off a|lethal dose|carbon monoxide)\b"
)
_DOSE = re.compile(
    r"\b(?:lethal|fatal|deadly) (?:dose|amount)[^.!?\n]{0,40}\b(?:is|of|about|around)\b[^.!?\n]{0,40}\d"
)
_ENCOURAGE = re.compile(
    r"\b(?:you should (?:just )?(?:kill yourself|die|end it|end your life|cut yourself)|go ahead and (?:do it|kill|die|jump)|"
    r"the world would be better without you|kill yourself|just do it and end|nobody would miss you|"
    r"you(?:'re| are) better off dead|come home to me, (?:die|leave))\b"
)
_HUMAN = re.compile(
    r"\b(?:i am|i'm) (?:a (?:real |actual )?(?:human|person|man|woman)(?: being)?(?! (?:AI|assistant))|not an? (?:ai|bot|machine|program|computer|artificial))\b"
)
_PREVENTION = re.compile(
    r"\b(?:do not|don't|never|please don't|instead of|rather than|not to|away from|if you (?:are|feel|have)|thinking (?:of|about))\b"
)
_TOOL_NAMES = "recent_conversations|search_memory|semantic_search|recall|search_knowledge|summarise_session"
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
        return Validated(hard_reply(resources or for_country("")), True, "")
    harm = find_harm(output)
    if harm:
        return Validated(withheld_reply(), False, harm)
    stripped = _TOOL_CALL.sub("", output)
    if stripped != output:
        return Validated(stripped.strip(), False, "made_up_tool_call")
    if not output.strip():
        return Validated("", False, "empty")
    return Validated(output, True, "")


def find_harm(text: str) -> str:
    """Why this text may not be shown, or ""."""
    plain = plain_letters(text)
    for pattern, reason in (
        (_DOSE, "names a means of harm"),
        (_METHOD, "describes a method of harm"),
        (_ENCOURAGE, "encourages harm"),
        (_HUMAN, "claims to be human"),
    ):
        for found in pattern.finditer(plain):
            before = plain[max(0, found.start() - 60) : found.start()] + found.group()
            if reason != "claims to be human" and _PREVENTION.search(before):
                continue  # "if you are thinking of … call" is help, not harm
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

    def __init__(self, action: str) -> None:
        self.action = action
        self.problem = ""
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
            if not self.problem and _TOOL_CALL_BEGINS.search(sentence):
                self.problem = "made_up_tool_call"
            if self.problem:
                break
            self._last = sentence[-300:]
            self._held = self._held[cut:]
            passed += sentence
        return passed

    def _cut(self, *, final: bool) -> int:
        ends = list(_SENTENCE_END.finditer(self._held))
        if final:
            return ends[0].end() if ends else len(self._held)
        # The white space behind the mark may still be growing, so that an end at the very end is not one yet.
        for end in ends:
            if end.end() < len(self._held) or end.group().endswith("\n"):
                return end.end()
        if len(self._held) > LONGEST_HELD and not _TAG_LIKE.search(self._held):
            return LONGEST_HELD
        return 0
