"""The client: sound answers are read, everything else is one kind of error, and nothing waits past its limit."""

import socket
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pytest_django import Settings

from memory.checks import engram_url_is_usable
from memory.engram.addresses import refused_reason, url_problem
from memory.engram.client import EngramClient
from memory.engram.errors import EngramError, Kind
from tests.memory.engram.remote import BREAKS, RUBBISH, Engram, FaultProxy, answer
from tests.memory.engram.test_wire import EDGE, NODE

Make = Callable[[], EngramClient]


def put(client: EngramClient) -> None:
    client.put_node(NODE)


def delete(client: EngramClient) -> None:
    client.delete_node(uuid.UUID(NODE["id"]))


def test_what_was_put_can_be_got(make_client: Make, engram: Engram) -> None:
    with make_client() as client:
        client.health()
        client.put_node(NODE)
        client.put_node({**NODE, "id": EDGE["target"]})
        client.put_edge(EDGE)
        client.post_state_event(event_id=uuid.uuid4(), content="turn completed")
        assert {str(node.id) for node in client.nodes()} == {EDGE["source"], EDGE["target"]}
        assert [str(edge.id) for edge in client.edges()] == [EDGE["id"]]
        assert len(client.sync("a cursor&with=signs").nodes) == 2
        client.delete_node(uuid.UUID(NODE["id"]), version=3)
        client.delete_node(uuid.UUID(NODE["id"]), version=3)
        assert [str(node.id) for node in client.nodes()] == [EDGE["target"]]
    assert list(engram.events.values()) == ["turn completed"]


def test_one_connection_serves_many_calls(make_client: Make, proxy: FaultProxy) -> None:
    with make_client() as client:
        client.health()
        kept = client._line._socket
        client.put_node(NODE)
        assert kept is not None
        assert client._line._socket is kept


@pytest.mark.parametrize("fault", [*RUBBISH, *(fault for fault in BREAKS if fault != "drip body")])
@pytest.mark.parametrize(
    "call",
    [put, delete, lambda client: client.nodes(), lambda client: client.sync("")],
    ids=["put_node", "delete_node", "nodes", "sync"],
)
def test_a_bad_answer_is_a_failure(fault: str, call: Any, make_client: Make, proxy: FaultProxy) -> None:
    proxy.choose = lambda: fault
    with make_client() as client:
        if fault == "array" and "nodes" in call.__code__.co_names:
            assert call(client) == []  # an engram may be empty
            return
        with pytest.raises(EngramError) as error:
            call(client)
    assert error.value.is_failure
    assert not error.value.permanent


@pytest.mark.parametrize("fault", ["hang", "drip head", "drip body"])
def test_a_dripping_server_does_not_stretch_the_limit(
    fault: str, make_client: Make, proxy: FaultProxy
) -> None:
    proxy.choose = lambda: fault
    with make_client() as client, pytest.raises(EngramError, match="no whole answer within 1 s"):
        client.nodes()


def test_after_any_failure_the_next_call_is_answered_for_itself(
    make_client: Make, proxy: FaultProxy, engram: Engram
) -> None:
    faults = iter(["too short a length", "", "cut after", "", "html", ""])
    proxy.choose = lambda: next(faults)
    with make_client() as client:
        for version in (1, 2, 3):
            with pytest.raises(EngramError):
                client.nodes()
            client.put_node({**NODE, "version": version})
    assert [write[2] for write in engram.log] == [1, 2, 3]


