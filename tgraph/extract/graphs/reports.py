"""The reports of a graph of others as a document, and read from it again.

What knowledge rests on is text, so the reports become a document with a chunk for each community,
of fixed lines: title, summary, rating, its reason, and for each finding a heading and what it says.
A finding has its place there, and so have the entities that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from tgraph.extract.graphs.base import (
    ImportedCommunity,
    ImportedDocument,
    ImportedReport,
    Reading,
)
from tgraph.extract.graphs.mentions import Stretch
from tgraph.model import Chunk, Document, ExtractedEntity, Extraction, Page, Span
from tgraph.models.tokens import count_tokens
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


def with_places(
    communities: Sequence[ImportedCommunity], names: Mapping[str, ExtractedEntity], path: str
) -> tuple[tuple[ImportedCommunity, ...], ImportedDocument | None]:
    """The communities, each with its chunk, and the document that these are of; ``names`` are the
    entities by IRI."""
    if not communities:
        return (), None
    texts = [report_text(each.title, each.report) for each in communities]
    content = "\n\n".join(texts)
    data = content.encode("utf-8", "replace")
    digest = sha256(data).hexdigest()
    chunks = list(_chunks(texts, digest))
    placed = tuple(
        replace(one, chunk=chunk.iri) for one, chunk in zip(communities, chunks, strict=True)
    )
    title = "Community reports"
    document = Document(digest, title, "text/markdown", (Page(None, content),))
    readings = [_reading(chunk, one, names) for one, chunk in zip(communities, chunks, strict=True)]
    return placed, ImportedDocument(path, data, document, readings)


def _chunks(texts: Iterable[str], digest: str) -> Iterator[Chunk]:
    at = 0
    for index, text in enumerate(texts):
        end = at + len(text)
        yield Chunk(digest, None, index, at, end, text, count_tokens(text))
        at = end + 2


def _reading(
    chunk: Chunk, community: ImportedCommunity, names: Mapping[str, ExtractedEntity]
) -> Reading:
    """The entities that a report names, finding by finding; a finding that names none is about the
    first of its community."""
    members = [names[iri] for iri in sorted(community.members) if iri in names]
    report = read_report(chunk.text)
    found: list[ExtractedEntity] = []
    for finding in report.findings if report else ():
        text = chunk.text[finding.start : finding.end]
        span = Span(chunk.start + finding.start, chunk.start + finding.end, text)
        stretch = Stretch(text, 0)
        named = [one for one in members if stretch.naming(one.name)] or members[:1]
        found += [replace(one, span=span, description="") for one in named]
    return Reading(chunk, Extraction(chunk.iri, tuple(found), ()))
