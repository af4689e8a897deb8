"""A process that asks a breaker for leave until its standard input ends, and then says how often it got it.

Arguments: the breaker's key, and its milliseconds of being open.
"""

import sys
import threading

import django

django.setup()

from django.conf import settings  # noqa: E402

from memory.engram.breaker import Breaker, valkey  # noqa: E402
from memory.engram.errors import EngramError  # noqa: E402

breaker = Breaker(valkey(settings.REDIS_URL), key=sys.argv[1], open_ms=int(sys.argv[2]))
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
granted = 0
sys.stdout.write("asking\n")
sys.stdout.flush()
while not ended.is_set():
    try:
        granted += breaker.ask().is_probe
    except EngramError:
        ended.wait(0.001)
sys.stdout.write(f"{granted}\n")
