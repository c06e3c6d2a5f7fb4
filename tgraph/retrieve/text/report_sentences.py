"""The sentences that reports rest on, and how well each answers a question."""

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
from tgraph.retrieve.text.lexical import terms, words
from tgraph.retrieve.text.page_sentences import page_sentences, with_whole_marks
from tgraph.retrieve.text.sentence_ranking import ASIDE, place_of, relevance_of

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
    """A sentence of a document that a report rests on; ``evidence`` says where it stands.

    ``part`` is the finding that rests on it, or the report where its summary does; ``place`` counts
    the findings from 1, and is 0 for the summary. ``is_aside`` says that it surrounds the text, as
    a licence does.
    """

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
    """The sentences behind the summary and the first so many findings of each report, in order."""
    wanted = [(report, *part) for report, count in reports for part in _parts(report)[: count + 1]]
    grounds = evidence_of_parts([part for _, part, _ in wanted], context)
    memory = context.remembered("extracts", 50_000)
    found = []
    for report, part, told in wanted:
        read = partial(_extracts, report, part, told, grounds.get(part, ()), context)
        found += memory.get(part, read)
    return found


def _parts(report: CommunityReport) -> list[tuple[str, str]]:
    """The IRIs of the report, for its summary, and of its findings, each with what it says."""
    findings = [(f.iri, f"{f.summary} {f.explanation}") for f in report.findings]
    return [(report.iri, report.summary), *findings]


def _extracts(
    report: CommunityReport, part: str, told: str, evidence: Sequence[Evidence], context: Context
) -> list[Extract]:
    place = [iri for iri, _ in _parts(report)].index(part)
    if not place:  # a report rests on everything that was shown, its summary on what it repeats
        evidence = [e for e in evidence if " ".join(e.quote.split()) in told]
    title, said_there = frozenset(terms(report.title)), frozenset(terms(told))
    found = []
    for one in evidence:
        for whole in [one] if len(one.quote) <= LONGEST else _closest(one, said_there):
            page = context.texts.of_page(whole.document, whole.page)
            exact = with_whole_marks(without_heading(whole, page), context)
            text = " ".join(exact.quote.split())
            said = frozenset(terms(text))
            is_prose = bool(_PROSE.fullmatch(text)) and not _ROW.match(text)
            is_prose = is_prose and len(text.split()) >= FEWEST_WORDS
            named, leans = not title.isdisjoint(said), bool(_LEANING.match(text))
            found.append(
                Extract(
                    report,
                    part,
                    place,
                    exact,
                    said,
                    named,
                    is_prose,
                    leans,
                    _is_aside(exact, context),
                )
            )
    return found


def _is_aside(place: Evidence, context: Context) -> bool:
    page = page_sentences(place, context)
    return any(page[at].kind in ASIDE for at in page.over(place.start, place.end))


def without_asides(extracts: Sequence[Extract]) -> list[Extract]:
    """The sentences without a text's surroundings, such as its licence, and without the reports
    that tell mostly of those; all of them where nothing else is told."""
    told = Counter(extract.report.iri for extract in extracts)
    beside = Counter(extract.report.iri for extract in extracts if extract.is_aside)
    kept = [
        extract
        for extract in extracts
        if not extract.is_aside and 2 * beside[extract.report.iri] <= told[extract.report.iri]
    ]
    return kept or list(extracts)


def without_heading(place: Evidence, text: str) -> Evidence:
    """The place without a heading on a line of its own, as texts of PDFs run into the sentence
    below. ``text`` is that of the page."""
    line, end, rest = place.quote.partition("\n")
    begins = place.start == 0 or text[place.start - 1] == "\n"
    if not begins or not _HEADING.fullmatch(line) or not rest[:1].isupper():
        return place
    if len(line) > 0.6 * max(map(len, rest.splitlines())) or len(words(rest)) < FEWEST_WORDS:
        return place
    return replace(place, start=place.start + len(line) + len(end), quote=rest)


def _closest(place: Evidence, told: frozenset[str]) -> list[Evidence]:
    """The sentences of a long quote whose words are closest to the finding's, in their order."""
    parts = [(a, b) for a, b in sentences(place.quote) if b - a <= LONGEST]
    shared = {part: len(told.intersection(terms(place.quote[slice(*part)]))) for part in parts}
    best = sorted(parts, key=lambda part: (-shared[part], part))[:OF_LONG]
    return [
        replace(place, start=place.start + a, end=place.start + b, quote=place.quote[a:b])
        for a, b in sorted(best)
        if shared[a, b]
    ]


def nearest_sentence(place: Evidence, said: frozenset[str], context: Context) -> Evidence:
    """The place itself where it is short; of a long one the sentence that shares most words with
    what is said, if it shares any."""
    if len(place.quote) <= LONGEST:
        return place
    memory = context.remembered("sentences of long quotes", 5_000)
    parts = memory.get(place.iri, partial(_sentences, place))
    best = max(parts, key=lambda part: len(said & part[2]), default=None)
    if best is None or said.isdisjoint(best[2]):
        return place
    start, end, _ = best
    quote = place.quote[start:end]
    part = replace(place, start=place.start + start, end=place.start + end, quote=quote)
    return with_whole_marks(part, context)


def _sentences(place: Evidence) -> list[tuple[int, int, frozenset[str]]]:
    found = [(a, b) for a, b in sentences(place.quote) if b - a <= LONGEST]
    return [(a, b, frozenset(terms(place.quote[a:b]))) for a, b in found]


def relevance(extracts: Sequence[Extract], text: str, context: Context) -> list[float]:
    """0 to 1 for each: how well the sentence answers, rated as in the graph mode, and raised a
    little by how like the question its report is in meaning."""
    by_edge: dict[str, list[Evidence]] = {}
    for extract in extracts:
        by_edge.setdefault(extract.evidence.statement, []).append(extract.evidence)
    rated = relevance_of(text, by_edge, context)
    above = similar("report", {e.report.iri for e in extracts}, text, context)
    return [
        round(
            min(
                1.0,
                rated.get(place_of(e.evidence), 0.0) + ABOVE * alike(above.get(e.report.iri, 0.0)),
            ),
            6,
        )
        for e in extracts
    ]


def similar(kind: str, iris: Iterable[str], text: str, context: Context) -> dict[str, float]:
    """The cosine of each of the IRIs of a kind that has vectors with the text."""
    vectors = context.vectors[kind]
    wanted = sorted(set(iris))
    if not wanted or not len(vectors):
        return {}
    return dict(vectors.search(context.embed([text]), len(wanted), wanted)[0])


def alike(cosine: float) -> float:
    """A cosine brought to 0..1, as MiniLM spreads them."""
    return min(1.0, max(0.0, (cosine - 0.1) / 0.6))


def importance(extract: Extract, weight: float) -> float:
    """0 to 1: how much the sentence stands for the documents as a whole.

    By its report's rating and weight, how early the finding stands in it and the sentence in its
    document, and whether it names what the report is about and can be read by itself.
    """
    score = (extract.report.rating / 10 + weight) / 2 * 0.9**extract.place
    score *= LATE + (1 - LATE) / (1 + extract.evidence.start / EARLY)
    score *= 1.0 if extract.named else UNNAMED
    return round(
        score * (1.0 if extract.is_prose else FRAGMENT) * (LEANS if extract.leans else 1), 6
    )
