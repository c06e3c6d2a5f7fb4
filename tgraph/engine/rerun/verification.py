"""Verifying an answer on record: judged sentence by sentence, and the verdicts put on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tgraph.answer.support import LexicalJudge, SupportJudge
from tgraph.engine.ask.computing import GRAMMAR
from tgraph.engine.ask.question_run import answer_of, on_record, usage_of
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnProgress, Progress
from tgraph.engine.rerun.answer_check import check_answer, check_order, is_by_model
from tgraph.engine.rerun.recomputation import Recomputation, is_computed
from tgraph.errors import UsageError
from tgraph.explain.as_of.store import StoreAsOf, read_then
from tgraph.explain.assess.support_lineage import Verifier, judge_all
from tgraph.explain.assess.verification import (
    FINE,
    JudgedSentence,
    Verification,
    citation_precision,
    citation_recall,
)
from tgraph.explain.trace.derivation import Derivations
from tgraph.explain.trace.reader import read_trace
from tgraph.explain.trace.sessions import SessionSummary
from tgraph.explain.trace.values import Trace
from tgraph.index.sources import Texts
from tgraph.record.assessments import VerificationRecord
from tgraph.store.base import Store
from tgraph.store.snapshot import read_pointer

STAGE = "Verifying"


def verify_session(
    opened: OpenCollection, session: SessionSummary, progress: OnProgress, *, lexical: bool
) -> Verification:
    """As ``KnowledgeGraph.verify``."""
    store = opened.read()
    judge = LexicalJudge() if lexical else opened.parts.support_judge
    record = opened.record(VerificationRecord)
    return VerificationRun(opened, session, judge, record, progress, lexical).run(store)


@dataclass(frozen=True, slots=True)
class VerificationRun:
    """A verification run for a recorded session."""

    opened: OpenCollection
    session: SessionSummary
    judge: SupportJudge
    record: VerificationRecord
    progress: OnProgress
    lexical: bool = False

    def run(self, store: Store) -> Verification:
        """Return recorded verdicts, based on knowledge read by the session. Raise
        ``UsageError`` if the session has no answer."""
        trace = self._read_session(store)
        if not trace.sentences:
            raise UsageError("The session has no answer to verify.", "Name one that has.")
        pointer = read_pointer(self.opened.folder)
        generations = trace.generation, pointer.generation if pointer else 0
        librarian, computed = self.opened.librarian, is_computed(trace.mode)
        agent = GRAMMAR if computed else self.judge.agent
        prompts = () if computed else self.judge.prompts
        with on_record(self.record, "verification"):
            self.record.start(
                answer_of(trace),
                agent,
                prompts,
                self.opened.settings.explain_collection,
            )
            with read_then(store, librarian, generations, trace.started) as then:
                if then.is_past:
                    trace = self._read_session(then.store)
                if computed:
                    return self._run_query_again(trace, store, then)
                return self._verify_sentences(trace, then)

    def _run_query_again(self, trace: Trace, record: Store, then: StoreAsOf) -> Verification:
        """Return the verdicts on a computed answer by its query's result."""
        context = self.opened.own_context()
        again = Recomputation.over(trace, record, then.store, context, self.session.bundle)
        judged = again.judge_sentences()
        verification = self._build_verification(trace, judged, GRAMMAR.name, {}, then)
        self._put_on_record(trace, verification)
        return verification

    def _read_session(self, store: Store) -> Trace:
        opened = self.opened
        texts = Texts(store, opened.librarian)
        return read_trace(store, texts, self.session, opened.settings.explain_collection)

    def _verify_sentences(self, trace: Trace, then: StoreAsOf) -> Verification:
        origins = Derivations(then.store, self.opened.librarian, trace, changed=then.is_other)
        verifier = Verifier(trace, origins, self.judge, self.record.call)
        judged = judge_all(verifier, trace.sentences, self._progress_counter(len(trace.sentences)))
        name, dropped = self.judge.agent.name, dict(+verifier.dropped)
        answer = check_answer(self.opened, trace, self.record.call, lexical=self.lexical)
        if answer.recomputed and not is_by_model(trace):
            judged = tuple(map(check_order, judged))
        verification = self._build_verification(trace, judged, name, dropped, then)
        verification = replace(verification, answer=answer)
        self._put_on_record(trace, verification)
        return verification

    def _progress_counter(self, total: int) -> Callable[[], None]:
        counter = [0]
        self.progress(Progress(STAGE, 0, total))

        def count_sentence() -> None:
            counter[0] += 1
            self.progress(Progress(STAGE, counter[0], total, self.record.usage))

        return count_sentence

    def _build_verification(
        self,
        trace: Trace,
        judged: tuple[JudgedSentence, ...],
        judge: str,
        dropped: Mapping[str, int],
        then: StoreAsOf,
    ) -> Verification:
        return Verification(
            session=trace.explain_id,
            question=trace.question,
            mode=trace.mode,
            judge=judge,
            sentences=judged,
            recall=citation_recall(judged),
            precision=citation_precision(judged),
            verification=self.record.verification,
            usage=usage_of(self.record),
            dropped=dropped,
            notes=(then.note,) if then.note else (),
        )

    def _put_on_record(self, trace: Trace, made: Verification) -> None:
        record = self.record
        for sentence in made.sentences:
            lost = sentence.lost
            record.verdict(
                sentence.sentence,
                sentence.verdict,
                sentence.reason,
                lost_at=lost.step if lost else "",
                lost_in=lost.item if lost else "",
            )
        if made.answer is not None:
            judged, place = made.answer, answer_of(trace)
            lost_at, lost_in = ("", "") if judged.verdict in FINE else ("answer", place)
            record.verdict(place, judged.verdict, judged.reason, lost_at=lost_at, lost_in=lost_in)
        measures = {"citation-recall": made.recall, "citation-precision": made.precision}
        record.result({k: m for k, m in measures.items() if m is not None}, made.dropped)
        record.finish("completed")
