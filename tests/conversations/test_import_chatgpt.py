"""What is read out of a ChatGPT chat, trap by trap. No database."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from conversations.importers import Chat, Unreadable, format_of
from conversations.importers.base import UNDATED, moment
from conversations.importers.chatgpt import ChatGPT
from tests.conversations.exports import START, chat, message

LATEST = datetime(2026, 1, 1, tzinfo=UTC)
BEGAN = datetime.fromtimestamp(START, tz=UTC)


def read(entry: Any) -> Chat:
    return ChatGPT().read(entry, latest=LATEST)


def said(entry: Any) -> list[tuple[str, str]]:
    return [(exchange.q, exchange.a) for exchange in read(entry).exchanges]


def test_a_plain_chat_becomes_its_exchanges_with_their_own_dates() -> None:
    found = read(
        chat(
            message("user", "Where does the river rise?", START),
            message("assistant", "In the hills.", START + 5, metadata={"model_slug": "some-model"}),
        )
    )
    (exchange,) = found.exchanges
    assert (exchange.q, exchange.a, exchange.model) == (
        "Where does the river rise?",
        "In the hills.",
        "some-model",
    )
    assert exchange.said_at == BEGAN
    assert exchange.answered_at == BEGAN + timedelta(seconds=5)
    assert found.title == "A walk"


def test_only_the_branch_shown_last_is_taken_and_the_others_are_counted() -> None:
    entry = chat(message("user", "Hello", START), message("assistant", "The later answer", START + 9))
    question = list(entry["mapping"])[1]
    entry["mapping"]["old"] = {
        "id": "old",
        "parent": question,
        "children": [],
        "message": message("assistant", "The earlier answer", START + 3),
    }
    assert said(entry) == [("Hello", "The later answer")]
    assert read(entry).other_versions == 1
    entry["current_node"] = "old"
    assert said(entry) == [("Hello", "The earlier answer")]


@pytest.mark.parametrize("current", [None, "gone", 7, ["list"]])
def test_without_a_usable_current_node_the_newest_leaf_is_taken(current: Any) -> None:
    entry = chat(
        message("user", "Hello", START), message("assistant", "Good day", START + 9), current_node=current
    )
    assert said(entry) == [("Hello", "Good day")]
    del entry["current_node"]
    assert said(entry) == [("Hello", "Good day")]


def test_a_circle_ends_and_a_missing_parent_begins_the_chat() -> None:
    entry = chat(message("user", "One", START), message("assistant", "Two", START + 1))
    keys = list(entry["mapping"])
    entry["mapping"][keys[1]]["parent"] = keys[2]
    assert said(entry) == [("One", "Two")]
    entry["mapping"][keys[1]]["parent"] = "nowhere"
    assert said(entry) == [("One", "Two")]


@pytest.mark.parametrize(
    "hidden",
    [
        message("system", "You are a helper"),
        message("tool", "result of a search"),
        message("user", "hidden by weight", weight=0),
        message("user", "hidden by weight", weight=0.0),
        message("user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        message(
            "user", "about me", content={"content_type": "user_editable_context", "user_profile": "A secret"}
        ),
        message("assistant", "hmm", content={"content_type": "thoughts", "thoughts": [{"content": "hmm"}]}),
        message(
            "assistant", "Thought for 3s", content={"content_type": "reasoning_recap", "content": "Thought"}
        ),
        message("assistant", "search('x')", recipient="browser"),
        message("assistant", content={"content_type": "code", "text": "search('x')"}, recipient="python"),
        message("assistant", "analysis", channel="analysis"),
        message("assistant", ""),
        message("assistant", content={"content_type": "text", "parts": []}),
        message("assistant", content=None),
        message("assistant", "x", author=None),
        None,
    ],
)
def test_what_was_not_talk_is_not_taken(hidden: Any) -> None:
    entry = chat(
        hidden, message("user", "Visible", START), hidden, message("assistant", "Also visible", START + 4)
    )
    assert said(entry) == [("Visible", "Also visible")]


def test_a_message_without_a_weight_is_visible() -> None:
    entry = message("user", "Visible", START)
    del entry["weight"]
    assert said(chat(entry)) == [("Visible", "")]
    assert said(chat(message("user", "Visible", START, weight=None))) == [("Visible", "")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content_type": "text", "parts": ["one", "two"]}, "one\n\ntwo"),
        ({"content_type": "text", "parts": "just a string"}, "just a string"),
        (
            {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "look"]},
            "[picture]\n\nlook",
        ),
        (
            {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "audio_transcription", "text": "spoken"}],
            },
            "spoken",
        ),
        ({"content_type": "code", "language": "python", "text": "print(1)"}, "```python\nprint(1)\n```"),
        ({"content_type": "code", "language": "unknown", "text": "x"}, "```\nx\n```"),
        ({"content_type": "something_new", "text": "its text"}, "its text"),
        ({"content_type": "something_new", "parts": [None, 3, ["x"], {"other": 1}, "words"]}, "words"),
    ],
)
def test_parts_come_in_many_shapes(content: Any, text: str) -> None:
    assert said(
        chat(message("user", "Q", START), message("assistant", None, START + 1, content=content))
    ) == [("Q", text)]


def test_attached_files_are_named_and_pictures_not_twice() -> None:
    attached = {
        "attachments": [
            {"name": "notes.pdf", "mime_type": "application/pdf"},
            {"name": "photo.jpg", "mime_type": "image/jpeg"},
            "odd",
        ]
    }
    assert said(chat(message("user", "See here", START, metadata=attached))) == [
        ("See here\n\n[file: notes.pdf]", "")
    ]


def test_messages_that_follow_each_other_on_one_side() -> None:
    entry = chat(
        message("assistant", "Welcome", START),
        message("user", "First", START + 1),
        message("user", "Second", START + 2),
        message("assistant", "Part one", START + 3),
        message("assistant", "part two", START + 4),
        message("user", "Third", START + 5),
    )
    assert said(entry) == [("", "Welcome"), ("First", ""), ("Second", "Part one\n\npart two"), ("Third", "")]


def test_citation_marks_go_and_what_they_wrap_stays() -> None:
    text = (
        "Rivers flow\ue200cite\ue202turn0search1\ue202turn0search2\ue201 to "
        '\ue200entity\ue202["place","the sea","body of water"]\ue201 \ue203slowly\ue204\ue206【12†source】.'
    )
    assert said(chat(message("user", "Q \ue200", START), message("assistant", text, START))) == [
        ("Q \ue200", "Rivers flow to the sea slowly.")
    ]


@pytest.mark.parametrize(
    "form",
    [
        START,
        int(START),
        int(START * 1000),
        int(START * 1_000_000),
        str(START),
        str(int(START)),
        "2023-05-13T17:46:40Z",
        "2023-05-13T17:46:40+00:00",
        "2023-05-13T19:46:40+02:00",
        " 2023-05-13T17:46:40 ",
    ],
)
def test_a_time_is_read_in_every_form(form: Any) -> None:
    assert moment(form, latest=LATEST) == BEGAN


@pytest.mark.parametrize(
    "form",
    [
        None,
        True,
        "",
        "soon",
        "2023-99-99T00:00:00Z",
        0,
        -5,
        1e300,
        float("nan"),
        float("inf"),
        "nan",
        [],
        {},
        4_102_444_800,
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_what_is_no_time_or_cannot_be_true_is_none(form: Any) -> None:
    assert moment(form, latest=LATEST) is None


def test_a_missing_time_is_inherited_and_each_message_is_later_than_its_parent() -> None:
    found = read(
        chat(
            message("user", "a", None),
            message("assistant", "b", START + 10),
            message("user", "c", START + 4),  # before its parent
            message("assistant", "d", None),
            message("user", "e", START + 10),
            message("user", "f", START + 60),
        )
    )
    times = [exchange.said_at for exchange in found.exchanges]
    assert times == sorted(set(times))
    assert times[0] == BEGAN
    assert times[1] == BEGAN + timedelta(seconds=10, milliseconds=1)
    assert times[-1] == BEGAN + timedelta(seconds=60)
    assert not found.undated


def test_a_chat_without_any_date_stands_before_all_others_and_never_in_the_present() -> None:
    found = read(chat(message("user", "a"), message("user", "b"), create_time=None, update_time="null"))
    assert found.undated
    assert [exchange.said_at for exchange in found.exchanges] == [
        UNDATED,
        UNDATED + timedelta(milliseconds=1),
    ]


def test_a_date_in_the_future_is_not_believed() -> None:
    assert read(chat(message("user", "a", START + 1e9))).exchanges[0].said_at == BEGAN


@pytest.mark.parametrize("title", [None, "", "  ", "New chat", "new chat", 7])
def test_a_title_that_says_nothing_is_none(title: Any) -> None:
    assert read(chat(message("user", "a", START), title=title)).title == ""


@pytest.mark.parametrize("flag", ["is_do_not_remember", "is_temporary_chat", "is_temporary"])
def test_a_chat_not_to_be_remembered_is_temporary(flag: str) -> None:
    assert read(chat(message("user", "a", START), **{flag: True})).temporary
    assert not read(chat(message("user", "a", START), **{flag: False})).temporary


def test_the_same_chat_has_the_same_id_again_also_when_it_has_none() -> None:
    entry = chat(message("user", "a", START), id="fixed", conversation_id=None)
    entry["id"] = ""
    assert read(entry).external_id == read(entry).external_id != ""
    entry["conversation_id"] = "x" * 500
    assert len(read(entry).external_id) <= 200


def test_an_entry_that_lost_its_messages_is_recognised_and_unreadable() -> None:
    entry = chat(message("user", "a", START))
    del entry["mapping"]
    assert format_of(entry) is not None
    with pytest.raises(Unreadable):
        read(entry)


@pytest.mark.parametrize("entry", [None, 3, "text", [], {}, {"uuid": "x", "chat_messages": []}, {"chat": {}}])
def test_entries_of_other_kinds_are_not_taken_for_chats(entry: Any) -> None:
    assert format_of(entry) is None


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"a": None},
        {"a": 3},
        {"a": {"message": 3}},
        {"a": {"parent": "a"}},
        {"a": {"message": {"content": "x", "author": "y"}}},
    ],
)
def test_odd_trees_hold_nothing_and_break_nothing(mapping: Any) -> None:
    assert read({"mapping": mapping, "current_node": "a"}).exchanges == ()