def test_an_answer_nobody_asked_for_is_not_taken_for_the_next_ones(make_client: Make) -> None:
    """A server that answers twice: the second answer must not confirm a write it has not seen."""
    received = []
    twice = answer(b'{"ok": true}') * 2
    with socket.create_server(("127.0.0.1", 0)) as listener, make_client() as client:
        client._line._host, client._line._port = listener.getsockname()

        def serve() -> None:
            for _ in range(2):
                link, _address = listener.accept()
                # The client leaves with an answer unread, which resets the connection.
                with link, suppress(ConnectionError):
                    received.append(link.recv(65536).split(b" ")[0])
                    link.sendall(twice)
                    link.recv(65536)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client.put_node(NODE)
        client.put_node(NODE)
        client.close()
        thread.join(5)
    assert received == [b"PUT", b"PUT"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.REFUSED),
        (401, Kind.UNAUTHORISED),
        (403, Kind.REFUSED),
        (404, Kind.REFUSED),
        (408, Kind.UNREACHABLE),
        (422, Kind.REFUSED),
        (429, Kind.UNREACHABLE),
        (500, Kind.UNREACHABLE),
        (503, Kind.UNREACHABLE),
        (304, Kind.BAD_ANSWER),
        (307, Kind.BAD_ANSWER),
        (202, Kind.BAD_ANSWER),
    ],
)
def test_statuses_say_whether_it_is_for_good(
    status: int, kind: Kind, make_client: Make, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUBBISH, "status", lambda: answer(b'{"error": "x"}', status=status))
    proxy.choose = lambda: "status"
    with make_client() as client, pytest.raises(EngramError) as error:
        client.put_node(NODE)
    assert error.value.kind is kind
    assert error.value.permanent == (kind is Kind.REFUSED)


def test_a_redirect_is_not_followed(
    make_client: Make, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = answer(b"", status=307, headers=f"Location: {proxy.url}/elsewhere\r\n")
    monkeypatch.setitem(RUBBISH, "there", lambda: there)
    proxy.choose = lambda: "there"
    with make_client() as client, pytest.raises(EngramError):
        client.nodes()
    assert [target for _, target, _ in proxy.requests] == ["/api/nodes?limit=10000"]


def test_a_proxy_of_the_environment_is_not_used(make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with make_client() as client:
        client.health()


def test_nobody_listening_is_unreachable(make_client: Make, proxy: FaultProxy) -> None:
    with make_client() as client:
        client._line._port = 1
        with pytest.raises(EngramError, match="unreachable: no connection"):
            client.health()


def test_a_page_is_no_health(make_client: Make, proxy: FaultProxy) -> None:
    proxy.choose = lambda: "html"
    with make_client() as client, pytest.raises(EngramError, match="a page"):
        client.health()


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "224.0.0.1",
        "0.0.0.0",
        "::",
    ],
)
def test_link_local_and_metadata_addresses_are_refused(address: str) -> None:
    assert refused_reason(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "192.168.0.9", "::1", "fd12::1", "93.184.216.34"]
)
def test_servers_of_ones_own_may_be_called(address: str) -> None:
    assert refused_reason(address) == ""


def test_a_name_that_leads_to_a_metadata_service_is_not_called(
    make_client: Make, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def both(*_: Any, **__: Any) -> list[Any]:
        addresses = [("127.0.0.1", proxy.port), ("169.254.169.254", 80)]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with make_client() as client, pytest.raises(EngramError, match="link-local"):
        client.health()
    assert proxy.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://engram.example",
        "engram.example",
        "http://",
        "http://name:word@engram.example",
        "http://engram.example/?a=b",
        "http://engram.example:99999",
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://engram.example/a b",
    ],
)
def test_an_unfit_address_is_named(url: str) -> None:
    assert url_problem(url)


def test_a_client_without_an_address_says_so(settings: Settings) -> None:
    settings.ENGRAM_URL = ""
    with pytest.raises(EngramError, match="ENGRAM_URL is not set"):
        EngramClient.from_settings()


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [("ENGRAM_URL", "http://169.254.169.254", "memory.E001"), ("ENGRAM_TOKEN", "two words", "memory.E002")],
)
def test_a_setting_that_cannot_be_used_stops_the_start(
    name: str, value: str, check: str, settings: Settings
) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    assert engram_url_is_usable(None) == []
    setattr(settings, name, value)
    assert [message.id for message in engram_url_is_usable(None)] == [check]
