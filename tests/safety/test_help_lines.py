"""Help lines: by country, edited by staff, shown without a database, and never called verified when they are not."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from neuron_site import doctor
from safety import help_line_services, help_lines
from safety.models import EditedHelpLine
from safety.resources import HelpLine, country_from, defaults, hard_reply

LIST = reverse("admin:safety_editedhelpline_changelist")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    help_lines.forget()
    yield
    help_lines.forget()


@pytest.fixture
def editor(steward: User) -> User:
    rights = Permission.objects.filter(content_type__model="editedhelpline")
    steward.user_permissions.add(*rights)
    return User.objects.get(pk=steward.pk)


def row(country: str, name: str) -> EditedHelpLine:
    help_line_services.lay_out_help_lines()
    return EditedHelpLine.objects.get(country=country, name=name)


def first(country: str) -> HelpLine:
    return defaults()[country].lines[0]


# --- The data file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "country"),
    [
        ("de-DE,de;q=0.9,en;q=0.8", "DE"),
        ("en_GB", "GB"),
        ("en", ""),
        ("xx-ZZ, fr-FR", "FR"),
        ("zh-Hant-TW;q=0.1,,;", ""),
        ("", ""),
        ("-" * 500, ""),
    ],
)
def test_the_country_of_a_browser_is_the_first_we_know(header: str, country: str) -> None:
    assert country_from(header) == country


def test_every_country_has_a_line_that_can_be_reached_and_an_emergency_number() -> None:
    assert len(defaults()) > 20
    for one in defaults().values():
        assert one.emergency
        assert all(line.phone or line.sms or line.url for line in one.lines)


def test_the_fixed_reply_is_short_asks_nothing_and_names_the_ways() -> None:
    for one in defaults().values():
        reply = hard_reply(one)
        words = reply
        for line in one.lines:
            words = words.replace(line.name, "")  # a service may be called a question
        assert "?" not in words
        assert len(reply) < 1200
        assert one.emergency[0] in reply
        for line in one.lines:
            assert line.name in reply
            assert (line.phone or line.sms or line.url) in reply


def test_a_line_counts_as_verified_for_ninety_days() -> None:
    today = date(2026, 6, 1)
    line = first("US")
    assert not replace(line, verified_on=None).is_verified(today)
    assert replace(line, verified_on=today - timedelta(days=90)).is_verified(today)
    assert not replace(line, verified_on=today - timedelta(days=91)).is_verified(today)


# --- Edited ----------------------------------------------------------------------------------------------------


def test_an_unedited_row_follows_the_file(db: None) -> None:
    standing = row("US", first("US").name)
    EditedHelpLine.objects.filter(pk=standing.pk).update(phone="999")
    EditedHelpLine.objects.create(country="US", name="Gone from the file", phone="1", source="x")
    assert help_lines.for_country("US") == defaults()["US"]
    assert row("US", first("US").name).phone == first("US").phone
    assert not EditedHelpLine.objects.filter(name="Gone from the file").exists()


def test_an_edited_line_is_shown_in_its_place_and_the_others_stay(owner: User) -> None:
    line = row("US", first("US").name)
    line.phone = "12345"
    help_line_services.edit_help_line(line=line, editor=owner)
    shown = help_lines.for_country("us").lines
    assert (shown[0].name, shown[0].phone) == (first("US").name, "12345")
    assert shown[1:] == defaults()["US"].lines[1:]
    assert help_lines.for_country("DE") == defaults()["DE"]


def test_a_line_can_be_taken_out_but_never_the_last(owner: User) -> None:
    for line in defaults()["US"].lines:
        mine = row("US", line.name)
        mine.shown = False
        help_line_services.edit_help_line(line=mine, editor=owner)
        left = help_lines.for_country("US").lines
        assert left
    assert left == defaults()["US"].lines


def test_a_new_line_stands_after_those_of_the_file(owner: User) -> None:
    new = EditedHelpLine(country="US", name="A new line", phone="5", source="its page")
    help_line_services.edit_help_line(line=new, editor=owner)
    assert [line.name for line in help_lines.for_country("US").lines][-1] == "A new line"


def test_without_a_database_what_was_known_is_shown(
    owner: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    line = row("US", first("US").name)
    line.phone = "12345"
    help_line_services.edit_help_line(line=line, editor=owner)
    known = help_lines.for_country("US")

    def away(**_: Any) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(EditedHelpLine.objects, "exclude", away)
    monkeypatch.setattr(help_lines, "FRESH_SECONDS", 0.0)
    assert help_lines.for_country("US") == known
    assert "what was known of them stands" in caplog.text
    help_lines.forget()
    assert help_lines.for_country("US") == defaults()["US"]
    assert help_lines.for_country("US", ask_database=False) == defaults()["US"]


# --- The admin -------------------------------------------------------------------------------------------------


def test_nobody_without_the_right_sees_or_edits_them(
    owner_client: Client, client: Client, steward_client: Client
) -> None:
    change = reverse("admin:safety_editedhelpline_change", args=[row("US", first("US").name).pk])
    for address in (LIST, change, reverse("admin:safety_editedhelpline_add")):
        assert owner_client.get(address).status_code == 302
        assert client.get(address).status_code == 302
        assert steward_client.get(address).status_code == 403
        assert steward_client.post(address, {"phone": "1"}).status_code == 403
    assert not EditedHelpLine.objects.exclude(edited_at=None).exists()


def test_the_list_shows_every_line_and_what_nobody_verified(editor: User) -> None:
    client = Client()
    client.force_login(editor, backend="django.contrib.auth.backends.ModelBackend")
    content = client.get(LIST).content.decode()
    assert first("US").name.replace("&", "&amp;") in content
    assert "never" in content
    assert "as in the data file" in content


def test_one_edits_and_verifies_lines(editor: User) -> None:
    client = Client()
    client.force_login(editor, backend="django.contrib.auth.backends.ModelBackend")
    line = row("US", first("US").name)
    address = reverse("admin:safety_editedhelpline_change", args=[line.pk])
    given = {"phone": "988", "url": "https://988lifeline.org", "source": "their page", "shown": "on"}
    for wrong in ({"phone": "call us"}, {"phone": "", "url": ""}, {"verified_on": "2999-01-01"}):
        assert client.post(address, {**given, **wrong}).status_code == 200
    line.refresh_from_db()
    assert line.edited_at is None
    client.post(address, {**given, "hours": "always"})
    line.refresh_from_db()
    assert (line.hours, line.edited_by) == ("always", editor)
    client.post(LIST, {"action": "verify_today", "_selected_action": [str(line.pk)]})
    line.refresh_from_db()
    assert line.verified_on == timezone.localdate()
    assert help_lines.for_country("US").lines[0].is_verified(timezone.localdate())
    delete = reverse("admin:safety_editedhelpline_delete", args=[line.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403


def test_the_doctor_flags_what_is_not_verified(owner: User) -> None:
    for one in help_lines.all_resources().values():
        for line in one.lines if one.country else ():
            mine = row(one.country, line.name)
            help_line_services.verify_help_line(line=mine, editor=owner)
    assert doctor._help_lines().ok
    old = row("US", first("US").name)
    old.verified_on = timezone.localdate() - timedelta(days=91)
    help_line_services.edit_help_line(line=old, editor=owner)
    finding = doctor._help_lines()
    assert (finding.ok, finding.serious) == (False, False)
    assert finding.detail.startswith("1 of ")
