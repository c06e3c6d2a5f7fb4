"""Citations: from a drafted sentence to the exact characters supporting the sentence.

A model cites an item as a whole. Where the item rests on many places (a report, a description)
or is a long stretch of text (a chunk), the sentence is traced to the places, and the sentences
within them, that share most of its words: readers need not check every source of the item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.ingest.sentences import sentences
from tgraph.model import (
    Citation,
    CitationKind,
    CommunityReport,
    Edge,
    Evidence,
    Selected,
    Sentence,
    kind_at,
)
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context
from tgraph.retrieve.reports import evidence_of_parts, reports_of
from tgraph.retrieve.text.lexical import term_set, terms
from tgraph.retrieve.text.page_sentences import page_sentences, read_place_text, with_whole_marks

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
    """Return the draft with supporting evidence added for each cited report.

    The evidence is that of the findings sharing most words with the draft, or else of the
    report as a whole."""
    draft_terms = term_set(draft.text)
    selections = tuple(
        _with_grounds(selected, draft_terms, context) for selected in draft.selections
    )
    return replace(draft, selections=selections)


def _with_grounds(selected: Selected, said: frozenset[str], context: Context) -> Selected:
    candidate = selected.candidate
    if candidate.item.kind != "report" or candidate.evidence:
        return selected
    parts = _find_carrying_parts(said, reports_of(context).by_iri[candidate.item.iri])
    places = evidence_of_parts(parts, context)
    evidence = tuple(place for part in parts for place in places.get(part, ()))
    return replace(selected, candidate=replace(candidate, evidence=evidence))


def _find_carrying_parts(said: frozenset[str], report: CommunityReport) -> list[str]:
    """Return IRIs of findings sharing most words with the sentence; the report IRI if no
    finding shares enough.

    Of two findings with equal shares, the shorter comes first."""
    finding_terms = [
        term_set(f"{finding.summary}\n{finding.explanation}") for finding in report.findings
    ]
    shares = [len(said & words) / (len(said) or 1) for words in finding_terms]
    best = max(shares, default=0.0)
    if best < ENOUGH:
        return [report.iri]
    near = [place for place, share in enumerate(shares) if share >= NEAR * best]
    near.sort(key=lambda place: (-shares[place], len(finding_terms[place]), place))
    return [report.findings[place].iri for place in near[:MOST_PLACES]]


def cite_places(draft: Draft, session_uuid: str) -> Sentence:
    """Return a sentence citing each evidence place behind the draft's selections."""
    citations: dict[tuple[object, ...], Citation] = {}
    for selected in draft.selections:
        for evidence in _cited_places(draft, selected):
            place = (evidence.document, evidence.page, evidence.start, evidence.end)
            citations.setdefault(
                (selected.index, *place), citation_of(selected, evidence, session_uuid)
            )
    return Sentence(draft.text, tuple(citations.values()), draft.lead, draft.label)


def well_cited(sentence: Sentence, context: Context) -> Sentence:
    """Return the sentence with completed citations.

    Quotes from whole chunks keep their mark-up intact, each citation records the kind of its
    segment, and quoted graph lines are put into words."""
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


def quoting_citations(sentence: Sentence) -> list[Citation]:
    """Return the citations whose quote is the whole sentence."""
    sentence_text = collapse_whitespace(sentence.text)
    return [c for c in sentence.citations if collapse_whitespace(c.quote) == sentence_text]


def _in_words(sentence: Sentence, context: Context) -> str:
    """Return the sentence text; for a quote of graph lines, return the statement in words."""
    readings = (
        read_place_text(cited, context)
        for cited in quoting_citations(sentence)
        if context.texts.is_graph(cited.chunk)
    )
    return next(readings, sentence.text)


