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
from tgraph.retrieve.search.drift_actions import select_follow_ups
from tgraph.retrieve.subgraph import edges_of, ends
from tgraph.retrieve.text.evidence_ranking import sharpen_evidence
from tgraph.retrieve.text.lexical import terms, words
from tgraph.retrieve.text.report_sentences import nearest_sentence
from tgraph.retrieve.text.sentence_ranking import likeness_to, place_of
from tgraph.version import __version__
from tgraph.vocabulary import normalise_name


@dataclass(frozen=True, slots=True)
class DriftPoint:
    """A statement on the way to the answer: cited candidates, and evidence places proving the
    statement.

    Each place has the path from the cited item down to the place. ``score`` (0 to 1) rates how
    well the statement answers the question as a whole."""

    text: str
    cites: tuple[Candidate, ...]
    evidence: tuple[Evidence, ...]
    score: float = 0.0


def with_way(evidence: Evidence) -> Evidence:
    """Return evidence with a path leading from a point down to the evidence.

    Where no path exists yet, the path is the evidence's own edge, entity or claim."""
    if evidence.via or evidence.statement == evidence.chunk:
        return evidence
    return replace(evidence, via=(evidence.statement,))


@dataclass(frozen=True, slots=True)
class Response:
    """The result of an action: points, a score (0 to 1), and proposed follow-up questions."""

    points: tuple[DriftPoint, ...] = ()
    score: float = 0.0
    follow_ups: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


