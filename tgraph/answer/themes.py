"""What documents are about, without a model: themes, each with its terms and its best sentences.

A theme is a community of the coarsest level, and what is read of it are the sentences that its
reports, and those of its parts, rest on. Its terms are those that set it apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tgraph.answer.map_reduce import MappedPoint
from tgraph.rendering import many
from tgraph.retrieve.reports import Reports
from tgraph.retrieve.text.distinctive_terms import distinctive_terms
from tgraph.retrieve.text.lexical import terms
from tgraph.retrieve.text.report_sentences import Extract

SUMMARY = "Summary: "
"""How the sentence begins that says what there is in all."""

WORDS = 0.85
"""The share of letters and spaces in a sentence that is mostly words."""
TERMS = 5
"""Terms of a theme."""
NAMED = 3
"""Names that the summary has."""
COMMON = 1 / 3
"""The share of the documents that name what is named throughout."""
SMALLEST = 3
"""Sentences of the smallest theme, where larger ones are told in its documents too."""
COUNTS = "it counts what was read"
"""The reason for a point that says how many documents there are, which no document says."""

Rated = tuple[float, str, Extract]
"""A sentence with its score and the reason for it."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Sentences that belong together, the best first; ``documents`` are those that the whole theme
    is told in, ``terms`` set it apart; ``telling`` has a sentence for each term."""

    terms: tuple[str, ...]
    sentences: tuple[Rated, ...]
    documents: frozenset[str]
    telling: tuple[Extract, ...]

    @property
    def label(self) -> str:
        """The theme by its terms, and how many documents carry it."""
        return f"{_listed(self.terms)} ({many(len(self.documents), 'document')})"


def themes_of(
    rated: Sequence[Rated], everything: Sequence[Extract], reports: Reports
) -> list[Theme]:
    """The rated sentences by theme: what ``everything`` says there gives a theme its terms. The
    theme that most documents carry comes first."""
    said: defaultdict[str, list[Extract]] = defaultdict(list)
    for extract in everything:
        said[_root(extract, reports)].append(extract)
    wordings = {
        iri: {(e.evidence.document, e.text) for e in of if e.is_prose} for iri, of in said.items()
    }
    names = {iri: _named(of) for iri, of in said.items()}
    told = distinctive_terms({iri: sorted(of) for iri, of in wordings.items()}, TERMS, names)
    by_root: defaultdict[str, list[Rated]] = defaultdict(list)
    for each in rated:
        by_root[_root(each[2], reports)].append(each)
    found = [
        Theme(
            tuple(told[iri]),
            tuple(sorted(sentences, key=_best_first)),
            frozenset(extract.evidence.document for extract in said[iri]),
            _telling(told[iri], said[iri]),
        )
        for iri, sentences in by_root.items()
        if told[iri]
    ]
    large = [theme for theme in found if len(theme.sentences) >= SMALLEST]
    told_of: frozenset[str] = frozenset().union(*(theme.documents for theme in large))
    found = [theme for theme in found if theme in large or not theme.documents <= told_of]
    return sorted(found, key=lambda t: (-len(t.documents), -len(t.sentences), t.terms))


def _telling(named: Iterable[str], extracts: Sequence[Extract]) -> tuple[Extract, ...]:
    """A sentence for each term, prose where there is such; one may do for several."""
    ordered = sorted(extracts, key=lambda extract: not extract.is_prose)
    found: list[Extract] = []
    for words in (set(terms(term)) for term in named):
        if not any(words <= extract.said for extract in found):
            found += [extract for extract in ordered if words <= extract.said][:1]
    return tuple(found)


def _named(extracts: Iterable[Extract]) -> list[str]:
    """What the reports of the sentences are called, and their findings."""
    reports = {extract.report.iri: extract.report for extract in extracts}.values()
    return [name for r in reports for name in (r.title, *(f.summary for f in r.findings))]


def _root(extract: Extract, reports: Reports) -> str:
    """The community of the coarsest level that the sentence's report is about a part of."""
    community = reports.communities[extract.report.community]
    while community.parent is not None:
        community = reports.communities[community.parent]
    return community.iri


