"""Importing as a whole: from an upload to sessions, memory and a report."""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from conversations import imported, importing
from conversations.importers import reading
from conversations.models import ImportedChat, ImportJob, Session, Turn
from conversations.services import accept_turn
from memory.embedding import EmbedderUnavailable
from memory.models import MemoryEdge, MemoryNode
from safety.models import BellEvent, RiskState
from tests.conversations.exports import START, as_json, as_zip, chat, message, walk

BEGAN = datetime.fromtimestamp(START, tz=UTC)
CRISIS = "I am going to kill myself tonight, canaryword"


@pytest.fixture(autouse=True)
def files_of_this_test(tmp_path: Path, settings: Settings) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {**settings.STORAGES["default"], "OPTIONS": {"location": tmp_path}},
    }


def bring(owner: User, upload: ContentFile) -> ImportJob:
    job = importing.start_import(owner=owner, upload=upload)
    assert importing.run(job.pk)
    job.refresh_from_db()
    return job


def outcomes(job: ImportJob) -> list[str]:
    return [line.outcome for line in job.chats.all()]


def test_chats_become_sessions_with_the_dates_they_had(owner: User) -> None:
    job = bring(owner, as_json([walk("a"), walk("b", questions=3, start=START + 86_400)]))
    assert (job.state, job.error, job.done_bytes) == ("done", "", job.size)
    newest, oldest = Session.objects.for_owner(owner).newest_first()
    assert (newest.title, newest.source, newest.next_index) == ("Walk b", "chatgpt", 3)
    assert newest.last_turn_at == BEGAN + timedelta(days=1, minutes=2)
    assert oldest.created_at == BEGAN
    turns = list(oldest.turns.order_by("turn_index"))
    assert [(turn.turn_index, turn.q, turn.a, turn.status) for turn in turns] == [
        (0, "Question 0 of a", "Answer 0 of a", "complete"),
        (1, "Question 1 of a", "Answer 1 of a", "complete"),
    ]
    assert turns[1].created_at == BEGAN + timedelta(minutes=1)
    assert turns[1].answered_at == BEGAN + timedelta(minutes=1, seconds=20)


def test_each_exchange_is_remembered_under_its_own_date_and_follows_the_one_before(owner: User) -> None:
    bring(owner, as_json([walk("a", questions=3)]))
    nodes = list(MemoryNode.objects.for_owner(owner).conversations().order_by("turn_index"))
    assert [node.occurred_at for node in nodes] == [BEGAN + timedelta(minutes=n) for n in range(3)]
    assert nodes[0].payload["source"] == "chatgpt"
    assert nodes[0].payload["q"] == "Question 0 of a"
    edges = MemoryEdge.objects.filter(owner=owner).values_list("source", "target")
    assert set(edges) == {(nodes[1].pk, nodes[0].pk), (nodes[2].pk, nodes[1].pk)}
    history = MemoryNode.objects.get(owner=owner, node_type="History")
    assert "Question 2 of a" in history.content


def test_importing_twice_adds_nothing(owner: User) -> None:
    first = bring(owner, as_json([walk("a"), walk("b")]))
    again = bring(owner, as_zip({"conversations.json": json.dumps([walk("a"), walk("b")]).encode()}))
    assert outcomes(first) == ["imported", "imported"]
    assert outcomes(again) == ["unchanged", "unchanged"]
    assert again.state == "done"
    assert Session.objects.count() == 2
    assert Turn.objects.count() == MemoryNode.objects.conversations().count() == 4


def test_a_later_export_adds_what_is_new_and_completes_what_had_grown(owner: User) -> None:
    entry = walk("a", questions=3)
    bring(owner, as_json([walk("a", questions=2)]))
    keys = list(entry["mapping"])
    entry["mapping"][keys[4]]["message"]["content"]["parts"] = ["Answer 1 of a, written to its end"]
    job = bring(owner, as_json([entry]))
    (line,) = job.chats.all()
    assert (line.outcome, line.turns_added) == ("updated", 1)
    assert "1 answer had grown" in line.reason
    session = Session.objects.get()
    assert [turn.a for turn in session.turns.order_by("turn_index")] == [
        "Answer 0 of a",
        "Answer 1 of a, written to its end",
        "Answer 2 of a",
    ]
    assert session.next_index == 3
    node = MemoryNode.objects.conversations().get(turn_index=1)
    assert "written to its end" in node.content
    assert node.version == 2


