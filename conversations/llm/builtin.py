"""The built-in responder: no generation. It answers look-ups by extraction from what the prompt quotes of memory."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo

from conversations.imprint import BEGIN_MEMORY, END_MEMORY, GUIDANCE, PROMPTS
from safety.directives import wellbeing_directive

NO_MODEL = (
    "I keep what you say and can look it up, but I cannot talk freely: no language model is set. "
    "To set one, start Neuron like this: `NEURON_MODEL=ollama:llama3.2 make run`.\n\n"
    "Until then, ask me for what I remember: *summarise what we talked about lately*, "
    "*what did I say about …*, *summarise this conversation*, *themes across everything*."
)
MOST_SESSIONS_TOLD = 8
MOST_QUOTES = 6
QUOTE_LENGTH = 160

_WORD = re.compile(r"[^\W\d_]{3,}(?:['’][^\W\d_]+)?")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_COMMON = frozenset(
    (Path(__file__).resolve().parent.parent / "data" / "common_words.txt").read_text(encoding="utf-8").split()
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One remembered exchange as the prompt quotes it."""

    day: str
    link: str
    title: str
    q: str
    a: str


async def respond(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    """The reply, a paragraph at a time: what pydantic-ai calls for the model named built-in."""
    system = info.instructions or ""
    head, exchanges = read_memory(system)
    guidance = next((line[len(GUIDANCE) :] for line in system.split("\n") if line.startswith(GUIDANCE)), "")
    reply = answer(head, exchanges, soft_bell=wellbeing_directive() in system, guidance=guidance)
    for paragraph in re.split(r"(?<=\n\n)", reply):
        yield paragraph


def answer(
    head: dict[str, Any], exchanges: list[Exchange], *, soft_bell: bool = False, guidance: str = ""
) -> str:
    """The reply to a look-up; to anything else, how to set a model.

    After a soft bell a kind word comes first, always the same one; then what was asked for, if it was a look-up.
    """
    found = _look_up(head, exchanges)
    if soft_bell:
        return "\n\n".join(part for part in (_comfort(), guidance, found) if part)
    return found or guidance or NO_MODEL


@lru_cache(maxsize=1)
def _comfort() -> str:
    return (PROMPTS / "builtin_comfort.txt").read_text(encoding="utf-8").strip()


def _look_up(head: dict[str, Any], exchanges: list[Exchange]) -> str:
    """What was asked of memory, or ""."""
    if head.get("note"):
        return str(head["note"])
    if not exchanges:
        return ""
    match head.get("intent"):
        case "recent" | "themes":
            return _digest(exchanges, head.get("window", ""))
        case "this_conversation":
            return _in_order(exchanges)
        case "about":
            return _found(exchanges, str(head.get("topic", "")))
        case _:
            return ""


def read_memory(system: str) -> tuple[dict[str, Any], list[Exchange]]:
    """What stands between the memory marks of a system prompt; the marks are lines of their own."""
    lines = system.split("\n")
    if BEGIN_MEMORY not in lines or END_MEMORY not in lines:
        return {}, []
    start = len(lines) - 1 - lines[::-1].index(BEGIN_MEMORY)
    end = len(lines) - 1 - lines[::-1].index(END_MEMORY)
    head, *records = [json.loads(line) for line in lines[start + 1 : end]]
    return head, [
        Exchange(
            day=datetime.strptime(record["date"], "%Y-%m-%d %H:%M").strftime("%-d %B %Y"),  # noqa: DTZ007 (a day only)
            link=record.get("link", ""),
            title=record.get("title", ""),
            q=record.get("person", ""),
            a=record.get("neuron", ""),
        )
        for record in records
    ]


def _by_session(exchanges: list[Exchange]) -> dict[str, list[Exchange]]:
    """Newest session first, each in the order it was talked."""
    sessions: dict[str, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        sessions[one.link.split("#")[0]].append(one)
    return {link: list(reversed(told)) for link, told in sessions.items()}


def _terms(text: str) -> list[str]:
    """Content words, and pairs of content words that stand side by side."""
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    single = [word for word in words if word not in _COMMON and len(word) > 3]
    pairs = [
        f"{one} {two}"
        for one, two in pairwise(words)
        if one not in _COMMON and two not in _COMMON and len(one) > 3 and len(two) > 3
    ]
    return single + pairs


def _distinctive(told: list[Exchange], spread: Counter[str], sessions: int, count: int) -> list[str]:
    """The terms that this session has and others have not: frequency × log of how few sessions hold it."""
    here = Counter(term for one in told for term in _terms(f"{one.q}\n{one.a}"))
    score = {
        term: (1 + math.log(times)) * math.log(1 + sessions / spread[term]) * (1.6 if " " in term else 1)
        for term, times in here.items()
        if times > 1 or len(told) < 3
    }
    return _without_parts(sorted(score, key=lambda term: (-score[term], term)), count)


def _without_parts(terms: list[str], count: int) -> list[str]:
    """The first `count` terms, none of which is part of, or nearly the same as, one before it."""
    chosen: list[str] = []
    for term in terms:
        stems = {word.rstrip("s") for word in term.split()}
        if any(stems & {word.rstrip("s") for word in other.split()} for other in chosen):
            continue
        chosen.append(term)
        if len(chosen) == count:
            break
    return chosen


def _digest(exchanges: list[Exchange], window: str) -> str:
    """What was talked about: each conversation, newest first, and what recurs over them."""
    sessions = _by_session(exchanges)
    spread: Counter[str] = Counter()
    for told in sessions.values():
        spread.update({term for one in told for term in _terms(f"{one.q}\n{one.a}")})
    recurring = _without_parts(
        [
            term
            for term, times in sorted(
                spread.items(), key=lambda item: (-item[1] * (1.8 if " " in item[0] else 1), item[0])
            )
            if times > 1
        ],
        6,
    )
    parts = [_opening(sessions, window)]
    if recurring and len(sessions) > 2:
        parts.append("What comes up again and again: " + _listed([f"**{term}**" for term in recurring]) + ".")
    lines = []
    for told in list(sessions.values())[:MOST_SESSIONS_TOLD]:
        about = _distinctive(told, spread, len(sessions), 4)
        quote = _best_quote([one.q for one in told], about)
        line = f"- **{told[-1].day}**, [{_name(told)}]({told[0].link})"
        if about:
            line += f": {_listed(about)}."
        if quote:
            line += f" You said: “{quote}”"
        lines.append(line)
    parts.append("\n".join(lines))
    left = len(sessions) - MOST_SESSIONS_TOLD
    if left > 0:
        parts.append(f"And {left} more before that.")
    return "\n\n".join(parts)


def _opening(sessions: dict[str, list[Exchange]], window: str) -> str:
    count = len(sessions)
    first = list(sessions.values())[-1][0].day
    newest = next(iter(sessions.values()))[-1].day
    between = f"on {newest}" if first == newest else f"between {first} and {newest}"
    conversations = "one conversation" if count == 1 else f"{count} conversations"
    named = f" ({window})" if window else ""
    return f"From memory, without a language model: {conversations} {between}{named}, the newest first."


def _name(told: list[Exchange]) -> str:
    name = told[0].title or _shortened(told[0].q, 60) or "a conversation"
    return re.sub(r"([\[\]])", r"\\\1", name)


def _in_order(exchanges: list[Exchange]) -> str:
    told = [one for one in exchanges if one.q]
    spread: Counter[str] = Counter(term for one in told for term in set(_terms(one.q)))
    about = _distinctive(told, Counter(dict.fromkeys(spread, 1)), 1, 6)
    parts = [
        f"This conversation so far, {len(told)} {'exchange' if len(told) == 1 else 'exchanges'} in order:"
    ]
    if about:
        parts.append(f"It was about {_listed([f'**{term}**' for term in about])}.")
    parts.append(
        "\n".join(
            f"{number}. [{one.day}]({one.link}): “{_shortened(one.q, QUOTE_LENGTH)}”"
            for number, one in enumerate(told, 1)
        )
    )
    return "\n\n".join(parts)


def _found(exchanges: list[Exchange], topic: str) -> str:
    words = set(_terms(topic)) or {word.lower() for word in _WORD.findall(topic)}
    lines = []
    for one in exchanges[:MOST_QUOTES]:
        said = _best_quote([one.q], list(words))
        line = f"- **{one.day}**, [{_name([one])}]({one.link}): “{said or _shortened(one.q, QUOTE_LENGTH)}”"
        heard = _best_quote([one.a], list(words), needed=True)
        if heard:
            line += f" I answered: “{heard}”"
        lines.append(line)
    return f"What I find about {topic}, the closest first:\n\n" + "\n".join(lines)


def _best_quote(texts: list[str], terms: list[str], *, needed: bool = False) -> str:
    """The sentence that holds most of the terms; `needed`: none where no sentence holds any."""
    words = {word for term in terms for word in term.split()}
    best, best_score = "", 0.0
    for text in texts:
        for sentence in _SENTENCE.findall(text):
            said = sentence.strip()
            held = sum(
                1 for word in _WORD.findall(said.lower()) if word in words or word.rstrip("s") in words
            )
            score = held + min(len(said), QUOTE_LENGTH) / 1000 - (0.5 if said.endswith("?") else 0)
            if len(said) > 12 and score > best_score and (held or not needed):
                best, best_score = said, score
    return _shortened(best, QUOTE_LENGTH)


def _shortened(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


def _listed(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]
