"""Document themes found without a model, each with terms and best sentences.

A theme is a community, the coarsest that doesn't hold most of the sentences; its sentences are
the evidence of its reports and of its parts' reports. Its terms set the theme apart, and the
documents that mostly concern the theme are named by title."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tgraph.answer.map_reduce import MappedPoint
from tgraph.index.sources import document_of_chunk
from tgraph.rendering import format_count
from tgraph.retrieve.base import Context
from tgraph.retrieve.reasons import COUNTS
from tgraph.retrieve.reports import Reports
from tgraph.retrieve.text.distinctive_terms import SMALL, distinctive_terms
from tgraph.retrieve.text.lexical import terms
from tgraph.retrieve.text.report_sentences import Extract
from tgraph.retrieve.text.word_similarity import words_of_chunks

SUMMARY = "Summary: "
"""How the sentence begins that says what there is in all."""

WORDS = 0.85
"""The share of letters and spaces in a sentence that is mostly words."""
TERMS = 5
"""Terms of a theme."""
TOPIC = 2
"""Terms that tell what a theme is about."""
LISTED = 4
"""Commas of a sentence that may list names."""
CAPITALS = 0.35
"""The share of words with a capital letter of a sentence that lists names."""
NEAREST, REPEATED = 20, 3
"""Chunks in which a sentence is looked for again, and documents in which it stands word for word if
it is no text of their own."""
OPENS, ADDRESSES, LENGTHY, SUBJECT = 0.5, 0.6, 0.7, 1.5
"""What a sentence counts that begins beside its subject, that speaks to its reader, that is long,
and that begins with what its theme or document is about."""
SHORT, LONG = 7, 40
"""Words of a sentence that says little, and of one that says too much."""
BEGINNING = 6
"""Words with which a sentence begins."""
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

_LINK = re.compile(r"\[([^\[\]]*)\]\([^)]{0,2000}\)")
_MARKED = re.compile(r"\*\*[^*]*\*\*|\*[^*]*\*|`[^`]*`|\b_[^_]*_\b")
_HALF = re.compile(r"[*`|\]\[]")
"""What is left of mark-up of which the sentence has only a part."""
_VERBAL = re.compile(r"[a-z]+(?:ing|ed)|get \w+")
"""A term in small letters that is no noun."""
_TAKING_UP = re.compile(
    r"(?:however|alternatively|instead|also|additionally|furthermore|moreover|similarly|otherwise"
    r"|finally|next|first|second|third|then|therefore|thus|hence|here|note|again|still|see"
    r"|for (?:example|instance)|as (?:such|a result|above|below)|in (?:addition|this|these|that)"
    r"|on the other hand|of course|after (?:this|that))\b",
    re.IGNORECASE,
)
"""How a sentence begins that takes up what was said."""
_OPENING = re.compile(
    r"(?:sometimes|to|if|once|such|both|like|unlike|compared|due to|because|although|while)\b",
    re.IGNORECASE,
)
"""How a sentence begins that says something beside its subject first."""
_ADDRESSING = re.compile(r"\b(?:you|your|yours|let['’]s|please|try our|click)\b", re.IGNORECASE)
_DEFINING = re.compile(
    r"(?:[Tt]he |[Aa]n? )?\W{0,3}((?:[\w'’-]+ ){0,3}[\w'’-]+?)\W{0,3} (?:is|are|was|were|means)\b"
)

RatedExtract = tuple[float, str, Extract]
"""A sentence with its score and the reason for it."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Related sentences, best first, with the theme's documents and terms.

    ``documents`` are all documents containing the theme; ``own`` are the documents that tell
    more of the theme than of any other; ``terms`` set the theme apart; ``titles`` are titles of
    the first own documents; ``telling`` has a sentence for each term and title."""

    terms: tuple[str, ...]
    sentences: tuple[RatedExtract, ...]
    documents: frozenset[str]
    own: tuple[str, ...]
    titles: tuple[str, ...]
    telling: tuple[Extract, ...]

    def describe(self, quoted: Sequence[Extract], total: int) -> str:
        """Return the theme's heading: the topic, in words of the quoted sentences where possible,
        and the number of documents that carry the theme out of ``total``."""
        topic = self._name_topic(quoted)
        titles = [title for title in self.titles if title != topic]
        carried = f"{len(self.documents):,} of {format_count(total, 'document')}"
        leading = f", above all “{'”, “'.join(titles)}”" if titles else ""
        return f"{topic[:1].upper()}{topic[1:]}: {carried}{leading}"

    def _name_topic(self, quoted: Sequence[Extract]) -> str:
        """Return the title of the one document that tells most of the theme, or else its terms."""
        if len(self.own) == 1 and self.titles:
            return self.titles[0]
        nouns = [term for term in self.terms if not _VERBAL.fullmatch(term)] or list(self.terms)
        said = frozenset().union(*(extract.said for extract in quoted))
        return " and ".join([n for n in nouns if said.issuperset(terms(n))][:TOPIC] or nouns[:1])

    @property
    def label(self) -> str:
        """The theme's label before the third wording: terms, number of documents, and leading
        document titles."""
        carried, titles = format_count(len(self.documents), "document"), "; ".join(self.titles)
        leading = ": " if len(self.titles) == len(self.documents) else ", above all "
        return f"{_join_parts(self.terms)} ({carried}{leading + titles if titles else ''})"


def themes_of(
    rated: Sequence[RatedExtract],
    everything: Sequence[Extract],
    reports: Reports,
    titles: Mapping[str, str],
    headings: Collection[str],
) -> list[Theme]:
    """Group rated sentences by theme; theme terms are taken from ``everything``.

    First comes the theme that dominates most documents, then the theme carried by most
    documents. ``titles`` maps each document to its title."""
    extracts_by_theme = _by_theme(everything, reports)
    theme_of = {extract: iri for iri, of in extracts_by_theme.items() for extract in of}
    wordings = {
        iri: {(e.evidence.document, e.text) for e in of if e.is_prose}
        for iri, of in extracts_by_theme.items()
    }
    own_documents = _own_documents(extracts_by_theme)
    names = {
        iri: [*_report_names(of), *(titles.get(document, "") for document in own_documents[iri])]
        for iri, of in extracts_by_theme.items()
    }
    groups = {iri: sorted(of) for iri, of in wordings.items()}
    terms_by_theme = distinctive_terms(groups, TERMS, names, headings)
    by_theme: defaultdict[str, list[RatedExtract]] = defaultdict(list)
    for rated_extract in rated:
        by_theme[theme_of[rated_extract[2]]].append(rated_extract)
    themes = [
        _build_theme(
            terms_by_theme[iri], sentences, extracts_by_theme[iri], own_documents[iri], titles
        )
        for iri, sentences in by_theme.items()
        if terms_by_theme[iri]
    ]
    large = [theme for theme in themes if len(theme.sentences) >= SMALLEST]
    told_of: frozenset[str] = frozenset().union(*(theme.documents for theme in large))
    themes = [theme for theme in themes if theme in large or not theme.documents <= told_of]
    return sorted(
        themes, key=lambda t: (-len(t.own), -len(t.documents), -len(t.sentences), t.terms)
    )


def _build_theme(
    told: Sequence[str],
    rated: Iterable[RatedExtract],
    said: Sequence[Extract],
    own: Sequence[str],
    titles: Mapping[str, str],
) -> Theme:
    titled_documents = [document for document in own if titles.get(document)][:TITLED]
    titled_documents = titled_documents if len(titles) > 1 else []
    places = [
        next(e for e in said if e.evidence.document == document) for document in titled_documents
    ]
    return Theme(
        tuple(told),
        tuple(sorted(rated, key=_best_first)),
        frozenset(extract.evidence.document for extract in said),
        tuple(own),
        tuple(dict.fromkeys(titles[document] for document in titled_documents)),
        (*_select_telling(told, said), *places),
    )


def _by_theme(everything: Sequence[Extract], reports: Reports) -> dict[str, list[Extract]]:
    """Group sentences by theme community; oversized communities are divided into their parts."""
    ways = [_community_path(extract, reports) for extract in everything]
    depths = [0] * len(ways)
    while True:
        positions_by_theme: defaultdict[str, list[int]] = defaultdict(list)
        for n, (way, depth) in enumerate(zip(ways, depths, strict=True)):
            positions_by_theme[way[depth]].append(n)
        divided = [
            n
            for positions in positions_by_theme.values()
            if len(positions) > LARGEST * len(everything)
            for n in positions
            if len(ways[n]) > depths[n] + 1
        ]
        if not divided:
            return {
                iri: [everything[n] for n in positions]
                for iri, positions in positions_by_theme.items()
            }
        for n in divided:
            depths[n] += 1


def _community_path(extract: Extract, reports: Reports) -> list[str]:
    """Return communities above the sentence's report, coarsest first."""
    community = reports.communities[extract.report.community]
    way = [community.iri]
    while community.parent is not None:
        community = reports.communities[community.parent]
        way.append(community.iri)
    return way[::-1]


