"""Themes of 100, 1,000 and 10,000 turns: calls and tokens of a scripted model; time and memory without one.

`python benchmarks/themes.py [--turns 100 1000 10000]`. The turns are those of the labelled corpus, said again and
again over two years in sessions of four, each with a number of its own so that no two texts are the same. They are
indexed beforehand, as they are in a running Neuron; what is timed is the whole look, from reading the rows to the
themes being kept. Memory is the most the process ever held, with the embedder and Django in it. Tokens are estimated
by the rule of conversations.imprint.tokens. A limit of 30 s and 1 GB stands for 10,000 turns without a model.
"""

import argparse
import json
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from common import ROOT, machine, scratch_database

CORPUS = ROOT / "tests" / "conversations" / "data" / "three_months.json"
MOST_SECONDS, MOST_MEGABYTES = 30.0, 1024.0


def remember(username: str, count: int):
    """A person with so many turns in memory, indexed."""
    from django.contrib.auth.models import User

    from conversations.models import Session
    from memory import indexing
    from memory.models import MemoryNode

    owner = User.objects.create(username=username)
    told = [turn for session in json.loads(Path(CORPUS).read_text())["sessions"] for turn in session["turns"]]
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    sessions = Session.objects.bulk_create(
        [Session(owner=owner, title=f"{n}") for n in range(-(-count // 4))]
    )
    nodes = []
    for number in range(count):
        # The corpus in its order, so that a session speaks of what it did there.
        turn = told[number % len(told)]
        at = begin + timedelta(days=730) * number / count
        q = f"{turn['q']} ({number})"
        nodes.append(
            MemoryNode(
                owner=owner,
                node_type="Conversation",
                content=f"Q: {q}\nA: {turn['a']}",
                payload={"q": q, "a": turn["a"]},
                session_id=sessions[number // 4].pk,
                turn_index=number % 4,
                occurred_at=at,
            )
        )
    MemoryNode.objects.bulk_create(nodes, batch_size=1000)
    indexing.index_nodes(node_ids=[node.pk for node in nodes])
    return owner


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def without_a_model(owner) -> float:
    """Seconds of one look by clustering."""
    from conversations.themes import kept, runs

    began = time.perf_counter()
    runs.refresh(owner=owner, with_model=False)
    seconds = time.perf_counter() - began
    print(
        f"  without a model: {seconds:6.2f} s, {megabytes():.0f} MB, {kept.themes_of(owner).count()} themes"
    )
    return seconds


def with_a_model(owner) -> None:
    """The calls of a first look, of one over unchanged talk, and of one after four more turns."""
    from django.test import override_settings

    from conversations.imprint import tokens
    from conversations.themes import runs
    from conversations.themes.models import ThemeRun
    from memory.models import MemoryNode
    from tests import theme_reader
    from tests.scripted_provider import Script, ScriptedProvider

    with ScriptedProvider(default=Script(respond=theme_reader.respond, piece=4000)) as provider:
        model = {"NEURON_MODEL": "openai:scripted", "NEURON_MODEL_URL": provider.url, "NEURON_MODEL_KEY": "x"}
        with override_settings(**model):
            for what in ("first look", "nothing new", "four turns more"):
                if what == "four turns more":
                    newest = MemoryNode.objects.for_owner(owner).conversations().newest_first()[:4]
                    for node in newest:
                        node.pk, node.turn_index = None, node.turn_index + 4
                        node._state.adding = True
                        node.save()
                provider.requests.clear()
                ThemeRun.objects.filter(owner=owner).update(read="")
                began = time.perf_counter()
                runs.refresh(owner=owner)
                seconds = time.perf_counter() - began
                sent = [
                    tokens("".join(one["content"] for one in request["messages"]))
                    for request in provider.requests
                ]
                print(
                    f"  scripted model, {what:15}: {len(sent):3} calls, {sum(sent):9,} tokens sent, "
                    f"at most {max(sent, default=0):,} in one; {seconds:.1f} s"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=[100, 1000, 10_000])
    options = parser.parse_args()
    print(f"themes; {machine()}; one run each")
    well = True
    with scratch_database():
        for count in options.turns:
            print(f"{count:,} turns")
            owner = remember(f"bench-{count}", count)
            seconds = without_a_model(owner)
            with_a_model(owner)
            well = well and (count > 10_000 or (seconds <= MOST_SECONDS and megabytes() <= MOST_MEGABYTES))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
