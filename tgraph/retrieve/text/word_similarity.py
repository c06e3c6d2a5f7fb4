"""Likeness by words, for questions of which vectors tell nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from tgraph.index.sources import standing_chunks
from tgraph.retrieve.base import Context
from tgraph.retrieve.text.bm25 import WordIndex
from tgraph.retrieve.text.lexicon import lexicon_of_chunk
from tgraph.retrieve.text.similarity import Similarity

if TYPE_CHECKING:
    from tgraph.retrieve.text.question_analysis import AnalysedQuestion

StatedIn = Callable[[Iterable[str], Context], dict[str, list[tuple[int, str]]]]
"""The edges that chunks state, each with its start."""

_CHUNKS = 8
"""Chunks whose edges are as near as edges get."""


def words_of_chunks(context: Context) -> WordIndex:
    """The words of all chunks that stand, counted at the first question that needs them."""

    def count() -> WordIndex:
        chunks = [chunk for _, chunk in standing_chunks(context.store)]
        languages = {chunk: lexicon_of_chunk(chunk, context) for chunk in chunks}
        return WordIndex([(chunk, context.texts.of_chunk(chunk)) for chunk in chunks], languages)

    return context.once("words of chunks", count)


class WordSimilarity(Similarity):
    """The words of an edge's sentences in place of their vectors.

    Edges are near that stand in the chunks with most of the question's words, the nearest those
    whose sentences have most of them; likeness itself is 0 of everything, so that it adds nothing
    to what the words of a sentence tell.
    """

    def __init__(self, inquiry: AnalysedQuestion, context: Context, stated_in: StatedIn) -> None:
        self._stated_in = stated_in
        self._inquiry = inquiry
        self._context = context
        self._shares: dict[str, float] = {}

    def nearest(self, count: int) -> list[tuple[str, float]]:
        hits = words_of_chunks(self._context).search(
            self._inquiry.text, _CHUNKS, self._inquiry.lexicon
        )
        stated = self._stated_in([chunk for chunk, _ in hits], self._context)
        edges = list(dict.fromkeys(edge for places in stated.values() for _, edge in places))
        self.learn(edges)
        ranked = sorted(edges, key=lambda edge: (-self._shares.get(edge, 0.0), edge))
        return [(edge, self._shares.get(edge, 0.0)) for edge in ranked[:count]]

    def learn(self, edges: Iterable[str]) -> None:
        """Read the words of what is not known yet of these edges."""
        missing = [edge for edge in edges if edge not in self._shares]
        memory = self._context.remembered("evidence", 50_000)

        def read(wanted: list[str]) -> dict[str, tuple[object, ...]]:
            return dict(self._context.evidence.of_edges(wanted, _PLACES))

        for edge, places in memory.get_all(missing, read).items():
            self._shares[edge] = max((self._share(each.quote) for each in places), default=0.0)

    def _share(self, quote: str) -> float:
        """The share of what the question's words tell that the quote has."""
        inquiry = self._inquiry
        found = inquiry.lexicon.term_set(quote)
        told = sum(weight for term, weight in inquiry.weights.items() if term in found)
        return round(told / (inquiry.total or 1.0), 6)

    def of_edge(self, edge: str) -> float:
        return self._shares.get(edge, 0.0)

    def of_sentence(self, quote: str, edges: Iterable[str]) -> tuple[float, float]:
        return 0.0, 0.0

    def of_chunks(self, chunks: Collection[str]) -> dict[str, float]:
        return {}


_PLACES = 12
"""Places read of one edge."""
