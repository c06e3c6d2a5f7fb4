"""Report search: community reports at a level by weight, or reports nearest to a text.

Reports and weights follow GraphRAG's global search (3.3.0): each entity is represented by its
deepest community at or above the level; a weight is the number of chunks mentioning the
community's entities, relative to the greatest number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tgraph.model import Candidate, CommunityReport, RankedOrder, Retrieval
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import cost_of
from tgraph.retrieve.orders import (
    MOST_BEYOND,
    CutOff,
    CutOffs,
    Missing,
    RatedReport,
    RecordedSearch,
    cut_order,
    format_ordinal,
    list_hit_iris,
)
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.reports import Reports, evidence_of_parts, item_of, reports_at_hand, reports_of


class ReportSearch:
    """The mode ``global``."""

    step = "ReportSearch"
    matches_entities = False

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """The reports at ``global_search.community_level``, whatever is asked."""

        def at_level() -> Retrieval:
            level, reports = context.settings.global_search.community_level, reports_of(context)
            untold = {"community without a report": reports.untold(level)}
            return weigh_reports(reports.at_level(level), context, untold)

        return context.read_once("reports at the level", at_level)


def weigh_reports(
    chosen: Sequence[CommunityReport], context: Context, dropped: dict[str, int] | None = None
) -> Retrieval:
    """Return reports as candidates, sorted by weight, then rating; ``dropped`` counts
    omissions.

    Reports rated below ``global_search.min_rating`` are omitted."""
    reports, least = reports_of(context), context.settings.global_search.min_rating
    rated_reports = [report for report in chosen if report.rating >= least]
    counts = {report.iri: reports.occurrences(report) for report in rated_reports}
    max_count = max(counts.values(), default=0) or 1
    rated_reports.sort(key=lambda r: (-counts[r.iri], -r.rating, r.iri))
    candidates = tuple(
        Candidate(
            item_of(report),
            rank,
            round(counts[report.iri] / max_count, 6),
            reasons=(
                explain("report-frequency", count=counts[report.iri]),
                explain("report-rating", rating=report.rating),
            ),
        )
        for rank, report in enumerate(rated_reports, 1)
    )
    left_out = Counter(
        {**(dropped or {}), "report rated too low": len(chosen) - len(rated_reports)}
    )
    return Retrieval(candidates, total=0, items=len(candidates), dropped=dict(+left_out))


# --- reports by meaning ---


@dataclass(frozen=True, slots=True)
class NearReport:
    """A report candidate; evidence of findings precedes the report's own evidence."""

    candidate: Candidate
    report: CommunityReport


def nearest_reports(
    context: Context, text: str, k: int, level: int
) -> tuple[list[NearReport], tuple[RankedOrder, ...]]:
    """Return at most ``k`` reports of ``level``, nearest first, and the orders cut off by the
    limit; nothing for graphs without reports."""
    reports = reports_at_hand(context)
    if reports is None:
        return [], ()
    allowed, vectors = reports.iris_at_level(level), context.vectors["report"]
    compared = vectors.search(context.embed([text]), k, allowed, beyond=MOST_BEYOND)[0]
    why = "{item} is {place} reports by similarity to a hypothetical answer, and the first"
    reason = f"{why} {k} reports were read (k)"
    orders = cut_order("primer", "k", k, list_hit_iris(compared), reason, total=len(allowed))
    hits = compared[:k]
    parts = [part for iri, _ in hits for part in parts_of(reports.by_iri[iri])]
    grounds = evidence_of_parts(parts, context)
    near_reports = []
    for rank, (iri, score) in enumerate(hits, 1):
        report, item = reports.by_iri[iri], item_of(reports.by_iri[iri])
        candidate = Candidate(
            item,
            rank,
            min(1.0, max(0.0, score)),
            evidence=tuple(place for part in parts_of(report) for place in grounds.get(part, ())),
            reasons=(explain("report-similarity", score=score),),
            tokens=cost_of(item),
        )
        near_reports.append(NearReport(candidate, report))
    return near_reports, orders


def parts_of(report: CommunityReport) -> list[str]:
    """Return the IRIs of the report's findings, followed by the report's IRI."""
    return [*(finding.iri for finding in report.findings), report.iri]


# --- cut-offs ---


_BEST = 5


