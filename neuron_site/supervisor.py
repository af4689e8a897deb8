"""Web, workers and beat under one roof: started, restarted when they crash, stopped together within seconds."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from neuron_site import embedded
from neuron_site.env import BASE_DIR

STOP_SECONDS = 7
LONGEST_PAUSE = 30.0
SERVER_SECONDS = 2.0
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Linux: the kernel ends the child when the supervisor is gone, however it went."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


# glibc keeps a heap for each thread, and each would keep what its largest batch of texts needed.
FEW_HEAPS = {"MALLOC_ARENA_MAX": "2"}


@dataclass
class Child:
    """One supervised process.

    `once`: it has one thing to do, and is not started again. `niceness`: how far it gives way to the others, 0 to 19.
    """

    name: str
    words: list[str]
    once: bool = False
    niceness: int = 0
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = 1.0
    due: float = field(default=0.0)

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.words,
            cwd=BASE_DIR,
            env={**FEW_HEAPS, **os.environ},
            stdin=subprocess.DEVNULL,
            # Ctrl-C goes to the supervisor alone, which stops all in order.
            start_new_session=True,
            preexec_fn=self._prepare,  # noqa: PLW1509 (no thread is running yet)
        )
        self.started = time.monotonic()

    def _prepare(self) -> None:
        """In the child, before the program begins."""
        _die_with_parent()
        os.nice(self.niceness)


class Supervisor:
    """Runs the children until SIGINT or SIGTERM. `say` gets one line for everything worth telling."""

    def __init__(self, children: list[Child], say: Callable[[str], None]) -> None:
        self.children = children
        self.say = say
        self.stopping = False
        self._servers_due = 0.0

    def run(self) -> None:
        signal.signal(signal.SIGINT, self._ask_to_stop)
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        for child in self.children:
            child.start()
        while not self.stopping:
            for child in self.children:
                self._look_after(child)
            self._tend_servers()
            time.sleep(0.2)
        self._stop()

    def _ask_to_stop(self, *_: object) -> None:
        self.stopping = True

    def _tend_servers(self) -> None:
        if time.monotonic() < self._servers_due:
            return
        self._servers_due = time.monotonic() + SERVER_SECONDS
        try:
            for name in embedded.tend():
                self.say(f"The bundled {name} had ended and was started again.")
        except embedded.EmbeddedError as error:
            self.say(f"A bundled server cannot be started: {error}")

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if now >= child.due:
                child.start()
            return
        code = child.process.poll()
        if code is None:
            return
        child.process = None
        if child.once:
            child.due = float("inf")
            return
        # One that ran well for a minute crashes for a new reason.
        child.pause = 1.0 if now - child.started > 60 else min(LONGEST_PAUSE, child.pause * 2)
        child.due = now + child.pause
        self.say(f"The {child.name} process ended (code {code}). It starts again in {child.pause:.0f} s.")

    def _stop(self) -> None:
        self.say("Stopping.")
        running = [child.process for child in self.children if child.process is not None]
        for process in running:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(timeout=max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
