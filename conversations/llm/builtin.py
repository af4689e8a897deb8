"""The built-in responder: no generation. It answers look-ups by extraction from what the prompt quotes of memory."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo

from conversations.imprint import BEGIN_MEMORY, END_MEMORY, GUIDANCE, PROMPTS
from conversations.llm import builtin_themes, words
from conversations.llm.builtin_themes import plain
from safety.directives import wellbeing_directive

NO_MODEL = (
    "I keep what you say and can look it up, but I cannot talk freely: no language model is set. "
    "To set one, start Neuron like this: `NEURON_MODEL=ollama:llama3.2 make run`.\n\n"
    "Until then, ask me for what I remember: *summarise what we talked about lately*, "
    "*what did I say about …*, *summarise this conversation*, *themes across everything*."
)
MOST_SESSIONS_TOLD = 8
MOST_QUOTES = 6
MOST_TERMS = 3
MOST_THEMES = 6


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
    themes = head.get("themes") or []
    window = str(head.get("window", ""))
    if themes and head.get("intent") == "change":
        return builtin_themes.tell_change(themes[0])
    if themes and head.get("intent") == "themes":
        return builtin_themes.tell(themes, window=window, worries="worries" in head)
    if not exchanges:
        return ""
    match head.get("intent"):
        case "recent" | "themes":
            parts = (builtin_themes.tell(themes), _digest(exchanges, window))
            return "\n\n".join(part for part in parts if part)
        case "this_conversation":
            return _in_order(exchanges)
        case "about":
            return _found(exchanges, str(head.get("topic", "")), oldest_first="order" in head)
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
    # What is pinned is for a model to know; it answers no look-up of its own.
    records = [record for record in records if "kept" not in record or "link" in record]
    return head, [
        Exchange(
            day=datetime.strptime(record["date"], "%Y-%m-%d %H:%M").strftime("%-d %B %Y"),  # noqa: DTZ007 (a day only)
            link=record.get("link", ""),
            title=record.get("title", ""),
            q=record.get("person") or record.get("kept", ""),
            a=record.get("neuron", ""),
        )
        for record in records
    ]


def _by_session(exchanges: list[Exchange]) -> list[list[Exchange]]:
    """Newest session first, each in the order it was talked."""
    sessions: dict[str, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        sessions[one.link.split("#")[0]].append(one)
    return [list(reversed(told)) for told in sessions.values()]


def _digest(exchanges: list[Exchange], window: str) -> str:
    """What was talked about: what recurs, then each conversation, newest first, with a sentence of the person's."""
    sessions = _by_session(exchanges)
    talk = words.study([[(one.q, one.a) for one in told] for told in sessions])
    parts = [_opening(sessions, window)]
    recurring = _recurring(sessions, talk)
    if recurring:
        parts.append("What comes up again and again:\n\n" + "\n".join(recurring))
    parts.append("The conversations:\n\n" if recurring else "")
    lines = []
    for at, told in enumerate(sessions[:MOST_SESSIONS_TOLD]):
        lines.append(_session_line(told, [talk.spelling[term] for term in _telling(talk, at)]))
    parts[-1] += "\n".join(lines)
    left = len(sessions) - MOST_SESSIONS_TOLD
    if left > 0:
        parts.append(f"And {left} more before {'that' if left > 1 else 'them'}.")
    return "\n\n".join(parts)


def _telling(talk: words.Talk, at: int) -> list[str]:
    """The terms that this session has more than others: weight × log of how few sessions hold it."""
    sessions = len(talk.weights)
    score = {
        term: (1 + math.log(weight))
        * math.log(1 + sessions / talk.spread[term])
        * (1.4 if " " in term else 1)
        for term, weight in talk.weights[at].items()
        if weight >= 1 and (weight >= 1.5 or " " not in term)
    }
    return words.without_parts(sorted(score, key=lambda term: (-score[term], term)), MOST_TERMS)


