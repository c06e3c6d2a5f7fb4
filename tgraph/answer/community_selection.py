"""Dynamic community selection: rate reports from the top, and read only relevant reports.

The descent is GraphRAG's (3.3.0): if a community's report is rated relevant, the community's
parts are rated too, and replace the community where a part is relevant. If nothing on a level
is relevant, the next level is tried as a whole. The call limit is tgraph's: the most frequent
communities are rated first, and a community whose parts could not all be rated is read itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator

from tgraph.answer.base import Step
from tgraph.answer.model import ModelStep, question_values
from tgraph.answer.rows import as_score
from tgraph.errors import ModelError
from tgraph.model import CommunityReport
from tgraph.models.base import CallSink, ChatModel
from tgraph.models.concurrency import do_nothing, run_parallel
from tgraph.models.prompts import Prompts
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.modes.global_search import GlobalSearchSettings
from tgraph.retrieve.reports import Reports, reports_of

BEST = 5
"""The highest rating."""

_LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Vote:
    """A report rating (0 to 5; None for unreadable replies) with reason."""

    rating: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ReportRating:
    """A report with its final rating."""

    report: CommunityReport
    rating: int | None
    reason: str
    relevant: bool


@dataclass(frozen=True, slots=True)
class Descent:
    """Reports selected for reading, ratings in rating order, counts of omitted reports."""

    chosen: tuple[CommunityReport, ...]
    rated: tuple[ReportRating, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


class Rater(Step, Protocol):
    """Says how much reports help to answer a question."""

    def rate(
        self,
        question: Question,
        reports: Sequence[CommunityReport],
        context: Context,
        sink: CallSink,
    ) -> list[Vote]:
        """Return a vote on each report, in report order."""


def select_reports(question: Question, rater: Rater, context: Context, sink: CallSink) -> Descent:
    """Return relevant reports, following the ``global_search.dynamic_*`` settings."""
    return _Descending(question, rater, context, sink).run()


class _Descending:
    """A running descent through the community levels."""

    def __init__(self, question: Question, rater: Rater, context: Context, sink: CallSink) -> None:
        self._ask = partial(_request_votes, rater, question, context, sink)
        self._reports: Reports = reports_of(context)
        self._settings: GlobalSearchSettings = context.settings.global_search
        repeats = self._settings.dynamic_num_repeats
        self._left = max(1, self._settings.dynamic_max_calls // repeats)
        self._relevant: dict[str, None] = {}
        self._rated: list[ReportRating] = []
        self._dropped: Counter[str] = Counter()

    def run(self) -> Descent:
        level, queue = 0, self._reported_communities(self._communities_at_level(0))
        while queue:
            queue = self._reported_communities(self._rate_queue(queue))
            level += 1
            last = self._settings.dynamic_max_level
            if not queue and not self._relevant and level <= last:
                queue = self._reported_communities(self._communities_at_level(level))
        reports = [self._reports.by_community[iri] for iri in self._relevant]
        return Descent(tuple(reports), tuple(self._rated), dict(+self._dropped))

    def _communities_at_level(self, level: int) -> list[str]:
        return self._reports.communities_at(level)

    def _reported_communities(self, communities: Iterable[str]) -> list[str]:
        """Return communities with a report, most frequent first.

        A community without a report is replaced by those of its parts that have a report."""
        reported_communities: dict[str, None] = {}
        waiting = list(communities)
        for iri in waiting:
            if iri in self._reports.by_community:
                reported_communities[iri] = None
            else:
                self._dropped["community without a report"] += 1
                waiting += self._reports.communities[iri].children
        rated_communities = {rated.report.community for rated in self._rated}
        occurs = {
            iri: self._reports.occurrences(self._reports.by_community[iri])
            for iri in reported_communities
            if iri not in rated_communities
        }
        return sorted(occurs, key=lambda iri: (-occurs[iri], iri))

    def _rate_queue(self, queue: Sequence[str]) -> list[str]:
        """Rate queued communities within the call budget; return the parts of relevant
        communities."""
        rated, over = queue[: self._left], queue[self._left :]
        self._left -= len(rated)
        self._dropped["report that was not rated: over the limit of calls"] += len(over)
        unrated = {self._reports.communities[iri].parent for iri in over}
        votes = self._collect_votes([self._reports.by_community[iri] for iri in rated])
        parts: list[str] = []
        for iri, vote in zip(rated, votes, strict=True):
            report, community = self._reports.by_community[iri], self._reports.communities[iri]
            relevant = vote.rating is None or vote.rating >= self._settings.dynamic_threshold
            self._rated.append(ReportRating(report, vote.rating, vote.reason, relevant))
            if not relevant:
                continue
            self._relevant[iri] = None
            if not self._settings.dynamic_keep_parent and community.parent not in unrated:
                self._relevant.pop(community.parent or "", None)
            if community.level < self._settings.dynamic_max_level:
                parts += community.children
        return parts

    def _collect_votes(self, reports: Sequence[CommunityReport]) -> list[Vote]:
        """Return one vote per report: the most common rating; ties go to the highest rating."""
        if not reports:
            return []
        repeats = self._settings.dynamic_num_repeats
        votes = self._ask([report for report in reports for _ in range(repeats)])
        self._dropped["rating that can't be used"] += sum(v.rating is None for v in votes)
        return [_majority_vote(votes[n : n + repeats]) for n in range(0, len(votes), repeats)]


def _request_votes(
    rater: Rater,
    question: Question,
    context: Context,
    sink: CallSink,
    reports: Sequence[CommunityReport],
) -> list[Vote]:
    return rater.rate(question, reports, context, sink)


def _majority_vote(votes: Sequence[Vote]) -> Vote:
    counts = Counter(vote.rating for vote in votes if vote.rating is not None)
    if not counts:
        return votes[0]
    best = max(counts, key=lambda rating: (counts[rating], rating))
    return next(vote for vote in votes if vote.rating == best)


# --- by a model -----------------------------------------------------------------------------------


def _as_rating(value: Any) -> Any:
    score = as_score(value)
    return None if score is None else min(BEST, max(0, round(score)))


class RatingReply(BaseModel):
    """How much a report helps to answer the question."""

    reason: str = ""
    rating: Annotated[int, BeforeValidator(_as_rating)]


class ModelRater(ModelStep):
    """A ``Rater`` that asks a language model with the prompt ``rate_report``, one call per
    vote."""

    name = "rate_report"

    def __init__(
        self,
        model: ChatModel,
        prompts: Prompts = None,
        *,
        concurrency: int = 4,
        cancel: Callable[[], None] = do_nothing,
        **options: Any,
    ) -> None:
        super().__init__(model, prompts, **options)
        self._concurrency = concurrency
        self._cancel = cancel

    def rate(
        self,
        question: Question,
        reports: Sequence[CommunityReport],
        context: Context,
        sink: CallSink,
    ) -> list[Vote]:
        """Return votes as ``Rater.rate`` does; an unreadable reply gives a reason instead of a
        rating."""

        def vote(report: CommunityReport) -> Vote:
            values = {**question_values(question), "report": report.text}
            reply = self.try_ask(values, RatingReply, sink)
            if isinstance(reply, ModelError):
                return Vote(None, reply.message)
            return Vote(reply.rating, collapse_whitespace(reply.reason)[:_LONGEST_REASON])

        return run_parallel(reports, vote, self._concurrency, self._cancel)
