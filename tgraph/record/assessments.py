"""Later statements about sessions, each in a bundle: evaluation, influence, verification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.record.activities import SOFTWARE, Activity, responsible_agents, state_invalidation
from tgraph.record.bundle import (
    EVALUATION,
    INFLUENCE,
    INVALIDATION,
    VERIFICATION,
    BundleRecord,
    Clock,
)
from tgraph.store.base import Store, match_record
from tgraph.store.statements import Value, iri_node


class EvaluationRecord(BundleRecord):
    """One evaluation's provenance.

    An assessment is derived from the answer that it judges; the result from all assessments. What
    was compared with what stands in the contents that the librarian keeps, as RAGChecker's JSON.
    """

    kind = EVALUATION

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, uuid, clock)
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
        """Record the start of an evaluation: question file name, file content, parameters,
        collection.

        ``mode`` is the query mode for questions without an answer, if such questions exist."""
        content_pair = (v.tg("contentHash"), self.keep_content(content))
        self.entity(self._set, "QuestionSet", content_pair, label=name)
        self._begin(
            "Evaluation of answers",
            explain_collection,
            (v.tg("mode"), mode),
            (v.tg("collection"), collection),
            used=(self._set,),
            parameters=parameters,
        )

    def judged_by(self, agents: Iterable[tuple[Agent, tuple[Prompt, ...]]]) -> None:
        """Record agents with prompts: the statement maker and the statement checker."""
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
        """Record the assessment of an answer: metrics (0 to 1), or the error preventing
        judgement.

        ``answer`` is the IRI of a recorded answer, or None for text from elsewhere."""
        index = len(self._assessments)
        subject = self.part("assessment", index)
        self._assessments.append(subject)
        with self._lock:
            self.entity(
                subject,
                "Assessment",
                (v.tg("index"), index),
                (v.tg("query"), query),
                (v.tg("contentHash"), self.keep_content(content)),
                (v.tg("error"), error or None),
                by=self.evaluation,
                origins=(self._set, *([answer] if answer else [])),
                metrics=metrics,
                dropped=dropped,
            )
            self._write()
        return subject

    def result(self, metrics: Mapping[str, float], content: str) -> str:
        """Record mean metrics over judged answers (0 to 1), plus the complete result file."""
        subject = self.entity(
            self.part("result"),
            "EvaluationResult",
            (v.tg("contentHash"), self.keep_content(content)),
            label="Result of the evaluation",
            by=self.evaluation,
            origins=self._assessments,
            metrics=metrics,
        )
        self._write()
        return subject


class VerificationRecord(BundleRecord):
    """The provenance record of a verification.

    Each verdict derives from the judged sentence or answer, the result from all verdicts."""

    kind = VERIFICATION

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, uuid, clock)
        self.verification = self.subject
        self._verdicts: list[str] = []

    def start(
        self, answer: str, agent: Agent, prompts: tuple[Prompt, ...], explain_collection: str
    ) -> None:
        """Record the start of a verification for a recorded answer; ``agent`` is the judge."""
        self._associate(self.verification, agent, prompts)
        self._begin("Verification of an answer", explain_collection, used=(answer,))

    def verdict(
        self,
        sentence: str,
        verdict: str,
        reason: str,
        *,
        lost_at: str = "",
        lost_in: str = "",
    ) -> str:
        """Record the verdict on a sentence, or on the answer as a whole.

        If support is missing, also record the step that lost the support and the step's
        affected output."""
        index = len(self._verdicts)
        subject = self.entity(
            self.part("verdict", index),
            "Verdict",
            (v.tg("index"), index),
            (v.tg("verdict"), verdict),
            (v.tg("reasoning"), reason or None),
            (v.tg("lostAt"), lost_at or None),
            (v.tg("lostIn"), iri_node(lost_in) if lost_in else None),
            by=self.verification,
            origins=(sentence,),
        )
        self._verdicts.append(subject)
        return subject

    def result(self, metrics: Mapping[str, float], dropped: Mapping[str, int]) -> str:
        """Record the verification metrics (0 to 1) and counts of unusable items."""
        subject = self.entity(
            self.part("verified"),
            "VerificationResult",
            label="Result of the verification",
            by=self.verification,
            origins=self._verdicts,
            metrics=metrics,
            dropped=dropped,
        )
        self._write()
        return subject


class InfluenceRecord(BundleRecord):
    """One influence analysis' provenance.

    Each time the answer is written again is an activity, an ablation, that says what was left of
    the selection and what of the answer was still said; the calls of it are its parts.
    """

    kind = INFLUENCE

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, uuid, clock)
        self.analysis = self.subject
        self._ablations = 0
        self._influences = 0

    def start(
        self,
        answer: str,
        writer: Agent,
        measure: Agent,
        parameters: Mapping[str, Value],
        explain_collection: str,
    ) -> None:
        """Record the start of an influence analysis for a recorded answer.

        ``writer`` rewrites the answer; ``measure`` decides whether a sentence is still said."""
        self._begin(
            "Influence analysis of an answer",
            explain_collection,
            agents=(SOFTWARE, writer, measure),
            used=(answer,),
            parameters=parameters,
        )

    def ablation(self, kinds: Sequence[str], mask: str, repeat: int) -> str:
        """Record an ablation run: writing the answer from the selection part left by the mask.
        Return the ablation IRI.

        Several ablations may run at once."""
        with self._lock:
            subject = self.part("ablation", self._ablations)
            self._activity(
                Activity(
                    subject,
                    ("Ablation",),
                    "Writing the answer from a part of the selection",
                    self._clock(),
                    part_of=self.analysis,
                ),
                (v.tg("index"), self._ablations),
                (v.tg("ablationKind"), list(kinds)),
                (v.tg("mask"), mask),
                (v.tg("repetition"), repeat),
            )
            self._ablations += 1
        return subject

    def record_ablation(self, ablation: str, said: str | None) -> None:
        """Record the end of an ablation with the repeated sentences; None if repetition can't
        be determined."""
        with self._lock:
            self.out.add(
                ablation, (v.prov("endedAtTime"), self._clock()), (v.tg("stillSaid"), said)
            )

    def influence(
        self, selection: str, influenced: str, weight: float, floor: float, *, above: bool
    ) -> str:
        """Record a selection's influence weight on the answer or a sentence, and whether the
        weight exceeds the floor."""
        subject = self.entity(
            self.part("influence", self._influences),
            "Influence",
            (v.tg("index"), self._influences),
            (v.tg("influencer"), iri_node(selection)),
            (v.tg("influenced"), iri_node(influenced)),
            (v.tg("influenceWeight"), float(weight)),
            (v.tg("influenceFloor"), float(floor)),
            (v.tg("aboveFloor"), above),
            by=self.analysis,
        )
        self._influences += 1
        return subject

    def result(self, metrics: Mapping[str, float], dropped: Mapping[str, int]) -> str:
        """Record the metrics (0 to 1) and counts of unusable items."""
        subject = self.entity(
            self.part("influence-result"),
            "InfluenceResult",
            label="Result of the influence analysis",
            by=self.analysis,
            metrics=metrics,
            dropped=dropped,
        )
        self._write()
        return subject


@dataclass(frozen=True, slots=True)
class Questioned:
    """An answer's loss of standing: start time (an xsd:dateTime text) and reason."""

    time: str
    reason: str


