"""What a person asked to have kept: said, clicked, written; corrected, pinned, forgotten; theirs alone."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations import cycle, keeping, receiving, services
from conversations.intents import asked_to_keep
from conversations.models import Session, Turn
from conversations.services import create_session, delete_session, profile_of
from conversations.window import search
from memory.connections import connect_pending
from memory.indexing import index_pending
from memory.models import MemoryEdge, MemoryNode
from memory.recall_models import OwnerTerm, Utterance
from safety.models import BellEvent, Referral
from tests.conversations.talk import say, talked
from tests.scripted_provider import Script, ScriptedProvider

API = "/api/v1/knowledge"
SAID = datetime(2026, 5, 12, 9, tzinfo=UTC)
DANGER = "I want to kill myself tonight. zebracanary"


def facts(owner: User) -> list[MemoryNode]:
    return list(MemoryNode.objects.for_owner(owner).knowledge().newest_first())


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("remember that my sister's name is Ada", "My sister's name is Ada"),
        ("Please remember that I am allergic to nuts. How do I cook rice?", "I am allergic to nuts."),
        (
            "Hey Neuron, please remember: the code is 42\nthe door is green\n\nBye",
            "The code is 42\nthe door is green",
        ),
        ("Can you remember that my exam is next Friday?", "My exam is next Friday"),
        ("Remember my birthday is on 3 May", "My birthday is on 3 May"),
        ("Don't forget that I hate cilantro", "I hate cilantro"),
        ("I moved. Please remember that I live near Dr. Smith now.", "I live near Dr. Smith now."),
        ("My sister's name is Ada. Please remember that.", "My sister's name is Ada."),
        ("Could you keep in mind that I don't drink, please?", "I don't drink"),
        ("Do you remember that we went to Lisbon?", ""),
        ("Remember that time we went to Lisbon?", ""),
        ("Remember when I told you about Ada?", ""),
        ("I remember that you said so.", ""),
        ("I can't remember that she was ill", ""),
        ("Remember that I said so?", ""),
        ("What is her name? Remember that.", ""),
        ("Remember to buy milk", ""),
        ("please remember that", ""),
        ("remember " * 1000, ""),
    ],
)
def test_what_asks_to_be_kept_is_told_from_what_asks_about_the_past(message: str, fact: str) -> None:
    assert asked_to_keep(message) == fact


def test_said_it_is_kept_quoted_with_its_turn_and_absolute_dates(session: Session, built_in: None) -> None:
    turn = say(session, "Please remember that I met Ada yesterday.")
    (fact,) = facts(session.owner)
    day = turn.created_at.date() - timedelta(days=1)
    assert fact.content == f"I met Ada on {day.day} {day:%B %Y}."
    assert fact.payload["quote"] == "I met Ada yesterday."
    edge = MemoryEdge.objects.get(target=fact)
    assert (edge.kind, edge.source.node_type) == ("supports", "Conversation")
    assert (edge.source.session_id, edge.source.turn_index) == (session.pk, turn.turn_index)
    assert "I will remember this: “I met Ada yesterday.”" in turn.a


def test_it_is_kept_whatever_becomes_of_the_answer_and_once(
    session: Session, provider: ScriptedProvider
) -> None:
    provider.default = Script(status=400)
    turn = say(session, "Remember that my bike is green.")
    assert turn.status == "failed"
    (fact,) = facts(session.owner)
    keeping.forget(owner=session.owner, node=fact)
    provider.default = Script(text="I will.")
    services.retry_turn(turn=turn)
    cycle.answer(turn.pk)
    turn.refresh_from_db()
    assert turn.a == "I will."
    assert facts(session.owner) == []


def test_a_model_is_told_that_it_is_kept(session: Session, provider: ScriptedProvider) -> None:
    say(session, "Remember that my bike is green.")
    assert '"intent": "remember"' in provider.system_prompts()[-1]
    assert "My bike is green" in provider.system_prompts()[-1]


def test_in_a_temporary_session_nothing_is_kept_and_that_is_said(owner: User, built_in: None) -> None:
    session = create_session(owner=owner)
    session.temporary = True
    session.save()
    turn = say(session, "Remember that my bike is green.")
    assert "not kept" in turn.a
    assert facts(owner) == []
    with pytest.raises(keeping.NothingToKeep):
        keeping.keep_turn(turn=turn)


def test_only_what_the_person_said_is_kept_never_the_answer(session: Session) -> None:
    (turn,) = talked(session, ("Tell me something.", "Remember that the moon is cheese."))
    assert facts(session.owner) == []
    keeping.keep_turn(turn=turn)
    assert [fact.content for fact in facts(session.owner)] == ["Tell me something."]


def test_what_rings_a_hard_bell_is_never_kept(owner: User, owner_client: Client, session: Session) -> None:
    receiving.receive(session=session, text=f"Remember that {DANGER}", client_key="k")
    page = owner_client.post(reverse("kept"), {"words": DANGER}).content.decode()
    assert "I am glad you said this" in page
    answer = owner_client.post(API, {"content": DANGER}, "application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "hard_bell")
    kept = keeping.keep_words(owner=owner, words="I like tea.")
    owner_client.post(reverse("kept-correct", args=[kept.pk]), {"words": DANGER})
    owner_client.patch(f"{API}/{kept.pk}", {"content": DANGER}, "application/json")
    assert [fact.content for fact in facts(owner)] == ["I like tea."]
    assert BellEvent.objects.filter(owner=owner, level="hard").count() == 5
    assert Referral.objects.filter(level="hard").count() == 4  # all but the one whose page was not opened
    assert not MemoryNode.objects.filter(owner=owner, content__contains="zebracanary").exists()


def test_on_the_page_it_is_seen_added_to_corrected_pinned_and_forgotten(
    owner: User, owner_client: Client, session: Session
) -> None:
    (turn,) = talked(session, ("My sister is called Ada.", "A fine name."), at=SAID)
    owner_client.post(reverse("turn-keep", args=[turn.pk]))
    owner_client.post(reverse("kept"), {"words": "I like tea."})
    page = owner_client.get(reverse("kept")).content.decode()
    assert "My sister is called Ada." in page
    assert f"/sessions/{session.pk}/?at=0#turn-0" in page
    tea, sister = facts(owner)
    owner_client.post(reverse("kept-correct", args=[sister.pk]), {"words": "My sister is called Ida."})
    owner_client.post(reverse("kept-pin", args=[sister.pk]))
    sister.refresh_from_db()
    assert sister.content == "My sister is called Ida."
    assert sister.payload["quote"] == "My sister is called Ada."
    assert sister.tags == ["Knowledge", "pinned"]
    assert sister.version == 3
    owner_client.post(reverse("kept-pin", args=[sister.pk]))
    owner_client.post(reverse("kept-forget", args=[tea.pk]))
    assert [fact.content for fact in facts(owner)] == ["My sister is called Ida."]
    assert facts(owner)[0].tags == ["Knowledge"]
    for words in ("", "   ", "x" * 2001):
        assert owner_client.post(reverse("kept"), {"words": words}).status_code == 422
        assert (
            owner_client.post(reverse("kept-correct", args=[sister.pk]), {"words": words}).status_code == 422
        )
    assert len(facts(owner)) == 1


def test_kept_twice_with_one_click_it_is_one(owner_client: Client, session: Session) -> None:
    (turn,) = talked(session, ("My sister is called Ada.", "A fine name."))
    htmx = {"HX-Request": "true"}
    for _ in range(2):
        answer = owner_client.post(reverse("turn-keep", args=[turn.pk]), headers=htmx).content.decode()
    assert "Kept" in answer
    assert "<html" not in answer
    assert len(facts(session.owner)) == 1


def test_nobody_else_sees_or_touches_it(owner: User, other_client: Client, session: Session) -> None:
    (turn,) = talked(session, ("My sister is called Ada.", "A fine name."))
    fact = keeping.keep_turn(turn=turn)
    assert b"Ada" not in other_client.get(reverse("kept")).content
    assert other_client.get(API).json()["results"] == []
    assert other_client.get(f"{API}/{fact.pk}").status_code == 404
    assert other_client.patch(f"{API}/{fact.pk}", {"pinned": True}, "application/json").status_code == 404
    assert other_client.delete(f"{API}/{fact.pk}").status_code == 404
    assert other_client.post(API, {"turn_id": str(turn.pk)}, "application/json").status_code == 404
    for name in ("kept-correct", "kept-pin", "kept-forget"):
        assert other_client.post(reverse(name, args=[fact.pk]), {"words": "x"}).status_code == 404
    assert other_client.post(reverse("turn-keep", args=[turn.pk])).status_code == 404
    assert facts(owner) == [fact]


def test_the_api_keeps_reads_corrects_pins_and_forgets(owner_client: Client, session: Session) -> None:
    (turn,) = talked(session, ("My sister moved yesterday.", "Where to?"), at=SAID)
    made = owner_client.post(API, {"turn_id": str(turn.pk), "pinned": True}, "application/json")
    assert made.status_code == 201
    one = made.json()
    assert (one["content"], one["quote"]) == ("My sister moved on 11 May 2026.", "My sister moved yesterday.")
    assert (one["pinned"], one["session_id"], one["turn_index"]) == (True, str(session.pk), 0)
    address = made["Location"]
    changed = owner_client.patch(
        address, {"content": "She stayed.", "pinned": False}, "application/json"
    ).json()
    assert (changed["content"], changed["pinned"], changed["quote"]) == ("She stayed.", False, one["quote"])
    assert [fact["id"] for fact in owner_client.get(API).json()["results"]] == [one["id"]]
    assert owner_client.delete(address).status_code == 204
    assert owner_client.get(address).status_code == 404
    for wrong in ({}, {"content": "x", "turn_id": str(turn.pk)}, {"content": " "}, {"content": "x" * 2001}):
        assert owner_client.post(API, wrong, "application/json").status_code in (400, 422)
    assert (
        owner_client.post(API, {"content": "a\u0000b\ud800"}, "application/json").json()["content"]
        == "a\ufffdb\ufffd"
    )


def test_what_is_pinned_stands_in_every_prompt_within_its_budget(
    owner: User, session: Session, provider: ScriptedProvider, settings
) -> None:
    from memory.knowledge import pin_fact

    for number in range(40):
        pin_fact(node=keeping.keep_words(owner=owner, words=f"Fact {number} " + "word " * 100), pinned=True)
    unpinned = keeping.keep_words(owner=owner, words="I once saw a heron.")
    settings.NEURON_PROMPT_TOKENS = 6000
    say(session, "Hello there")
    prompt = provider.system_prompts()[-1]
    assert "Fact 39" in prompt
    assert "Fact 0 " not in prompt
    assert unpinned.content not in prompt
    assert len(prompt) / 4 < 6000


def test_what_was_kept_is_drawn_on_in_its_corrected_form(
    owner: User, owner_client: Client, session: Session, provider: ScriptedProvider
) -> None:
    turn = talked(session, ("My greyhound is called Juno.", "Lovely."), at=SAID)[0]
    fact = keeping.keep_turn(turn=turn)
    keeping.correct(owner=owner, node=fact, words="My greyhound is called Jupiter.")
    index_pending()
    found = search(owner=owner, query="What is my greyhound called?")
    assert [(one.why, one.q) for one in found] == [("kept", "My greyhound is called Jupiter.")]
    asked = say(create_session(owner=owner), "What is my greyhound called?")
    assert '"kept": "My greyhound is called Jupiter."' in provider.system_prompts()[-1]
    assert asked.recalled[0]["why"] == "kept"
    assert (
        f"/sessions/{session.pk}/?at=0#turn-0"
        in owner_client.get(f"/sessions/{asked.session_id}/").content.decode()
    )


def test_a_forgotten_fact_is_gone_from_every_table_and_from_what_was_drawn_on(
    owner: User, session: Session, provider: ScriptedProvider
) -> None:
    fact = keeping.keep_words(owner=owner, words="The xylophone is in the boathouse.")
    index_pending()
    say(session, "Where is the xylophone?")
    assert Turn.objects.get().recalled[0]["node_id"] == str(fact.pk)
    keeping.forget(owner=owner, node=fact)
    assert not Utterance.objects.filter(node=fact.pk).exists()
    assert not OwnerTerm.objects.filter(owner=owner, word="boathous").exists()
    assert Turn.objects.get().recalled == []
    assert "boathouse" not in json.dumps(list(MemoryNode.objects.values("content", "payload")))


def test_deleting_a_session_forgets_what_was_kept_of_it(owner: User, session: Session) -> None:
    keeping.keep_turn(turn=talked(session, ("My sister is called Ada.", "Fine."))[0])
    delete_session(session=session)
    assert facts(owner) == []
    assert profile_of(owner)


def test_what_a_turn_is_connected_with_is_shown_to_its_owner_alone(
    owner: User, owner_client: Client, other_client: Client, session: Session
) -> None:
    said = "I practised the cello with Ada for two hours and my bow arm hurts."
    first = talked(create_session(owner=owner, title="Music"), (said, "Rest it."), at=SAID)[0]
    turn = talked(session, (said, "Rest it."))[0]
    keeping.keep_turn(turn=turn)
    connect_pending()
    address = reverse("turn-connected", args=[turn.pk])
    page = owner_client.get(address).content.decode()
    assert f"/sessions/{first.session_id}/?at=0#turn-0" in page
    assert "/search/?q=Ada" in page
    assert "Kept from it" in page
    panel = owner_client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "Kept from it" in panel
    assert "<html" not in panel
    assert other_client.get(address).status_code == 404
