"""A language model with a script: an OpenAI-compatible server over real HTTP, for tests and benchmarks.

As a process of its own: `python -m tests.scripted_provider --port 9001 [--seconds 1.0]`.
"""

import argparse
import contextlib
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Script:
    """One answer of the provider, in the order of its fields."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None  # sent as it is, instead of a stream
    tool: tuple[str, dict[str, Any]] | None = None
    text: str = ""
    piece: int = 12  # characters a chunk
    pause: float = 0.0  # seconds between chunks
    hang_before: float = 0.0  # seconds before the head
    hang_after: float = 0.0  # seconds after the text, before the end
    cut: bool = False  # the connection ends right after the text
    hangs_up: bool = False  # the connection ends, unannounced, behind a whole answer
    refuses_tools: bool = False  # 400 to a request that brings tools; without them it answers
    echo_system: bool = False  # repeat the system prompt, then what the tools gave
    respond: Callable[[dict[str, Any]], str] | None = None  # the text, made of the request


class ScriptedProvider:
    """Answers by its queue of scripts, else with `default`; keeps every request's body, and how long each took."""

    def __init__(self, port: int = 0, default: Script | None = None) -> None:
        self.default = default or Script(text="I hear you. Tell me more.")
        self.queue: deque[Script] = deque()
        self.requests: list[dict[str, Any]] = []
        self.took: list[tuple[dict[str, Any], float]] = []  # each request it answered, and the seconds
        self.closed_by_client: list[float] = []
        self.connections = 0
        self.models = ["scripted"]
        provider = self

        class Handler(_Handler):
            owner = provider

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "ScriptedProvider":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def script(self, *scripts: Script) -> None:
        self.queue.extend(scripts)

    def reset(self) -> None:
        self.queue.clear()
        self.requests.clear()
        self.closed_by_client.clear()
        self.default = Script(text="I hear you. Tell me more.")

    def everything_received(self) -> str:
        return json.dumps(self.requests, ensure_ascii=False)

    def system_prompts(self) -> list[str]:
        return [
            "\n".join(message["content"] for message in request["messages"] if message["role"] == "system")
            for request in self.requests
        ]


class _Handler(BaseHTTPRequestHandler):
    owner: ScriptedProvider
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.owner.connections += 1

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        body = json.dumps({"object": "list", "data": [{"id": name} for name in self.owner.models]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        begin = time.monotonic()
        request = json.loads(body)
        self.owner.requests.append(request)
        script = self.owner.queue.popleft() if self.owner.queue else self.owner.default
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._answer(request, script)
        self.owner.took.append((request, time.monotonic() - begin))

    def _answer(self, request: dict[str, Any], script: Script) -> None:
        if script.hang_before and self._client_left(script.hang_before):
            return
        if script.refuses_tools and request.get("tools"):
            message = {"error": {"message": "scripted does not support tools", "type": "api_error"}}
            script = Script(status=400, body=json.dumps(message))
        if script.status != 200 or script.body is not None:
            body = (
                script.body or json.dumps({"error": {"message": "scripted", "type": "scripted"}})
            ).encode()
            self.send_response(script.status)
            for name, value in {"Content-Type": "application/json", **script.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._event({"role": "assistant", "content": ""})
        if script.tool is not None:
            name, arguments = script.tool
            call = {"name": name, "arguments": json.dumps(arguments)}
            self._event({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]})
        text = script.respond(request) if script.respond else script.text
        if script.echo_system:
            text += "\n".join(
                str(one["content"]) for one in request["messages"] if one["role"] in ("system", "tool")
            )
        for start in range(0, len(text), script.piece):
            if start and script.pause and self._client_left(script.pause):
                return
            self._event({"content": text[start : start + script.piece]})
        if script.hang_after and self._client_left(script.hang_after):
            return
        if script.cut:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self._event({}, finish="tool_calls" if script.tool else "stop")
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = script.hangs_up

    def _event(self, delta: dict[str, Any], finish: str | None = None) -> None:
        event = {
            "id": "scripted",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        self._chunk(f"data: {json.dumps(event)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _client_left(self, seconds: float) -> bool:
        """Wait, but notice at once when the client closes its socket."""
        self.connection.settimeout(seconds)
        try:
            left = self.connection.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            return False
        except OSError:
            left = True
        finally:
            self.connection.settimeout(None)
        if left:
            self.owner.closed_by_client.append(time.monotonic())
        return left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=0.0, help="how long an answer takes")
    parser.add_argument("--themes", action="store_true", help="read sessions for themes, too")
    options = parser.parse_args()
    text = "I hear you. That sounds like a full day. What was the best part of it? " * 3
    pieces = len(text) / 12
    script = Script(text=text, pause=options.seconds / pieces)
    if options.themes:
        from tests import theme_reader

        script = Script(respond=theme_reader.respond)
    provider = ScriptedProvider(options.port, script)
    provider.serve_forever()


if __name__ == "__main__":
    main()
