"""The stored file of an export, entry by entry: JSON or zip, streamed, with limits on what one entry may hold."""

import codecs
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import ijson

# A chat is seldom over 5 MB; beyond this one entry is skipped rather than held in memory.
LARGEST_ENTRY = 64 * 2**20
DEEPEST = 200
LARGEST_UNPACKED = 8 * 2**30
MOST_MEMBERS = 100_000
_CHUNK = 64 * 1024
_LONGEST_RUN = 4 * _CHUNK
_SHARD = re.compile(r"^conversations(?:[-_ ]?\d+)?\.json$", re.IGNORECASE)
_LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class NotAnExport(Exception):
    """Nothing of the file can be read; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the export, or what is wrong at this place. `read_bytes` of `all_bytes` are behind it."""

    position: int
    value: object
    error: str
    read_bytes: int
    all_bytes: int


def entries(file: IO[bytes], size: int) -> Iterator[Entry]:
    """Every entry in the file's order, always at the same positions. Raises NotAnExport where there is none at all."""
    file.seek(0)
    head = file.read(4)
    file.seek(0)
    if head.startswith(b"PK"):
        found = _from_zip(file)
    elif size == 0:
        raise NotAnExport("The file is empty.")
    else:
        found = ((value, trouble, read, size) for value, trouble, read in _from_json(file))
    for position, (value, trouble, read, everything) in enumerate(found):
        yield Entry(position, value, trouble, min(read, everything), everything)


_NEITHER = "This is not a chat export: it is neither JSON nor a zip file with conversations.json in it."


# --- Zip ------------------------------------------------------------------------------------------------------


def _from_zip(file: IO[bytes]) -> Iterator[tuple[object, str, int, int]]:
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGE as error:
        raise NotAnExport("The zip file is damaged, perhaps not downloaded in full.") from error
    with archive:
        members = _members(archive)
        everything = sum(member.file_size for member in members)
        if everything > LARGEST_UNPACKED:
            raise NotAnExport("Unpacked, the zip file would be larger than 8 GB.")
        before = 0
        for member in members:
            for value, trouble, read in _from_member(archive, member):
                yield value, trouble, before + read, everything
            before += member.file_size


def _from_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[tuple[object, str, int]]:
    try:
        with archive.open(member) as packed:
            yield from _from_json(packed)
    except NotAnExport:
        yield None, f"{member.filename.rsplit('/', 1)[-1][:100]} in the zip file is not JSON.", 0
    except _DAMAGE:
        yield None, f"{member.filename.rsplit('/', 1)[-1][:100]} in the zip file is damaged or locked.", 0


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The parts that hold chats, in order: conversations.json, its numbered shards, else every JSON file."""
    listed = archive.infolist()
    if len(listed) > MOST_MEMBERS:
        raise NotAnExport("The zip file holds too many files to be a chat export.")
    named = [
        (one.filename.rsplit("/", 1)[-1], one)
        for one in listed
        if not one.is_dir()
        and "__MACOSX/" not in one.filename
        and not one.filename.rsplit("/", 1)[-1].startswith(".")
    ]
    shards = [one for name, one in named if _SHARD.match(name)]
    chosen = shards or [one for name, one in named if name.lower().endswith(".json")]
    if not chosen:
        raise NotAnExport("There is no conversations.json in the zip file.")
    return sorted(chosen, key=lambda one: _numbered(one.filename))


def _numbered(name: str) -> list[tuple[int, str]]:
    """So that part 10 follows part 9."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


# --- JSON -----------------------------------------------------------------------------------------------------


def _from_json(file: IO[bytes]) -> Iterator[tuple[object, str, int]]:
    """A list of entries, {"conversations": [entries]}, or one entry alone, by its first few bytes."""
    reader = _CleanReader(file)
    parser = ijson.basic_parse(reader, buf_size=_CHUNK)
    begun = False
    try:
        kind, _ = next(parser)
        if kind == "start_array":
            for value, error in _items(parser, reader):
                begun = True
                yield value, error, reader.consumed
        elif kind == "start_map":
            yield from _from_object(parser, reader)
            begun = True
        else:
            raise NotAnExport(_NEITHER)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        if not begun and reader.consumed <= _CHUNK and not _looks_like_json(reader.head):
            raise NotAnExport(_NEITHER) from error
        yield (
            None,
            "The file is damaged from here on, perhaps not downloaded in full. What came before is kept.",
            (reader.consumed),
        )


