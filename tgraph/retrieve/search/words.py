"""Word search: the chunks that share most words with a question, by BM25."""

from __future__ import annotations

from tgraph.index.sources import chunks_of_document, standing_documents
from tgraph.model import Retrieval
from tgraph.retrieve.base import Context, Question, Retriever, Services
from tgraph.retrieve.candidates import chunk_candidate, chunk_evidence, chunk_tokens, ranked
from tgraph.retrieve.modes.bm25 import Bm25SearchSettings
from tgraph.retrieve.orders import Missing, Orders, RankedOrder, RecordedSearch, iris
from tgraph.retrieve.search.vector import in_conversation
from tgraph.retrieve.text.bm25 import WordIndex
from tgraph.settings import Settings

_ALL = 1 << 30


class WordRetriever:
    """The first ``k`` chunks by their words; one that shares none with the question is no
    candidate."""

    step = "WordSearch"
    matches_entities = False

    def __init__(self, settings: Bm25SearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
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
    return _words_of(context).search(in_conversation(question), k)


def _words_of(context: Context) -> WordIndex:
    """The words of all chunks that stand, counted at the first question that needs them."""

    def count() -> WordIndex:
        documents = standing_documents(context.store)
        chunks = (chunk for each in documents for chunk in chunks_of_document(context.store, each))
        return WordIndex([(chunk, context.texts.of_chunk(chunk)) for chunk in chunks])

    index = context.remembered("words of chunks", 1).get("index", count)
    assert isinstance(index, WordIndex)
    return index


def word_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """All chunks that share a word with the question, in their order."""
    k = context.settings.bm25_search.k
    order = iris(worded(search.question, context, _ALL))
    why = f"chunks by the words that they share with the question, of which the first {k} were"
    yield RankedOrder("k", k, order, missing.chunks, f"{why} taken (k)")


def word_retriever(settings: Settings, services: Services) -> Retriever:
    """The retriever of ``bm25``."""
    return WordRetriever(settings.bm25_search)
