"""Word-based similarity, for questions beyond vector coverage."""

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
    """Return a word index of all standing chunks, counted once on first use."""

    def count() -> WordIndex:
        chunks = [chunk for _, chunk in standing_chunks(context.store)]
        languages = {chunk: lexicon_of_chunk(chunk, context) for chunk in chunks}
        return WordIndex([(chunk, context.texts.of_chunk(chunk)) for chunk in chunks], languages)

    return context.read_once("words of chunks", count)


class WordSimilarity(Similarity):
    """Word-based similarity of edge sentences, replacing vectors.

    Near edges come from chunks sharing most question words; nearest edges have sentences
    sharing most question words. Similarity values are always 0, adding nothing to word scores."""

    def __init__(self, inquiry: AnalysedQuestion, context: Context, stated_in: StatedIn) -> None:
        self._stated_in = stated_in
        self._inquiry = inquiry
        self._context = context
        self._shares: dict[str, float] = {}

    def nearest(self, count: int) -> list[tuple[str, float]]:
        hits = words_of_chunks(self._context).search(
            self._inquiry.text, _CHUNKS, self._inquiry.lexicon
        )
        edges_by_chunk = self._stated_in([chunk for chunk, _ in hits], self._context)
        edges = list(
            dict.fromkeys(edge for places in edges_by_chunk.values() for _, edge in places)
        )
        self.learn(edges)
        ranked = sorted(edges, key=lambda edge: (-self._shares.get(edge, 0.0), edge))
        return [(edge, self._shares.get(edge, 0.0)) for edge in ranked[:count]]

    def learn(self, edges: Iterable[str]) -> None:
        """Read sentence words of edges lacking scores."""
        missing = [edge for edge in edges if edge not in self._shares]
        memory = self._context.open_cache("evidence", 50_000)

        def read(wanted: list[str]) -> dict[str, tuple[object, ...]]:
            return dict(self._context.evidence.of_edges(wanted, _PLACES))

        for edge, places in memory.get_all(missing, read).items():
            self._shares[edge] = max(
                (self._quote_share(place.quote) for place in places), default=0.0
            )

    def _quote_share(self, quote: str) -> float:
        """Return the weight share of question words present in a quote."""
        inquiry = self._inquiry
        quote_terms = inquiry.lexicon.term_set(quote)
        matched_weight = sum(
            weight for term, weight in inquiry.weights.items() if term in quote_terms
        )
        return round(matched_weight / (inquiry.total or 1.0), 6)

    def of_edge(self, edge: str) -> float:
        return self._shares.get(edge, 0.0)

    def of_sentence(self, quote: str, edges: Iterable[str]) -> tuple[float, float]:
        return 0.0, 0.0

    def of_chunks(self, chunks: Collection[str]) -> dict[str, float]:
        return {}


_PLACES = 12
"""Places read of one edge."""
