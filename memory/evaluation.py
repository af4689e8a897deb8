"""How well recall finds the messages that answer questions, beside plain baselines. A service; leaves nothing behind.

The format: {"conversations": [{"id", "messages": [{"id", "session", "at", "speaker", "text"}],
"questions": [{"id", "text", "category", "evidence": [message id]}]}]}. Each conversation is searched by its own
questions only, as an owner of its own, inside a transaction that is rolled back.
"""

import math
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils.dateparse import parse_datetime

from memory import embedding, indexing
from memory.models import MemoryNode
from memory.retrieval import recall, text
from memory.retrieval.filters import Filters
from memory.retrieval.fusion import CHANNELS, Weights
from memory.retrieval.question import read
from memory.retrieval.recalling import rank

APART = {"adversarial", "abstention"}
PEOPLE = {"user", "human", "person", "me"}
MACHINES = {"assistant", "ai", "model", "bot", "neuron"}
DEPTH = 20
Ranking = list[str]


@dataclass
class Loaded:
    """One conversation in the tables: which message each (node, role) is."""

    owner: AbstractBaseUser
    message: dict[tuple[uuid.UUID, str], str]
    now: datetime


@dataclass
class Report:
    """Each question's figures, by system."""

    rows: dict[str, list[tuple[str, dict[str, float]]]] = field(default_factory=lambda: defaultdict(list))
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def as_json(self) -> dict[str, Any]:
        systems: dict[str, Any] = {}
        for name, rows in self.rows.items():
            by_category: dict[str, list[dict[str, float]]] = defaultdict(list)
            for category, figures in rows:
                by_category[category].append(figures)
            overall = [figures for category, figures in rows if category not in APART]
            systems[name] = {
                "overall": _mean(overall),
                "categories": {category: _mean(some) for category, some in sorted(by_category.items())},
                "latency_ms": _percentiles(self.milliseconds[name]),
            }
        return {"systems": systems, "latency_ms": _percentiles(self.milliseconds["recall"])}


def evaluate(*, data: dict[str, Any], leave_out: bool = False) -> Report:
    """Run every question through recall as production does, through each baseline, and without each channel."""
    report = Report()
    for conversation in data["conversations"]:
        with transaction.atomic():
            _evaluate_conversation(conversation, report, leave_out=leave_out)
            transaction.set_rollback(True)
    return report


def _evaluate_conversation(conversation: dict[str, Any], report: Report, *, leave_out: bool) -> None:
    loaded = _load(conversation["messages"])
    systems: dict[str, Callable[[str], Ranking]] = {"recall": lambda query: _recall(loaded, query)}
    systems.update(Baselines(conversation["messages"]).systems())
    if leave_out:
        for channel in CHANNELS:
            systems[f"without {channel}"] = _without(loaded, channel)
    known = {message["id"] for message in conversation["messages"]}
    for question in conversation["questions"]:
        evidence = [one for one in dict.fromkeys(question["evidence"]) if one in known]
        if not evidence:
            continue
        for name, search in systems.items():
            began = time.perf_counter()
            found = search(question["text"])
            report.milliseconds[name].append((time.perf_counter() - began) * 1000)
            report.rows[name].append((question["category"], figures(found, evidence)))


def _load(messages: Sequence[dict[str, Any]]) -> Loaded:
    owner = get_user_model().objects.create(username=f"evaluation-{uuid.uuid4().hex}")
    sessions: dict[str, uuid.UUID] = defaultdict(uuid.uuid4)
    turns: dict[str, int] = defaultdict(int)
    nodes: list[MemoryNode] = []
    names: dict[tuple[uuid.UUID, str], str] = {}
    open_turn: dict[str, MemoryNode] = {}
    for message in messages:
        session, speaker = str(message["session"]), str(message["speaker"])
        said, role = message["text"], _role(speaker)
        node = open_turn.pop(session, None)
        if role == "assistant" and node is not None:
            node.payload["a"] = said
            names[node.pk, role] = message["id"]
            continue
        at = parse_datetime(message["at"])
        if at is None:
            raise ValueError(f"message {message['id']} has no time")
        payload = {"q": "" if role == "assistant" else said, "a": said if role == "assistant" else ""}
        if role == "speaker":
            payload["speaker"] = speaker
        node = MemoryNode(
            owner_id=owner.pk,
            node_type=MemoryNode.NodeType.CONVERSATION,
            content=said,
            payload=payload,
            session_id=sessions[session],
            turn_index=turns[session],
            occurred_at=at,
        )
        turns[session] += 1
        nodes.append(node)
        names[node.pk, role] = message["id"]
        if role == "person":
            open_turn[session] = node
    MemoryNode.objects.bulk_create(nodes)
    indexing.index_nodes(node_ids=[node.pk for node in nodes])
    return Loaded(owner, names, max(node.occurred_at for node in nodes))


