"""What a sentence is traced to within a chunk."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.answer.citations import ENOUGH, cite
from tgraph.ingest.sentences import sentences
from tgraph.model import Candidate, Evidence, Item, Selected
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
    [citation] = cite(Draft(said, (chunk(text),)), "0").citations
    wanted = set(terms(said))

    def share(span: tuple[int, int]) -> float:
        return len(wanted & set(terms(text[slice(*span)]))) / max(1, len(wanted))

    start, end = max(sentences(text), key=share, default=(0, 0))
    if share((start, end)) < ENOUGH:
        start, end = 0, len(text)
    assert (citation.start, citation.end) == (7 + start, 7 + end)
    assert citation.quote == text[start:end]
