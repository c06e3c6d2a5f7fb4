"""The reports of a graph of others as a document, and read from it again.

A report is kept as text, so the reports become a document with a stretch for each community, of
fixed lines: title, summary, rating, its reason, and for each finding a heading and what it says.
Nothing is stated there, for a report is no source: its findings rest on the evidence of what they
speak of.
"""

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
    """What a report refers to by number: entities by name, relationships by their ends."""

    entities: frozenset[str] = frozenset()
    relationships: frozenset[tuple[str, str]] = frozenset()


class ReportDocument:
    """The document of the reports of a graph; ``path`` is what it is taken in under."""

    def __init__(
        self,
        path: str,
        communities: Sequence[ImportedCommunity],
        readings: UnitReadings,
        referred: Callable[[str], Referred] = lambda text: Referred(),
    ) -> None:
        """``readings`` are what the graph states, ``referred`` tells what a text refers to."""
        self._names = {v.entity_iri(one.name): one for one in readings.entities.values()}
        self._ties = readings.relationships
        self._referred = referred
        self._path = path
        texts = [report_text(each.title, each.report) for each in communities]
        self._content = _BETWEEN.join(texts).encode("utf-8", "replace")
        self._digest = sha256(self._content).hexdigest()
        self.communities = tuple(self._placed(communities, texts))
        """The communities, each with its place and with what its findings refer to."""

    def imported(self) -> ImportedDocument | None:
        """The document, in which nothing is stated; None where there are no communities."""
        if not self.communities:
            return None
        page = Page(None, self._content.decode())
        document = Document(self._digest, "Community reports", "text/markdown", (page,))
        return ImportedDocument(self._path, self._content, document, ())

    def _placed(
        self, communities: Iterable[ImportedCommunity], texts: Iterable[str]
    ) -> Iterator[ImportedCommunity]:
        at, document = 0, v.document_iri(self._digest)
        for community, text in zip(communities, texts, strict=True):
            report, end = read_report(text), at + len(text)
            found = [text[one.start : one.end] for one in report.findings] if report else []
            refers = tuple(self._refers(community, finding) for finding in found)
            yield replace(community, place=ReportPlace(document, at, end), refers=refers)
            at = end + len(_BETWEEN)

    def _refers(self, community: ImportedCommunity, finding: str) -> tuple[str, ...]:
        """What a finding speaks of: the members that it names, the relationships between these,
        and what it refers to by number; else the first member."""
        said, stretch = self._referred(finding), UnitText(finding, 0)
        members = [self._names[iri] for iri in sorted(community.members) if iri in self._names]
        named = {m.name for m in members if m.name in said.entities or stretch.naming(m.name)}
        found = {v.entity_iri(name): 0 for name in sorted(named)}
        for tie in (tie for member in members for tie in self._ties.get(member.name, ())):
            ends = str(tie.subject), str(tie.object)
            if named.issuperset(ends) or ends in said.relationships:
                found[_edge(*ends, str(tie.predicate))] = 0
        return tuple(found) or tuple(sorted(community.members)[:1])


_BETWEEN = "\n\n"


def _edge(subject: str, other: str, relation: str) -> str:
    ends = (NamedNode(v.entity_iri(name)) for name in (subject, other))
    return v.edge_iri(next(ends), NamedNode(v.relation_iri(relation)), next(ends))