def reports_left_out(missing: Missing, search: RecordedSearch, context: Context) -> CutOffs:
    """Yield orders of reports mentioning the missing content: by level or question rating, then
    by report rating."""
    reports = reports_at_hand(context)
    known_reports = reports.by_iri.values() if reports else ()
    telling = sorted(
        (r for r in known_reports if missing.tells(r.iri)), key=lambda r: (r.level, r.iri)
    )
    if reports is None or not telling:
        return
    if search.ratings:
        yield from _descent_cutoffs(telling, reports, search, context)
    else:
        yield from _level_cutoffs(telling, reports, context)
    best, least = max(r.rating for r in telling), context.settings.global_search.min_rating
    if best < least:
        why = f"the reports about it have a rating of {best:g} at most, and reports rated below"
        yield CutOff("min-rating", least, None, f"{why} {least:g} were left out (min-rating)")


def _level_cutoffs(
    telling: Sequence[CommunityReport], reports: Reports, context: Context
) -> CutOffs:
    """Yield the level cut-off: each entity's deepest report down to a level is read."""
    level = context.settings.global_search.community_level
    read = set(reports.iris_at_level(level))
    levels = {report.iri: report.level for report in telling}
    if not read.isdisjoint(levels):
        return
    above = [at for at in levels.values() if at <= level]
    if above:
        why = f"only reports at higher levels are about it, the lowest at level {max(above)};"
        why = f"{why} reports on parts of these communities were read instead,"
        why = f"{why} down to level {level} (community-level)"
        yield CutOff("community-level", level, max(above), why)
    elif levels:
        first = min(levels.values())
        why = f"only reports below level {level} are about it, the first at level {first}"
        yield CutOff("community-level", level, first, f"{why} (community-level)")


def _descent_cutoffs(
    telling: Sequence[CommunityReport], reports: Reports, search: RecordedSearch, context: Context
) -> CutOffs:
    """Yield the cut-offs explaining why the descent missed the first unrated report mentioning
    the content.

    If all such reports were rated relevant, explain that reports on their parts replaced these
    reports."""
    unrated = [report for report in telling if report.iri not in search.ratings]
    for report in unrated:
        yield from _ancestor_cutoffs(report, reports, search.ratings, context)
    if unrated:
        yield _in_line(unrated[0], reports, search, context)
    elif all(report.iri not in search.candidates for report in telling):
        why = "relevant reports on parts of the communities replaced the reports about it"
        yield CutOff("dynamic-keep-parent", None, None, f"{why} (dynamic-keep-parent)")


def _ancestor_cutoffs(
    report: CommunityReport, reports: Reports, rated: Mapping[str, RatedReport], context: Context
) -> CutOffs:
    """Yield the level limit, or the higher-level report ending the descent."""
    search_settings = context.settings.global_search
    level, deepest = report.level, search_settings.dynamic_max_level
    if level > deepest:
        why = f"the report about it is at level {level}, and reports were rated down"
        reason = f"{why} to level {deepest} (dynamic-max-level)"
        yield CutOff("dynamic-max-level", deepest, level, reason)
    above = reports.communities[report.community].parent
    while above:
        ancestor_report = reports.by_community.get(above)
        rating = rated.get(ancestor_report.iri) if ancestor_report else None
        if rating and not rating.relevant:
            rating_points, least = (
                round((rating.score or 0.0) * _BEST),
                search_settings.dynamic_threshold,
            )
            above = f"the report above it, “{collapse_whitespace(rating.label)}”,"
            why = f"{above} was rated {rating_points} of {_BEST} for"
            why = f"{why} the question, and only parts of reports rated {least} or more are read"
            yield CutOff("dynamic-threshold", least, None, why)
        above = reports.communities[above].parent


def _in_line(
    report: CommunityReport, reports: Reports, search: RecordedSearch, context: Context
) -> CutOff:
    """Return the queue of reports waiting for rating when calls ran out, most occurrences
    first."""
    level = (r for r in reports.by_community.values() if r.level == report.level)
    waiting = {r.community: reports.occurrences(r) for r in level if r.iri not in search.ratings}
    order = sorted(waiting, key=lambda iri: (-waiting[iri], iri))
    rating_count, max_calls = len(search.ratings), context.settings.global_search.dynamic_max_calls
    rank = rating_count + order.index(report.community) + 1
    place = format_ordinal(rank)
    why = f"the report about it was the {place} to be rated, and the limit of calls was reached"
    reason = f"{why} after {rating_count} (dynamic-max-calls {max_calls})"
    return CutOff("dynamic-max-calls", rating_count, rank, reason)