def _recurring(sessions: list[list[Exchange]], talk: words.Talk) -> list[str]:
    """One line for each theme of several sessions: in how many, and the last time."""
    if len(sessions) < 3:
        return []
    total: Counter[str] = Counter()
    for weights in talk.weights:
        total.update(weights)
    least = 3 if len(sessions) > 5 else 2
    score = {
        term: times * (2.0 if " " in term else 1) + math.log(1 + total[term])
        for term, times in talk.spread.items()
        if times >= (2 if " " in term else least)
    }
    themes = words.without_parts(sorted(score, key=lambda term: (-score[term], term)), MOST_THEMES)
    lines = []
    for term in themes:
        last = next(told for told, weights in zip(sessions, talk.weights, strict=True) if term in weights)
        at, _ = words.quote([f"{one.q}\n{one.a}" for one in last], [term])
        lines.append(
            f"- **{plain(talk.spelling[term])}**, in {talk.spread[term]} conversations, "
            f"last on [{last[at].day}]({last[at].link})"
        )
    return lines


def _session_line(told: list[Exchange], about: list[str]) -> str:
    at, said = words.quote([one.q for one in told], about)
    line = f"- **{told[at].day}**: [{_name(told, about)}]({told[at].link})."
    return f"{line} You said: “{plain(said)}”" if said else line


def _opening(sessions: list[list[Exchange]], window: str) -> str:
    count = len(sessions)
    first, newest = sessions[-1][0].day, sessions[0][-1].day
    between = f"on {newest}" if first == newest else f"between {first} and {newest}"
    conversations = "one conversation" if count == 1 else f"{count} conversations"
    named = f" ({plain(window)})" if window else ""
    return f"This is what I remember, out of {conversations} {between}{named}, the newest first."


def _name(told: list[Exchange], about: Sequence[str] = ()) -> str:
    """The session by its title, unless that only repeats how it began: then by what was in it."""
    title, begun = told[0].title.rstrip("…. "), " ".join(told[0].q.split())
    if title and not begun.startswith(title) and not words.is_greeting(title):
        return plain(told[0].title)
    name = _listed(list(about)) or title or _shortened(begun, 60) or "a conversation"
    return plain(name[0].upper() + name[1:])


def _in_order(exchanges: list[Exchange]) -> str:
    told = [one for one in exchanges if one.q]
    talk = words.study([[(one.q, one.a)] for one in told])
    total: Counter[str] = Counter()
    for weights in talk.weights:
        total.update(weights)
    telling = sorted(total, key=lambda term: (-total[term] * (1.4 if " " in term else 1), term))
    about = [talk.spelling[term] for term in words.without_parts(telling, MOST_TERMS)]
    number = "1 exchange" if len(told) == 1 else f"{len(told)} exchanges"
    parts = [f"This conversation so far, {number} in order:"]
    if about:
        parts.append(f"It was about {_listed([f'**{plain(term)}**' for term in about])}.")
    parts.append(
        "\n".join(
            f"{number}. [{one.day}]({one.link}): “{plain(_shortened(one.q, words.QUOTE_LENGTH))}”"
            for number, one in enumerate(told, 1)
        )
    )
    return "\n\n".join(parts)


def _found(exchanges: list[Exchange], topic: str, *, oldest_first: bool) -> str:
    wanted = words.keys(topic)
    lines = []
    for one in exchanges[:MOST_QUOTES]:
        _, said = words.quote([one.q], wanted)
        quoted = plain(said or _shortened(one.q, words.QUOTE_LENGTH))
        line = f"- **{one.day}**, [{_name([one])}]({one.link}): “{quoted}”"
        _, heard = words.quote([one.a], wanted)
        if set(words.keys(heard)) & set(wanted):
            line += f" I answered: “{plain(heard)}”"
        lines.append(line)
    order = "the earliest" if oldest_first else "the closest"
    return f"What I find about {plain(topic)}, {order} first:\n\n" + "\n".join(lines)


def _shortened(text: str, length: int) -> str:
    line = words.plain(text)
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


def _listed(terms: list[str]) -> str:
    if len(terms) < 2:
        return "".join(terms)
    return ", ".join(terms[:-1]) + " and " + terms[-1]
