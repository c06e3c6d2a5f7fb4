"""Evaluating: questions are answered where they have no answer, and all answers are judged.

What goes wrong with one question costs that question, and is counted; an endpoint that fails three
times in a row, or for all questions, ends the evaluation.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.answer.entailment import NEUTRAL, EntailmentChecker, Statement, StatementExtractor
from tgraph.engine.ask.conversation import QuestionRequest, stream
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.ask.question_run import on_record
from tgraph.engine.ask.streams import result_of
from tgraph.engine.components import Components
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnProgress, Progress
from tgraph.engine.session_reader import SessionReader
from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.extensions.lab.evaluation.assessments import Assessment, Evaluation
from tgraph.extensions.lab.evaluation.files import ragchecker_item, read_items
from tgraph.extensions.lab.evaluation.metrics import (
    METRICS,
    EvaluationItem,
    chosen_metrics,
    labels_for,
    metrics_of,
    need_answer,
    ranking_of,
    retrieval_metrics,
    shown_context,
)
from tgraph.model import Agent, Prompt, Usage
from tgraph.models.base import Call, CallSink
from tgraph.record.assessments import EvaluationRecord

STAGE = "Judging"
PATIENCE = 3
"""Failures of the endpoint one after the other that end an evaluation."""

Answerer = Callable[[EvaluationItem], EvaluationItem]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Judge:
    """Fills in the statements and labels that a question lacks."""

    extractor: StatementExtractor
    checker: EntailmentChecker

    @property
    def agents(self) -> tuple[tuple[Agent, tuple[Prompt, ...]], ...]:
        return (
            (self.extractor.agent, self.extractor.prompts),
            (self.checker.agent, self.checker.prompts),
        )

    @property
    def iris(self) -> tuple[str, ...]:
        return tuple(agent.iri for agent, _ in self.agents)

    def judge(
        self, item: EvaluationItem, sink: CallSink, labels: Collection[str]
    ) -> tuple[EvaluationItem, dict[str, int]]:
        """The question with these labels, and what could not be read on the way."""
        return _Judging(self, item, sink, labels).run()


@dataclass(slots=True)
class _Judging:
    """The judging of one question."""

    _judge: Judge
    _item: EvaluationItem
    _sink: CallSink
    _labels: Collection[str]
    _dropped: Counter[str] = field(default_factory=Counter)

    def run(self) -> tuple[EvaluationItem, dict[str, int]]:
        item = self._item
        found: dict[str, Any] = {}
        if any(label.endswith("2response") for label in self._labels):
            said = self._statements(
                item.response_claims, "" if item.refused else item.response or ""
            )
            found["response_claims"] = said
            found["answer2response"] = lambda: self._check(item.gt_answer, said)
            found["retrieved2response"] = lambda: self._matrix(said)
        if any(label.endswith("2answer") for label in self._labels):
            right = self._statements(item.gt_answer_claims, item.gt_answer)
            found["gt_answer_claims"] = right
            found["response2answer"] = lambda: self._check(item.response or "", right)
            found["retrieved2answer"] = lambda: self._matrix(right)
        known = {name: value for name, value in found.items() if not callable(value)}
        for label in sorted(self._labels, key=_ORDER.index):
            known[label] = _or(getattr(item, label), found[label])
        judges = tuple(dict.fromkeys([*item.judges, *self._judge.iris]))
        return replace(item, **known, judges=judges), dict(self._dropped)

    def _statements(self, known: tuple[Statement, ...] | None, text: str) -> tuple[Statement, ...]:
        if known is not None or not text.strip():
            return known or ()
        stated = self._judge.extractor.statements(self._item.query, text, self._sink)
        self._dropped.update(stated.dropped)
        return stated.statements

    def _check(self, reference: str, statements: Sequence[Statement]) -> tuple[str, ...]:
        """Nothing is asked where nothing can be entailed."""
        if not statements or not reference.strip():
            return (NEUTRAL,) * len(statements)
        checked = self._judge.checker.check(self._item.query, reference, statements, self._sink)
        self._dropped.update(checked.dropped)
        return checked.labels

    def _matrix(self, statements: Sequence[Statement]) -> tuple[tuple[str, ...], ...]:
        """A row for each statement, in it a label for each context."""
        columns = [self._check(context.text, statements) for context in self._item.context]
        return tuple(tuple(column[at] for column in columns) for at in range(len(statements)))


_ORDER = ("answer2response", "response2answer", "retrieved2response", "retrieved2answer")


def _or(known: T | None, make: Callable[[], T]) -> T:
    return make() if known is None else known


@dataclass
class EvaluationRun:
    """One evaluation under way. ``answer`` is None where nothing can be asked, ``record`` where
    nothing is recorded; ``answer_of`` is the IRI of a question's answer on record."""

    judge: Judge
    concurrency: int
    cancel: Callable[[], None]
    progress: OnProgress
    metrics: Sequence[str] = METRICS
    answer: Answerer | None = None
    record: EvaluationRecord | None = None
    answer_of: Callable[[EvaluationItem], str | None] = lambda item: None
    _usage: Usage = field(default_factory=Usage)
    _used: bool = False
    _lock: Lock = field(default_factory=Lock)

    def run(self, items: Sequence[EvaluationItem], mode: str | None) -> Evaluation:
        """The evaluation. ``EndpointError`` where the endpoint fails again and again."""
        made: list[Assessment] = []
        self.progress(Progress(STAGE, 0, len(items)))
        with closing(self._assessed(items)) as assessed:
            for assessment in assessed:
                made.append(assessment)
                self._put_on_record(assessment)
                self.progress(Progress(STAGE, len(made), len(items), self._usage))
        record = self.record
        evaluation = Evaluation(
            tuple(made),
            mode=mode,
            judges=tuple(agent for agent, _ in self.judge.agents) if self._used else (),
            usage=self._usage,
            evaluation=record.evaluation if record else "",
        )
        if record is not None:
            record.judged_by(self.judge.agents if self._used else ())
            record.result(_fractions(evaluation), _content(evaluation.to_ragchecker()))
        return evaluation

    def _assessed(self, items: Sequence[EvaluationItem]) -> Generator[Assessment, None, None]:
        """The assessments in the order of the questions, as soon as they are there."""
        by_model = any(agent.kind == "model" for agent, _ in self.judge.agents)
        pool = ThreadPoolExecutor(self.concurrency, "judge") if by_model else None
        waiting: deque[tuple[EvaluationItem, Future[Assessment]]] = deque()
        failures: list[EndpointError] = []
        try:
            for item in items:
                waiting.append(self._begin(item, pool))
                while waiting and waiting[0][1].done():
                    yield self._take(*waiting.popleft(), failures)
            while waiting:
                yield self._take(*waiting.popleft(), failures)
            if len(failures) == len(items):
                raise failures[0]
        except BaseException:
            self.cancel()
            raise
        finally:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)

    def _begin(
        self, item: EvaluationItem, pool: ThreadPoolExecutor | None
    ) -> tuple[EvaluationItem, Future[Assessment]]:
        """Answer the question if need be, and begin to judge."""
        made: Future[Assessment] = Future()
        try:
            item = self._answered(item)
            if pool is not None:
                return item, pool.submit(self._assess, item)
            made.set_result(self._assess(item))
        except ModelError as error:
            made.set_exception(error)
        return item, made

    def _answered(self, item: EvaluationItem) -> EvaluationItem:
        if item.response is not None:
            return item
        if self.answer is None:
            raise UsageError(
                f"Question {item.query_id} has no response, and there is no graph to ask.",
                "Give the responses, or ask a graph.",
            )
        return self.answer(item)

    def _assess(self, item: EvaluationItem) -> Assessment:
        retrieval = retrieval_metrics(item)
        metrics = self.metrics
        if not item.has_answer and need_answer(metrics):
            return Assessment(item, {}, retrieval)
        if item.is_checked(metrics):
            return Assessment(item, metrics_of(item, metrics), retrieval)
        self._used = True
        judged, dropped = self.judge.judge(item, self._sink, labels_for(metrics))
        return Assessment(judged, metrics_of(judged, metrics), retrieval, "", dropped)

    def _take(
        self, item: EvaluationItem, made: Future[Assessment], failures: list[EndpointError]
    ) -> Assessment:
        """The assessment, or that there is none; ``failures`` are those in a row."""
        try:
            found = made.result()
        except ModelError as error:
            if not isinstance(error, EndpointError):
                failures.clear()
            else:
                failures.append(error)
            if len(failures) >= PATIENCE:
                raise
            retrieval = retrieval_metrics(item) if item.response is not None else {}
            return Assessment(item, {}, retrieval, str(error))
        failures.clear()
        return found

    def _sink(self, call: Call) -> None:
        if self.record is not None:
            self.record.call(call)
        with self._lock:
            self._usage += call.usage

    def _put_on_record(self, assessment: Assessment) -> None:
        if self.record is None:
            return
        figures = {**assessment.metrics, **assessment.retrieval}
        self.record.assessment(
            assessment.item.query,
            figures,
            _content(ragchecker_item(assessment.item, assessment.metrics)),
            answer=self.answer_of(assessment.item),
            error=assessment.error,
            dropped=assessment.dropped,
        )


