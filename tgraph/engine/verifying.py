"""Verifying an answer on record: judged sentence by sentence, and the verdicts put on record."""

from __future__ import annotations

from collections.abc import Callable

from tgraph.answer.support import SupportJudge
from tgraph.engine.progress import OnProgress, Progress
from tgraph.engine.recorded_run import answer_of, on_record, usage_of
from tgraph.errors import UsageError
from tgraph.explain.origins import Origins
from tgraph.explain.read_again import Then, read_then
from tgraph.explain.sessions import SessionSummary
from tgraph.explain.trace import read_trace
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
    """One verification under way. ``generation`` is the newest of knowledge."""

    def __init__(
        self,
        summary: SessionSummary,
        judge: SupportJudge,
        record: VerificationRecord,
        explain_collection: str,
        generation: int,
        progress: OnProgress,
    ) -> None:
        self._summary = summary
        self._judge = judge
        self._record = record
        self._explain_collection = explain_collection
        self._generation = generation
        self._progress = progress

    def run(self, store: Store, librarian: Librarian) -> Verification:
        """The verdicts, on record, from what the session read. ``UsageError`` where it gave no
        answer."""
        trace = self._read(store, librarian)
        if not trace.sentences:
            raise UsageError("The session has no answer to verify.", "Name one that has.")
        generations = trace.generation, self._generation
        judge = self._judge
        with on_record(self._record, "verification"):
            self._record.start(
                answer_of(trace), judge.agent, judge.prompts, self._explain_collection
            )
            with read_then(store, librarian, generations, trace.started) as then:
                if then.is_past:
                    trace = self._read(then.store, librarian)
                return self._verify(trace, then, librarian)

    def _read(self, store: Store, librarian: Librarian) -> Trace:
        return read_trace(store, librarian, self._summary, self._explain_collection)

    def _verify(self, trace: Trace, then: Then, librarian: Librarian) -> Verification:
        origins = Origins(then.store, librarian, trace, changed=then.is_other)
        verifier = Verifier(trace, origins, self._judge, self._record.call)
        judged = judge_all(verifier, trace.sentences, self._counting(len(trace.sentences)))
        made = self._made(trace, judged, verifier, then)
        self._put_on_record(made)
        return made

    def _counting(self, total: int) -> Callable[[], None]:
        done = [0]
        self._progress(Progress(STAGE, 0, total))

        def one() -> None:
            done[0] += 1
            self._progress(Progress(STAGE, done[0], total, self._record.usage))

        return one

    def _made(
        self, trace: Trace, judged: tuple[JudgedSentence, ...], verifier: Verifier, then: Then
    ) -> Verification:
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
            notes=(then.note,) if then.note else (),
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
