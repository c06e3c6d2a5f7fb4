"""Headings of Markdown at their exact places, and nothing that only looks like one."""

from __future__ import annotations

import time

import pytest

from tgraph.ingest.files import load
from tgraph.ingest.markdown_segments import read_page


def found(text: str) -> list[tuple[str, int, int]]:
    return [(h.text, h.level, h.start) for h in read_page(text).headings]


def test_headings_stand_where_their_line_s_text_begins():
    text = "# One\n\n  ## 𝔗wo é ##\nText.\n\nThree\nlines\n===\n\n#no\n####### no\n"
    assert found(text) == [
        ("One", 1, 0),
        ("𝔗wo é", 2, text.index("## 𝔗")),
        ("Three lines", 1, text.index("Three")),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts_as_it_is_stored(end: str):
    text = end.join(["Before\u2028it.", "", "# Head", "", "Under", "---", ""])
    assert found(text) == [
        ("Head", 1, text.index("# Head")),
        ("Under", 2, text.index("Under")),
    ]


def test_mark_up_in_a_heading_is_left_out():
    source = '# A *b* `c_d` [e](f "g") ![h](i) [j][k] x_y_z &amp; \\* <b>l</b>\n\n[k]: m\n'
    assert found(source) == [("A b c_d e h j x_y_z & * l", 1, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "```\n# code\n```\n",
        "~~~ sh\n# code\n",
        "    # indented\n",
        "> # quoted\n",
        "- # item\n",
        "<!--\n# comment\n-->\n",
        "<pre>\n# preformatted\n</pre>\n",
        "# \n",
        "# " + "long " * 200 + "\n",
    ],
)
def test_what_is_no_heading_of_the_document(text: str):
    assert found(text) == []


def test_the_front_matter_heads_nothing():
    document = load(b"---\ntitle: T\n# a comment\n...\nA\n---\n", "a.md")
    assert [(h.text, h.start) for h in document.pages[0].headings] == [("A", 29)]
    assert document.title == "T"


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["`", "```\n", "> ", "- ", "# x\n", "[a]: (\n", "*a ", "![[](", "a\n", "<!--\n", "[a"]
)
def test_reading_takes_linear_time(piece: str):
    """The expression for fences that stood here once took minutes for 100 kB of backticks."""
    started = time.process_time()
    load((piece * (100_000 // len(piece)) + "\n\n# Head\n").encode(), "a.md")
    assert time.process_time() - started < 10


def readings(text: str) -> list[tuple[str, str]]:
    return [(segment.kind, segment.text) for segment in read_page(text).segments]


@pytest.mark.parametrize(
    ("opening", "title"),
    [
        (":::danger Mind *this*", "Mind this"),
        (":::danger[Mind this]", "Mind this"),
        ('::: {.callout-note title="Mind this"} :::', "Mind this"),
        (":::: warning ::::", ""),
        (":::{note} Mind this", "Mind this"),
    ],
)
def test_a_container_shows_its_title_and_body(opening: str, title: str):
    text = f"Before.\n{opening}\nThe lid *must* stay closed.\n\n- One\n:::\nAfter.\n"
    expected = [("display", title)] if title else []
    assert readings(text) == [
        ("prose", "Before."),
        *expected,
        ("prose", "The lid must stay closed."),
        ("item", "One"),
        ("prose", "After."),
    ]
    body = next(s for s in read_page(text).segments if s.text.startswith("The lid"))
    assert text[body.start : body.end] == "The lid *must* stay closed."


@pytest.mark.parametrize("text", ["::: 5 litres", "::x", "```\n:::tip\n```", "a :::tip b"])
def test_other_colons_are_text(text: str):
    assert ":" in readings(text)[0][1]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("It is ~~90~~ 70 bar.", "It is 70 bar."),
        ("It is <del>90 <b>or</b> 80</del> 70 bar.", "It is 70 bar."),
        ("<p>It is <s>90</s> 70 bar.</p>", "It is 70 bar."),
        ("It is <DEL class='x'>`90` ![c](d)</DEL>70 bar.", "It is 70 bar."),
        ("It <del>is 70 bar.", "It is 70 bar."),
        ("It is 70 bar.</del>", "It is 70 bar."),
        ("**It <del>no** is</del> 70 bar.", "It 70 bar."),
        ("It <delta>is</delta> 70 bar.", "It is 70 bar."),
    ],
)
def test_struck_text_is_not_read_and_stays_stored(source: str, expected: str):
    page = read_page(source)
    assert [segment.text for segment in page.segments] == [expected]
    assert load(source.encode(), "a.md").pages[0].text == source


def test_a_text_struck_whole_has_no_segment():
    assert readings("~~It is 90 bar.~~\n\n- ~~old~~\n- new\n") == [("item", "new")]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["<del>", "</del>", "~~", ":::a\n", ":::\n", "<del>x</del>"])
def test_many_marks_take_little_time(part: str):
    began = time.perf_counter()
    read_page(part * 20_000)
    assert time.perf_counter() - began < 10
