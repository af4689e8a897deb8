"""The real limits of the engram client: how long a dripping or hanging remote holds a call, and how long the breaker
keeps four processes from calling.

`python benchmarks/engram_limits.py [--repeats 3]`. A fault proxy on loopback; ENGRAM_TIMEOUT_MS and the breaker's
30 s as they stand.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from common import ROOT, machine

os.environ.setdefault("NEURON_VAR", str(ROOT / "var" / "bench"))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")
DRIPS = ("hang", "drip head", "drip body")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    from neuron_site import embedded

    embedded.ensure()
    import django

    django.setup()
    print(f"limits: {machine()}")
    for fault in DRIPS:
        times = [held_for(fault) for _ in range(options.repeats)]
        print(f"{fault}: {min(times):.2f} to {max(times):.2f} s")
    print(f"nobody listening behind a full queue: {unconnected():.2f} s")
    calls, first = calls_while_open()
    print(f"four processes at an open breaker: {calls} probe, {first:.2f} s after it opened")


def held_for(fault: str) -> float:
    """Seconds until a call gives up; several at once, the longest counts."""
    from django.conf import settings

    from memory.engram.breaker import Breaker, valkey
    from memory.engram.client import EngramClient
    from memory.engram.errors import EngramError
    from tests.memory.engram.remote import Engram, FaultProxy, serving

    def one(url: str) -> float:
        breaker = Breaker(valkey(settings.REDIS_URL), key="neuron:bench:limits", open_ms=0)
        client = EngramClient(url, token="", breaker=breaker)
        begin = time.monotonic()
        try:
            client.nodes()
        except EngramError:
            return time.monotonic() - begin
        raise AssertionError(f"{fault} was taken for an answer")

    with serving(Engram()) as port, FaultProxy(port, lambda: fault) as proxy, ThreadPoolExecutor(4) as pool:
        return max(pool.map(one, [proxy.url] * 4))


def unconnected() -> float:
    """A server that never accepts: its queue is full, so that the connection itself hangs."""
    import socket

    from django.conf import settings

    from memory.engram.breaker import Breaker, valkey
    from memory.engram.client import EngramClient
    from memory.engram.errors import EngramError

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        breaker = Breaker(valkey(settings.REDIS_URL), key="neuron:bench:limits", open_ms=0)
        client = EngramClient(f"http://127.0.0.1:{listener.getsockname()[1]}", token="", breaker=breaker)
        begin = time.monotonic()
        try:
            client.health()
        except EngramError:
            return time.monotonic() - begin
        finally:
            for one in waiting:
                one.close()
    raise AssertionError("connected to nobody")


def calls_while_open() -> tuple[int, float]:
    """How often four processes that ask all the time got leave, and when first, in seconds since the third failure."""
    from django.conf import settings

    from memory.engram.breaker import OPEN_MS, Breaker, valkey

    key = "neuron:bench:breaker"
    client = valkey(settings.REDIS_URL)
    client.delete(key)
    breaker = Breaker(client, key=key)
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tests.memory.engram.asking", key, str(OPEN_MS)]
    for _ in range(3):
        breaker.failed(breaker.ask(), "bench")
    client.hset(key, "wait", 600_000)
    asking = [
        subprocess.Popen(command, cwd=ROOT, env=os.environ, stdin=pipe, stdout=pipe, text=True)
        for _ in range(4)
    ]
    for process in asking:
        process.stdout.readline()
    # Opened anew now that all of them ask.
    client.delete(key)
    for _ in range(2):
        breaker.failed(breaker.ask(), "bench")
    last = breaker.ask()
    opened = time.monotonic()
    breaker.failed(last, "bench")
    probed = threading.Event()
    first = 0.0
    while time.monotonic() < opened + 35:
        if breaker.look().probes and not probed.is_set():
            probed.set()
            first = time.monotonic() - opened
        time.sleep(0.002)
    return sum(int(process.communicate("")[0]) for process in asking), first


if __name__ == "__main__":
    main()