def _fractions(evaluation: Evaluation) -> dict[str, float]:
    found = {**evaluation.retrieval}
    for figures in evaluation.metrics.values():
        found |= figures
    return {name: value / 100 for name, value in found.items()}


def _content(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


# --- in a graph ---


Questions = str | Path | Sequence[EvaluationItem]


def evaluation_run(
    parts: Components, progress: OnProgress, metrics: Sequence[str] = METRICS
) -> EvaluationRun:
    """A run that judges with what the settings say, asks nothing and records nothing."""
    return EvaluationRun(
        Judge(parts.statements, parts.checker),
        parts.settings.chat.concurrency,
        parts.cancel,
        progress,
        metrics,
    )


class GraphEvaluation:
    """One evaluation in a graph."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened
        self._sessions = SessionReader(opened)
        self._asked: set[str] = set()

    def run(
        self, questions: Questions, mode: str, progress: OnProgress, metrics: Sequence[str] = ()
    ) -> Evaluation:
        """As ``tgraph.extensions.lab.evaluate``."""
        chosen_names = chosen_metrics(metrics)
        name, content, items = _read(questions, answered=need_answer(chosen_names))
        unanswered = any(item.response is None for item in items)
        if unanswered:
            method_of(mode, self._opened.parts)
            self._opened.context()
        run = evaluation_run(self._opened.parts, progress, chosen_names)
        run.answer = lambda item: self._answered(item, mode)
        run.answer_of = self._answer_of
        run.record = record = self._opened.record(EvaluationRecord)
        collection = self._opened.settings.explain_collection
        chosen = mode if unanswered else None
        with on_record(record, "evaluation"):
            own = {"metrics": ", ".join(chosen_names)} if chosen_names != METRICS else {}
            record.start(name, content, chosen, own, self._opened.folder.name, collection)
            evaluation = run.run(items, chosen)
            record.finish("completed")
        return replace(evaluation, explain_collection=collection)

    def _answered(self, item: EvaluationItem, mode: str) -> EvaluationItem:
        """The question with the graph's answer, and what that was made from."""
        answer = result_of(stream(self._opened, QuestionRequest(item.query, mode, ())))
        self._asked.add(answer.session)
        ranking = None
        if item.gold_documents or item.gold_passages:
            context = self._opened.context()
            trace = self._sessions.trace_so_far(answer.session)
            ranking = ranking_of(trace, context.store, context.texts)
        return replace(
            item,
            response=answer.text,
            context=shown_context(answer),
            session=answer.session,
            refused=answer.no_evidence,
            ranking=ranking,
        )

    def _answer_of(self, item: EvaluationItem) -> str | None:
        """The answer on record that the response is, word for word; None where it is none."""
        uuid = item.session.removeprefix(v.session_iri(""))
        if not uuid:
            return None
        answer = v.answer_iri(uuid)
        if item.session in self._asked:
            return answer
        try:
            kept = NamedNode(v.answer_text_iri(uuid))
        except ValueError:
            return None
        found = self._opened.read().match(kept, v.tg("contentHash"), None, None)
        texts = [
            self._opened.librarian.get_text(quad.object.value)
            for quad in found
            if isinstance(quad.object, Literal)
        ]
        return answer if item.response in texts else None


def _read(questions: Questions, *, answered: bool) -> tuple[str, str, Sequence[EvaluationItem]]:
    """The name of the set, its content as it will be kept, and the questions."""
    if isinstance(questions, str | Path):
        path = Path(questions)
        items = read_items(path, answered=answered)
        return path.name, path.read_text("utf-8-sig"), items
    if not questions:
        raise UsageError("There is no question to evaluate.")
    content = json.dumps([asdict(item) for item in questions], ensure_ascii=False, indent=1)
    return "questions", content, questions
