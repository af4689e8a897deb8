"""The operator's policies and the notices that are owed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from conversations import stewardship
from conversations.stewardship import PolicyError, Use, decide, load

NOW = datetime(2024, 5, 20, 12, tzinfo=UTC)
GOOD = stewardship.POLICY_FILE.read_text(encoding="utf-8")


def owed(**use: object) -> list[str]:
    known = {"last_active_at": None, "last_notice_at": None} | use
    return [notice.id for notice in decide("hello", use=Use(**known), now=NOW).notices]  # type: ignore[arg-type]


def test_a_message_that_a_policy_covers_is_redirected_and_others_are_not() -> None:
    use = Use(NOW, NOW)
    decision = decide("What dose of ibuprofen should my child take?", use=use, now=NOW)
    assert decision.policy == "medical_dosage"
    assert decision.redirect_to
    assert decide("What a lovely dose of sunshine", use=use, now=NOW).redirect_to is None


def test_the_first_message_owes_the_disclosure_and_the_next_one_nothing() -> None:
    assert owed() == ["disclosure"]
    just_now = NOW - timedelta(minutes=1)
    assert owed(last_active_at=just_now, last_notice_at=just_now) == []


def test_three_hours_of_continued_use_owe_disclosure_and_break_and_a_minors_own_words() -> None:
    long = {"last_active_at": NOW - timedelta(minutes=1), "last_notice_at": NOW - timedelta(hours=3)}
    assert owed(**long) == ["disclosure", "break_reminder"]
    minor = decide("hello", use=Use(long["last_active_at"], long["last_notice_at"], is_minor=True), now=NOW)
    assert "take a break now" in minor.notices[1].text


def test_a_new_stretch_after_a_long_pause_owes_the_disclosure_alone() -> None:
    before = NOW - timedelta(hours=9)
    assert owed(last_active_at=before, last_notice_at=before) == ["disclosure"]


@pytest.mark.parametrize(
    ("good", "bad", "line", "says"),
    [
        ("[notices]", "[notices", 8, "line 8"),
        ('match = ["what', 'match = ["what(', 5, "not a regular expression"),
        ("redirect_to = ", "redirect = ", 4, "redirect_to must be a sentence"),
        ("repeat_after_hours = 3", 'repeat_after_hours = "three"', 12, "must be a number"),
        ("[notices]", "[notes]", 14, "[notices] is missing"),
    ],
)
def test_a_policy_file_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, good: str, bad: str, line: int, says: str
) -> None:
    file = tmp_path / "stewardship.toml"
    file.write_text(GOOD.replace(good, bad, 1))
    with pytest.raises(PolicyError) as raised:
        load(file)
    assert f"stewardship.toml, line {line}" in str(raised.value)
    assert says in str(raised.value)


def test_a_bad_policy_file_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stewardship.toml"
    monkeypatch.setattr(stewardship, "POLICY_FILE", file)
    file.write_text("[policy")
    assert [problem.id for problem in run_checks()] == ["conversations.E001"]
    with pytest.raises(SystemCheckError):
        call_command("check")
