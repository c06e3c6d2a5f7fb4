"""Points: what reports say on a question, drawn from one batch of them after another (map), and
which of the points an answer is made from (reduce)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tgraph import vocabulary as v
from tgraph.answer.base import Step, Synthesiser
from tgraph.model import Candidate, Evidence, Item, Rejected, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reports import reports_of
from tgraph.retrieve.text.lexical import term_set, terms
from tgraph.retrieve.text.report_sentences import FEWEST_WORDS, nearest_sentence

CLOSEST = 3
"""Places shown for a finding that a point rests on: those closest to it in words."""

CLOSE = 0.6
"""The share of the words that the closest shares with the point, below which a place is not."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports that are read together, with how many of its findings each is shown, and the tokens
    of all."""

    candidates: tuple[Candidate, ...]
    findings: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches, the reports that no batch has room for, and what else was left out; ``ranked``
    are all reports in the order of their ranks."""

    batches: tuple[Batch, ...]
    ranked: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MappedPoint:
    """What a batch says on the question: ``score`` (0 to 1) is how much it helps to answer it.

    ``cites`` are the findings and reports that it was drawn from, by IRI.
    """

    text: str
    score: float
    cites: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Mapped:
    """The points of one batch in the order in which they were made, and what was left out.

    ``failure`` says why nothing could be read of the whole batch; it is empty where something was.
    """

    points: tuple[MappedPoint, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


class Mapper(Step, Protocol):
    """Draws points from reports."""

    def batches(
        self, question: Question, candidates: Sequence[Candidate], context: Context
    ) -> Batches:
        """The reports in batches. The same candidates give the same batches."""

    def map(
        self, question: Question, batches: Sequence[Batch], context: Context, sink: CallSink
    ) -> list[Mapped]:
        """The points of each batch. What is wrong with a batch costs that batch alone; where
        nothing could be read of any, ``ModelError``."""


class Reducer(Synthesiser, Protocol):
    """Composes the answer from points."""

    def left_out(self, question: Question, points: Sequence[Candidate]) -> Mapping[str, str]:
        """The points that it would leave out, by IRI, each with the reason; best points first."""


def ground(
    text: str, grounds: Iterable[Sequence[Evidence]], context: Context
) -> tuple[Evidence, ...]:
    """Of the evidence of each finding, or of a report as a whole, what is closest to the text; of
    evidence that is a whole chunk, its closest sentence."""
    said = frozenset(terms(text))
    found: dict[tuple[object, ...], Evidence] = {}
    for evidence in grounds:
        exact = [nearest_sentence(place, said, context) for place in evidence]
        for place in closest(said, exact):
            found.setdefault((place.document, place.page, place.start, place.end), place)
    return tuple(found.values())


def closest(said: frozenset[str], evidence: Sequence[Evidence]) -> list[Evidence]:
    """The places that share most words with what is said, sentences before mere names; the first
    where none shares any."""
    shared = [len(said & term_set(place.quote)) for place in evidence]
    bare = [len(place.quote.split()) < FEWEST_WORDS for place in evidence]
    ranked = sorted(range(len(evidence)), key=lambda n: (-shared[n], bare[n], n))
    least = max(1.0, CLOSE * max(shared, default=0))
    near = [n for n in ranked if shared[n] >= least][:CLOSEST] or ranked[:1]
    return [evidence[n] for n in near]


def as_candidates(uuid: str, mapped: Sequence[Mapped], context: Context) -> list[Candidate]:
    """The points as items of the session ``uuid``, the best first; ``rank`` says so."""
    reports = reports_of(context)
    made = [
        (v.session_part_iri("point", uuid, batch, number), point)
        for batch, each in enumerate(mapped)
        for number, point in enumerate(each.points)
    ]
    made.sort(key=lambda pair: -pair[1].score)
    found = []
    for rank, (iri, point) in enumerate(made, 1):
        owners = list(filter(None, map(reports.owner, point.cites)))
        title = "; ".join(dict.fromkeys(report.title for report in owners))
        item = Item("point", iri, title, point.text)
        reasons = (point.reason,) if point.reason else ()
        found.append(Candidate(item, rank, point.score, evidence=point.evidence, reasons=reasons))
    return found


def choose(points: Sequence[Candidate], left_out: Mapping[str, str]) -> Selection:
    """The points that the answer is made from, and why the others are not used."""
    selected: list[Selected] = []
    rejected: list[Rejected] = []
    for point in points:
        reason = "it does not help to answer" if point.score <= 0 else ""
        reason = reason or left_out.get(point.item.iri, "")
        if reason:
            rejected.append(Rejected(point, reason))
            continue
        why = f"Chosen because {' and '.join(point.reasons)}." if point.reasons else _WHY
        selected.append(Selected(len(selected), point, why, point.score))
    return Selection(tuple(selected), tuple(rejected))


_WHY = "Chosen because of its score in the map."
