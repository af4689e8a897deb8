"""Markdown is rendered safely: no script, no inline style, nothing from another host."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.markdown import render

INLINE_STYLE = re.compile(r"<[^>]*\sstyle=")


@pytest.mark.parametrize(
    "written",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](https://elsewhere.example/x.png)",
        "```html\n<script>alert(1)</script>\n```",
        "```<script>\nx\n```",
        "<div style='position:fixed'>x</div>",
        "| a |\n|:-:|\n| <b onclick=x>1</b> |",
        "[a]: javascript:alert(1)\n\n[a]",
    ],
)
def test_nothing_that_runs_or_is_fetched_gets_through(written: str) -> None:
    html = render(written)
    assert "<script" not in html
    assert "<img" not in html
    assert not INLINE_STYLE.search(html)
    assert 'href="javascript' not in html
    assert 'href="data' not in html


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_whatever_is_written_renders_without_script_or_style(written: str) -> None:
    html = render(written)
    assert "<script" not in html
    assert not INLINE_STYLE.search(html)


def test_a_picture_becomes_a_link_with_its_words() -> None:
    assert render("![a lamp](https://elsewhere.example/lamp.png)") == (
        '<p><a href="https://elsewhere.example/lamp.png" rel="noopener noreferrer nofollow">a lamp</a></p>\n'
    )


def test_code_comes_with_its_language_and_a_button_to_copy_it() -> None:
    html = render("```python\nprint('<hi>')\n```")
    assert "<span>python</span>" in html
    assert 'class="copy"' in html
    assert "print('&lt;hi&gt;')" in html


def test_code_inside_a_list_keeps_its_place() -> None:
    html = render("1. first\n\n   ```sh\n   ls\n   ```\n2. second")
    assert html.count("<ol>") == 1
    assert "<code>ls\n</code>" in html


def test_tables_say_alignment_by_class_because_the_policy_forbids_inline_style() -> None:
    html = render("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert '<td class="right">2</td>' in html


def test_headings_stand_below_those_of_the_page() -> None:
    assert "<h3>Title</h3>" in render("# Title")
    assert "<h6>Deep</h6>" in render("###### Deep")


def test_a_link_that_is_defined_further_down_is_found_from_another_block() -> None:
    assert '<a href="/sessions/1/#turn-3"' in render("See [there].\n\nMore.\n\n[there]: /sessions/1/#turn-3")


def test_a_reply_broken_off_inside_code_is_shown_as_code() -> None:
    assert "<pre" in render("Here:\n\n```python\nx = 1")


def test_a_growing_reply_renders_as_the_whole_one_does() -> None:
    whole = "One.\n\n- two\n- three\n\n```\nfour\n```\n\nfive"
    for end in range(len(whole)):
        render(whole[:end])
    assert render(whole) == render(whole + "")
    assert "<li>three</li>" in render(whole)