def test_a_chat_that_went_on_in_neuron_keeps_both(owner: User) -> None:
    bring(owner, as_json([walk("a")]))
    session = Session.objects.get()
    accept_turn(session=session, text="And now?", client_key="k", action="pass")
    bring(owner, as_json([walk("a", questions=3)]))
    session.refresh_from_db()
    assert list(session.turns.order_by("turn_index").values_list("q", flat=True)) == [
        "Question 0 of a",
        "Question 1 of a",
        "And now?",
        "Question 2 of a",
    ]
    assert session.next_index == 4
    assert session.last_turn_at > timezone.now() - timedelta(minutes=1)


def test_two_people_may_bring_the_same_file(owner: User, other: User) -> None:
    bring(owner, as_json([walk("a")]))
    bring(other, as_json([walk("a")]))
    assert Session.objects.for_owner(owner).count() == Session.objects.for_owner(other).count() == 1
    assert MemoryNode.objects.for_owner(other).conversations().count() == 2


def test_one_bad_entry_costs_only_itself_and_each_has_a_line(owner: User) -> None:
    lost = chat(message("user", "Hello", START), title="Lost")
    del lost["mapping"]
    job = bring(
        owner,
        as_json(
            [
                walk("a"),
                lost,
                {"uuid": "x", "chat_messages": []},
                7,
                chat(title="Empty"),
                {"mapping": 3, "conversation_id": 1},
                walk("b"),
            ]
        ),
    )
    assert outcomes(job) == ["imported", "failed", "skipped", "skipped", "skipped", "failed", "imported"]
    assert job.state == "done"
    lines = list(job.chats.all())
    assert [line.position for line in lines] == list(range(7))
    assert lines[1].title == "Lost"
    assert all(line.reason for line in lines if line.outcome in ("failed", "skipped"))


@pytest.mark.parametrize(
    ("upload", "why"),
    [
        (as_json([]), "no chats"),
        (as_json({}), "No chat could be taken"),
        (as_json([{"x": 1}]), "No chat could be taken"),
        (as_json([chat()]), "No chat could be taken"),
        (ContentFile(b"", name="x.json"), "empty"),
        (ContentFile(b"hello", name="x.json"), "not a chat export"),
        (as_zip({"photo.jpg": b"x"}), "no conversations.json"),
        (ContentFile(b"PK\x03\x04", name="x.zip"), "damaged"),
    ],
)
def test_nothing_taken_is_never_called_done(owner: User, upload: ContentFile, why: str) -> None:
    upload.seek(0)
    job = bring(owner, upload)
    assert job.state == "failed"
    assert why in job.error
    assert not Session.objects.exists()


def test_a_cut_file_keeps_what_came_before_and_says_so(owner: User) -> None:
    content = json.dumps([walk("a"), walk("b")]).encode()
    job = bring(owner, ContentFile(content[:-300], name="conversations.json"))
    assert outcomes(job) == ["imported", "failed"]
    assert "damaged from here on" in job.chats.last().reason


def test_a_title_is_made_from_the_first_words_where_there_was_none(owner: User) -> None:
    bring(
        owner,
        as_json(
            [
                chat(message("user", "Where does\nthe river rise?", START), title=None),
                chat(
                    message("assistant", "Good morning", START + 1),
                    message("user", "x", START + 2),
                    title="New chat",
                ),
            ]
        ),
    )
    assert set(Session.objects.values_list("title", flat=True)) == {"Where does", "Good morning"}


def test_what_postgresql_cannot_hold_is_replaced(owner: User) -> None:
    entry = chat(message("user", "a\x00b \ud800 c", START), title="T\x00\udfff", id="i\x00d")
    bring(owner, ContentFile(json.dumps([entry]).encode(), name="c\x00.json"))
    turn = Turn.objects.get()
    assert turn.q == "a\ufffdb \ufffd c"
    assert turn.session.title == "T\ufffd\ufffd"


# --- Safety -------------------------------------------------------------------------------------------------


