"""How fast recall answers, how fast memory is taken in, and what a node weighs: `python benchmarks/recall.py`.

A scratch database is filled up to each of `--steps` nodes and measured there. One owner has half of a step, and
`--large` nodes at the last; one has 10,000; the others have about 1,000 each, and all are mixed in time.
Texts are English words by Zipf's law in sessions of 20 turns; vectors are sums of two embedded sentences, so that
they cluster as real ones do.
"""

import argparse
import json
import os
import random
import sys
import time
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")

from neuron_site import embedded  # noqa: E402

embedded.ensure(servers=True)

import django  # noqa: E402

django.setup()

import numpy as np  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import connection  # noqa: E402

from memory import embedding, indexing  # noqa: E402
from memory.models import MemoryNode  # noqa: E402
from memory.retrieval import question, text  # noqa: E402
from memory.retrieval.recalling import recall  # noqa: E402
from memory.retrieval.utterances import key  # noqa: E402
from memory.services import delete_nodes  # noqa: E402

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
TURNS = 20
BATCH = 20_000
MODEL = embedding.PACKAGED_MODEL
_FUNCTION_WORDS = "i the to and a of my in it was that with for on is at we but so have"
FUNCTION_WORDS = _FUNCTION_WORDS.split()
_TABLES = (
    "memory_memorynode memory_utterance memory_unitvector memory_ownerterm memory_posting memory_signblock"
)
TABLES = _TABLES.split()


class Vocabulary:
    """Content words by Zipf's law, with a function word between them as English has."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        words = [word for word in question._near_lines() if len(word) > 3]
        self.random.shuffle(words)
        self.words = words
        self.stems = {word: text.stems(word)[0] for word in words}
        ranks = np.arange(1, len(words) + 1)
        weights = 1 / (ranks + 20) ** 1.0
        self.draws = np.random.default_rng(seed).choice(len(words), size=2_000_000, p=weights / weights.sum())
        self.at = 0

    def take(self, count: int) -> list[str]:
        if self.at + count > len(self.draws):
            self.at = 0
        self.at += count
        return [self.words[i] for i in self.draws[self.at - count : self.at]]

    def sentence(self, words: list[str]) -> str:
        return " ".join(f"{self.random.choice(FUNCTION_WORDS)} {word}" for word in words).capitalize() + "."


class Filling:
    """Fills the tables by COPY, in the shape that the product writes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.keys: dict[tuple[int, str], int] = {}
        self.made = 0
        self.sessions: dict[int, tuple[uuid.UUID, int]] = {}
        self.spoken: Counter[int] = Counter()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE bench_pool (n int PRIMARY KEY, embedding halfvec(384))")
            vectors = embedding.embed_packaged([vocabulary.sentence(vocabulary.take(8)) for _ in range(1000)])
            with cursor.copy("COPY bench_pool FROM STDIN") as copy:
                for n, vector in enumerate(vectors):
                    copy.write_row((n, "[" + ",".join(f"{x:.5f}" for x in vector) + "]"))

    def key(self, owner_id: int, stem: str) -> int:
        found = self.keys.get((owner_id, stem))
        if found is None:
            found = self.keys[owner_id, stem] = key(owner_id, stem)
        return found

    def add(self, owners: list[int]) -> None:
        """One node for each entry of `owners`, in that order."""
        for start in range(0, len(owners), BATCH):
            self._add(owners[start : start + BATCH])
            self.keys.clear()

    def _add(self, owners: list[int]) -> None:
        nodes, utterances = [], []
        for owner in owners:
            session, turn = self.sessions.get(owner, (uuid.uuid4(), 0))
            if turn == TURNS:
                session, turn = uuid.uuid4(), 0
            self.sessions[owner] = (session, turn + 1)
            at = BEGIN + timedelta(seconds=30 * self.made)
            self.made += 1
            node = uuid.uuid4()
            said = [self.vocabulary.take(8), self.vocabulary.take(20)]
            q, a = (self.vocabulary.sentence(words) for words in said)
            payload = json.dumps({"q": q, "a": a})
            nodes.append((node, owner, "Conversation", "Episodic", "", f"Q: {q}\nA: {a}", payload, "{}", 0.5, 0.5, 1.0,
                          session, turn, at, at, at, 1, 1, 0, 1, False))  # fmt: skip
            for side, (role, words) in enumerate(zip(("person", "assistant"), said, strict=True)):
                keys = dict.fromkeys(self.key(owner, self.vocabulary.stems[word]) for word in words)
                terms = np.array([*keys, 0], dtype=">i8").tobytes()
                self.spoken[owner] += 1
                block = self.spoken[owner] // indexing.UTTERANCES_IN_A_BLOCK
                utterances.append((owner, node, role, "", "Conversation", session, 2 * turn + side, at,
                                   len(q if side == 0 else a), 1, False, False, terms, block, MODEL))  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute("SELECT coalesce(max(id), 0) FROM memory_utterance")
            (last,) = cursor.fetchone()
            with cursor.copy(
                "COPY memory_memorynode (id, owner_id, node_type, tier, label, content, payload, tags, salience,"
                " importance, confidence, session_id, turn_index, occurred_at, created_at, updated_at, version,"
                " indexed_version, hold, connected_version, derived) FROM STDIN"
            ) as copy:
                for row in nodes:
                    copy.write_row(row)
            with cursor.copy(
                "COPY memory_utterance (owner_id, node_id, role, speaker, node_type, session_id, position, occurred_at,"
                " length, chunks, is_question, has_time, terms, block, embedded_with) FROM STDIN"
            ) as copy:
                for row in utterances:
                    copy.write_row(row)
            cursor.execute(
                "INSERT INTO memory_unitvector (owner_id, utterance_id, unit, model, embedding, approximate)"
                " SELECT u.owner_id, u.id, 0, %s, l2_normalize(p.embedding + r.embedding), false"
                " FROM memory_utterance u"
                " JOIN bench_pool p ON p.n = (u.id * 7919) %% 1000"
                " JOIN bench_pool r ON r.n = (u.id * 104729 / 1000) %% 1000 WHERE u.id > %s",
                [embedding.PACKAGED_MODEL, last],
            )


