"""Places answering question steps, merged into retrieval and selection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tgraph.answer.base import Selector
from tgraph.model import (
    Agent,
    Candidate,
    Evidence,
    Judgement,
    QuestionPart,
    Retrieval,
    Selected,
    Selection,
)
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.candidates import assign_ranks as renumbered
from tgraph.retrieve.candidates import chunk_candidates
from tgraph.retrieve.reasons import explain, explain_selection
from tgraph.retrieve.text.evidence_ranking import sharpen_evidence
from tgraph.retrieve.text.sentence_ranking import SentencePlace, place_of
from tgraph.version import __version__

SLACK = 0.1
"""How much less than the best sentence alone the steps together may be worth."""

PENALTY = 0.05
"""What the steps must be worth more than one sentence to be as good evidence as that."""

WHY_STEP = explain("step")
WHY_PART = explain("part")


@dataclass(frozen=True, slots=True)
class StepBridge:
    """Places answering all steps, the last included, with a combined score."""

    places: tuple[Evidence, ...]
    score: float


@dataclass(frozen=True, slots=True)
class AnsweredParts:
    """Question parts, plus a combined judgement where possible."""

    parts: tuple[QuestionPart, ...]
    judgement: Judgement | None = None

    @property
    def places(self) -> tuple[Evidence, ...]:
        """All answering or nearest places."""
        return tuple(e for part in self.parts for e in (*part.places, *part.nearest))


@dataclass(frozen=True, slots=True)
class _RetrieverAround:
    """A wrapper that extends another retriever."""

    inner: Retriever

    @property
    def step(self) -> str:
        return self.inner.step

    @property
    def matches_entities(self) -> bool:
        return self.inner.matches_entities


@dataclass(frozen=True, slots=True)
class RetrieverWithPlaces(_RetrieverAround):
    """A retriever listing candidates that hold given places first; ``bridges`` map chunk IRIs
    to evidence leading to the chunk."""

    places: tuple[Evidence, ...]
    why: str
    bridges: Mapping[str, str] = field(default_factory=dict)

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        retrieval = self.inner.retrieve(question, context)
        chunks = dict.fromkeys(place.chunk for place in self.places)
        by_chunk = {c.item.iri: c for c in retrieval.candidates if c.item.iri in chunks}
        why = (self.why,)
        best = max((c.score for c in retrieval.candidates), default=1.0)
        new = chunk_candidates(context, ((c, best, why) for c in chunks if c not in by_chunk))
        first = [*new, *(replace(c, reasons=(*why, *c.reasons)) for c in by_chunk.values())]
        first = [replace(c, bridge=self.bridges.get(c.item.iri, c.bridge)) for c in first]
        remaining = [c for c in retrieval.candidates if c.item.iri not in by_chunk]
        edges = [c for c in remaining if c.item.kind == "edge"]
        other_candidates = [c for c in remaining if c.item.kind != "edge"]
        order = tuple(renumbered([*edges, *first, *other_candidates]))
        return replace(retrieval, candidates=order, items=retrieval.items + len(new))


@dataclass(frozen=True, slots=True)
class BridgedRetriever(_RetrieverAround):
    """A retriever raising step places to the best sentence's relevance, if the bridge scores
    high enough."""

    bridge: StepBridge
    sharpens: bool

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        retrieval = self.inner.retrieve(question, context)
        retrieval = sharpen_evidence(question, retrieval, context) if self.sharpens else retrieval
        relevances = (e.relevance or 0.0 for c in retrieval.candidates for e in c.evidence)
        alone = max(relevances, default=0.0)
        if self.bridge.score <= alone - SLACK:
            return retrieval
        worth = min(1.0, max(alone, self.bridge.score - PENALTY))
        places = [replace(place, relevance=worth) for place in self.bridge.places]
        candidates = (self._bridge_candidate(_with_places(c, places)) for c in retrieval.candidates)
        return replace(retrieval, candidates=tuple(candidates))

    def _bridge_candidate(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the last step's place first, bridged from the preceding
        step's place."""
        order = [place_of(place) for place in self.bridge.places]
        bridge_evidence = [e for e in candidate.evidence if place_of(e) in order]
        if not bridge_evidence:
            return candidate
        last = max(bridge_evidence, key=lambda e: order.index(place_of(e)))
        before = order.index(place_of(last)) - 1
        bridge = self.bridge.places[before].iri if before >= 0 else ""
        other_evidence = (e for e in candidate.evidence if e is not last)
        return replace(candidate, evidence=(last, *other_evidence), bridge=bridge)


