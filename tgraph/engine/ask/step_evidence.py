"""The places that answer the steps of a question, among what is retrieved and selected for it."""

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
    Selection,
)
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.candidates import chunk_candidates
from tgraph.retrieve.candidates import ranked as renumbered
from tgraph.retrieve.text.sentence_ranking import Place, place_of, sharpened

SLACK = 0.1
"""How much less than the best sentence alone the steps together may be worth."""

PENALTY = 0.05
"""What the steps must be worth more than one sentence to be as good evidence as that."""

WHY_STEP = "it answers a step of the question"
WHY_PART = "it answers a part of the question"


@dataclass(frozen=True, slots=True)
class StepBridge:
    """The places that answer the steps, the last one included, and their worth together."""

    places: tuple[Evidence, ...]
    score: float


@dataclass(frozen=True, slots=True)
class AnsweredParts:
    """The parts of a question, and what they come to together, where that can be said."""

    parts: tuple[QuestionPart, ...]
    judgement: Judgement | None = None

    @property
    def places(self) -> tuple[Evidence, ...]:
        """All that answers, or comes nearest."""
        return tuple(e for part in self.parts for e in (*part.places, *part.nearest))


@dataclass(frozen=True, slots=True)
class _RetrieverAround:
    """A retriever that another does, and something besides."""

    inner: Retriever

    @property
    def step(self) -> str:
        return self.inner.step

    @property
    def matches_entities(self) -> bool:
        return self.inner.matches_entities


@dataclass(frozen=True, slots=True)
class RetrieverWithPlaces(_RetrieverAround):
    """The candidates of a retriever, those that hold certain places first; ``bridges`` are the
    evidence that leads to a chunk, by their IRIs."""

    places: tuple[Evidence, ...]
    why: str
    bridges: Mapping[str, str] = field(default_factory=dict)

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        found = self.inner.retrieve(question, context)
        wanted = dict.fromkeys(place.chunk for place in self.places)
        held = {c.item.iri: c for c in found.candidates if c.item.iri in wanted}
        why = (self.why,)
        best = max((c.score for c in found.candidates), default=1.0)
        new = chunk_candidates(context, ((c, best, why) for c in wanted if c not in held))
        first = [*new, *(replace(c, reasons=(*why, *c.reasons)) for c in held.values())]
        first = [replace(c, bridge=self.bridges.get(c.item.iri, c.bridge)) for c in first]
        rest = [c for c in found.candidates if c.item.iri not in held]
        edges = [c for c in rest if c.item.kind == "edge"]
        others = [c for c in rest if c.item.kind != "edge"]
        order = tuple(renumbered([*edges, *first, *others]))
        return replace(found, candidates=order, items=found.items + len(new))


@dataclass(frozen=True, slots=True)
class BridgedRetriever(_RetrieverAround):
    """The candidates of a retriever, the places of the steps being worth as much as the best
    sentence, where they together are worth it."""

    bridge: StepBridge
    sharpens: bool

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        found = self.inner.retrieve(question, context)
        found = sharpened(question, found, context) if self.sharpens else found
        known = (e.relevance or 0.0 for c in found.candidates for e in c.evidence)
        alone = max(known, default=0.0)
        if self.bridge.score <= alone - SLACK:
            return found
        worth = min(1.0, max(alone, self.bridge.score - PENALTY))
        places = [replace(place, relevance=worth) for place in self.bridge.places]
        candidates = (self._bridged(_with_places(c, places)) for c in found.candidates)
        return replace(found, candidates=tuple(candidates))

    def _bridged(self, candidate: Candidate) -> Candidate:
        """The candidate, its place of the last step first, with that of the step before as its
        bridge."""
        order = [place_of(place) for place in self.bridge.places]
        own = [e for e in candidate.evidence if place_of(e) in order]
        if not own:
            return candidate
        last = max(own, key=lambda e: order.index(place_of(e)))
        before = order.index(place_of(last)) - 1
        bridge = self.bridge.places[before].iri if before >= 0 else ""
        rest = (e for e in candidate.evidence if e is not last)
        return replace(candidate, evidence=(last, *rest), bridge=bridge)


@dataclass(frozen=True, slots=True)
class PartSelector:
    """A selector that is shown what holds the places of the parts first, with these alone."""

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
        """As ``Selector.select``; the selection has the parts and their judgement."""
        best = max((c.score for c in retrieval.candidates), default=0.0)
        places = {place_of(place): place for place in self.answered.places}
        first: list[Candidate] = []
        rest: list[Candidate] = []
        for each in retrieval.candidates:
            narrowed = _narrowed(_with_places(each, places.values()), places, best)
            (first if narrowed else rest).append(narrowed or each)
        first.sort(key=lambda each: each.item.kind == "edge")
        shown = replace(retrieval, candidates=(*first, *rest))
        selection = self.inner.select(question, shown, limit, sink)
        judgement = _as_selected(self.answered, selection)
        return replace(selection, parts=self.answered.parts, judgement=judgement)


def _with_places(candidate: Candidate, places: Iterable[Evidence]) -> Candidate:
    """The candidate, its places among these being worth as much as they; a chunk has all of them
    that stand in it."""
    worth = {place_of(place): place for place in places}
    known = {place_of(e): e for e in candidate.evidence}
    if candidate.item.kind == "chunk":
        inside = {at: p for at, p in worth.items() if p.chunk == candidate.item.iri}
        known = {**inside, **known}
    if worth.keys().isdisjoint(known):
        return candidate
    found = [
        replace(e, relevance=worth[at].relevance) if at in worth else e for at, e in known.items()
    ]
    return replace(candidate, evidence=tuple(found))


def _narrowed(candidate: Candidate, places: Iterable[Place], score: float) -> Candidate | None:
    """The candidate with its evidence at the places alone; None where it has none there."""
    wanted = set(places)
    found = tuple(e for e in candidate.evidence if place_of(e) in wanted)
    if not found:
        return None
    reasons = tuple(dict.fromkeys((WHY_PART, *candidate.reasons)))
    return replace(candidate, evidence=found, score=score, reasons=reasons)


def _as_selected(answered: AnsweredParts, selection: Selection) -> Judgement | None:
    """The judgement by the evidence that was selected for its place."""
    judged = answered.judgement
    if judged is None or judged.place is None:
        return judged
    shown = (e for s in selection.selected for e in s.candidate.evidence)
    here = place_of(judged.place)
    return replace(judged, place=next((e for e in shown if place_of(e) == here), None))
