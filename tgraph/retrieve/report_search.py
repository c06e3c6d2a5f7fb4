"""Report search: the community reports at a level, weighted by how much their entities occur.

The reports and their weights are those of GraphRAG's global search (3.3.0): for each entity the
deepest community at or above the level; a weight is the number of chunks that the community's
entities occur in, beside the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.model import Candidate, CommunityReport, Retrieval
from tgraph.retrieve.base import Context, Question, Retriever, Services
from tgraph.retrieve.reports import item_of, reports_of
from tgraph.settings import Settings


class ReportSearch:
    """The mode ``global``."""

    step = "ReportSearch"
    matches_entities = False

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """The reports at ``global_search.community_level``, whatever is asked."""
        memory = context.remembered("reports at the level", 1)
        found: Retrieval = memory.get("level", lambda: _at_level(context))
        return found


def _at_level(context: Context) -> Retrieval:
    level = context.settings.global_search.community_level
    reports = reports_of(context)
    return weighted(reports.at_level(level), context, {_UNTOLD: reports.untold(level)})


_UNTOLD = "community without a report"


def weighted(
    chosen: Sequence[CommunityReport], context: Context, dropped: dict[str, int] | None = None
) -> Retrieval:
    """The reports as candidates by weight, then by rating; ``dropped`` counts what is missing.

    Those rated lower than ``global_search.min_rating`` are left out.
    """
    reports, least = reports_of(context), context.settings.global_search.min_rating
    kept = [report for report in chosen if report.rating >= least]
    counts = {report.iri: reports.occurrences(report) for report in kept}
    most = max(counts.values(), default=0) or 1
    kept.sort(key=lambda r: (-counts[r.iri], -r.rating, r.iri))
    candidates = tuple(
        Candidate(
            item_of(report),
            rank,
            round(counts[report.iri] / most, 6),
            reasons=(
                f"its entities occur in {counts[report.iri]} chunks",
                f"it is rated {report.rating:g} of 10",
            ),
        )
        for rank, report in enumerate(kept, 1)
    )
    left_out = {**(dropped or {}), "report rated too low": len(chosen) - len(kept)}
    return Retrieval(
        candidates,
        total=0,
        items=len(candidates),
        dropped={reason: count for reason, count in left_out.items() if count},
    )


def report_retriever(settings: Settings, services: Services) -> Retriever:
    """The retriever of ``global``."""
    return ReportSearch()
