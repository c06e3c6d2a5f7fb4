"""Which limit of global search kept the reports that speak of something from being read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tgraph.explain.nearest_limits import Limit, nth
from tgraph.explain.reached import Search
from tgraph.explain.safety import one_line
from tgraph.explain.traced import Trace, TracedRating
from tgraph.model import CommunityReport
from tgraph.retrieve.base import Context
from tgraph.retrieve.modes.global_search import GlobalSearchSettings
from tgraph.retrieve.reports import Reports, reports_at_hand

_BEST = 5


@dataclass(frozen=True)
class ReportLimits:
    """Looks for the reports that speak of one expected thing; ``context`` is what the session
    read."""

    trace: Trace
    search: Search
    context: Context
    settings: GlobalSearchSettings

    def find(self) -> Limit | None:
        """The limit; None where no report speaks of the expected."""
        ways: tuple[Callable[[], Limit | None], ...] = (self._levels, self._rated)
        if self.trace.ratings:
            ways = (self._descended, self._rated)
        return next(filter(None, (way() for way in ways)), None) if self._telling else None

    @cached_property
    def _reports(self) -> Reports | None:
        return reports_at_hand(self.context)

    @cached_property
    def _telling(self) -> Sequence[CommunityReport]:
        """The reports that speak of it, from the top."""
        known = self._reports.by_iri.values() if self._reports else ()
        return sorted((r for r in known if self.search.told(r.iri)), key=lambda r: (r.level, r.iri))

    # --- by level and rating ---

    def _levels(self) -> Limit | None:
        """For each entity its deepest report down to a level is read."""
        assert self._reports is not None
        level = self.settings.community_level
        read = {report.iri for report in self._reports.at_level(level)}
        if any(report.iri in read for report in self._telling):
            return None
        above = [report.level for report in self._telling if report.level <= level]
        if above:
            why = (
                f"only reports above speak of it, the lowest at level {max(above)}, in whose place"
            )
            why = f"{why} those on their parts were read, down to level {level} (community-level)"
            return Limit("community-level", level, max(above), why)
        first = self._telling[0].level
        why = f"only reports below level {level} speak of it, the first at level {first}"
        return Limit("community-level", level, first, f"{why} (community-level)")

    def _rated(self) -> Limit | None:
        """A report that speaks of it is rated too low to be read."""
        least = self.settings.min_rating
        best = max(report.rating for report in self._telling)
        if best >= least:
            return None
        why = f"the reports that speak of it are rated {best:g} at most, and what is rated"
        return Limit("min-rating", least, None, f"{why} below {least:g} was left out (min-rating)")

    # --- the descent from the top, where reports are rated for the question ---

    def _descended(self) -> Limit | None:
        """The first report that speaks of it and was not rated: why the descent did not come
        there; or, where all were rated relevant, that their parts stood in for them."""
        rated = {rating.report: rating for rating in self.trace.ratings}
        unrated = [report for report in self._telling if report.iri not in rated]
        for report in unrated:
            found = self._above(report, rated)
            if found is not None:
                return found
        if unrated:
            return self._beyond_calls(unrated[0])
        read = {item.item for item in (*self.trace.selected, *self.trace.rejected)}
        if any(report.iri in read for report in self._telling):
            return None
        why = "the reports that speak of it gave way to those on their parts, which were relevant"
        return Limit("dynamic-keep-parent", None, None, f"{why} too (dynamic-keep-parent)")

    def _above(self, report: CommunityReport, rated: dict[str, TracedRating]) -> Limit | None:
        """The report above it at which the descent ended, or the level."""
        assert self._reports is not None
        deepest = self.settings.dynamic_max_level
        if report.level > deepest:
            why = f"the report that speaks of it lies at level {report.level}, and the reports were"
            why = f"{why} rated down to level {deepest} (dynamic-max-level)"
            return Limit("dynamic-max-level", deepest, report.level, why)
        above = self._reports.communities[report.community].parent
        while above:
            told = self._reports.by_community.get(above)
            rating = rated.get(told.iri) if told else None
            if rating and not rating.relevant:
                given = round((rating.score or 0.0) * _BEST)
                least = self.settings.dynamic_threshold
                why = f"the report above it, “{one_line(rating.label)}”, was rated {given} of"
                why = f"{why} {_BEST} for the question, and only below those rated {least} or more"
                return Limit("dynamic-threshold", least, None, f"{why} was gone on")
            above = self._reports.communities[above].parent
        return None

    def _beyond_calls(self, report: CommunityReport) -> Limit:
        """It waited to be rated when the calls were used up: those of most occurrences first."""
        assert self._reports is not None
        reports, rated = self._reports, {rating.report for rating in self.trace.ratings}
        waiting = [
            r
            for r in reports.by_community.values()
            if r.level == report.level and r.iri not in rated
        ]
        occurs = {r.community: reports.occurrences(r) for r in waiting}
        order = sorted(occurs, key=lambda iri: (-occurs[iri], iri))
        cutoff = len(self.trace.ratings)
        rank = cutoff + order.index(report.community) + 1
        most = self.settings.dynamic_max_calls
        why = f"the report that speaks of it was the {nth(rank)} to be rated, and the calls were"
        why = f"{why} used up after {cutoff} (dynamic-max-calls {most})"
        return Limit("dynamic-max-calls", cutoff, rank, why)
