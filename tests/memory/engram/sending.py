"""A worker's share of the mirror as a process that can be killed and comes back: its argument is the breaker's key.

Each life is a fork, so that a killed sender is followed by the next within milliseconds. The life's pid goes to
standard output; it sends what is due until its standard input ends.
"""

import os
import select
import sys
import time

import django

django.setup()

from memory.engram import breaker, mirror  # noqa: E402

breaker.OPEN_MS = 1
breaker.KEY = sys.argv[1]


def live() -> None:
    while True:
        mirror.send_due(seconds=5)
        time.sleep(0.005)


while True:
    pid = os.fork()
    if not pid:
        live()
    sys.stdout.write(f"{pid}\n")
    sys.stdout.flush()
    while not os.waitpid(pid, os.WNOHANG)[0]:
        # Our standard input ends when the test does.
        if select.select([sys.stdin], [], [], 0.005)[0]:
            os.kill(pid, 9)
            sys.exit()
