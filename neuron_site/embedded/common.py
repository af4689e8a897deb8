"""What both bundled servers share: where they live, what runs, and what is said when one cannot."""

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent.parent
# A socket's path may have 107 bytes; the longest name we put behind the folder is `/.s.PGSQL.5432.lock`.
SOCKET_FOLDER_BYTES = 107 - 20
POSTGRES_USER = "embedded_postgres"  # what root hands PostgreSQL to, which refuses to run as root
START_SECONDS = 60
LEAST_FREE_BYTES = 200 * 1024 * 1024
# The servers that this process started.
STARTED: list[subprocess.Popen[bytes]] = []


class EmbeddedError(Exception):
    """A bundled server cannot be had; the sentence says what to do."""


def var_folder() -> Path:
    """Where Neuron keeps its data; made at first use, closed to others."""
    var = Path(os.environ.get("NEURON_VAR") or BASE_DIR / "var").expanduser().resolve()
    var.mkdir(parents=True, exist_ok=True)
    return var


def disk_sentence(var: Path) -> str:
    free = shutil.disk_usage(var).free
    if free < LEAST_FREE_BYTES:
        return f"The disk has {free // 2**20} MB left and Neuron needs {LEAST_FREE_BYTES // 2**20}: free some space."
    return "Check who owns the folder `var`, and that its disk can be written."


def running(pid_file: Path, name: str) -> int | None:
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


def socket_folder(var: Path) -> Path:
    """Where the servers' sockets are: in var, or in a private temporary folder where var's path is too long."""
    folder = var / "run"
    if len(os.fsencode(folder)) > SOCKET_FOLDER_BYTES:
        name = hashlib.sha256(os.fsencode(var)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"neuron-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    allowed = {os.getuid()} | ({postgres_account().pw_uid} if os.geteuid() == 0 else set())
    if status.st_uid not in allowed or folder.is_symlink():
        raise EmbeddedError(
            f"{folder} belongs to somebody else. Remove it, or set TMPDIR to a folder of your own."
        )
    return folder


def postgres_account() -> pwd.struct_passwd:
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
