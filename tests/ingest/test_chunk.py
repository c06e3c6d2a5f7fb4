from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tgraph.errors import UsageError
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.sentences import sentences
from tgraph.model import Document, Heading, Page
from tgraph.models.tokens import count_tokens

# Letters of many scripts, joined emoji, combining marks, right-to-left text and line ends.
PIECES = st.sampled_from(
    [
        "word ",
        "Dr. Who. ",
        "naïve ",
        "ẹ́",
        "👩\u200d👩\u200d👧\u200d👦",
        "🇩🇪",
        "汉字。",
        "مرحبا ",
        "שלום. ",
        "\u202e",
        "\r\n",
        "\n\n",
        "   ",
        "\t",
        "1234567890",
        "<|endoftext|>",
        "don't ",
        "ﷺ",
        "𝔘𝔫𝔦",
        "�",
        "—",
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=80).map("".join))


def document(*texts: str) -> Document:
    numbered = len(texts) > 1
    pages = tuple(Page(n if numbered else None, text) for n, text in enumerate(texts, 1))
    return Document("0" * 64, "title", "text/plain", pages)


@pytest.mark.slow
@settings(deadline=None)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    size=st.integers(4, 40),
    overlap=st.integers(0, 39),
    by=st.sampled_from(["tokens", "sentences"]),
    encoding=st.sampled_from(["o200k_base", "cl100k_base"]),
)
def test_chunks_slice_their_page_exactly_and_cover_it(texts, size, overlap, by, encoding):
    source = document(*texts)
    chunks = chunk_document(source, size, min(overlap, size - 1), by, encoding)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for page in source.pages:
        here = [chunk for chunk in chunks if chunk.page == page.number]
        starts = [chunk.start for chunk in here]
        assert starts == sorted(set(starts))
        for chunk in here:
            assert page.text[chunk.start : chunk.end] == chunk.text
            assert chunk.text.strip()
            assert chunk.tokens == count_tokens(chunk.text, encoding) <= size
        covered = {index for chunk in here for index in range(chunk.start, chunk.end)}
        missing = set(range(len(page.text))) - covered
        assert all(page.text[index].isspace() for index in missing)


@pytest.mark.parametrize("size", [30, 50])
def test_of_a_long_paragraph_each_sentence_is_read_with_those_beside_it(size):
    told = [f"The {n}th ship sailed from Larvik to Tromsø in the spring." for n in range(9)]
    source = document(" ".join(told))
    chunks = chunk_document(source, size, size // 2, "tokens")
    assert len(chunks) > 2
    for chunk in chunks:
        assert len(chunk.segments) == 1, "one stretch, for it is read as one"
    read = [segment.text for chunk in chunks for segment in chunk.segments]
    assert all(any(sentence in text for text in read) for sentence in told)


def test_windows_are_full_and_overlap_as_asked():
    text = " ".join(f"word{number}" for number in range(2000))
    chunks = chunk_document(document(text), size=100, overlap=20)
    assert {chunk.tokens for chunk in chunks[:-1]} == {100}
    for before, after in itertools.pairwise(chunks):
        assert count_tokens(text[after.start : before.end]) == 20


def test_the_last_window_is_not_a_repetition():
    text = "one two three four five six"
    assert len(chunk_document(document(text), size=count_tokens(text), overlap=3)) == 1


def test_sentences_stay_whole_and_repeat_whole():
    text = " ".join(f"This is sentence number {number} of them all." for number in range(60))
    bounds = sentences(text)
    starts, ends = {start for start, _ in bounds}, {end for _, end in bounds}
    chunks = chunk_document(document(text), size=60, overlap=12, by="sentences")
    assert len(chunks) > 5
    assert all(chunk.start in starts and chunk.end in ends for chunk in chunks)
    assert all(b.start < a.end for a, b in itertools.pairwise(chunks))


def test_a_sentence_that_is_too_long_is_cut_by_tokens():
    text = "Short one. It is " + "word " * 200 + "end. Last one."
    chunks = chunk_document(document(text), size=50, overlap=5, by="sentences")
    assert chunks[0].text == "Short one."
    assert chunks[-1].text.endswith("Last one.")
    assert max(chunk.tokens for chunk in chunks) <= 50


def test_white_space_gives_no_chunks():
    assert chunk_document(document(" \n\u3000\t ", "text", "\n\n"))[0].page == 2
    assert chunk_document(document(" \n ")) == []


def test_headings_are_the_path_at_the_start_and_go_on_over_pages():
    text = "Intro\n\nOne\n\nbody\n\nDeep\n\nbody\n\nTwo\n\nbody"
    marks = [("One", 1), ("Deep", 2), ("Two", 1)]
    headings = tuple(Heading(name, level, text.index(name)) for name, level in marks)
    pages = (Page(1, text, headings), Page(2, "more"))
    chunks = chunk_document(Document("0" * 64, "t", "text/plain", pages), size=4, overlap=0)
    paths = {chunk.text.strip(): chunk.headings for chunk in chunks}
    assert chunks[0].headings == ()
    assert ("One", "Deep") in paths.values()
    assert chunks[-1].headings == ("Two",)


@pytest.mark.parametrize(
    ("size", "overlap", "by"),
    [(3, 0, "tokens"), (10, 10, "tokens"), (10, -1, "tokens"), (9, 1, "x")],
)
def test_sizes_that_make_no_sense_are_refused(size, overlap, by):
    with pytest.raises(UsageError, match="Use"):
        chunk_document(document("text"), size, overlap, by)
