"""Embedded map and reduce: source sentences behind the reports, grouped by theme.

Nothing is generated. A point is a sentence supporting a finding, and the answer quotes the best
points verbatim under their themes: the terms that set them apart, and the number of documents
carrying them. An overview with counts and names stands in front. A question about the documents
as a whole is answered with their largest themes; if the documents don't mention the subject,
there is no evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tgraph.answer.base import Draft, Notes
from tgraph.answer.community_selection import BEST, Vote
from tgraph.answer.map_reduce import Batch, Batches, Mapped, MappedPoint
from tgraph.answer.report_batches import build_batches, fits_of, whole_costs
from tgraph.answer.themes import (
    SUMMARY,
    RatedExtract,
    Theme,
    is_repeated,
    overview_point,
    rate_summing_up,
    reads_well,
    summary_point,
    sums_up,
    theme_closeness,
    theme_point,
    themes_of,
)
from tgraph.index.sources import document_titles, section_headings
from tgraph.model import Agent, Candidate, CommunityReport, Item, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.resources import load_weights
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reasons import THIRD_WORDING, explain
from tgraph.retrieve.reports import reports_of
from tgraph.retrieve.text.lexical import stem, terms, words
from tgraph.retrieve.text.question_analysis import WantedWords, is_broad, wanted_words
from tgraph.retrieve.text.report_sentences import (
    Extract,
    cosine_by_iri,
    extracts_of,
    rate_importance,
    rate_relevance,
    scale_cosine,
    without_asides,
)
from tgraph.retrieve.text.sentence_ranking import places_overlap
from tgraph.version import __version__


class EmbeddedMapper:
    """A ``Mapper`` whose points are the sentences that answer best."""

    agent = Agent("method", "embedded-map", __version__)

    OF_THEME = 3
    """Sentences of one theme, and if the question is about the whole one less."""

    THEMES, THEMES_OF_SUMMARY = 8, 12

    SHARED = 3
    """Documents of a theme in a summary of which no document tells most."""

    (LEAST,) = load_weights("answer")
    BESIDE = 0.4
    """The relevance that the best sentence must have, and then the others, to be a point."""

    NAMES_ITS_THEME = 0.75
    """What it counts of a sentence, asked about the whole, that it has its theme's terms."""

    TERMS_OF_THEME = 0.5
    """The same in a summary."""

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
        """Return report batches identical to a model's batches, as ``Mapper.batches`` does."""
        from tgraph.models.tokens import DEFAULT_ENCODING

        reports = reports_of(context).by_iri
        candidate_reports = [reports[c.item.iri] for c in candidates]
        costs = whole_costs(DEFAULT_ENCODING, context)
        fits = fits_of(candidate_reports, self._budget, DEFAULT_ENCODING, costs)
        return build_batches(candidates, reports, fits, self._budget, self._shuffle_seed)

    def map(
        self, question: Question, batches: Sequence[Batch], context: Context, sink: CallSink
    ) -> list[Mapped]:
        """Return points as ``Mapper.map`` does.

        A sentence held by several batches is a point of the first batch, and so are the themes."""
        question_words = wanted_words(question, context)
        reports = reports_of(context)
        reports_with_counts = [
            (reports.by_iri[candidate.item.iri], count)
            for batch in batches
            for candidate, count in zip(batch.candidates, batch.findings, strict=True)
        ]
        weights = {c.item.iri: c.score for batch in batches for c in batch.candidates}
        extracts = everything = extracts_of(reports_with_counts, context)
        whole, as_summary = not question_words.weights, context.wording >= THIRD_WORDING
        if whole:
            extracts = without_asides(everything)
        rated = _distinct_sentences(
            self._score_sentences(question_words, extracts, weights, context)
        )
        documents = {e.evidence.document for e in extracts}
        titles = context.open_cache("titles", 50_000).get_all(
            documents, lambda missing: document_titles(context.store, missing)
        )
        sections = context.read_once("headings", lambda: section_headings(context.store))
        headings = {*titles.values(), *sections}
        themes = themes_of(rated, extracts, reports, titles, headings)
        themed_sentences = self._sum_up(themes, context) if whole and as_summary else []
        if not themed_sentences:
            themes = themes[: self.THEMES]
            if whole:
                themes = [_rank_by_theme(t, 1 - self.STEP * n) for n, t in enumerate(themes, 1)]
            of_theme = self.OF_THEME - whole
            themed_sentences = [
                (theme, _spread_over_documents(theme.sentences, of_theme)) for theme in themes
            ]
        points = _arrange_points(themed_sentences, extracts, whole=whole, as_summary=as_summary)
        omitted_count = len(everything) - sum(len(sentences) for _, sentences in themed_sentences)
        return _by_batch(points, batches, omitted_count)

    def _sum_up(
        self, themes: Sequence[Theme], context: Context
    ) -> list[tuple[Theme, list[RatedExtract]]]:
        """Return the themes of a summary, those of most documents first, each with sentences that
        sum it up; a theme without such a sentence is left out."""
        told: list[tuple[Theme, list[RatedExtract]]] = []
        for theme in themes:
            if not theme.own and len(theme.documents) < self.SHARED:
                continue
            if sentences := _choose_summing_up(theme, context):
                told.append((theme, sentences))
            if len(told) == self.THEMES_OF_SUMMARY:
                break
        told.sort(key=lambda each: -len(each[0].documents))
        room = EmbeddedReducer.MOST - len(told)
        for n, (theme, sentences) in enumerate(told):
            told[n] = theme, sentences[: 1 + max(0, room)]
            room -= len(told[n][1]) - 1
        return [
            (theme, _scale_scores(sentences, 1 - self.STEP * n))
            for n, (theme, sentences) in enumerate(told, 1)
        ]

    def _score_sentences(
        self,
        wanted: WantedWords,
        extracts: Sequence[Extract],
        weights: Mapping[str, float],
        context: Context,
    ) -> list[tuple[float, str, Extract]]:
        """Return point sentences, each with score and reason."""
        if not wanted.weights:
            return [
                (rate_importance(e, weights[e.report.iri]), _importance_reason(e), e)
                for e in extracts
            ]
        rated = rate_relevance(extracts, wanted.text, context)
        if max(rated, default=0.0) < self.LEAST:
            return []
        return [
            (score, _relevance_reason(extract, wanted), extract)
            for extract, score in zip(extracts, rated, strict=True)
            if score >= self.BESIDE
        ]


