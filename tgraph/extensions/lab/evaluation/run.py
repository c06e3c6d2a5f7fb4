"""Evaluation: unanswered questions receive answers, and all answers are judged.

A failure costs only its question, and is counted; an endpoint that fails three times in a row,
or for all questions, ends the evaluation."""

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
from tgraph.answer.entailment import NEUTRAL, EntailmentChecker, StatementExtractor, StatementWords
from tgraph.engine.ask.conversation import QuestionRequest, stream_answer
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
from tgraph.store.base import match_record

STAGE = "Judging"
PATIENCE = 3
"""Failures of the endpoint one after the other that end an evaluation."""

Answerer = Callable[[EvaluationItem], EvaluationItem]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge that adds missing statements and labels to questions."""

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
        """Return the question with requested labels, and counts of unreadable replies."""
        return _Judging(self, item, sink, labels).run()


@dataclass(slots=True)
class _Judging:
    """The judging process for a single question."""

    _judge: Judge
    _item: EvaluationItem
    _sink: CallSink
    _labels: Collection[str]
    _dropped: Counter[str] = field(default_factory=Counter)

    def run(self) -> tuple[EvaluationItem, dict[str, int]]:
        item = self._item
        values: dict[str, Any] = {}
        if any(label.endswith("2response") for label in self._labels):
            response_statements = self._extract_statements(
                item.response_claims, "" if item.refused else item.response or ""
            )
            values["response_claims"] = response_statements
            values["answer2response"] = lambda: self._check_statements(
                item.gt_answer, response_statements
            )
            values["retrieved2response"] = lambda: self._label_contexts(response_statements)
        if any(label.endswith("2answer") for label in self._labels):
            right = self._extract_statements(item.gt_answer_claims, item.gt_answer)
            values["gt_answer_claims"] = right
            values["response2answer"] = lambda: self._check_statements(item.response or "", right)
            values["retrieved2answer"] = lambda: self._label_contexts(right)
        label_values = {name: value for name, value in values.items() if not callable(value)}
        for label in sorted(self._labels, key=_ORDER.index):
            label_values[label] = _value_or_make(getattr(item, label), values[label])
        judges = tuple(dict.fromkeys([*item.judges, *self._judge.iris]))
        return replace(item, **label_values, judges=judges), dict(self._dropped)

    def _extract_statements(
        self, known: tuple[StatementWords, ...] | None, text: str
    ) -> tuple[StatementWords, ...]:
        if known is not None or not text.strip():
            return known or ()
        extraction = self._judge.extractor.statements(self._item.query, text, self._sink)
        self._dropped.update(extraction.dropped)
        return extraction.statements

    def _check_statements(
        self, reference: str, statements: Sequence[StatementWords]
    ) -> tuple[str, ...]:
        """Return entailment labels for statements, without model calls if statements or
        reference text are missing."""
        if not statements or not reference.strip():
            return (NEUTRAL,) * len(statements)
        checked = self._judge.checker.check(self._item.query, reference, statements, self._sink)
        self._dropped.update(checked.dropped)
        return checked.labels

    def _label_contexts(self, statements: Sequence[StatementWords]) -> tuple[tuple[str, ...], ...]:
        """Return a label matrix: one row per statement, one column per context."""
        columns = [
            self._check_statements(context.text, statements) for context in self._item.context
        ]
        return tuple(tuple(column[at] for column in columns) for at in range(len(statements)))


_ORDER = ("answer2response", "response2answer", "retrieved2response", "retrieved2answer")


def _value_or_make(known: T | None, make: Callable[[], T]) -> T:
    return make() if known is None else known


@dataclass
class EvaluationRun:
    """An evaluation run: ``answer`` is None without question answering, ``record`` None without
    recording; ``answer_of`` returns a question's recorded answer IRI."""

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
        """Return the evaluation. Raise ``EndpointError`` if the endpoint fails repeatedly."""
        assessments: list[Assessment] = []
        self.progress(Progress(STAGE, 0, len(items)))
        with closing(self._iterate_assessments(items)) as assessed:
            for assessment in assessed:
                assessments.append(assessment)
                self._put_on_record(assessment)
                self.progress(Progress(STAGE, len(assessments), len(items), self._usage))
        record = self.record
        evaluation = Evaluation(
            tuple(assessments),
            mode=mode,
            judges=tuple(agent for agent, _ in self.judge.agents) if self._used else (),
            usage=self._usage,
            evaluation=record.evaluation if record else "",
        )
        if record is not None:
            record.judged_by(self.judge.agents if self._used else ())
            record.result(
                _metric_fractions(evaluation), _encode_content(evaluation.to_ragchecker())
            )
        return evaluation

    def _iterate_assessments(
        self, items: Sequence[EvaluationItem]
    ) -> Generator[Assessment, None, None]:
        """Yield assessments in question order, as soon as available."""
        by_model = any(agent.kind == "model" for agent, _ in self.judge.agents)
        pool = ThreadPoolExecutor(self.concurrency, "judge") if by_model else None
        waiting: deque[tuple[EvaluationItem, Future[Assessment]]] = deque()
        failures: list[EndpointError] = []
        try:
            for item in items:
                waiting.append(self._begin_assessment(item, pool))
                while waiting and waiting[0][1].done():
                    yield self._finish_assessment(*waiting.popleft(), failures)
            while waiting:
                yield self._finish_assessment(*waiting.popleft(), failures)
            if len(failures) == len(items):
                raise failures[0]
        except BaseException:
            self.cancel()
            raise
        finally:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)

    def _begin_assessment(
        self, item: EvaluationItem, pool: ThreadPoolExecutor | None
    ) -> tuple[EvaluationItem, Future[Assessment]]:
        """Answer the question if necessary, and begin judging."""
        future: Future[Assessment] = Future()
        try:
            item = self._answer_item(item)
            if pool is not None:
                return item, pool.submit(self._assess_item, item)
            future.set_result(self._assess_item(item))
        except ModelError as error:
            future.set_exception(error)
        return item, future

    def _answer_item(self, item: EvaluationItem) -> EvaluationItem:
        if item.response is not None:
            return item
        if self.answer is None:
            raise UsageError(
                f"Question {item.query_id} has no response, and there is no graph to ask.",
                "Give the responses, or ask a graph.",
            )
        return self.answer(item)

    def _assess_item(self, item: EvaluationItem) -> Assessment:
        retrieval = retrieval_metrics(item)
        metrics = self.metrics
        if not item.has_answer and need_answer(metrics):
            return Assessment(item, {}, retrieval)
        if item.is_checked(metrics):
            return Assessment(item, metrics_of(item, metrics), retrieval)
        self._used = True
        judged, dropped = self.judge.judge(item, self._sink, labels_for(metrics))
        return Assessment(judged, metrics_of(judged, metrics), retrieval, "", dropped)

    def _finish_assessment(
        self, item: EvaluationItem, made: Future[Assessment], failures: list[EndpointError]
    ) -> Assessment:
        """Return the assessment, or an empty one after a model error; ``failures`` collects
        consecutive endpoint errors."""
        try:
            assessment = made.result()
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
        return assessment

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
            _encode_content(ragchecker_item(assessment.item, assessment.metrics)),
            answer=self.answer_of(assessment.item),
            error=assessment.error,
            dropped=assessment.dropped,
        )


