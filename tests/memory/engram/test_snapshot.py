"""A snapshot: complete, verified to the last byte, and the same engram again when it is brought back."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from memory.engram.snapshot import BadSnapshot, import_snapshot, verify, write_snapshot
from memory.engram.wire import write_edge, write_node
from memory.models import MemoryEdge, MemoryNode, MirrorJob, Tombstone
from memory.services import connect, delete_nodes, overwrite_node
from tests.memory.recalling import FILLER, remember

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MOMENT = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
SHARE = st.floats(0, 1)
NODE = st.fixed_dictionaries(
    {
        "node_type": st.sampled_from(["Conversation", "Knowledge", "Theme", "Dream of its own"]),
        "tier": st.sampled_from(MemoryNode.Tier.values),
        "label": TEXT,
        "content": TEXT,
        "payload": st.dictionaries(TEXT, VALUE, max_size=3),
        "tags": st.lists(TEXT, max_size=3),
        "salience": SHARE,
        "importance": SHARE,
        "confidence": SHARE,
        "session_id": st.none() | st.uuids(),
        "turn_index": st.none() | st.integers(0, 2**31 - 1),
        "occurred_at": MOMENT,
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "version": st.integers(1, 2**31 - 1),
    }
)


def snapshot_of(owner: User) -> bytes:
    return "".join(write_snapshot(owner)).encode()


def contents(owner: User) -> tuple[dict[str, Any], dict[str, Any]]:
    """The engram by id, as it goes over the wire."""
    nodes = MemoryNode.objects.owned_by(owner).exclude(node_type="BellEvent")
    return (
        {str(node.pk): write_node(node) for node in nodes},
        {str(edge.pk): write_edge(edge) for edge in MemoryEdge.objects.owned_by(owner)},
    )


def emptied(owner: User) -> None:
    MemoryNode.objects.owned_by(owner).delete()
    Tombstone.objects.all().delete()


@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    nodes=st.lists(NODE, max_size=6),
    joined=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6),
)
def test_any_engram_comes_back_equal(
    owner: User, nodes: list[dict[str, Any]], joined: list[tuple[int, int]]
) -> None:
    with transaction.atomic():
        made = [MemoryNode.objects.create(owner=owner, **values) for values in nodes]
        for source, target in joined:
            if source != target and max(source, target) < len(made):
                connect(source=made[source], target=made[target], kind="mentions", weight=source / 7)
        before, file = contents(owner), snapshot_of(owner)
        emptied(owner)
        taken = import_snapshot(owner=owner, file=io.BytesIO(file))
        assert contents(owner) == before
        assert (taken.nodes, taken.edges) == (len(before[0]), len(before[1]))
        # Once more it changes nothing.
        assert import_snapshot(owner=owner, file=io.BytesIO(file)).changed == 0
        emptied(owner)


@pytest.fixture
def engram(owner: User) -> User:
    remember(owner, *FILLER)
    return owner


def test_it_is_json_of_everything_but_bells_and_state_events(engram: User) -> None:
    for kind in ("BellEvent", "StateEvent"):
        MemoryNode.objects.create(owner=engram, node_type=kind, content="canaryword")
    file = snapshot_of(engram)
    found = json.loads(file)
    assert b"canaryword" not in file
    assert (
        found["counts"]
        == {"nodes": len(found["nodes"]), "edges": len(found["edges"])}
        == {"nodes": 6, "edges": 5}
    )
    summary = verify(io.BytesIO(file))
    assert (summary.person, summary.nodes, summary.edges) == ("owner", 6, 5)


def test_nobody_elses_is_in_it(engram: User, other: User) -> None:
    assert json.loads(snapshot_of(other))["nodes"] == []


def _swap_a_letter(file: bytes) -> bytes:
    return file.replace(b"Lisbon", b"London", 1)


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda file: b"",
    "another file": lambda file: b'{"format": "neuron-export-1", "sessions": []}',
    "not json": lambda file: b"\x00\xff" * 100,
    "cut": lambda file: file[: len(file) // 2],
    "without its end": lambda file: file[: file.rindex(b'],"counts"')],
    "a letter changed": _swap_a_letter,
    "a line left out": lambda file: b"\n".join(line for at, line in enumerate(file.split(b"\n")) if at != 2),
    "a line twice": lambda file: file.replace(b"\n", b"\n" + file.split(b"\n")[1] + b"\n", 1),
    "something behind its end": lambda file: file + b"{}\n",
    "indented": lambda file: json.dumps(json.loads(file), indent=2).encode(),
    "another count": lambda file: file.replace(b'"counts":{"nodes":6', b'"counts":{"nodes":7'),
    "no hash": lambda file: file[: file.rindex(b',"sha256"')] + b"}\n",
    "another version": lambda file: file.replace(b"neuron-engram-1", b"neuron-engram-9"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_is_not_as_it_was_written_changes_nothing(how: str, engram: User) -> None:
    file = SPOILT[how](snapshot_of(engram))
    overwrite_node(node=MemoryNode.objects.owned_by(engram).earliest("occurred_at"), content="since then")
    before = contents(engram)
    with pytest.raises(BadSnapshot, match=r"Nothing was changed"):
        import_snapshot(owner=engram, file=io.BytesIO(file))
    assert contents(engram) == before


def test_what_is_newer_here_stays_and_what_was_deleted_comes_back_above_its_tombstone(
    engram: User, settings: Settings
) -> None:
    settings.ENGRAM_URL = "http://127.0.0.1:9"
    file = snapshot_of(engram)
    first, second, *_ = MemoryNode.objects.owned_by(engram).order_by("occurred_at")
    overwrite_node(node=first, content="since then")
    delete_nodes(owner=engram, node_ids=[second.pk])
    MirrorJob.objects.all().delete()
    taken = import_snapshot(owner=engram, file=io.BytesIO(file))
    first.refresh_from_db()
    assert first.content == "since then"
    back = MemoryNode.objects.get(pk=second.pk)
    assert (back.version, back.content, taken.nodes) == (second.version + 1, second.content, 1)
    assert not Tombstone.objects.exists()
    # The remote hears of it: as of any change of ours.
    assert MirrorJob.objects.filter(subject_id=second.pk, subject_version=back.version).exists()


def test_what_belongs_to_another_account_is_refused_whole(engram: User, other: User) -> None:
    file = snapshot_of(engram)
    with pytest.raises(BadSnapshot, match="another account"):
        import_snapshot(owner=other, file=io.BytesIO(file))
    assert not MemoryNode.objects.owned_by(other).exists()


def test_the_commands_write_and_read_it(
    engram: User, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, path = contents(engram), tmp_path / "memory.json"
    call_command("export_engram", "owner", path)
    assert "6 nodes and 5 edges" in capsys.readouterr().out
    assert path.stat().st_mode & 0o077 == 0
    emptied(engram)
    call_command("import_engram", "owner", path)
    assert contents(engram) == before
    for words in (("export_engram", "owner", path), ("export_engram", "nobody", tmp_path / "x")):
        with pytest.raises(CommandError):
            call_command(*words)
    path.write_bytes(_swap_a_letter(path.read_bytes()))
    with pytest.raises(CommandError, match="changed or damaged"):
        call_command("import_engram", "owner", path)
    with pytest.raises(CommandError):
        call_command("import_engram", "owner", tmp_path / "not there")


def test_the_page_gives_and_takes_it(engram: User, owner_client: Client, other_client: Client) -> None:
    page = owner_client.get("/settings/data/")
    assert b"6 memories" in page.content
    file = b"".join(owner_client.get("/settings/data/memory/"))
    assert verify(io.BytesIO(file)).nodes == 6
    assert json.loads(b"".join(other_client.get("/settings/data/memory/")))["nodes"] == []
    assert json.loads(b"".join(owner_client.get("/settings/data/conversations/")))["person"] == "owner"
    before = contents(engram)
    emptied(engram)
    answer = owner_client.post(
        "/settings/data/", {"snapshot": SimpleUploadedFile("memory.json", file)}, follow=True
    )
    assert b"6 memories and 5 connections came back" in answer.content
    assert contents(engram) == before
    spoilt = SimpleUploadedFile("memory.json", _swap_a_letter(file))
    answer = owner_client.post("/settings/data/", {"snapshot": spoilt})
    assert answer.status_code == 422
    assert b"changed or damaged" in answer.content


def test_an_edge_to_what_was_not_written_is_left_out(engram: User) -> None:
    bell = MemoryNode.objects.create(owner=engram, node_type="BellEvent", content="x")
    connect(source=MemoryNode.objects.owned_by(engram).exclude(pk=bell.pk)[0], target=bell, kind="mentions")
    assert str(bell.pk) not in snapshot_of(engram).decode()
