"""Reports as a model reads them: a JSON object to a line, every finding under an id of its own."""

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
from tgraph.retrieve.reports import reports_of

_LINE = 1  # token: the end of a line


@dataclass(frozen=True, slots=True)
class Rows:
    """The reports as lines, and what each id in them stands for."""

    text: str
    by_id: Mapping[str, str]


def single_rows(context: Context) -> BoundedCache[tuple[str, int], Rows]:
    """Reports by themselves, by IRI and number of findings, as far as they have been written."""
    return context.remembered("rows of reports", 20_000)


def rows(
    reports: Sequence[tuple[CommunityReport, int]], known: BoundedCache[tuple[str, int], Rows]
) -> Rows:
    """The reports, each with so many of its findings; what is ``known`` is not written anew.

    Ids are unique among them and depend on nothing but the IRIs.
    """
    own = [known.get((r.iri, count), partial(_row, r, count)) for r, count in reports]
    by_id = {identity: iri for row in own for identity, iri in row.by_id.items()}
    if len(by_id) == sum(len(row.by_id) for row in own):
        return Rows("\n".join(row.text for row in own), by_id)
    ids = ids_of([i for report, count in reports for i in _iris(report, count)])
    lines = [_line(report, count, ids) for report, count in reports]
    return Rows("\n".join(lines), {identity: iri for iri, identity in ids.items()})


def _row(report: CommunityReport, count: int) -> Rows:
    """The report by itself: as it stands among others whose ids begin in other ways."""
    ids = ids_of(_iris(report, count))
    return Rows(_line(report, count, ids), {identity: iri for iri, identity in ids.items()})


def _iris(report: CommunityReport, count: int) -> list[str]:
    return [report.iri, *(finding.iri for finding in report.findings[:count])]


def _line(report: CommunityReport, count: int, ids: Mapping[str, str]) -> str:
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
    """The line of one report by itself."""
    return _row(report, count).text


# --- batches ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FittedReport:
    """How many findings of a report a prompt has room for, and the tokens of its line then."""

    findings: int
    tokens: int


def whole_cost(report: CommunityReport, encoding: str) -> int:
    """The tokens of a report's line with all its findings."""
    return _cost(report, len(report.findings), encoding)


def _cost(report: CommunityReport, findings: int, encoding: str) -> int:
    from tgraph.models.tokens import count_tokens

    return count_tokens(line_of(report, findings), encoding) + _LINE


def whole_costs(encoding: str, context: Context) -> BoundedCache[str, int]:
    """What whole reports cost in that encoding, by IRI, as far as it has been counted."""
    found: BoundedCache[str, int] = context.remembered(f"tokens of reports in {encoding}", 100_000)
    known = reports_of(context).tokens(encoding)
    found.get_all(known, lambda missing: {iri: known[iri] for iri in missing})
    return found


def fits_of(
    reports: Sequence[CommunityReport], room: int, encoding: str, known: BoundedCache[str, int]
) -> dict[str, FittedReport | None]:
    """For each report, by IRI, how much of it a prompt with that room shows.

    What whole reports cost is counted where it is not ``known`` in that encoding.
    """
    by_iri = {report.iri: report for report in reports}

    def whole(missing: Sequence[str]) -> dict[str, int]:
        return {iri: whole_cost(by_iri[iri], encoding) for iri in missing}

    return {
        iri: FittedReport(len(by_iri[iri].findings), cost)
        if cost <= room
        else _fit(by_iri[iri], room, encoding)
        for iri, cost in known.get_all(by_iri, whole).items()
    }


def _fit(report: CommunityReport, room: int, encoding: str) -> FittedReport | None:
    """As many of the first findings as fit; None where not even the summary does."""
    low, high, best = 0, len(report.findings), None
    while low <= high:
        middle = (low + high) // 2
        cost = _cost(report, middle, encoding)
        if cost <= room:
            best, low = FittedReport(middle, cost), middle + 1
        else:
            high = middle - 1
    return best


def batched(
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
    left = -1
    for candidate in order:
        fitting = fits[candidate.item.iri]
        if fitting is None:
            continue
        if fitting.tokens > left:
            groups.append([])
            left = room
        left -= fitting.tokens
        groups[-1].append(candidate)
    for group in groups:
        group.sort(key=lambda c: (-c.score, -reports[c.item.iri].rating, c.item.iri))
    *batches, over = _ranked([*groups, [c for c in order if fits[c.item.iri] is None]], fits)
    short = sum(len(reports[iri].findings) - f.findings for iri, f in fits.items() if f)
    return Batches(
        tuple(_batch(batch, fits) for batch in batches),
        tuple(chain(*batches, over)),
        tuple(Rejected(candidate, "over the token budget") for candidate in over),
        {"finding with no room in a batch": short} if short else {},
    )


def _batch(candidates: Sequence[Candidate], fits: Mapping[str, FittedReport | None]) -> Batch:
    found = [fitting for c in candidates if (fitting := fits[c.item.iri])]
    return Batch(tuple(candidates), tuple(f.findings for f in found), sum(f.tokens for f in found))


def _ranked(
    groups: Sequence[Sequence[Candidate]], fits: Mapping[str, FittedReport | None]
) -> list[list[Candidate]]:
    """The candidates with their ranks and costs, one group after the other."""
    rank = 0
    found = []
    for group in groups:
        found.append([_placed(c, rank + n, fits[c.item.iri]) for n, c in enumerate(group, 1)])
        rank += len(group)
    return found


def _placed(candidate: Candidate, rank: int, fitting: FittedReport | None) -> Candidate:
    c = candidate
    cost = fitting.tokens if fitting else c.tokens
    return Candidate(c.item, rank, c.score, c.hop, c.evidence, c.reasons, cost)  # many: no replace
