"""Source sentences behind reports, and their relevance to a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tgraph.ingest.sentences import sentences
from tgraph.model import CommunityReport, Evidence
from tgraph.retrieve.base import Context
from tgraph.retrieve.reports import evidence_of_parts
from tgraph.retrieve.text.evidence_ranking import relevance_of
from tgraph.retrieve.text.lexical import terms, words
from tgraph.retrieve.text.page_sentences import page_sentences, with_whole_marks
from tgraph.retrieve.text.sentence_ranking import ASIDE, place_of

ABOVE = 0.03
"""What it counts at most that the report is like the question in meaning."""

FRAGMENT, LEANS, UNNAMED = 0.5, 0.7, 0.7
"""What a sentence that stands for the whole counts where it is a heading or a row of a table, where
it needs the one before, and where it names nothing of its report's title."""

EARLY, LATE = 800, 0.5
"""Characters into a document at which a sentence has lost half of what it counts to be early, and
what is left in the end."""

LONGEST = 400
"""Characters of a quote that is taken for one sentence; of a longer one the sentences are."""

FEWEST_WORDS = 5
"""Words of a sentence that says something by itself."""

OF_LONG = 3
"""Sentences taken of a long quote: those whose words are closest to the finding's."""

HEADING = 60
"""Characters of the longest line that is taken for a heading, if it is shorter than the rest."""

_PROSE = re.compile(r"""["'“‘«(\[*_]*[^\Wa-z_].*[.!?…。！？]["'”’»)\]*_]*""", re.DOTALL)
_ROW = re.compile(r"[^.!?;:]{1,60}: [^;]*; [^:;]{1,60}: ")
_HEADING = re.compile(rf"[^\W_][^\n]{{0,{HEADING - 2}}}[^\W_]")
_LEANING = re.compile(
    r"(?:[\"“'‘«]|(?:He|She|It|They|His|Her|Its|Their|This|That|These|Those|But|And|So|Then|There)\b"
    r"|(?:[\w'’-]+ ){1,3}(?:it|him|them)\b)"
)


@dataclass(frozen=True, slots=True)
class Extract:
    """A document sentence behind a report; ``evidence`` gives its text position.

    ``part`` is the supported finding, or the report for summary sentences; ``place`` counts
    findings from 1 and is 0 for the summary. ``is_aside`` marks surroundings of the text, such
    as a licence."""

    report: CommunityReport
    part: str
    place: int
    evidence: Evidence
    said: frozenset[str]
    named: bool
    is_prose: bool
    leans: bool
    is_aside: bool

    @property
    def text(self) -> str:
        return " ".join(self.evidence.quote.split())


def extracts_of(reports: Iterable[tuple[CommunityReport, int]], context: Context) -> list[Extract]:
    """Return sentences behind each report's summary and first findings, up to the given count,
    in order."""
    report_parts = [
        (report, *part) for report, count in reports for part in _list_parts(report)[: count + 1]
    ]
    grounds = evidence_of_parts([part for _, part, _ in report_parts], context)
    memory = context.open_cache("extracts", 50_000)
    extracts = []
    for report, part, part_text in report_parts:
        read = partial(_build_extracts, report, part, part_text, grounds.get(part, ()), context)
        extracts += memory.load_item(part, read)
    return extracts


def _list_parts(report: CommunityReport) -> list[tuple[str, str]]:
    """Return the report IRI with its summary, and finding IRIs with finding texts."""
    findings = [(f.iri, f"{f.summary} {f.explanation}") for f in report.findings]
    return [(report.iri, report.summary), *findings]


def _build_extracts(
    report: CommunityReport, part: str, told: str, evidence: Sequence[Evidence], context: Context
) -> list[Extract]:
    place = [iri for iri, _ in _list_parts(report)].index(part)
    if not place:  # a report rests on everything that was shown, its summary on what it repeats
        evidence = [e for e in evidence if " ".join(e.quote.split()) in told]
    title, said_there = frozenset(terms(report.title)), frozenset(terms(told))
    extracts = []
    for evidence_item in evidence:
        for excerpt in (
            [evidence_item]
            if len(evidence_item.quote) <= LONGEST
            else _closest_sentences(evidence_item, said_there)
        ):
            page = context.texts.of_page(excerpt.document, excerpt.page)
            exact = with_whole_marks(without_heading(excerpt, page), context)
            text = " ".join(exact.quote.split())
            sentence_terms = frozenset(terms(text))
            is_prose = bool(_PROSE.fullmatch(text)) and not _ROW.match(text)
            is_prose = is_prose and len(text.split()) >= FEWEST_WORDS
            names_title, leans = not title.isdisjoint(sentence_terms), leans_on_another(text)
            extracts.append(
                Extract(
                    report,
                    part,
                    place,
                    exact,
                    sentence_terms,
                    names_title,
                    is_prose,
                    leans,
                    _is_aside(exact, context),
                )
            )
    return extracts


def leans_on_another(text: str) -> bool:
    """Return whether a sentence needs the one before to be understood."""
    return bool(_LEANING.match(text))