def _own_documents(said: Mapping[str, Sequence[Extract]]) -> dict[str, list[str]]:
    """Group documents by dominant theme: the theme that each document tells most of.

    Documents that tell much of the theme and little else come first."""
    shares = {iri: Counter(e.evidence.document for e in of) for iri, of in said.items()}
    total_counts: Counter[str] = Counter()
    for share in shares.values():
        total_counts.update(share)
    own_documents: dict[str, list[str]] = {iri: [] for iri in shares}
    for document in sorted(total_counts):
        own_documents[min(shares, key=lambda iri: (-shares[iri][document], iri))].append(document)
    for iri, documents in own_documents.items():
        documents.sort(
            key=lambda document: (-(shares[iri][document] ** 2) / total_counts[document], document)
        )
    return own_documents


def _select_telling(named: Iterable[str], extracts: Sequence[Extract]) -> tuple[Extract, ...]:
    """Return a sentence for each term, preferably prose; a sentence may cover several terms."""
    ordered = sorted(extracts, key=lambda extract: not extract.is_prose)
    telling: list[Extract] = []
    for words in (set(terms(term)) for term in named):
        if not any(words <= extract.said for extract in telling):
            telling += [extract for extract in ordered if words <= extract.said][:1]
    return tuple(telling)


def _report_names(extracts: Iterable[Extract]) -> list[str]:
    """Return report titles and finding summaries behind the sentences."""
    reports = {extract.report.iri: extract.report for extract in extracts}.values()
    return [name for r in reports for name in (r.title, *(f.summary for f in r.findings))]


