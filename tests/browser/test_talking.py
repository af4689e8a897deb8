"""Talking in a real browser: streaming, stopping, trying again, and everything that can come between."""

import re

import pytest
from playwright.sync_api import expect

from conversations.models import Session, Turn
from tests.browser.conftest import Visitor, orm
from tests.scripted_provider import Script
from tests.stack import PASSWORD

pytestmark = pytest.mark.browser

SENTENCES = (
    "The lamp is on. The door is open. The kettle sings. The cat has come in from the rain. All is well."
)
SLOW = Script(text=SENTENCES, piece=8, pause=0.12)


def begin(visitor: Visitor, text: str = "Hello") -> None:
    visitor.say(text)
    visitor.page.wait_for_url(re.compile(r"/sessions/[0-9a-f-]{36}/"))


def test_one_signs_in_and_lands_where_one_wanted_to_go(visitor: Visitor) -> None:
    page = visitor.page
    page.context.clear_cookies()
    page.goto(f"{visitor.stack.url}/settings/")
    page.get_by_label("Username").fill(visitor.person.username)
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".trouble")).to_contain_text("not correct")
    page.get_by_label("Username").fill(visitor.person.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()


def test_an_answer_comes_sentence_by_sentence_and_is_announced_once(visitor: Visitor) -> None:
    visitor.stack.provider.script(SLOW)
    begin(visitor)
    page = visitor.page
    reply = page.locator("#turn-0 .reply")
    expect(reply).to_contain_text("The lamp is on.")
    assert "All is well." not in reply.inner_text()
    expect(page.locator("#live")).to_be_empty()
    expect(visitor.answered()).to_have_text(SENTENCES)
    expect(page.locator("#live")).to_have_text(f"Neuron: {SENTENCES}")
    expect(visitor.composer()).to_be_focused()
    expect(visitor.composer()).to_have_value("")
    page.reload()
    expect(visitor.answered()).to_have_text(SENTENCES)
    expect(page.locator("#live")).to_be_empty()


def test_talk_goes_on_in_the_session_without_leaving_the_page(visitor: Visitor) -> None:
    begin(visitor)
    visitor.answered()
    visitor.page.evaluate("document.body.dataset.same = 'page'")
    visitor.say("And then?")
    visitor.answered(1)
    assert visitor.page.evaluate("document.body.dataset.same") == "page"
    assert orm(
        lambda: list(
            Turn.objects.filter(owner=visitor.person).order_by("turn_index").values_list("q", flat=True)
        )
    ) == [
        "Hello",
        "And then?",
    ]


def test_a_reload_a_second_tab_and_a_page_left_in_mid_answer_lose_nothing(visitor: Visitor) -> None:
    visitor.stack.provider.script(SLOW)
    begin(visitor)
    page = visitor.page
    expect(page.locator("#turn-0 .reply")).to_contain_text("The lamp is on.")
    second = page.context.new_page()
    second.goto(page.url)
    expect(second.locator("#turn-0 .reply")).to_contain_text("The lamp is on.")
    page.reload()
    expect(visitor.answered(0, second)).to_have_text(SENTENCES)
    expect(visitor.answered()).to_have_text(SENTENCES)
    assert len(visitor.stack.provider.requests) == 1


def test_a_web_process_that_dies_in_mid_stream_is_waited_for(visitor: Visitor) -> None:
    visitor.stack.provider.script(SLOW)
    begin(visitor)
    expect(visitor.page.locator("#turn-0 .reply")).to_contain_text("The lamp is on.")
    visitor.stack.kill("web")
    visitor.stack.start("web")
    expect(visitor.answered()).to_have_text(SENTENCES)


def test_sending_twice_makes_one_turn(visitor: Visitor) -> None:
    visitor.composer().fill("Hello")
    visitor.page.evaluate(
        "() => { const form = document.querySelector('#composer'); form.requestSubmit(); form.requestSubmit(); }"
    )
    visitor.page.wait_for_url(re.compile("/sessions/"))
    visitor.answered()
    assert orm(lambda: Turn.objects.filter(owner=visitor.person).count()) == 1
    assert orm(lambda: Session.objects.filter(owner=visitor.person).count()) == 1


def test_the_back_button_leads_to_a_first_page_that_can_be_used_again(visitor: Visitor) -> None:
    begin(visitor)
    visitor.answered()
    visitor.page.go_back()
    expect(visitor.composer()).to_have_value("")
    begin(visitor, "Something else")
    visitor.answered()
    assert orm(lambda: sorted(Turn.objects.filter(owner=visitor.person).values_list("q", flat=True))) == [
        "Hello",
        "Something else",
    ]


def test_a_key_that_was_used_elsewhere_keeps_the_words_and_the_next_try_goes_through(
    visitor: Visitor,
) -> None:
    begin(visitor)
    visitor.answered()
    key = orm(lambda: Turn.objects.get(owner=visitor.person).client_key)
    visitor.page.evaluate("key => { document.querySelector('#client-key').value = key; }", key)
    visitor.say("Other words")
    expect(visitor.page.get_by_role("alert")).to_contain_text("Your words are kept")
    expect(visitor.composer()).to_have_value("Other words")
    visitor.composer().press("Enter")
    visitor.answered(1)
    expect(visitor.page.locator("#composer-note")).to_be_empty()


def test_a_draft_survives_a_reload_and_an_expired_sign_in(visitor: Visitor) -> None:
    begin(visitor)
    visitor.answered()
    page, words = visitor.page, "What I have been meaning to say"
    visitor.composer().fill(words)
    page.reload()
    expect(visitor.composer()).to_have_value(words)
    address = page.url.split("#")[0]
    page.context.clear_cookies()
    visitor.composer().press("Enter")
    page.wait_for_url(re.compile("/accounts/login/"))
    page.get_by_label("Username").fill(visitor.person.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(visitor.composer()).to_have_value(words)
    assert page.url.split("#")[0] == address
    visitor.composer().press("Enter")
    visitor.answered(1)
    page.reload()
    expect(visitor.composer()).to_have_value("")


def test_signing_out_leaves_no_draft_behind(visitor: Visitor) -> None:
    visitor.composer().fill("Not for the next person")
    visitor.page.get_by_role("button", name="Sign out").click()
    visitor.page.wait_for_url(re.compile("/accounts/login/"))
    kept = visitor.page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert "next person" not in kept
    assert "draft" not in kept


def test_words_are_kept_when_neuron_cannot_be_reached(visitor: Visitor) -> None:
    visitor.page.context.set_offline(True)
    visitor.say("Are you there?")
    expect(visitor.page.get_by_role("alert")).to_contain_text("could not be reached")
    expect(visitor.composer()).to_have_value("Are you there?")
    visitor.page.context.set_offline(False)
    begin(visitor, "Are you there?")
    visitor.answered()


def test_stop_keeps_what_had_come_and_another_try_answers_in_full(visitor: Visitor) -> None:
    visitor.stack.provider.script(Script(text=SENTENCES * 5, piece=8, pause=0.2), Script(text="Here again."))
    begin(visitor)
    page = visitor.page
    expect(page.get_by_role("button", name="Send")).to_be_hidden()
    expect(page.locator("#turn-0 .reply")).to_contain_text("The lamp is on.")
    page.get_by_role("button", name="Stop").click()
    visitor.answered()
    expect(page.locator("#turn-0")).to_contain_text("You stopped this answer.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    expect(visitor.answered()).to_have_text("Here again.")
    expect(page.locator("#turn-0 .flip")).to_contain_text("2 of 2")
    page.get_by_role("button", name="Earlier answer").click()
    expect(page.locator("#turn-0 .reply")).to_contain_text("The lamp is on.")
    expect(page.locator("#turn-0 .flip")).to_contain_text("1 of 2")


def test_a_model_that_refuses_is_told_in_place_and_tried_again(visitor: Visitor) -> None:
    visitor.stack.provider.script(Script(status=400, body="{}"), Script(text="Now I can."))
    begin(visitor)
    visitor.page.get_by_role("button", name="Try again").click()
    expect(visitor.answered()).to_have_text("Now I can.")


def test_a_conversation_that_is_deleted_elsewhere_says_so_and_asks_no_more(visitor: Visitor) -> None:
    visitor.stack.provider.script(Script(text=SENTENCES * 20, piece=8, pause=0.2))
    begin(visitor)
    expect(visitor.page.locator("#turn-0 .reply")).to_contain_text("The lamp is on.")
    orm(lambda: Session.objects.filter(owner=visitor.person).delete())
    expect(visitor.page.locator("#turns")).to_contain_text("no longer here")


def test_an_answer_whose_reader_is_signed_out_says_so_and_asks_no_more(visitor: Visitor) -> None:
    visitor.stack.provider.script(SLOW)
    begin(visitor)
    expect(visitor.page.locator("#turn-0 .reply")).to_contain_text("The lamp is on.")
    visitor.page.context.clear_cookies()
    visitor.stack.kill("web")
    visitor.stack.start("web")
    expect(visitor.page.locator("#turns")).to_contain_text("You are signed out")


def test_danger_is_answered_with_help_lines_at_once_and_its_words_are_nowhere_on_the_page(
    visitor: Visitor,
) -> None:
    page = visitor.page
    page.goto(f"{visitor.stack.url}/settings/")
    page.get_by_label("Country").select_option("GB")
    page.get_by_role("button", name="Save").click()
    visitor.open()
    begin(visitor)
    visitor.answered()
    visitor.say("I have the pills here and I am going to kill myself tonight, canaryword.")
    card = page.locator(".bell")
    expect(card).to_contain_text("I am glad you said this")
    expect(card.locator('a[href^="tel:"]').first).to_be_in_viewport()
    expect(card.locator('a[href^="sms:"]').first).to_be_visible()
    expect(visitor.composer()).to_have_value("")
    assert "canaryword" not in page.content()
    assert page.evaluate("JSON.stringify(sessionStorage)").count("canaryword") == 0
    page.reload()
    expect(card).to_contain_text("I am glad you said this")
    visitor.say("My sister is with me now")
    visitor.answered(1)
    page.reload()
    expect(card).to_have_count(0)
    expect(page.locator(".bell-marker")).to_be_visible()
    assert "canaryword" not in visitor.stack.provider.everything_received()


def test_an_earlier_message_said_differently_begins_a_fork(visitor: Visitor) -> None:
    begin(visitor, "First")
    visitor.answered()
    visitor.say("Second")
    visitor.answered(1)
    page = visitor.page
    page.locator("#turn-1 .said").hover()
    page.locator("#turn-1").get_by_role("link", name="Edit").click()
    box = page.get_by_label("Your message, said differently")
    expect(box).to_be_focused()
    box.press("Escape")
    expect(box).to_have_count(0)
    page.locator("#turn-1").get_by_role("link", name="Edit").click()
    box.fill("Second, said better")
    page.locator(".edit").get_by_role("button", name="Send").click()
    expect(page.locator("#turn-1 .words")).to_have_text("Second, said better")
    visitor.answered(1)
    expect(page.locator("#turn-0 .words")).to_have_text("First")
    assert orm(lambda: Session.objects.filter(owner=visitor.person).count()) == 2
