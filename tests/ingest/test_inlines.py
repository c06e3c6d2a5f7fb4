"""Quotes of Markdown have their mark-up whole, wherever they begin and end."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tgraph.explain.render.markup import parse_runs
from tgraph.extract.model.quote_location import QuoteFinder
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.segments import segments, sentences_of
from tgraph.model import Document, Page, Segment

MARKDOWN = "text/markdown"
MARKS = set("*`[]()<>~!")
READER = MarkdownIt("commonmark")
FORMS = st.sampled_from(["*{}*", "**{}**", '[{}](u "T")', "![{}](u)", "<b>{}</b>", "<{}>"])
WORDS = st.sampled_from(["Fram", "was", "in", "1893", "Archer", "`co de`", "`` x ` y ``"])
ENDS = st.sampled_from(["built. It", "sailed. Then", "who? They"])


def joined(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(part, min_size=1, max_size=4).map(" ".join)


def paragraph(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A paragraph: what stands at its beginning opens no other block."""
    return joined(part).map("So {}".format)


def styled(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(FORMS, joined(inner)).map(
        lambda pair: pair[0].format(pair[1]) if pair[0] != "<{}>" else f"<i>{pair[1]}</i><br/>"
    )


WITHIN = paragraph(st.recursive(WORDS, styled, max_leaves=8) | ENDS)
ACROSS = paragraph(st.recursive(WORDS | ENDS, styled, max_leaves=8))


def plain(text: str) -> str:
    """What a parser of its own shows of the text, tags of HTML left out where they are paired."""

    def shown(tokens: list[Token]) -> str:
        return "".join(
            shown(t.children or []) if t.type in ("inline", "image")
            else t.content if t.type in ("text", "code_inline", "text_special")
            else " " * t.type.endswith("break")
            for t in tokens
        )  # fmt: skip

    tokens = READER.parseInline(text)
    tags = [c.content for t in tokens for c in t.children or [] if c.type == "html_inline"]
    assert all(tags.count(f"<{name}>") == tags.count(f"</{name}>") for name in "bi"), text
    return flat(shown(tokens))


def flat(text: str) -> str:
    return " ".join(text.split())


def nests(text: str) -> bool:
    """Whether each tag is closed within the inline that it was opened in, as in "*<b>x</b>*" and
    not in "*<b>*x*</b>*", of which the emphases are two."""
    closing: list[str] = []
    for token in (child for whole in READER.parseInline(text) for child in whole.children or []):
        kind = token.content if token.type == "html_inline" else token.type
        if kind.endswith("_open") or kind in ("<b>", "<i>"):
            closing.append(kind.replace("_open", "_close").replace("<", "</"))
        elif (kind.endswith("_close") or kind in ("</b>", "</i>")) and (
            not closing or closing.pop() != kind
        ):
            return False
    return not closing


def read(text: str) -> Segment:
    """The segment of a paragraph whose mark-up is all read."""
    assume(nests(text))
    (segment,) = segments(text, MARKDOWN)
    assume(not MARKS & set(segment.text.replace("x ` y", "")))
    assert flat(segment.text) == plain(text)
    return segment


def check(quote: str, said: str) -> None:
    """The quote is well-formed and says it."""
    shown = plain(quote)
    assert not MARKS & set(shown.replace("x ` y", "")), quote
    assert flat(said) in shown


@given(ACROSS, st.integers(0), st.integers(0))
def test_whatever_is_located_is_well_formed(text: str, one: int, other: int) -> None:
    segment = read(text)
    letters = [at for at, character in enumerate(segment.text) if not character.isspace()]
    start, end = sorted((letters[one % len(letters)], letters[other % len(letters)]))
    first, last = segment.locate(start, end + 1)
    assert segment.start <= first <= segment.offsets[start]
    assert segment.offsets[end] < last <= segment.end
    check(text[first:last], segment.text[start : end + 1])


@given(ACROSS)
def test_sentences_are_quoted_with_their_mark_up_whole(text: str) -> None:
    segment = read(text)
    for start, end in sentences_of(segment):
        check(text[slice(*segment.locate(start, end))], segment.text[start:end])


@given(WITHIN)
def test_a_quote_reads_as_its_sentence_where_mark_up_crosses_no_end(text: str) -> None:
    segment = read(text)
    for start, end in sentences_of(segment):
        quote = text[slice(*segment.locate(start, end))]
        shown = "".join(run.text for run in parse_runs(quote, "a.md"))
        assert flat(shown) == flat(segment.text[start:end]), quote


@given(st.lists(ACROSS, min_size=1, max_size=3).map("\n\n".join), st.integers(4, 30))
def test_what_is_read_in_a_chunk_is_quoted_well_within_it(text: str, size: int) -> None:
    for paragraph in text.split("\n\n"):
        read(paragraph)
    document = Document("0" * 64, "t", MARKDOWN, (Page(None, text),))
    for chunk in chunk_document(document, size, 0):
        for segment in chunk.segments:
            for start, end in sentences_of(segment):
                first, last = segment.locate(start, end)
                assert chunk.start <= first < last <= chunk.end
                check(text[first:last], segment.text[start:end])


@pytest.mark.parametrize(
    ("text", "said", "quote"),
    [
        ("It has [`logging`](/l/) so it can [emit logs](/e/).", None, None),
        ("See [the docs. They](u) say.", "See the docs.", "See [the docs. They](u)"),
        ("**Note. It is so.** Yes.", "It is so.", "It is so."),
        ("**Note. It is so.** Yes.", "Yes.", "Yes."),
        ("**Note. It** is so.", "It is so.", "**Note. It** is so."),
        ("The `a. Then b` ran.", "Then b ran.", "`a. Then b` ran."),
        ("&copy; is R&amp;D&#33;", "\u00a9 is R&D!", "&copy; is R&amp;D&#33;"),
        ("\\*So\\* it is.", "*So* it is.", "\\*So\\* it is."),
        ("See <https://x.y>.", "https://x.y", "<https://x.y>"),
        ("[Label][1] is.\n\n[1]: u", "Label is.", "[Label][1] is."),
        ("<p>See <a href='u'>the docs. They</a> say.</p>", "They say.",
         "<a href='u'>the docs. They</a> say."),
        ("| a | b |\n|--|--|\n| [x](u) y | **q** |", "x y; b: q", "[x](u) y | **q**"),
    ],
)  # fmt: skip
def test_quotes_begin_and_end_at_the_bounds_of_mark_up(
    text: str, said: str | None, quote: str | None
) -> None:
    segment = segments(text, MARKDOWN)[-1]
    at = segment.text.index(said or segment.text)
    place = segment.locate(at, at + len(said or segment.text))
    assert text[slice(*place)] == (quote or text)


def test_what_a_model_quotes_is_quoted_well_formed() -> None:
    text = "The [Fram](u) was **built. It** sailed."
    (chunk,) = chunk_document(Document("0" * 64, "t", MARKDOWN, (Page(None, text),)))
    finder = QuoteFinder(chunk)
    for said, quote in (
        ("Fram", "Fram"),
        ("Fram](u) was", "[Fram](u) was"),
        ("It** sailed", "**built. It** sailed."),
    ):
        span = finder.find(said)
        assert span is not None
        assert span.quote == text[span.start : span.end] == quote


@pytest.mark.parametrize(
    "piece", ["<i>", "<b>*<i> </b> ", "*a. ", "`a. b` ", "[a](b). ", "&amp;. "]
)
def test_a_page_of_many_marks_is_read(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    for segment in segments(text, MARKDOWN):
        for span in sentences_of(segment):
            first, last = segment.locate(*span)
            assert segment.start <= first < last <= segment.end
