"""Community reports of foreign graphs, rendered as a document and read back.

A report is kept as text, so the reports become a document with a stretch for each community, of
fixed lines: title, summary, rating, its reason, and for each finding a heading and its
explanation. Nothing is stated there, for a report is no source: its findings rest on the
evidence of the entities and edges mentioned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.extensions.interchange.graphs.base import ImportedDocument
from tgraph.extensions.interchange.graphs.mentions import UnitText
from tgraph.extensions.interchange.graphs.text_units import UnitReadings
from tgraph.extract.imported_communities import (
    ImportedCommunity,
    ReportPlace,
    read_report,
    report_text,
)
from tgraph.model import Document, Page


@dataclass(frozen=True, slots=True)
class Referred:
    """Numbered references in a report: entities by name, relationships by ends."""

    entities: frozenset[str] = frozenset()
    relationships: frozenset[tuple[str, str]] = frozenset()


class ReportDocument:
    """A document of graph reports; ``path`` is its ingestion path."""

    def __init__(
        self,
        path: str,
        communities: Sequence[ImportedCommunity],
        readings: UnitReadings,
        referred: Callable[[str], Referred] = lambda text: Referred(),
    ) -> None:
        """``readings`` are what the graph states, ``referred`` tells what a text refers to."""
        self._names = {v.entity_iri(entity.name): entity for entity in readings.entities.values()}
        self._ties = readings.relationships
        self._referred = referred
        self._path = path
        texts = [report_text(community.title, community.report) for community in communities]
        self._content = _BETWEEN.join(texts).encode("utf-8", "replace")
        self._digest = sha256(self._content).hexdigest()
        self.communities = tuple(self._place_communities(communities, texts))
        """The communities, each with its place and with what its findings refer to."""

    def build_document(self) -> ImportedDocument | None:
        """Return the document, free of statements; None without communities."""
        if not self.communities:
            return None
        page = Page(None, self._content.decode())
        document = Document(self._digest, "Community reports", "text/markdown", (page,))
        return ImportedDocument(self._path, self._content, document, ())

    def _place_communities(
        self, communities: Iterable[ImportedCommunity], texts: Iterable[str]
    ) -> Iterator[ImportedCommunity]:
        at, document = 0, v.document_iri(self._digest)
        for community, text in zip(communities, texts, strict=True):
            report, end = read_report(text), at + len(text)
            finding_texts = (
                [
                    text[rendered_finding.start : rendered_finding.end]
                    for rendered_finding in report.findings
                ]
                if report
                else []
            )
            refers = tuple(self._find_references(community, finding) for finding in finding_texts)
            yield replace(community, place=ReportPlace(document, at, end), refers=refers)
            at = end + len(_BETWEEN)

    def _find_references(self, community: ImportedCommunity, finding: str) -> tuple[str, ...]:
        """Return references of a finding: members named, relationships between these, and
        references by number; otherwise the leading member."""
        referred, stretch = self._referred(finding), UnitText(finding, 0)
        members = [self._names[iri] for iri in sorted(community.members) if iri in self._names]
        member_names = {
            m.name for m in members if m.name in referred.entities or stretch.naming(m.name)
        }
        references = {v.entity_iri(name): 0 for name in sorted(member_names)}
        for tie in (tie for member in members for tie in self._ties.get(member.name, ())):
            ends = str(tie.subject), str(tie.object)
            if member_names.issuperset(ends) or ends in referred.relationships:
                references[_create_edge_iri(*ends, str(tie.predicate))] = 0
        return tuple(references) or tuple(sorted(community.members)[:1])


_BETWEEN = "\n\n"


def _create_edge_iri(subject: str, other: str, relation: str) -> str:
    ends = (NamedNode(v.entity_iri(name)) for name in (subject, other))
    return v.edge_iri(next(ends), NamedNode(v.relation_iri(relation)), next(ends))
