"""What a hit shows: its text, the part of it that answers best, and where the query's words stand in that."""

from memory.models import MemoryNode
from memory.retrieval import text
from memory.retrieval.question import Question
from memory.retrieval.utterances import utterances_of

Marks = tuple[tuple[int, int], ...]


def said(node: MemoryNode, role: str) -> str:
    """The utterance's whole text."""
    for spoken in utterances_of(
        node_type=node.node_type, content=node.content, payload=node.payload, turn_index=node.turn_index
    ):
        if spoken.role == role:
            return spoken.text
    return ""


def cut(whole: str, asked: Question) -> tuple[str, Marks]:
    """The chunk of a text that holds most of the query's words, and their spans in it."""
    credit = {way: worth for term in asked.terms for way, worth in term.ways}
    best: tuple[float, str, Marks] = (-1.0, "", ())
    for chunk in text.pack(text.clean(whole), text.CHUNK):
        found = [
            (worth, start, end)
            for word, start, end in text.tokens(chunk)
            if word not in text.STOP_WORDS and (worth := credit.get(text.stems(word)[0], 0.0)) >= 0.3
        ]
        total = sum(worth for worth, _, _ in found)
        if total > best[0]:
            best = (total, chunk, tuple((start, end) for _, start, end in found))
    return best[1], best[2]
