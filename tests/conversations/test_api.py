"""The REST API as its callers see it: owner, other, and nobody."""

import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from conversations import importing
from conversations.models import Session, Turn
from conversations.services import accept_turn, claim_turn, create_session, settle_turn
from conversations.tokens import create_token
from safety.models import BellEvent
from tests.conversations.exports import as_json, walk

API = "/api/v1"
CRISIS = "I am going to kill myself tonight, canaryword"


def say(client: Client, session: Session, text: Any, **more: Any) -> Any:
    headers = {"prefer": "respond-async", **more.pop("headers", {})}
    return client.post(
        f"{API}/sessions/{session.pk}/turns", {"text": text, **more}, "application/json", headers=headers
    )


def answered(session: Session, text: str, answer: str) -> Turn:
    turn = accept_turn(session=session, text=text, client_key=uuid.uuid4().hex, action="pass").turn
    claimed = claim_turn(turn_id=turn.pk)
    assert claimed is not None
    settle_turn(turn=claimed, status="complete", text=answer)
    return claimed


def assert_problem(response: Any, status: int, code: str = "") -> None:
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = json.loads(response.content)
    assert problem["status"] == status
    assert problem["detail"]
    assert not code or problem["code"] == code


# --- Who ----------------------------------------------------------------------------------------------------


def addresses(session: Session, turn: Turn, job: str) -> list[tuple[str, str]]:
    return [
        ("get", f"{API}/sessions/{session.pk}"),
        ("patch", f"{API}/sessions/{session.pk}"),
        ("delete", f"{API}/sessions/{session.pk}"),
        ("get", f"{API}/sessions/{session.pk}/turns"),
        ("post", f"{API}/sessions/{session.pk}/turns"),
        ("get", f"{API}/turns/{turn.pk}"),
        ("post", f"{API}/turns/{turn.pk}/stop"),
        ("post", f"{API}/turns/{turn.pk}/retry"),
        ("get", f"{API}/imports/{job}"),
        ("get", f"{API}/imports/{job}/chats"),
    ]


def test_somebody_elses_is_404_and_stays_as_it_is(
    owner_client: Client, other_client: Client, steward_client: Client, session: Session
) -> None:
    turn = answered(session, "How deep is the lake?", "Forty metres.")
    job = owner_client.post(f"{API}/imports", {"upload": as_json([walk("a")])}).json()["id"]
    for method, address in addresses(session, turn, job):
        for client in (other_client, steward_client):
            response = getattr(client, method)(
                address, {"text": "x", "title": "x"}, content_type="application/json"
            )
            assert_problem(response, 404)
    session.refresh_from_db()
    assert session.next_index == 1
    for method, address in addresses(session, turn, job)[:1] + addresses(session, turn, job)[3:4]:
        assert getattr(owner_client, method)(address).status_code == 200


@pytest.mark.parametrize(
    "address",
    ["sessions", "recent", "imports", "tokens", "export", "nodes", "bells", f"turns/{uuid.uuid4()}"],
)
def test_nobody_gets_401(client: Client, db: None, address: str) -> None:
    assert_problem(client.get(f"{API}/{address}"), 401)


def test_lists_hold_only_ones_own(owner_client: Client, other_client: Client, session: Session) -> None:
    answered(session, "How deep is the lake?", "Forty metres.")
    owner_client.post(f"{API}/imports", {"upload": as_json([walk("a")])})
    owner_client.post(f"{API}/tokens")
    for address in ("sessions", "imports", "nodes"):
        assert len(owner_client.get(f"{API}/{address}").json()["results"]) >= 1, address
        assert other_client.get(f"{API}/{address}").json()["results"] == [], address
    for address in ("recent", "tokens"):
        assert len(owner_client.get(f"{API}/{address}").json()) == 1, address
        assert other_client.get(f"{API}/{address}").json() == [], address


# --- Sessions -----------------------------------------------------------------------------------------------


