"""Whether everything is well: one finding a line, and what mends it."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import redis
from django.conf import settings
from django.core.checks import run_checks
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from conversations.llm import ModelSettingError, describe
from memory import embedding
from memory.engram import status
from memory.engram.sync import engram_owner, state_of
from neuron_site import canary
from neuron_site.celery import ANSWERS, BACKGROUND
from neuron_site.embedded.common import LEAST_FREE_BYTES
from neuron_site.tasks import leave_canary
from safety import fallback, help_lines, protocol, resources, screening
from safety.models import BellEvent

LEAST_VECTOR = (0, 7)
WORKER_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, whether it is well, what was seen, and what mends it where it is not.

    What is not well but not `serious` asks for somebody's attention while Neuron works as it should.
    """

    name: str
    ok: bool
    detail: str
    mend: str = ""
    serious: bool = True


def all_well(findings: list[Finding]) -> bool:
    """Whether nothing serious is wrong."""
    return all(finding.ok or not finding.serious for finding in findings)


def examine() -> list[Finding]:
    """Every finding, in the order that things depend on each other. Nothing here raises."""
    return [_safely(name, look) for name, look in _LOOKS]


def _safely(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except (DatabaseError, InterfaceError) as error:
        return Finding(name, False, _first_line(error), "see the line on the database")
    except (redis.exceptions.RedisError, OSError) as error:
        return Finding(name, False, _first_line(error), "start Neuron with make run, or check REDIS_URL")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _database() -> Finding:
    where = settings.DATABASES["default"]["HOST"] or "local socket"
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            (version,) = cursor.fetchone()
    except (DatabaseError, InterfaceError) as error:
        return Finding("database", False, _first_line(error), "start it, or check DATABASE_URL")
    return Finding("database", True, f"PostgreSQL {version} at {where}")


def _extensions() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extname, extversion FROM pg_extension WHERE extname = ANY(%s)", [list(_EXTENSIONS)]
        )
        found = dict(cursor.fetchall())
    detail = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    missing = [name for name in _EXTENSIONS if name not in found]
    if missing:
        return Finding(
            "extensions",
            False,
            f"missing: {', '.join(missing)}",
            "run manage.py migrate as a database superuser",
        )
    vector = tuple(int(part) for part in found["vector"].split(".")[:2])
    if vector < LEAST_VECTOR:
        return Finding(
            "extensions", False, detail, "install pgvector 0.7 or newer, then ALTER EXTENSION vector UPDATE"
        )
    return Finding("extensions", True, detail)


_EXTENSIONS = ("vector", "btree_gin", "pg_trgm")


def _migrations() -> Finding:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if waiting:
        return Finding("migrations", False, f"{len(waiting)} not applied", "run manage.py migrate")
    return Finding("migrations", True, "all applied")


def _broker() -> Finding:
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
        facts = client.info()
    version = facts.get("valkey_version") or facts["redis_version"]
    kept = facts.get("aof_enabled") == 1
    if not kept:
        return Finding(
            "broker", False, f"version {version}, keeps nothing on disk", "set appendonly yes there"
        )
    return Finding("broker", True, f"version {version}")


def _worker() -> Finding:
    """A task of our own must be carried out now, from each queue: the age of a canary, not a pid."""
    waiting = {queue: f"doctor:{queue}" for queue in (ANSWERS, BACKGROUND)}
    for queue, bearer in waiting.items():
        canary.remove(bearer)
        leave_canary.apply_async((bearer,), queue=queue)
    until = time.monotonic() + WORKER_SECONDS
    while waiting and time.monotonic() < until:
        waiting = {queue: bearer for queue, bearer in waiting.items() if canary.age(bearer) is None}
        time.sleep(0.1)
    if not waiting:
        return Finding("worker", True, "answers and background work are done")
    return Finding(
        "worker",
        False,
        f"took no task within {WORKER_SECONDS:.0f} s from {' and '.join(waiting)}",
        "start Neuron with make run",
    )


def _beat() -> Finding:
    age = canary.age("beat")
    if age is None:
        return Finding("beat", False, "has not been seen for a day", "start Neuron with make run")
    if age > canary.STALE_SECONDS:
        return Finding(
            "beat", False, f"last seen {age:.0f} s ago", "start Neuron with make run, or its beat and worker"
        )
    return Finding("beat", True, f"seen {age:.0f} s ago")


def _model() -> Finding:
    try:
        description = describe()
    except ModelSettingError as error:
        return Finding("model", False, str(error), "set NEURON_MODEL, or unset it")
    return Finding("model", True, description.sentence)