def _looks_like_json(head: bytes) -> bool:
    return head.lstrip()[:1] in (b"[", b"{")


def _from_object(
    parser: Iterator[tuple[str, Any]], reader: "_CleanReader"
) -> Iterator[tuple[object, str, int]]:
    """The members of the outermost object: its `conversations` one by one, or all of it as a single entry."""
    alone: dict[str, object] = {}
    budget = _Budget()
    streamed = False
    trouble = ""
    for event, name in parser:
        if event == "end_map":
            break
        first, scalar = next(parser)
        if name == "conversations" and first == "start_array":
            streamed = True
            for value, error in _items(parser, reader):
                yield value, error, reader.consumed
            continue
        value, error = _build(first, scalar, parser, budget)
        trouble = trouble or error
        alone[name] = value
    for _ in parser:
        pass  # anything after the end is an error the parser raises
    if not streamed:
        yield (None, trouble, reader.consumed) if trouble else (alone, "", reader.consumed)


def _items(parser: Iterator[tuple[str, Any]], reader: "_CleanReader") -> Iterator[tuple[object, str]]:
    """Each item of the array that has just begun."""
    for event, scalar in parser:
        if event == "end_array":
            return
        yield _build(event, scalar, parser, _Budget())


class _Budget:
    """What one entry may still take of memory; events count as the objects they become."""

    def __init__(self) -> None:
        self.left = LARGEST_ENTRY

    def spend(self, value: object) -> bool:
        self.left -= 100 + (len(value) if isinstance(value, str) else 0)
        return self.left >= 0


def _build(event: str, scalar: Any, parser: Iterator[tuple[str, Any]], budget: _Budget) -> tuple[object, str]:
    """One value from its first event on. Too large or too deep: read past it, and say so."""
    if event not in ("start_map", "start_array"):
        return (scalar, "") if budget.spend(scalar) else (None, _TOO_LARGE)
    builder = ijson.ObjectBuilder()
    builder.event(event, scalar)
    depth, error = 1, ""
    while depth:
        event, scalar = next(parser)
        if event in ("start_map", "start_array"):
            depth += 1
        elif event in ("end_map", "end_array"):
            depth -= 1
        if error:
            continue
        if depth > DEEPEST:
            error = "It is nested too deeply to be a chat."
        elif not budget.spend(scalar):
            error = _TOO_LARGE
        else:
            builder.event(event, scalar)
    return (None, error) if error else (builder.value, "")


_TOO_LARGE = "It is larger than one chat may be."


class _CleanReader:
    """Bytes as strict JSON parsers take them: no BOM, valid UTF-8, and U+FFFD for NUL and half surrogate pairs."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._held = b""
        self._ended = False
        self.consumed = 0
        self.head = b""

    def read(self, size: int = -1) -> bytes:
        """Some bytes, or none at the end; the size is a hint, but for 0, by which the parser asks for the type."""
        while size and not self._ended:
            raw = self._source.read(_CHUNK)
            self.consumed += len(raw)
            self._ended = not raw
            text = self._held + self._decoder.decode(raw, final=not raw).encode().replace(
                b"\0", b"\xef\xbf\xbd"
            )
            self._held = b""
            if not self._ended:
                # An escape may go on in the next chunk: keep back from the last run of backslashes near the end.
                cut = _escape_at_end(text)
                text, self._held = text[:cut], text[cut:]
            if b"\\ud" in text or b"\\uD" in text:
                text = _LONE_SURROGATE.sub(_whole_pair, text)
            self.head = self.head or text[:64]
            if text:
                return text
        return b""


def _escape_at_end(text: bytes) -> int:
    """Where the part begins that cannot be judged yet; a pair of escapes is 12 bytes."""
    cut = text.find(b"\\", max(0, len(text) - 12))
    if cut < 0 or len(text) > _LONGEST_RUN:  # so long a run of backslashes is no chat
        return len(text)
    cut = _run_begins(text, cut)
    # The first half of a pair may stand right before.
    if re.fullmatch(rb"\\u[dD][89abAB][0-9a-fA-F]{2}", text[max(0, cut - 6) : cut]):
        cut = _run_begins(text, cut - 6)
    return cut


def _run_begins(text: bytes, at: int) -> int:
    while at > 0 and text[at - 1 : at] == b"\\":
        at -= 1
    return at


def _whole_pair(found: re.Match[bytes]) -> bytes:
    return found.group(0) if found.group(2) else found.group(1) + b"\\ufffd"
