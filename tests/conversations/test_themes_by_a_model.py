"""Themes by a model: bounded calls, true evidence only, nothing asked twice, and what happens when it fails."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from conversations.services import delete_session
from conversations.themes import kept, mapreduce, runs
from conversations.themes.models import ThemeNote, ThemeRun
from safety.directives import wellbeing_directive
from tests import theme_reader
from tests.conversations.themed import remember_topics
from tests.scripted_provider import Script, ScriptedProvider

TOPICS = ("garden", "guitar", "sleep")


@pytest.fixture
def reader(provider: ScriptedProvider, settings: Settings) -> ScriptedProvider:
    settings.NEURON_MODEL_TIMEOUT_S = 5
    provider.default = Script(respond=theme_reader.respond, piece=4000)
    return provider


def names(owner: User) -> set[str]:
    return set(kept.themes_of(owner).values_list("label", flat=True))


def test_sessions_become_notes_and_notes_themes_with_their_turns(
    owner: User, reader: ScriptedProvider
) -> None:
    remember_topics(owner, TOPICS)
    runs.refresh(owner=owner)
    assert {"Nights without sleep", "The allotment", "Learning the guitar"} <= names(owner)
    theme = kept.themes_of(owner).get(label="Learning the guitar")
    assert theme.payload["made_by"] == "scripted"
    assert theme.payload["summary"].startswith("You came back to this")
    for edge in theme.edges_out.select_related("target"):
        said = edge.target.payload["q"].lower()
        assert any(word in said for word in theme_reader.TOPICS["Learning the guitar"])
    run = ThemeRun.objects.get()
    assert (run.state, run.model, run.calls) == ("done", "scripted", len(reader.requests))


def test_every_prompt_is_bounded_and_is_made_by_the_one_function(
    owner: User, reader: ScriptedProvider, settings: Settings
) -> None:
    settings.NEURON_PROMPT_TOKENS = 1600
    remember_topics(owner, TOPICS)
    runs.refresh(owner=owner)
    assert len(reader.requests) > 4
    for request in reader.requests:
        assert len(json.dumps(request["messages"], ensure_ascii=False).encode()) / 4 < 1600
    assert {"Nights without sleep", "The allotment"} <= names(owner)


def test_nothing_new_costs_no_call_and_a_new_session_a_few(owner: User, reader: ScriptedProvider) -> None:
    remember_topics(owner, TOPICS)
    runs.refresh(owner=owner)
    first = len(reader.requests)
    runs.refresh(owner=owner)
    assert len(reader.requests) == first
    # A look that must be taken, over talk that did not change, asks nothing either.
    ThemeRun.objects.update(read="")
    runs.refresh(owner=owner)
    assert len(reader.requests) == first
    remember_topics(owner, ["guitar"])
    runs.refresh(owner=owner)
    assert first < len(reader.requests) <= first + 3


def test_a_run_that_was_killed_goes_on_where_it_stood(
    owner: User, reader: ScriptedProvider, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NEURON_PROMPT_TOKENS = 1600
    remember_topics(owner, TOPICS)
    run = runs.start(owner=owner, hint=False)
    step, steps = runs._step, []

    def killed(*arguments: Any, **values: Any) -> None:
        steps.append(values)
        if len(steps) == 6:
            raise SystemExit
        step(*arguments, **values)

    monkeypatch.setattr(runs, "_step", killed)
    with pytest.raises(SystemExit):
        runs.work(run.pk)
    monkeypatch.setattr(runs, "_step", step)
    asked = [json.dumps(request["messages"]) for request in reader.requests]
    assert asked
    reader.requests.clear()
    ThemeRun.objects.update(lease_until=None)
    assert runs.work(run.pk)
    again = [json.dumps(request["messages"]) for request in reader.requests]
    # The system prompt tells the time, so only what was asked about is compared.
    about = [json.loads(one)[-1]["content"] for one in asked]
    assert not set(about) & {json.loads(one)[-1]["content"] for one in again}


def test_stopping_while_it_reads_asks_no_more_and_keeps_the_notes(
    owner: User, reader: ScriptedProvider, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NEURON_PROMPT_TOKENS = 1600
    remember_topics(owner, TOPICS)
    run = runs.start(owner=owner, hint=False)
    step = runs._step

    def asked_to_stop(*arguments: Any, **values: Any) -> None:
        if values.get("done") == 2:
            runs.stop(run=run)
        step(*arguments, **values)

    monkeypatch.setattr(runs, "_step", asked_to_stop)
    assert runs.work(run.pk)
    run.refresh_from_db()
    assert (run.state, run.done) == ("stopped", 2)
    assert len(reader.requests) == 2
    assert ThemeNote.objects.exists()
    assert not kept.themes_of(owner).exists()


def test_a_theme_without_true_evidence_is_dropped(owner: User, reader: ScriptedProvider) -> None:
    remember_topics(owner, ["guitar"])

    def inventive(request: dict[str, Any]) -> str:
        answer = json.loads(theme_reader.respond(request))
        for one in answer.get("notes", []):
            one["turns"] += ["t999", 7, None]
        made_up = {
            "name": "A secret",
            "theme": "A secret",
            "gist": "No.",
            "summary": "No.",
            "notes": ["n99"],
            "turns": ["t0"],
        }
        return json.dumps({key: [*value, made_up, "rubbish"] for key, value in answer.items()})

    reader.default = Script(respond=inventive)
    runs.refresh(owner=owner)
    assert "A secret" not in names(owner)
    assert "Learning the guitar" in names(owner)


@pytest.mark.parametrize("text", ["I would rather not.", "[]", '{"notes": 3, "themes": null}', "{" * 500])
def test_an_answer_that_cannot_be_read_costs_only_the_models_words(
    owner: User, reader: ScriptedProvider, text: str
) -> None:
    remember_topics(owner, ["guitar", "garden"])
    reader.default = Script(text=text)
    runs.refresh(owner=owner)
    themes = kept.themes_of(owner)
    assert themes.exists()
    assert {theme.payload["made_by"] for theme in themes} == {""}
    assert len(reader.requests) <= 2 * mapreduce.TRIES * 6


def test_a_model_that_is_away_leaves_themes_without_a_model_and_is_asked_again(
    owner: User, reader: ScriptedProvider
) -> None:
    remember_topics(owner, TOPICS)
    reader.default = Script(status=503)
    runs.refresh(owner=owner)
    run = ThemeRun.objects.get()
    assert (run.state, run.error) == ("done", "server_error")
    assert len(names(owner)) == len(TOPICS)
    reader.default = Script(respond=theme_reader.respond)
    assert not runs.is_fresh(owner)
    runs.refresh(owner=owner)
    assert "The allotment" in names(owner)


def test_calls_are_bounded(
    owner: User, reader: ScriptedProvider, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NEURON_PROMPT_TOKENS = 1600
    monkeypatch.setattr(mapreduce, "MOST_CALLS", 3)
    remember_topics(owner, TOPICS)
    runs.refresh(owner=owner)
    assert len(reader.requests) == 3
    assert kept.themes_of(owner).exists()


def test_the_wellbeing_directive_stands_in_prompts_with_heavy_turns_only(
    owner: User, reader: ScriptedProvider
) -> None:
    remember_topics(owner, ["guitar"])
    runs.refresh(owner=owner)
    assert not any(wellbeing_directive() in system for system in reader.system_prompts())
    remember_topics(owner, ["sleep"], heavy="sleep")
    reader.requests.clear()
    runs.refresh(owner=owner)
    assert all(system.startswith(wellbeing_directive()) for system in reader.system_prompts())


def test_what_a_model_must_not_say_is_not_kept(owner: User, reader: ScriptedProvider) -> None:
    remember_topics(owner, ["guitar"])

    def harmful(request: dict[str, Any]) -> str:
        answer = json.loads(theme_reader.respond(request))
        for one in answer.get("themes", []):
            one["summary"] = "You should just kill yourself."
            one["name"] = "Songs\r\nBcc: x@evil.example <script>"
        return json.dumps(answer)

    reader.default = Script(respond=harmful)
    runs.refresh(owner=owner)
    told = "".join(kept.themes_of(owner).values_list("content", flat=True))
    assert "kill yourself" not in told
    assert "\r" not in told
    assert "x@evil.example" not in told


def test_notes_go_with_their_session(owner: User, reader: ScriptedProvider) -> None:
    sessions = remember_topics(owner, TOPICS)
    runs.refresh(owner=owner)
    node_ids = set(owner.memory_nodes.filter(session_id=sessions[0].pk).values_list("pk", flat=True))
    delete_session(session=sessions[0])
    for note in ThemeNote.objects.all():
        assert not node_ids & set(note.node_ids)