def _sort_key(scored: tuple[float, str, Extract]) -> tuple[float, str, int]:
    return -scored[0], scored[2].evidence.iri, scored[2].evidence.start


def _distinct_sentences(rated: Iterable[RatedExtract]) -> list[RatedExtract]:
    """Return each wording once, with its best score, and no text passage twice."""
    by_wording: dict[str, RatedExtract] = {}
    for entry in sorted(rated, key=_sort_key):
        same = (earlier[2].evidence for earlier in by_wording.values())
        if entry[2].text not in by_wording and not any(
            places_overlap(entry[2].evidence, o) for o in same
        ):
            by_wording[entry[2].text] = entry
    return list(by_wording.values())


def _rank_by_theme(theme: Theme, score: float) -> Theme:
    """Return the theme, its sentences rated by representativeness, at most ``score``."""
    counted = EmbeddedMapper.NAMES_ITS_THEME
    telling = [entry for entry in theme.sentences if reads_well(entry[2])] or theme.sentences
    close = {extract: theme_closeness(theme.terms, extract) for _, _, extract in telling}
    if any(close.values()):
        telling = [entry for entry in telling if close[entry[2]]]
    rated = [
        (
            sentence_score
            * (1 - counted + counted * close[extract])
            * _theme_weight(extract, theme),
            why,
            extract,
        )
        for sentence_score, why, extract in telling
    ]
    top = max((sentence_score for sentence_score, *_ in rated), default=0.0) or 1.0
    scaled = [
        (round(score * sentence_score / top, 6), why, extract)
        for sentence_score, why, extract in rated
    ]
    return replace(theme, sentences=tuple(sorted(scaled, key=_sort_key)))


