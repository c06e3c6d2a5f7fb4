"""Ranking by the authority of the documents: what was found in ones that a person weighed counts
for so much of its score. Where nobody weighed any, nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tgraph.index.authority import FULL, Authorities
from tgraph.model import Agent, Candidate, Evidence, Rejected, Retrieval, Selection
from tgraph.retrieve.reports import grounded

if TYPE_CHECKING:
    from tgraph.answer.base import Selector
    from tgraph.models.base import CallSink
    from tgraph.retrieve.base import Context, Question, Retriever

NONE = "not believed: its documents have an authority of 0"


@dataclass(frozen=True, slots=True)
class WeighedRetriever:
    """A retriever whose candidates know the authority of what they rest on: that of the best of
    their documents. Places in documents without any are left out where there are others."""

    inner: Retriever

    @property
    def step(self) -> str:
        return self.inner.step

    @property
    def matches_entities(self) -> bool:
        return self.inner.matches_entities

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        found = self.inner.retrieve(question, context)
        if not context.authorities:
            return found
        known = grounded(found.candidates, context)
        weighed = (_weighed(each, context.authorities) for each in known)
        return replace(found, candidates=tuple(weighed))


@dataclass(frozen=True, slots=True)
class WeighedSelector:
    """A selector that is shown candidates in the order of their weighed scores, and none that is
    not believed. What was read (``judgement``) was weighed as it was read."""

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
        if all(each.authority == FULL for each in retrieval.candidates):
            return self.inner.select(question, retrieval, limit, sink)
        believed = [each for each in retrieval.candidates if each.authority]
        if retrieval.judgement is None:
            believed = sorted(map(_scaled, believed), key=lambda each: (-each.score, each.rank))
        shown = replace(retrieval, candidates=tuple(map(_explained, believed)))
        selection = self.inner.select(question, shown, limit, sink)
        others = (Rejected(each, NONE) for each in retrieval.candidates if not each.authority)
        return replace(selection, rejected=(*selection.rejected, *others))


def in_order_weighed(points: Sequence[Candidate], context: Context) -> Sequence[Candidate]:
    """The points in the order of their weighed scores, those that are not believed last."""
    if not context.authorities:
        return points
    weighed = (weighed_point(each, context.authorities) for each in points)
    ordered = sorted(weighed, key=lambda each: (not each.authority, -each.score, each.rank))
    return [replace(each, rank=rank) for rank, each in enumerate(ordered, 1)]


def weighed_point(point: Candidate, authorities: Authorities) -> Candidate:
    """The point with its score as the documents that it rests on are to be believed; one that they
    have no authority for keeps its own, and its ``authority`` is 0."""
    weighed = _weighed(point, authorities) if authorities else point
    return _explained(_scaled(weighed)) if weighed.authority else weighed


def _weighed(candidate: Candidate, authorities: Authorities) -> Candidate:
    weights = {item.path: authorities.of(item.path) for item in candidate.evidence}
    best = max(weights.values(), default=FULL)
    if min(weights.values(), default=FULL) == best == FULL:
        return candidate
    evidence = sorted(_believed(candidate.evidence, weights), key=lambda e: -weights[e.path])
    return replace(candidate, authority=best, evidence=tuple(evidence))


def _believed(evidence: Iterable[Evidence], weights: dict[str, float]) -> list[Evidence]:
    """The evidence of documents with some authority; all of it where none has any."""
    found = list(evidence)
    return [item for item in found if weights[item.path]] or found


def _scaled(candidate: Candidate) -> Candidate:
    weight = candidate.authority
    evidence = (
        item if item.relevance is None else replace(item, relevance=item.relevance * weight)
        for item in candidate.evidence
    )
    return replace(candidate, score=candidate.score * weight, evidence=tuple(evidence))


def _explained(candidate: Candidate) -> Candidate:
    if candidate.authority == FULL:
        return candidate
    why = f"its source has an authority of {candidate.authority:g}"
    return replace(candidate, reasons=(*candidate.reasons, why))