def _metric_fractions(evaluation: Evaluation) -> dict[str, float]:
    percentages = {**evaluation.retrieval}
    for figures in evaluation.metrics.values():
        percentages |= figures
    return {name: value / 100 for name, value in percentages.items()}


def _encode_content(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


# --- in a graph ---


Questions = str | Path | Sequence[EvaluationItem]


def evaluation_run(
    parts: Components, progress: OnProgress, metrics: Sequence[str] = METRICS
) -> EvaluationRun:
    """Return a judging run according to the settings, without question answering or recording."""
    return EvaluationRun(
        Judge(parts.statements, parts.checker),
        parts.settings.chat.concurrency,
        parts.cancel,
        progress,
        metrics,
    )


class GraphEvaluation:
    """An evaluation run within a graph."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened
        self._sessions = SessionReader(opened)
        self._asked: set[str] = set()

    def run(
        self, questions: Questions, mode: str, progress: OnProgress, metrics: Sequence[str] = ()
    ) -> Evaluation:
        """As ``tgraph.extensions.lab.evaluate``."""
        chosen_names = chosen_metrics(metrics)
        name, content, items = _read_questions(questions, answered=need_answer(chosen_names))
        unanswered = any(item.response is None for item in items)
        if unanswered:
            method_of(mode, self._opened.parts)
            self._opened.context()
        run = evaluation_run(self._opened.parts, progress, chosen_names)
        run.answer = lambda item: self._answer_in_mode(item, mode)
        run.answer_of = self._answer_of
        run.record = record = self._opened.record(EvaluationRecord)
        collection = self._opened.settings.explain_collection
        chosen = mode if unanswered else None
        with on_record(record, "evaluation"):
            metric_parameters = (
                {"metrics": ", ".join(chosen_names)} if chosen_names != METRICS else {}
            )
            record.start(
                name, content, chosen, metric_parameters, self._opened.folder.name, collection
            )
            evaluation = run.run(items, chosen)
            record.finish("completed")
        return replace(evaluation, explain_collection=collection)

    def _answer_in_mode(self, item: EvaluationItem, mode: str) -> EvaluationItem:
        """Return the question with the graph's answer and its sources."""
        answer = result_of(stream_answer(self._opened, QuestionRequest(item.query, mode, ())))
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
        """Return the recorded answer IRI for a verbatim response, or None if absent."""
        uuid = item.session.removeprefix(v.session_iri(""))
        if not uuid:
            return None
        answer = v.answer_iri(uuid)
        if item.session in self._asked:
            return answer
        try:
            answer_text = NamedNode(v.answer_text_iri(uuid))
        except ValueError:
            return None
        hash_quads = match_record(self._opened.read(), answer_text, v.tg("contentHash"))
        texts = [
            self._opened.librarian.get_text(quad.object.value)
            for quad in hash_quads
            if isinstance(quad.object, Literal)
        ]
        return answer if item.response in texts else None


def _read_questions(
    questions: Questions, *, answered: bool
) -> tuple[str, str, Sequence[EvaluationItem]]:
    """Return question set name, storable content, and questions."""
    if isinstance(questions, str | Path):
        path = Path(questions)
        items = read_items(path, answered=answered)
        return path.name, path.read_text("utf-8-sig"), items
    if not questions:
        raise UsageError("There is no question to evaluate.")
    content = json.dumps([asdict(item) for item in questions], ensure_ascii=False, indent=1)
    return "questions", content, questions