def _embedder() -> Finding:
    try:
        vectors = embedding.embed(["Is anybody there?"])
    except embedding.EmbedderUnavailable as error:
        return Finding("embedder", False, str(error), "run make setup, or check NEURON_EMBEDDER_URL")
    return Finding("embedder", True, f"{embedding.model_name()}, {vectors.shape[1]} dimensions")


def _disk() -> Finding:
    free = shutil.disk_usage(settings.VAR_DIR).free
    detail = f"{free // 2**20} MB free in {settings.VAR_DIR}"
    return Finding(
        "disk", free >= LEAST_FREE_BYTES, detail, "" if free >= LEAST_FREE_BYTES else "free some space"
    )


def _settings() -> Finding:
    problems = [message for message in run_checks() if message.level >= 30 and not message.is_silenced()]
    key = Path(settings.VAR_DIR) / "secret_key"
    if key.exists() and key.stat().st_mode & 0o077:
        return Finding("settings", False, f"others can read {key}", f"chmod 600 {key}")
    if problems:
        return Finding("settings", False, problems[0].msg, problems[0].hint or "see manage.py check")
    return Finding("settings", True, f"{settings.PUBLIC_URL}, DEBUG {'on' if settings.DEBUG else 'off'}")


def _bells() -> Finding:
    waiting = fallback.waiting()
    if waiting:
        return Finding(
            "bells", False, f"{waiting} wait in the fallback file", "start a worker: it replays them"
        )
    return Finding("bells", True, f"{BellEvent.objects.unreviewed().count()} unreviewed")


def _screening() -> Finding:
    version = screening.detector_version()
    if not protocol.meaning_works():
        return Finding(
            "screening",
            False,
            "degraded: the phrase lists decide alone",
            "run make setup: the packaged embedder is gone",
        )
    return Finding("screening", True, version)


def _help_lines() -> Finding:
    entries = [line for one in help_lines.all_resources().values() if one.country for line in one.lines]
    stale = sum(not line.is_verified(date.today()) for line in entries)  # noqa: DTZ011 (a day's difference is none)
    if stale:
        return Finding(
            "help lines",
            False,
            f"{stale} of {len(entries)} were not verified within {resources.STALE_AFTER.days} days",
            "open each provider's page and mark the line as verified in the admin (docs/safety.md)",
            serious=False,
        )
    return Finding("help lines", True, f"{len(entries)} verified")


def _mirror() -> Finding:
    if not settings.ENGRAM_URL:
        return Finding("mirror", True, "no remote engram is set")
    counts = status.outbox_counts(timezone.now())
    breaker = status.breaker_state()
    detail = f"{counts.waiting} waiting, {counts.failed_before} of them failed before, {counts.dead} refused"
    if breaker is not None:
        detail += f"; breaker {breaker.name}"
        if breaker.last_error and (breaker.is_open or breaker.failures_in_a_row):
            detail += f", last error: {breaker.last_error}"
    if counts.dead:
        mend = "see why with manage.py mirror_engram, then manage.py mirror_engram --retry"
        return Finding("mirror", False, detail, mend)
    if breaker is None or breaker.is_open:
        mend = "look at the remote; everything waits here and goes by itself when it answers"
        return Finding("mirror", False, detail, mend, serious=False)
    return Finding("mirror", True, detail)


def _engram() -> Finding:
    if not settings.ENGRAM_URL:
        return Finding("engram", True, "no remote engram is set")
    owner = engram_owner()
    if owner is None:
        return Finding(
            "engram", False, "nobody's memory is synced", "make the account that ENGRAM_OWNER names"
        )
    state = state_of(owner)
    when = f"last synced {state.synced_at:%Y-%m-%d %H:%M} UTC" if state.synced_at else "not synced yet"
    if state.last_error:
        mend = "look at the remote; check ENGRAM_URL and ENGRAM_TOKEN"
        return Finding("engram", False, f"{when}; {state.last_error}", mend, serious=False)
    if state.boot_failed and not state.synced_at:
        return Finding("engram", False, state.boot, "run manage.py boot_engram", serious=False)
    return Finding("engram", True, f"{when}, {owner.get_username()}'s memory")


_LOOKS: list[tuple[str, Callable[[], Finding]]] = [
    ("settings", _settings),
    ("disk", _disk),
    ("database", _database),
    ("extensions", _extensions),
    ("migrations", _migrations),
    ("broker", _broker),
    ("worker", _worker),
    ("beat", _beat),
    ("model", _model),
    ("embedder", _embedder),
    ("screening", _screening),
    ("bells", _bells),
    ("help lines", _help_lines),
    ("mirror", _mirror),
    ("engram", _engram),
]
