"""Neuron's own share of a turn: the time from posting a message until it is answered, less the scripted provider's.

Told twice: until the last word of the answer is with the client, and until the turn is settled and the client told so.
What the provider took is measured by itself for each answer, from the request it has read to its last byte.

`python benchmarks/turns.py [--chats 8] [--turns 25] [--provider-seconds 1.0] [--spread 0.5]`. Web, workers and beat are
real processes; every chat is a client of its own that posts, follows the stream to `done`, and posts again at once. The
chats begin one after the other within the time of one answer. Answers differ in length, and so in time, by up to
`--spread` of the mean, as a model's do: where all take the same time to the millisecond, chats that once met at one
moment go on meeting there (`--spread 0`).
"""

import argparse
import os
import random
import re
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from common import ROOT, machine, percentile

os.environ.setdefault("NEURON_VAR", str(ROOT / "var" / "bench"))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--provider-seconds", type=float, default=1.0)
    parser.add_argument("--spread", type=float, default=0.5)
    options = parser.parse_args()

    from neuron_site import embedded

    embedded.ensure()
    import django
    import psycopg

    django.setup()
    from django.core.management import call_command

    from conversations.services import create_session
    from tests.scripted_provider import Script, ScriptedProvider
    from tests.stack import Stack, looking_at, with_database

    call_command("collectstatic", interactive=False, verbosity=0)
    name = "neuron_bench"
    with psycopg.connect(with_database(os.environ["DATABASE_URL"], "postgres"), autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        link.execute(f"CREATE DATABASE {name}")
    words = "I hear you, and that sounds like a full day with a lot in it. " * 4

    def answer(request: dict[str, Any]) -> str:
        """As long as the message says by chance, and the same for the same message."""
        share = 1 + random.Random(said(request)).uniform(-options.spread, options.spread)
        return (words * 2)[: round(len(words) * share)]

    pieces = len(words) // 12 + 1
    script = Script(respond=answer, pause=options.provider_seconds / pieces)
    with ScriptedProvider(default=script) as provider:
        stack = Stack(
            database_url=with_database(os.environ["DATABASE_URL"], name),
            redis_url=os.environ["REDIS_URL"].split("?")[0] + "?db=9",
            provider=provider,
            folder=Path(tempfile.mkdtemp(prefix="neuron-bench-")),
        )
        from django.conf import settings

        (stack.folder / "static").symlink_to(settings.STATIC_ROOT)
        stack.migrate()
        stack.start()
        try:
            with looking_at(name):
                people = [stack.person() for _ in range(options.chats)]
                sessions = [create_session(owner=person).pk for person in people]
            clients = [stack.signed_in(person) for person in people]
            waits = [options.provider_seconds * n / options.chats for n in range(options.chats)]
            begin = time.monotonic()
            with ThreadPoolExecutor(options.chats) as pool:
                chats = pool.map(
                    chat_times,
                    range(options.chats),
                    clients,
                    sessions,
                    [options.turns] * options.chats,
                    waits,
                )
                times = [one for chat in chats for one in chat]
            seconds = time.monotonic() - begin
            memory = {process: resident_mb(running.pid) for process, running in stack.processes.items()}
        finally:
            stack.stop()
    took = {said(request): its for request, its in provider.took}
    answering = [took[one.message] for one in times]
    print(f"turns: {options.chats} chats at once, {options.turns} turns each; {machine()}")
    print(f"the provider took {min(answering):.2f} to {max(answering):.2f} s an answer")
    for until, own in (
        ("to the last word", [one.spoken - took[one.message] for one in times]),
        ("until it is settled", [one.done - took[one.message] for one in times]),
    ):
        p50, p95 = (percentile(own, share) * 1000 for share in (0.5, 0.95))
        print(f"Neuron's own share {until}: p50 {p50:.0f} ms, p95 {p95:.0f} ms")
    print(f"{len(times) / seconds:.1f} turns a second (bound by the provider)")
    print(", ".join(f"{process} {size:.0f} MB" for process, size in memory.items()))


@dataclass(frozen=True)
class Times:
    """Seconds from the post of a message to the answer's last word, and to `done`."""

    message: str
    spoken: float
    done: float


def said(request: dict[str, Any]) -> str:
    """The message that the provider is asked to answer."""
    return str(request["messages"][-1]["content"])


def chat_times(
    chat: int, client: httpx.Client, session_id: uuid.UUID, turns: int, wait: float
) -> list[Times]:
    """The times of each turn of one chat; the first, which warms everything, is left out."""
    times = []
    time.sleep(wait)
    with closing(client):
        for number in range(turns + 1):
            message = f"Today was day {number} of the new job and I met neighbour {chat}"
            begin = time.monotonic()
            answer = client.post(
                f"/sessions/{session_id}/turns/",
                data={"text": message, "client_key": uuid.uuid4().hex},
                headers={"HX-Request": "true"},
            )
            answer.raise_for_status()
            found = re.search(r"/turns/[0-9a-f-]+/stream", answer.text)
            assert found, answer.text[:500]
            with client.stream("GET", found[0]) as events:
                spoken = 0.0
                for line in events.iter_lines():
                    if line == "event: text":
                        spoken = time.monotonic() - begin
                    elif line == "event: done":
                        break
            if number:
                times.append(Times(message, spoken, time.monotonic() - begin))
    return times


if __name__ == "__main__":
    main()
