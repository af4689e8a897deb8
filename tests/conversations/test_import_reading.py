"""The file of an export: its encodings, its containers, its damage. No database."""

import io
import json
import zipfile
from typing import Any

import pytest

from conversations.importers import reading
from conversations.importers.reading import NotAnExport, entries
from tests.conversations.exports import as_zip, walk


def values(content: bytes) -> list[Any]:
    found = list(entries(io.BytesIO(content), len(content)))
    assert [entry.position for entry in found] == list(range(len(found)))
    assert all(0 <= entry.read_bytes <= entry.all_bytes for entry in found)
    return [entry.error or entry.value for entry in found]


ONE, TWO, THREE = ({"id": number} for number in "123")


def test_a_list_a_wrapper_and_one_chat_alone() -> None:
    assert values(json.dumps([ONE, TWO]).encode()) == [ONE, TWO]
    assert values(json.dumps({"v": {"a": [1]}, "conversations": [ONE, TWO], "w": 2}).encode()) == [ONE, TWO]
    assert values(json.dumps({"mapping": {"a": ONE}, "title": "x"}).encode()) == [
        {"mapping": {"a": ONE}, "title": "x"}
    ]


def test_a_byte_order_mark_and_windows_line_ends() -> None:
    content = b"\xef\xbb\xbf" + json.dumps([ONE], indent=1).replace("\n", "\r\n").encode()
    assert values(content) == [ONE]


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"a\udc00", "a\ufffd"),
        (rb"\ud83d\ude00", "😀"),
        (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
        (rb"\\ud800", "\\ud800"),
        (rb"\\\ud800", "\\\ufffd"),
        (rb"\\\\ud83d", "\\\\ud83d"),
        (b"a\xff\xfeb", "a\ufffd\ufffdb"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"a\x00b", "a\ufffdb"),
    ],
)
def test_what_no_database_holds_is_replaced_wherever_it_stands(
    escaped: bytes, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b'["' + escaped + b'", "' + b"x" * 20 + b'", "\\ud83d\\ude00"]'
    for size in (1, 2, 3, 5, 7, 11, 64, 65536):
        monkeypatch.setattr(reading, "_CHUNK", size)
        assert values(content) == [plain, "x" * 20, "😀"], size


def test_a_zip_with_one_file_with_shards_and_with_other_files_beside() -> None:
    assert values(as_zip({"conversations.json": json.dumps([ONE]).encode(), "user.json": b"{}"}).read()) == [
        ONE
    ]
    shards = {
        f"my export/conversations-{number:03}.json": json.dumps([{"id": number}]).encode()
        for number in (0, 1, 2, 10)
    }
    others = {
        "export_manifest.json": b"{}",
        "chat.html": b"<html>",
        "__MACOSX/._conversations-000.json": b"\0",
    }
    assert values(as_zip({**others, **dict(reversed(shards.items()))}).read()) == [
        {"id": n} for n in (0, 1, 2, 10)
    ]


def test_a_zip_of_single_chats() -> None:
    assert values(as_zip({"a.json": json.dumps(ONE).encode(), "b.txt": b"x"}).read()) == [ONE]


def test_a_damaged_shard_costs_only_itself() -> None:
    content = as_zip(
        {
            "conversations-000.json": json.dumps([ONE]).encode(),
            "conversations-001.json": b'[{"id": "2"}, {"id":',
            "conversations-002.json": b"not json",
            "conversations-003.json": json.dumps([THREE]).encode(),
        }
    ).read()
    first, second, cut, odd, last = values(content)
    assert (first, second, last) == (ONE, TWO, THREE)
    assert "damaged" in cut
    assert "conversations-002.json" in odd


def test_a_spoilt_member_of_a_zip_costs_only_itself() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("conversations-000.json", json.dumps([ONE]))
        archive.writestr("conversations-001.json", json.dumps([TWO]))
    content = packed.getvalue().replace(b'[{"id": "1"}]', b'[{"id": "9"}]')  # its checksum is wrong now
    found = values(content)
    assert found[-1] == TWO
    assert any(isinstance(value, str) and "damaged" in value for value in found)


def test_a_cut_file_keeps_what_came_before() -> None:
    content = json.dumps([walk("a"), walk("b"), walk("c")]).encode()
    first, second, damage = values(content[:-200])
    assert first["id"] == "a"
    assert second["id"] == "b"
    assert "damaged from here on" in damage


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   \n",
        b"hello there",
        b"<html></html>",
        b"3",
        b'"text"',
        b"\x89PNG\r\n",
        b"PK\x03\x04 cut off",
        b"\xff\xd8" * 9,
    ],
)
def test_what_is_no_export_is_said_to_be_none(content: bytes) -> None:
    with pytest.raises(NotAnExport):
        values(content)


def test_a_zip_without_chats_is_no_export() -> None:
    with pytest.raises(NotAnExport, match="no conversations"):
        values(as_zip({"photo.jpg": b"x"}).read())


def test_a_zip_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_UNPACKED", 1_000_000)
    bomb = as_zip({f"conversations-{number}.json": b" " * 600_000 for number in range(2)}).read()
    assert len(bomb) < 5_000
    with pytest.raises(NotAnExport, match="larger"):
        values(bomb)
    monkeypatch.setattr(reading, "MOST_MEMBERS", 1)
    with pytest.raises(NotAnExport, match="too many"):
        values(bomb)


def test_one_entry_too_large_or_too_deep_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_ENTRY", 100_000)
    deep = b"[" * 100_000 + b"]" * 100_000
    large = json.dumps(["x" * 200_000]).encode()
    content = b"[" + b",".join([json.dumps(ONE).encode(), deep, large, json.dumps(TWO).encode()]) + b"]"
    first, too_deep, too_large, last = values(content)
    assert (first, last) == (ONE, TWO)
    assert "deep" in too_deep
    assert "larger" in too_large


def test_numbers_no_machine_holds_are_only_numbers() -> None:
    assert values(b'[{"n": 123456789012345678901234567890}, {"n": 2}]')[1] == {"n": 2}
    assert len(values(b'[{"n": 1e400}, {"n": 2}]')) == 2


def test_position_and_progress_do_not_depend_on_who_reads() -> None:
    content = json.dumps([walk(str(number), questions=40) for number in range(50)]).encode()
    first = [(entry.position, entry.read_bytes) for entry in entries(io.BytesIO(content), len(content))]
    again = [(entry.position, entry.read_bytes) for entry in entries(io.BytesIO(content), len(content))]
    assert first == again
    assert first[10][1] < len(content) // 2