def _is_aside(place: Evidence, context: Context) -> bool:
    page = page_sentences(place, context)
    return any(page[at].kind in ASIDE for at in page.find_overlapping(place.start, place.end))


def without_asides(extracts: Sequence[Extract]) -> list[Extract]:
    """Drop sentences surrounding a text, such as licences, and reports consisting mostly of
    such sentences.

    Return all sentences where nothing else remains."""
    sentence_counts = Counter(extract.report.iri for extract in extracts)
    beside = Counter(extract.report.iri for extract in extracts if extract.is_aside)
    body_extracts = [
        extract
        for extract in extracts
        if not extract.is_aside
        and 2 * beside[extract.report.iri] <= sentence_counts[extract.report.iri]
    ]
    return body_extracts or list(extracts)


def without_heading(place: Evidence, text: str) -> Evidence:
    """Return the place without a heading line, since PDF texts run headings into following
    sentences.

    ``text`` is the page text."""
    line, end, body = place.quote.partition("\n")
    begins = place.start == 0 or text[place.start - 1] == "\n"
    if not begins or not _HEADING.fullmatch(line) or not body[:1].isupper():
        return place
    if len(line) > 0.6 * max(map(len, body.splitlines())) or len(words(body)) < FEWEST_WORDS:
        return place
    return replace(place, start=place.start + len(line) + len(end), quote=body)


def _closest_sentences(place: Evidence, told: frozenset[str]) -> list[Evidence]:
    """Return sentences from a long quote sharing most words with the finding, in text order."""
    parts = [(a, b) for a, b in sentences(place.quote) if b - a <= LONGEST]
    shared = {part: len(told.intersection(terms(place.quote[slice(*part)]))) for part in parts}
    best = sorted(parts, key=lambda part: (-shared[part], part))[:OF_LONG]
    return [
        replace(place, start=place.start + a, end=place.start + b, quote=place.quote[a:b])
        for a, b in sorted(best)
        if shared[a, b]
    ]


def nearest_sentence(place: Evidence, said: frozenset[str], context: Context) -> Evidence:
    """Return a short place unchanged; for a long place, the sentence sharing most terms with
    ``said``, if any."""
    if len(place.quote) <= LONGEST:
        return place
    memory = context.open_cache("sentences of long quotes", 5_000)
    parts = memory.load_item(place.iri, partial(_split_quote, place))
    best = max(parts, key=lambda part: len(said & part[2]), default=None)
    if best is None or said.isdisjoint(best[2]):
        return place
    start, end, _ = best
    quote = place.quote[start:end]
    part = replace(place, start=place.start + start, end=place.start + end, quote=quote)
    return with_whole_marks(part, context)


def _split_quote(place: Evidence) -> list[tuple[int, int, frozenset[str]]]:
    spans = [(a, b) for a, b in sentences(place.quote) if b - a <= LONGEST]
    return [(a, b, frozenset(terms(place.quote[a:b]))) for a, b in spans]


def rate_relevance(extracts: Sequence[Extract], text: str, context: Context) -> list[float]:
    """Rate sentence relevance to a question, 0 to 1.

    Ratings follow graph mode, raised slightly by semantic similarity between question and
    report."""
    by_edge: dict[str, list[Evidence]] = {}
    for extract in extracts:
        by_edge.setdefault(extract.evidence.statement, []).append(extract.evidence)
    rated = relevance_of(text, by_edge, context)
    above = cosine_by_iri("report", {e.report.iri for e in extracts}, text, context)
    return [
        round(
            min(
                1.0,
                rated.get(place_of(e.evidence), 0.0)
                + ABOVE * scale_cosine(above.get(e.report.iri, 0.0)),
            ),
            6,
        )
        for e in extracts
    ]


def cosine_by_iri(kind: str, iris: Iterable[str], text: str, context: Context) -> dict[str, float]:
    """Return cosine similarities between a text and the IRIs of one kind with vectors."""
    vectors = context.vectors[kind]
    sorted_iris = sorted(set(iris))
    if not sorted_iris or not len(vectors):
        return {}
    return dict(vectors.search(context.embed([text]), len(sorted_iris), sorted_iris)[0])


def scale_cosine(cosine: float) -> float:
    """Scale a cosine to 0..1, fitted to MiniLM's cosine spread."""
    return min(1.0, max(0.0, (cosine - 0.1) / 0.6))


def rate_importance(extract: Extract, weight: float) -> float:
    """Rate how well a sentence represents the documents overall, 0 to 1.

    Factors: report rating and weight, position of the finding in the report, position of the
    sentence in the document, whether the sentence names the report subject and can be read
    alone."""
    score = (extract.report.rating / 10 + weight) / 2 * 0.9**extract.place
    score *= LATE + (1 - LATE) / (1 + extract.evidence.start / EARLY)
    score *= 1.0 if extract.named else UNNAMED
    return round(
        score * (1.0 if extract.is_prose else FRAGMENT) * (LEANS if extract.leans else 1), 6
    )
