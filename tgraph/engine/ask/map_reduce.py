"""The mode ``global``: reports are read in batches, each gives points, the best make the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tgraph.answer.community_selection import Rater, select_reports
from tgraph.answer.map_reduce import Batch, Mapper, Reducer, as_candidates, choose_points
from tgraph.engine.ask.authority import NONE, in_order_weighed
from tgraph.engine.ask.methods import Gathering
from tgraph.engine.ask.question_run import count_selection
from tgraph.model import Candidate, Rejected, Retrieval, Selection
from tgraph.record.search_steps import state_batches, state_points, state_ratings
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.search.community_reports import ReportSearch, weigh_reports


@dataclass(frozen=True, slots=True)
class GlobalSearch:
    """Report search, map and reduce; with a ``rater`` only what it finds relevant is read."""

    mode: str
    mapper: Mapper
    synthesiser: Reducer
    rater: Rater | None = None

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """Gather evidence as ``Method.gather`` does; the selection consists of points."""
        retrieval, used, unrated = self._find_reports(question, context, record)
        with record.step(ReportSearch.step, used=used) as step:
            batches = self.mapper.batches(question, retrieval.candidates, context)
            dropped = {**retrieval.dropped, **batches.dropped}
            retrieval = replace(retrieval, candidates=batches.ranked, dropped=dropped)
            batch_iris = state_batches(record, step, batches.batches)
            stage = record.retrieval(retrieval, used)
        yield stage
        with record.step("Mapping", self.mapper.agent, [stage, *batch_iris]) as step:
            mapped = self.mapper.map(question, batches.batches, context, record.call)
            state_points(record, step, mapped)
            points = in_order_weighed(as_candidates(record.uuid, mapped, context), context)
            helpful = [point for point in points if point.score > 0 and point.authority]
            left_out = self.synthesiser.left_out(question, helpful) if helpful else {}
            left_out = {**left_out, **{p.item.iri: NONE for p in points if not p.authority}}
            selection = choose_points(points, left_out)
            unused = [*batches.rejected, *_reject_unused(batches.batches, points, selection)]
            selection = replace(selection, rejected=(*selection.rejected, *unused))
            stage = record.selection(step, selection)
        yield stage
        counts = [unrated, dropped, *(mapped_batch.dropped for mapped_batch in mapped)]
        return question, count_selection(selection, counts)

    def _find_reports(
        self, question: Question, context: Context, record: SessionRecord
    ) -> tuple[Retrieval, list[str], Mapping[str, int]]:
        """Return reports to read, recorded ratings behind the choice, and counts of omissions."""
        if self.rater is None:
            return ReportSearch().retrieve(question, context), [], {}
        with record.step("CommunityRating", self.rater.agent) as step:
            descent = select_reports(question, self.rater, context, record.call)
            ratings = state_ratings(record, step, descent)
        return weigh_reports(descent.chosen, context), [ratings], descent.dropped


def _reject_unused(
    batches: Sequence[Batch], points: Sequence[Candidate], selection: Selection
) -> list[Rejected]:
    """Reject reports that were read but contributed no selected point."""
    drawn, used = _reports_of(points), _reports_of([s.candidate for s in selection.selected])
    why = {True: explain("points-unselected"), False: explain("no-point")}
    return [
        Rejected(candidate, why[candidate.item.iri in drawn])
        for batch in batches
        for candidate in batch.candidates
        if candidate.item.iri not in used
    ]


def _reports_of(points: Iterable[Candidate]) -> set[str]:
    return {evidence.via[0] for point in points for evidence in point.evidence}