def _best_first(rated: RatedExtract) -> tuple[float, str, int]:
    return -rated[0], rated[2].evidence.iri, rated[2].evidence.start


def reads_well(extract: Extract) -> bool:
    """Return whether a sentence can represent a theme alone.

    Such a sentence is prose that refers to no other sentence, is no aside and no question, is
    mostly words and has no half of a mark-up."""
    text = _LINK.sub(r"\1", extract.text)
    if not extract.is_prose or extract.leans or text.startswith("("):
        return False
    letters = sum(char.isalpha() or char.isspace() for char in text)
    asks = text.rstrip('"”’)*_').endswith("?")
    return not asks and letters >= WORDS * len(text) and not _HALF.search(_MARKED.sub("", text))


def sums_up(extract: Extract) -> bool:
    """Return whether a sentence can stand for a theme in a summary: it reads well and lists no
    names."""
    text = _LINK.sub(r"\1", extract.text)
    written = text.split()
    capitals = sum(word[:1].isupper() for word in written)
    lists = text.count(",") >= LISTED and capitals >= CAPITALS * len(written)
    return reads_well(extract) and not lists and not _TAKING_UP.match(text.lstrip('"“*_'))


def rate_summing_up(extract: Extract, theme: Theme) -> float:
    """Rate how well a sentence opens what is told of a theme, by its beginning and its length."""
    text = _LINK.sub(r"\1", extract.text)
    written = text.split()
    rating = OPENS if _OPENING.match(text.lstrip('"“*_')) else 1.0
    rating *= ADDRESSES if _ADDRESSING.search(text) else 1.0
    rating *= 1.0 if SHORT <= len(written) <= LONG else LENGTHY
    subjects = {term for named in theme.terms for term in terms(named)}
    subjects.update(terms(extract.evidence.title))
    begins = subjects.intersection(terms(" ".join(written[:BEGINNING])))
    return rating * (SUBJECT if begins else 1.0)


def is_repeated(extract: Extract, context: Context) -> bool:
    """Return whether several documents have a sentence word for word, as they have notices."""
    index = words_of_chunks(context)
    documents: set[str] = set()
    for chunk, _ in index.search(extract.text, NEAREST):
        if extract.text in " ".join(context.texts.of_chunk(chunk).split()):
            documents.add(document_of_chunk(chunk))
    return len(documents) >= REPEATED


def theme_closeness(theme_terms: Sequence[str], extract: Extract) -> float:
    """Return how closely a sentence matches theme terms, 0 to 1.

    Leading terms count more than later terms; a sentence that defines a term scores higher."""
    term_weights = {frozenset(terms(term)): 1 / place for place, term in enumerate(theme_terms, 1)}
    share = sum(worth for term, worth in term_weights.items() if term <= extract.said)
    defining = _DEFINING.match(extract.text)
    defined = frozenset(terms(defining.group(1))) if defining else frozenset()
    return (
        (share / sum(term_weights.values()) + (defined in term_weights)) / 2
        if term_weights
        else 0.0
    )


# --- as points ----------------------------------------------------------------------------------


def theme_point(
    theme: Theme, quoted: Sequence[Extract], score: float, total: int | None
) -> MappedPoint:
    """Return a theme as a point, drawn from reports of its quoted or telling sentences.

    ``total`` counts all documents; None for the label before the third wording."""
    text = theme.label if total is None else theme.describe(quoted, total)
    return _count_point(text, score, (*quoted, *theme.telling))


def _count_point(text: str, score: float, told: Sequence[Extract]) -> MappedPoint:
    """Return a point stating counts and terms, with an evidence place per term."""
    reports = dict.fromkeys(extract.report.iri for extract in told)
    places = {extract.evidence.iri: extract.evidence for extract in reversed(told)}
    return MappedPoint(text, score, tuple(reports), tuple(reversed(places.values())), COUNTS)