def test_a_session_is_begun_changed_and_deleted(owner_client: Client) -> None:
    made = owner_client.post(f"{API}/sessions", {"title": "Lakes"}, "application/json")
    assert made.status_code == 201
    address = made.headers["Location"]
    assert owner_client.get(address).json()["title"] == "Lakes"
    changed = owner_client.patch(
        address, {"title": "Rivers", "mode": "agentic", "pinned": True}, "application/json"
    )
    assert (changed.json()["title"], changed.json()["mode"], changed.json()["pinned"]) == (
        "Rivers",
        "agentic",
        True,
    )
    assert_problem(owner_client.patch(address, {"mode": "shout"}, "application/json"), 400, "invalid")
    assert owner_client.delete(address).status_code == 204
    assert_problem(owner_client.get(address), 404)
    assert_problem(owner_client.delete(address), 404)


def test_pages_of_a_list_meet_without_gap_or_overlap(owner: User, owner_client: Client) -> None:
    made = {str(create_session(owner=owner, title=str(number)).pk) for number in range(7)}
    Session.objects.update(last_turn_at=timezone.now())  # all at once: the ties must hold too
    seen: list[str] = []
    address = f"{API}/sessions?limit=3"
    while address:
        page = owner_client.get(address).json()
        seen += [one["id"] for one in page["results"]]
        address = page["next"]
    assert len(seen) == 7
    assert set(seen) == made


def test_a_made_up_cursor_is_a_problem(owner_client: Client) -> None:
    assert_problem(owner_client.get(f"{API}/sessions?cursor=nonsense%00"), 404)


# --- Turns ----------------------------------------------------------------------------------------------------


def test_a_message_is_taken_and_its_address_told(owner_client: Client, session: Session) -> None:
    response = say(owner_client, session, "How deep is the lake?")
    assert response.status_code == 202
    answer = response.json()
    assert (answer["action"], answer["reply"], answer["help_lines"]) == ("pass", None, None)
    assert answer["turn"]["status"] == "pending"
    turn = owner_client.get(response.headers["Location"]).json()
    assert (turn["q"], turn["turn_index"]) == ("How deep is the lake?", 0)


def test_the_text_passes_through_whole(owner_client: Client, session: Session) -> None:
    text = ' \t"quo\\ted"\n\u202e \U0001f600 \x00 \ud800'
    assert say(owner_client, session, text).status_code == 202
    assert Turn.objects.get().q == ' \t"quo\\ted"\n\u202e \U0001f600 \ufffd \ufffd'


def test_the_same_key_is_the_same_message(owner_client: Client, session: Session) -> None:
    first = say(owner_client, session, "Hello", client_key="k").json()
    again = say(owner_client, session, "Hello", client_key="k").json()
    assert first["turn"]["id"] == again["turn"]["id"]
    assert_problem(say(owner_client, session, "Other words", client_key="k"), 409, "client_key_reused")
    assert Turn.objects.count() == 1


@pytest.mark.parametrize("text", ["", "   ", "x" * 100_001])
def test_what_cannot_be_taken_says_why(owner_client: Client, session: Session, text: str) -> None:
    assert_problem(say(owner_client, session, text), 422, "unusable_message")


def test_an_answered_turn_is_answered_at_once(owner_client: Client, session: Session) -> None:
    turn = answered(session, "Hello", "Good day.")
    response = owner_client.post(
        f"{API}/sessions/{session.pk}/turns",
        {"text": "Hello", "client_key": turn.client_key},
        "application/json",
    )
    assert response.status_code == 201
    assert response.json()["reply"] == "Good day."


def test_a_hard_bell_is_answered_with_help_and_without_a_turn(owner_client: Client, session: Session) -> None:
    response = say(owner_client, session, CRISIS, headers={"accept-language": "en-US"})
    assert response.status_code == 200
    answer = response.json()
    assert (answer["action"], answer["turn"]) == ("hard_bell", None)
    assert "988" in answer["reply"]
    assert answer["help_lines"]["country"] == "US"
    assert answer["help_lines"]["lines"][0]["name"] in answer["reply"]
    assert not Turn.objects.exists()
    assert BellEvent.objects.get().level == "hard"
    shown = [owner_client.get(f"{API}/{address}").content for address in ("sessions", "nodes", "recent")]
    assert b"canaryword" not in b"".join([*shown, response.content])


