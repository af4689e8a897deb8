"""Real processes: senders that are killed at the worst moment, and tasks that come twice and in any order."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from celery import Task
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from memory import tasks
from memory.models import MemoryNode, MirrorJob
from memory.services import delete_nodes, overwrite_node
from tests.memory.engram.remote import Engram, FaultProxy, free_port
from tests.memory.engram.test_mirror import assert_mirrored, local_state, talk
from tests.stack import ROOT, wait_for, with_database

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True, serialized_rollback=True)]
# The whole proof takes 50: NEURON_TEST_KILLS=50.
KILLS = int(os.environ.get("NEURON_TEST_KILLS", "15"))


@contextmanager
def process(module: str, *arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A process of this module beside the test, ended with it."""
    pipe = subprocess.PIPE
    running = subprocess.Popen(
        [sys.executable, "-m", f"tests.memory.engram.{module}", *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "neuron_site.settings", **environment},
        stdin=pipe,
        stdout=pipe,
        text=True,
    )
    try:
        yield running
    finally:
        running.communicate("")


def next_life(sender: "subprocess.Popen[str]") -> int:
    assert sender.stdout is not None
    return int(sender.stdout.readline())


def let_leases_end() -> None:
    """The minute passes that a killed sender's lease lasts."""
    MirrorJob.objects.waiting().exclude(claim=None).update(due_at=timezone.now() - timedelta(seconds=1))


def change_something(owner: User, chance: random.Random) -> None:
    nodes = list(MemoryNode.objects.filter(owner=owner).order_by("pk"))
    talk(owner, 2)
    if nodes and chance.random() < 0.7:
        overwrite_node(node=chance.choice(nodes), content="another answer")
    if nodes and chance.random() < 0.4:
        delete_nodes(owner=owner, node_ids=[chance.choice(nodes).pk])


def all_sent() -> bool:
    let_leases_end()
    return not MirrorJob.objects.waiting().exists()


def test_a_sender_killed_between_the_remotes_commit_and_our_mark_loses_and_doubles_nothing(
    owner: User, own_breaker: str, tmp_path: Path, settings: Settings
) -> None:
    """The remote is a process of its own; what it wrote is read from its own log."""
    port, log, chance = free_port(), tmp_path / "writes.jsonl", random.Random(5)
    database = with_database(os.environ["DATABASE_URL"], str(connection.settings_dict["NAME"]))
    with FaultProxy(port) as proxy, process("remote", str(port), str(log)):
        settings.ENGRAM_URL = proxy.url
        address = {"ENGRAM_URL": proxy.url, "DATABASE_URL": database, "LOG_LEVEL": "ERROR"}
        with process("sending", own_breaker, **address) as sender:
            for _ in range(KILLS):
                alive = next_life(sender)
                let_leases_end()
                proxy.stored_unanswered.clear()
                last = len(proxy.requests) + chance.randrange(3)
                proxy.choose = lambda last=last: "store and wait" if len(proxy.requests) >= last else ""
                # At least three calls, two nodes and their edge.
                change_something(owner, chance)
                wait_for(proxy.stored_unanswered.is_set, what="a request to be killed at")
                proxy.choose = lambda: ""
                os.kill(alive, signal.SIGKILL)
            wait_for(all_sent, what="the rest", seconds=60)
    writes = [tuple(json.loads(line)) for line in log.read_text().splitlines()]
    assert Engram(log=writes).doubled() == []
    standing = {subject: (what, version) for what, subject, version in writes}
    nodes, edges = local_state(owner)
    here = {name: ("put", one["version"]) for name, one in (nodes | edges).items()}
    assert {name: write for name, write in standing.items() if write[0] == "put"} == here


def test_tasks_that_come_several_times_and_shuffled_end_in_the_same_state(
    owner: User, proxy: FaultProxy, engram: Engram
) -> None:
    chance = random.Random(7)
    waiting = []
    with ThreadPoolExecutor(4) as workers:
        for _ in range(15):
            change_something(owner, chance)
            waiting += [tasks.mirror, tasks.tell_what_happened, tasks.prune_outbox] * chance.randint(2, 5)
            chance.shuffle(waiting)
            carried = [workers.submit(carry_out, waiting.pop()) for _ in range(4)]
        carried += [workers.submit(carry_out, task) for task in waiting]
    for one in carried:
        one.result()
    wait_for(lambda: tasks.mirror() or all_sent(), what="the rest")
    assert_mirrored(owner, engram)
    assert not MirrorJob.objects.dead().exists()


def carry_out(task: Task) -> None:
    """As a worker's thread does: its connection goes with the task."""
    try:
        task()
    finally:
        connection.close()
