"""Word search: the chunks that share most words with a question, by BM25."""

from __future__ import annotations

from tgraph.model import Retrieval
from tgraph.retrieve.base import Context, Question, of_section
from tgraph.retrieve.candidates import chunk_candidates, ranked
from tgraph.retrieve.modes.bm25 import Bm25SearchSettings
from tgraph.retrieve.orders import ALL, Missing, Orders, RankedOrder, RecordedSearch, iris
from tgraph.retrieve.search.vector import in_conversation
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
        hits = worded(question, context, self._settings.k)
        best = hits[0][1] if hits else 1.0
        why = "it is number {} by the words that it shares with the question ({:.2f})"
        found = (
            (chunk, round(score / best, 6), (why.format(rank, score),))
            for rank, (chunk, score) in enumerate(hits, 1)
        )
        candidates = ranked(chunk_candidates(context, found))
        return Retrieval(candidates, 0, len(candidates))


word_retriever = of_section(WordRetriever, "bm25_search")


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