def _choose_summing_up(theme: Theme, context: Context) -> list[RatedExtract]:
    """Return the sentences that sum up a theme best, one of a document, two at most.

    Those of documents that tell most of the theme come first."""
    counted = EmbeddedMapper.TERMS_OF_THEME
    rated = [
        (
            worth
            * (1 - counted + counted * theme_closeness(theme.terms, extract))
            * rate_summing_up(extract, theme),
            why,
            extract,
        )
        for worth, why, extract in theme.sentences
        if sums_up(extract)
    ]
    most = max(1, min(EmbeddedMapper.OF_THEME - 1, len(theme.own)))
    chosen: list[RatedExtract] = []
    for entry in sorted(
        rated, key=lambda each: (each[2].evidence.document not in theme.own, _sort_key(each))
    ):
        documents = {extract.evidence.document for _, _, extract in chosen}
        if entry[2].evidence.document not in documents and not is_repeated(entry[2], context):
            chosen.append(entry)
        if len(chosen) == most:
            break
    return chosen


def _scale_scores(rated: Sequence[RatedExtract], best: float) -> list[RatedExtract]:
    """Return the sentences with scores in proportion, the first with the ``best`` score."""
    top = rated[0][0] or 1.0
    return [(round(best * worth / top, 6), why, extract) for worth, why, extract in rated]


def _theme_weight(extract: Extract, theme: Theme) -> float:
    """Return the sentence weight: reduced if another theme describes the sentence's document
    better."""
    return 1.0 if extract.evidence.document in theme.own else EmbeddedMapper.ELSEWHERE


def _spread_over_documents(rated: Sequence[RatedExtract], most: int) -> list[RatedExtract]:
    """Return the best sentences, from as many documents as possible."""
    documents: set[str] = set()
    first: list[RatedExtract] = []
    for entry in rated:
        if entry[2].evidence.document not in documents:
            documents.add(entry[2].evidence.document)
            first.append(entry)
    return [*first, *(entry for entry in rated if entry not in first)][:most]


def _arrange_points(
    told: Sequence[tuple[Theme, Sequence[RatedExtract]]],
    everything: Sequence[Extract],
    *,
    whole: bool,
    as_summary: bool,
) -> list[tuple[MappedPoint, str]]:
    """Return points with their report IRIs: an overview, then each theme followed by its
    sentences.

    Overview and theme headings are omitted if only one theme exists; a summary always has them."""
    points: list[tuple[MappedPoint, str]] = []
    total = len({extract.evidence.document for extract in everything}) if as_summary else None
    headed = len(told) > 1 or (whole and as_summary)
    for theme, sentences in told:
        quoted = [extract for _, _, extract in sentences]
        if headed:
            point = theme_point(theme, quoted, sentences[0][0], total)
            points.append((point, quoted[0].report.iri))
        points += [
            (MappedPoint(e.text, score, (e.part,), (e.evidence,), why), e.report.iri)
            for score, why, e in sentences
        ]
    if headed and told:
        themes = [theme for theme, _ in told]
        describe = summary_point if as_summary else overview_point
        overview = describe(themes, everything, whole=whole)
        points.insert(0, (overview, overview.cites[0]))
    return points


def _by_batch(
    points: Sequence[tuple[MappedPoint, str]], batches: Sequence[Batch], left: int
) -> list[Mapped]:
    """Group points under the batch holding their report; omissions count for the first batch."""
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


def _importance_reason(extract: Extract) -> str:
    report = extract.report
    return explain("point-important", title=report.title, rating=report.rating)


def _relevance_reason(extract: Extract, wanted: WantedWords) -> str:
    shared = [word for word in dict.fromkeys(words(wanted.text)) if stem(word) in extract.said]
    kind = "point-words" if shared else "point-meaning"
    return explain(kind, title=extract.report.title, words=", ".join(shared[:6]))


