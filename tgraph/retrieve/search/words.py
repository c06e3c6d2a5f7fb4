"""Word search: the chunks that share most words with a question, by BM25."""

from __future__ import annotations

from collections.abc import Collection

from tgraph.index.sources import document_of_chunk
from tgraph.model import Candidate, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import chunk_candidates, ranked
from tgraph.retrieve.modes.bm25 import Bm25SearchSettings
from tgraph.retrieve.orders import ALL, Missing, Orders, RankedOrder, RecordedSearch, iris
from tgraph.retrieve.text.lexicon import frequencies
from tgraph.retrieve.text.word_similarity import words_of_chunks


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


def worded(question: Question, context: Context, k: int) -> list[tuple[str, float]]:
    """The first ``k`` chunks by their words, with their scores."""
    text = in_conversation(question)
    lexicon = frequencies(context).languages.of_question(text)
    return words_of_chunks(context).search(text, k, lexicon)


def word_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """All chunks that share a word with the question, in their order."""
    k = context.settings.bm25_search.k
    order = iris(worded(search.question, context, ALL))
    why = f"chunks by the words that they share with the question, of which the first {k} were"
    yield RankedOrder("k", k, order, missing.chunks, f"{why} taken (k)")
