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
from tgraph.vocabulary import digest

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

_Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _SourceSentence:
    """A sentence of the sources with what it states: edges and evidence, and who is in it."""

    text: str
    place: _Place
    edges: tuple[str, ...]
    evidence: tuple[str, ...]
    entities: frozenset[str]
    topic: str
    score: float

    def stands_for(self, entity: EntityDetail) -> bool:
        """Whether it can be read by itself as being about the entity."""
        if _ROW.match(self.text):
            return self.topic == entity.iri
        if not _is_prose(self.text):
            return False
        return _is_in(entity.name, self.text) or not _LEANS.match(self.text)


class ExtractiveWriter:
    """A ``ReportWriter`` that quotes."""

    agent = Agent("method", "extractive-reports", __version__)
    prompts: tuple[Prompt, ...] = ()
    overhead = 0

    @property
    def key(self) -> str:
        return digest(self.agent.iri)

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """As ``ReportWriter.write``; it never fails and calls nothing."""
        found = _sentences(context)
        below = " ".join(sub.report.summary for sub in context.reports)
        found = [sentence for sentence in found if sentence.text not in below]
        summary = _summary(found, context)
        own = _findings(found, context.entities, {s.place for s in summary})
        subs = ((f"S{n}", sub.report) for n, sub in enumerate(context.reports, 1))
        findings = [DraftFinding(report.title, report.summary, (n,)) for n, report in subs]
        findings += islice(own, FINDINGS)
        if not findings:
            findings = list(islice(_findings(found, context.entities, set()), FINDINGS))
        if not findings:
            findings = list(islice(_bare_findings(context), FINDINGS))
        told = [s.text for s in summary] or [f.explanation for f in findings[:1]]
        rating, why = _rating(context, found)
        return ReportDraft(
            _title(context), _joined(told) or _title(context), rating, why, tuple(findings)
        )


@dataclass(slots=True)
class _Quoted:
    text: str
    edges: dict[str, EdgeDetail]
    evidence: dict[str, Evidence]


def _sentences(context: ReportContext) -> list[_SourceSentence]:
    """The distinct sentences behind the edges, best first."""
    quoted: dict[_Place, _Quoted] = {}
    for n, detail in enumerate(context.edges, 1):
        for item in detail.evidence:
            for text, place in _quotes(item, detail):
                known = quoted.setdefault(place, _Quoted(text, {}, {}))
                known.edges[f"R{n}"] = detail
                known.evidence[item.iri] = item
    most = max((entity.links for entity in context.entities), default=1) or 1
    weights = {entity.iri: entity.links / most for entity in context.entities}
    names = {entity.iri: entity.name for entity in context.entities}
    found: dict[str, _SourceSentence] = {}
    for place, one in sorted(quoted.items(), key=lambda pair: pair[0]):
        entities = frozenset(e for d in one.edges.values() for e in d.ends if e in weights)
        strength = max(e.strength for e in one.evidence.values())
        score = _score(one.text, [(names[e], weights[e]) for e in sorted(entities)], strength)
        edges = [detail.edge for detail in one.edges.values()]
        defined = [
            weights.get(e.subject.value, 0.0) for e in edges if e.predicate_label in _COPULAS
        ]
        score += _DEFINES * max(defined, default=0.0)
        stated = (tuple(one.edges), tuple(one.evidence), entities, edges[0].subject.value)
        sentence = _SourceSentence(one.text, place, *stated, round(score, 6))
        found.setdefault(one.text, sentence)
    return sorted(found.values(), key=lambda s: (-s.score, s.place))


def _quotes(evidence: Evidence, detail: EdgeDetail) -> Iterator[tuple[str, _Place]]:
    """The quote, or of a long one the sentence that names most of what the edge is about."""
    page = f"{evidence.document} {evidence.page or 0:09}"
    if len(evidence.quote) <= LONGEST:
        yield _joined([evidence.quote]), (page, evidence.start, evidence.end)
        return
    labels = {detail.edge.subject_label, detail.edge.object_label}
    best, most = None, 0
    for start, end in sentences(evidence.quote):
        named = sum(label.casefold() in evidence.quote[start:end].casefold() for label in labels)
        if named > most and end - start <= LONGEST:
            best, most = (start, end), named
    if best is not None:
        start, end = best
        place = (page, evidence.start + start, evidence.start + end)
        yield _joined([evidence.quote[start:end]]), place


def _score(text: str, named: Sequence[tuple[str, float]], strength: float) -> float:
    """How well a sentence stands for its community, read by itself."""
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
    """Whether it is a whole sentence, and neither a heading nor a row of a table."""
    return bool(_WHOLE.fullmatch(text)) and not _ROW.match(text)


