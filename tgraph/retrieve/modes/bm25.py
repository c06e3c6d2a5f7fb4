"""The mode ``bm25``: the chunks that share most words with the question, without graph or vectors.

BM25 (Robertson and Zaragoza 2009) over the chunks as they stand; rare words count most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from tgraph.retrieve.modes.base import Mode, Row, Section, Selecting, Services
from tgraph.retrieve.modes.basic import only_chunks

if TYPE_CHECKING:
    from tgraph.model import Retrieval
    from tgraph.retrieve.base import Context, Question, Retriever
    from tgraph.retrieve.bm25 import WordIndex
    from tgraph.retrieve.orders import Missing, Orders, RecordedSearch
    from tgraph.settings import Settings

_ALL = 1 << 30


class Bm25SearchSettings(Section):
    """The mode ``bm25``; k1 and b are those of ``contextual``."""

    k: int = Field(10, ge=1, description="chunks retrieved")
    max_context_tokens: int = Field(12_000, ge=500, description="tokens of chunks in a prompt")


class WordRetriever:
    """The first ``k`` chunks by their words; one that shares none with the question is no
    candidate."""

    step = "WordSearch"
    matches_entities = False

    def __init__(self, settings: Bm25SearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        from tgraph.model import Retrieval
        from tgraph.retrieve.candidates import chunk_candidate, ranked
        from tgraph.retrieve.chunks import chunk_evidence, chunk_tokens

        hits = worded(question, context, self._settings.k)
        evidence = chunk_evidence(context, [chunk for chunk, _ in hits])
        tokens = chunk_tokens(context, list(evidence))
        best = hits[0][1] if hits else 1.0
        candidates = ranked(
            chunk_candidate(
                evidence[chunk],
                round(score / best, 6),
                f"it is number {rank} by the words that it shares with the question ({score:.2f})",
                tokens.get(chunk),
            )
            for rank, (chunk, score) in enumerate(hits, 1)
            if chunk in evidence
        )
        return Retrieval(candidates, 0, len(candidates))


def worded(question: Question, context: Context, k: int) -> list[tuple[str, float]]:
    """The first ``k`` chunks by their words, with their scores."""
    from tgraph.retrieve.basic import in_conversation

    return _words_of(context).search(in_conversation(question), k)


def _words_of(context: Context) -> WordIndex:
    """The words of all chunks that stand, counted at the first question that needs them."""
    from tgraph.index.sources import chunks_of_document, standing_documents
    from tgraph.retrieve.bm25 import WordIndex

    def count() -> WordIndex:
        documents = standing_documents(context.store)
        chunks = (chunk for each in documents for chunk in chunks_of_document(context.store, each))
        return WordIndex([(chunk, context.texts.of_chunk(chunk)) for chunk in chunks])

    index = context.remembered("words of chunks", 1).get("index", count)
    assert isinstance(index, WordIndex)
    return index


def bm25_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """All chunks that share a word with the question, in their order."""
    from tgraph.retrieve.orders import RankedOrder, iris

    k = context.settings.bm25_search.k
    order = iris(worded(search.question, context, _ALL))
    why = f"chunks by the words that they share with the question, of which the first {k} were"
    yield RankedOrder("k", k, order, missing.chunks, f"{why} taken (k)")


def _retriever(settings: Settings, services: Services) -> Retriever:
    return WordRetriever(settings.bm25_search)


def _selecting(settings: Settings) -> Selecting:
    return only_chunks(settings.bm25_search.max_context_tokens)


BM25 = Mode(
    "bm25",
    Row(
        "whose very words stand in the text: names, numbers, code",
        "the chunks that share most words with it, neither graph nor vectors",
        "1",
    ),
    section="bm25_search",
    retriever=_retriever,
    selecting=_selecting,
    method="bm25",
    reads_text=True,
    orders="tgraph.retrieve.modes.bm25:bm25_orders",
)
