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
