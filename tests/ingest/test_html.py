"""HTML whose elements are nested, left open, hidden or encoded in unusual ways."""

from __future__ import annotations

import time

import pytest

from tgraph.errors import IngestError
from tgraph.ingest.files import load


def text_of(markup: str | bytes) -> str:
    data = markup.encode() if isinstance(markup, str) else markup
    return load(data, "a.html").pages[0].text


def test_an_encoding_declaration_of_xml_is_no_obstacle():
    declared = "<?xml version='1.0' encoding='{}'?><!DOCTYPE html><html><p>Zażółć</p></html>"
    assert text_of(declared.format("utf-8")) == "Zażółć"
    assert text_of(declared.format("iso-8859-2")) == "Zażółć"  # the bytes are UTF-8


def test_comments_and_instructions_part_no_words():
    assert text_of("<p>Sir Er<!-- a <b> -->nest <?php echo 1 ?>Shackleton</p>after") == (
        "Sir Ernest Shackleton\n\nafter"
    )


def test_entities_are_characters():
    assert text_of("<p>A &amp; B &hellip; &#x43; &eacute; &lt;p&gt; &nosuch;</p>") == (
        "A & B … C é <p> &nosuch;"
    )


def test_a_title_inside_a_picture_is_not_the_page_s():
    page = "<svg><title>Arrow</title></svg><title>Page</title><p>Text.</p>"
    assert load(page.encode(), "a.html").title == "Page"


def test_what_follows_a_hidden_element_is_read():
    assert text_of("<p>one</p><p hidden>two</p><p>three <i hidden>four</i>five</p>") == (
        "one\n\nthree five"
    )


def test_elements_left_open_end_where_the_standard_says():
    markup = "<ul><li>One<li>Two</ul><table><tr><td>a<td>b<tr><td>c<td>d</table><p>e<p>f"
    assert text_of(markup) == "- One\n- Two\n\na | b\nc | d\n\ne\n\nf"


def test_a_table_inside_a_cell_stands_behind_its_row():
    inner = "<table><tr><td>x</td><td>y</td></tr></table>"
    assert text_of(f"<table><tr><td>a {inner} b</td><td>c</td></tr></table>") == (
        "a; b | c\n\nx | y"
    )


def test_deep_nesting_is_read_without_recursion():
    assert text_of("<div>" * 2000 + "deep" + "</div>" * 2000) == "deep"


def test_nesting_beyond_every_parser_is_refused_not_cut():
    with pytest.raises(IngestError, match="nested too deep"):
        load(("<p>seen</p>" + "<div>" * 100_000 + "lost").encode(), "a.html")


@pytest.mark.parametrize(
    "piece", ["<p>", "<li>", "<tr><td>", "<script>x</script>y", "<a href=", "<!--", "&amp", "</p>"]
)
def test_reading_takes_linear_time(piece: str):
    started = time.process_time()
    text_of("<p>text</p>" + piece * (400_000 // len(piece)))
    assert time.process_time() - started < 10
