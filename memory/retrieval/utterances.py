"""A node as recall reads it: its utterances, and of each the terms and the texts to embed. Pure."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from memory.retrieval import question, text

PERSON, ASSISTANT, SPEAKER, NOTE = "person", "assistant", "speaker", "note"
# How an utterance without a named speaker begins when it is embedded.
_LABELS = {PERSON: "user: ", ASSISTANT: "assistant: ", NOTE: ""}


@dataclass(frozen=True)
class Spoken:
    """One message by one speaker."""

    role: str
    speaker: str
    position: int
    text: str


@dataclass(frozen=True)
class Prepared:
    """What is stored of an utterance: terms of each chunk, the texts to embed (the whole first), and its form."""

    chunks: list[list[str]]
    to_embed: list[str]
    length: int
    is_question: bool
    has_time: bool


def utterances_of(*, node_type: str, content: str, payload: Any, turn_index: int | None) -> list[Spoken]:
    """The node's utterances in the order they were said; what is empty is none."""
    place = turn_index or 0
    if node_type != "Conversation":
        return [Spoken(NOTE, "", 0, content)] if content.strip() else []
    asked, answered = exchange(content, payload)
    speaker = payload.get("speaker") if isinstance(payload, dict) else None
    if isinstance(speaker, str) and speaker.strip():
        # A chat between people: each message is a node of its own, by whoever said it.
        return [Spoken(SPEAKER, speaker.strip()[:80], place, asked)] if asked.strip() else []
    both = (Spoken(PERSON, "", 2 * place, asked), Spoken(ASSISTANT, "", 2 * place + 1, answered))
    return [spoken for spoken in both if spoken.text.strip()]


def exchange(content: str, payload: Any) -> tuple[str, str]:
    """What was said and answered; old nodes hold plain `Q: … A: …` text."""
    if isinstance(payload, dict) and isinstance(payload.get("q"), str):
        answer = payload.get("a")
        return payload["q"], answer if isinstance(answer, str) else ""
    if not content.startswith("Q:"):
        return content, ""
    asked, _, answered = content[2:].partition("\nA:" if "\nA:" in content else " A: ")
    return asked.strip(), answered.strip()


def prepare(spoken: Spoken) -> Prepared:
    """Cut, stem and label an utterance."""
    cleaned = text.clean(spoken.text)
    language = text.language_of(cleaned)
    named = f"{spoken.speaker} " if spoken.speaker else ""
    label = f"{spoken.speaker}: " if spoken.speaker else _LABELS[spoken.role]
    units = text.pack(cleaned, text.UNIT)
    # Many units would favour long replies: an assistant's message is embedded as a whole alone.
    parts = units if len(units) > 1 and spoken.role != ASSISTANT else []
    return Prepared(
        chunks=[text.terms(named + chunk, language) for chunk in text.pack(cleaned, text.CHUNK)],
        to_embed=[label + cleaned, *(label + unit for unit in parts)],
        length=len(cleaned),
        is_question=_is_question(cleaned),
        has_time=question.has_time(cleaned),
    )


def _is_question(cleaned: str) -> bool:
    # What stands in brackets at the end, such as a photo's caption, is not part of the sentence.
    return cleaned.split("[")[0].rstrip().endswith(("?", "？")) if cleaned else False


def key(owner_id: int, term: str) -> int:
    """The term's key in one owner's index, a signed 64-bit number other than 0. No two owners share one."""
    digest = hashlib.blake2b(f"{owner_id}:{term}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


def packed_keys(owner_id: int, chunks: list[list[str]]) -> bytes:
    """The keys of each chunk's terms, each chunk ended by a 0, 8 bytes each."""
    keys = [number for terms in chunks for number in (*(key(owner_id, term) for term in terms), 0)]
    return np.array(keys, dtype=">i8").tobytes()
