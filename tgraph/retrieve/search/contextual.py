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
from tgraph.retrieve.candidates import chunk_candidates, chunk_evidence, ranked
from tgraph.retrieve.modes.contextual import ContextualSearchSettings
from tgraph.retrieve.orders import MOST_BEYOND, cut_order, left_out_order
from tgraph.retrieve.text.bm25 import WordIndex

Hits = Sequence[tuple[str, float]]

UNRANKED = "a ranking that can't be used"
BELOW = "chunk ranked below rerank.min_score"


@dataclass(slots=True)
class _FusedChunk:
    """A chunk with its score and why it was found."""

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
        found, evidence, dropped, low = self._rank_anew(text, *pooled, context)
        if low:
            dropped = {**dropped, BELOW: len(low)}
        best = ((each.chunk, each.score, each.reasons) for each in found[: settings.k])
        candidates = ranked(chunk_candidates(context, best, evidence))
        orders = (
            *self._cut_orders(found, low),
            *_cut_by_pool("meaning", near, len(vectors), settings.pool, evidence),
            *_cut_by_pool("words", by_words, sharing, settings.pool, evidence),
        )
        return Retrieval(candidates, 0, len(candidates), dropped=dropped, orders=orders)

    def _cut_orders(
        self, found: Sequence[_FusedChunk], low: Sequence[_FusedChunk]
    ) -> tuple[RankedOrder, ...]:
        """The chunks beyond the first ``k``, and those that were ranked too low."""
        k, least = self._settings.k, self._min_score or 0.0
        how = "as they were ranked anew" if self._rerank else "by meaning and words together"
        why = f"{{item}} is {{place}} chunks {how}, of which the first {k} were taken (k)"
        too_low = f"it was ranked anew at {{score}}, below {least:g} (min-score)"
        ranks = {each.chunk: 0 for each in low}
        scores = [each.score for each in low]
        return (
            *cut_order("chunk", "k", k, [each.chunk for each in found], why),
            *left_out_order("chunk", "rerank.min-score", least, ranks, too_low, scores=scores),
        )

    def _rank_anew(
        self, text: str, near: Hits, by_words: Hits, context: Context
    ) -> tuple[list[_FusedChunk], Mapping[str, Evidence], Mapping[str, int], Sequence[_FusedChunk]]:
        """The chunks that stand, best first, each as evidence of itself, what was dropped, and
        those that were ranked too low."""
        found = fused(near, by_words, self._settings.rrf_k)
        evidence = chunk_evidence(context, [each.chunk for each in found])
        found = [each for each in found if each.chunk in evidence]
        dropped: Mapping[str, int] = {}
        low: Sequence[_FusedChunk] = ()
        if self._rerank is not None and found:
            try:
                found, low = self._ranked(text, found, evidence, context)
            except EndpointError:
                raise
            except ModelError:
                dropped = {UNRANKED: 1}
        return found, evidence, dropped, low

    def _ranked(
        self,
        text: str,
        found: list[_FusedChunk],
        evidence: Mapping[str, Evidence],
        context: Context,
    ) -> tuple[list[_FusedChunk], Sequence[_FusedChunk]]:
        """The first of them as they are ranked anew; what is not mentioned there comes after. And
        those whose score is too low."""
        assert self._rerank is not None
        first, rest = found[: self._rerank_pool], found[self._rerank_pool :]
        links = _links(context)
        texts = [
            with_context(_said(context, links.get(each.chunk)), evidence[each.chunk].quote)
            for each in first
        ]
        ranking = self._rerank(text, texts, context.sink)
        places = {place for place, _ in ranking}
        ranked = [
            _FusedChunk(
                first[place].chunk,
                score,
                (f"it was ranked at {score:.2f}", *first[place].reasons),
            )
            for place, score in ranking
        ]
        least_score = self._min_score or 0.0
        low = [each for each in ranked if each.score < least_score]
        ranked = [each for each in ranked if each.score >= least_score]
        left = [each for place, each in enumerate(first) if place not in places]
        least = min((each.score for each in ranked), default=1.0)
        for each in (*left, *rest):
            each.score = min(each.score, least)
        return [*ranked, *left, *rest], low


def _cut_by_pool(
    way: str, hits: Hits, total: int, pool: int, taken: Collection[str]
) -> tuple[RankedOrder, ...]:
    """The chunks of one ranking beyond the pool that are not taken by the other ranking."""
    ranks = {chunk: n for n, (chunk, _) in enumerate(hits, 1) if n > pool and chunk not in taken}
    why = f"{{item}} is {{place}} chunks by {way} in its context, and the first {pool} of each"
    reason = f"{why} ranking were fused (pool)"
    return left_out_order("chunk", "pool", pool, ranks, reason, total=total)


def fused(near: Hits, worded: Hits, k: int) -> list[_FusedChunk]:
    """The chunks of both rankings by the sum of 1 / (k + rank), scaled to 1 for what is first in
    both; equal sums are ordered by IRI."""
    scores: dict[str, float] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for hits, way in ((near, "meaning"), (worded, "words")):
        for rank, (chunk, score) in enumerate(hits, 1):
            scores[chunk] = scores.get(chunk, 0.0) + 1 / (k + rank)
            why = f"it is number {rank} by {way} ({score:.2f}) in its context"
            reasons[chunk] = (*reasons.get(chunk, ()), why)
    most = 2 / (k + 1)
    ordered = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
    return [_FusedChunk(chunk, round(scores[chunk] / most, 6), reasons[chunk]) for chunk in ordered]


def word_index(context: Context) -> WordIndex:
    """The words of all chunks in their contexts, counted at the first question that needs them."""

    def build() -> WordIndex:
        texts = [
            (chunk, with_context(_said(context, link), context.texts.of_chunk(chunk)))
            for chunk, link in _links(context).items()
        ]
        return WordIndex(texts)

    return context.once("contextual words", build)


def _links(context: Context) -> Mapping[str, str]:
    """The context of each chunk, by IRI."""
    return context.once("contexts of chunks", lambda: standing_contexts(context.store))


def _said(context: Context, link: str | None) -> str:
    texts = context.once("texts of contexts", lambda: context_texts(context.store))
    return texts.get(link, "") if link else ""
