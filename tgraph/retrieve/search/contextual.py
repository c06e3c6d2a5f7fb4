"""Contextual retrieval: chunks found in their context, by meaning and by words, and fused.

After Anthropic's "Contextual Retrieval" (2024). The two rankings are joined by reciprocal rank
fusion (Cormack, Clarke and Büttcher 2009), and a server or a reader may rank the best anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tgraph.errors import EndpointError, ModelError
from tgraph.index.chunk_contexts import context_texts, spelled_out, standing_contexts, with_context
from tgraph.model import Evidence, RankedOrder, Retrieval
from tgraph.retrieve.base import Context, Question, Rank, in_conversation
from tgraph.retrieve.candidates import assign_ranks, chunk_candidates, chunk_evidence
from tgraph.retrieve.modes.contextual import ContextualSearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, left_out_order
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.text.bm25 import WordIndex

Hits = Sequence[tuple[str, float]]

UNRANKED = "a ranking that can't be used"
BELOW = "chunk ranked below rerank.min_score"


@dataclass(slots=True)
class _FusedChunk:
    """A chunk with score and retrieval reasons."""

    chunk: str
    score: float
    reasons: tuple[str, ...]


class ContextualRetriever:
    """The mode ``contextual``; ``rerank`` ranks the first ``rerank_pool`` chunks anew, and
    those that it scores below ``min_score`` are left out."""

    step = "HybridSearch"
    matches_entities = False

    def __init__(
        self,
        settings: ContextualSearchSettings,
        rerank: Rank | None = None,
        rerank_pool: int = 150,
        min_score: float | None = None,
    ) -> None:
        self._settings = settings
        self._rerank = rerank
        self._rerank_pool = rerank_pool
        self._min_score = min_score

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        settings = self._settings
        text = in_conversation(question)
        vector, vectors = context.embed([spelled_out(text)]), context.vectors["context"]
        near = vectors.search(vector, settings.pool, beyond=MOST_BEYOND)[0]
        by_words, sharing = word_index(context).rank(text, settings.pool + MOST_BEYOND)
        pooled = near[: settings.pool], by_words[: settings.pool]
        fused_chunks, evidence, dropped, low = self._rank_anew(text, *pooled, context)
        if low:
            dropped = {**dropped, BELOW: len(low)}
        best = (
            (fused_chunk.chunk, fused_chunk.score, fused_chunk.reasons)
            for fused_chunk in fused_chunks[: settings.k]
        )
        candidates = assign_ranks(chunk_candidates(context, best, evidence))
        orders = (
            *self._cut_orders(fused_chunks, low),
            *_cut_by_pool("meaning", near, len(vectors), settings.pool, evidence),
            *_cut_by_pool("words", by_words, sharing, settings.pool, evidence),
        )
        return Retrieval(candidates, 0, len(candidates), dropped=dropped, orders=orders)

    def _cut_orders(
        self, found: Sequence[_FusedChunk], low: Sequence[_FusedChunk]
    ) -> tuple[RankedOrder, ...]:
        """Return chunks beyond the first ``k``, and chunks ranked too low."""
        k, least = self._settings.k, self._min_score or 0.0
        how = "by the reranker" if self._rerank else "by similarity and shared words together"
        why = f"{{item}} is {{place}} chunks {how}, and the first {k} were taken (k)"
        too_low = f"the reranker score is {{score}}, less than {least:g} (min-score)"
        ranks = {entry.chunk: 0 for entry in low}
        scores = [entry.score for entry in low]
        return (
            *cut_order("chunk", "k", k, [entry.chunk for entry in found], why),
            *left_out_order("chunk", "rerank.min-score", least, ranks, too_low, scores=scores),
        )

    def _rank_anew(
        self, text: str, near: Hits, by_words: Hits, context: Context
    ) -> tuple[list[_FusedChunk], Mapping[str, Evidence], Mapping[str, int], Sequence[_FusedChunk]]:
        """Return standing chunks, best first, with chunk evidence, omission counts, and chunks
        ranked too low."""
        ranking = fuse_rankings(near, by_words, self._settings.rrf_k)
        evidence = chunk_evidence(context, [entry.chunk for entry in ranking])
        ranking = [entry for entry in ranking if entry.chunk in evidence]
        dropped: Mapping[str, int] = {}
        low: Sequence[_FusedChunk] = ()
        if self._rerank is not None and ranking:
            try:
                ranking, low = self._rerank_chunks(text, ranking, evidence, context)
            except EndpointError:
                raise
            except ModelError:
                dropped = {UNRANKED: 1}
        return ranking, evidence, dropped, low

    def _rerank_chunks(
        self,
        text: str,
        found: list[_FusedChunk],
        evidence: Mapping[str, Evidence],
        context: Context,
    ) -> tuple[list[_FusedChunk], Sequence[_FusedChunk]]:
        """Return reranked chunks, followed by chunks missing from the reranking, plus chunks
        scoring too low.

        Only the first chunks, up to the pool size, are reranked."""
        assert self._rerank is not None
        first, remaining_chunks = found[: self._rerank_pool], found[self._rerank_pool :]
        links = _context_links(context)
        texts = [
            with_context(
                _context_text(context, links.get(fused_chunk.chunk)),
                evidence[fused_chunk.chunk].quote,
            )
            for fused_chunk in first
        ]
        ranking = self._rerank(text, texts, context.sink)
        places = {place for place, _ in ranking}
        ranked = [
            _FusedChunk(
                first[place].chunk,
                score,
                (explain("chunk-reranked", score=score), *first[place].reasons),
            )
            for place, score in ranking
        ]
        least_score = self._min_score or 0.0
        low = [fused_chunk for fused_chunk in ranked if fused_chunk.score < least_score]
        ranked = [fused_chunk for fused_chunk in ranked if fused_chunk.score >= least_score]
        unranked_chunks = [
            fused_chunk for place, fused_chunk in enumerate(first) if place not in places
        ]
        least = min((fused_chunk.score for fused_chunk in ranked), default=1.0)
        for fused_chunk in (*unranked_chunks, *remaining_chunks):
            fused_chunk.score = min(fused_chunk.score, least)
        return [*ranked, *unranked_chunks, *remaining_chunks], low


def _cut_by_pool(
    way: str, hits: Hits, total: int, pool: int, taken: Collection[str]
) -> tuple[RankedOrder, ...]:
    """Return chunks of one ranking beyond the pool, excluding chunks taken by the other
    ranking."""
    ranks = {chunk: n for n, (chunk, _) in enumerate(hits, 1) if n > pool and chunk not in taken}
    by = "similarity" if way == "meaning" else "shared words"
    why = f"{{item}} in context is {{place}} chunks by {by}, and the first {pool} chunks of each"
    reason = f"{why} ranking were combined (pool)"
    return left_out_order("chunk", "pool", pool, ranks, reason, total=total)


def fuse_rankings(near: Hits, worded: Hits, k: int) -> list[_FusedChunk]:
    """Return chunks from both rankings, ordered by the sum of 1 / (k + rank), scaled to 1 for a
    chunk ranked first twice.

    Equal sums are ordered by IRI."""
    scores: dict[str, float] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for hits, way in ((near, "meaning"), (worded, "words")):
        for rank, (chunk, score) in enumerate(hits, 1):
            scores[chunk] = scores.get(chunk, 0.0) + 1 / (k + rank)
            why = explain(f"chunk-context-{way}", rank=rank, score=score)
            reasons[chunk] = (*reasons.get(chunk, ()), why)
    max_score = 2 / (k + 1)
    ordered = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
    return [
        _FusedChunk(chunk, round(scores[chunk] / max_score, 6), reasons[chunk]) for chunk in ordered
    ]


def word_index(context: Context) -> WordIndex:
    """Return the word index of all chunks in context, built for the first question needing the
    index."""

    def build() -> WordIndex:
        texts = [
            (chunk, with_context(_context_text(context, link), context.texts.of_chunk(chunk)))
            for chunk, link in _context_links(context).items()
        ]
        return WordIndex(texts)

    return context.read_once("contextual words", build)


def _context_links(context: Context) -> Mapping[str, str]:
    """Return context IRIs by chunk."""
    return context.read_once("contexts of chunks", lambda: standing_contexts(context.store))


def _context_text(context: Context, link: str | None) -> str:
    texts = context.read_once("texts of contexts", lambda: context_texts(context.store))
    return texts.get(link, "") if link else ""
