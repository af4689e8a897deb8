"""The bundled servers: started once, shared, stopped by the last, and back after any kind of death."""

import contextlib
import os

import psycopg
import pytest

from neuron_site.embedded import socket_folder
from tests.site.conftest import Installation, kill_and_wait, leave, own_folder
from tests.stack import wait_for

pytestmark = pytest.mark.processes

# The test run itself does not wait for the disk; here it is what is tested.
DURABLE = "-c synchronous_commit=on"


def servers(here: Installation) -> tuple[int, int]:
    return here.server("postgres"), here.server("valkey")


def test_two_at_once_share_the_servers_and_the_last_one_stops_them(installation: Installation) -> None:
    first = installation.start("-c", "from neuron_site import embedded; embedded.ensure(); input()")
    second = installation.hold()
    running = servers(installation)
    assert all(running)
    leave(first)
    assert servers(installation) == running
    leave(second)
    assert servers(installation) == (0, 0)


def test_the_servers_of_a_killed_owner_are_joined_and_not_doubled(installation: Installation) -> None:
    owner = installation.hold()
    running = servers(installation)
    kill_and_wait(owner.pid)
    heir = installation.hold()
    assert servers(installation) == running
    leave(heir)
    assert servers(installation) == (0, 0)


def test_after_everything_was_killed_the_next_start_finds_the_data(installation: Installation) -> None:
    owner = installation.hold()
    sockets = str(socket_folder(installation.folder))
    with psycopg.connect(
        host=sockets, user="postgres", dbname="neuron", autocommit=True, options=DURABLE
    ) as link:
        link.execute("CREATE TABLE kept AS SELECT 'still here' AS word")
    kill_and_wait(owner.pid, *servers(installation))
    again = installation.hold()
    with psycopg.connect(
        host=sockets, user="postgres", dbname="neuron", autocommit=True, options=DURABLE
    ) as link:
        assert link.execute("SELECT word FROM kept").fetchone() == ("still here",)
    leave(again)
    assert servers(installation) == (0, 0)


def test_the_servers_log_has_what_failed_but_not_what_people_said(installation: Installation) -> None:
    owner = installation.hold()
    sockets = str(socket_folder(installation.folder))
    with psycopg.connect(host=sockets, user="postgres", dbname="neuron", autocommit=True) as link:
        link.execute("CREATE TABLE told (id int PRIMARY KEY, said text CHECK (said <> 'zebracanary'))")
        for _ in range(2):
            with contextlib.suppress(psycopg.IntegrityError):
                link.execute("INSERT INTO told VALUES (1, 'zebracanary')")
    log = (installation.folder / "postgres.log").read_text()
    assert "told_said_check" in log
    assert "zebracanary" not in log
    leave(owner)


def test_a_deep_folder_with_spaces_and_marks_works() -> None:
    with own_folder() as top:
        deep = top / 'a folder\'s own, 100% "deep"' / ("x" * 60) / ("y" * 60)
        assert len(os.fsencode(deep)) > 107
        here = Installation(deep)
        try:
            leave(here.hold())
            assert servers(here) == (0, 0)
        finally:
            here.clear()


def test_the_secret_key_is_made_once_and_closed_to_others(installation: Installation) -> None:
    leave(installation.hold())
    path = installation.folder / "secret_key"
    key = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    leave(installation.hold())
    assert path.read_text() == key
    wait_for(lambda: servers(installation) == (0, 0), what="the servers' end")
