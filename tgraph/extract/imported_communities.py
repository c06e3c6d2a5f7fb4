"""Communities and reports that imported graphs bring, and a report as the text it is kept as."""

from __future__ import annotations

from dataclasses import dataclass

from tgraph.rendering import collapse_whitespace

_TITLE, _FINDING = "# ", "## "
_HEAD = 4


@dataclass(frozen=True, slots=True)
class ImportedReport:
    """A community report from an imported graph."""

    title: str
    summary: str
    rating: float | None = None
    rating_reason: str = ""
    findings: tuple[tuple[str, str], ...] = ()
    """Each a summary and an explanation."""


@dataclass(frozen=True, slots=True)
class ReportPlace:
    """A stretch of an unpaged document, by IRI."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ImportedCommunity:
    """A community supplied by an imported graph.

    ``level`` 0 is the coarsest, ``members`` are entity IRIs, ``parent`` is a ``key``. ``place``
    is where a document of the graph describes the community; ``refers`` lists, for each report
    finding, the IRIs of entities and edges mentioned."""

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
    """A finding positioned in report text."""

    summary: str
    explanation: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """A report parsed from report text."""

    title: str
    summary: str
    rating: float
    rating_reason: str
    findings: tuple[RenderedFinding, ...]


def report_text(title: str, report: ImportedReport | None) -> str:
    """Return a community's text: its report, or only its title without report."""
    if report is None:
        return _TITLE + collapse_whitespace(title)
    rating = "" if report.rating is None else repr(float(report.rating))
    head = (
        _TITLE + collapse_whitespace(report.title or title),
        *map(collapse_whitespace, (report.summary, rating)),
    )
    findings = (
        f"{_FINDING}{collapse_whitespace(summary)}\n{collapse_whitespace(explanation)}"
        for summary, explanation in report.findings
    )
    return "\n".join((*head, collapse_whitespace(report.rating_reason), *findings))


def read_report(text: str) -> RenderedReport | None:
    """Return the report written by ``report_text``; None for a community without report."""
    lines = text.split("\n")
    if len(lines) < _HEAD:
        return None
    at = sum(len(line) + 1 for line in lines[:_HEAD])
    findings = []
    for heading, finding in zip(lines[_HEAD::2], lines[_HEAD + 1 :: 2], strict=True):
        end = at + len(heading) + 1 + len(finding)
        findings.append(RenderedFinding(heading.removeprefix(_FINDING), finding, at, end))
        at = end + 1
    rating = float(lines[2]) if lines[2] else 0.0
    title = lines[0].removeprefix(_TITLE)
    return RenderedReport(title, lines[1], rating, lines[3], tuple(findings))
