"""Themes by a model: each session is read into notes, notes are brought together into themes, level by level.

No prompt is longer than the budget, and no run makes more than MOST_CALLS calls. What a model wrote about a slice of
a session is kept under a hash of all it was made of, so that nothing is asked twice: a run that was killed goes on,
and one over unchanged talk costs nothing. A note must cite turns that were in its input, a theme notes that were;
what cites none that is true is dropped.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Protocol
from uuid import UUID

from conversations.imprint import json_line, tokens
from conversations.llm import words
from conversations.themes.kept import Found, extracted
from conversations.themes.material import Said
from conversations.themes.naming import clean_name

VERSION = "1"  # of prompts and answers; another one finds none of the kept notes
MOST_CALLS = 400
MOST_NOTES = 8
MOST_THEMES = 12
MOST_TAKEN = 24  # themes in the end
SUMMARY_LENGTH = 400
# What of each turn a model reads, in characters.
PERSON_LENGTH, NEURON_LENGTH = 700, 200
# The share of the prompt's budget that the record takes; the rest is for the instructions and the answer.
RECORD_SHARE = 0.5
TRIES = 2

Says = list[dict[str, Any]]


class Notebook(Protocol):
    """What keeps notes between runs."""

    def find(self, made_of: str) -> Says | None:
        """The notes made of this, if they were kept."""

    def keep(self, made_of: str, says: Says, node_ids: Iterable[UUID]) -> None:
        """Keep them for the next run."""


class Model(Protocol):
    """What is asked: `task` names the prompt, `heavy` says that the record holds turns under a soft bell."""

    name: str

    def ask(self, task: str, message: str, *, heavy: bool) -> dict[str, Any] | None:
        """The JSON object it answers with, None where it gave none. Raises llm.ModelFailure."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a stretch of talk was about, and the turns it rests on. `made_by` is empty where no model wrote it."""

    theme: str
    gist: str
    turns: tuple[Said, ...]
    made_by: str
    rested: bool = False


@dataclass
class Reader:
    """One run's reading. `step(done, total)` is called after each call; it may raise to stop the run."""

    model: Model
    notebook: Notebook
    budget: int
    step: Callable[[int, int], None]
    is_safe: Callable[[str], bool]
    calls: int = 0
    done: int = 0
    total: int = 0

    def themes(self, told: Sequence[Said]) -> list[Found]:
        """The themes of all that was told, the largest first. Raises llm.ModelFailure where the model is away."""
        notes = self._map(told)
        level = 0
        while notes:
            groups = _packed(notes, lambda note: tokens(self._note_line("n000", note)), self._room)
            self.total = self.done + len(groups)
            notes = [theme for group in groups for theme in self._reduce(group)]
            level += 1
            if len(groups) == 1:
                break
        notes.sort(key=lambda note: (-len(note.turns), note.theme))
        # What was said once is a theme only where nothing was said twice.
        notes = [note for note in notes if len(note.turns) > 1] or notes
        return [_as_found(note) for note in notes[:MOST_TAKEN]]

    @property
    def _room(self) -> int:
        return int(self.budget * RECORD_SHARE)

    # --- Map ----------------------------------------------------------------------------------------------------

    def _map(self, told: Sequence[Said]) -> list[Note]:
        """Notes of every slice, in the order they were talked; several short slices are asked about at once."""
        slices = _slices(told, self._room)
        keys = [self._key("map", [_line("", said) for said in part]) for part in slices]
        found = {at: self.notebook.find(key) for at, key in enumerate(keys)}
        unread = [at for at, says in found.items() if says is None]
        calls = _packed(
            unread, lambda at: sum(tokens(_line("t000", said)) for said in slices[at]), self._room
        )
        self.total = len(calls) + 1
        # The newest first: where calls run out, it is the oldest that no model reads.
        for group in reversed(calls):
            for at, says in zip(group, self._read([slices[at] for at in group]), strict=True):
                found[at] = says
                self.notebook.keep(keys[at], says, [said.node_id for said in slices[at]])
            self._stepped()
        return [note for at, part in enumerate(slices) for note in self._notes(found[at] or [], part)]

    def _read(self, slices: Sequence[Sequence[Said]]) -> list[Says]:
        """The notes of each of these slices, which one call is asked for."""
        told = [said for part in slices for said in part]
        names = {f"t{number}": said for number, said in enumerate(told, 1)}
        record = "\n".join(_line(name, said) for name, said in names.items())
        answer = self._ask("themes_map", record, "notes", heavy=any(said.heavy for said in told))
        if answer is None:
            return [_without_model(part) for part in slices]
        made: list[Says] = [[] for _ in slices]
        for one in answer[: MOST_NOTES * len(slices)]:
            cited = _cited(one.get("turns"), names)
            theme, gist = self._text(one.get("theme"), clean_name), self._text(one.get("gist"), _sentence)
            for part, says in zip(slices, made, strict=True):
                own = [said for said in part if said in cited]
                if own and theme and len(says) < MOST_NOTES:
                    turns = [str(said.node_id) for said in own]
                    says.append({"theme": theme, "gist": gist, "turns": turns, "by": self.model.name})
        return made

    def _notes(self, says: Says, part: Sequence[Said]) -> list[Note]:
        known = {str(said.node_id): said for said in part}
        notes = [
            Note(one["theme"], one["gist"], tuple(known[pk] for pk in one["turns"] if pk in known), one["by"])
            for one in says
        ]
        return [note for note in notes if note.turns]

    # --- Reduce -------------------------------------------------------------------------------------------------

    def _reduce(self, notes: Sequence[Note]) -> list[Note]:
        """These notes as themes: by the model, or where it gives no answer, by their names alone."""
        names = {f"n{number}": note for number, note in enumerate(notes, 1)}
        lines = [self._note_line(name, note) for name, note in names.items()]
        key = self._key("reduce", [line + note.made_by for line, note in zip(lines, notes, strict=True)])
        says = self.notebook.find(key)
        if says is None:
            heavy = any(said.heavy for note in notes for said in note.turns)
            answer = self._ask("themes_reduce", "\n".join(lines), "themes", heavy=heavy)
            if answer is None:
                return _by_name(notes)
            says = self._themes(answer, names)
            self.notebook.keep(key, says, {said.node_id for note in notes for said in note.turns})
            self._stepped()
        taken: list[Note] = []
        for one in says:
            parts = [names[name] for name in one["notes"] if name in names]
            if parts:
                taken.append(_together(one["theme"], one["gist"], parts, one["by"], rested=one["rested"]))
        return taken

    def _themes(self, answer: Says, names: dict[str, Note]) -> Says:
        left, says = dict(names), []
        for one in answer[:MOST_THEMES]:
            # Each note in one theme: the first that cites it.
            cited = [name for name in _strings(one.get("notes")) if left.pop(name, None) is not None]
            name, summary = self._text(one.get("name"), clean_name), self._text(one.get("summary"), _sentence)
            if cited and name:
                says.append(
                    {
                        "theme": name,
                        "gist": summary,
                        "notes": cited,
                        "by": self.model.name,
                        "rested": one.get("resolved") is True,
                    }
                )
        return says

    def _note_line(self, name: str, note: Note) -> str:
        return json_line(
            {
                "id": name,
                "theme": note.theme,
                "gist": note.gist,
                "turns": len(note.turns),
                "from": min(said.at for said in note.turns).date().isoformat(),
                "to": max(said.at for said in note.turns).date().isoformat(),
            }
        )

    # --- Asking -------------------------------------------------------------------------------------------------

    def _ask(self, task: str, record: str, holds: str, *, heavy: bool) -> Says | None:
        """The list of objects under `holds`; None where two answers held none, or no more calls are left."""
        for _ in range(TRIES):
            if self.calls >= MOST_CALLS:
                return None
            self.calls += 1
            answer = self.model.ask(task, record, heavy=heavy)
            listed = answer.get(holds) if answer is not None else None
            if isinstance(listed, list):
                return [one for one in listed if isinstance(one, dict)]
        return None

    def _stepped(self) -> None:
        self.done += 1
        self.step(self.done, max(self.total, self.done))

    def _text(self, value: object, clean: Callable[[str], str]) -> str:
        """What the model wrote as one clean line; nothing of what may not be shown."""
        text = clean(value) if isinstance(value, str) else ""
        return text if text and self.is_safe(text) else ""

    def _key(self, kind: str, lines: Sequence[str]) -> str:
        said = "\n".join([VERSION, kind, self.model.name, *lines])
        return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=32).hexdigest()


