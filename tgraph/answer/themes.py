"""What documents are about, without a model: themes, each with its terms and its best sentences.

A theme is a community, the coarsest that doesn't hold most of what is told; what is read of it are
the sentences that its reports, and those of its parts, rest on. Its terms are those that set it
apart, and the documents that tell most of it are named by their titles.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
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
LIKELY = 50
"""Names that are looked for in the documents."""
COMMON = 1 / 3
"""The share of the documents that name what is named throughout."""
LARGEST = 0.2
"""The share of all sentences from which on a community is told by its parts."""
TITLED = 3
"""Documents of a theme that are named."""
SMALLEST = 3
"""Sentences of the smallest theme, where larger ones are told in its documents too."""
COUNTS = "it counts what was read"
"""The reason for a point that says how many documents there are, which no document says."""

_LINK = re.compile(r"\[([^\[\]]*)\]\([^)]{0,2000}\)")
_MARKED = re.compile(r"\*\*[^*]*\*\*|\*[^*]*\*|`[^`]*`|\b_[^_]*_\b")
_HALF = re.compile(r"[*`|\]\[]")
"""What is left of mark-up of which the sentence has only a part."""
_DEFINING = re.compile(
    r"(?:[Tt]he |[Aa]n? )?\W{0,3}((?:[\w'’-]+ ){0,3}[\w'’-]+?)\W{0,3} (?:is|are|was|were|means)\b"
)

Rated = tuple[float, str, Extract]
"""A sentence with its score and the reason for it."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Sentences that belong together, the best first; ``documents`` are those that the whole theme
    is told in, ``own`` those of them that tell more of it than of any other theme; ``terms`` set it
    apart, ``titles`` are those of the first of its own; ``telling`` has a sentence for each of
    both."""

    terms: tuple[str, ...]
    sentences: tuple[Rated, ...]
    documents: frozenset[str]
    own: tuple[str, ...]
    titles: tuple[str, ...]
    telling: tuple[Extract, ...]

    @property
    def label(self) -> str:
        """The theme by its terms, how many documents carry it, and which above all."""
        carried, titles = many(len(self.documents), "document"), "; ".join(self.titles)
        leading = ": " if len(self.titles) == len(self.documents) else ", above all "
        return f"{_listed(self.terms)} ({carried}{leading + titles if titles else ''})"


def themes_of(
    rated: Sequence[Rated],
    everything: Sequence[Extract],
    reports: Reports,
    titles: Mapping[str, str],
    headings: Collection[str],
) -> list[Theme]:
    """The rated sentences by theme: what ``everything`` says there gives a theme its terms. First
    comes the theme that is most of what most documents tell, then the one that most carry.
    ``titles`` has that of each document."""
    said = _by_theme(everything, reports)
    theme_of = {extract: iri for iri, of in said.items() for extract in of}
    wordings = {
        iri: {(e.evidence.document, e.text) for e in of if e.is_prose} for iri, of in said.items()
    }
    own = _own_documents(said)
    names = {
        iri: [*_named(of), *(titles.get(document, "") for document in own[iri])]
        for iri, of in said.items()
    }
    groups = {iri: sorted(of) for iri, of in wordings.items()}
    told = distinctive_terms(groups, TERMS, names, headings)
    by_theme: defaultdict[str, list[Rated]] = defaultdict(list)
    for each in rated:
        by_theme[theme_of[each[2]]].append(each)
    found = [
        _theme(told[iri], sentences, said[iri], own[iri], titles)
        for iri, sentences in by_theme.items()
        if told[iri]
    ]
    large = [theme for theme in found if len(theme.sentences) >= SMALLEST]
    told_of: frozenset[str] = frozenset().union(*(theme.documents for theme in large))
    found = [theme for theme in found if theme in large or not theme.documents <= told_of]
    return sorted(found, key=lambda t: (-len(t.own), -len(t.documents), -len(t.sentences), t.terms))


def _theme(
    told: Sequence[str],
    rated: Iterable[Rated],
    said: Sequence[Extract],
    own: Sequence[str],
    titles: Mapping[str, str],
) -> Theme:
    named = [document for document in own if titles.get(document)][:TITLED]
    named = named if len(titles) > 1 else []
    places = [next(e for e in said if e.evidence.document == document) for document in named]
    return Theme(
        tuple(told),
        tuple(sorted(rated, key=_best_first)),
        frozenset(extract.evidence.document for extract in said),
        tuple(own),
        tuple(dict.fromkeys(titles[document] for document in named)),
        (*_telling(told, said), *places),
    )


def _by_theme(everything: Sequence[Extract], reports: Reports) -> dict[str, list[Extract]]:
    """The sentences by the community that is their theme: what holds more than its share of them
    all is told by its parts."""
    ways = [_way(extract, reports) for extract in everything]
    depths = [0] * len(ways)
    while True:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for n, (way, depth) in enumerate(zip(ways, depths, strict=True)):
            found[way[depth]].append(n)
        divided = [
            n
            for held in found.values()
            if len(held) > LARGEST * len(everything)
            for n in held
            if len(ways[n]) > depths[n] + 1
        ]
        if not divided:
            return {iri: [everything[n] for n in held] for iri, held in found.items()}
        for n in divided:
            depths[n] += 1


def _way(extract: Extract, reports: Reports) -> list[str]:
    """The communities that the sentence's report is about a part of, from the coarsest on."""
    community = reports.communities[extract.report.community]
    way = [community.iri]
    while community.parent is not None:
        community = reports.communities[community.parent]
        way.append(community.iri)
    return way[::-1]


