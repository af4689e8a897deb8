"""An installation of its own for each test that needs one: its folder, its port, its servers, its processes."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack import ROOT, free_port, wait_for

HOLD = "import sys; from neuron_site import embedded; embedded.ensure(); print('here', flush=True); sys.stdin.read()"


class Installation:
    """What `make run` makes of one folder, without anything that this test run has set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.started: list[subprocess.Popen[str]] = []
        left_out = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "PGOPTIONS", "NEURON_COUNTRY")
        self.environment = {name: value for name, value in os.environ.items() if name not in left_out}
        self.environment |= {"NEURON_VAR": str(folder), "PORT": str(self.port)}

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def hold(self) -> subprocess.Popen[str]:
        """A process that uses the servers until its input ends."""
        process = self.start("-c", HOLD)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "here\n", line + process.stdout.read()
        return process

    def manage(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    def server(self, name: str) -> int:
        """The pid of postgres or valkey by its pid file; 0 where it does not run."""
        file = {"postgres": "postmaster.pid", "valkey": "valkey.pid"}[name]
        try:
            pid = int((self.folder / name / file).read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return 0
        return pid if is_alive(pid) else 0

    def clear(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        subprocess.run(
            [sys.executable, "-m", "neuron_site.embedded", "stop"],
            cwd=ROOT,
            env=self.environment,
            timeout=30,
            check=True,
        )


def leave(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=20)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()[0] != "Z"
    except OSError:
        return False


def kill_and_wait(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(is_alive(pid) for pid in pids), what="the end of what was killed")


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Not pytest's temporary folder: every pytest that starts closes it again to the account PostgreSQL runs under."""
    with tempfile.TemporaryDirectory(prefix="neuron-test-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    """One folder for a whole file: making a cluster and migrating it takes seconds."""
    with own_folder() as folder:
        here = Installation(folder)
        yield here
        here.clear()
