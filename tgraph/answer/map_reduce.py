"""Points: statements of reports on a question, drawn from report batches (map), and the choice
of points for the answer (reduce)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tgraph import vocabulary as v
from tgraph.answer.base import Step, Synthesiser
from tgraph.model import Candidate, Evidence, Item, Rejected, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reasons import explain, explain_selection
from tgraph.retrieve.reports import reports_of
from tgraph.retrieve.text.lexical import term_set, terms
from tgraph.retrieve.text.report_sentences import FEWEST_WORDS, nearest_sentence

CLOSEST = 3
"""Places shown for a finding that a point rests on: those closest to it in words."""

CLOSE = 0.6
"""The share of the words that the closest shares with the point, below which a place is not."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports read together, the number of findings shown per report, and the total token
    count."""

    candidates: tuple[Candidate, ...]
    findings: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches, reports that fit no batch, and other omissions; ``ranked`` lists all reports in
    rank order."""

    batches: tuple[Batch, ...]
    ranked: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MappedPoint:
    """A batch's statement on the question; ``score`` (0 to 1) rates how much the point helps to
    answer.

    ``cites`` are the IRIs of source findings and reports."""

    text: str
    score: float
    cites: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Mapped:
    """Points from one batch in creation order, with counts of omissions.

    ``failure`` says why nothing in the whole batch could be read; empty if anything was read."""

    points: tuple[MappedPoint, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


class Mapper(Step, Protocol):
    """Draws points from reports."""

    def batches(
        self, question: Question, candidates: Sequence[Candidate], context: Context
    ) -> Batches:
        """Return reports in batches; equal candidates give equal batches."""

    def map(
        self, question: Question, batches: Sequence[Batch], context: Context, sink: CallSink
    ) -> list[Mapped]:
        """Return the points of each batch.

        A failure in a batch costs that batch alone; raises ``ModelError`` if no batch could be
        read."""


class Reducer(Synthesiser, Protocol):
    """Composes the answer from points."""

    def left_out(self, question: Question, points: Sequence[Candidate]) -> Mapping[str, str]:
        """Return omitted points by IRI, each with its reason; best points first."""


def ground_text(
    text: str, grounds: Iterable[Sequence[Evidence]], context: Context
) -> tuple[Evidence, ...]:
    """Return the evidence closest to the text, chosen per finding or per whole report.

    Evidence that is a whole chunk is narrowed to its closest sentence."""
    text_terms = frozenset(terms(text))
    grounding: dict[tuple[object, ...], Evidence] = {}
    for evidence in grounds:
        exact = [nearest_sentence(place, text_terms, context) for place in evidence]
        for place in closest_places(text_terms, exact):
            grounding.setdefault((place.document, place.page, place.start, place.end), place)
    return tuple(grounding.values())


def closest_places(said: frozenset[str], evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return places sharing most words with the text, sentences before mere names.

    If no place shares a word, the first place is returned."""
    shared = [len(said & term_set(place.quote)) for place in evidence]
    bare = [len(place.quote.split()) < FEWEST_WORDS for place in evidence]
    ranked = sorted(range(len(evidence)), key=lambda n: (-shared[n], bare[n], n))
    least = max(1.0, CLOSE * max(shared, default=0))
    near = [n for n in ranked if shared[n] >= least][:CLOSEST] or ranked[:1]
    return [evidence[n] for n in near]


def as_candidates(uuid: str, mapped: Sequence[Mapped], context: Context) -> list[Candidate]:
    """Return points as items of session ``uuid``, best first, with ``rank`` in that order."""
    reports = reports_of(context)
    points_by_iri = [
        (v.session_part_iri("point", uuid, batch, number), point)
        for batch, batch_points in enumerate(mapped)
        for number, point in enumerate(batch_points.points)
    ]
    points_by_iri.sort(key=lambda pair: -pair[1].score)
    candidates = []
    for rank, (iri, point) in enumerate(points_by_iri, 1):
        owners = list(filter(None, map(reports.owner, point.cites)))
        title = "; ".join(dict.fromkeys(report.title for report in owners))
        item = Item("point", iri, title, point.text)
        reasons = (point.reason,) if point.reason else ()
        candidates.append(
            Candidate(item, rank, point.score, evidence=point.evidence, reasons=reasons)
        )
    return candidates


def choose_points(points: Sequence[Candidate], left_out: Mapping[str, str]) -> Selection:
    """Return points used for the answer, and reasons for rejecting other points."""
    selected: list[Selected] = []
    rejected: list[Rejected] = []
    for point in points:
        reason: str = explain("unhelpful") if point.score <= 0 else ""
        reason = reason or left_out.get(point.item.iri, "")
        if reason:
            rejected.append(Rejected(point, reason))
            continue
        why = explain_selection(point.reasons) if point.reasons else explain("map-score")
        selected.append(Selected(len(selected), point, why, point.score))
    return Selection(tuple(selected), tuple(rejected))