def test_a_safe_mode_refusal_is_503(
    owner_client: Client, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("safety.services.screen_message", broken)
    assert_problem(say(owner_client, session, "Hello"), 503, "safe_mode")


def test_a_soft_bell_with_ideation_brings_help_lines(owner_client: Client, session: Session) -> None:
    turn = answered(session, "Hello", "Good day.")
    Turn.objects.update(help_lines=True, action="soft_bell")
    response = say(owner_client, session, "Hello", client_key=turn.client_key)
    assert response.json()["action"] == "soft_bell"
    assert response.json()["help_lines"]["lines"]


def test_stop_and_retry(owner_client: Client, session: Session) -> None:
    turn = say(owner_client, session, "Hello").json()["turn"]
    stopped = owner_client.post(f"{API}/turns/{turn['id']}/stop")
    assert (stopped.status_code, stopped.json()["status"]) == (202, "stopped")
    again = owner_client.post(f"{API}/turns/{turn['id']}/retry", headers={"prefer": "respond-async"})
    assert (again.status_code, again.json()["turn"]["status"]) == (202, "pending")


def test_turns_are_listed_in_order(owner_client: Client, session: Session) -> None:
    for number in range(3):
        answered(session, f"Question {number}", f"Answer {number}")
    listed = owner_client.get(f"{API}/sessions/{session.pk}/turns").json()["results"]
    assert [(turn["turn_index"], turn["q"]) for turn in listed] == [(n, f"Question {n}") for n in range(3)]


def test_recent_talk_is_newest_first_and_since_excludes(owner_client: Client, session: Session) -> None:
    turns = [answered(session, f"Question {number}", f"Answer {number}") for number in range(3)]
    recent = owner_client.get(f"{API}/recent?limit=2").json()
    assert [one["q"] for one in recent] == ["Question 2", "Question 1"]
    assert set(recent[0]) == {"q", "a", "created_at", "session_id", "turn_index"}
    since = turns[1].created_at.isoformat().replace("+00:00", "Z")
    assert [one["q"] for one in owner_client.get(f"{API}/recent?since={since}").json()] == ["Question 2"]
    for wrong in ("limit=0", "limit=1001", "limit=x", "since=yesterday", "since=%00"):
        assert_problem(owner_client.get(f"{API}/recent?{wrong}"), 400)


# --- Bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"not json",
        b"\xff\xfe",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"text": ' + b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"text": NaN}',
        b"[]",
        b'"text"',
        b"null",
        b"7",
        b'{"text": {"deep": [1]}}',
        b'{"text": 1e999}',
        b'{"text": ' + b"9" * 10_000 + b"}",
        b'{"text": "x", "client_key": "' + b"k" * 65 + b'"}',
        b"{}",
    ],
    ids=lambda body: body[:12].decode(errors="replace"),
)
def test_a_body_that_cannot_be_used_is_a_400(owner_client: Client, session: Session, body: bytes) -> None:
    response = owner_client.post(f"{API}/sessions/{session.pk}/turns", body, "application/json")
    assert_problem(response, 400)