class InvalidationRecord(BundleRecord):
    """The record of an invalidation: answers resting on a retracted document or on statements
    denied by a person.

    Users can still read an answer called into question, so the invalidation concerns the
    answer's standing (design, section 3.3)."""

    kind = INVALIDATION

    def write(
        self,
        ground: str,
        reason: str,
        sessions: Iterable[str],
        person: str | None,
        collection: str,
        explain_collection: str,
    ) -> None:
        """Record the invalidation of the sessions' answers (UUIDs) because of ``ground``, then
        finish the record.

        ``ground`` is the retracted document or the denial."""
        self._begin(
            "Answers called into question",
            explain_collection,
            (v.tg("reason"), reason),
            (v.tg("collection"), collection),
            agents=responsible_agents(person),
            used=(ground,),
        )
        ended = self._clock()
        for uuid in sessions:
            standing = v.standing_iri(uuid)
            self.entity(standing, "Standing", origins=(v.answer_iri(uuid),))
            state_invalidation(self.out, standing, self.subject, ended)
        self.finish("completed")


def find_questioned_sessions(store: Store) -> dict[str, Questioned]:
    """Return session IRIs whose answers no longer stand, each with the earliest reason."""
    invalidations: dict[str, Questioned] = {}
    for quad in match_record(store, None, v.prov("wasInvalidatedBy")):
        subject, activity = quad.subject, quad.object
        if not isinstance(subject, NamedNode) or not isinstance(activity, NamedNode):
            continue
        if not subject.value.startswith(v.standing_iri("")):
            continue
        time = _read_literal(store, quad, subject, v.prov("invalidatedAtTime"))
        reason = _read_literal(store, quad, activity, v.tg("reason"))
        invalidation = Questioned(time, reason)
        session = v.session_iri(subject.value.removeprefix(v.standing_iri("")))
        if session not in invalidations or v.in_time(invalidation.time) < v.in_time(
            invalidations[session].time
        ):
            invalidations[session] = invalidation
    return invalidations


def _read_literal(store: Store, said: Quad, subject: NamedNode, predicate: NamedNode) -> str:
    """Return a literal that the graph of a quad states of a subject."""
    terms = (quad.object for quad in store.match(subject, predicate, None, said.graph_name))
    return next((term.value for term in terms if isinstance(term, Literal)), "")
