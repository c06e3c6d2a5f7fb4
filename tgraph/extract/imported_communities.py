"""Communities and reports that imported graphs bring, and a report as the text it is kept as."""

from __future__ import annotations

from dataclasses import dataclass

from tgraph.rendering import flat

_TITLE, _FINDING = "# ", "## "
_HEAD = 4


@dataclass(frozen=True, slots=True)
class ImportedReport:
    """A community's report as the graph has it."""

    title: str
    summary: str
    rating: float | None = None
    rating_reason: str = ""
    findings: tuple[tuple[str, str], ...] = ()
    """Each a summary and an explanation."""


@dataclass(frozen=True, slots=True)
class ReportPlace:
    """A stretch of a document without pages, by its IRI."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ImportedCommunity:
    """A community of a graph that brings its own; ``level`` 0 is the coarsest, ``members`` are
    entities by IRI, ``parent`` a ``key``. ``place`` is where a document of the graph tells of it;
    ``refers`` are the entities and edges that each finding of the report speaks of, by IRI."""

    key: str
    level: int
    members: frozenset[str]
    parent: str | None = None
    report: ImportedReport | None = None
    title: str = ""
    place: ReportPlace | None = None
    refers: tuple[tuple[str, ...], ...] = ()


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