def test_a_body_too_large_is_a_413(owner_client: Client, session: Session, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert_problem(say(owner_client, session, "x" * 2000), 413, "too_large")


def test_wrong_methods_types_and_addresses_are_problems(owner_client: Client, session: Session) -> None:
    assert_problem(owner_client.put(f"{API}/sessions"), 405)
    assert_problem(owner_client.post(f"{API}/sessions", b"<x/>", "text/xml"), 415)
    assert_problem(owner_client.get(f"{API}/nothing"), 404)
    assert_problem(owner_client.get(f"{API}/sessions/not-a-uuid"), 404)
    assert_problem(owner_client.get(f"{API}/sessions/{uuid.uuid4()}"), 404)


# --- Imports, tokens, export ------------------------------------------------------------------------------------


def test_an_import_is_sent_followed_and_read(owner_client: Client) -> None:
    sent = owner_client.post(f"{API}/imports", {"upload": as_json([walk("a"), 7])})
    assert sent.status_code == 202
    assert sent.json()["state"] == "waiting"
    importing.run(uuid.UUID(sent.json()["id"]))
    job = owner_client.get(sent.headers["Location"]).json()
    assert (job["state"], job["done_bytes"]) == ("done", job["size"])
    chats = owner_client.get(f"{sent.headers['Location']}/chats").json()["results"]
    assert [chat["outcome"] for chat in chats] == ["imported", "skipped"]
    assert chats[0]["session"]


def test_an_upload_too_large_or_missing_is_a_problem(owner_client: Client, settings: Settings) -> None:
    assert_problem(owner_client.post(f"{API}/imports", {"other": "x"}), 400)
    settings.IMPORT_MAX_BYTES = 10
    assert_problem(owner_client.post(f"{API}/imports", {"upload": as_json([walk("a")])}), 413)
    assert_problem(owner_client.post(f"{API}/imports", b"{}", "application/json"), 415)


def test_a_token_is_shown_once_opens_the_api_and_can_be_revoked(
    owner: User, owner_client: Client, other_client: Client, client: Client
) -> None:
    token = owner_client.post(f"{API}/tokens").json()["token"]
    (listed,) = owner_client.get(f"{API}/tokens").json()
    assert token.startswith(listed["key"])
    assert token not in json.dumps(listed)
    bearer = {"authorization": f"Bearer {token}"}
    assert client.get(f"{API}/sessions", headers=bearer).status_code == 200
    assert_problem(other_client.delete(f"{API}/tokens/{listed['key']}"), 404)
    assert owner_client.delete(f"{API}/tokens/{listed['key']}").status_code == 204
    assert_problem(client.get(f"{API}/sessions", headers=bearer), 401)
    assert_problem(owner_client.delete(f"{API}/tokens/{listed['key']}"), 404)


def test_a_cookie_needs_the_csrf_token_and_a_bearer_token_does_not(owner: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert_problem(strict.post(f"{API}/sessions", {}, "application/json"), 403)
    bearer = {"authorization": f"Bearer {create_token(owner=owner)}"}
    plain = Client(enforce_csrf_checks=True)
    assert plain.post(f"{API}/sessions", {}, "application/json", headers=bearer).status_code == 201


def test_the_description_in_docs_is_the_one_served(client: Client) -> None:
    root = Path(__file__).resolve().parents[2]
    served = yaml.safe_load(client.get("/api/schema").content)
    kept = yaml.safe_load((root / "docs/openapi.yaml").read_text())
    assert served == kept


# --- With real processes ------------------------------------------------------------------------------------


@pytest.mark.processes
def test_posting_waits_for_the_answer_and_not_for_ever(stack: Any) -> None:
    person = stack.person()
    session = create_session(owner=person)
    bearer = {"Authorization": f"Bearer {create_token(owner=person)}"}
    with httpx.Client(base_url=stack.url, headers=bearer, timeout=60, trust_env=False) as client:
        response = client.post(f"{API}/sessions/{session.pk}/turns", json={"text": "Hello there"})
        assert response.status_code == 201, response.text
        answer = response.json()
        assert answer["turn"]["status"] == "complete"
        assert answer["reply"] == answer["turn"]["a"] != ""
        export = client.get(f"{API}/export")
        assert export.json()["sessions"][0]["turns"][0]["q"] == "Hello there"
        stack.kill("worker")
        began = timezone.now()
        late = client.post(
            f"{API}/sessions/{session.pk}/turns", json={"text": "Anybody?"}, headers={"Prefer": "wait=1"}
        )
        assert late.status_code == 202
        assert late.headers["Location"].endswith(late.json()["turn"]["id"])
        assert timezone.now() - began < timedelta(seconds=30)
