"""Verifying an answer on record: judged sentence by sentence, and the verdicts put on record."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from tgraph import vocabulary as v
from tgraph.answer.support import SupportJudge
from tgraph.engine.progress import OnProgress, Progress
from tgraph.errors import StoreError, TgraphError, UsageError
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
        uuid = trace.explain_id.removeprefix(v.session_iri(""))
        agent, prompts = self._judge.agent, self._judge.prompts
        origins = Origins(store, librarian, trace, changed=self._changed)
        verifier = Verifier(trace, origins, self._judge, record.call)
        try:
            record.start(v.answer_iri(uuid), agent, prompts, self._explain_collection)
            judged = judge_all(verifier, trace.sentences, self._counting())
            made = self._made(judged, verifier)
            self._put_on_record(made)
        except KeyboardInterrupt:
            self._fail("interrupted", "The verification was interrupted.")
            raise
        except TgraphError as error:
            self._fail("failed", str(error))
            raise
        finally:
            record.close()
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
        trace, usage = self._trace, self._record.usage
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
            usage={
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "calls": usage.calls,
            },
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

    def _fail(self, status: str, error: str) -> None:
        """Record the end, if the disk lets us; a record without one counts as aborted."""
        with suppress(StoreError):
            self._record.finish(status, error)
