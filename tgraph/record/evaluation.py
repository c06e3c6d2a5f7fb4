"""The record of an evaluation: a later statement about sessions, in a bundle of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.record.activities import state_entity
from tgraph.record.bundle import EVALUATION, BundleRecord, Clock
from tgraph.store.statements import Value


class EvaluationRecord(BundleRecord):
    """One evaluation's provenance.

    An assessment is derived from the answer that it judges; the result from all assessments. What
    was compared with what stands in the contents that the librarian keeps, as RAGChecker's JSON.
    """

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, EVALUATION, uuid, clock)
        self.evaluation = self.subject
        self._set = v.session_part_iri("questions", uuid)
        self._assessments: list[str] = []

    def start(
        self,
        name: str,
        content: str,
        mode: str | None,
        parameters: Mapping[str, Value],
        collection: str,
        explain_collection: str,
    ) -> None:
        """The evaluation has begun, of the questions that a file of that name and content holds;
        ``mode`` is how those without an answer will be asked, if there are any."""
        kept = (v.tg("contentHash"), self.keep(content))
        state_entity(self._out, self._set, "QuestionSet", kept, label=name)
        self._begin(
            "Evaluation of answers",
            explain_collection,
            (v.tg("mode"), mode),
            (v.tg("collection"), collection),
            used=(self._set,),
            parameters=parameters,
        )

    def judged_by(self, agents: Iterable[tuple[Agent, tuple[Prompt, ...]]]) -> None:
        """Who makes the statements and who checks them."""
        for agent, prompts in agents:
            self._associate(self.evaluation, agent, prompts)

    def assessment(
        self,
        query: str,
        metrics: Mapping[str, float],
        content: str,
        *,
        answer: str | None = None,
        error: str = "",
        dropped: Mapping[str, int] | None = None,
    ) -> str:
        """How one answer was judged: its metrics (0 to 1), or the error where it could not be.

        ``answer`` is the IRI of an answer on record, None where the text came from elsewhere.
        """
        index = len(self._assessments)
        subject = v.session_part_iri("assessment", self.uuid, index)
        self._assessments.append(subject)
        with self._lock:
            state_entity(
                self._out,
                subject,
                "Assessment",
                (v.tg("index"), index),
                (v.tg("query"), query),
                (v.tg("contentHash"), self.keep(content)),
                (v.tg("error"), error or None),
                by=self.evaluation,
                origins=(self._set, *([answer] if answer else [])),
            )
            self._metrics(subject, metrics)
            self.dropped(subject, dropped or {})
            self._write()
        return subject

    def result(self, metrics: Mapping[str, float], content: str) -> str:
        """The means over what could be judged (0 to 1), and the whole file that they are of."""
        subject = v.session_part_iri("result", self.uuid)
        state_entity(
            self._out,
            subject,
            "EvaluationResult",
            (v.tg("contentHash"), self.keep(content)),
            label="Result of the evaluation",
            by=self.evaluation,
            origins=self._assessments,
        )
        self._metrics(subject, metrics)
        self._write()
        return subject
