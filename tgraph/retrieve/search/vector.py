"""Basic retrieval: the chunks nearest to the question, in the order of their likeness.

The modes ``basic`` and ``naive`` are both this, with GraphRAG's and with LightRAG's defaults.
"""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.model import Candidate, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import chunk_candidates, ranked
from tgraph.retrieve.modes.basic import BasicSearchSettings
from tgraph.retrieve.orders import (
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
    nearest,
    unlike,
)
from tgraph.retrieve.search.words import word_candidates


class BasicRetriever:
    """Vector search over chunks; word search over those of large graphs, which have no vectors."""

    step = "VectorSearch"
    matches_entities = False

    def __init__(self, settings: BasicSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        hits = nearest_chunks(question, self._settings.k, self._settings.least_score, context)
        found = likeness_candidates(hits, context)
        if large := context.large_graphs:
            found += word_candidates(question, context, self._settings.k, large)
        candidates = ranked(found)
        return Retrieval(candidates, 0, len(candidates))


def nearest_chunks(
    question: Question, count: int, least_score: float, context: Context
) -> list[tuple[str, float]]:
    """The chunks nearest to the question with their likeness (cosine), best first."""
    vector = context.embed([in_conversation(question)])
    hits = context.vectors["chunk"].search(vector, count)[0]
    return [(chunk, score) for chunk, score in hits if score >= least_score]


def likeness_candidates(hits: Sequence[tuple[str, float]], context: Context) -> list[Candidate]:
    """Chunks by their likeness to the question."""
    why = "it is {:.2f} similar in meaning to the question"
    found = ((chunk, max(0.0, score), (why.format(score),)) for chunk, score in hits)
    return chunk_candidates(context, found)


def nearest_chunk_orders(
    name: str,
    cutoff: int,
    least: float,
    missing: Missing,
    search: RecordedSearch,
    context: Context,
) -> Orders:
    """The chunks, nearest to the question first, cut by a limit of that name; and what is less
    like it than ``least``."""
    if not missing.chunks:
        return
    hits = nearest(context, "chunk", in_conversation(search.question))
    if not hits:
        why = f"it is not among the {cutoff} chunks nearest to the question ({name})"
        yield CutOff(name, cutoff, None, why)
    why = f"chunks by likeness to the question, of which the first {cutoff} were taken ({name})"
    yield RankedOrder(name, cutoff, iris(hits), missing.chunks, why)
    yield from unlike(hits, missing.chunks, least, "the question")


def basic_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    own = getattr(context.settings, f"{search.mode}_search")
    return nearest_chunk_orders("k", own.k, own.least_score, missing, search, context)
