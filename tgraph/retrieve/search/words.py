"""Word search: the chunks that share most words with a question, by BM25."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tgraph.index.sources import document_of_chunk
from tgraph.model import Candidate, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import assign_ranks, chunk_candidates
from tgraph.retrieve.modes.bm25 import Bm25SearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, list_hit_iris
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.retrieve.text.word_similarity import words_of_chunks


class WordRetriever:
    """A retriever for the first ``k`` chunks by word overlap; chunks sharing no word with the
    question are excluded."""

    step = "WordSearch"
    matches_entities = False

    def __init__(self, settings: Bm25SearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        k = self._settings.k
        hits, total = rank_by_words(question, context, k + MOST_BEYOND)
        candidates = assign_ranks(candidates_by_words(hits[:k], context))
        why = "{item} is {place} chunks by words shared with the question, and"
        reason = f"{why} the first {k} were taken (k)"
        orders = cut_order("chunk", "k", k, list_hit_iris(hits), reason, total=total)
        return Retrieval(candidates, 0, len(candidates), orders=orders)


def word_candidates(
    question: Question, context: Context, k: int, among: Collection[str]
) -> list[Candidate]:
    """Return the first ``k`` chunks of the documents, ranked by words."""
    hits, _ = rank_by_words(question, context, _ALL)
    own_hits = [hit for hit in hits if document_of_chunk(hit[0]) in among]
    return candidates_by_words(own_hits[:k], context)


def candidates_by_words(wanted: Sequence[tuple[str, float]], context: Context) -> list[Candidate]:
    """Chunks by their words, the scores as shares of the best."""
    best = wanted[0][1] if wanted else 1.0
    hits = (
        (chunk, round(score / best, 6), (explain("chunk-words", rank=rank, score=score),))
        for rank, (chunk, score) in enumerate(wanted, 1)
    )
    return chunk_candidates(context, hits)


_ALL = 1 << 30


def rank_by_words(
    question: Question, context: Context, k: int
) -> tuple[list[tuple[str, float]], int]:
    """Return the first ``k`` chunks ranked by words, with scores, and the number of chunks
    sharing a word with the question."""
    text = in_conversation(question)
    lexicon = count_frequencies(context).languages.of_question(text)
    return words_of_chunks(context).rank(text, k, lexicon)
