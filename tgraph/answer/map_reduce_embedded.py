"""The embedded way to map and reduce: sentences of the sources behind the reports, by theme.

Nothing is generated. A point is a sentence that a finding rests on, and the answer quotes the best
of them as they stand, under their themes: the terms that set them apart, and how many documents
carry them. In front stands what there is in all, in counts and names. A question about the
documents as a whole is answered by their largest themes; where the documents don't speak of what is
asked, there is no evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tgraph.answer.base import Draft, Notes
from tgraph.answer.community_selection import BEST, Vote
from tgraph.answer.map_reduce import Batch, Batches, Mapped, MappedPoint
from tgraph.answer.report_batches import batched, fits_of, whole_costs
from tgraph.answer.themes import (
    SUMMARY,
    Rated,
    Theme,
    closeness,
    heading,
    reads_well,
    summary,
    themes_of,
)
from tgraph.index.sources import document_titles, section_headings
from tgraph.model import Agent, Candidate, CommunityReport, Item, Selected, Selection
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
    without_asides,
)
from tgraph.retrieve.text.sentence_ranking import overlap
from tgraph.version import __version__


class EmbeddedMapper:
    """A ``Mapper`` whose points are the sentences that answer best."""

    agent = Agent("method", "embedded-map", __version__)

    OF_THEME = 3
    """Sentences of one theme, and if the question is about the whole one less."""

    THEMES = 8

    LEAST, BESIDE = 0.44, 0.4
    """The relevance that the best sentence must have, and then the others, to be a point."""

    NAMES_ITS_THEME = 0.75
    """What it counts of a sentence, asked about the whole, that it has its theme's terms."""

    ELSEWHERE = 0.7
    """What a sentence counts then of a document that tells more of another theme."""

    STEP = 0.04
    """By how much the next largest theme scores less."""

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
        """As ``Mapper.map``; a sentence that several batches hold is a point of the first, and so
        are the themes."""
        wanted = wanted_words(question, context)
        reports = reports_of(context)
        shown = [
            (reports.by_iri[candidate.item.iri], count)
            for batch in batches
            for candidate, count in zip(batch.candidates, batch.findings, strict=True)
        ]
        weights = {c.item.iri: c.score for batch in batches for c in batch.candidates}
        extracts = everything = extracts_of(shown, context)
        if not wanted.weights:
            extracts = without_asides(everything)
        rated = _distinct(self._scored(wanted, extracts, weights, context))
        documents = {e.evidence.document for e in extracts}
        titles = context.remembered("titles", 50_000).get_all(
            documents, lambda missing: document_titles(context.store, missing)
        )
        sections = context.once("headings", lambda: section_headings(context.store))
        headings = {*titles.values(), *sections}
        themes = themes_of(rated, extracts, reports, titles, headings)[: self.THEMES]
        if not wanted.weights:
            themes = [_representative(t, 1 - self.STEP * n) for n, t in enumerate(themes, 1)]
        of_theme = self.OF_THEME - (not wanted.weights)
        told = [(theme, _of_several(theme.sentences, of_theme)) for theme in themes]
        points = _points(told, extracts, whole=not wanted.weights)
        left = len(everything) - sum(len(sentences) for _, sentences in told)
        return _by_batch(points, batches, left)

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
        if max(rated, default=0.0) < self.LEAST:
            return []
        return [
            (score, _relevant(extract, wanted), extract)
            for extract, score in zip(extracts, rated, strict=True)
            if score >= self.BESIDE
        ]


def _order(scored: tuple[float, str, Extract]) -> tuple[float, str, int]:
    return -scored[0], scored[2].evidence.iri, scored[2].evidence.start


def _distinct(rated: Iterable[Rated]) -> list[Rated]:
    """Each wording once, the best of it, and no part of a text twice."""
    found: dict[str, Rated] = {}
    for each in sorted(rated, key=_order):
        same = (other[2].evidence for other in found.values())
        if each[2].text not in found and not any(overlap(each[2].evidence, o) for o in same):
            found[each[2].text] = each
    return list(found.values())


def _representative(theme: Theme, score: float) -> Theme:
    """A theme whose sentences are rated by how well they stand for it, at most ``score``."""
    counted = EmbeddedMapper.NAMES_ITS_THEME
    telling = [each for each in theme.sentences if reads_well(each[2])] or theme.sentences
    close = {extract: closeness(theme.terms, extract) for _, _, extract in telling}
    if any(close.values()):
        telling = [each for each in telling if close[each[2]]]
    rated = [
        (own * (1 - counted + counted * close[extract]) * _belongs(extract, theme), why, extract)
        for own, why, extract in telling
    ]
    top = max((own for own, *_ in rated), default=0.0) or 1.0
    scaled = [(round(score * own / top, 6), why, extract) for own, why, extract in rated]
    return replace(theme, sentences=tuple(sorted(scaled, key=_order)))


def _belongs(extract: Extract, theme: Theme) -> float:
    """What it counts that the sentence's document tells of the theme more than of any other."""
    return 1.0 if extract.evidence.document in theme.own else EmbeddedMapper.ELSEWHERE


