"""`manage.py up` and the doctor, with everything running for real."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.site.conftest import Installation, is_alive, kill_and_wait
from tests.stack import wait_for

pytestmark = pytest.mark.processes


class Running:
    """Neuron, started by `up`."""

    def __init__(self, here: Installation) -> None:
        self.here = here
        self.process = here.start("manage.py", "up")
        self.said: list[str] = []
        self.hear("Ctrl-C stops everything")
        wait_for(self.is_live, what="the web process")

    def hear(self, words: str) -> str:
        """Read on to the line with these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if words in line:
                return line
        raise AssertionError(f"never said {words!r}: {self.said}")

    def is_live(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.here.port}/livez", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def child(self, words: str) -> int:
        """The pid of the child whose command line has these words. Never 0: a signal to 0 is one to ourselves."""
        for pid in self.children():
            if words in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "):
                return pid
        raise AssertionError(f"no child runs {words!r}")

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in listed.split() if is_alive(int(pid))]

    def doctor(self, **variables: str) -> tuple[int, dict[str, dict[str, object]]]:
        done = self.here.manage("doctor", "--json", **variables)
        report = json.loads(done.stdout)
        assert report["ok"] is (done.returncode == 0), done.stderr
        return done.returncode, {finding["name"]: finding for finding in report["findings"]}


@pytest.fixture(scope="module")
def neuron(installation: Installation) -> Iterator[Running]:
    running = Running(installation)
    yield running
    if running.process.poll() is None:
        running.process.send_signal(signal.SIGINT)
        running.process.wait(timeout=20)


def test_it_says_where_it_is_who_may_come_in_and_which_model_answers(neuron: Running) -> None:
    address, invitation, model = neuron.said[:3]
    assert address == f"Neuron is at http://127.0.0.1:{neuron.here.port}"
    link = invitation.rsplit(" ", 1)[-1]
    assert httpx.get(link, follow_redirects=True, trust_env=False).status_code == 200
    assert "model" in model


def test_a_second_start_is_refused_and_the_first_lives_on(neuron: Running) -> None:
    done = neuron.here.manage("up")
    assert done.returncode == 1
    assert "Neuron runs here already" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert neuron.is_live()


def test_the_doctor_finds_everything_well(neuron: Running) -> None:
    def all_well() -> bool:
        code, findings = neuron.doctor()
        unwell.update({name: one for name, one in findings.items() if not one["ok"] and one["serious"]})
        return code == 0

    unwell: dict[str, object] = {}
    wait_for(all_well, what=f"a clean bill of health: {unwell}")


def test_background_work_gives_way_to_answers(neuron: Running) -> None:
    background, answers = (
        os.getpriority(os.PRIO_PROCESS, neuron.child(f"-Q {queue}")) for queue in ("background", "answers")
    )
    assert background == answers + 10


@pytest.mark.parametrize("queue", ["answers", "background"])
def test_the_doctor_sees_a_worker_that_does_nothing(neuron: Running, queue: str) -> None:
    worker = neuron.child(f"-Q {queue}")
    os.kill(worker, signal.SIGSTOP)
    try:
        code, findings = neuron.doctor()
    finally:
        os.kill(worker, signal.SIGCONT)
    assert code == 1
    assert findings["worker"]["ok"] is False
    assert str(findings["worker"]["detail"]).endswith(f"from {queue}")
    assert "make run" in str(findings["worker"]["mend"])
    assert findings["database"]["ok"] is True


def test_the_doctor_sees_a_database_that_is_away(neuron: Running) -> None:
    code, findings = neuron.doctor(DATABASE_URL="postgres://neuron@127.0.0.1:1/neuron")
    assert code == 1
    assert "DATABASE_URL" in str(findings["database"]["mend"])
    assert findings["broker"]["ok"] is True


def test_a_child_that_crashes_is_started_again_and_it_is_said(neuron: Running) -> None:
    web = neuron.child("uvicorn")
    kill_and_wait(web)
    assert "starts again" in neuron.hear("The web process ended")
    wait_for(neuron.is_live, what="the next web process")
    assert neuron.child("uvicorn") != web


def test_the_order_to_stop_ends_everything(neuron: Running) -> None:
    everything = [*neuron.children(), neuron.here.server("postgres"), neuron.here.server("valkey")]
    assert all(everything)
    neuron.process.send_signal(signal.SIGTERM)
    try:
        neuron.process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        raise AssertionError("not stopped within 10 s") from None
    assert neuron.process.returncode == 0
    assert not any(is_alive(pid) for pid in everything)


def test_a_killed_supervisor_leaves_no_children(neuron: Running) -> None:
    again = Running(neuron.here)
    children = [again.child(words) for words in ("uvicorn", "neuron_site worker", "neuron_site beat")]
    assert all(children)
    kill_and_wait(again.process.pid)
    wait_for(lambda: not any(is_alive(pid) for pid in children), seconds=10, what="the children's end")
