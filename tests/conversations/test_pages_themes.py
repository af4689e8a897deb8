"""The pages of themes: the picture and its table, a theme's turns, renaming, merging, hiding, and whose they are."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations.models import Session
from conversations.services import delete_session
from conversations.themes import kept, picture, runs
from conversations.themes.models import ThemeRun
from memory.models import MemoryNode
from tests.conversations.themed import remember_topics
from tests.scripted_provider import ScriptedProvider

TOPICS = ("garden", "guitar", "sleep")


@pytest.fixture
def sessions(owner: User, built_in: None) -> list[Session]:
    told = remember_topics(owner, TOPICS, heavy="sleep")
    runs.refresh(owner=owner)
    return told


def of(owner: User, word: str) -> MemoryNode:
    """The theme that a word belongs to: the one most of whose turns hold it."""
    return max(kept.themes_of(owner), key=lambda theme: _holding(theme, word))


def _holding(theme: MemoryNode, word: str) -> int:
    return theme.edges_out.filter(target__content__contains=word).count()


def test_each_theme_is_a_band_and_a_row_of_the_table_and_a_link(
    owner: User, owner_client: Client, sessions: list[Session]
) -> None:
    page = owner_client.get("/themes/").content.decode()
    for theme in kept.themes_of(owner):
        assert page.count(f'href="/themes/{theme.pk}/"') == 2
    assert page.count('<path d="M0.0') == len(TOPICS)
    assert "Found without a model" in page
    assert "style=" not in page


def test_a_window_shows_its_own_themes(owner: User, owner_client: Client, sessions: list[Session]) -> None:
    week = owner_client.get("/themes/?window=week").content.decode()
    assert str(of(owner, "mandolin").pk) in week
    assert 'aria-current="page">A week' in week
    assert owner_client.get("/themes/?window=rubbish").status_code == 200


def test_a_theme_opens_its_turns_and_what_was_heavy_is_not_quoted(
    owner: User, owner_client: Client, sessions: list[Session]
) -> None:
    garden = owner_client.get(f"/themes/{of(owner, 'allotment').pk}/").content.decode()
    found = re.search(r"/sessions/([0-9a-f-]+)/\?at=(\d+)#turn-\2", garden)
    assert found
    assert owner_client.get(f"/sessions/{found[1]}/?at={found[2]}").status_code == 200
    assert "allotment" in garden
    sleep = owner_client.get(f"/themes/{of(owner, 'ceiling').pk}/").content.decode()
    assert "A hard moment." in sleep
    assert "ceiling" not in sleep


def test_renaming_merging_and_hiding(owner: User, owner_client: Client, sessions: list[Session]) -> None:
    garden, guitar = of(owner, "allotment"), of(owner, "mandolin")
    owner_client.post(f"/themes/{garden.pk}/", {"name": "<b>My plot</b>"})
    page = owner_client.get("/themes/").content.decode()
    assert "&lt;b&gt;My plot&lt;/b&gt;" in page
    assert "<b>My plot" not in page
    owner_client.post(f"/themes/{guitar.pk}/merge/", {"into": garden.pk})
    assert not MemoryNode.objects.filter(pk=guitar.pk).exists()
    owner_client.post(f"/themes/{garden.pk}/hide/")
    page = owner_client.get("/themes/").content.decode()
    assert "Hidden (1)" in page
    owner_client.post(f"/themes/{garden.pk}/hide/", {"show": "1"})
    assert "Hidden" not in owner_client.get("/themes/").content.decode()


def test_nobody_else_sees_or_changes_a_theme(
    owner: User, other: User, other_client: Client, steward_client: Client, sessions: list[Session]
) -> None:
    theme = of(owner, "allotment")
    mine = remember_topics(other, ["guitar"])
    runs.refresh(owner=other)
    assert mine
    for client in (other_client, steward_client):
        assert str(theme.pk) not in client.get("/themes/").content.decode()
        assert client.get(f"/themes/{theme.pk}/").status_code == 404
        for address in ("", "merge/", "hide/"):
            assert (
                client.post(f"/themes/{theme.pk}/{address}", {"name": "x", "into": theme.pk}).status_code
                == 404
            )
    # Nor can one be merged into somebody else's.
    own = kept.themes_of(other).first()
    assert own is not None
    assert other_client.post(f"/themes/{own.pk}/merge/", {"into": theme.pk}).status_code == 404
    assert Client().get("/themes/").status_code == 302


def test_a_deleted_session_is_gone_from_the_pages(
    owner: User, owner_client: Client, sessions: list[Session]
) -> None:
    theme = of(owner, "allotment")
    session = next(one for one in sessions if one.turns.filter(a__contains="Nine courgettes").exists())
    assert str(session.pk) in owner_client.get(f"/themes/{theme.pk}/").content.decode()
    delete_session(session=session)
    page = owner_client.get(f"/themes/{theme.pk}/").content.decode()
    assert str(session.pk) not in page
    assert "blight" not in page


# --- Looking ----------------------------------------------------------------------------------------------------


def test_without_a_model_the_page_looks_by_itself_once(
    owner: User, owner_client: Client, built_in: None
) -> None:
    remember_topics(owner, ["guitar"])
    assert "Reading through" in owner_client.get("/themes/").content.decode()
    owner_client.get("/themes/")
    run = ThemeRun.objects.get()
    assert owner_client.get("/themes/looking/", headers={"HX-Request": "true"}).status_code == 200
    runs.work(run.pk)
    over = owner_client.get("/themes/looking/", headers={"HX-Request": "true"})
    assert over.headers["HX-Refresh"] == "true"
    owner_client.get("/themes/")
    assert ThemeRun.objects.count() == 1


def test_with_a_model_the_page_asks_first_and_can_be_told_to_stop(
    owner: User, owner_client: Client, provider: ScriptedProvider
) -> None:
    remember_topics(owner, ["guitar"])
    assert "Look for themes" in owner_client.get("/themes/").content.decode()
    assert not ThemeRun.objects.exists()
    owner_client.post("/themes/look/")
    owner_client.post("/themes/stop/")
    assert ThemeRun.objects.get().state == "stopped"
    assert provider.requests == []


def test_somebody_new_is_told_how_themes_come_about(owner_client: Client, provider: ScriptedProvider) -> None:
    assert "There are no themes yet" in owner_client.get("/themes/").content.decode()


# --- The picture ------------------------------------------------------------------------------------------------

START = datetime(2025, 9, 1, tzinfo=UTC)


def test_the_axis_has_few_stretches_and_every_moment_one_of_them() -> None:
    for length in (1, 7, 91, 400, 5000):
        axis = picture.axis(START, START + timedelta(days=length))
        assert len(axis.edges) - 1 <= picture.MOST_BINS + 1
        moments = [START + timedelta(days=length) * share for share in (0, 0.3, 1)]
        assert sum(picture.counts(moments, axis)) == 3
        assert sum(picture.counts([START - timedelta(days=1)], axis)) == 0


def test_a_band_is_as_thick_as_it_was_spoken_of_and_closed() -> None:
    path = picture.band([0, 1, 8, 0], 8)
    assert path.startswith("M0.0,20.0")
    assert path.endswith("Z")
    assert "625.0,1.0" in path
    assert "625.0,39.0" in path
