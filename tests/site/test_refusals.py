"""What cannot work is refused at the start: one line that says what to do, exit status 1, nothing changed."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.site.conftest import Installation

pytestmark = pytest.mark.processes

NOWHERE = "postgres://neuron@127.0.0.1:1/neuron"


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "var")


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that was said."""
    assert done.returncode == 1, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def up(here: Installation, **variables: str) -> str:
    given = {"DATABASE_URL": NOWHERE, "REDIS_URL": "redis://127.0.0.1:1/0", **variables}
    return refusal(here.manage("up", **given))


def test_a_taken_port(here: Installation) -> None:
    with socket.create_server(("127.0.0.1", here.port)):
        assert f"Port {here.port} is taken" in up(here)


def test_an_address_where_no_database_listens(here: Installation) -> None:
    assert "Check DATABASE_URL" in up(here)


def test_a_database_that_never_answers(here: Installation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        said = up(here, DATABASE_URL=f"postgres://neuron@127.0.0.1:{port}/neuron")
    assert "does not answer" in said


def test_a_postgres_without_pgvector(here: Installation) -> None:
    """A session that looks for extensions where there are none sees what a server without them offers."""
    options = quote("-c extension_control_path=/nowhere", safe="")
    url = os.environ["DATABASE_URL"]
    said = up(here, DATABASE_URL=f"{url}{'&' if '?' in url else '?'}options={options}")
    assert "lacks vector, btree_gin, pg_trgm" in said


def test_a_broker_that_does_not_answer(here: Installation) -> None:
    assert "Check REDIS_URL" in up(here, DATABASE_URL=os.environ["DATABASE_URL"])


def test_a_setting_that_makes_no_sense(here: Installation) -> None:
    assert "PORT must be a whole number" in up(here, PORT="http")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no small file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    here = Installation(small_disk)
    assert "free some space" in refusal(here.manage("up"))
    assert not (small_disk / "postgres" / "PG_VERSION").exists()
    here.clear()
    assert "Free some space" in up(here)
