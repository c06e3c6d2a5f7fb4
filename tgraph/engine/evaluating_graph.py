"""Evaluating a graph: its own answers are judged, and the judgement is put on record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.engine.ask.conversation import last, stream
from tgraph.engine.evaluating import EvaluationRun, Judge
from tgraph.engine.explaining import SessionReader
from tgraph.engine.modes import method_of
from tgraph.engine.opened import OpenCollection
from tgraph.engine.parts import Parts
from tgraph.engine.progress import OnProgress
from tgraph.engine.recorded_run import on_record
from tgraph.errors import UsageError
from tgraph.explain.evaluated import Evaluation
from tgraph.explain.evaluation import EvaluationItem
from tgraph.explain.evaluation_context import ranking_of, shown_context
from tgraph.explain.evaluation_files import read_items
from tgraph.record.evaluation import EvaluationRecord
from tgraph.retrieve.filters import NO_FILTERS

Questions = str | Path | Sequence[EvaluationItem]


def evaluation_run(parts: Parts, progress: OnProgress) -> EvaluationRun:
    """A run that judges with what the settings say, asks nothing and records nothing."""
    return EvaluationRun(
        Judge(parts.statements, parts.checker),
        parts.settings.chat.concurrency,
        parts.cancel,
        progress,
    )


class GraphEvaluation:
    """One evaluation in a graph."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened
        self._sessions = SessionReader(opened)
        self._asked: set[str] = set()

    def run(self, questions: Questions, mode: str, progress: OnProgress) -> Evaluation:
        """As ``KnowledgeGraph.evaluate``."""
        name, content, items = _read(questions)
        unanswered = any(item.response is None for item in items)
        if unanswered:
            method_of(mode, self._opened.parts)
            self._opened.context()
        run = evaluation_run(self._opened.parts, progress)
        run.answer = lambda item: self._answered(item, mode)
        run.answer_of = self._answer_of
        run.record = record = self._opened.record(EvaluationRecord)
        collection = self._opened.settings.explain_collection
        chosen = mode if unanswered else None
        with on_record(record, "evaluation"):
            record.start(name, content, chosen, {}, self._opened.folder.name, collection)
            evaluation = run.run(items, chosen)
            record.finish("completed")
        return replace(evaluation, explain_collection=collection)

    def _answered(self, item: EvaluationItem, mode: str) -> EvaluationItem:
        """The question with the graph's answer, and what that was made from."""
        answer = last(stream(self._opened, item.query, mode, (), NO_FILTERS))
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


def _read(questions: Questions) -> tuple[str, str, Sequence[EvaluationItem]]:
    """The name of the set, its content as it will be kept, and the questions."""
    if isinstance(questions, str | Path):
        path = Path(questions)
        items = read_items(path)
        return path.name, path.read_text("utf-8-sig"), items
    if not questions:
        raise UsageError("There is no question to evaluate.")
    content = json.dumps([asdict(item) for item in questions], ensure_ascii=False, indent=1)
    return "questions", content, questions