def summary_point(
    themes: Sequence[Theme], everything: Sequence[Extract], *, whole: bool
) -> MappedPoint:
    """Return the first sentence of a summary: the number of documents and themes, and the most
    frequent names; for a question about a subject, the number of documents on the subject."""
    total = len({extract.evidence.document for extract in everything})
    told = f"{format_count(total, 'document')} on {format_count(len(themes), 'theme')}"
    named = [f"{name} (in {n:,})" for name, n in _common_names(everything, total)] if whole else []
    text = f"{told}; named most: {_join_with_and(named)}." if named else f"{told}."
    if not whole:
        telling = {e.evidence.document for theme in themes for _, _, e in theme.sentences}
        count = f"{len(telling):,} of {format_count(total, 'document')}"
        text = f"{count} speak of this, on {format_count(len(themes), 'theme')}."
    return _count_point(f"{SUMMARY}{text}", 1.0, [theme.telling[0] for theme in themes])


def _common_names(everything: Sequence[Extract], total: int) -> list[tuple[str, int]]:
    """Return the names that many documents have, without words also written in small letters."""
    texts = " ".join(extract.text for extract in everything)
    names = []
    for name, count in _count_names(everything):
        small = len(re.findall(rf"\b{re.escape(name.lower())}\b", texts))
        written = len(re.findall(rf"\b{re.escape(name)}\b", texts))
        if count >= total * COMMON and small < SMALL * (small + written):
            names.append((name, count))
    return names[:NAMED]


def _join_with_and(parts: Sequence[str]) -> str:
    head = ", ".join(parts[:-1])
    return f"{head} and {parts[-1]}" if head else parts[-1]


def overview_point(
    themes: Sequence[Theme], everything: Sequence[Extract], *, whole: bool
) -> MappedPoint:
    """Return an overview point before the third wording: leading theme terms, number of
    documents, and common names.

    Names are given if the question is about the ``whole``; otherwise the number of documents
    that mention the subject."""
    documents = {extract.evidence.document for extract in everything}
    first_terms = _join_parts([theme.terms[0] for theme in themes])
    leading = f"{format_count(len(themes), 'theme')}: {first_terms}."
    if whole:
        least = len(documents) * COMMON
        common_names = [
            f"{name} (in {n})" for name, n in _count_names(everything)[:NAMED] if n >= least
        ]
        name_clause = f", which name most {_join_parts(common_names)}" if common_names else ""
        overview_text = f"{format_count(len(documents), 'document')}{name_clause}; {leading}"
    else:
        telling = {e.evidence.document for theme in themes for _, _, e in theme.sentences}
        overview_text = (
            f"{len(telling)} of {format_count(len(documents), 'document')} speak of this; {leading}"
        )
    return _count_point(f"{SUMMARY}{overview_text}", 1.0, [theme.telling[0] for theme in themes])


def _count_names(everything: Sequence[Extract]) -> list[tuple[str, int]]:
    """Return report subjects with document counts, counting exact spellings.

    Only the names whose words occur in most documents are counted."""
    by_document: defaultdict[str, list[Extract]] = defaultdict(list)
    for extract in everything:
        by_document[extract.evidence.document].append(extract)
    document_terms = [
        frozenset().union(*(e.said for e in document_extracts))
        for document_extracts in by_document.values()
    ]
    texts = [
        "\n".join(extract.text for extract in document_extracts)
        for document_extracts in by_document.values()
    ]
    titles = {extract.report.iri: extract.report.title for extract in everything}
    terms_by_name = {
        name: set(terms(name)) for title in titles.values() for name in _title_names(title)
    }
    document_counts = {
        name: sum(map(parts.issubset, document_terms))
        for name, parts in terms_by_name.items()
        if parts
    }
    likely = sorted(document_counts, key=lambda name: (-document_counts[name], name))[:LIKELY]
    written = {name: re.compile(rf"\b{re.escape(name)}\b") for name in likely}
    counts = {name: sum(map(bool, map(form.search, texts))) for name, form in written.items()}
    ranked = sorted(counts, key=lambda name: (-counts[name], -len(name), name))
    name_counts: list[tuple[str, int]] = []
    used: set[str] = set()
    for name in ranked:
        if counts[name] > 1 and used.isdisjoint(terms_by_name[name]):
            used |= terms_by_name[name]
            name_counts.append((name, counts[name]))
    return name_counts


def _title_names(title: str) -> list[str]:
    """Return names in a quoting report's title: ``A, B and C``."""
    head, _, last = title.rpartition(" and ")
    return [name for name in (*head.split(", "), last) if name[:1].isupper() and "," not in name]


def _join_parts(parts: Sequence[str]) -> str:
    return ", ".join(parts)
