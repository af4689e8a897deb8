"""One HTTP/1.1 exchange within hard limits, over a connection that is kept for the next one.

h11 speaks the protocol; the sockets are ours, because every waiting on them must end at one deadline. The usual
clients limit each read, so that a server which drips its head or its body holds them for as long as it likes
(https://github.com/encode/httpx/issues/1450).
"""

import select
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from memory.engram.addresses import Resolved, refused_reason
from memory.engram.errors import EngramError, Kind

READ_BYTES = 64 * 1024
LARGEST_HEAD = 64 * 1024
MOST_INTERIM_ANSWERS = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: its status, and its body as it was sent."""

    status: int
    body: bytes


class Line:
    """A connection to one server, made when needed, kept while it is sound. Not for two threads at once."""

    def __init__(self, url: str, *, connect_s: float, total_s: float, most_bytes: int) -> None:
        """`connect_s` limits look-up, TCP and TLS together; `total_s` first byte sent to last byte read."""
        parts = urlsplit(url)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._named = parts.netloc.rpartition("@")[2]
        self._connect_s = connect_s
        self._total_s = total_s
        self._most_bytes = most_bytes
        self._socket: socket.socket | None = None
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)

    def exchange(self, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        """Send one request and read its whole answer. Raises EngramError; the connection is then gone."""
        link = self._connected()
        try:
            deadline = time.monotonic() + self._total_s
            self._send(
                link, _head(method, target, {"Host": self._named, **headers}, len(body)), body, deadline
            )
            answer = self._receive(link, deadline)
        except TimeoutError:
            self.close()
            raise EngramError(Kind.UNREACHABLE, f"no whole answer within {self._total_s:g} s") from None
        except (h11.RemoteProtocolError, OSError) as error:
            self.close()
            raise EngramError(Kind.UNREACHABLE, f"the exchange broke off ({type(error).__name__})") from None
        except EngramError:
            self.close()
            raise
        self._keep_if_sound()
        return answer

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is not None and not _is_readable(self._socket):
            return self._socket
        # What can be read between two exchanges is an end, or an answer to nothing.
        self.close()
        deadline = time.monotonic() + self._connect_s
        try:
            self._socket = self._open(deadline)
        except TimeoutError:
            raise EngramError(Kind.UNREACHABLE, f"no connection within {self._connect_s:g} s") from None
        except OSError as error:
            raise EngramError(Kind.UNREACHABLE, f"no connection ({type(error).__name__})") from None
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
        return self._socket

    def _open(self, deadline: float) -> socket.socket:
        addresses = _look_up(self._host, self._port, deadline)
        # All are looked at before one is used: a name must not hide an address behind another.
        for _family, address in addresses:
            reason = refused_reason(address[0])
            if reason:
                raise EngramError(Kind.UNREACHABLE, f"ENGRAM_URL leads to {reason}")
        failure: OSError = OSError("the name has no address")
        for family, address in addresses:
            raw = socket.socket(family, socket.SOCK_STREAM)
            try:
                raw.settimeout(_left(deadline))
                raw.connect(address)
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if not self._tls:
                    return raw
                raw.settimeout(_left(deadline))
                return ssl.create_default_context().wrap_socket(raw, server_hostname=self._host)
            except OSError as error:
                raw.close()
                failure = error
        raise failure

    def _send(self, link: socket.socket, head: h11.Request, body: bytes, deadline: float) -> None:
        pieces = [self._protocol.send(head), self._protocol.send(h11.Data(body)) if body else b""]
        self._protocol.send(h11.EndOfMessage())
        unsent = memoryview(b"".join(piece for piece in pieces if piece))
        while unsent:
            link.settimeout(_left(deadline))
            unsent = unsent[link.send(unsent) :]

    def _receive(self, link: socket.socket, deadline: float) -> Answer:
        status = 0
        parts: list[bytes] = []
        size = interim = 0
        while True:
            event = self._protocol.next_event()
            if event is h11.NEED_DATA:
                link.settimeout(_left(deadline))
                self._protocol.receive_data(link.recv(READ_BYTES))
            elif isinstance(event, h11.InformationalResponse):
                interim += 1
                if interim > MOST_INTERIM_ANSWERS:
                    raise EngramError(Kind.BAD_ANSWER, "interim answers without end")
            elif isinstance(event, h11.Response):
                status = event.status_code
                self._refuse_head(event)
            elif isinstance(event, h11.Data):
                size += len(event.data)
                if size > self._most_bytes:
                    raise EngramError(Kind.BAD_ANSWER, f"more than {self._most_bytes} bytes")
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return Answer(status, b"".join(parts))
            else:
                raise EngramError(Kind.UNREACHABLE, "the connection was closed before an answer")

    def _refuse_head(self, head: h11.Response) -> None:
        headers = {name.lower(): value for name, value in head.headers}
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise EngramError(Kind.BAD_ANSWER, "compressed, which was not asked for")
        if int(headers.get(b"content-length", b"0")) > self._most_bytes:
            raise EngramError(Kind.BAD_ANSWER, f"more than {self._most_bytes} bytes")

    def _keep_if_sound(self) -> None:
        """Bytes after the answer would be taken for the next one's."""
        left_over, _ended = self._protocol.trailing_data
        both_done = self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE
        if left_over or not both_done:
            self.close()
        else:
            self._protocol.start_next_cycle()


def _head(method: str, target: str, headers: dict[str, str], length: int) -> h11.Request:
    always = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Length": str(length),
    }
    return h11.Request(method=method, target=target, headers=list({**headers, **always}.items()))


def _left(deadline: float) -> float:
    """Seconds until the deadline; raises TimeoutError where it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _is_readable(link: socket.socket) -> bool:
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return bool(poll.poll(0))


def _look_up(host: str, port: int, deadline: float) -> list[Resolved]:
    """The name's addresses. The resolver knows no time limit, so it is waited for in a thread of its own."""
    found: list[Resolved] = []
    failed: list[OSError] = []

    def look() -> None:
        try:
            for family, _type, _protocol, _name, address in socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            ):
                found.append((family, address))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=look, name="engram-look-up", daemon=True)
    thread.start()
    thread.join(_left(deadline))
    if thread.is_alive():
        raise TimeoutError
    if failed:
        raise failed[0]
    return found
