"""Community reports without a model: the sources' own sentences, arranged.

Nothing is generated: the title names the central entities, the summary and the findings quote the
sentences that say most about them, and every finding rests on exactly the evidence that it quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log2

from tgraph.index.reports.context import EdgeDetail, EntityDetail, ReportContext
from tgraph.index.reports.report import DraftFinding, ReportDraft
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, Evidence, Prompt
from tgraph.models.base import CallSink, no_sink
from tgraph.version import __version__
from tgraph.vocabulary import digest_parts

IN_TITLE = 3
IN_SUMMARY = 3
IN_FINDING = 3
FINDINGS = 6
SUMMARY_CHARACTERS = 600
LONGEST = 400
"""Characters of a quote that is taken for one sentence."""

_WHOLE = re.compile(r"""["'“‘«(\[*_]*[^\Wa-z_].*[.!?…。！？]["'”’»)\]*_]*""", re.DOTALL)
_ROW = re.compile(r"[^.!?;:]{1,60}: [^;]*; [^:;]{1,60}: ")
_LEANS = re.compile(
    r"(?:He|She|It|They|We|His|Her|Its|Their|This|That|These|Those|There|Here|Another|Both|The"
    r" (?:former|latter|two|other)|With (?:him|her|them|it)|Of (?:these|them|those))\b"
)
_JOINS = re.compile(r"(?:But|And|So|Then|Or|Yet|Thus|However|Therefore|Also)\b")
_POINTS = re.compile(r"\b(?:he|she|it|they|him|her|them|there)\b")
_COPULAS = frozenset({"be", "is", "was", "are", "were", "be a", "is a", "was a"})
_DEFINES = 0.4
_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯]")

_ExtractPlace = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _SourceSentence:
    """A source sentence with its stated edges, evidence and mentioned entities."""

    text: str
    place: _ExtractPlace
    edges: tuple[str, ...]
    evidence: tuple[str, ...]
    entities: frozenset[str]
    topic: str
    score: float

    def stands_for(self, entity: EntityDetail) -> bool:
        """Return whether the sentence, read alone, clearly concerns the entity."""
        if _ROW.match(self.text):
            return self.topic == entity.iri
        if not _is_prose(self.text):
            return False
        return _is_in(entity.name, self.text) or not _LEANS.match(self.text)


class ExtractiveWriter:
    """A ``ReportWriter`` composing reports from quotes."""

    agent = Agent("method", "extractive-reports", __version__)
    prompts: tuple[Prompt, ...] = ()
    overhead = 0

    @property
    def key(self) -> str:
        return digest_parts(self.agent.iri)

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """Return a report as in ``ReportWriter.write``, never failing and without model calls."""
        source_sentences = _rank_sentences(context)
        below = " ".join(sub.report.summary for sub in context.reports)
        source_sentences = [sentence for sentence in source_sentences if sentence.text not in below]
        summary = _select_summary(source_sentences, context)
        own_findings = _select_findings(
            source_sentences, context.entities, {s.place for s in summary}
        )
        subs = ((f"S{n}", sub.report) for n, sub in enumerate(context.reports, 1))
        findings = [DraftFinding(report.title, report.summary, (n,)) for n, report in subs]
        findings += islice(own_findings, FINDINGS)
        if not findings:
            findings = list(
                islice(_select_findings(source_sentences, context.entities, set()), FINDINGS)
            )
        if not findings:
            findings = list(islice(_bare_findings(context), FINDINGS))
        summary_texts = [s.text for s in summary] or [f.explanation for f in findings[:1]]
        rating, why = _rate_community(context, source_sentences)
        return ReportDraft(
            _compose_title(context),
            _join_texts(summary_texts) or _compose_title(context),
            rating,
            why,
            tuple(findings),
        )


@dataclass(slots=True)
class _Quoted:
    text: str
    edges: dict[str, EdgeDetail]
    evidence: dict[str, Evidence]