def _joined(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())


def _title(context: ReportContext) -> str:
    named = [entity.name for entity in context.entities[:IN_TITLE]]
    if len(named) > 1 and not _CJK.search("".join(named)):
        return f"{', '.join(named[:-1])} and {named[-1]}"
    return "、".join(named)


def _summary(found: Sequence[_SourceSentence], context: ReportContext) -> list[_SourceSentence]:
    """Up to three sentences, each about something that those before it are not about."""
    weights = {entity.iri: entity.links for entity in context.entities}
    chosen: list[_SourceSentence] = []
    told: set[str] = set()
    for _ in range(IN_SUMMARY):
        room = SUMMARY_CHARACTERS - sum(len(s.text) for s in chosen)
        rest = [s for s in found if s not in chosen and (len(s.text) <= room or not chosen)]
        prose = [s for s in rest if _is_prose(s.text) and not _LEANS.match(s.text)]
        best = max(prose or rest, key=lambda s: _news(s, told, weights), default=None)
        if best is None or (chosen and not (prose and _news(best, told, weights))):
            break
        chosen.append(best)
        told |= best.entities
    return _in_order(chosen)


def _news(sentence: _SourceSentence, told: set[str], weights: dict[str, int]) -> float:
    fresh = sum(weights[e] for e in sentence.entities - told)
    of_all = sum(weights[e] for e in sentence.entities) or 1
    return round(max(0.0, sentence.score) * fresh / of_all, 6)


def _findings(
    found: Sequence[_SourceSentence], entities: Sequence[EntityDetail], used: set[_Place]
) -> Iterator[DraftFinding]:
    """The best of the other sentences, by the central entity that they are about."""
    used = set(used)
    names = {entity.iri: entity.name for entity in entities}
    for entity in entities:
        about = [
            s
            for s in found
            if entity.iri in s.entities and s.place not in used and s.stands_for(entity)
        ]
        prose = [s for s in about if _is_prose(s.text)]
        named = [s for s in prose if _is_in(entity.name, s.text)]
        chosen = _in_order((named or prose)[:IN_FINDING] or about[:1])
        if not chosen:
            continue
        used |= {s.place for s in chosen}
        yield DraftFinding(
            _heading(entity.iri, chosen, names),
            _joined(s.text for s in chosen),
            tuple(dict.fromkeys(i for s in chosen for i in s.edges)),
            tuple(dict.fromkeys(e for s in chosen for e in s.evidence)),
        )


def _heading(entity: str, chosen: Sequence[_SourceSentence], names: dict[str, str]) -> str:
    others = dict.fromkeys(
        iri
        for sentence in chosen
        for iri in names  # in the order of importance
        if iri in sentence.entities and iri != entity
    )
    with_whom = ", ".join(names[iri] for iri in list(others)[:2])
    return f"{names[entity]}: {with_whom}" if with_whom else names[entity]


def _bare_findings(context: ReportContext) -> Iterator[DraftFinding]:
    """Where nothing can be quoted, what the edges say by themselves."""
    for n, detail in enumerate(context.edges, 1):
        said = " ".join(detail.edge.labels)
        yield DraftFinding(said, detail.edge.description or f"{said}.", (f"R{n}",))
    if not context.edges:
        for n, entity in enumerate(context.entities, 1):
            said = " ".join(entity.descriptions) or f"{entity.name} ({entity.type})."
            yield DraftFinding(entity.name, said, (f"E{n}",))


def _in_order(chosen: Sequence[_SourceSentence]) -> list[_SourceSentence]:
    """In the order of the text; of several documents, that of the best sentence first."""
    first = {s.place[0]: n for n, s in reversed(list(enumerate(chosen)))}
    return sorted(chosen, key=lambda s: (first[s.place[0]], s.place))


def _rating(context: ReportContext, found: Sequence[_SourceSentence]) -> tuple[float, str]:
    """More for what more edges tie together: 1 for one, 3.5 for ten, 6.7 for 100, 10 for 1,000."""
    members, ties = len(context.community.members), context.relationships
    documents = {sentence.place[0].partition(" ")[0] for sentence in found}
    why = (
        f"Rated by how much belongs together: {_counted(members, 'entity', 'entities')} and"
        f" {_counted(ties, 'relationship', 'relationships')} between them, told here in"
        f" {_counted(len(found), 'sentence', 'sentences')} of"
        f" {_counted(len(documents), 'document', 'documents')}"
    )
    if context.reports:
        why += f" and the reports of {_counted(len(context.reports), 'part', 'parts')}"
    return round(min(10.0, log2(1 + ties)), 1), f"{why}."


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