def with_crisis(**changes: Any) -> dict[str, Any]:
    return chat(
        message("user", "How was your day?", START),
        message("assistant", "Quiet.", START + 1),
        message("user", CRISIS, START + 2),
        message("assistant", "I am here. canaryword", START + 3),
        message("user", "I planted beans.", START + 4),
        message("assistant", "Good.", START + 5),
        **changes,
    )


def test_what_spoke_of_danger_is_left_out_and_rings_nothing(owner: User) -> None:
    job = bring(owner, as_json([with_crisis(title="About the canaryword")]))
    (line,) = job.chats.all()
    assert (line.outcome, line.turns_added, line.turns_left_out) == ("imported", 2, 1)
    assert "1 exchange was left out" in line.reason
    assert not BellEvent.objects.exists()
    assert not RiskState.objects.exists()
    session = Session.objects.get()
    assert list(session.turns.order_by("turn_index").values_list("turn_index", "q")) == [
        (0, "How was your day?"),
        (1, "I planted beans."),
    ]
    assert session.next_index == 2
    everything = [
        *Session.objects.values_list(),
        *Turn.objects.values_list(),
        *MemoryNode.objects.values_list(),
        *ImportedChat.objects.values_list(),
        *ImportJob.objects.values_list(),
    ]
    assert "canaryword" not in str(everything)


def test_left_out_talk_stays_out_when_the_file_comes_again(owner: User) -> None:
    bring(owner, as_json([with_crisis(id="a")]))
    job = bring(owner, as_json([with_crisis(id="a")]))
    (line,) = job.chats.all()
    assert (line.outcome, line.turns_added, line.turns_left_out) == ("unchanged", 0, 1)
    assert Turn.objects.count() == 2


def test_a_chat_of_nothing_else_makes_no_session(owner: User) -> None:
    job = bring(owner, as_json([chat(message("user", CRISIS, START), title="canaryword"), walk("a")]))
    line = job.chats.first()
    assert line is not None
    assert (line.outcome, line.title, line.turns_left_out) == ("skipped", "", 1)
    assert Session.objects.count() == 1


def test_a_title_of_danger_is_not_kept(owner: User) -> None:
    bring(owner, as_json([chat(message("user", "I planted beans.", START), title=CRISIS)]))
    assert Session.objects.get().title == "I planted beans."


def test_distress_is_kept_and_marks_its_turn_without_a_bell(owner: User) -> None:
    bring(owner, as_json([chat(message("user", "I feel hopeless and worthless, I can't cope", START))]))
    assert Turn.objects.get().action == "soft_bell"
    assert not BellEvent.objects.exists()


def test_a_chat_not_to_be_remembered_is_kept_out_of_memory(owner: User) -> None:
    bring(owner, as_json([chat(message("user", "Between us", START), is_do_not_remember=True)]))
    assert Session.objects.get().temporary
    assert Turn.objects.count() == 1
    assert not MemoryNode.objects.conversations().exists()


def test_a_chat_marked_later_is_forgotten(owner: User) -> None:
    bring(owner, as_json([walk("a")]))
    entry = walk("a")
    bring(owner, as_json([{**entry, "is_do_not_remember": True}]))
    assert Session.objects.get().temporary
    assert not MemoryNode.objects.conversations().exists()


