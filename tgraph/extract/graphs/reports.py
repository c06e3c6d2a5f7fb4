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
from tgraph.extract.graphs.base import (
    ImportedCommunity,
    ImportedDocument,
    ImportedReport,
    ReportPlace,
)
from tgraph.extract.graphs.mentions import UnitText
from tgraph.extract.graphs.text_units import UnitReadings
from tgraph.model import Document, Page
from tgraph.rendering import flat

_TITLE, _FINDING = "# ", "## "
_HEAD = 4


@dataclass(frozen=True, slots=True)
class RenderedFinding:
    """A finding and where it stands in the text that it was read from."""

    summary: str
    explanation: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """A report as its text has it."""

    title: str
    summary: str
    rating: float
    rating_reason: str
    findings: tuple[RenderedFinding, ...]


def report_text(title: str, report: ImportedReport | None) -> str:
    """The text of a community: of one without a report its title."""
    if report is None:
        return _TITLE + flat(title)
    rating = "" if report.rating is None else repr(float(report.rating))
    head = (_TITLE + flat(report.title or title), *map(flat, (report.summary, rating)))
    findings = (f"{_FINDING}{flat(one)}\n{flat(more)}" for one, more in report.findings)
    return "\n".join((*head, flat(report.rating_reason), *findings))


def read_report(text: str) -> RenderedReport | None:
    """The report that ``report_text`` wrote; None for a community without one."""
    lines = text.split("\n")
    if len(lines) < _HEAD:
        return None
    at = sum(len(line) + 1 for line in lines[:_HEAD])
    findings = []
    for heading, said in zip(lines[_HEAD::2], lines[_HEAD + 1 :: 2], strict=True):
        end = at + len(heading) + 1 + len(said)
        findings.append(RenderedFinding(heading.removeprefix(_FINDING), said, at, end))
        at = end + 1
    rating = float(lines[2]) if lines[2] else 0.0
    title = lines[0].removeprefix(_TITLE)
    return RenderedReport(title, lines[1], rating, lines[3], tuple(findings))


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
