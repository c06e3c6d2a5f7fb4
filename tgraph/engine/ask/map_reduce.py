"""The mode ``global``: reports are read in batches, each gives points, the best make the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tgraph.answer.community_selection import Rater, descend
from tgraph.answer.map_reduce import Batch, Mapper, Reducer, as_candidates, choose
from tgraph.engine.ask.authority import NONE, in_order_weighed
from tgraph.engine.ask.methods import Gathering
from tgraph.engine.ask.question_run import gathered
from tgraph.model import Candidate, Rejected, Retrieval, Selection
from tgraph.record.search_steps import state_batches, state_points, state_ratings
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.search.community_reports import ReportSearch, weighted


@dataclass(frozen=True, slots=True)
class GlobalSearch:
    """Report search, map and reduce; with a ``rater`` only what it finds relevant is read."""

    mode: str
    mapper: Mapper
    synthesiser: Reducer
    rater: Rater | None = None

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``: what is selected are points."""
        found, used, unrated = self._find(question, context, record)
        with record.step(ReportSearch.step, used=used) as step:
            batches = self.mapper.batches(question, found.candidates, context)
            dropped = {**found.dropped, **batches.dropped}
            found = replace(found, candidates=batches.ranked, dropped=dropped)
            made = state_batches(record, step, batches.batches)
            stage = record.retrieval(found, used)
        yield stage
        with record.step("Mapping", self.mapper.agent, [stage, *made]) as step:
            mapped = self.mapper.map(question, batches.batches, context, record.call)
            state_points(record, step, mapped)
            points = in_order_weighed(as_candidates(record.uuid, mapped, context), context)
            helpful = [point for point in points if point.score > 0 and point.authority]
            left_out = self.synthesiser.left_out(question, helpful) if helpful else {}
            left_out = {**left_out, **{p.item.iri: NONE for p in points if not p.authority}}
            selection = choose(points, left_out)
            unused = [*batches.rejected, *_unused(batches.batches, points, selection)]
            selection = replace(selection, rejected=(*selection.rejected, *unused))
            stage = record.selection(step, selection)
        yield stage
        counts = [unrated, dropped, *(each.dropped for each in mapped)]
        return question, gathered(selection, counts)

    def _find(
        self, question: Question, context: Context, record: SessionRecord
    ) -> tuple[Retrieval, list[str], Mapping[str, int]]:
        """The reports to read, what on record they were found by, and what that left out."""
        if self.rater is None:
            return ReportSearch().retrieve(question, context), [], {}
        with record.step("CommunityRating", self.rater.agent) as step:
            descent = descend(question, self.rater, context, record.call)
            ratings = state_ratings(record, step, descent)
        return weighted(descent.chosen, context), [ratings], descent.dropped


def _unused(
    batches: Sequence[Batch], points: Sequence[Candidate], selection: Selection
) -> list[Rejected]:
    """The reports that were read, and that no point of the selection came from."""
    drawn, used = _reports_of(points), _reports_of([s.candidate for s in selection.selected])
    why = {True: "none of its points was selected", False: "no point was drawn from it"}
    return [
        Rejected(candidate, why[candidate.item.iri in drawn])
        for batch in batches
        for candidate in batch.candidates
        if candidate.item.iri not in used
    ]


def _reports_of(points: Iterable[Candidate]) -> set[str]:
    return {evidence.via[0] for point in points for evidence in point.evidence}