def test_without_the_embedder_the_lists_decide(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(texts: Any) -> Any:
        raise EmbedderUnavailable("no model")

    monkeypatch.setattr(imported, "embed_packaged", gone)
    job = bring(owner, as_json([with_crisis()]))
    assert job.chats.get().turns_left_out == 1


# --- The job ------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for a worker that ends in the middle."""


def cut_off_at(position: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run ends before this entry, as a killed process does: nothing is cleaned up."""
    real = reading.entries

    def interrupted(*args: Any) -> Any:
        for entry in real(*args):
            if entry.position == position:
                raise Killed
            yield entry

    monkeypatch.setattr(importing, "entries", interrupted)


def test_a_killed_import_goes_on_where_it_stood(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    job = importing.start_import(owner=owner, upload=as_json([walk(name, questions=30) for name in "abcd"]))
    with monkeypatch.context() as patch:
        cut_off_at(2, patch)
        with pytest.raises(Killed):
            importing.run(job.pk)
    job.refresh_from_db()
    assert job.state == "running"
    assert outcomes(job) == ["imported", "imported"]
    assert 0 < job.done_bytes < job.size
    assert not importing.run(job.pk), "its lease still stands"
    ImportJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert importing.run(job.pk)
    job.refresh_from_db()
    assert job.state == "done"
    assert outcomes(job) == ["imported"] * 4
    assert Turn.objects.count() == 120


def test_a_worker_that_lost_its_lease_writes_nothing_more(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = importing.start_import(owner=owner, upload=as_json([walk("a"), walk("b")]))
    real = reading.entries

    def slow(*args: Any) -> Any:
        for entry in real(*args):
            if entry.position == 1:
                ImportJob.objects.update(lease_until=timezone.now() + timedelta(hours=1))  # another worker's
            yield entry

    monkeypatch.setattr(importing, "entries", slow)
    assert not importing.run(job.pk)
    job.refresh_from_db()
    assert job.state == "running"
    assert outcomes(job) == ["imported"]
    assert Session.objects.count() == 1


def test_a_settled_job_is_not_run_again(owner: User) -> None:
    job = bring(owner, as_json([walk("a")]))
    assert not importing.run(job.pk)
    assert not importing.run(uuid.uuid4())


def test_the_file_is_removed_when_the_job_is_settled(owner: User) -> None:
    job = importing.start_import(owner=owner, upload=as_json([walk("a")]))
    stored = job.stored_as
    assert default_storage.exists(stored)
    assert "conversations" not in stored
    importing.run(job.pk)
    job.refresh_from_db()
    assert not default_storage.exists(stored)
    assert job.stored_as == ""


def test_a_job_whose_file_is_gone_says_what_to_do(owner: User) -> None:
    job = importing.start_import(owner=owner, upload=as_json([walk("a")]))
    default_storage.delete(job.stored_as)
    importing.run(job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert "Send it again" in job.error


def test_a_file_over_the_limit_leaves_nothing_behind(owner: User, settings: Settings, tmp_path: Path) -> None:
    settings.IMPORT_MAX_BYTES = 10
    with pytest.raises(importing.UploadTooLarge):
        importing.start_import(owner=owner, upload=as_json([walk("a")]))
    assert not ImportJob.objects.exists()
    assert not list(tmp_path.rglob("*.json"))


def test_starting_wakes_a_worker_and_the_sweeper_wakes_again(
    owner: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    hinted: list[Any] = []
    monkeypatch.setattr(importing, "hint_import", hinted.append)
    with django_capture_on_commit_callbacks(execute=True):
        job = importing.start_import(owner=owner, upload=as_json([walk("a")]))
    assert hinted == [job.pk]
    assert importing.sweep() == 1
    assert hinted == [job.pk, job.pk]
    importing.run(job.pk)
    assert importing.sweep() == 0


def test_a_job_that_never_ends_is_given_up_after_a_day(owner: User) -> None:
    job = importing.start_import(owner=owner, upload=as_json([walk("a")]))
    importing.sweep(now=timezone.now() + timedelta(hours=25))
    job.refresh_from_db()
    assert job.state == "failed"
    assert "send the file again" in job.error


# --- The command ----------------------------------------------------------------------------------------------


def test_the_command_imports_and_reports(owner: User, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([walk("a"), 7]))
    said = StringIO()
    call_command("import_chats", path, user="owner", stdout=said)
    assert "Walk a" in said.getvalue()
    assert "1 of 2 chats are here" in said.getvalue()
    assert Session.objects.for_owner(owner).count() == 1
    assert ImportJob.objects.get().file_name == "mine.json"


def test_the_command_says_what_is_wrong(owner: User, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nobody called nobody"):
        call_command("import_chats", tmp_path / "x", user="nobody")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_chats", tmp_path / "x", user="owner")
    (tmp_path / "x").write_text("hello")
    with pytest.raises(CommandError, match="not a chat export"):
        call_command("import_chats", tmp_path / "x", user="owner")


def test_queries_do_not_grow_with_the_chats_already_there(
    owner: User, django_assert_max_num_queries: Any
) -> None:
    bring(owner, as_json([walk(str(number)) for number in range(12)]))
    job = importing.start_import(owner=owner, upload=as_json([walk("new", questions=1)]))
    with django_assert_max_num_queries(40):
        importing.run(job.pk)
