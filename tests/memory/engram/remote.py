"""A small remote engram over real HTTP, with a log of every write, and a proxy before it that makes faults.

`python -m tests.memory.engram.remote PORT LOG` runs the engram as a process of its own, until its input ends.
"""

import gzip
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO


@dataclass
class Engram:
    """What the remote holds. `log` has a line for each write that changed something."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)
    log: list[tuple[str, str, int]] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    file: Path | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        subject = path.rpartition("/")[2]
        with self.lock:
            self.calls.append((method, path))
            if method == "GET":
                return self._read(path)
            if subject in self.refused:
                return 422, {"error": "refused"}
            if method == "DELETE":
                self._delete(subject, int(query.partition("version=")[2] or 0))
                return 204, None
            data = json.loads(body)
            if path == "/api/neuron/state-events":
                self.events.setdefault(data["id"], data["content"])
                return 200, {"id": data["id"]}
            if path.startswith("/api/edges/") and not {data["source"], data["target"]} <= self.nodes.keys():
                return 409, {"error": "its nodes are not here"}
            self._put(self.edges if path.startswith("/api/edges/") else self.nodes, data)
            return 200, {"id": data["id"], "version": data["version"]}

    def _read(self, path: str) -> tuple[int, Any]:
        if path == "/health":
            return 200, {"status": "ok"}
        if path == "/api/edges":
            return 200, list(self.edges.values())
        if path.startswith("/api/nodes"):
            return 200, list(self.nodes.values())
        if path == "/api/sync":
            found = {"nodes": list(self.nodes.values()), "edges": list(self.edges.values())}
            return 200, {**found, "deleted": list(self.deleted), "cursor": str(len(self.log))}
        return 404, {"error": "not found"}

    def _put(self, store: dict[str, dict[str, Any]], data: dict[str, Any]) -> None:
        name, version = data["id"], data["version"]
        known = max(store[name]["version"] if name in store else 0, self.deleted.get(name, 0))
        if version > known:
            store[name] = data
            self._write_down("put", name, version)

    def _delete(self, name: str, version: int) -> None:
        gone = self.nodes.pop(name, None)
        if gone is not None or name not in self.deleted:
            self.deleted[name] = max(version, gone["version"] if gone else 0)
            self._write_down("delete", name, self.deleted[name])
            for edge in [one for one in self.edges.values() if name in (one["source"], one["target"])]:
                del self.edges[edge["id"]]
                self._write_down("delete", edge["id"], edge["version"])

    def _write_down(self, what: str, name: str, version: int) -> None:
        self.log.append((what, name, version))
        if self.file is not None:
            with self.file.open("a") as lines:
                lines.write(json.dumps([what, name, version]) + "\n")

    def doubled(self) -> list[tuple[str, str, int]]:
        """Writes that stand in the log more than once."""
        return [write for write, times in Counter(self.log).items() if times > 1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server: Any = self.server
        status, data = server.engram.handle(self.command, self.path, body)
        sent = b"" if data is None else json.dumps(data).encode()
        # One write: two would wait for the other side's delayed acknowledgement.
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
        head += "" if status == 204 else f"Content-Length: {len(sent)}\r\n"
        self.wfile.write(head.encode() + b"\r\n" + sent)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def log_message(self, *_: Any) -> None:
        """Silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    engram: Engram


@contextmanager
def serving(engram: Engram, port: int = 0) -> Iterator[int]:
    """The engram on a loopback port, which is given."""
    server = _Server(("127.0.0.1", port), _Handler)
    server.engram = engram
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


# --- Faults ---------------------------------------------------------------------------------------------------


def answer(body: bytes, *, status: int = 200, headers: str = "", length: int | None = None) -> bytes:
    """A whole HTTP answer; `length` may lie."""
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status} X\r\nContent-Length: {size}\r\n{headers}\r\n".encode() + body


@cache
def _bomb() -> bytes:
    return answer(gzip.compress(b"[" + b" " * 100_000_000 + b"]", 1), headers="Content-Encoding: gzip\r\n")


@cache
def _million() -> bytes:
    return answer(b"[" + b",".join([b'{"id":"x"}'] * 1_000_000) + b"]")


