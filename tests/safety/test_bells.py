"""Bells are written once, kept when the database is away, replayed once, and reviewed step by step."""

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from conversations import facts, receiving
from conversations.models import Session
from safety import fallback, services
from safety.models import BellEvent, RiskState
from safety.screening import screen
from tests.stack import ROOT

HARD = "I am going to kill myself tonight"


@pytest.fixture(autouse=True)
def var_folder(settings: Settings, tmp_path: Path) -> Path:
    settings.VAR_DIR = tmp_path
    return tmp_path


@pytest.fixture
def broken_bells(transactional_db: None) -> Iterator[None]:
    """A database that takes no bell: what a full disk or a lost table looks like from here."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE safety_bellevent RENAME TO safety_bellevent_away")
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE IF EXISTS safety_bellevent_away RENAME TO safety_bellevent")


def mend() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE safety_bellevent_away RENAME TO safety_bellevent")


def test_a_bell_that_the_database_does_not_take_goes_to_the_file_and_the_person_has_their_reply(
    broken_bells: None, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    received = receiving.receive(session=session, text=HARD + " zebracanary", client_key="k")
    assert received.reply is not None
    assert "call" in received.reply
    lines = fallback.fallback_path().read_text().splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["level"] == "hard"
    assert "WARN bell event write failed" in caplog.text
    assert "zebracanary" not in caplog.text
    mend()
    assert services.replay_fallback() == 1
    assert services.replay_fallback() == 0
    assert BellEvent.objects.get().summary.startswith("I am going to kill myself tonight")
    assert not fallback.fallback_path().exists()


def test_a_replay_cut_short_makes_no_second_bell(broken_bells: None, session: Session) -> None:
    receiving.receive(session=session, text=HARD, client_key="k")
    line = fallback.fallback_path().read_bytes()
    mend()
    services.replay_fallback()
    fallback.fallback_path().write_bytes(line)  # as if the process had died before the file went
    assert services.replay_fallback() == 0
    assert BellEvent.objects.count() == 1


def test_an_unreadable_line_is_set_aside_and_the_others_are_replayed(
    broken_bells: None, session: Session, var_folder: Path
) -> None:
    receiving.receive(session=session, text=HARD, client_key="k")
    with fallback.fallback_path().open("ab") as file:
        file.write(b"{half a li\n")
    mend()
    assert services.replay_fallback() == 1
    assert (var_folder / "bells-fallback.unreadable").read_bytes() == b"{half a li\n"


def test_a_full_disk_still_takes_a_bell_by_the_reserve(
    var_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallback.keep_reserve()
    write = fallback._write

    def write_while_the_reserve_stands(line: bytes) -> None:
        if (var_folder / "bells-reserve").exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(line)

    monkeypatch.setattr(fallback, "_write", write_while_the_reserve_stands)
    assert fallback.append({"id": "1"})
    assert fallback.waiting() == 1


# Runs on a file system of its own, one megabyte large and filled to the last byte.
FULL_DISK = """
import errno, json, os, sys
from pathlib import Path
from django.conf import settings
var = Path(sys.argv[1])
settings.configure(VAR_DIR=var)
from safety import fallback
fallback.keep_reserve()
filler = os.open(var / "filler", os.O_WRONLY | os.O_CREAT)
for size in (65536, 4096, 1):
    try:
        while True:
            os.write(filler, b"x" * size)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
