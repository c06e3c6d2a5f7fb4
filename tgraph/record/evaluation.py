"""The record of an evaluation: a later statement about sessions, in a bundle of its own.

An assessment is derived from the answer that it judges; the result from all assessments. What was
compared with what stands in the contents that the librarian keeps, as RAGChecker's JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.record.agents import SOFTWARE
from tgraph.record.bundle import EVALUATION, BundleRecord, Clock
from tgraph.store.statements import Value, iri


class EvaluationRecord(BundleRecord):
    """One evaluation's provenance."""

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
        began = self._clock()
        self._out.add(
            self.evaluation,
            (v.RDF_TYPE, [v.prov("Activity"), v.tg("Evaluation")]),
            (v.RDFS_LABEL, "Evaluation of answers"),
            (v.prov("startedAtTime"), began),
            (v.prov("used"), iri(self._set)),
            (v.tg("mode"), mode),
            (v.tg("collection"), collection),
        )
        self._out.add(
            self._set,
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("QuestionSet")]),
            (v.RDFS_LABEL, name),
            (v.tg("contentHash"), self._text(content)),
        )
        self._parameters(parameters)
        self._associate(self.evaluation, SOFTWARE)
        self._begin(began, explain_collection)

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
            self._out.add(
                subject,
                (v.RDF_TYPE, [v.prov("Entity"), v.tg("Assessment")]),
                (v.prov("wasGeneratedBy"), iri(self.evaluation)),
                (v.prov("wasDerivedFrom"), iri(self._set)),
                (v.prov("wasDerivedFrom"), iri(answer) if answer else None),
                (v.tg("index"), index),
                (v.tg("query"), query),
                (v.tg("contentHash"), self._text(content)),
                (v.tg("error"), error or None),
            )
            self._metrics(subject, metrics)
            self.dropped(subject, dropped or {})
            self._write()
        return subject

    def result(self, metrics: Mapping[str, float], content: str) -> str:
        """The means over what could be judged (0 to 1), and the whole file that they are of."""
        subject = v.session_part_iri("result", self.uuid)
        self._out.add(
            subject,
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("EvaluationResult")]),
            (v.RDFS_LABEL, "Result of the evaluation"),
            (v.prov("wasGeneratedBy"), iri(self.evaluation)),
            (v.prov("wasDerivedFrom"), map(iri, self._assessments)),
            (v.tg("contentHash"), self._text(content)),
        )
        self._metrics(subject, metrics)
        self._write()
        return subject
