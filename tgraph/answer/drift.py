"""DRIFT search's steps: expand the question, prime it with reports, answer what follows from that.

Each answer on the way is a list of points: statements with what proves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pyoxigraph import NamedNode

from tgraph.answer.base import Step
from tgraph.answer.embedded import EmbeddedSynthesiser
from tgraph.model import (
    Agent,
    Candidate,
    CommunityReport,
    Edge,
    Evidence,
    Item,
    Retrieval,
    Selected,
)
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import triples_of
from tgraph.retrieve.labels import with_labels
from tgraph.retrieve.search.community_reports import NearReport
from tgraph.retrieve.search.drift_actions import usable
from tgraph.retrieve.subgraph import edges_of, ends
from tgraph.retrieve.text.lexical import terms, words
from tgraph.retrieve.text.report_sentences import nearest_sentence
from tgraph.retrieve.text.sentence_ranking import likeness_to, place_of, sharpened
from tgraph.version import __version__
from tgraph.vocabulary import normalise_name


@dataclass(frozen=True, slots=True)
class DriftPoint:
    """A statement on the way to the answer: the candidates that it cites, and the places that prove
    it, each with the way from the cited item down to it.

    ``score`` says how well it answers the question as a whole, 0 to 1.
    """

    text: str
    cites: tuple[Candidate, ...]
    evidence: tuple[Evidence, ...]
    score: float = 0.0


def with_way(evidence: Evidence) -> Evidence:
    """The evidence with the way from a point down to it: the edge, entity or claim that it is for,
    where nothing else leads there."""
    if evidence.via or evidence.statement == evidence.chunk:
        return evidence
    return replace(evidence, via=(evidence.statement,))


@dataclass(frozen=True, slots=True)
class Response:
    """What an action answered: points, a score of its own (0 to 1), what should be asked next."""

    points: tuple[DriftPoint, ...] = ()
    score: float = 0.0
    follow_ups: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer of an action to ``query``."""

    query: str
    response: Response


