"""Quotes of a bounded length: the cut keeps what answers, and its offsets are exact."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph.answer.quotes import find_answering_part, label_fragment, shorten_sentence
from tgraph.model import Citation, SegmentKind, Sentence
from tgraph.model.answers import join_sentences
from tgraph.retrieve.text.lexical import Frequencies
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, analyse_question

CHARGES = (
    "The fee for copies is as follows: (a) for paper copies fifteen (.15) cents a page; (b) for"
    " ten copies or more fifty cents in all; (c) for certified copies two dollars;"
)
FEES = (
    f"{CHARGES} (d) for copies of maps larger than eleven by seventeen inches, the actual cost of"
    " the reproduction as charged to the City by the printer, with a handling charge of one dollar"
    " for each map."
)
PIECES = st.sampled_from(
    [
        "the fee",
        "is due;",
        "for maps,",
        "and so on.",
        "(a)",
        "However",
        "ten\n",
        "naïve",
        "值。",
        "— x",
    ]
)


def quoting(text: str, kind: SegmentKind = "prose", start: int = 40) -> Sentence:
    cited = Citation(
        "urn:e", "urn:c", "urn:d", "T", "t.txt", None, start, start + len(text), text,
        kind="edge", edge="urn:x", item="urn:x", edge_selection="urn:s", segment_kind=kind,
    )  # fmt: skip
    return Sentence(" ".join(text.split()), (cited,))


def question(text: str) -> AnalysedQuestion:
    return analyse_question(text, Frequencies(FEES.splitlines()))


def test_the_clause_with_the_rarest_words_of_the_question_is_shown():
    prose = "The office opens at nine.\nThe office is old.\nAsk for Mr. Pilbeam there."
    asked = analyse_question("Is Mr. Pilbeam at the office?", Frequencies(prose.splitlines()))
    start, end = find_answering_part(prose, "", asked, 30)
    assert prose[start:end] == "Ask for Mr. Pilbeam there."


@settings(max_examples=examples(60))
@given(st.lists(PIECES, min_size=1, max_size=80).map(" ".join), st.integers(60, 200), st.data())
def test_a_part_is_bounded_and_holds_the_answer(text: str, longest: int, data: st.DataObject):
    words = text.split()
    at = data.draw(st.integers(0, len(words) - 1))
    answer = words[at]
    start, end = find_answering_part(text, answer, question(""), longest)
    assert 0 <= start < end <= len(text)
    assert end - start <= longest
    assert answer in text[start:end]


def test_the_part_is_made_of_the_clauses_around_the_answer():
    start, end = find_answering_part(FEES, "fifty cents", question("charge for ten copies"), 180)
    assert FEES[start:end] == CHARGES


def test_without_an_answer_the_clause_with_most_words_of_the_question_is_shown():
    start, end = find_answering_part(FEES, "", question("certified copies"), 60)
    assert "certified copies two dollars" in FEES[start:end]


def test_citations_are_cut_with_the_words_that_are_shown():
    sentence = quoting(FEES)
    short = shorten_sentence(sentence, "two dollars", question(""), 100)
    (citation,) = short.citations
    assert len(short.text) <= 100
    assert short.text == " ".join(citation.quote.split())
    assert FEES[citation.start - 40 : citation.end - 40] == citation.quote


def test_code_rows_and_sentences_that_quote_nothing_stay_whole():
    kinds: tuple[SegmentKind, ...] = ("code", "row")
    for kind in kinds:
        assert shorten_sentence(quoting(FEES, kind), "", question(""), 80) == quoting(FEES, kind)
    said = Sentence(FEES, quoting("Another text.").citations)
    assert shorten_sentence(said, "", question(""), 80) == said


def test_addresses_of_links_count_nothing_and_links_are_shown_whole():
    address = "https://a.b/" + "c" * 300
    text = (
        f"In general the [best test of primes]({address}) is that of [Lucas and Lehmer]({address})."
    )
    question = analyse_question("Which is the best test of primes?", Frequencies([text]))
    assert shorten_sentence(quoting(text), "", question, 100).text == text
    cut = shorten_sentence(quoting(text), "best", question, 40)
    assert f"[best test of primes]({address})" in cut.text
    assert cut.text.count("[") == cut.text.count("]") == cut.text.count(address)
    [cited] = cut.citations
    assert text[cited.start - 40 : cited.end - 40] == cited.quote == cut.text


def test_a_quote_that_is_no_sentence_stands_below_its_heading():
    headings = ("Hotels", "Reed House")
    price = label_fragment(quoting("Price: $259 a night"), headings)
    assert join_sentences([price]) == "Reed House: Price: $259 a night"
    for whole in (quoting("A night costs $259."), quoting("Rooms of Reed House")):
        assert label_fragment(whole, headings).label == ""
    assert label_fragment(quoting("Room: 1; Price: $259", "row"), headings).label == ""