def _role(speaker: str) -> str:
    name = speaker.strip().lower()
    return "person" if name in PEOPLE else "assistant" if name in MACHINES else "speaker"


def _recall(loaded: Loaded, query: str) -> Ranking:
    hits = recall(loaded.owner, query, limit=DEPTH, now=loaded.now)
    return [loaded.message[hit.node.pk, hit.role] for hit in hits][:DEPTH]


def _without(loaded: Loaded, channel: str) -> Callable[[str], Ranking]:
    weights = Weights().without(channel)

    def search(query: str) -> Ranking:
        asked = read(query, now=loaded.now, tz=ZoneInfo("UTC"))
        ranked = rank(loaded.owner.pk, asked, Filters(), weights=weights, most=DEPTH)
        return [loaded.message[one.row.node_id, one.row.role] for one in ranked[:DEPTH]]

    return search


class Baselines:
    """What a person would reach for first, over the same messages in memory."""

    def __init__(self, messages: Sequence[dict[str, Any]]) -> None:
        self.ids = [message["id"] for message in messages]
        spoken = [f"{message['speaker']}: {text.clean(message['text'])}" for message in messages]
        self.lower = [one.lower() for one in spoken]
        self.words = [
            [stem for word, _, _ in text.tokens(one) for stem in text.stems(word)] for one in spoken
        ]
        self.frequency: dict[str, int] = defaultdict(int)
        for words in self.words:
            for word in set(words):
                self.frequency[word] += 1
        self.mean_length = sum(map(len, self.words)) / max(len(self.words), 1)
        self.vectors = embedding.embed(spoken)

    def systems(self) -> dict[str, Callable[[str], Ranking]]:
        return {
            "substring": self._ranked(self.substring),
            "bm25": self._ranked(self.bm25),
            "dense": self._ranked(self.dense),
            "rrf": self._ranked(self.fused),
        }

    def _ranked(self, scores: Callable[[str], np.ndarray[Any, Any]]) -> Callable[[str], Ranking]:
        def search(query: str) -> Ranking:
            values = scores(query)
            order = np.argsort(-values, kind="stable")[:DEPTH]
            return [self.ids[row] for row in order if values[row] > 0]

        return search

    def substring(self, query: str) -> np.ndarray[Any, Any]:
        wanted = query.lower().strip(" ?.!")
        return np.array([float(wanted in one) for one in self.lower])

    def bm25(self, query: str, k1: float = 1.2, b: float = 0.75) -> np.ndarray[Any, Any]:
        scores = np.zeros(len(self.ids))
        for term in text.terms(query, "english"):
            df = self.frequency.get(term, 0)
            idf = math.log(1 + (len(self.ids) - df + 0.5) / (df + 0.5))
            for row, words in enumerate(self.words):
                count = words.count(term)
                if count:
                    scores[row] += (
                        idf * count * (k1 + 1) / (count + k1 * (1 - b + b * len(words) / self.mean_length))
                    )
        return scores

    def dense(self, query: str) -> np.ndarray[Any, Any]:
        return np.asarray(self.vectors @ embedding.embed([query])[0])

    def fused(self, query: str, k: int = 60) -> np.ndarray[Any, Any]:
        scores = np.zeros(len(self.ids))
        for values in (self.bm25(query), self.dense(query)):
            for place, row in enumerate(np.argsort(-values, kind="stable")[:DEPTH]):
                if values[row] > 0:
                    scores[row] += 1 / (k + place + 1)
        return scores


def figures(found: Ranking, evidence: Sequence[str]) -> dict[str, float]:
    """recall@k is evidence found in the first k, divided by all evidence; the others as the field knows them."""
    relevant = [one in set(evidence) for one in found]
    hits = {k: sum(relevant[:k]) for k in (5, 10, 20)}
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(evidence), 10)))
    gain = sum(1 / math.log2(place + 2) for place, good in enumerate(relevant[:10]) if good)
    return {
        "recall@5": hits[5] / len(evidence),
        "recall@10": hits[10] / len(evidence),
        "recall@20": hits[20] / len(evidence),
        "any@10": float(hits[10] > 0),
        "all@10": float(hits[10] == len(evidence)),
        "P@5": hits[5] / 5,
        "NDCG@10": gain / ideal,
        "MRR": next((1 / (place + 1) for place, good in enumerate(relevant) if good), 0.0),
    }


def _mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    if not rows:
        return {}
    return {
        **{name: round(sum(row[name] for row in rows) / len(rows), 4) for name in rows[0]},
        "questions": len(rows),
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    return {f"p{p}": round(float(np.percentile(values, p)), 2) for p in (50, 95)}