written = [fallback.append({"id": str(number), "text": "y" * 500}) for number in range(20)]
print(json.dumps({"written": written, "waiting": fallback.waiting()}))
"""


def test_a_disk_that_is_really_full_takes_bells_by_the_reserve(var_folder: Path) -> None:
    # As arguments, because any of the paths may have a space in it.
    mounted = 'mount -t tmpfs -o size=1m tmpfs "$2" && exec "$0" -c "$1" "$2"'
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mounted]
    command += [sys.executable, FULL_DISK, str(var_folder)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine lets nobody mount a file system of their own")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"written": [True] * 20, "waiting": 20}


def test_with_the_database_down_and_no_room_left_at_all_the_person_has_their_reply(
    broken_bells: None, session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_room(line: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fallback, "_write", no_room)
    received = receiving.receive(session=session, text=HARD + " zebracanary", client_key="k")
    assert received.reply is not None
    assert "call" in received.reply
    assert "could not be written to the fallback file either" in caplog.text
    assert "zebracanary" not in caplog.text
    mend()


def test_past_risk_fades_with_time_and_not_with_filler(owner: User) -> None:
    def hear(text: str, now: datetime) -> None:
        screening = services.screen_message(owner_id=owner.pk, text=text, now=now)
        services.keep_risk(owner_id=owner.pk, screening=screening, now=now)

    now = timezone.now()
    hear(HARD, now)
    for _ in range(10):
        hear("what is for lunch", now)
    assert RiskState.objects.get(owner=owner).risk > 0.5
    hear("what is for lunch", now + timedelta(days=10))
    assert RiskState.objects.get(owner=owner).risk < 0.1


def test_what_a_message_leaves_behind_is_kept_whatever_becomes_of_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def risk() -> float:
        return RiskState.objects.get(owner=session.owner).risk

    receiving.receive(session=session, text="I feel so overwhelmed and anxious", client_key="k1")
    assert 0 < risk() < 0.9
    receiving.receive(session=session, text=HARD, client_key="k2")
    assert risk() == 1.0
    RiskState.objects.update(risk=0.0)
    with pytest.raises(facts.NotKept):
        facts.keep(owner=session.owner, words=HARD, country="")
    assert risk() == 1.0
    RiskState.objects.update(risk=0.0)

    def broken(**_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("conversations.services.accept_turn", broken)
    with pytest.raises(RuntimeError):
        receiving.receive(session=session, text="I feel so overwhelmed and anxious", client_key="k3")
    assert risk() > 0


def test_a_message_that_was_accepted_stands_when_it_is_sent_again_and_heard_otherwise(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = receiving.receive(session=session, text="Good morning", client_key="k")
    danger = screen(HARD)
    monkeypatch.setattr("safety.services.screen_message", lambda **_: danger)
    again = receiving.receive(session=session, text="Good morning", client_key="k")
    assert (again.turn, again.replayed, again.bell) == (first.turn, True, None)

    def broken(**_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("safety.services.screen_message", broken)
    again = receiving.receive(session=session, text="Good morning", client_key="k")
    assert (again.turn, again.replayed, again.refused) == (first.turn, True, False)
    assert not BellEvent.objects.exists()


def test_a_review_is_appended_and_decides_the_state(session: Session, steward: User) -> None:
    received = receiving.receive(session=session, text=HARD, client_key="k")
    assert received.bell is not None
    services.review_bell(bell=received.bell, steward=steward, state="acknowledged")
    services.review_bell(bell=received.bell, steward=steward, state="false_positive", note="a film")
    bell = BellEvent.objects.get()
    assert bell.state == "false_positive"
    assert [review.state for review in bell.reviews.all()] == ["acknowledged", "false_positive"]
    with pytest.raises(ValueError, match="review"):
        services.review_bell(bell=bell, steward=steward, state="open")


def test_anything_but_the_three_actions_is_safe_mode(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the detector is gone")

    monkeypatch.setattr(services, "screen", broken)
    received = receiving.receive(session=session, text="hello", client_key="k")
    assert received.refused
    assert received.turn is None
    assert not session.turns.exists()


def test_what_was_typed_passes_through_whole(session: Session) -> None:
    text = 'tab\there \\ "quotes"\nnew line \u202eright to left 🙂 \x00 \ud800 end'
    received = receiving.receive(session=session, text=text, client_key="k")
    assert received.turn is not None
    received.turn.refresh_from_db()
    assert received.turn.q == text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")


def test_the_lists_know_plans_and_leave_idioms_alone() -> None:
    assert screen("k1ll mys3lf, I w1ll kill myself tonight").action == "hard_bell"
    assert screen("that joke is killing me").action == "pass"
    assert screen("how do I kill the process on port 80").action == "pass"
    assert screen("this is a useless tool").action == "pass"
    assert screen("I am overwhelmed and can't cope").action == "soft_bell"


@pytest.mark.parametrize(
    "text",
    [
        "I feel so overwhelmed and anxious",
        "I'm so stressed about the exam and can't cope",
        "Nobody understands",
        "I feel depressed",
        "I can't handle this",
    ],
)
def test_plain_words_of_distress_about_oneself_always_ring_soft(owner: User, text: str) -> None:
    assert services.screen_message(owner_id=owner.pk, text=text).action == "soft_bell"


def test_a_mild_word_about_a_tool_rings_nothing(owner: User) -> None:
    assert services.screen_message(owner_id=owner.pk, text="this is a useless tool").action == "pass"
