"""Themes as memory: nodes with edges to their turns, found again, corrected by the person, forgotten with them."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from conversations.models import Session
from conversations.services import delete_session
from conversations.themes import kept, runs
from conversations.themes.models import ThemeRun
from conversations.themes.reading import overview, window_of
from memory.models import MemoryNode
from memory.services import delete_nodes
from tests.conversations.themed import remember_topics

pytestmark = pytest.mark.usefixtures("built_in")

TOPICS = ("garden", "guitar", "sleep")


@pytest.fixture
def sessions(owner: User) -> list[Session]:
    told = remember_topics(owner, TOPICS)
    assert runs.refresh(owner=owner)
    return told


def named(owner: User, word: str) -> MemoryNode:
    """The theme that a word belongs to: the one most of whose turns hold it."""
    return max(kept.themes_of(owner), key=lambda theme: _holding(theme, word))


def _holding(theme: MemoryNode, word: str) -> int:
    return theme.edges_out.filter(target__content__contains=word).count()


def said_in(theme: MemoryNode) -> str:
    return "\n".join(edge.target.content for edge in theme.edges_out.select_related("target"))


def test_themes_are_semantic_nodes_that_summarise_their_turns(owner: User, sessions: list[Session]) -> None:
    themes = list(kept.themes_of(owner))
    assert len(themes) == len(TOPICS)
    for theme in themes:
        assert theme.tier == MemoryNode.Tier.SEMANTIC
        assert theme.node_type == MemoryNode.NodeType.THEME
        kinds = set(theme.edges_out.values_list("kind", "target__node_type", "target__owner"))
        assert kinds == {("summarises", "Conversation", owner.pk)}
        assert theme.payload["made_by"] == ""
    run = ThemeRun.objects.get()
    assert (run.state, run.model, run.calls) == ("done", "", 0)


def test_nothing_new_is_not_looked_at_again_and_something_new_is(
    owner: User, sessions: list[Session]
) -> None:
    assert runs.is_fresh(owner)
    before = dict(kept.themes_of(owner).values_list("pk", "version"))
    assert runs.refresh(owner=owner)
    assert ThemeRun.objects.count() == 1
    remember_topics(owner, ["money"])
    assert not runs.is_fresh(owner)
    runs.refresh(owner=owner)
    after = dict(kept.themes_of(owner).values_list("pk", "version"))
    assert set(before) <= set(after)
    assert len(after) == len(TOPICS) + 1


def test_a_name_of_the_persons_own_stays_and_can_be_given_back(owner: User, sessions: list[Session]) -> None:
    theme = named(owner, "allotment")
    found_as = theme.label
    kept.rename(theme=theme, name="My\nplot")
    remember_topics(owner, ["money"])
    runs.refresh(owner=owner)
    theme.refresh_from_db()
    assert theme.label == "My plot"
    assert theme.content.startswith("My plot\n")
    kept.rename(theme=theme, name=" ")
    theme.refresh_from_db()
    assert theme.label != "My plot"
    assert found_as


def test_merged_themes_stay_together_and_hidden_ones_hidden(owner: User, sessions: list[Session]) -> None:
    garden, guitar, sleep = named(owner, "allotment"), named(owner, "mandolin"), named(owner, "ceiling")
    turns = garden.edges_out.count() + guitar.edges_out.count()
    kept.merge(owner=owner, theme=guitar, into=garden)
    kept.hide(theme=sleep, hidden=True)
    remember_topics(owner, ["money"])
    runs.refresh(owner=owner)
    garden.refresh_from_db()
    assert garden.edges_out.count() >= turns - 6
    assert {"allotment", "mandolin"} <= set(said_in(garden).replace(",", " ").replace(".", " ").split())
    view = overview(owner, window_of(owner, "all", now=timezone.now()), everything=True)
    assert sleep.pk in {theme.id for theme in view.themes}
    assert sleep.pk not in {theme.id for theme in view.shown}
    with pytest.raises(ValueError, match="itself"):
        kept.merge(owner=owner, theme=garden, into=garden)


# --- Forgetting -------------------------------------------------------------------------------------------------


def test_deleting_a_session_takes_its_share_out_of_every_theme_at_once(
    owner: User, sessions: list[Session]
) -> None:
    theme = named(owner, "Nine courgettes")
    session = next(one for one in sessions if one.turns.filter(a__contains="Nine courgettes").exists())
    kept.rename(theme=theme, name="My plot")
    before, gone = theme.edges_out.count(), session.turns.count()
    delete_session(session=session)
    theme.refresh_from_db()
    assert theme.edges_out.count() == before - gone
    assert theme.label == "My plot"
    assert "stale" not in theme.payload
    assert "blight" not in f"{theme.content}{theme.payload}"


def test_a_theme_goes_with_its_last_turn(owner: User, sessions: list[Session]) -> None:
    theme = named(owner, "mandolin")
    held = set(theme.edges_out.values_list("target__session_id", flat=True))
    for session in sessions:
        if session.pk in held:
            delete_session(session=session)
    assert not MemoryNode.objects.filter(pk=theme.pk).exists()
    assert "mandolin" not in "".join(kept.themes_of(owner).values_list("content", flat=True))


def test_turns_forgotten_by_any_other_way_empty_the_theme_until_it_is_mended(
    owner: User, sessions: list[Session]
) -> None:
    theme = named(owner, "mandolin")
    some = list(theme.edges_out.values_list("target", flat=True)[:3])
    delete_nodes(owner=owner, node_ids=some)
    theme.refresh_from_db()
    assert (theme.content, theme.payload) == ("", {"chosen": {}, "stale": True})
    assert runs.sweep() == 1
    theme.refresh_from_db()
    assert theme.content
    assert "stale" not in theme.payload


def test_another_person_has_no_part_in_it(owner: User, other: User, sessions: list[Session]) -> None:
    runs.refresh(owner=other)
    assert not kept.themes_of(other).exists()


def test_what_rang_softly_is_never_quoted(owner: User) -> None:
    remember_topics(owner, TOPICS, heavy="sleep")
    runs.refresh(owner=owner)
    theme = named(owner, "ceiling")
    view = overview(owner, window_of(owner, "all", now=timezone.now()), everything=True)
    shown = next(one for one in view.themes if one.id == theme.pk)
    assert shown.is_heavy
    spots = {str(spot.node_id) for spot in shown.spots if spot.heavy}
    assert not spots & {quote["node"] for quote in theme.payload["quotes"]}


# --- The run ----------------------------------------------------------------------------------------------------


def test_there_is_one_unfinished_run_for_a_person(owner: User) -> None:
    first = runs.start(owner=owner, hint=False)
    assert runs.start(owner=owner, hint=False) == first


def test_a_run_whose_worker_died_is_taken_up_and_one_that_is_held_is_not(owner: User) -> None:
    run = runs.start(owner=owner, hint=False)
    ThemeRun.objects.update(state="running", lease_until=timezone.now() + runs.LEASE, tries=1)
    assert not runs.work(run.pk)
    ThemeRun.objects.update(lease_until=timezone.now() - runs.LEASE)
    assert runs.work(run.pk)
    run.refresh_from_db()
    assert (run.state, run.tries) == ("done", 2)


def test_a_run_that_kills_every_worker_is_given_up(owner: User) -> None:
    run = runs.start(owner=owner, hint=False)
    ThemeRun.objects.update(tries=runs.MOST_TRIES)
    assert not runs.work(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", "given_up")


def test_a_run_can_be_stopped_before_and_while_it_is_worked_on(owner: User) -> None:
    run = runs.start(owner=owner, hint=False)
    runs.stop(run=run)
    assert not runs.work(run.pk)
    remember_topics(owner, ["guitar"])
    run = runs.start(owner=owner, hint=False)
    ThemeRun.objects.filter(pk=run.pk).update(stop_requested=True)
    assert runs.work(run.pk)
    run.refresh_from_db()
    assert run.state == "stopped"
    assert not kept.themes_of(owner).exists()