def measure(owner: User, vocabulary: Vocabulary, count: int) -> tuple[float, float]:
    """p50 and p95 in ms of recall without the query's embedding, over questions of 2 to 6 content words."""
    queries = [vocabulary.sentence(vocabulary.take(2 + n % 5)) for n in range(count)]
    known = dict(zip(queries, embedding.embed_packaged(queries), strict=True))
    real = embedding.embed
    embedding.embed = lambda texts, **_: np.stack([known[one] for one in texts])  # type: ignore[assignment]
    took = []
    try:
        for number, query in enumerate(queries):
            began = time.perf_counter()
            recall(owner, query)
            # The first tenth warms the caches.
            if number >= count // 10:
                took.append((time.perf_counter() - began) * 1000)
    finally:
        embedding.embed = real
    return float(np.percentile(took, 50)), float(np.percentile(took, 95))


def report_recall(owner: User, nodes: int, vocabulary: Vocabulary, queries: int) -> None:
    p50, p95 = measure(owner, vocabulary, queries)
    print(f"  owner of {nodes:,} nodes: recall p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True)


def report_embedding(vocabulary: Vocabulary) -> None:
    took = []
    for _ in range(200):
        query = vocabulary.sentence(vocabulary.take(5))
        began = time.perf_counter()
        embedding.embed([query])
        took.append((time.perf_counter() - began) * 1000)
    print(f"embedding a question: p50 {np.percentile(took, 50):.1f} ms, p95 {np.percentile(took, 95):.1f} ms")


def report_forgetting(owner: User) -> None:
    took = []
    for node in MemoryNode.objects.filter(owner=owner)[:5]:
        began = time.perf_counter()
        delete_nodes(owner=owner, node_ids=[node.pk])
        took.append((time.perf_counter() - began) * 1000)
    print(f"forgetting one of them: p50 {np.percentile(took, 50):.0f} ms")


def report_ingest(vocabulary: Vocabulary) -> None:
    """Of an owner of its own, so that measuring again finds the others as they were."""
    owner = User.objects.create(username=uuid.uuid4().hex)
    nodes = []
    for _ in range(256):
        q, a = vocabulary.sentence(vocabulary.take(8)), vocabulary.sentence(vocabulary.take(20))
        payload = {"q": q, "a": a}
        nodes.append(
            MemoryNode(
                owner=owner,
                node_type="Conversation",
                content=q,
                payload=payload,
                session_id=uuid.uuid4(),
                turn_index=0,
            )
        )
    MemoryNode.objects.bulk_create(nodes)
    began = time.perf_counter()
    indexing.index_nodes(node_ids=[node.pk for node in nodes])
    each = (time.perf_counter() - began) / len(nodes)
    print(
        f"ingest, embedding included: {each * 1000:.1f} ms a node, {1 / each:.0f} nodes a second, one process"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument(
        "--large", type=int, default=100_000, help="nodes of the largest owner at the last step"
    )
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--keep", action="store_true", help="leave the filled database for --again")
    parser.add_argument(
        "--again", action="store_true", help="measure in the database that an earlier run left"
    )
    options = parser.parse_args()
    # Not the name that the tests use: both may run.
    connection.settings_dict["TEST"]["NAME"] = "benchmark_recall"
    connection.creation.create_test_db(
        verbosity=0, autoclobber=not options.again, keepdb=options.again, serialize=False
    )
    try:
        if options.again:
            again(options.queries)
        else:
            run(sorted(options.steps), options.large, options.queries)
    finally:
        if not options.keep:
            connection.creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)


def run(steps: list[int], most: int, queries: int) -> None:
    vocabulary = Vocabulary()
    filling = Filling(vocabulary)
    people = {name: User.objects.create(username=name) for name in ("large", "middle")}
    have = dict.fromkeys(people, 0)
    report_embedding(vocabulary)
    for step in steps:
        began = time.perf_counter()
        want = {
            "large": max(have["large"], most if step == steps[-1] else step // 2),
            "middle": max(have["middle"], min(10_000, step // 4)),
        }
        fill = [person.pk for name, person in people.items() for _ in range(want[name] - have[name])]
        have = want
        rest = max(step - filling.made - len(fill), 0)
        others = [User.objects.create(username=uuid.uuid4().hex).pk for _ in range(rest // 1_000 + 1)]
        fill += [others[n % len(others)] for n in range(rest)]
        vocabulary.random.shuffle(fill)
        load(filling, fill)
        print(f"\n{filling.made:,} nodes, loaded in {time.perf_counter() - began:.0f} s", flush=True)
        for name, person in people.items():
            report_recall(person, have[name], vocabulary, queries)
    report_forgetting(people["large"])
    report_ingest(vocabulary)
    report_size(filling.made)


def again(queries: int) -> None:
    """The figures of the last step, without filling anything."""
    vocabulary = Vocabulary()
    report_embedding(vocabulary)
    nodes = MemoryNode.objects.count()
    print(f"\n{nodes:,} nodes, of an earlier run", flush=True)
    for person in User.objects.filter(username__in=["large", "middle"]).order_by("username"):
        report_recall(person, MemoryNode.objects.filter(owner=person).count(), vocabulary, queries)
    report_forgetting(User.objects.get(username="large"))
    report_ingest(vocabulary)
    report_size(nodes)


def load(filling: Filling, owners: list[int]) -> None:
    """Fill in the rows; the index of nearness is built afterwards, as a restore does it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'vector_nearest'")
        (definition,) = cursor.fetchone()
        cursor.execute("DROP INDEX vector_nearest")
    filling.add(owners)
    indexing._index_large_owners(most=sys.maxsize)
    with connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '2GB'")
        cursor.execute(definition)
        for table in TABLES:
            cursor.execute(f"VACUUM ANALYZE {table}")


def report_size(nodes: int) -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute("SELECT pg_total_relation_size(%s), pg_table_size(%s)", [table, table])
            total, rows = cursor.fetchone()
            print(
                f"  {table}: {total / nodes:,.0f} bytes a node, of them {(total - rows) / nodes:,.0f} in indexes"
            )


if __name__ == "__main__":
    main()
