"""Citations: from a drafted sentence to the exact characters that carry it.

A model cites an item as a whole. Where the item rests on many places (a report, a description) or
is a long stretch of text (a chunk), the sentence is traced to those places and sentences of it that
share most of its words: a reader is not sent through everything that the item was made from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.ingest.page_reading import kind_at
from tgraph.ingest.sentences import sentences
from tgraph.model import (
    Citation,
    CitationKind,
    CommunityReport,
    Edge,
    Evidence,
    Selected,
    Sentence,
)
from tgraph.rendering import flat
from tgraph.retrieve.base import Context
from tgraph.retrieve.reports import evidence_of_parts, reports_of
from tgraph.retrieve.text.graph_sentences import is_graph
from tgraph.retrieve.text.lexical import term_set, terms
from tgraph.retrieve.text.page_sentences import page_sentences, reading, with_whole_marks

CITED_AS: Mapping[str, CitationKind] = {
    "edge": "edge",
    "chunk": "chunk",
    "report": "report",
    "point": "report",
    "summary": "summary",
    "entity": "summary",
    "claim": "summary",
}
"""A point is what reports say; descriptions of entities and claims sum up what texts say."""

MOST_PLACES = 3
"""Places that a sentence is traced to through one item."""

NEAR = 0.6
"""The share of the best place's words that a place must have to be cited beside it."""

ENOUGH = 0.4
"""The share of a sentence's words that a sentence of a chunk must have to be cited for it all, and
a finding to be what the sentence was taken from."""

_GAP = re.compile(r"\n[^\S\r\n]*\n")


def with_grounds(draft: Draft, context: Context) -> Draft:
    """The draft, the reports that it names with what carries it: the evidence of the findings that
    share most of its words, or else of the report as a whole."""
    said = term_set(draft.text)
    named = tuple(_with_grounds(each, said, context) for each in draft.selections)
    return replace(draft, selections=named)


def _with_grounds(selected: Selected, said: frozenset[str], context: Context) -> Selected:
    candidate = selected.candidate
    if candidate.item.kind != "report" or candidate.evidence:
        return selected
    parts = _carrying(said, reports_of(context).by_iri[candidate.item.iri])
    places = evidence_of_parts(parts, context)
    evidence = tuple(place for part in parts for place in places.get(part, ()))
    return replace(selected, candidate=replace(candidate, evidence=evidence))


def _carrying(said: frozenset[str], report: CommunityReport) -> list[str]:
    """The findings, by IRI, that share most of the words, of two alike the shorter first; the
    report where none has enough."""
    told = [term_set(f"{finding.summary}\n{finding.explanation}") for finding in report.findings]
    shares = [len(said & words) / (len(said) or 1) for words in told]
    best = max(shares, default=0.0)
    if best < ENOUGH:
        return [report.iri]
    near = [place for place, share in enumerate(shares) if share >= NEAR * best]
    near.sort(key=lambda place: (-shares[place], len(told[place]), place))
    return [report.findings[place].iri for place in near[:MOST_PLACES]]


def cite(draft: Draft, session_uuid: str) -> Sentence:
    """The sentence with a citation for each place that the selections it names rest on."""
    citations: dict[tuple[object, ...], Citation] = {}
    for selected in draft.selections:
        for evidence in _places(draft, selected):
            place = (evidence.document, evidence.page, evidence.start, evidence.end)
            citations.setdefault(
                (selected.index, *place), citation_of(selected, evidence, session_uuid)
            )
    return Sentence(draft.text, tuple(citations.values()), draft.lead)


def well_cited(sentence: Sentence, context: Context) -> Sentence:
    """The sentence; what it cites of a chunk is quoted with its mark-up whole, each citation knows
    what it stands in, and the lines of a graph are said in words."""
    citations = (
        with_whole_marks(cited, context) if cited.evidence == cited.chunk else cited
        for cited in sentence.citations
    )
    with_kinds = []
    for cited in citations:
        segments = page_sentences(cited, context).segments
        kind = kind_at(segments, cited.start, cited.end)
        with_kinds.append(replace(cited, segment_kind=kind))
    return replace(sentence, text=_in_words(sentence, context), citations=tuple(with_kinds))


def _in_words(sentence: Sentence, context: Context) -> str:
    """The sentence; where it is the quote of a graph's lines, what they say."""
    said = flat(sentence.text)
    quoted = (cited for cited in sentence.citations if flat(cited.quote) == said)
    stated = (reading(cited, context) for cited in quoted if is_graph(cited.chunk, context))
    return next(stated, sentence.text)


