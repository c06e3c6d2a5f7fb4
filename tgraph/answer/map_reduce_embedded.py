"""The embedded way to map and reduce: sentences of the sources behind the reports, ranked.

Nothing is generated. A point is a sentence that a finding rests on, and the answer quotes the best
of them as they stand. A question about the documents as a whole is answered by what the most
important reports rest on; where the documents don't speak of what is asked, there is no evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tgraph.answer.base import Draft, Notes
from tgraph.answer.community_selection import BEST, Vote
from tgraph.answer.map_reduce import Batch, Batches, Mapped, MappedPoint
from tgraph.answer.report_batches import batched, fits_of, whole_costs
from tgraph.model import Agent, Candidate, CommunityReport, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reports import reports_of
from tgraph.retrieve.text.lexical import stem, terms, words
from tgraph.retrieve.text.question_analysis import WantedWords, is_broad, wanted_words
from tgraph.retrieve.text.report_sentences import (
    Extract,
    alike,
    extracts_of,
    importance,
    relevance,
    similar,
)
from tgraph.retrieve.text.sentence_ranking import overlap
from tgraph.version import __version__

Place = tuple[str, int | None, int, int]


class EmbeddedMapper:
    """A ``Mapper`` whose points are the sentences that answer best."""

    agent = Agent("method", "embedded-map", __version__)

    OF_REPORT = 2
    """Sentences of one report."""

    OF_BATCH = 12

    LEAST = 0.47
    """The relevance below which a sentence is no point."""

    def __init__(self, *, budget: int, shuffle_seed: int = 86) -> None:
        self._budget = budget
        self._shuffle_seed = shuffle_seed

    def batches(
        self, question: Question, candidates: Sequence[Candidate], context: Context
    ) -> Batches:
        """As ``Mapper.batches``: the batches that a model would get."""
        from tgraph.models.tokens import DEFAULT_ENCODING

        reports = reports_of(context).by_iri
        shown = [reports[c.item.iri] for c in candidates]
        costs = whole_costs(DEFAULT_ENCODING, context)
        fits = fits_of(shown, self._budget, DEFAULT_ENCODING, costs)
        return batched(candidates, reports, fits, self._budget, self._shuffle_seed)

    def map(
        self, question: Question, batches: Sequence[Batch], context: Context, sink: CallSink
    ) -> list[Mapped]:
        """As ``Mapper.map``; a sentence that several batches hold is a point of the first."""
        wanted = wanted_words(question, context)
        seen: set[str] = set()
        return [self._map(wanted, batch, context, seen) for batch in batches]

    def _map(self, wanted: WantedWords, batch: Batch, context: Context, seen: set[str]) -> Mapped:
        reports = reports_of(context).by_iri
        shown = [
            (reports[c.item.iri], count)
            for c, count in zip(batch.candidates, batch.findings, strict=True)
        ]
        extracts = extracts_of(shown, context)
        weights = {c.item.iri: c.score for c in batch.candidates}
        scored = self._scored(wanted, extracts, weights, context)
        points: list[MappedPoint] = []
        taken: dict[str, int] = {}
        for score, why, extract in sorted(scored, key=_order):
            report = extract.report.iri
            if extract.text in seen or taken.get(report, 0) >= self.OF_REPORT:
                continue
            if len(points) == self.OF_BATCH:
                break
            seen.add(extract.text)
            taken[report] = taken.get(report, 0) + 1
            points.append(
                MappedPoint(extract.text, score, (extract.part,), (extract.evidence,), why)
            )
        left = len(extracts) - len(points)
        return Mapped(tuple(points), {"sentence that helps less": left} if left else {})

    def _scored(
        self,
        wanted: WantedWords,
        extracts: Sequence[Extract],
        weights: Mapping[str, float],
        context: Context,
    ) -> list[tuple[float, str, Extract]]:
        """The sentences that are points, each with its score and why."""
        if not wanted.weights:
            return [(importance(e, weights[e.report.iri]), _important(e), e) for e in extracts]
        rated = relevance(extracts, wanted.text, context)
        return [
            (score, _relevant(extract, wanted), extract)
            for extract, score in zip(extracts, rated, strict=True)
            if score >= self.LEAST
        ]


def _order(scored: tuple[float, str, Extract]) -> tuple[float, str, int]:
    return -scored[0], scored[2].evidence.iri, scored[2].evidence.start


def _important(extract: Extract) -> str:
    return f"it tells of {extract.report.title}, a report rated {extract.report.rating:g} of 10"


def _relevant(extract: Extract, wanted: WantedWords) -> str:
    shared = [word for word in dict.fromkeys(words(wanted.text)) if stem(word) in extract.said]
    why = f"shares {', '.join(shared[:6])} with the question" if shared else "answers in meaning"
    return f"its sentence, found by the report on {extract.report.title}, {why}"


class EmbeddedReducer:
    """A ``Reducer`` that quotes the best points, those of one document in the order of its text."""

    agent = Agent("method", "embedded-reduce", __version__)

    MOST = 8
    CLOSE, CLOSE_IF_BROAD = 0.7, 0.5
    """Points below this share of the best are not used; less of a question about the whole."""

    OF_DOCUMENT = 2
    """Points of one document, where there are others."""

    def left_out(self, question: Question, points: Sequence[Candidate]) -> Mapping[str, str]:
        """As ``Reducer.left_out``."""
        found: dict[str, str] = {}
        kept: list[Candidate] = []
        documents = {point.evidence[0].document for point in points}
        most = max(self.OF_DOCUMENT, -(-self.MOST // max(1, len(documents))))
        close = self.CLOSE_IF_BROAD if is_broad(question) else self.CLOSE
        told: Counter[str] = Counter()
        for point in points:
            document = point.evidence[0].document
            if any(overlap(point.evidence[0], other.evidence[0]) for other in kept):
                found[point.item.iri] = "it repeats a better point"
            elif len(kept) == self.MOST:
                found[point.item.iri] = "over the limit of sentences"
            elif told[document] == most:
                found[point.item.iri] = "over the limit of sentences of one document"
            elif kept and point.score < close * kept[0].score:
                found[point.item.iri] = f"its score is below {close:.0%} of the best"
            else:
                kept.append(point)
                told[document] += 1
        return found

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """As ``Synthesiser.synthesise``."""
        for selected in _in_order(selection.selected):
            place = selected.candidate.evidence[0]
            yield Draft(selected.item.text, (selected,), (place.iri,))


def _in_order(selected: Sequence[Selected]) -> list[Selected]:
    """By document, that of the best point first, and by position."""
    places = [s.candidate.evidence[0] for s in selected]
    first = {place.document: n for n, place in reversed(list(enumerate(places)))}

    def position(n: int) -> tuple[int, int, int]:
        return first[places[n].document], places[n].page or 0, places[n].start

    return [selected[n] for n in sorted(range(len(selected)), key=position)]


class EmbeddedRater:
    """A ``Rater`` that compares the report with the question, in words and in meaning."""

    agent = Agent("method", "embedded-rating", __version__)

    WORDS = 0.6

    def rate(
        self,
        question: Question,
        reports: Sequence[CommunityReport],
        context: Context,
        sink: CallSink,
    ) -> list[Vote]:
        """As ``Rater.rate``."""
        wanted = wanted_words(question, context)
        if not wanted.weights:
            return [_by_rating(report) for report in reports]
        cosines = similar("report", [r.iri for r in reports], wanted.text, context)
        return [self._vote(report, wanted, cosines.get(report.iri, 0.0)) for report in reports]

    def _vote(self, report: CommunityReport, wanted: WantedWords, cosine: float) -> Vote:
        share = wanted.share(dict.fromkeys(terms(report.text), 1.0))
        score = self.WORDS * share + (1 - self.WORDS) * alike(cosine)
        reason = (
            f"It has {share:.0%} of what the question names and is {cosine:.2f} similar in meaning."
        )
        return Vote(int(BEST * score), reason)


def _by_rating(report: CommunityReport) -> Vote:
    rating = max(1, round(BEST * report.rating / 10))
    return Vote(
        rating, f"The question is about the whole, and the report is rated {report.rating:g}."
    )