def set_apart(sentence: Sentence, before: Sequence[Sentence]) -> Sentence:
    """Return the sentence; a quoted code block keeps its lines and stands in a separate
    paragraph."""
    code = _find_code_quote(sentence)
    if code is None and not (before and _find_code_quote(before[-1]) is not None):
        return sentence
    lead = sentence.lead if "\n" in sentence.lead else "\n\n"
    return replace(sentence, text=sentence.text if code is None else code, lead=lead)


def _find_code_quote(sentence: Sentence) -> str | None:
    """Return the code block quoted by the sentence, or None."""
    quotes = (c.quote for c in quoting_citations(sentence) if c.segment_kind == "code")
    return next(quotes, None)


def _cited_places(draft: Draft, selected: Selected) -> Sequence[Evidence]:
    """Return the evidence named by the draft; otherwise the evidence supporting the text.

    For an edge, all its evidence is returned; for other items, only the places nearest to the
    text."""
    evidence = selected.candidate.evidence
    if draft.evidence:
        return [item for item in evidence if item.iri in draft.evidence]
    if selected.item.kind == "edge":
        return evidence
    draft_terms = frozenset(terms(draft.text))
    return [
        _narrow_to_sentence(draft_terms, item) for item in _nearest_evidence(draft_terms, evidence)
    ]


def _nearest_evidence(said: frozenset[str], evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """Return places sharing most words with the sentence, at most ``MOST_PLACES``, best first."""
    if len(evidence) <= 1:
        return evidence
    size = len(said) or 1
    shares = [(len(said & term_set(e.quote)) / size, place) for place, e in enumerate(evidence)]
    best = max(share for share, _ in shares)
    near = sorted((-share, place) for share, place in shares if share >= NEAR * best)
    return [evidence[place] for _, place in near[:MOST_PLACES]]


def _narrow_to_sentence(said: frozenset[str], evidence: Evidence) -> Evidence:
    """Narrow whole-chunk evidence to the sentence sharing most words, if enough words are
    shared."""
    if evidence.iri != evidence.chunk:
        return evidence
    share, start, end = _best_sentence(said, evidence.quote)
    if share < ENOUGH:
        return evidence
    first, last = evidence.start + start, evidence.start + end
    return replace(evidence, start=first, end=last, quote=evidence.quote[start:end])


def _best_sentence(said: frozenset[str], text: str) -> tuple[float, int, int]:
    """Return share, start and end of the first sentence sharing most words.

    Where no sentence shares ``ENOUGH``, any share below ``ENOUGH`` is returned. No sentence
    shares more than its paragraph, so only paragraphs that may hold the best sentence are cut
    into sentences."""
    paragraphs = sorted(
        (-_term_share(said, paragraph_terms), start, end)
        for start, end, paragraph_terms in _paragraph_terms(text)
    )
    best = (0.0, 0, 0)
    for negative_share, start, end in paragraphs:
        if negative_share > min(best[0], -ENOUGH):
            break
        for first, last in sentences(text[start:end]):
            share = _quote_share(said, text[start + first : start + last])
            best = min(best, (-share, start + first, start + last))
    return -best[0], best[1], best[2]


@lru_cache(maxsize=128)
def _paragraph_terms(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Return start, end and terms of chunk paragraphs; results for recent chunks are cached."""
    return tuple(
        (start, end, frozenset(terms(text[start:end]))) for start, end in _split_paragraphs(text)
    )


def _split_paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Stretches that no sentence crosses."""
    start = 0
    for gap in _GAP.finditer(text):
        yield start, gap.start()
        start = gap.end()
    yield start, len(text)


def _quote_share(said: frozenset[str], quote: str) -> float:
    return _term_share(said, terms(quote))


def _term_share(said: frozenset[str], found: Iterable[str]) -> float:
    return len(said.intersection(found)) / len(said) if said else 0.0


def citation_of(selected: Selected, evidence: Evidence, session_uuid: str) -> Citation:
    """Return a citation of the selected item at one evidence place.

    A point drawn from a source other than a report is cited as a summary."""
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