class Explorer(Step, Protocol):
    """Does the steps that a model or an embedded method can do."""

    def expand(
        self, question: Question, template: CommunityReport, context: Context, sink: CallSink
    ) -> str:
        """The question put as a hypothetical answer in the manner of the report. ``ModelError``
        where there is none."""

    def prime(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        """The question answered from some reports."""

    def answer(
        self,
        question: Question,
        query: str,
        selected: Sequence[Selected],
        context: Context,
        sink: CallSink,
    ) -> Response:
        """The query answered from what a local search selected for it."""

    def weigh(
        self, question: Question, told: Sequence[Told], context: Context
    ) -> list[list[DriftPoint]]:
        """The points of each response with their scores for the question as a whole."""


# --- DRIFT search's steps without a model: quoting, ranking, and asking about the neighbours ------
# Nothing is generated: points are sentences of the sources as they stand, and a follow-up question
# names an entity beside those that an answer rests on, with the edge that leads to it.


SENTENCES = 4
"""Quoted in one answer."""

CLOSE = 0.7
"""Sentences below this share of the best are not quoted."""

FEWEST_WORDS = 3
"""In a sentence that is quoted: what is shorter is a name or a heading."""

AROUND = 24
"""Edges, the nearest to the question, whose ends may be asked about."""

SILENT = frozenset({"mentions", "have section"})
"""Edges that say nothing of what they tie together."""

MOST_FOLLOW_UPS = 3
"""Of one answer; each costs an embedding."""

ON_THE_WAY = 0.1
"""The share by which its answer to a follow-up question raises the score of a sentence."""

_EXPANSION = 600
"""Characters of a report that are added to the question."""

_Places = Mapping[object, float]


class EmbeddedExplorer:
    """The embedded way. ``follow_ups`` is how many of them one answer may propose."""

    agent = Agent("method", "embedded-drift", __version__)

    def __init__(self, follow_ups: int) -> None:
        self._follow_ups = min(follow_ups, MOST_FOLLOW_UPS)

    def expand(
        self, question: Question, template: CommunityReport, context: Context, sink: CallSink
    ) -> str:
        """The question with the words of the report."""
        said = f"{template.title}. {template.summary}"[:_EXPANSION]
        return f"{question.text} {' '.join(said.split())}"

    def prime(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        return self._respond(question, question.text, [r.candidate for r in reports], context)

    def answer(
        self,
        question: Question,
        query: str,
        selected: Sequence[Selected],
        context: Context,
        sink: CallSink,
    ) -> Response:
        return self._respond(question, query, [s.candidate for s in selected], context)

    def weigh(
        self, question: Question, told: Sequence[Told], context: Context
    ) -> list[list[DriftPoint]]:
        """By how well each sentence answers the question itself, and somewhat by how well it
        answers the follow-up question; never more than the best that answers the question itself.
        """
        direct = _relevance(question, [p for t in told for p in t.response.points], context)
        best = max(direct.values(), default=0.0)
        return [[_weighed(p, direct, best) for p in t.response.points] for t in told]

    def _respond(
        self, question: Question, query: str, candidates: Sequence[Candidate], context: Context
    ) -> Response:
        numbered = tuple(replace(c, rank=rank) for rank, c in enumerate(candidates, 1))
        retrieval = Retrieval(numbered, 0)
        found = sharpened(Question(query), retrieval, context).candidates
        points = _best(query, candidates, found, context)
        score = max((e.relevance or 0.0 for p in points for e in p.evidence), default=0.0)
        proposed = self._neighbours(question, query, points, found, context)
        follow_ups, dropped = usable(proposed, self._follow_ups)
        return Response(tuple(points), round(score, 6), tuple(follow_ups), dropped)

    def _neighbours(
        self,
        question: Question,
        query: str,
        points: Sequence[DriftPoint],
        found: Sequence[Candidate],
        context: Context,
    ) -> list[str]:
        """Questions about entities that neither the question nor the query names, those first whose
        edge to what was found is nearest to the question."""
        around = {
            iri: triple
            for edge in _edges_behind(points, found, context)
            for end in ends((edge.subject, edge.predicate, edge.object))
            for iri, triple in edges_of(end, context).items()
        }
        meaning = likeness_to([question.text, query], context)
        meaning.learn(around)
        ranked = sorted(around, key=lambda iri: (-meaning.of_edge(iri), iri))[:AROUND]
        nearest = with_labels(context.graph, [around[iri] for iri in ranked])
        named = normalise_name(f"{question.text} {query}")
        telling = [edge for edge in nearest if edge.predicate_label not in SILENT]
        asked: dict[str, str] = {}
        for edge in telling or nearest:
            for label in _names(edge):
                if normalise_name(label) not in named:
                    asked.setdefault(label, f"What about {label}, as in “{edge.text}”?")
        return list(asked.values())


class BroadSynthesiser(EmbeddedSynthesiser):
    """Quotes more sentences than other modes do, since more was asked."""

    agent = Agent("method", "embedded-drift-synthesis", __version__)

    SENTENCES = 7
    MOST = 7


def _best(
    query: str, candidates: Sequence[Candidate], found: Sequence[Candidate], context: Context
) -> list[DriftPoint]:
    """The sentences that answer best, each as a point that cites whatever holds it."""
    places: dict[object, list[tuple[Evidence, Candidate]]] = {}
    for candidate, sharp in zip(candidates, found, strict=True):
        for item in sharp.evidence:
            if item.relevance is not None and len(words(item.quote)) >= FEWEST_WORDS:
                places.setdefault(place_of(item), []).append((item, candidate))
    ranked = sorted(places.values(), key=lambda p: (-(p[0][0].relevance or 0.0), p[0][0].iri))
    best = ranked[0][0][0].relevance or 0.0 if ranked else 0.0
    close = [p for p in ranked[:SENTENCES] if (p[0][0].relevance or 0.0) >= CLOSE * best]
    asked = frozenset(terms(query))
    points = [_quoted(nearest_sentence(p[0][0], asked, context), [c for _, c in p]) for p in close]
    return [point for point in points if len(words(point.text)) >= FEWEST_WORDS]


def _quoted(evidence: Evidence, holders: Sequence[Candidate]) -> DriftPoint:
    cites = {holder.item.iri: holder for holder in holders}
    text = " ".join(evidence.quote.split())
    return DriftPoint(text, tuple(cites.values()), (with_way(evidence),))


def _edges_behind(
    points: Sequence[DriftPoint], found: Sequence[Candidate], context: Context
) -> list[Edge]:
    """The edges that the points rest on; all that were found where they rest on none."""
    stated = dict.fromkeys(item.statement for point in points for item in point.evidence)
    triples = list(triples_of(stated, context).values())
    if triples:
        return with_labels(context.graph, triples)
    return [candidate.item for candidate in found if isinstance(candidate.item, Edge)][:AROUND]


def _names(edge: Edge) -> list[str]:
    """What the entities at its ends are called."""
    is_entity = isinstance(edge.object, NamedNode)
    return [edge.subject_label, *([edge.object_label] if is_entity else [])]


def _relevance(question: Question, points: Iterable[DriftPoint], context: Context) -> _Places:
    """How well each place answers the question, 0 to 1."""
    candidates = tuple(
        Candidate(Item("point", str(rank), "", point.text), rank, 0.0, evidence=_unrated(point))
        for rank, point in enumerate(points, 1)
    )
    found = sharpened(question, Retrieval(candidates, 0), context).candidates
    return {
        place_of(item): item.relevance
        for candidate in found
        for item in candidate.evidence
        if item.relevance is not None
    }


def _unrated(point: DriftPoint) -> tuple[Evidence, ...]:
    return tuple(replace(item, relevance=None) for item in point.evidence)


def _weighed(point: DriftPoint, direct: _Places, best: float) -> DriftPoint:
    (item,) = point.evidence
    own = direct.get(place_of(item), 0.0)
    score = round(min(best, own * (1 + ON_THE_WAY * (item.relevance or 0.0))), 6)
    return replace(point, score=score, evidence=(replace(item, relevance=score),))
