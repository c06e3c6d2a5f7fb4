"""Contextual retrieval: chunks found in their context, by meaning and by words, and fused.

After Anthropic's "Contextual Retrieval" (2024). The two rankings are joined by reciprocal rank
fusion (Cormack, Clarke and Büttcher 2009), and a server or a reader may rank the best anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tgraph.errors import EndpointError, ModelError, TgraphError
from tgraph.index.chunk_contexts import context_texts, spelled_out, standing_contexts, with_context
from tgraph.model import Evidence, Retrieval
from tgraph.retrieve.base import Context, Question, Rank, in_conversation
from tgraph.retrieve.candidates import chunk_candidates, chunk_evidence, ranked
from tgraph.retrieve.modes.contextual import ContextualSearchSettings
from tgraph.retrieve.orders import (
    ALL,
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RecordedSearch,
    iris,
    nth,
    place_in,
)
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
        found, evidence, dropped, low = self._found(question, context)
        if low:
            dropped = {**dropped, BELOW: len(low)}
        best = ((each.chunk, each.score, each.reasons) for each in found[: self._settings.k])
        candidates = ranked(chunk_candidates(context, best, evidence))
        return Retrieval(candidates, 0, len(candidates), dropped=dropped)

    def order(self, question: Question, context: Context) -> tuple[list[str], dict[str, float]]:
        """The chunks that are ranked, best first, of which ``retrieve`` takes the first; and those
        that were ranked too low to be taken, with their scores."""
        found, _, _, low = self._found(question, context)
        return [each.chunk for each in found], {each.chunk: each.score for each in low}

    def _found(
        self, question: Question, context: Context
    ) -> tuple[list[_FusedChunk], Mapping[str, Evidence], Mapping[str, int], Sequence[_FusedChunk]]:
        """The chunks that stand, best first, each as evidence of itself, what was dropped, and
        those that were ranked too low."""
        settings = self._settings
        text = in_conversation(question)
        vector = context.embed([spelled_out(text)])
        near = context.vectors["context"].search(vector, settings.pool)[0]
        worded = word_index(context).search(text, settings.pool)
        found = fused(near, worded, settings.rrf_k)
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


def _too_low(below: Mapping[str, float], missing: Missing, least: float | None) -> Orders:
    """The missing was ranked, and its score is too low."""
    rank = place_in(list(below), missing.chunks)
    if rank and least is not None:
        score = list(below.values())[rank - 1]
        why = f"it was ranked anew at {score:.2f}, below {least:g} (min-score)"
        yield CutOff("rerank.min-score", least, None, why)


def contextual_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The chunks, those of the pool first."""
    if not missing.chunks:
        return
    with suppress(TgraphError):
        yield from _fused(missing, search, context)
    cutoff = context.settings.contextual_search.k
    if search.items >= cutoff:
        why = f"{cutoff} chunks fit the question better (k); its rank is not on record"
        yield CutOff("k", cutoff, None, why)


def _fused(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    settings, question = context.settings, search.question
    own = settings.contextual_search
    rerank = settings.rerank
    retriever = ContextualRetriever(own, search.rank, rerank.pool, rerank.min_score)
    order, below = retriever.order(question, context)
    how = "as they were ranked anew" if search.rank else "by meaning and words together"
    why = f"chunks {how}, of which the first {own.k} were taken (k)"
    yield RankedOrder("k", own.k, order, missing.chunks, why)
    if not missing.chunks.isdisjoint(order):
        return
    yield from _too_low(below, missing, rerank.min_score)
    text = in_conversation(question)
    near = context.vectors["context"].search(context.embed([spelled_out(text)]), ALL)[0]
    worded = word_index(context).search(text, ALL)
    ways = {"meaning": place_in(iris(near), missing.chunks)}
    ways["words"] = place_in(iris(worded), missing.chunks)
    ranks = {way: rank for way, rank in ways.items() if rank}
    if ranks:
        said = " and ".join(f"the {nth(rank)} by {way}" for way, rank in ranks.items())
        why = f"it is {said} in its context, and the first {own.pool} of each were fused (pool)"
        yield CutOff("pool", own.pool, min(ranks.values()), why)