def _of_several(rated: Sequence[Rated], most: int) -> list[Rated]:
    """The best, of as many documents as there are."""
    told: set[str] = set()
    first: list[Rated] = []
    for each in rated:
        if each[2].evidence.document not in told:
            told.add(each[2].evidence.document)
            first.append(each)
    return [*first, *(each for each in rated if each not in first)][:most]


def _points(
    told: Sequence[tuple[Theme, Sequence[Rated]]], everything: Sequence[Extract], *, whole: bool
) -> list[tuple[MappedPoint, str]]:
    """The points with the report, by IRI, that each belongs to: sentences, before those of a theme
    the theme, and before all what there is; none of the two where there is one theme."""
    found: list[tuple[MappedPoint, str]] = []
    for theme, sentences in told:
        quoted = [extract for _, _, extract in sentences]
        if len(told) > 1:
            found.append((heading(theme, quoted, sentences[0][0]), quoted[0].report.iri))
        found += [
            (MappedPoint(e.text, score, (e.part,), (e.evidence,), why), e.report.iri)
            for score, why, e in sentences
        ]
    if len(told) > 1:
        themes = [theme for theme, _ in told]
        said = summary(themes, everything, whole=whole)
        found.insert(0, (said, said.cites[0]))
    return found


def _by_batch(
    points: Sequence[tuple[MappedPoint, str]], batches: Sequence[Batch], left: int
) -> list[Mapped]:
    """The points under the batch that holds their report; what is left out counts for the first."""
    owner = {
        c.item.iri: n for n, batch in reversed(list(enumerate(batches))) for c in batch.candidates
    }
    dropped = {"sentence that helps less": left} if left > 0 else {}
    return [
        Mapped(
            tuple(point for point, report in points if owner[report] == n),
            dropped if n == 0 else {},
        )
        for n in range(len(batches))
    ]


def _important(extract: Extract) -> str:
    return f"it tells of {extract.report.title}, a report rated {extract.report.rating:g} of 10"


def _relevant(extract: Extract, wanted: WantedWords) -> str:
    shared = [word for word in dict.fromkeys(words(wanted.text)) if stem(word) in extract.said]
    why = f"shares {', '.join(shared[:6])} with the question" if shared else "answers in meaning"
    return f"its sentence, found by the report on {extract.report.title}, {why}"


class EmbeddedReducer:
    """A ``Reducer`` that quotes the best points under their themes, those of one document in the
    order of its text."""

    agent = Agent("method", "embedded-reduce", __version__)

    MOST = 16
    CLOSE, CLOSE_IF_BROAD = 0.7, 0.5
    """Points below this share of the best are not used; less of a question about the whole."""

    def left_out(self, question: Question, points: Sequence[Candidate]) -> Mapping[str, str]:
        """As ``Reducer.left_out``; a theme goes with the last of its sentences, and what there is
        in all where no theme is left."""
        found: dict[str, str] = {}
        quotes = [point for point in points if is_quote(point)]
        best = max((point.score for point in quotes), default=0.0)
        close = self.CLOSE_IF_BROAD if is_broad(question) else self.CLOSE
        kept: list[Candidate] = []
        for point in quotes:
            if len(kept) == self.MOST:
                found[point.item.iri] = "over the limit of sentences"
            elif point.score < close * best:
                found[point.item.iri] = f"its score is below {close:.0%} of the best"
            else:
                kept.append(point)
        said = {title for point in kept for title in _titles(point)}
        for point in points:
            if not is_quote(point) and said.isdisjoint(_titles(point)):
                found[point.item.iri] = "no sentence of it is quoted"
        return found

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """As ``Synthesiser.synthesise``."""
        quotes = [s for s in selection.selected if is_quote(s.candidate)]
        others = [s for s in selection.selected if not is_quote(s.candidate)]
        for told in (s for s in others if s.item.text.startswith(SUMMARY)):
            yield _draft(told)
        left = {s.index: s for s in quotes}
        for theme in (s for s in others if not s.item.text.startswith(SUMMARY)):
            titles = set(_titles(theme.candidate))
            own = [s for s in left.values() if not titles.isdisjoint(_titles(s.candidate))]
            if own:
                yield _draft(theme, PARAGRAPH)
                yield from (_draft(s, ITEM) for s in _in_order(own))
            left = {n: s for n, s in left.items() if s not in own}
        yield from (_draft(s) for s in _in_order(list(left.values())))


PARAGRAPH, ITEM = "\n\n", "\n- "


def _draft(selected: Selected, lead: str = " ") -> Draft:
    places = tuple(place.iri for place in selected.candidate.evidence)
    return Draft(selected.item.text, (selected,), places, lead)


def is_quote(point: Candidate) -> bool:
    """Whether a point is a sentence of a document, and neither a theme nor a summary."""
    quotes = (" ".join(place.quote.split()) for place in point.evidence)
    return point.item.text in quotes


def _titles(point: Candidate) -> list[str]:
    """The reports that a point was drawn from, by title."""
    return point.item.label.split("; ") if isinstance(point.item, Item) else []


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
