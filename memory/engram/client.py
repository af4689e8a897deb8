"""The remote engram as seen from here: each call of the contract, within hard limits and behind the breaker.

No call waits longer than ENGRAM_CONNECT_TIMEOUT_MS for a connection and ENGRAM_TIMEOUT_MS for the exchange; no
proxy of the environment is used, no redirect is followed, and no answer is used before it was read whole and
found sound. Whatever goes wrong is an EngramError.
"""

import json
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

from django.conf import settings

from memory.engram.addresses import url_problem
from memory.engram.awareness import Happening, note
from memory.engram.breaker import Breaker, Permit
from memory.engram.errors import EngramError, Kind
from memory.engram.exchange import Answer, Line
from memory.engram.fields import WireError, parse_json
from memory.engram.wire import WireEdge, WireNode, WireSync, read_edges, read_nodes, read_sync

T = TypeVar("T")
MOST_NODES = 10_000


class EngramClient:
    """The calls of the contract over one kept connection. Not for two threads at once; use `with` or `close`."""

    def __init__(
        self,
        url: str,
        *,
        token: str,
        breaker: Breaker,
        connect_s: float = 3.0,
        total_s: float = 10.0,
        most_bytes: int = 64 * 2**20,
    ) -> None:
        problem = url_problem(url)
        if problem:
            raise EngramError(Kind.NOT_TRIED, f"ENGRAM_URL {problem}")
        self._prefix = urlsplit(url).path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._breaker = breaker
        self._line = Line(url, connect_s=connect_s, total_s=total_s, most_bytes=most_bytes)

    @classmethod
    def from_settings(cls, *, breaker: Breaker | None = None) -> Self:
        """The client of ENGRAM_URL, behind the breaker that all share. Raises EngramError (not tried) where the
        address is unset or unfit."""
        if not settings.ENGRAM_URL:
            raise EngramError(Kind.NOT_TRIED, "ENGRAM_URL is not set")
        return cls(
            settings.ENGRAM_URL,
            token=settings.ENGRAM_TOKEN,
            breaker=breaker or Breaker.from_settings(),
            connect_s=settings.ENGRAM_CONNECT_TIMEOUT_MS / 1000,
            total_s=settings.ENGRAM_TIMEOUT_MS / 1000,
            most_bytes=settings.ENGRAM_MAX_MB * 2**20,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

    # --- Reading ------------------------------------------------------------------------------------------

    def health(self) -> None:
        """Return where the remote says that it is well."""
        self._call("GET", "/health", _is_well)

    def nodes(self, limit: int = MOST_NODES) -> list[WireNode]:
        """Up to `limit` nodes, as the remote orders them; an engram may be empty."""
        return self._call("GET", f"/api/nodes?limit={limit}", _body(read_nodes))

    def recent_nodes(self, node_type: str, limit: int, since: datetime | None = None) -> list[WireNode]:
        """Up to `limit` nodes of a kind, newest first, that happened after `since`."""
        asked = {"type": node_type, "limit": str(limit)}
        if since is not None:
            asked["since"] = since.isoformat()
        return self._call("GET", f"/api/nodes/recent?{urlencode(asked)}", _body(read_nodes))

    def edges(self) -> list[WireEdge]:
        return self._call("GET", "/api/edges", _body(read_edges))

    def sync(self, cursor: str) -> WireSync:
        """What changed since the cursor of an earlier answer; "" asks for everything."""
        return self._call("GET", f"/api/sync?since={quote(cursor, safe='')}", _body(read_sync))

    # --- Writing: each may be repeated without harm ---------------------------------------------------------

    def put_node(self, node: dict[str, Any]) -> None:
        """Store a node (as `write_node` gives it); an older version than the remote's changes nothing there."""
        self._call("PUT", f"/api/nodes/{node['id']}", _stored(node), node)

    def put_edge(self, edge: dict[str, Any]) -> None:
        """Store an edge (as `write_edge` gives it)."""
        self._call("PUT", f"/api/edges/{edge['id']}", _stored(edge), edge)

    def delete_node(self, node_id: UUID, *, version: int | None = None) -> None:
        """Delete a node; one that is not there counts as deleted.

        `version` tells a remote that never saw the node which late PUTs to ignore.
        """
        asked = f"?version={version}" if version is not None else ""
        self._call("DELETE", f"/api/nodes/{node_id}{asked}", _gone)

    def post_state_event(self, *, event_id: UUID, content: str) -> None:
        """Tell the remote what happened here; the same id twice is stored once there."""
        event = {"id": str(event_id), "content": content}
        self._call("POST", "/api/neuron/state-events", _stored(event), event)

    def _call(
        self, method: str, path: str, read: Callable[[Answer], T], body: dict[str, Any] | None = None
    ) -> T:
        permit = self._breaker.ask()
        try:
            result = read(self._exchange(method, path, body))
        except EngramError as error:
            if not error.is_failure:
                self._succeeded(permit)
            elif self._breaker.failed(permit, str(error)) and self._breaker.is_shared:
                note(Happening.BREAKER_OPENED, after=error.kind)
            raise
        self._succeeded(permit)
        return result

    def _succeeded(self, permit: Permit) -> None:
        if self._breaker.succeeded(permit) and self._breaker.is_shared:
            note(Happening.BREAKER_CLOSED)

    def _exchange(self, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        headers = dict(self._headers)
        data = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        return self._line.exchange(method, self._prefix + path, headers, data)


# --- What a sound answer is ---------------------------------------------------------------------------------


def _accepted(answer: Answer, *statuses: int) -> None:
    """Raise EngramError for any other status."""
    status = answer.status
    if status in statuses:
        return
    if status >= 500 or status in (408, 429):
        raise EngramError(Kind.UNREACHABLE, f"HTTP {status}")
    if status == 401:
        raise EngramError(Kind.UNAUTHORISED, "HTTP 401; is ENGRAM_TOKEN right?")
    if status >= 400:
        raise EngramError(Kind.REFUSED, f"HTTP {status}")
    raise EngramError(Kind.BAD_ANSWER, f"HTTP {status}")


def _json(answer: Answer) -> Any:
    if not answer.body:
        raise EngramError(Kind.BAD_ANSWER, "no body")
    try:
        data = parse_json(answer.body)
    except WireError as error:
        raise EngramError(Kind.BAD_ANSWER, str(error)) from None
    if isinstance(data, dict) and "error" in data:
        raise EngramError(Kind.BAD_ANSWER, "an error with status 200")
    return data


def _object(answer: Answer) -> dict[str, Any]:
    """An object with something in it: without one nobody says that a write was done, whatever the status."""
    data = _json(answer)
    if not isinstance(data, dict) or not data:
        raise EngramError(Kind.BAD_ANSWER, "no object that says what was done")
    return data


def _body(read: Callable[[Any], T]) -> Callable[[Answer], T]:
    def sound(answer: Answer) -> T:
        _accepted(answer, 200)
        try:
            return read(_json(answer))
        except WireError as error:
            raise EngramError(Kind.BAD_ANSWER, str(error)) from None

    return sound


def _stored(sent: dict[str, Any]) -> Callable[[Answer], None]:
    def sound(answer: Answer) -> None:
        _accepted(answer, 200, 201)
        if _object(answer).get("id", sent["id"]) != sent["id"]:
            raise EngramError(Kind.BAD_ANSWER, "an answer about something else")

    return sound


def _gone(answer: Answer) -> None:
    if answer.status in (204, 404, 410):
        return
    _accepted(answer, 200)
    _object(answer)


def _is_well(answer: Answer) -> None:
    """The contract asks for 200 alone; a page of HTML is some other server's 200."""
    _accepted(answer, 200)
    if answer.body.lstrip()[:1] == b"<":
        raise EngramError(Kind.BAD_ANSWER, "a page where /health should be")
    if answer.body.lstrip()[:1] == b"{":
        _json(answer)
