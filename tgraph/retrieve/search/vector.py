"""Basic retrieval: chunks ranked by similarity to the question.

Both modes ``basic`` and ``naive`` use this retrieval, with the defaults of GraphRAG and of
LightRAG respectively."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.model import Candidate, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, in_conversation
from tgraph.retrieve.candidates import assign_ranks, chunk_candidates, count_fitting
from tgraph.retrieve.modes.basic import BasicSearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, list_hit_iris, unlike_order
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.search.words import word_candidates


class BasicRetriever:
    """Vector search over chunks; word search over those of large graphs, which have no vectors."""

    step = "VectorSearch"
    matches_entities = False

    def __init__(self, settings: BasicSearchSettings, fills_prompts: bool = False) -> None:
        self._settings = settings
        self._room = settings.max_context_tokens if fills_prompts and settings.k is None else 0

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        settings = self._settings
        k = settings.usual_k if settings.k is None else settings.k
        hits, orders = nearest_chunks(question, k, "k", settings.least_score, context, self._room)
        all_candidates = likeness_candidates(hits, context)
        if large := context.large_graphs:
            all_candidates += word_candidates(question, context, k, large)
        candidates = assign_ranks(all_candidates)
        return Retrieval(candidates, 0, len(candidates), orders=orders)


def nearest_chunks(
    question: Question, count: int, limit: str, least_score: float, context: Context, room: int = 0
) -> tuple[list[tuple[str, float]], tuple[RankedOrder, ...]]:
    """Return chunks nearest to the question with cosine similarity, best first, and orders cut
    off by the named limit and the least score.

    More than ``count`` chunks are returned as long as all fit ``room`` tokens."""
    vector, vectors = context.embed([in_conversation(question)]), context.vectors["chunk"]
    compared = vectors.search(vector, count, beyond=MOST_BEYOND)[0]
    if room:
        count = count_fitting(list_hit_iris(compared), count, room, context)
    hits = [(chunk, score) for chunk, score in compared[:count] if score >= least_score]
    why = "{item} is {place} chunks by similarity to {question}, and the first"
    reason = f"{why} {count} were taken ({limit})"
    return hits, (
        *cut_order("chunk", limit, count, list_hit_iris(compared), reason, total=len(vectors)),
        *unlike_order("chunk", compared[:count], least_score, "{question}"),
    )


def fill_room(text: str, room: int, context: Context) -> list[Candidate]:
    """Return chunk candidates nearest to the text, as many as fit ``room`` tokens."""
    nearest = context.vectors["chunk"].search(context.embed([text]), 1, beyond=MOST_BEYOND)[0]
    count = count_fitting(list_hit_iris(nearest), 0, room, context)
    return likeness_candidates(nearest[:count], context)


def likeness_candidates(hits: Sequence[tuple[str, float]], context: Context) -> list[Candidate]:
    """Return chunk candidates from hits, with similarity as score and reason."""
    chunk_rows = (
        (chunk, max(0.0, score), (explain("chunk-similarity", score=score),))
        for chunk, score in hits
    )
    return chunk_candidates(context, chunk_rows)
