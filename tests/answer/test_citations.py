"""What a sentence is traced to: the sentence of a chunk, the nearest of many places."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.answer.citations import ENOUGH, MOST_PLACES, cite_places, set_apart, with_grounds
from tgraph.ingest.sentences import sentences
from tgraph.model import Candidate, Evidence, Item, ItemKind, Selected, Sentence
from tgraph.retrieve.base import Context
from tgraph.retrieve.text.lexical import terms

WORDS = ("Scrooge", "ghost", "chains", "night", "the", "turkey", "Marley's", "1843")
PIECES = st.sampled_from(
    [*(f"{word} " for word in WORDS), ". ", "? ", "\n", "\n\n", "\r\n\r\n", " \n \n", "。", "# "]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=60).map("".join)
CHUNK = f"{v.URN}chunk:{'0' * 64}:0-100"


def chunk(text: str) -> Selected:
    whole = Evidence(
        CHUNK,
        CHUNK,
        CHUNK,
        v.document_iri("0" * 64),
        "Title",
        "a.txt",
        None,
        7,
        7 + len(text),
        text,
    )
    item = Item("chunk", CHUNK, "Title", text)
    return Selected(0, Candidate(item, 1, 1.0, evidence=(whole,)), "", 1.0)


@given(TEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join))
def test_the_first_of_the_closest_sentences_of_a_chunk_is_cited(text: str, said: str) -> None:
    [citation] = cite_places(Draft(said, (chunk(text),)), "0").citations
    wanted = set(terms(said))

    def share(span: tuple[int, int]) -> float:
        return len(wanted & set(terms(text[slice(*span)]))) / max(1, len(wanted))

    start, end = max(sentences(text), key=share, default=(0, 0))
    if share((start, end)) < ENOUGH:
        start, end = 0, len(text)
    assert (citation.start, citation.end) == (7 + start, 7 + end)
    assert citation.quote == text[start:end]


def summing_up(kind: ItemKind, *quotes: str) -> Selected:
    """Something that sums up these places, a hundred characters apart."""
    places = tuple(
        Evidence(f"urn:e:{n}", "", CHUNK, "urn:d", "T", "a.txt", None, at, at + len(quote), quote)
        for n, quote in enumerate(quotes)
        for at in (100 * n,)
    )
    return Selected(0, Candidate(Item(kind, "urn:it", "It", ""), 1, 1.0, evidence=places), "", 1.0)


@pytest.mark.parametrize("kind", ["entity", "report"])
def test_of_many_places_the_nearest_are_cited_and_best_first(kind: ItemKind) -> None:
    said = "Marley's ghost wears heavy chains."
    near = ["The ghost of Marley wears chains.", "Marley's ghost wears heavy chains too."]
    far = ["A turkey hung there.", "Chains clinked.", "Nobody wears a hat."]
    chosen = summing_up(kind, far[0], near[0], far[1], near[1], far[2])
    quotes = [c.quote for c in cite_places(Draft(said, (chosen,)), "0").citations]
    assert quotes == [near[1], near[0]]
    alike = summing_up(kind, *(said for _ in range(MOST_PLACES + 2)))
    places = [c.start for c in cite_places(Draft(said, (alike,)), "0").citations]
    assert places == [100 * n for n in range(MOST_PLACES)]


def test_what_has_its_evidence_keeps_it() -> None:
    nowhere: Context = None  # type: ignore[assignment]
    chosen = (chunk("A ghost."), summing_up("report", "A ghost."), summing_up("entity"))
    draft = Draft("A ghost came.", chosen)
    assert with_grounds(draft, nowhere) == draft


def test_code_stands_apart_with_its_lines() -> None:
    quote = "run --all\n  --fast"
    said = cite_places(Draft("run --all --fast", (chunk(quote),)), "0")
    code = replace(said, citations=(replace(said.citations[0], quote=quote, segment_kind="code"),))
    plain = Sentence("It takes a while.", ())
    item = Sentence("It is fast.", (), "\n- ")
    assert set_apart(code, []) == replace(code, text=quote, lead="\n\n")
    assert set_apart(plain, [code]) == replace(plain, lead="\n\n")
    assert set_apart(item, [code]) == item
    assert set_apart(plain, [plain]) == plain