def _own_documents(said: Mapping[str, Sequence[Extract]]) -> dict[str, list[str]]:
    """For each theme the documents that tell more of it than of any other, those first that tell
    much of it and little else."""
    shares = {iri: Counter(e.evidence.document for e in of) for iri, of in said.items()}
    whole: Counter[str] = Counter()
    for share in shares.values():
        whole.update(share)
    found: dict[str, list[str]] = {iri: [] for iri in shares}
    for document in sorted(whole):
        found[min(shares, key=lambda iri: (-shares[iri][document], iri))].append(document)
    for iri, own in found.items():
        own.sort(key=lambda document: (-(shares[iri][document] ** 2) / whole[document], document))
    return found


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


def _best_first(rated: Rated) -> tuple[float, str, int]:
    return -rated[0], rated[2].evidence.iri, rated[2].evidence.start


def reads_well(extract: Extract) -> bool:
    """Whether a sentence can stand for a theme by itself: prose that leans on nothing, is no aside
    and asks nothing, is mostly words and has no half of a mark-up."""
    text = _LINK.sub(r"\1", extract.text)
    if not extract.is_prose or extract.leans or text.startswith("("):
        return False
    letters = sum(char.isalpha() or char.isspace() for char in text)
    asks = text.rstrip('"”’)*_').endswith("?")
    return not asks and letters >= WORDS * len(text) and not _HALF.search(_MARKED.sub("", text))


def closeness(theme_terms: Sequence[str], extract: Extract) -> float:
    """0 to 1: how many of a theme's terms the sentence has, the first for more than the last, and
    whether it says what one of them is."""
    wanted = {frozenset(terms(term)): 1 / place for place, term in enumerate(theme_terms, 1)}
    share = sum(worth for term, worth in wanted.items() if term <= extract.said)
    defining = _DEFINING.match(extract.text)
    defined = frozenset(terms(defining.group(1))) if defining else frozenset()
    return (share / sum(wanted.values()) + (defined in wanted)) / 2 if wanted else 0.0


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
    """What the reports are about, by the number of documents that write it so; of those names alone
    whose words most documents have."""
    by_document: defaultdict[str, list[Extract]] = defaultdict(list)
    for extract in everything:
        by_document[extract.evidence.document].append(extract)
    said = [frozenset().union(*(e.said for e in told)) for told in by_document.values()]
    texts = ["\n".join(extract.text for extract in told) for told in by_document.values()]
    titles = {extract.report.iri: extract.report.title for extract in everything}
    wanted = {name: set(terms(name)) for title in titles.values() for name in _titled(title)}
    most = {name: sum(map(parts.issubset, said)) for name, parts in wanted.items() if parts}
    likely = sorted(most, key=lambda name: (-most[name], name))[:LIKELY]
    written = {name: re.compile(rf"\b{re.escape(name)}\b") for name in likely}
    counts = {name: sum(map(bool, map(form.search, texts))) for name, form in written.items()}
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
