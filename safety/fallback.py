"""The file that keeps bells while the database cannot: one fsynced JSON line each, replayed once each."""

import contextlib
import errno
import fcntl
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

logger = logging.getLogger(__name__)

# Freed when the disk is full, so that the line of a bell still finds room.
RESERVE_BYTES = 256 * 1024


def _path(name: str) -> Path:
    return Path(settings.VAR_DIR) / name


def fallback_path() -> Path:
    return _path("bells-fallback.jsonl")


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """One writer or reader at a time, over all processes of this machine."""
    lock = os.open(_path("bells-fallback.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def keep_reserve() -> None:
    """Make sure that the reserve stands; called at start and after a replay."""
    reserve = _path("bells-reserve")
    if reserve.exists() and reserve.stat().st_size == RESERVE_BYTES:
        return
    descriptor = os.open(reserve, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    finally:
        os.close(descriptor)


def append(event: dict[str, Any]) -> bool:
    """Write one event as one line, on disk when this returns. False only when the disk took it in no way."""
    line = json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    logger.warning("WARN bell event write failed: bell %s goes to the fallback file", event["id"])
    try:
        with _locked():
            try:
                _write(line)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                _path("bells-reserve").unlink(missing_ok=True)
                _write(line)
    except OSError:
        logger.exception("bell %s could not be written to the fallback file either", event["id"])
        return False
    return True


def _write(line: bytes) -> None:
    descriptor = os.open(fallback_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        begin = os.fstat(descriptor).st_size
        try:
            written = os.write(descriptor, line)
            if written != len(line):
                raise OSError(errno.ENOSPC, "the line was written in part")
            os.fsync(descriptor)
        except OSError:
            # Half a line would spoil the next one.
            os.ftruncate(descriptor, begin)
            raise
    finally:
        os.close(descriptor)


def waiting() -> int:
    """How many lines wait for the database."""
    path = fallback_path()
    if not path.exists():
        return 0
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


@contextlib.contextmanager
def taken() -> Iterator[list[dict[str, Any]]]:
    """The waiting events; removed from the file only if the block ends without an error.

    A line that is not JSON is set aside in `bells-fallback.unreadable`, never dropped.
    """
    path = fallback_path()
    if not path.exists():
        yield []
        return
    with _locked():
        events = []
        for line in path.read_bytes().splitlines(keepends=True):
            try:
                events.append(json.loads(line))
            except ValueError:
                logger.exception("an unreadable line of the bell fallback file was set aside")
                with _path("bells-fallback.unreadable").open("ab") as aside:
                    aside.write(line)
        yield events
        path.unlink(missing_ok=True)
    keep_reserve()
