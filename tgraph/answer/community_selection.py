"""Dynamic community selection: reports are rated from the top, and only what is relevant is read.

The descent is GraphRAG's (3.3.0): a community whose report is rated relevant has its parts rated
too, and they stand in for it where one of them is relevant. Where nothing of a level is, the next
level is tried as a whole. The limit of calls is tgraph's: the communities that occur most are rated
first, and one whose parts could not all be rated is read itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator

from tgraph.answer.base import Step
from tgraph.answer.model import ModelStep, asked
from tgraph.answer.rows import as_score, clean
from tgraph.errors import ModelError
from tgraph.model import CommunityReport
from tgraph.models.base import CallSink, ChatModel
from tgraph.models.concurrency import nothing, together
from tgraph.models.prompts import Prompts
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.modes.global_search import GlobalSearchSettings
from tgraph.retrieve.reports import Reports, reports_of

BEST = 5
"""The highest rating."""

_LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Vote:
    """A rating of a report from 0 to 5, None where the reply could not be read, and why."""

    rating: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Rated:
    """A report with the rating that counts."""

    report: CommunityReport
    rating: int | None
    reason: str
    relevant: bool


@dataclass(frozen=True, slots=True)
class Descent:
    """The reports to read, every rating in the order of its making, and what was left out."""

    chosen: tuple[CommunityReport, ...]
    rated: tuple[Rated, ...]
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
        """A vote on each report, in their order."""


def descend(question: Question, rater: Rater, context: Context, sink: CallSink) -> Descent:
    """The reports that are relevant, as the settings ``global_search.dynamic_*`` say."""
    return _Descending(question, rater, context, sink).run()


class _Descending:
    """A descent under way."""

    def __init__(self, question: Question, rater: Rater, context: Context, sink: CallSink) -> None:
        self._ask = partial(_ask, rater, question, context, sink)
        self._reports: Reports = reports_of(context)
        self._settings: GlobalSearchSettings = context.settings.global_search
        each = self._settings.dynamic_num_repeats
        self._left = max(1, self._settings.dynamic_max_calls // each)
        self._relevant: dict[str, None] = {}
        self._rated: list[Rated] = []
        self._dropped: Counter[str] = Counter()

    def run(self) -> Descent:
        level, queue = 0, self._told(self._at(0))
        while queue:
            queue = self._told(self._rate(queue))
            level += 1
            last = self._settings.dynamic_max_level
            if not queue and not self._relevant and level <= last:
                queue = self._told(self._at(level))
        found = [self._reports.by_community[iri] for iri in self._relevant]
        return Descent(tuple(found), tuple(self._rated), dict(+self._dropped))

    def _at(self, level: int) -> list[str]:
        return self._reports.communities_at(level)

    def _told(self, communities: Iterable[str]) -> list[str]:
        """Those with a report, and of the others their parts that have one, by occurrences."""
        found: dict[str, None] = {}
        waiting = list(communities)
        for iri in waiting:
            if iri in self._reports.by_community:
                found[iri] = None
            else:
                self._dropped["community without a report"] += 1
                waiting += self._reports.communities[iri].children
        known = {rated.report.community for rated in self._rated}
        occurs = {
            iri: self._reports.occurrences(self._reports.by_community[iri])
            for iri in found
            if iri not in known
        }
        return sorted(occurs, key=lambda iri: (-occurs[iri], iri))

    def _rate(self, queue: Sequence[str]) -> list[str]:
        """Rate them as far as the budget goes; the parts of what is relevant."""
        rated, over = queue[: self._left], queue[self._left :]
        self._left -= len(rated)
        self._dropped["report that was not rated: over the limit of calls"] += len(over)
        unrated = {self._reports.communities[iri].parent for iri in over}
        votes = self._votes([self._reports.by_community[iri] for iri in rated])
        parts: list[str] = []
        for iri, vote in zip(rated, votes, strict=True):
            report, community = self._reports.by_community[iri], self._reports.communities[iri]
            relevant = vote.rating is None or vote.rating >= self._settings.dynamic_threshold
            self._rated.append(Rated(report, vote.rating, vote.reason, relevant))
            if not relevant:
                continue
            self._relevant[iri] = None
            if not self._settings.dynamic_keep_parent and community.parent not in unrated:
                self._relevant.pop(community.parent or "", None)
            if community.level < self._settings.dynamic_max_level:
                parts += community.children
        return parts

    def _votes(self, reports: Sequence[CommunityReport]) -> list[Vote]:
        """One vote on each: of several the commonest, of equally common ones the highest."""
        if not reports:
            return []
        repeats = self._settings.dynamic_num_repeats
        votes = self._ask([report for report in reports for _ in range(repeats)])
        self._dropped["rating that can't be used"] += sum(v.rating is None for v in votes)
        return [_winner(votes[n : n + repeats]) for n in range(0, len(votes), repeats)]


def _ask(
    rater: Rater,
    question: Question,
    context: Context,
    sink: CallSink,
    reports: Sequence[CommunityReport],
) -> list[Vote]:
    return rater.rate(question, reports, context, sink)


def _winner(votes: Sequence[Vote]) -> Vote:
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
    """A ``Rater`` that asks a language model by the prompt ``rate_report``, a call a vote."""

    name = "rate_report"

    def __init__(
        self,
        model: ChatModel,
        prompts: Prompts = None,
        *,
        concurrency: int = 4,
        cancel: Callable[[], None] = nothing,
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
        """As ``Rater.rate``; a reply that can't be read gives no rating, and why."""

        def vote(report: CommunityReport) -> Vote:
            values = {**asked(question), "report": report.text}
            reply = self.try_ask(values, RatingReply, sink)
            if isinstance(reply, ModelError):
                return Vote(None, reply.message)
            return Vote(reply.rating, clean(reply.reason)[:_LONGEST_REASON])

        return together(reports, vote, self._concurrency, self._cancel)
