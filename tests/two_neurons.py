"""Two whole Neurons by their own command, one the engram of the other, and what each of them holds."""

import json
import os
import signal
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.site.conftest import Installation, is_alive
from tests.stack import wait_for

PERSON = "ann"


class Neuron:
    """One installation with one person and a token of theirs, spoken to over HTTP."""

    def __init__(self, folder: Path, engram: "Neuron | None" = None) -> None:
        self.here = Installation(folder)
        self.here.environment |= {"NEURON_MODEL": "", "LOG_LEVEL": "WARNING"}
        if engram is not None:
            self.here.environment |= {"ENGRAM_URL": engram.url, "ENGRAM_TOKEN": engram.token}
        self.url = f"http://127.0.0.1:{self.here.port}"
        self.log = folder / "up.log"
        self.process: Any = None
        self.start()
        self.token = self.run(
            "from django.contrib.auth.models import User\nfrom conversations.tokens import create_token\n"
            f"print(create_token(owner=User.objects.create_user('{PERSON}')))"
        )
        self.http = httpx.Client(
            base_url=self.url, timeout=60, trust_env=False, headers={"Authorization": f"Bearer {self.token}"}
        )

    def start(self) -> None:
        self.process = self.here.start("manage.py", "up")
        # Nobody reads on; a full pipe would stop it.
        os.set_blocking(self.process.stdout.fileno(), False)
        try:
            wait_for(self.is_live, seconds=180, what="the web process")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.process.stdout.read()}") from None

    def is_live(self) -> bool:
        try:
            return httpx.get(f"{self.url}/livez", timeout=2, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """kill -9 of everything: supervisor, children, servers."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        servers = [self.here.server("postgres"), self.here.server("valkey")]
        for pid in {self.process.pid, *map(int, listed), *servers} - {0}:
            os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=20)
        wait_for(lambda: not any(is_alive(pid) for pid in servers if pid), what="the servers' end")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=30)
        self.here.clear()

    def run(self, code: str) -> str:
        """The last line that this code prints in a `manage.py shell` of the installation."""
        done = self.here.manage("shell", "-v", "0", "-c", code)
        assert done.returncode == 0, done.stderr[-2000:]
        return (done.stdout.strip().splitlines() or [""])[-1]

    # --- A person's doings --------------------------------------------------------------------------------

    def session(self) -> str:
        answer = self.http.post("/api/v1/sessions", json={})
        answer.raise_for_status()
        return str(answer.json()["id"])

    def say(self, session: str, text: str) -> tuple[dict[str, Any], float]:
        """The answered turn, and the seconds it took."""
        began = time.monotonic()
        path = f"/api/v1/sessions/{session}/turns"
        answer = self.http.post(path, json={"text": text, "client_key": uuid.uuid4().hex})
        assert answer.status_code == 201, answer.text[:500]
        return answer.json(), time.monotonic() - began

    # --- What it holds ------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, dict[str, Any]]:
        return self._by_id("/api/nodes?limit=100000")

    def edges(self) -> dict[str, dict[str, Any]]:
        return self._by_id("/api/edges")

    def _by_id(self, path: str) -> dict[str, dict[str, Any]]:
        answer = self.http.get(path)
        answer.raise_for_status()
        return {one["id"]: one for one in json.loads(answer.content)}


def differences(first: Neuron, second: Neuron) -> str:
    """What the two engrams do not have in common, in numbers; empty where they are equal."""
    said = []
    for name, one, other in (
        ("nodes", first.nodes(), second.nodes()),
        ("edges", first.edges(), second.edges()),
    ):
        changed = sum(one[key] != other[key] for key in one.keys() & other.keys())
        counts = (len(one.keys() - other.keys()), len(other.keys() - one.keys()), changed)
        if any(counts):
            said.append("{}: {} only here, {} only there, {} unlike".format(name, *counts))
    return "; ".join(said)


@dataclass
class Lived:
    """What became of a life in the first Neuron: seconds each turn took, and how long until the second was equal."""

    turns: list[float] = field(default_factory=list)
    while_away: list[float] = field(default_factory=list)
    equal_after: float = 0.0


def live(first: Neuron, second: Neuron, *, turns: int, away_s: float, equal_within_s: float = 60) -> Lived:
    """Talk in the first Neuron, edit, forget and delete, while the second is killed and comes back after a while.

    Raises AssertionError where the two are not equal `equal_within_s` after the last thing was done.
    """
    lived = Lived()
    sessions = [first.session() for _ in range(max(3, turns // 20))]
    said: list[dict[str, Any]] = []
    killed_at = 0.0
    for number in range(turns):
        if number == turns // 3:
            second.kill()
            killed_at = time.monotonic()
        if killed_at and second.process.poll() is not None and time.monotonic() - killed_at > away_s:
            second.start()
        answered, seconds = first.say(sessions[number % len(sessions)], f"Number {number}: {_words(number)}")
        (lived.while_away if second.process.poll() is not None else lived.turns).append(seconds)
        said.append(answered["turn"])
        if number % 9 == 4:
            first.http.post(f"/api/v1/turns/{said[number // 2]['id']}/retry").raise_for_status()
    if second.process.poll() is not None:
        time.sleep(max(0.0, away_s - (time.monotonic() - killed_at)))
        second.start()
    first.http.delete(f"/api/v1/sessions/{sessions[0]}").raise_for_status()
    first.run(FORGET)
    began = time.monotonic()
    wait_for(lambda: not differences(first, second), seconds=equal_within_s, what="the second's being equal")
    lived.equal_after = time.monotonic() - began
    return lived


FORGET = """
from django.contrib.auth.models import User
from memory.models import MemoryNode
from memory.services import delete_nodes
owner = User.objects.get()
ids = MemoryNode.objects.owned_by(owner).conversations().newest_first().values_list("pk", flat=True)
print(delete_nodes(owner=owner, node_ids=list(ids[:3])))
"""


def _words(number: int) -> str:
    subjects = ("the lake", "my sister", "the boat", "the garden", "an exam", "the long way home")
    return f"what do you make of {subjects[number % len(subjects)]} at {number % 24} o'clock?"
