"""One Neuron as the engram of another, over loopback: boot, catching up, and what an idle sync costs.

`python benchmarks/engram_sync.py [--nodes 10000]`. Both are started by `manage.py up`, each with servers of its own.
Boot and sync are timed inside the process that does them, from the call to the commit.
"""

import argparse
import contextlib
import json
import tempfile
from pathlib import Path

from common import machine, without_servers

FILL = """
from django.contrib.auth.models import User
from django.db import connection
owner = User.objects.get()
with connection.cursor() as cursor:
    cursor.execute('''INSERT INTO memory_memorynode
        (id, owner_id, node_type, tier, label, content, payload, tags, salience, importance, confidence,
         session_id, turn_index, occurred_at, created_at, updated_at, version, indexed_version,
         connected_version, hold, derived)
        SELECT gen_random_uuid(), %s, 'Conversation', 'Episodic', 'chat:' || n,
               'Q: how was the day number ' || n || E'\\\\nA: ' || repeat('tell me more about it ', 20),
               jsonb_build_object('q', 'how was the day number ' || n, 'a', repeat('tell me more about it ', 20)),
               '{Conversation,chat,timestamped}', .5, .5, 1,
               md5('session' || n / 20)::uuid, n %% 20, now() - n * interval '1 minute', now(), now(), 1, 1, 1, 0, false
        FROM generate_series(1, %s) n''', [owner.pk, NODES])
    cursor.execute('''INSERT INTO memory_memoryedge
        (id, owner_id, source_id, target_id, kind, weight, created_at, updated_at, version, derived)
        SELECT gen_random_uuid(), later.owner_id, later.id, earlier.id, 'follows', 1, now(), now(), 1, false
        FROM memory_memorynode later JOIN memory_memorynode earlier
        ON later.session_id = earlier.session_id AND later.turn_index = earlier.turn_index + 1''')
"""
BOOT = """
import time
from memory.engram.boot import boot_engram
began, worked = time.perf_counter(), time.process_time()
booted = boot_engram()
print(time.perf_counter() - began, time.process_time() - worked, booted.nodes, booted.edges, booted.degraded)
"""
SYNC = """
import time
from memory.engram.sync import sync_engram
began = time.perf_counter()
synced = sync_engram()
print(time.perf_counter() - began, synced.taken.nodes, synced.error)
"""
IDLE = """
import json, time
from memory.engram.sync import sync_engram
times = []
for _ in range(60):
    began = time.perf_counter()
    assert sync_engram().taken.changed == 0
    times.append((time.perf_counter() - began) * 1000)
times = sorted(times[10:])
print(json.dumps([times[25], times[47]]))
"""


def main() -> None:
    without_servers()
    from tests.two_neurons import Neuron

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    nodes = parser.parse_args().nodes
    with contextlib.ExitStack() as held:
        folders = [
            Path(
                held.enter_context(
                    tempfile.TemporaryDirectory(prefix="neuron-bench-", ignore_cleanup_errors=True)
                )
            )
            for _ in range(2)
        ]
        remote = Neuron(folders[0])
        held.callback(remote.stop)
        remote.run(f"NODES = {nodes}\n{FILL}")
        local = Neuron(folders[1], engram=remote)
        held.callback(local.stop)
        print(machine())
        seconds, worked, loaded, edges, degraded = local.run(BOOT).split()
        took = f"{float(seconds):.2f} s, {float(worked):.2f} s of it work here"
        print(f"boot from {nodes:,} nodes: {took} ({loaded} nodes, {edges} edges, degraded {degraded})")
        seconds, taken, _ = (local.run(SYNC) + " ").split(" ", 2)
        print(f"first sync after it, all of it known: {float(seconds):.2f} s ({taken} taken)")
        median, late = json.loads(local.run(IDLE))
        print(f"idle sync: {median:.1f} ms, p95 {late:.1f} ms")
        seen = json.loads(remote.http.get("/api/sync").content)
        while seen["nodes"] or seen["edges"]:
            seen = json.loads(remote.http.get("/api/sync", params={"since": seen["cursor"]}).content)
        answer = remote.http.get("/api/sync", params={"since": seen["cursor"]})
        took = sorted(
            remote.http.get("/api/sync", params={"since": seen["cursor"]}).elapsed.total_seconds()
            for _ in range(50)
        )
        print(f"idle answer: {len(answer.content)} bytes, {took[25] * 1000:.1f} ms at the server's client")


if __name__ == "__main__":
    main()
