"""The built-in responder: look-ups by extraction, and a kind word where somebody is in distress."""

from datetime import UTC, datetime, timedelta

import pytest

from conversations.models import Session
from conversations.services import create_session
from tests.conversations.talk import say, talked

pytestmark = pytest.mark.usefixtures("built_in")

MAY = datetime(2023, 5, 1, 12, tzinfo=UTC)
CHATS = [
    [
        ("Hey Sam, what's up?", "Hello. Not much. How is the allotment?"),
        ("I planted beans in the allotment with my brother.", "The allotment sounds lovely. Beans are a good start."),
        ("Wow, thanks, Sam!", "You're welcome."),
    ],
    [
        ("Hi Sam, good to see you!", "Hello. How was the driving lesson?"),
        ("My driving lesson went badly and I stalled the car at a roundabout.", "A roundabout is hard at first."),
        ("Then I went to the allotment to calm down.", "The allotment does that."),
    ],
    [
        ("Hey Sam, guess what!", "Tell me."),
        ("I passed the driving test on Monday, at the roundabout near the harbour.", "Congratulations on the test."),
        ("My brother brought beans from the allotment to celebrate.", "What a fine brother."),
    ],
]  # fmt: skip


@pytest.fixture
def past(session: Session) -> list[Session]:
    """Three chats, a week apart; the last one is the newest."""
    sessions = []
    for number, exchanges in enumerate(CHATS):
        sessions.append(create_session(owner=session.owner))
        for minute, exchange in enumerate(exchanges):
            talked(sessions[-1], exchange, at=MAY + timedelta(weeks=number, minutes=minute))
    return sessions


SUMMARISE = "Summarise the key themes across my recent conversations"


def test_the_newest_conversation_comes_first_each_with_its_date_and_a_link_to_its_turn(
    session: Session, past: list[Session]
) -> None:
    told = say(session, SUMMARISE).a
    places = [told.index(f"**{day} May 2023**") for day in (15, 8, 1)]
    assert places == sorted(places)
    for talk in past:
        assert f"/sessions/{talk.pk}/#turn-" in told


def test_a_conversation_is_named_by_what_was_in_it_and_not_by_its_greeting(
    session: Session, past: list[Session]
) -> None:
    told = say(session, SUMMARISE).a
    assert "Hey Sam" not in told
    assert "Sam" not in told
    assert "driving lesson" in told.lower()


def test_a_fitting_sentence_of_the_person_is_quoted_and_leads_to_its_turn(
    session: Session, past: list[Session]
) -> None:
    told = say(session, SUMMARISE).a
    line = next(line for line in told.splitlines() if "8 May 2023" in line and "You said" in line)
    assert "“My driving lesson went badly and I stalled the car at a roundabout.”" in line
    assert f"/sessions/{past[1].pk}/#turn-1" in line


def test_what_recurs_is_told_with_how_often_and_when_last(session: Session, past: list[Session]) -> None:
    told = say(session, SUMMARISE).a
    assert "**allotment**, in 3 conversations, last on [15 May 2023]" in told


def test_a_conversation_is_told_in_its_order(session: Session) -> None:
    talked(session, ("I bought a kayak.", "A kayak."), ("The kayak leaks.", "Oh."))
    told = say(session, "Summarise this conversation").a
    assert told.index("I bought a kayak.") < told.index("The kayak leaks.")


def test_what_was_said_about_something_is_quoted_with_its_date(session: Session, past: list[Session]) -> None:
    told = say(session, "What did I say about the driving test?").a
    assert "15 May 2023" in told
    assert "I passed the driving test on Monday" in told


def test_asked_for_the_first_time_the_oldest_comes_first(session: Session, past: list[Session]) -> None:
    told = say(session, "When did I first tell you about the allotment?").a
    assert told.startswith("What I find about the allotment, the earliest first:")
    assert told.index("1 May 2023") < told.index("8 May 2023") < told.index("15 May 2023")


def test_a_long_past_is_read_whole(session: Session) -> None:
    for week in range(12):
        chat = create_session(owner=session.owner)
        talked(
            chat, *[(f"My kayak {week} leaks. " + "word " * 400, "Oh.")] * 2, at=MAY + timedelta(weeks=week)
        )
    assert "12 conversations" in say(session, SUMMARISE).a


def test_what_was_said_stays_text_in_the_answers_markdown(session: Session) -> None:
    talked(session, ("My [kayak](https://evil.example) is **green** and I like the kayak a lot", "Fine."))
    told = say(session, "Summarise this conversation").a
    assert "](https://evil.example)" not in told
    assert "**green**" not in told


# --- Distress ---------------------------------------------------------------------------------------------------


def test_distress_is_met_with_a_kind_word_that_leads_to_people_and_sells_nothing(session: Session) -> None:
    turn = say(session, "I feel hopeless and I can't cope")
    assert turn.action == "soft_bell"
    assert turn.a.startswith("I am sorry that it is this heavy")
    assert "somebody you trust" in turn.a
    assert "NEURON_MODEL" not in turn.a
    assert "depress" not in turn.a


def test_distress_with_a_look_up_gets_the_kind_word_first_and_then_what_was_asked(
    session: Session, past: list[Session]
) -> None:
    told = say(session, "I feel hopeless and I can't cope. What did we talk about lately?").a
    assert told.index("somebody you trust") < told.index("15 May 2023")


def test_distress_with_a_look_up_that_finds_nothing_says_both(session: Session) -> None:
    told = say(session, "I feel hopeless and I can't cope. What did we talk about lately?").a
    assert told.index("somebody you trust") < told.index("There is nothing to look back on yet")


def test_ordinary_talk_is_told_how_to_set_a_model(session: Session) -> None:
    assert "NEURON_MODEL" in say(session, "Hello there").a
