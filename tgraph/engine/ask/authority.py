"""Ranking by document authority: scores are multiplied by the authority of documents that a
person weighed.

Without weighed documents, nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tgraph.index.authority import FULL, Authorities
from tgraph.model import Agent, Candidate, Evidence, Rejected, Retrieval, Selection
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.reports import add_report_evidence

if TYPE_CHECKING:
    from tgraph.answer.base import Selector
    from tgraph.models.base import CallSink
    from tgraph.retrieve.base import Context, Question, Retriever

NONE = explain("not-authoritative")


@dataclass(frozen=True, slots=True)
class WeighedRetriever:
    """A retriever whose candidates know their documents' authority, the best document's
    authority counting.

    Places in documents without authority are omitted if other places exist."""

    inner: Retriever

    @property
    def step(self) -> str:
        return self.inner.step

    @property
    def matches_entities(self) -> bool:
        return self.inner.matches_entities

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        retrieval = self.inner.retrieve(question, context)
        if not context.authorities:
            return retrieval
        grounded_candidates = add_report_evidence(retrieval.candidates, context)
        weighed = (
            _weigh_candidate(candidate, context.authorities) for candidate in grounded_candidates
        )
        return replace(retrieval, candidates=tuple(weighed))


@dataclass(frozen=True, slots=True)
class WeighedSelector:
    """A selector that receives candidates ordered by weighed score, without disbelieved
    candidates.

    Evidence that was read (``judgement``) was weighed on reading."""

    inner: Selector

    @property
    def agent(self) -> Agent:
        return self.inner.agent

    @property
    def step(self) -> str:
        return self.inner.step

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        """As ``Selector.select``."""
        if all(candidate.authority == FULL for candidate in retrieval.candidates):
            return self.inner.select(question, retrieval, limit, sink)
        believed = [candidate for candidate in retrieval.candidates if candidate.authority]
        if retrieval.judgement is None:
            believed = sorted(
                map(_scale_scores, believed), key=lambda each: (-each.score, each.rank)
            )
        weighed_retrieval = replace(retrieval, candidates=tuple(map(_explain_weight, believed)))
        selection = self.inner.select(question, weighed_retrieval, limit, sink)
        rejections = (
            Rejected(candidate, NONE)
            for candidate in retrieval.candidates
            if not candidate.authority
        )
        return replace(selection, rejected=(*selection.rejected, *rejections))


def in_order_weighed(points: Sequence[Candidate], context: Context) -> Sequence[Candidate]:
    """Sort points by weighed score, disbelieved points last."""
    if not context.authorities:
        return points
    weighed = (weighed_point(point, context.authorities) for point in points)
    ordered = sorted(weighed, key=lambda each: (not each.authority, -each.score, each.rank))
    return [replace(point, rank=rank) for rank, point in enumerate(ordered, 1)]


def weighed_point(point: Candidate, authorities: Authorities) -> Candidate:
    """Return the point with a score weighed by its documents' authority.

    A point whose documents have no authority keeps its score, with ``authority`` 0."""
    weighed = _weigh_candidate(point, authorities) if authorities else point
    return _explain_weight(_scale_scores(weighed)) if weighed.authority else weighed


def _weigh_candidate(candidate: Candidate, authorities: Authorities) -> Candidate:
    weights = {item.path: authorities.weigh_path(item.path) for item in candidate.evidence}
    best = max(weights.values(), default=FULL)
    if min(weights.values(), default=FULL) == best == FULL:
        return candidate
    evidence = sorted(
        _credible_evidence(candidate.evidence, weights), key=lambda e: -weights[e.path]
    )
    return replace(candidate, authority=best, evidence=tuple(evidence))


def _credible_evidence(evidence: Iterable[Evidence], weights: dict[str, float]) -> list[Evidence]:
    """Return evidence from documents with some authority; all evidence if no document has any."""
    items = list(evidence)
    return [item for item in items if weights[item.path]] or items


def _scale_scores(candidate: Candidate) -> Candidate:
    weight = candidate.authority
    evidence = (
        item if item.relevance is None else replace(item, relevance=item.relevance * weight)
        for item in candidate.evidence
    )
    return replace(candidate, score=candidate.score * weight, evidence=tuple(evidence))


def _explain_weight(candidate: Candidate) -> Candidate:
    if candidate.authority == FULL:
        return candidate
    why = explain("authority", authority=candidate.authority)
    return replace(candidate, reasons=(*candidate.reasons, why))
