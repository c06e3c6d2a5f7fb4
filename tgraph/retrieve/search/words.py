"""Word search: the chunks that share most words with a question, by BM25."""

from __future__ import annotations

from collections.abc import Collection

from tgraph.index.sources import chunks_of_document, document_of_chunk, standing_documents
from tgraph.model import Candidate, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation, of_section
from tgraph.retrieve.candidates import chunk_candidates, ranked
from tgraph.retrieve.modes.bm25 import Bm25SearchSettings
from tgraph.retrieve.orders import ALL, Missing, Orders, RankedOrder, RecordedSearch, iris
from tgraph.retrieve.text.bm25 import WordIndex


class WordRetriever:
    """The first ``k`` chunks by their words; one that shares none with the question is no
    candidate."""

    step = "WordSearch"
    matches_entities = False

    def __init__(self, settings: Bm25SearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        candidates = ranked(word_candidates(question, context, self._settings.k))
        return Retrieval(candidates, 0, len(candidates))


def word_candidates(
    question: Question, context: Context, k: int, among: Collection[str] | None = None
) -> list[Candidate]:
    """The first ``k`` chunks by their words, of these documents or of all."""
    hits = worded(question, context, k if among is None else ALL)
    wanted = [hit for hit in hits if among is None or document_of_chunk(hit[0]) in among][:k]
    best = wanted[0][1] if wanted else 1.0
    why = "it is number {} by the words that it shares with the question ({:.2f})"
    found = (
        (chunk, round(score / best, 6), (why.format(rank, score),))
        for rank, (chunk, score) in enumerate(wanted, 1)
    )
    return chunk_candidates(context, found)


word_retriever = of_section(WordRetriever, "bm25_search")


def worded(question: Question, context: Context, k: int) -> list[tuple[str, float]]:
    """The first ``k`` chunks by their words, with their scores."""
    return _words_of(context).search(in_conversation(question), k)


def _words_of(context: Context) -> WordIndex:
    """The words of all chunks that stand, counted at the first question that needs them."""

    def count() -> WordIndex:
        documents = standing_documents(context.store)
        chunks = (chunk for each in documents for chunk in chunks_of_document(context.store, each))
        return WordIndex([(chunk, context.texts.of_chunk(chunk)) for chunk in chunks])

    return context.once("words of chunks", count)


def word_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """All chunks that share a word with the question, in their order."""
    k = context.settings.bm25_search.k
    order = iris(worded(search.question, context, ALL))
    why = f"chunks by the words that they share with the question, of which the first {k} were"
    yield RankedOrder("k", k, order, missing.chunks, f"{why} taken (k)")