@dataclass(frozen=True, slots=True)
class GivenRetriever:
    """A retriever whose result was made beforehand, by words."""

    retrieval: Retrieval

    step = "WordSearch"
    matches_entities = False

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        return self.retrieval


@dataclass(frozen=True, slots=True)
class EverySelector:
    """A selector that takes all candidates, as answers to the parts of the question."""

    parts: tuple[QuestionPart, ...]

    agent = Agent("method", "embedded-documents", __version__)
    step = "EdgeSelecting"

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        """As ``Selector.select``, but without a limit: the candidates are one for each document."""
        selected = (
            Selected(index, candidate, explain_selection(candidate.reasons), candidate.score)
            for index, candidate in enumerate(retrieval.candidates)
        )
        return Selection(tuple(selected), parts=self.parts)


@dataclass(frozen=True, slots=True)
class PartSelector:
    """A selector that receives holders of part places first, narrowed to these places."""

    inner: Selector
    answered: AnsweredParts

    @property
    def agent(self) -> Agent:
        return self.inner.agent

    @property
    def step(self) -> str:
        return self.inner.step

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        """Select as ``Selector.select`` does; the selection includes parts and their judgement."""
        best = max((c.score for c in retrieval.candidates), default=0.0)
        places = {place_of(place): place for place in self.answered.places}
        first: list[Candidate] = []
        remaining: list[Candidate] = []
        for candidate in retrieval.candidates:
            narrowed = _narrow_to_places(_with_places(candidate, places.values()), places, best)
            (first if narrowed else remaining).append(narrowed or candidate)
        first.sort(key=lambda each: each.item.kind == "edge")
        narrowed_retrieval = replace(retrieval, candidates=(*first, *remaining))
        selection = self.inner.select(question, narrowed_retrieval, limit, sink)
        judgement = _as_selected(self.answered, selection)
        return replace(selection, parts=self.answered.parts, judgement=judgement)


def _with_places(candidate: Candidate, places: Iterable[Evidence]) -> Candidate:
    """Return the candidate with relevance copied from matching places; a chunk receives all
    places inside the chunk."""
    worth = {place_of(place): place for place in places}
    by_place = {place_of(e): e for e in candidate.evidence}
    if candidate.item.kind == "chunk":
        inside = {at: p for at, p in worth.items() if p.chunk == candidate.item.iri}
        by_place = {**inside, **by_place}
    if worth.keys().isdisjoint(by_place):
        return candidate
    new_evidence = [
        replace(e, relevance=worth[at].relevance) if at in worth else e
        for at, e in by_place.items()
    ]
    return replace(candidate, evidence=tuple(new_evidence))


def _narrow_to_places(
    candidate: Candidate, places: Iterable[SentencePlace], score: float
) -> Candidate | None:
    """Return the candidate with evidence limited to the places; None without such evidence."""
    place_set = set(places)
    place_evidence = tuple(e for e in candidate.evidence if place_of(e) in place_set)
    if not place_evidence:
        return None
    reasons = tuple(dict.fromkeys((WHY_PART, *candidate.reasons)))
    return replace(candidate, evidence=place_evidence, score=score, reasons=reasons)


def _as_selected(answered: AnsweredParts, selection: Selection) -> Judgement | None:
    """Return the judgement, its place replaced by selected evidence."""
    judged = answered.judgement
    if judged is None or judged.place is None:
        return judged
    selected_evidence = (e for s in selection.selected for e in s.candidate.evidence)
    here = place_of(judged.place)
    return replace(judged, place=next((e for e in selected_evidence if place_of(e) == here), None))