def _rank_sentences(context: ReportContext) -> list[_SourceSentence]:
    """Return distinct sentences behind the edges, best first."""
    quoted: dict[_ExtractPlace, _Quoted] = {}
    for n, detail in enumerate(context.edges, 1):
        for item in detail.evidence:
            for text, place in _quote_sentences(item, detail):
                stored_quote = quoted.setdefault(place, _Quoted(text, {}, {}))
                stored_quote.edges[f"R{n}"] = detail
                stored_quote.evidence[item.iri] = item
    max_links = max((entity.links for entity in context.entities), default=1) or 1
    weights = {entity.iri: entity.links / max_links for entity in context.entities}
    names = {entity.iri: entity.name for entity in context.entities}
    sentence_by_text: dict[str, _SourceSentence] = {}
    for place, quote_entry in sorted(quoted.items(), key=lambda pair: pair[0]):
        entities = frozenset(e for d in quote_entry.edges.values() for e in d.ends if e in weights)
        strength = max(e.strength for e in quote_entry.evidence.values())
        score = _score_sentence(
            quote_entry.text, [(names[e], weights[e]) for e in sorted(entities)], strength
        )
        edges = [detail.edge for detail in quote_entry.edges.values()]
        defined = [
            weights.get(e.subject.value, 0.0) for e in edges if e.predicate_label in _COPULAS
        ]
        score += _DEFINES * max(defined, default=0.0)
        statement_fields = (
            tuple(quote_entry.edges),
            tuple(quote_entry.evidence),
            entities,
            edges[0].subject.value,
        )
        sentence = _SourceSentence(quote_entry.text, place, *statement_fields, round(score, 6))
        sentence_by_text.setdefault(quote_entry.text, sentence)
    return sorted(sentence_by_text.values(), key=lambda s: (-s.score, s.place))


def _quote_sentences(evidence: Evidence, detail: EdgeDetail) -> Iterator[tuple[str, _ExtractPlace]]:
    """Yield the quote, or, for a long quote, the sentence naming most of the edge's ends."""
    page = f"{evidence.document} {evidence.page or 0:09}"
    if len(evidence.quote) <= LONGEST:
        yield _join_texts([evidence.quote]), (page, evidence.start, evidence.end)
        return
    labels = {detail.edge.subject_label, detail.edge.object_label}
    best, best_count = None, 0
    for start, end in sentences(evidence.quote):
        label_count = sum(
            label.casefold() in evidence.quote[start:end].casefold() for label in labels
        )
        if label_count > best_count and end - start <= LONGEST:
            best, best_count = (start, end), label_count
    if best is not None:
        start, end = best
        place = (page, evidence.start + start, evidence.start + end)
        yield _join_texts([evidence.quote[start:end]]), place


def _score_sentence(text: str, named: Sequence[tuple[str, float]], strength: float) -> float:
    """Return how well a sentence, read alone, represents its community."""
    weights = sorted((weight for _, weight in named), reverse=True)[:3]
    score = sum(weights) + strength / 20
    score += 0.3 * sum(weight for name, weight in named if _is_in(name, text))
    score -= 0.5 * bool(_LEANS.match(text)) + 0.2 * bool(_JOINS.match(text))
    score -= 0.3 * (len(text) < 30) + 0.3 * (len(text) > 280) + 0.2 * bool(_POINTS.search(text))
    return score - 2.0 * (not _is_prose(text))


def _is_in(name: str, text: str) -> bool:
    words = name.casefold().split()
    return bool(words) and words[-1] in text.casefold()


def _is_prose(text: str) -> bool:
    """Return whether the text is a complete sentence, excluding headings and table rows."""
    return bool(_WHOLE.fullmatch(text)) and not _ROW.match(text)


def _join_texts(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())


def _compose_title(context: ReportContext) -> str:
    names = [entity.name for entity in context.entities[:IN_TITLE]]
    if len(names) > 1 and not _CJK.search("".join(names)):
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return "、".join(names)


def _select_summary(
    found: Sequence[_SourceSentence], context: ReportContext
) -> list[_SourceSentence]:
    """Return at most three sentences, each covering new entities."""
    weights = {entity.iri: entity.links for entity in context.entities}
    chosen: list[_SourceSentence] = []
    covered_entities: set[str] = set()
    for _ in range(IN_SUMMARY):
        room = SUMMARY_CHARACTERS - sum(len(s.text) for s in chosen)
        remaining_sentences = [
            s for s in found if s not in chosen and (len(s.text) <= room or not chosen)
        ]
        prose = [s for s in remaining_sentences if _is_prose(s.text) and not _LEANS.match(s.text)]
        best = max(
            prose or remaining_sentences,
            key=lambda s: _novelty_score(s, covered_entities, weights),
            default=None,
        )
        if best is None or (
            chosen and not (prose and _novelty_score(best, covered_entities, weights))
        ):
            break
        chosen.append(best)
        covered_entities |= best.entities
    return _in_order(chosen)


