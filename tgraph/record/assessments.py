"""Later statements about sessions, each in a bundle: evaluation, influence, verification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.record.activities import SOFTWARE, Activity, responsible, state_invalidation
from tgraph.record.bundle import (
    EVALUATION,
    INFLUENCE,
    INVALIDATION,
    VERIFICATION,
    BundleRecord,
    Clock,
)
from tgraph.store.base import Store
from tgraph.store.statements import Value, iri


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
        """The evaluation has begun, of the questions that a file of that name and content holds;
        ``mode`` is how those without an answer will be asked, if there are any."""
        kept = (v.tg("contentHash"), self.keep(content))
        self.entity(self._set, "QuestionSet", kept, label=name)
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
        subject = self.part("assessment", index)
        self._assessments.append(subject)
        with self._lock:
            self.entity(
                subject,
                "Assessment",
                (v.tg("index"), index),
                (v.tg("query"), query),
                (v.tg("contentHash"), self.keep(content)),
                (v.tg("error"), error or None),
                by=self.evaluation,
                origins=(self._set, *([answer] if answer else [])),
                metrics=metrics,
                dropped=dropped,
            )
            self._write()
        return subject

    def result(self, metrics: Mapping[str, float], content: str) -> str:
        """The means over what could be judged (0 to 1), and the whole file that they are of."""
        subject = self.entity(
            self.part("result"),
            "EvaluationResult",
            (v.tg("contentHash"), self.keep(content)),
            label="Result of the evaluation",
            by=self.evaluation,
            origins=self._assessments,
            metrics=metrics,
        )
        self._write()
        return subject


class VerificationRecord(BundleRecord):
    """One verification's provenance: a verdict is derived from the sentence that it is on, the
    result from all verdicts."""

    kind = VERIFICATION

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, uuid, clock)
        self.verification = self.subject
        self._verdicts: list[str] = []

    def start(
        self, answer: str, agent: Agent, prompts: tuple[Prompt, ...], explain_collection: str
    ) -> None:
        """The verification of an answer on record has begun; the agent is who judges."""
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
        """The verdict on a sentence; where support is missing, at which step, and in what it made,
        it was lost."""
        index = len(self._verdicts)
        subject = self.entity(
            self.part("verdict", index),
            "Verdict",
            (v.tg("index"), index),
            (v.tg("verdict"), verdict),
            (v.tg("reasoning"), reason or None),
            (v.tg("lostAt"), lost_at or None),
            (v.tg("lostIn"), iri(lost_in) if lost_in else None),
            by=self.verification,
            origins=(sentence,),
        )
        self._verdicts.append(subject)
        return subject

    def result(self, metrics: Mapping[str, float], dropped: Mapping[str, int]) -> str:
        """The measures (0 to 1), and what could not be used on the way."""
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
        """The analysis of an answer on record has begun: who writes it again, and who tells
        whether a sentence is still said."""
        self._begin(
            "Influence analysis of an answer",
            explain_collection,
            agents=(SOFTWARE, writer, measure),
            used=(answer,),
            parameters=parameters,
        )

    def ablation(self, kinds: Sequence[str], mask: str, repeat: int) -> str:
        """The answer is being written from what the mask leaves of the selection; the ablation's
        IRI. Several may be under way."""
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

    def ablated(self, ablation: str, said: str | None) -> None:
        """It has ended: which sentences were said again; None where that can't be told."""
        with self._lock:
            self.out.add(
                ablation, (v.prov("endedAtTime"), self._clock()), (v.tg("stillSaid"), said)
            )

    def influence(
        self, selection: str, influenced: str, weight: float, floor: float, *, above: bool
    ) -> str:
        """What a selection weighs for the answer or a sentence of it, and whether that is more than
        the floor."""
        subject = self.entity(
            self.part("influence", self._influences),
            "Influence",
            (v.tg("index"), self._influences),
            (v.tg("influencer"), iri(selection)),
            (v.tg("influenced"), iri(influenced)),
            (v.tg("influenceWeight"), float(weight)),
            (v.tg("influenceFloor"), float(floor)),
            (v.tg("aboveFloor"), above),
            by=self.analysis,
        )
        self._influences += 1
        return subject

    def result(
        self, metrics: Mapping[str, float], lds: float | None, dropped: Mapping[str, int]
    ) -> str:
        """The measures (0 to 1), the fit of the surrogate, and what could not be used."""
        subject = self.entity(
            self.part("influence-result"),
            "InfluenceResult",
            (v.tg("lds"), lds),
            label="Result of the influence analysis",
            by=self.analysis,
            metrics=metrics,
            dropped=dropped,
        )
        self._write()
        return subject


@dataclass(frozen=True, slots=True)
class Questioned:
    """Since when an answer does not stand (an xsd:dateTime text), and why."""

    time: str
    reason: str


class InvalidationRecord(BundleRecord):
    """One invalidation of answers that rest on a document which was retracted, or on what a person
    denied.

    An answer is still read after it has been called into question, so it is its standing that is
    invalidated (design, section 3.3).
    """

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
        """The answers of the sessions (UUIDs) are called into question because of the ``ground``,
        the document or denial; the record is finished."""
        self._begin(
            "Answers called into question",
            explain_collection,
            (v.tg("reason"), reason),
            (v.tg("collection"), collection),
            agents=responsible(person),
            used=(ground,),
        )
        ended = self._clock()
        for uuid in sessions:
            standing = v.standing_iri(uuid)
            self.entity(standing, "Standing", origins=(v.answer_iri(uuid),))
            state_invalidation(self.out, standing, self.subject, ended)
        self.finish("completed")


def questioned(store: Store) -> dict[str, Questioned]:
    """The sessions (IRIs) whose answers do not stand any more, with the first reason."""
    found: dict[str, Questioned] = {}
    for quad in store.match(None, v.prov("wasInvalidatedBy"), None, None):
        subject, activity = quad.subject, quad.object
        if not isinstance(subject, NamedNode) or not isinstance(activity, NamedNode):
            continue
        if not subject.value.startswith(v.standing_iri("")):
            continue
        time = _said(store, subject, v.prov("invalidatedAtTime"))
        said = Questioned(time, _said(store, activity, v.tg("reason")))
        session = v.session_iri(subject.value.removeprefix(v.standing_iri("")))
        if session not in found or v.in_time(said.time) < v.in_time(found[session].time):
            found[session] = said
    return found


def _said(store: Store, subject: NamedNode, predicate: NamedNode) -> str:
    found = (quad.object for quad in store.match(subject, predicate, None, None))
    return next((term.value for term in found if isinstance(term, Literal)), "")