class EmbeddedReducer:
    """A ``Reducer`` that quotes the best points under their themes, points of one document in
    text order."""

    agent = Agent("method", "embedded-reduce", __version__)

    MOST = 16
    CLOSE, CLOSE_IF_BROAD = 0.7, 0.5
    """Points below this share of the best are not used; less of a question about the whole."""

    def left_out(self, question: Question, points: Sequence[Candidate]) -> Mapping[str, str]:
        """Return omitted points as ``Reducer.left_out`` does.

        A theme is omitted together with its last sentence, and the overview where no theme
        remains."""
        reasons: dict[str, str] = {}
        quotes = [point for point in points if is_quote(point)]
        best = max((point.score for point in quotes), default=0.0)
        close = self.CLOSE_IF_BROAD if is_broad(question) else self.CLOSE
        used_quotes: list[Candidate] = []
        for point in quotes:
            if len(used_quotes) == self.MOST:
                reasons[point.item.iri] = explain("sentence-limit", limit=self.MOST)
            elif point.score < close * best:
                reasons[point.item.iri] = explain(
                    "sentence-score", score=point.score, share=close, best=best
                )
            else:
                used_quotes.append(point)
        used_titles = {title for point in used_quotes for title in _report_titles(point)}
        for point in points:
            if not is_quote(point) and used_titles.isdisjoint(_report_titles(point)):
                reasons[point.item.iri] = explain("theme-unquoted")
        return reasons

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """As ``Synthesiser.synthesise``."""
        quotes = [s for s in selection.selected if is_quote(s.candidate)]
        headings = [s for s in selection.selected if not is_quote(s.candidate)]
        for overview in (s for s in headings if s.item.text.startswith(SUMMARY)):
            yield _draft_sentence(overview)
        remaining = {s.index: s for s in quotes}
        for theme in (s for s in headings if not s.item.text.startswith(SUMMARY)):
            titles = set(_report_titles(theme.candidate))
            theme_quotes = [
                s for s in remaining.values() if not titles.isdisjoint(_report_titles(s.candidate))
            ]
            if theme_quotes:
                yield _draft_sentence(theme, PARAGRAPH)
                yield from (_draft_sentence(s, ITEM) for s in _in_order(theme_quotes))
            remaining = {n: s for n, s in remaining.items() if s not in theme_quotes}
        yield from (_draft_sentence(s) for s in _in_order(list(remaining.values())))


PARAGRAPH, ITEM = "\n\n", "\n- "


def _draft_sentence(selected: Selected, lead: str = " ") -> Draft:
    places = tuple(place.iri for place in selected.candidate.evidence)
    return Draft(selected.item.text, (selected,), places, lead)


def is_quote(point: Candidate) -> bool:
    """Return whether a point is a document sentence, neither theme nor summary."""
    quotes = (" ".join(place.quote.split()) for place in point.evidence)
    return point.item.text in quotes


def _report_titles(point: Candidate) -> list[str]:
    """Return titles of reports behind a point."""
    return point.item.label.split("; ") if isinstance(point.item, Item) else []


def _in_order(selected: Sequence[Selected]) -> list[Selected]:
    """Sort selections by document, the best point's document first, then by position."""
    places = [s.candidate.evidence[0] for s in selected]
    first = {place.document: n for n, place in reversed(list(enumerate(places)))}

    def position(n: int) -> tuple[int, int, int]:
        return first[places[n].document], places[n].page or 0, places[n].start

    return [selected[n] for n in sorted(range(len(selected)), key=position)]


class EmbeddedRater:
    """A ``Rater`` that compares report and question by words and by meaning."""

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
        question_words = wanted_words(question, context)
        if not question_words.weights:
            return [_by_rating(report) for report in reports]
        cosines = cosine_by_iri("report", [r.iri for r in reports], question_words.text, context)
        return [
            self._rate_report(report, question_words, cosines.get(report.iri, 0.0))
            for report in reports
        ]

    def _rate_report(self, report: CommunityReport, wanted: WantedWords, cosine: float) -> Vote:
        share = wanted.share(dict.fromkeys(terms(report.text), 1.0))
        score = self.WORDS * share + (1 - self.WORDS) * scale_cosine(cosine)
        reason = explain("rated-words", share=share, cosine=cosine)
        return Vote(int(BEST * score), reason)


def _by_rating(report: CommunityReport) -> Vote:
    rating = max(1, round(BEST * report.rating / 10))
    return Vote(rating, explain("rated-whole", rating=report.rating))
