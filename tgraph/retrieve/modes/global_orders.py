"""Where global search cuts: the levels of reports, their ratings, and the descent through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tgraph.model import CommunityReport
from tgraph.retrieve.base import Context
from tgraph.retrieve.orders import (
    CutOff,
    Missing,
    Orders,
    RankedOrder,
    RatedReport,
    RecordedSearch,
    above_level,
    flat,
    nth,
)
from tgraph.retrieve.reports import Reports, reports_at_hand

_BEST = 5


def global_orders(missing: Missing, search: RecordedSearch, context: Context) -> Orders:
    """The reports that speak of the missing, by level, or as they were rated for the question; and
    by their own rating."""
    reports = reports_at_hand(context)
    known = reports.by_iri.values() if reports else ()
    telling = sorted((r for r in known if missing.tells(r.iri)), key=lambda r: (r.level, r.iri))
    if reports is None or not telling:
        return
    if search.ratings:
        yield from _descended(telling, reports, search, context)
    else:
        yield from _levels(telling, reports, context)
    best, least = max(r.rating for r in telling), context.settings.global_search.min_rating
    if best < least:
        why = f"the reports that speak of it are rated {best:g} at most, and what is rated below"
        yield CutOff("min-rating", least, None, f"{why} {least:g} was left out (min-rating)")


def _levels(telling: Sequence[CommunityReport], reports: Reports, context: Context) -> Orders:
    """For each entity its deepest report down to a level is read."""
    level = context.settings.global_search.community_level
    read = {report.iri for report in reports.at_level(level)}
    levels = {report.iri: report.level for report in telling}
    if not read.isdisjoint(levels):
        return
    above = [at for at in levels.values() if at <= level]
    if above:
        why = f"only reports above speak of it, the lowest at level {max(above)}, in whose place"
        why = f"{why} those on their parts were read, down to level {level} (community-level)"
        yield CutOff("community-level", level, max(above), why)
    yield above_level(level, levels, levels)


def _descended(
    telling: Sequence[CommunityReport], reports: Reports, search: RecordedSearch, context: Context
) -> Orders:
    """The first report that speaks of it and was not rated: why the descent did not come there; or,
    where all were rated relevant, that their parts stood in for them."""
    unrated = [report for report in telling if report.iri not in search.ratings]
    for report in unrated:
        yield from _above(report, reports, search.ratings, context)
    if unrated:
        yield _in_line(unrated[0], reports, search, context)
    elif all(report.iri not in search.candidates for report in telling):
        why = "the reports that speak of it gave way to those on their parts, which were relevant"
        yield CutOff("dynamic-keep-parent", None, None, f"{why} too (dynamic-keep-parent)")


def _above(
    report: CommunityReport, reports: Reports, rated: Mapping[str, RatedReport], context: Context
) -> Orders:
    """The level, or the report above at which the descent ended."""
    own = context.settings.global_search
    yield RankedOrder(
        "dynamic-max-level",
        own.dynamic_max_level,
        {report.iri: report.level},
        {report.iri},
        lambda at: (
            f"the report that speaks of it lies at level {at.rank}, and the reports were"
            f" rated down to level {own.dynamic_max_level} (dynamic-max-level)"
        ),
    )
    above = reports.communities[report.community].parent
    while above:
        told = reports.by_community.get(above)
        rating = rated.get(told.iri) if told else None
        if rating and not rating.relevant:
            given, least = round((rating.score or 0.0) * _BEST), own.dynamic_threshold
            why = f"the report above it, “{flat(rating.label)}”, was rated {given} of {_BEST} for"
            why = f"{why} the question, and only below those rated {least} or more was gone on"
            yield CutOff("dynamic-threshold", least, None, why)
        above = reports.communities[above].parent


def _in_line(
    report: CommunityReport, reports: Reports, search: RecordedSearch, context: Context
) -> RankedOrder:
    """It waited to be rated when the calls were used up: those of most occurrences first."""
    level = (r for r in reports.by_community.values() if r.level == report.level)
    waiting = {r.community: reports.occurrences(r) for r in level if r.iri not in search.ratings}
    order = sorted(waiting, key=lambda iri: (-waiting[iri], iri))
    done, most = len(search.ratings), context.settings.global_search.dynamic_max_calls
    return RankedOrder(
        "dynamic-max-calls",
        done,
        {iri: done + place for place, iri in enumerate(order, 1)},
        {report.community},
        lambda at: (
            f"the report that speaks of it was the {nth(at.rank)} to be rated, and the calls"
            f" were used up after {done} (dynamic-max-calls {most})"
        ),
    )