def _novelty_score(sentence: _SourceSentence, told: set[str], weights: dict[str, int]) -> float:
    fresh = sum(weights[e] for e in sentence.entities - told)
    of_all = sum(weights[e] for e in sentence.entities) or 1
    return round(max(0.0, sentence.score) * fresh / of_all, 6)


def _select_findings(
    found: Sequence[_SourceSentence], entities: Sequence[EntityDetail], used: set[_ExtractPlace]
) -> Iterator[DraftFinding]:
    """Yield findings from the best unused sentences, grouped by central entity."""
    used = set(used)
    names = {entity.iri: entity.name for entity in entities}
    for entity in entities:
        entity_sentences = [
            s
            for s in found
            if entity.iri in s.entities and s.place not in used and s.stands_for(entity)
        ]
        prose = [s for s in entity_sentences if _is_prose(s.text)]
        naming_sentences = [s for s in prose if _is_in(entity.name, s.text)]
        chosen = _in_order((naming_sentences or prose)[:IN_FINDING] or entity_sentences[:1])
        if not chosen:
            continue
        used |= {s.place for s in chosen}
        yield DraftFinding(
            _compose_heading(entity.iri, chosen, names),
            _join_texts(s.text for s in chosen),
            tuple(dict.fromkeys(i for s in chosen for i in s.edges)),
            tuple(dict.fromkeys(e for s in chosen for e in s.evidence)),
        )


def _compose_heading(entity: str, chosen: Sequence[_SourceSentence], names: dict[str, str]) -> str:
    other_entities = dict.fromkeys(
        iri
        for sentence in chosen
        for iri in names  # in the order of importance
        if iri in sentence.entities and iri != entity
    )
    with_whom = ", ".join(names[iri] for iri in list(other_entities)[:2])
    return f"{names[entity]}: {with_whom}" if with_whom else names[entity]


def _bare_findings(context: ReportContext) -> Iterator[DraftFinding]:
    """Yield findings from plain edges, or entities, where nothing can be quoted."""
    for n, detail in enumerate(context.edges, 1):
        description = " ".join(detail.edge.labels)
        yield DraftFinding(description, detail.edge.description or f"{description}.", (f"R{n}",))
    if not context.edges:
        for n, entity in enumerate(context.entities, 1):
            description = " ".join(entity.descriptions) or f"{entity.name} ({entity.type})."
            yield DraftFinding(entity.name, description, (f"E{n}",))


def _in_order(chosen: Sequence[_SourceSentence]) -> list[_SourceSentence]:
    """Return sentences in text order; the best sentence's document comes first."""
    first = {s.place[0]: n for n, s in reversed(list(enumerate(chosen)))}
    return sorted(chosen, key=lambda s: (first[s.place[0]], s.place))


def _rate_community(context: ReportContext, found: Sequence[_SourceSentence]) -> tuple[float, str]:
    """Return a rating, rising with the edge count, plus an explanation.

    Ratings: 1 for one edge, 3.5 for ten, 6.7 for 100, 10 for 1,000."""
    members, ties = len(context.community.members), context.relationships
    documents = {sentence.place[0].partition(" ")[0] for sentence in found}
    why = (
        f"Rated by how much belongs together: {_format_count(members, 'entity', 'entities')} and"
        f" {_format_count(ties, 'relationship', 'relationships')} between them, told here in"
        f" {_format_count(len(found), 'sentence', 'sentences')} of"
        f" {_format_count(len(documents), 'document', 'documents')}"
    )
    if context.reports:
        why += f" and the reports of {_format_count(len(context.reports), 'part', 'parts')}"
    return round(min(10.0, log2(1 + ties)), 1), f"{why}."


def _format_count(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
