"""The remote engram: how fast nodes are mirrored, catching up, the cost of an idle sync, booting from it.

`python benchmarks/mirror.py [--nodes 2000] [--queued 100000] [--boot 10000]`. The remote is a real Neuron on loopback
(one web process, a database of its own); the long queue goes to a small engram that only keeps what it is sent, so
that what is measured there is this side. Two senders, processes of their own.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common import ROOT, machine, scratch_database

SENDERS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--boot", type=int, default=10_000)
    options = parser.parse_args()
    with scratch_database():
        print(f"mirror: {SENDERS} senders; {machine()}")
        with neuron() as (url, token):
            environment = {"ENGRAM_URL": url, "ENGRAM_TOKEN": token}
            person = owner("mirror")
            remember(person, options.nodes)
            number, seconds = send_everything(person, environment)
            print(f"to a Neuron: {number} jobs, {number / seconds:.0f} a second")
            print(f"idle sync: {idle_sync(environment) * 1000:.0f} ms (median of 20)")
            number, seconds = boot(person, environment, options.boot - options.nodes)
            print(f"boot: {number} nodes in {seconds:.1f} s")
        with small_engram() as url:
            person = owner("queue")
            remember(person, options.queued)
            number, seconds = send_everything(person, {"ENGRAM_URL": url, "ENGRAM_TOKEN": ""})
            print(f"catching up: {number} queued, {seconds:.0f} s, {number / seconds:.0f} a second")


def owner(name: str):
    from django.conf import settings
    from django.contrib.auth.models import User

    settings.ENGRAM_OWNER = name
    return User.objects.create(username=name)


def remember(person, number: int, per_session: int = 50) -> None:
    """Conversation nodes of about 600 characters, their sessions 50 turns long."""
    from django.utils import timezone

    from memory.models import MemoryNode

    text = "I planted beans behind the shed and the neighbour said it will rain on Sunday. " * 7
    session = uuid.uuid4()
    nodes = []
    for index in range(number):
        if index % per_session == 0:
            session = uuid.uuid4()
        nodes.append(
            MemoryNode(
                owner=person,
                node_type="Conversation",
                label=f"chat:{index}",
                content=f"Q: {text}\nA: Noted, number {index}.",
                payload={"q": text, "a": f"Noted, number {index}."},
                tags=["Conversation", "chat", "timestamped"],
                session_id=session,
                turn_index=index % per_session,
                occurred_at=timezone.now(),
            )
        )
    MemoryNode.objects.bulk_create(nodes, batch_size=2000)


def send_everything(person, environment: dict[str, str]) -> tuple[int, float]:
    """Queue all nodes of the person and let the senders empty the queue: how many, in how many seconds."""
    from django.db import connection
    from django.db.models import Max, Min

    from memory.engram import outbox
    from memory.models import MirrorJob

    number = outbox.enqueue_everything(owner_id=person.pk)
    connection.close()
    senders = [
        subprocess.Popen(
            [sys.executable, "manage.py", "mirror_engram", "--send"],
            cwd=ROOT,
            env={**surroundings(), **environment, "ENGRAM_OWNER": person.username},
            stdout=subprocess.DEVNULL,
        )
        for _ in range(SENDERS)
    ]
    for sender in senders:
        assert sender.wait() == 0
    mine = MirrorJob.objects.filter(owner=person)
    assert not mine.exclude(state="sent").exists(), mine.exclude(state="sent").values("state").distinct()
    span = mine.aggregate(first=Min("sent_at"), last=Max("sent_at"))
    return number, (span["last"] - span["first"]).total_seconds()


def idle_sync(environment: dict[str, str]) -> float:
    """Seconds of a sync that brings nothing, by the client alone, connection included."""
    with engram_settings(environment):
        from memory.engram.sync import sync_engram

        sync_engram()
        times = []
        for _ in range(20):
            begin = time.monotonic()
            synced = sync_engram()
            times.append(time.monotonic() - begin)
            assert not synced.error, synced.error
    return statistics.median(times)


def boot(person, environment: dict[str, str], more: int) -> tuple[int, float]:
    """Bring the remote to its number of nodes, forget everything here, and boot from it."""
    from memory.engram.boot import boot_engram
    from memory.models import EngramSync, MemoryNode, MirrorJob

    remember(person, more)
    send_everything(person, environment)
    MirrorJob.objects.filter(owner=person).delete()
    MemoryNode.objects.filter(owner=person).delete()
    EngramSync.objects.filter(owner=person).delete()
    with engram_settings(environment):
        begin = time.monotonic()
        booted = boot_engram()
        seconds = time.monotonic() - begin
    assert not booted.degraded, booted.sentence
    return booted.nodes, seconds


@contextmanager
def engram_settings(environment: dict[str, str]) -> Iterator[None]:
    from django.test import override_settings

    with override_settings(**environment):
        yield


def surroundings() -> dict[str, str]:
    from django.db import connection

    from tests.stack import with_database

    database = with_database(os.environ["DATABASE_URL"], str(connection.settings_dict["NAME"]))
    return {**os.environ, "DATABASE_URL": database, "LOG_LEVEL": "ERROR"}


@contextmanager
def neuron() -> Iterator[tuple[str, str]]:
    """A second Neuron's web process on a database of its own: its address, and a person's token."""
    import psycopg
    from django.conf import settings
    from django.core.management import call_command
    from knox.models import AuthToken

    from tests.scripted_provider import ScriptedProvider
    from tests.stack import Stack, looking_at, with_database

    call_command("collectstatic", interactive=False, verbosity=0)
    name = "neuron_bench_remote"
    with psycopg.connect(with_database(os.environ["DATABASE_URL"], "postgres"), autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        link.execute(f"CREATE DATABASE {name}")
    with ScriptedProvider() as provider:
        stack = Stack(
            database_url=with_database(os.environ["DATABASE_URL"], name),
            redis_url=os.environ["REDIS_URL"].split("?")[0] + "?db=8",
            provider=provider,
            folder=Path(tempfile.mkdtemp(prefix="neuron-bench-")),
        )
        (stack.folder / "static").symlink_to(settings.STATIC_ROOT)
        stack.migrate()
        stack.start("web")
        try:
            with looking_at(name):
                _, token = AuthToken.objects.create(stack.person("remote"))
            yield stack.url, token
        finally:
            stack.stop()


@contextmanager
def small_engram() -> Iterator[str]:
    from tests.stack import free_port, wait_for

    port = free_port()
    log = Path(tempfile.mkdtemp(prefix="neuron-bench-")) / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.memory.engram.remote", str(port), str(log)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
    )
    import socket

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_for(listens, what="the small engram")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.communicate(b"")


if __name__ == "__main__":
    main()