def _best_first(rated: Rated) -> tuple[float, str, int]:
    return -rated[0], rated[2].evidence.iri, rated[2].evidence.start


def reads_well(extract: Extract) -> bool:
    """Whether a sentence can stand for a theme by itself: prose that leans on nothing, asks nothing
    and is mostly words."""
    text = extract.text
    letters = sum(char.isalpha() or char.isspace() for char in text)
    is_said = extract.is_prose and not extract.leans and not text.rstrip('"”’)*_').endswith("?")
    return is_said and letters >= WORDS * len(text)


def closeness(theme_terms: Iterable[str], extract: Extract) -> float:
    """0 to 1: how many of a theme's terms the sentence has."""
    wanted = [set(terms(term)) for term in theme_terms]
    return sum(term <= extract.said for term in wanted) / len(wanted) if wanted else 0.0


# --- as points ----------------------------------------------------------------------------------


def heading(theme: Theme, quoted: Sequence[Extract], score: float) -> MappedPoint:
    """A theme as a point, drawn from the reports of the sentences that are quoted of it or have its
    terms."""
    return _counted(theme.label, score, (*quoted, *theme.telling))


def _counted(text: str, score: float, told: Sequence[Extract]) -> MappedPoint:
    """A point in counts and terms, with a place for each term."""
    reports = dict.fromkeys(extract.report.iri for extract in told)
    places = {extract.evidence.iri: extract.evidence for extract in reversed(told)}
    return MappedPoint(text, score, tuple(reports), tuple(reversed(places.values())), COUNTS)


def summary(themes: Sequence[Theme], everything: Sequence[Extract], *, whole: bool) -> MappedPoint:
    """What there is in all: the themes by their first terms, how many documents there are, and what
    most of them name where the question is about the ``whole``, else how many speak of it."""
    documents = {extract.evidence.document for extract in everything}
    leading = f"{many(len(themes), 'theme')}: {_listed([theme.terms[0] for theme in themes])}."
    if whole:
        least = len(documents) * COMMON
        named = [f"{name} (in {n})" for name, n in _names(everything)[:NAMED] if n >= least]
        most = f", which name most {_listed(named)}" if named else ""
        said = f"{many(len(documents), 'document')}{most}; {leading}"
    else:
        telling = {e.evidence.document for theme in themes for _, _, e in theme.sentences}
        said = f"{len(telling)} of {many(len(documents), 'document')} speak of this; {leading}"
    return _counted(f"{SUMMARY}{said}", 1.0, [theme.telling[0] for theme in themes])


def _names(everything: Sequence[Extract]) -> list[tuple[str, int]]:
    """What the reports are about, by the number of documents whose sentences have it."""
    names = {name for extract in everything for name in _titled(extract.report.title)}
    by_document: defaultdict[str, set[str]] = defaultdict(set)
    for extract in everything:
        by_document[extract.evidence.document] |= extract.said
    wanted = {name: set(terms(name)) for name in names}
    counts = {
        name: sum(parts <= said for said in by_document.values())
        for name, parts in wanted.items()
        if parts
    }
    ranked = sorted(counts, key=lambda name: (-counts[name], -len(name), name))
    found: list[tuple[str, int]] = []
    used: set[str] = set()
    for name in ranked:
        if counts[name] > 1 and used.isdisjoint(wanted[name]):
            used |= wanted[name]
            found.append((name, counts[name]))
    return found


def _titled(title: str) -> list[str]:
    """The names in the title of a report that quotes: ``A, B and C``."""
    head, _, last = title.rpartition(" and ")
    return [name for name in (*head.split(", "), last) if name[:1].isupper() and "," not in name]


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts)
