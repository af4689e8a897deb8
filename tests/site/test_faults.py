"""Faults with real processes: whatever is killed or restarted, no turn is lost, none doubled, and each settles."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import httpx
import psycopg
import pytest

from conversations.models import Session, Turn
from conversations.services import create_session
from memory.models import MemoryNode
from tests.scripted_provider import Script, ScriptedProvider
from tests.stack import ROOT, Stack, wait_for

BUNDLED = ("DATABASE_URL", "REDIS_URL")
pytestmark = pytest.mark.processes
SLOW = Script(text="One sentence here. Another sentence there. And a third one now. ", piece=8, pause=0.3)


def send(client: httpx.Client, session: Session, text: str, key: str = "") -> httpx.Response:
    return client.post(
        f"/sessions/{session.pk}/turns/", data={"text": text, "client_key": key or uuid.uuid4().hex}
    )


def settled(session: Session, count: int) -> bool:
    turns = list(session.turns.all())
    return len(turns) == count and all(turn.is_settled for turn in turns)


def indexes(session: Session) -> list[int]:
    return list(session.turns.order_by("turn_index").values_list("turn_index", flat=True))


def test_a_message_is_answered_by_the_worker_and_remembered(stack: Stack) -> None:
    person = stack.person()
    session = create_session(owner=person)
    with closing(stack.signed_in(person)) as client:
        send(client, session, "hello")
    wait_for(lambda: settled(session, 1), what="the answer")
    turn = session.turns.get()
    assert (turn.status, turn.a) == ("complete", "I hear you. Tell me more.")
    assert MemoryNode.objects.for_owner(person).conversations().count() == 1


def test_a_worker_killed_in_the_middle_of_an_answer_loses_nothing(stack: Stack) -> None:
    stack.provider.default = SLOW
    person = stack.person()
    session = create_session(owner=person)
    with closing(stack.signed_in(person)) as client:
        send(client, session, "hello")
        wait_for(lambda: session.turns.exclude(a="").exists(), what="the first sentence")
        stack.kill("worker")
        send(client, session, "are you there")
    stack.provider.default = Script(text="Here I am.")
    stack.start("worker")
    wait_for(lambda: settled(session, 2), seconds=60, what="both turns settled")
    first, second = session.turns.order_by("turn_index")
    assert first.status == Turn.Status.INTERRUPTED
    assert first.a.startswith("One sentence here.")
    assert (second.status, second.a) == ("complete", "Here I am.")


def test_a_web_process_killed_in_the_middle_of_a_stream_changes_nothing(stack: Stack) -> None:
    stack.provider.default = SLOW
    person = stack.person()
    session = create_session(owner=person)
    with closing(stack.signed_in(person)) as client:
        send(client, session, "hello")
        turn = wait_for(lambda: session.turns.first(), what="the turn")
        assert isinstance(turn, Turn)
        with client.stream("GET", f"/turns/{turn.pk}/stream") as stream:
            next(stream.iter_bytes())
            stack.kill("web")
        stack.start("web")
        wait_for(lambda: settled(session, 1), what="the answer")
        page = client.get(f"/sessions/{session.pk}/").text
    assert "And a third one now." in page


def test_eight_clients_and_ten_equal_sendings_leave_no_gap_and_no_double(stack: Stack) -> None:
    person = stack.person()
    session = create_session(owner=person)
    with closing(stack.signed_in(person)) as client, ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda number: send(client, session, f"message {number}"), range(8)))
        answers = list(pool.map(lambda _: send(client, session, "the same", "one-key"), range(10)))
    assert all(answer.status_code < 400 for answer in answers)
    wait_for(lambda: settled(session, 9), seconds=60, what="nine settled turns")
    assert indexes(session) == list(range(9))
    assert {turn.status for turn in session.turns.all()} == {"complete"}


def test_stop_closes_the_providers_connection_and_keeps_what_was_said(stack: Stack) -> None:
    stack.provider.default = Script(text="One sentence here. " * 40, piece=8, pause=0.2)
    person = stack.person()
    session = create_session(owner=person)
    with closing(stack.signed_in(person)) as client:
        send(client, session, "hello")
        wait_for(lambda: session.turns.exclude(a="").exists(), what="the first sentence")
        turn = session.turns.get()
        client.post(f"/turns/{turn.pk}/stop/")
    wait_for(lambda: settled(session, 1), seconds=5, what="the stop")
    wait_for(lambda: stack.provider.closed_by_client, seconds=3, what="the closed socket")
    assert session.turns.get().status == "stopped"


@pytest.fixture
def household() -> Iterator[Stack]:
    """The whole of `manage.py up`, on bundled servers of its own that may be killed."""
    # Not below pytest's own folder, which it closes to other accounts again and again.
    folder = Path(tempfile.mkdtemp(prefix="neuron-household-"))
    with ScriptedProvider() as provider:
        stack = Stack(
            database_url=f"postgres://postgres@/neuron?host={quote(str(folder / 'run'), safe='')}",
            redis_url=f"unix://{folder / 'run' / 'valkey.sock'}?db=0",
            provider=provider,
            folder=folder,
        )
        environment = {name: value for name, value in stack.environment.items() if name not in BUNDLED}
        with stack.log("up").open("ab") as log:
            up = subprocess.Popen(
                [sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
        try:
            wait_for(stack.is_live, seconds=60, what="the first page")
            stack.processes["up"] = up
            yield stack
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait(timeout=20)
            shutil.rmtree(folder, ignore_errors=True)


def api_session(stack: Stack) -> tuple[httpx.Client, str, str]:
    """Somebody signed in, a session and an API token of theirs."""
    made = subprocess.run(
        [
            sys.executable,
            "manage.py",
            "shell",
            "-v",
            "0",
            "-c",
            "from django.contrib.auth.models import User; from conversations.services import create_session; "
            "person = User.objects.create_user('person', password='correct horse battery'); "
            "from knox.models import AuthToken; "
            "print('made', create_session(owner=person).pk, AuthToken.objects.create(person)[1])",
        ],
        cwd=ROOT,
        env=stack.environment,
        capture_output=True,
        text=True,
        check=True,
    )

    class Person:
        username = "person"

    session, token = made.stdout.split("made ")[1].split()
    return stack.signed_in(Person()), session, token  # type: ignore[arg-type]


def rows(stack: Stack) -> list[tuple[int, str]]:
    """The turns there are; none while the database is away."""
    try:
        link = psycopg.connect(stack.environment["DATABASE_URL"])
    except psycopg.OperationalError:
        return []
    with link:
        return link.execute(
            "SELECT turn_index, status FROM conversations_turn ORDER BY turn_index"
        ).fetchall()


def all_settled(stack: Stack, count: int) -> bool:
    found = rows(stack)
    return len(found) == count and all(status not in ("pending", "answering") for _, status in found)


def pid_in(path: Path) -> int:
    return int(path.read_text().split("\n", 1)[0])


def test_valkey_and_postgresql_restarted_under_way_lose_no_turn(household: Stack) -> None:
    client, session, _ = api_session(household)

    def post(text: str) -> int:
        data = {"text": text, "client_key": uuid.uuid4().hex}
        return client.post(f"/sessions/{session}/turns/", data=data).status_code

    assert post("before anything") < 400
    wait_for(lambda: all_settled(household, 1), what="the first answer")

    # Valkey is killed and comes back: what was posted meanwhile is answered by the sweeper at the latest.
    os.kill(pid_in(household.folder / "valkey" / "valkey.pid"), signal.SIGKILL)
    assert post("while the broker is away") < 400
    wait_for(lambda: all_settled(household, 2), seconds=60, what="the turn posted without a broker")

    # PostgreSQL is stopped in the middle of an answer.
    household.provider.default = SLOW
    assert post("while the database restarts") < 400
    wait_for(lambda: len(household.provider.requests) >= 3, what="the model asked")
    os.kill(pid_in(household.folder / "postgres" / "postmaster.pid"), signal.SIGINT)
    wait_for(lambda: all_settled(household, 3), seconds=60, what="the turn answered over the restart")
    assert [index for index, _ in rows(household)] == [0, 1, 2]
    assert {status for _, status in rows(household)} <= {"complete", "interrupted"}
    client.close()


def bells(stack: Stack) -> list[tuple[str, str, str]]:
    try:
        with psycopg.connect(stack.environment["DATABASE_URL"]) as link:
            return link.execute(
                "SELECT username, level, summary FROM safety_bellevent JOIN auth_user u ON u.id = owner_id"
            ).fetchall()
    except psycopg.OperationalError:
        return []


def test_a_hard_bell_while_postgresql_is_stopped_has_its_reply_and_makes_one_event_later(
    household: Stack,
) -> None:
    client, session, token = api_session(household)
    up = household.processes["up"]
    fallback = household.folder / "bells-fallback.jsonl"
    postmaster = pid_in(household.folder / "postgres" / "postmaster.pid")
    os.kill(up.pid, signal.SIGSTOP)  # it would start PostgreSQL again
    try:
        os.kill(postmaster, signal.SIGINT)
        wait_for(lambda: not (household.folder / "postgres" / "postmaster.pid").exists(), what="its end")
        data = {"text": "I am going to kill myself tonight", "client_key": "one-key"}
        for headers in ({"HX-Request": "true"}, {}):
            answer = client.post(f"/sessions/{session}/turns/", data=data, headers=headers, timeout=60)
            assert answer.status_code == 200
            assert "I am taking it seriously" in answer.text
            assert "tel:" in answer.text
        assert len(fallback.read_text().splitlines()) == 2  # sent twice, and kept twice
        by_api = {"headers": {"Authorization": f"Bearer {token}"}, "timeout": 60}
        address = f"{household.url}/api/v1/sessions/{session}/turns"
        spoken = {"text": "I am going to kill myself tonight", "client_key": "by-api"}
        answer = httpx.post(address, json=spoken, **by_api)
        assert (answer.status_code, answer.json()["action"]) == (200, "hard_bell")
        assert answer.json()["help_lines"]["lines"]
        answer = httpx.post(address, json={"text": "What a sunny day"}, **by_api)
        assert (answer.status_code, answer.json()["code"]) == (503, "database_away")
        stranger = {"headers": {"Authorization": "Bearer nobodys"}, "timeout": 60}
        assert httpx.post(address, json=spoken | {"client_key": "strange"}, **stranger).status_code == 200
        harmless = {"text": "What a sunny day", "client_key": "other-key"}
        answer = client.post(f"/sessions/{session}/turns/", data=harmless, timeout=60)
        assert answer.status_code == 503
        assert "What a sunny day" in answer.text
    finally:
        os.kill(up.pid, signal.SIGCONT)
    wait_for(lambda: len(bells(household)) == 2, seconds=90, what="both bells in the database")
    wait_for(lambda: not fallback.exists(), seconds=30, what="the end of the fallback file")
    # One by page, though sent twice, one by API, and none of somebody whom no token names.
    assert bells(household) == [("person", "hard", "I am going to kill myself tonight")] * 2
    assert rows(household) == []
    client.close()