class Explorer(Step, Protocol):
    """The exploration steps that need a model or an embedded method."""

    def expand(
        self, question: Question, template: CommunityReport, context: Context, sink: CallSink
    ) -> str:
        """Return the question as a hypothetical answer in the report's manner.

        Raises ``ModelError`` if no such answer exists."""

    def prime(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        """Answer the question from some reports."""

    def answer(
        self,
        question: Question,
        query: str,
        selected: Sequence[Selected],
        context: Context,
        sink: CallSink,
    ) -> Response:
        """Answer the query from the selections of its local search."""

    def weigh(
        self, question: Question, responses: Sequence[Response], context: Context
    ) -> list[list[DriftPoint]]:
        """Return points grouped by response, scored against the question as a whole."""


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

_ActionRanks = Mapping[object, float]


class EmbeddedExplorer:
    """The embedded explorer.

    ``follow_ups`` limits the follow-up questions proposed per answer."""

    agent = Agent("method", "embedded-drift", __version__)

    def __init__(self, follow_ups: int) -> None:
        self._follow_ups = min(follow_ups, MOST_FOLLOW_UPS)

    def expand(
        self, question: Question, template: CommunityReport, context: Context, sink: CallSink
    ) -> str:
        """Return the question expanded with words of the report."""
        report_text = f"{template.title}. {template.summary}"[:_EXPANSION]
        return f"{question.text} {' '.join(report_text.split())}"

    def prime(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        return self._compose_response(
            question, question.text, [r.candidate for r in reports], context
        )

    def answer(
        self,
        question: Question,
        query: str,
        selected: Sequence[Selected],
        context: Context,
        sink: CallSink,
    ) -> Response:
        return self._compose_response(question, query, [s.candidate for s in selected], context)

    def weigh(
        self, question: Question, responses: Sequence[Response], context: Context
    ) -> list[list[DriftPoint]]:
        """Score sentences by relevance to the original question, partly by relevance to the
        follow-up question.

        No score exceeds the best direct relevance to the question itself."""
        direct = _rate_relevance(
            question, [p for response in responses for p in response.points], context
        )
        best = max(direct.values(), default=0.0)
        return [[_weigh_point(p, direct, best) for p in response.points] for response in responses]

    def _compose_response(
        self, question: Question, query: str, candidates: Sequence[Candidate], context: Context
    ) -> Response:
        numbered = tuple(replace(c, rank=rank) for rank, c in enumerate(candidates, 1))
        retrieval = Retrieval(numbered, 0)
        sharpened_candidates = sharpen_evidence(Question(query), retrieval, context).candidates
        points = _best_points(query, candidates, sharpened_candidates, context)
        score = max((e.relevance or 0.0 for p in points for e in p.evidence), default=0.0)
        proposed = self._propose_neighbours(question, query, points, sharpened_candidates, context)
        follow_ups, dropped = select_follow_ups(proposed, self._follow_ups)
        return Response(tuple(points), round(score, 6), tuple(follow_ups), dropped)

    def _propose_neighbours(
        self,
        question: Question,
        query: str,
        points: Sequence[DriftPoint],
        found: Sequence[Candidate],
        context: Context,
    ) -> list[str]:
        """Return questions about neighbouring entities absent from question and query.

        Neighbours whose edge to the found points is nearest to the question come first."""
        neighbour_edges = {
            iri: triple
            for edge in _edges_behind(points, found, context)
            for end in ends((edge.subject, edge.predicate, edge.object))
            for iri, triple in edges_of(end, context).items()
        }
        meaning = likeness_to([question.text, query], context)
        meaning.learn(neighbour_edges)
        ranked = sorted(neighbour_edges, key=lambda iri: (-meaning.of_edge(iri), iri))[:AROUND]
        nearest = with_labels(context.graph, [neighbour_edges[iri] for iri in ranked])
        mentioned_text = normalise_name(f"{question.text} {query}")
        telling = [edge for edge in nearest if edge.predicate_label not in SILENT]
        questions: dict[str, str] = {}
        for edge in telling or nearest:
            for label in _end_labels(edge):
                if normalise_name(label) not in mentioned_text:
                    questions.setdefault(label, f"What about {label}, as in “{edge.text}”?")
        return list(questions.values())


class BroadSynthesiser(EmbeddedSynthesiser):
    """A synthesiser quoting more sentences than other modes, because broader questions are
    asked."""

    agent = Agent("method", "embedded-drift-synthesis", __version__)

    SENTENCES = 7
    MOST = 7


def _best_points(
    query: str, candidates: Sequence[Candidate], found: Sequence[Candidate], context: Context
) -> list[DriftPoint]:
    """Return the sentences that answer best, each as a point citing every holder of the
    sentence."""
    places: dict[object, list[tuple[Evidence, Candidate]]] = {}
    for candidate, sharp in zip(candidates, found, strict=True):
        for item in sharp.evidence:
            if item.relevance is not None and len(words(item.quote)) >= FEWEST_WORDS:
                places.setdefault(place_of(item), []).append((item, candidate))
    ranked = sorted(places.values(), key=lambda p: (-(p[0][0].relevance or 0.0), p[0][0].iri))
    best = ranked[0][0][0].relevance or 0.0 if ranked else 0.0
    close = [p for p in ranked[:SENTENCES] if (p[0][0].relevance or 0.0) >= CLOSE * best]
    query_terms = frozenset(terms(query))
    points = [
        _quote_as_point(nearest_sentence(p[0][0], query_terms, context), [c for _, c in p])
        for p in close
    ]
    return [point for point in points if len(words(point.text)) >= FEWEST_WORDS]


def _quote_as_point(evidence: Evidence, holders: Sequence[Candidate]) -> DriftPoint:
    cites = {holder.item.iri: holder for holder in holders}
    text = " ".join(evidence.quote.split())
    return DriftPoint(text, tuple(cites.values()), (with_way(evidence),))


def _edges_behind(
    points: Sequence[DriftPoint], found: Sequence[Candidate], context: Context
) -> list[Edge]:
    """Return edges behind the points; if points rest on no edge, all retrieved edges."""
    statements = dict.fromkeys(item.statement for point in points for item in point.evidence)
    triples = list(triples_of(statements, context).values())
    if triples:
        return with_labels(context.graph, triples)
    return [candidate.item for candidate in found if isinstance(candidate.item, Edge)][:AROUND]


def _end_labels(edge: Edge) -> list[str]:
    """Return entity labels at both ends of an edge."""
    is_entity = isinstance(edge.object, NamedNode)
    return [edge.subject_label, *([edge.object_label] if is_entity else [])]


def _rate_relevance(
    question: Question, points: Iterable[DriftPoint], context: Context
) -> _ActionRanks:
    """Return question relevance (0 to 1) by evidence place."""
    candidates = tuple(
        Candidate(
            Item("point", str(rank), "", point.text), rank, 0.0, evidence=_clear_relevance(point)
        )
        for rank, point in enumerate(points, 1)
    )
    sharpened_candidates = sharpen_evidence(question, Retrieval(candidates, 0), context).candidates
    return {
        place_of(item): item.relevance
        for candidate in sharpened_candidates
        for item in candidate.evidence
        if item.relevance is not None
    }


def _clear_relevance(point: DriftPoint) -> tuple[Evidence, ...]:
    return tuple(replace(item, relevance=None) for item in point.evidence)


def _weigh_point(point: DriftPoint, direct: _ActionRanks, best: float) -> DriftPoint:
    (item,) = point.evidence
    direct_score = direct.get(place_of(item), 0.0)
    score = round(min(best, direct_score * (1 + ON_THE_WAY * (item.relevance or 0.0))), 6)
    return replace(point, score=score, evidence=(replace(item, relevance=score),))
