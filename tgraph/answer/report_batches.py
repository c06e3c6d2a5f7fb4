"""Reports as read by a model: one JSON object per line, with a separate id for every finding."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random

from tgraph.answer.map_reduce import Batch, Batches
from tgraph.answer.rows import ids_of
from tgraph.model import Candidate, CommunityReport, Rejected
from tgraph.retrieve.base import BoundedCache, Context
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.reports import reports_of

_LINE = 1  # token: the end of a line


@dataclass(frozen=True, slots=True)
class ReportLines:
    """Report lines, and the IRI behind each id."""

    text: str
    by_id: Mapping[str, str]


def single_rows(context: Context) -> BoundedCache[tuple[str, int], ReportLines]:
    """Return the cache of single report rows, keyed by IRI and number of findings."""
    return context.open_cache("rows of reports", 20_000)


def format_rows(
    reports: Sequence[tuple[CommunityReport, int]],
    known: BoundedCache[tuple[str, int], ReportLines],
) -> ReportLines:
    """Return report rows, each with the given number of findings; ``known`` rows are reused.

    Ids are unique among the reports and depend on nothing but the IRIs."""
    report_rows = [
        known.load_item((r.iri, count), partial(_format_report, r, count)) for r, count in reports
    ]
    by_id = {identity: iri for row in report_rows for identity, iri in row.by_id.items()}
    if len(by_id) == sum(len(row.by_id) for row in report_rows):
        return ReportLines("\n".join(row.text for row in report_rows), by_id)
    ids = ids_of([i for report, count in reports for i in _report_iris(report, count)])
    lines = [_format_line(report, count, ids) for report, count in reports]
    return ReportLines("\n".join(lines), {identity: iri for iri, identity in ids.items()})


def _format_report(report: CommunityReport, count: int) -> ReportLines:
    """Return a single report's row, as formatted among reports with different id prefixes."""
    ids = ids_of(_report_iris(report, count))
    return ReportLines(
        _format_line(report, count, ids), {identity: iri for iri, identity in ids.items()}
    )


def _report_iris(report: CommunityReport, count: int) -> list[str]:
    return [report.iri, *(finding.iri for finding in report.findings[:count])]


def _format_line(report: CommunityReport, count: int, ids: Mapping[str, str]) -> str:
    row = {
        "id": ids[report.iri],
        "report": report.title,
        "rating": report.rating,
        "summary": report.summary,
        "findings": [
            {"id": ids[f.iri], "finding": f"{f.summary}\n{f.explanation}".strip()}
            for f in report.findings[:count]
        ],
    }
    return json.dumps(row, ensure_ascii=False)


def line_of(report: CommunityReport, count: int) -> str:
    """Return a single report's line."""
    return _format_report(report, count).text


# --- batches ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FittedReport:
    """The number of findings fitting a prompt, and the resulting line's tokens."""

    findings: int
    tokens: int


def whole_cost(report: CommunityReport, encoding: str) -> int:
    """Return the token count of a report line with all findings."""
    return _line_cost(report, len(report.findings), encoding)


def _line_cost(report: CommunityReport, findings: int, encoding: str) -> int:
    from tgraph.models.tokens import count_tokens

    return count_tokens(line_of(report, findings), encoding) + _LINE


def whole_costs(encoding: str, context: Context) -> BoundedCache[str, int]:
    """Return the cache of whole-report token counts in the encoding, by IRI."""
    costs: BoundedCache[str, int] = context.open_cache(f"tokens of reports in {encoding}", 100_000)
    known_tokens = reports_of(context).tokens(encoding)
    costs.get_all(known_tokens, lambda missing: {iri: known_tokens[iri] for iri in missing})
    return costs


def fits_of(
    reports: Sequence[CommunityReport], room: int, encoding: str, known: BoundedCache[str, int]
) -> dict[str, FittedReport | None]:
    """Return, by IRI, the report portion that a prompt of ``room`` tokens can show.

    Whole-report costs missing in ``known`` are counted in the encoding."""
    by_iri = {report.iri: report for report in reports}

    def compute_whole_costs(missing: Sequence[str]) -> dict[str, int]:
        return {iri: whole_cost(by_iri[iri], encoding) for iri in missing}

    return {
        iri: FittedReport(len(by_iri[iri].findings), cost)
        if cost <= room
        else _fit_findings(by_iri[iri], room, encoding)
        for iri, cost in known.get_all(by_iri, compute_whole_costs).items()
    }


def _fit_findings(report: CommunityReport, room: int, encoding: str) -> FittedReport | None:
    """Fit as many leading findings as possible; None means even the summary exceeds the room."""
    low, high, best = 0, len(report.findings), None
    while low <= high:
        middle = (low + high) // 2
        cost = _line_cost(report, middle, encoding)
        if cost <= room:
            best, low = FittedReport(middle, cost), middle + 1
        else:
            high = middle - 1
    return best


def build_batches(
    candidates: Sequence[Candidate],
    reports: Mapping[str, CommunityReport],
    fits: Mapping[str, FittedReport | None],
    room: int,
    seed: int,
) -> Batches:
    """The reports, shuffled, in batches of at most ``room`` tokens; their ranks are given anew.

    The shuffle (GraphRAG's) spreads what belongs together over the batches; inside a batch the
    reports stand by their score, then by their rating.
    """
    order = sorted(candidates, key=lambda c: c.item.iri)
    Random(seed).shuffle(order)  # noqa: S311 - spreads, guards nothing
    groups: list[list[Candidate]] = []
    remaining_tokens = -1
    for candidate in order:
        fitting = fits[candidate.item.iri]
        if fitting is None:
            continue
        if fitting.tokens > remaining_tokens:
            groups.append([])
            remaining_tokens = room
        remaining_tokens -= fitting.tokens
        groups[-1].append(candidate)
    for group in groups:
        group.sort(key=lambda c: (-c.score, -reports[c.item.iri].rating, c.item.iri))
    *batches, over = _rank_groups([*groups, [c for c in order if fits[c.item.iri] is None]], fits)
    short = sum(len(reports[iri].findings) - f.findings for iri, f in fits.items() if f)
    return Batches(
        tuple(_build_batch(batch, fits) for batch in batches),
        tuple(chain(*batches, over)),
        tuple(Rejected(candidate, explain("budget")) for candidate in over),
        {"finding with no room in a batch": short} if short else {},
    )


def _build_batch(candidates: Sequence[Candidate], fits: Mapping[str, FittedReport | None]) -> Batch:
    fitted_reports = [fitting for c in candidates if (fitting := fits[c.item.iri])]
    return Batch(
        tuple(candidates),
        tuple(f.findings for f in fitted_reports),
        sum(f.tokens for f in fitted_reports),
    )


def _rank_groups(
    groups: Sequence[Sequence[Candidate]], fits: Mapping[str, FittedReport | None]
) -> list[list[Candidate]]:
    """Return candidates with ranks and costs, group after group."""
    rank = 0
    ranked_groups = []
    for group in groups:
        ranked_groups.append(
            [_with_rank(c, rank + n, fits[c.item.iri]) for n, c in enumerate(group, 1)]
        )
        rank += len(group)
    return ranked_groups


def _with_rank(candidate: Candidate, rank: int, fitting: FittedReport | None) -> Candidate:
    c = candidate
    cost = fitting.tokens if fitting else c.tokens
    return Candidate(c.item, rank, c.score, c.hop, c.evidence, c.reasons, cost)  # many: no replace
