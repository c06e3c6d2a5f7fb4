"""Verifying an answer on record: judged sentence by sentence, and the verdicts put on record."""

from __future__ import annotations

from collections.abc import Callable

from tgraph.answer.support import SupportJudge
from tgraph.engine.progress import OnProgress, Progress
from tgraph.engine.recorded_run import answer_of, on_record, usage_of
from tgraph.errors import UsageError
from tgraph.explain.origins import Origins
from tgraph.explain.traced import Trace
from tgraph.explain.verified import (
    JudgedSentence,
    Verification,
    citation_precision,
    citation_recall,
)
from tgraph.explain.verify import Verifier, judge_all
from tgraph.librarian import Librarian
from tgraph.record.verification import VerificationRecord
from tgraph.store.base import Store

STAGE = "Verifying"


class VerificationRun:
    """One verification under way."""

    def __init__(
        self,
        trace: Trace,
        judge: SupportJudge,
        record: VerificationRecord,
        explain_collection: str,
        generation: int,
        progress: OnProgress,
    ) -> None:
        self._trace = trace
        self._judge = judge
        self._record = record
        self._explain_collection = explain_collection
        self._generation = generation
        self._progress = progress

    def run(self, store: Store, librarian: Librarian) -> Verification:
        """The verdicts, on record. ``UsageError`` where the session gave no answer."""
        trace, record = self._trace, self._record
        if not trace.sentences:
            raise UsageError("The session has no answer to verify.", "Name one that has.")
        agent, prompts = self._judge.agent, self._judge.prompts
        origins = Origins(store, librarian, trace, changed=self._changed)
        verifier = Verifier(trace, origins, self._judge, record.call)
        with on_record(record, "verification"):
            record.start(answer_of(trace), agent, prompts, self._explain_collection)
            judged = judge_all(verifier, trace.sentences, self._counting())
            made = self._made(judged, verifier)
            self._put_on_record(made)
        return made

    @property
    def _changed(self) -> bool:
        return self._generation > self._trace.generation

    def _counting(self) -> Callable[[], None]:
        total, done = len(self._trace.sentences), [0]
        self._progress(Progress(STAGE, 0, total))

        def one() -> None:
            done[0] += 1
            self._progress(Progress(STAGE, done[0], total, self._record.usage))

        return one

    def _made(self, judged: tuple[JudgedSentence, ...], verifier: Verifier) -> Verification:
        trace = self._trace
        note = "Knowledge has changed since the session: steps before the selection are as now."
        return Verification(
            session=trace.explain_id,
            question=trace.question,
            mode=trace.mode,
            judge=self._judge.agent.name,
            sentences=judged,
            recall=citation_recall(judged),
            precision=citation_precision(judged),
            verification=self._record.verification,
            usage=usage_of(self._record),
            dropped=dict(+verifier.dropped),
            notes=(note,) if self._changed else (),
        )

    def _put_on_record(self, made: Verification) -> None:
        record = self._record
        for sentence in made.sentences:
            lost = sentence.lost
            record.verdict(
                sentence.sentence,
                sentence.verdict,
                sentence.reason,
                lost_at=lost.step if lost else "",
                lost_in=lost.item if lost else "",
            )
        measures = {"citation-recall": made.recall, "citation-precision": made.precision}
        record.result({k: m for k, m in measures.items() if m is not None}, made.dropped)
        record.finish("completed")