def set_apart(sentence: Sentence, before: Sequence[Sentence]) -> Sentence:
    """The sentence; a block of code that it quotes has its lines, and nothing beside it."""
    code = _code(sentence)
    if code is None and not (before and _code(before[-1]) is not None):
        return sentence
    lead = sentence.lead if "\n" in sentence.lead else "\n\n"
    return replace(sentence, text=sentence.text if code is None else code, lead=lead)


def _code(sentence: Sentence) -> str | None:
    """The block of code that the sentence is the quote of."""
    said = flat(sentence.text)
    quotes = (c.quote for c in sentence.citations if c.segment_kind == "code")
    return next((quote for quote in quotes if flat(quote) == said), None)


def _places(draft: Draft, selected: Selected) -> Sequence[Evidence]:
    """What the draft names; of an edge all that was shown, of other items what carries the text."""
    evidence = selected.candidate.evidence
    if draft.evidence:
        return [item for item in evidence if item.iri in draft.evidence]
    if selected.item.kind == "edge":
        return evidence
    said = frozenset(terms(draft.text))
    return [_closest(said, item) for item in _nearest(said, evidence)]


def _nearest(said: frozenset[str], evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """The places that share most of the words, at most ``MOST_PLACES``, best first."""
    if len(evidence) <= 1:
        return evidence
    size = len(said) or 1
    shares = [(len(said & term_set(e.quote)) / size, place) for place, e in enumerate(evidence)]
    best = max(share for share, _ in shares)
    near = sorted((-share, place) for share, place in shares if share >= NEAR * best)
    return [evidence[place] for _, place in near[:MOST_PLACES]]


def _closest(said: frozenset[str], evidence: Evidence) -> Evidence:
    """Of a whole chunk the sentence that shares most of the words, if it has enough of them."""
    if evidence.iri != evidence.chunk:
        return evidence
    share, start, end = _best_sentence(said, evidence.quote)
    if share < ENOUGH:
        return evidence
    first, last = evidence.start + start, evidence.start + end
    return replace(evidence, start=first, end=last, quote=evidence.quote[start:end])


def _best_sentence(said: frozenset[str], text: str) -> tuple[float, int, int]:
    """The first of the sentences that share most of the words: its share, start and end. Where
    none shares ``ENOUGH``, any share below that.

    No sentence shares more than its paragraph, so only the paragraphs that may hold the best are
    cut into sentences.
    """
    paragraphs = sorted(
        (-_shared(said, found), start, end) for start, end, found in _paragraph_terms(text)
    )
    best = (0.0, 0, 0)
    for most, start, end in paragraphs:
        if most > min(best[0], -ENOUGH):
            break
        for first, last in sentences(text[start:end]):
            share = _share(said, text[start + first : start + last])
            best = min(best, (-share, start + first, start + last))
    return -best[0], best[1], best[2]


@lru_cache(maxsize=128)
def _paragraph_terms(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Start, end and terms of each paragraph of a chunk; those of the last chunks are kept."""
    return tuple(
        (start, end, frozenset(terms(text[start:end]))) for start, end in _paragraphs(text)
    )


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Stretches that no sentence crosses."""
    start = 0
    for gap in _GAP.finditer(text):
        yield start, gap.start()
        start = gap.end()
    yield start, len(text)


def _share(said: frozenset[str], quote: str) -> float:
    return _shared(said, terms(quote))


def _shared(said: frozenset[str], found: Iterable[str]) -> float:
    return len(said.intersection(found)) / len(said) if said else 0.0


def citation_of(selected: Selected, evidence: Evidence, session_uuid: str) -> Citation:
    """That something rests on what was selected, at one of its places. A point that was drawn from
    something else than a report is cited as a summary."""
    item = selected.item
    through_report = evidence.via and evidence.via[0].startswith(f"{v.URN}report:")
    is_summary = item.kind == "point" and not through_report
    return Citation(
        kind="summary" if is_summary else CITED_AS[item.kind],
        edge=item.iri if isinstance(item, Edge) else None,
        item=item.iri,
        edge_selection=v.selected_iri(session_uuid, item.kind, selected.index),
        evidence=evidence.iri,
        chunk=evidence.chunk,
        document=evidence.document,
        title=evidence.title,
        path=evidence.path,
        page=evidence.page,
        start=evidence.start,
        end=evidence.end,
        quote=evidence.quote,
        via=evidence.via,
    )
