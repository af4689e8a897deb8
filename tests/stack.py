"""The whole of Neuron as real processes: web, worker and beat over loopback, with a scripted model.

They work on a database of their own, so that nothing a test commits there is seen by tests that roll back.
Tests that use the fixture `stack` may use the ORM: it then looks at the same database.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, connections
from pytest_django.plugin import DjangoDbBlocker

from neuron_site.supervisor import FEW_HEAPS
from tests.scripted_provider import ScriptedProvider

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "correct horse battery"
WORKER = "-m celery -A neuron_site worker -P threads --without-mingle --without-gossip --without-heartbeat"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], object], *, seconds: float = 30, what: str = "the condition") -> object:
    """The condition's first true value; an AssertionError naming `what` when it never comes."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come within {seconds} s")


class Stack:
    """Web, worker and beat as processes of their own; each can be killed and started again."""

    def __init__(
        self, *, database_url: str, redis_url: str, provider: ScriptedProvider, folder: Path
    ) -> None:
        self.provider = provider
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **FEW_HEAPS,
            **os.environ,
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "PORT": str(self.port),
            "SECRET_KEY": settings.SECRET_KEY,
            "NEURON_VAR": str(folder),
            "NEURON_MODEL": "openai:scripted",
            "NEURON_MODEL_URL": provider.url,
            "NEURON_MODEL_KEY": "scripted",
            "NEURON_MODEL_TIMEOUT_S": "5",
            "DJANGO_SETTINGS_MODULE": "neuron_site.settings",
        }

    COMMANDS = {
        "web": "-m uvicorn neuron_site.asgi:application --port {port} --timeout-graceful-shutdown 2 --no-access-log",
        "worker": f"{WORKER} -c 16 -Q answers",
        "background": f"{WORKER} -c 4 -Q background",
        "beat": "-m celery -A neuron_site beat --schedule {folder}/beat",
    }

    def migrate(self) -> None:
        words = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(words, cwd=ROOT, env=self.environment, check=True)

    def start(self, *names: str) -> None:
        for name in names or tuple(self.COMMANDS):
            words = [word.format(port=self.port, folder=self.folder) for word in self.COMMANDS[name].split()]
            with self.log(name).open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [sys.executable, *words],
                    cwd=ROOT,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                    preexec_fn=partial(os.nice, 10 if name == "background" else 0),
                )
        if not names or "web" in names:
            wait_for(self.is_live, what="the web process")

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def is_live(self) -> bool:
        try:
            return httpx.get(f"{self.url}/livez", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(timeout=20)

    def stop(self) -> None:
        for name in list(self.processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.kill(name, signal.SIGTERM)

    def person(self, name: str = "") -> User:
        """Somebody new, who can sign in with PASSWORD."""
        return User.objects.create_user(name or f"person-{uuid.uuid4().hex[:8]}", password=PASSWORD)

    def signed_in(self, person: User) -> httpx.Client:
        """An HTTP client with that person's cookies and the CSRF header."""
        client = httpx.Client(base_url=self.url, timeout=30, follow_redirects=False, trust_env=False)
        page = client.get("/accounts/login/")
        page.raise_for_status()
        token = client.cookies[settings.CSRF_COOKIE_NAME.rsplit("_", 1)[0] + f"_{self.port}"]
        answer = client.post(
            "/accounts/login/",
            data={"login": person.username, "password": PASSWORD, "csrfmiddlewaretoken": token},
        )
        assert answer.status_code == 302, answer.text[:500]
        client.headers["X-CSRFToken"] = client.cookies[
            settings.CSRF_COOKIE_NAME.rsplit("_", 1)[0] + f"_{self.port}"
        ]
        client.headers["Referer"] = self.url
        return client


def with_database(url: str, name: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, f"/{name}", parts.query, parts.fragment))


@contextlib.contextmanager
def looking_at(name: str) -> Iterator[None]:
    """The ORM of this process on another database of the same server."""
    before = connections.settings["default"]["NAME"]

    def switch(to: str) -> None:
        connection.close()
        if connection.pool:
            connection.close_pool()
        connections.settings["default"]["NAME"] = to
        connection.settings_dict["NAME"] = to

    switch(name)
    try:
        yield
    finally:
        switch(before)


@pytest.fixture(scope="session")
def _running_stack(
    static_files: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Stack, str]]:
    name = "neuron_stack"
    database_url = with_database(os.environ["DATABASE_URL"], name)
    with psycopg.connect(with_database(os.environ["DATABASE_URL"], "postgres"), autocommit=True) as link:
        link.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        link.execute(f"CREATE DATABASE {name}")
    redis_parts = urlsplit(settings.REDIS_URL)
    redis_url = (
        f"{settings.REDIS_URL.split('?')[0]}?db=9"
        if redis_parts.scheme == "unix"
        else urlunsplit((redis_parts.scheme, redis_parts.netloc, "/9", redis_parts.query, ""))
    )
    with ScriptedProvider() as provider:
        stack = Stack(
            database_url=database_url,
            redis_url=redis_url,
            provider=provider,
            folder=tmp_path_factory.mktemp("stack"),
        )
        (stack.folder / "static").symlink_to(settings.STATIC_ROOT)
        try:
            stack.migrate()
            stack.start()
            yield stack, name
        finally:
            stack.stop()


@pytest.fixture
def stack(_running_stack: tuple[Stack, str], django_db_blocker: DjangoDbBlocker) -> Iterator[Stack]:
    running, name = _running_stack
    running.provider.reset()
    for process in Stack.COMMANDS:
        if process not in running.processes:
            running.start(process)
    with django_db_blocker.unblock(), looking_at(name):
        yield running
        connection.close()