RUBBISH: dict[str, Callable[[], bytes]] = {
    "html": lambda: answer(b"<!doctype html><html><body>Sign in to the hotel's network</body></html>"),
    "array": lambda: answer(b"[]"),
    "object": lambda: answer(b"{}"),
    "null": lambda: answer(b"null"),
    "nothing": lambda: answer(b""),
    "cut json": lambda: answer(b'{"id": "1", "versi'),
    "bad utf-8": lambda: answer(b'{"id": "\xff\xfe"}'),
    "too long a length": lambda: answer(b'{"id": "1"}', length=500),
    "too short a length": lambda: answer(b'{"nodes": [], "edges": [], "cursor": "1"}', length=13),
    "gzip bomb": _bomb,
    "a million nodes": _million,
    "redirect": lambda: answer(b"", status=302, headers="Location: http://127.0.0.1:9/\r\n"),
    "nan": lambda: answer(b'{"id": NaN}'),
    "duplicate ids": lambda: answer(b'{"id": "1", "id": "2"}'),
    "ten thousand deep": lambda: answer(b"[" * 10_000 + b"]" * 10_000),
    "an error with 200": lambda: answer(b'{"error": "database is locked"}'),
    "not http": lambda: b"\x00\x01\x02 SSH-2.0\r\n\r\n",
    "endless head": lambda: b"HTTP/1.1 200 X\r\n" + b"X-More: yes\r\n" * 20_000,
}
BREAKS = ("hang", "drip head", "drip body", "cut", "cut after", "503", "503 after", "500")
TWISTS = ("slow", "duplicate", "reorder")


class FaultProxy:
    """A proxy before an engram. `choose` names the fault of each request ("" for none); it may be changed.

    A fault whose name ends in "after" happens on the way back, when the remote has already done its part.
    """

    def __init__(self, port: int, choose: Callable[[], str] = lambda: "") -> None:
        self.choose = choose
        self.requests: list[tuple[str, str, str]] = []
        self.times: list[float] = []
        self._behind = port
        self._stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._held: list[tuple[str, str, bytes]] = []
        self.stored_unanswered = threading.Event()

    def __enter__(self) -> "FaultProxy":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with link, link.makefile("rb") as stream, suppress(OSError, HTTPException):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while request := read_request(stream):
                fault = self.choose()
                self.requests.append((request[0], request[1], fault))
                self.times.append(time.monotonic())
                if not self._answer(link, request, fault):
                    return

    def _answer(self, link: socket.socket, request: tuple[str, str, bytes], fault: str) -> bool:
        """Answer with this fault; False where the connection is of no more use."""
        if fault == "hang":
            self._stopping.wait(60)
            return False
        if fault == "store and wait":
            # The remote has it, and whoever sent it will not live to hear so.
            self._forward(request)
            self.stored_unanswered.set()
            link.recv(1)
            return False
        if fault == "cut":
            return False
        if fault in RUBBISH or fault.removesuffix(" after") in RUBBISH:
            if fault.endswith(" after"):
                self._forward(request)
            link.sendall(RUBBISH[fault.removesuffix(" after")]())
            return False
        if fault in ("503", "500"):
            link.sendall(answer(b'{"error": "busy"}', status=int(fault)))
            return True
        if fault == "reorder":
            # Held back, and let through behind whatever comes next.
            self._held.append(request)
            return False
        whole = self._forward(request)
        if fault == "duplicate":
            self._forward(request)
        for held in self._held[:]:
            self._held.remove(held)
            self._forward(held)
        return self._give(link, whole, fault)

    def _give(self, link: socket.socket, whole: bytes, fault: str) -> bool:
        if fault == "cut after":
            link.sendall(whole[: len(whole) // 2])
            return False
        if fault == "503 after":
            link.sendall(answer(b'{"error": "busy"}', status=503))
            return True
        head = whole.index(b"\r\n\r\n") + 4
        if fault == "slow":
            time.sleep(0.05)
        elif fault == "drip head":
            return self._drip(link, whole)
        elif fault == "drip body":
            link.sendall(whole[:head])
            return self._drip(link, whole[head:] or b" ")
        link.sendall(whole)
        return True

    def _drip(self, link: socket.socket, data: bytes) -> bool:
        """A byte at a time, without end: the last one is never sent."""
        for position in range(len(data) - 1):
            link.sendall(data[position : position + 1])
            if self._stopping.wait(0.2):
                return False
        self._stopping.wait(60)
        return False

    def _forward(self, request: tuple[str, str, bytes]) -> bytes:
        method, target, body = request
        behind = HTTPConnection("127.0.0.1", self._behind, timeout=10)
        try:
            behind.request(method, target, body)
            got = behind.getresponse()
            data = got.read()
        except OSError:
            return answer(b'{"error": "nobody there"}', status=502)
        finally:
            behind.close()
        return answer(data, status=got.status) if got.status != 204 else b"HTTP/1.1 204 X\r\n\r\n"


def read_request(stream: BinaryIO) -> tuple[str, str, bytes] | None:
    """Method, target and body of the next request; None at the end of the connection."""
    line = stream.readline()
    if not line.strip():
        return None
    method, target, _ = line.decode().split(" ", 2)
    length = 0
    while (header := stream.readline().strip()) != b"":
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return method, target, stream.read(length)


def mostly_well(seed: int, faults: list[str], share: float) -> Callable[[], str]:
    """A chooser: with this probability one of the faults, in an order that the seed fixes."""
    chance = random.Random(seed)
    return lambda: chance.choice(faults) if chance.random() < share else ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    with serving(Engram(file=Path(sys.argv[2])), int(sys.argv[1])):
        sys.stdin.read()