def _slices(told: Sequence[Said], room: int) -> list[list[Said]]:
    """Each thread whole, or cut where it is longer than the room. A turn more changes the last slice alone."""
    slices: list[list[Said]] = []
    left = 0
    for said in told:
        cost = tokens(_line("t000", said))
        if not slices or slices[-1][-1].thread != said.thread or cost > left:
            slices.append([])
            left = room
        slices[-1].append(said)
        left -= cost
    return slices


def _packed(items: Sequence[Any], cost: Callable[[Any], int], room: int) -> list[list[Any]]:
    """Neighbours together as long as they fit; one that alone is larger stands by itself."""
    groups: list[list[Any]] = []
    left = 0
    for item in items:
        needed = cost(item)
        if not groups or needed > left:
            groups.append([])
            left = room
        groups[-1].append(item)
        left -= needed
    return groups


def _line(name: str, said: Said) -> str:
    record = {
        "id": name,
        "date": said.at.astimezone(UTC).date().isoformat(),
        "person": said.q[:PERSON_LENGTH],
        "neuron": said.a[:NEURON_LENGTH],
    }
    return json_line({key: value for key, value in record.items() if value})


def _cited(value: object, names: dict[str, Said]) -> set[Said]:
    return {names[name] for name in _strings(value) if name in names}


def _strings(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _sentence(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_LENGTH else line[:SUMMARY_LENGTH].rsplit(" ", 1)[0] + "…"


def _without_model(part: Sequence[Said]) -> Says:
    """A slice that no model read: what it was about by its own terms."""
    found = extracted([part])[0]
    return [
        {
            "theme": found.name,
            "gist": " ".join(text for _, text in found.quotes[:1]),
            "turns": [str(said.node_id) for said in part],
            "by": "",
        }
    ]


def _by_name(notes: Sequence[Note]) -> list[Note]:
    """Notes of one name together, the largest MOST_THEMES of them."""
    named: dict[str, list[Note]] = {}
    for note in notes:
        named.setdefault(" ".join(words.keys(note.theme)), []).append(note)
    together = [_together(held[0].theme, held[0].gist, held, held[0].made_by) for held in named.values()]
    return sorted(together, key=lambda note: -len(note.turns))[:MOST_THEMES]


def _together(theme: str, gist: str, notes: Sequence[Note], made_by: str, *, rested: bool = False) -> Note:
    turns = {said.node_id: said for note in notes for said in note.turns}
    in_order = tuple(sorted(turns.values(), key=lambda said: (said.at, said.node_id)))
    return Note(theme, gist, in_order, made_by, rested)


def _as_found(note: Note) -> Found:
    """A theme with the person's own sentences beside what the model wrote."""
    plain = extracted([note.turns])[0]
    if not note.made_by:
        return plain
    return replace(
        plain,
        name=note.theme,
        summary=note.gist,
        made_by=note.made_by,
        rested=note.rested or plain.rested,
    )
