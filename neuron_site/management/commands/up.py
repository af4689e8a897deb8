"""`manage.py up`: all of Neuron on this machine. What `make run` ends in."""

import fcntl
import hashlib
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from conversations.llm import described
from neuron_site import embedded, invitation
from neuron_site.celery import ANSWERS, BACKGROUND
from neuron_site.supervisor import Child, Supervisor
from safety import fallback

NEEDED_EXTENSIONS = ("vector", "btree_gin", "pg_trgm")


class Command(BaseCommand):
    help = "Start Neuron: database migrations, web, worker and beat. Ctrl-C stops everything."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._prepare()
        except OSError as error:
            raise CommandError(f"{error.strerror or error}: {error.filename or settings.VAR_DIR}.") from error
        self._greet()
        Supervisor(self._children(), say=self._say).run()

    def _prepare(self) -> None:
        self._be_the_only_one()
        self._check_port()
        self._check_disk()
        self._check_database()
        self._check_broker()
        call_command("migrate", verbosity=0, interactive=False)
        _collect_static()
        fallback.keep_reserve()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _be_the_only_one(self) -> None:
        self._lock = open(Path(settings.VAR_DIR) / "up.lock", "a+")  # noqa: SIM115 (held until the process ends)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            where = self._lock.read().strip()
            raise CommandError(
                f"Neuron runs here already ({where}). Stop that one first, with Ctrl-C."
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()}, {settings.PUBLIC_URL}")
        self._lock.flush()

    def _check_port(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((settings.HOST, settings.PORT))
            except OSError:
                raise CommandError(
                    f"Port {settings.PORT} is taken by another program. Choose another: "
                    f"PORT={settings.PORT + 1} make run"
                ) from None

    def _check_disk(self) -> None:
        free = shutil.disk_usage(settings.VAR_DIR).free
        if free < embedded.LEAST_FREE_BYTES:
            raise CommandError(
                f"The disk of {settings.VAR_DIR} has {free // 2**20} MB left and Neuron needs "
                f"{embedded.LEAST_FREE_BYTES // 2**20}. Free some space. Nothing was changed."
            )

    def _check_database(self) -> None:
        database = settings.DATABASES["default"]
        where = f"{database['NAME']} at {database['HOST'] or 'the local socket'}"
        # The pool would hide the reason behind its own timeout.
        database.get("OPTIONS", {}).pop("pool", None)
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT name FROM pg_available_extensions WHERE name = ANY(%s)", [list(NEEDED_EXTENSIONS)]
                )
                there = {name for (name,) in cursor.fetchall()}
        except DatabaseError as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(
                f"The database {where} does not answer ({reason}). Check DATABASE_URL, or unset it to use the "
                "bundled PostgreSQL."
            ) from error
        missing = [name for name in NEEDED_EXTENSIONS if name not in there]
        if missing:
            raise CommandError(
                f"The PostgreSQL of {where} lacks {', '.join(missing)}. Install it there (Debian's package for "
                "vector is postgresql-NN-pgvector), or unset DATABASE_URL to use the bundled one."
            )

    def _check_broker(self) -> None:
        try:
            with redis.Redis.from_url(
                settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2
            ) as client:
                client.ping()
        except (redis.exceptions.RedisError, OSError, ValueError) as error:
            raise CommandError(
                f"The broker does not answer ({str(error).splitlines()[0]}). Check REDIS_URL, or unset it to use "
                "the bundled Valkey."
            ) from error

    def _greet(self) -> None:
        self._say(f"Neuron is at {settings.PUBLIC_URL}")
        link = invitation.current_link(settings.PUBLIC_URL)
        if link:
            self._say(f"Nobody lives here yet. This link makes the first owner, once: {link}")
        self._say(described().sentence)
        self._say("Ctrl-C stops everything.")
        connection.close()

    def _children(self) -> list[Child]:
        # What the processes print is for when something is wrong; Celery's banner and its word on root are neither.
        celery = [sys.executable, "-W", "ignore:You're running the worker", "-m", "celery", "-q"]
        celery += ["-A", "neuron_site"]
        web = f"-m uvicorn neuron_site.asgi:application --host {settings.HOST} --port {settings.PORT}"
        quiet = "--timeout-graceful-shutdown 2 --no-access-log --log-level warning"
        worker = "worker -P threads --without-gossip --without-mingle --without-heartbeat --loglevel WARNING"
        beat = ["beat", "--loglevel", "WARNING", "--schedule", str(Path(settings.VAR_DIR) / "beat")]
        children = [
            Child("web", [sys.executable, *web.split(), *quiet.split()]),
            Child("worker", [*celery, *worker.split(), "-c", "16", "-Q", ANSWERS]),
            # Of its own, because the threads of a process take turns: indexing would hold up answers. And it gives way.
            Child("background", [*celery, *worker.split(), "-c", "4", "-Q", BACKGROUND], niceness=10),
            Child("beat", [*celery, *beat]),
        ]
        if settings.ENGRAM_URL:
            # Beside the others: nobody waits a minute for a remote that does not answer. It says what it came to.
            children.append(Child("engram", [sys.executable, "manage.py", "boot_engram"], once=True))
        return children


def _collect_static() -> None:
    """Collect static files when the code or a package that brings some has changed since the last time."""
    digest = hashlib.sha256()
    digest.update((settings.BASE_DIR / "requirements.txt").read_bytes())
    for path in sorted((settings.BASE_DIR / "static").rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    stamp = Path(settings.VAR_DIR) / "static.stamp"
    if stamp.exists() and stamp.read_text() == digest.hexdigest() and Path(settings.STATIC_ROOT).exists():
        return
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(digest.hexdigest())
