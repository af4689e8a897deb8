"""Neuron's own share of a turn: the time from posting a message until it is answered, less the scripted provider's.

Told twice: until the last word of the answer is with the client, and until the turn is settled and the client told so.
The provider's time is what it took itself for each answer, from the request it has read to its last byte; its median
is taken off.

`python benchmarks/turns.py [--chats 8] [--turns 25] [--provider-seconds 1.0]`. Web, worker and beat are real
processes; every chat is a client of its own that posts, follows the stream to `done`, and posts again at once. The
chats begin one after the other within the time of one answer, as people do not all begin in the same millisecond.
"""

import argparse
import os
import re
import statistics
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

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
    text = "I hear you, and that sounds like a full day with a lot in it. " * 4
    pieces = len(text) // 12 + 1
    with ScriptedProvider(default=Script(text=text, pause=options.provider_seconds / pieces)) as provider:
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
                chats = pool.map(chat_times, clients, sessions, [options.turns] * options.chats, waits)
                times = [one for chat in chats for one in chat]
            seconds = time.monotonic() - begin
            memory = {process: resident_mb(running.pid) for process, running in stack.processes.items()}
        finally:
            stack.stop()
    answering = statistics.median(provider.seconds)
    print(f"turns: {options.chats} chats at once, {options.turns} turns each; {machine()}")
    print(
        f"the provider took {answering * 1000:.0f} ms an answer, p95 {percentile(provider.seconds, 0.95) * 1000:.0f}"
    )
    for until, own in (
        ("to the last word", [(spoken - answering) * 1000 for spoken, _ in times]),
        ("until it is settled", [(done - answering) * 1000 for _, done in times]),
    ):
        print(
            f"Neuron's own share {until}: p50 {percentile(own, 0.5):.0f} ms, p95 {percentile(own, 0.95):.0f} ms"
        )
    print(f"{len(times) / seconds:.1f} turns a second (bound by the provider)")
    print(", ".join(f"{process} {size:.0f} MB" for process, size in memory.items()))


def chat_times(
    client: httpx.Client, session_id: uuid.UUID, turns: int, wait: float
) -> list[tuple[float, float]]:
    """Seconds from each post to the last word and to `done`; the first turn, which warms everything, is left out."""
    times = []
    time.sleep(wait)
    with closing(client):
        for number in range(turns + 1):
            begin = time.monotonic()
            answer = client.post(
                f"/sessions/{session_id}/turns/",
                data={
                    "text": f"Today was day {number} of the new job and I met my neighbour",
                    "client_key": uuid.uuid4().hex,
                },
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
                times.append((spoken, time.monotonic() - begin))
    return times


if __name__ == "__main__":
    main()
