"""The record of an influence analysis: a later statement about a session, in its own bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.model import Agent
from tgraph.record.activities import Activity, state_entity
from tgraph.record.agents import SOFTWARE
from tgraph.record.bundle import INFLUENCE, BundleRecord, Clock
from tgraph.store.statements import Value, iri


class InfluenceRecord(BundleRecord):
    """One influence analysis' provenance.

    Each time the answer is written again is an activity, an ablation, that says what was left of
    the selection and what of the answer was still said; the calls of it are its parts.
    """

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, INFLUENCE, uuid, clock)
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

    def parameters(self, parameters: Mapping[str, Value]) -> None:
        """How it was done, where only that has shown."""
        self._parameters(parameters)

    def ablation(self, kinds: Sequence[str], mask: str, repeat: int) -> str:
        """The answer is being written from what the mask leaves of the selection; the ablation's
        IRI. Several may be under way."""
        with self._lock:
            subject = v.session_part_iri("ablation", self.uuid, self._ablations)
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
            self._out.add(
                ablation,
                (v.prov("endedAtTime"), self._clock()),
                (v.tg("stillSaid"), said),
            )

    def influence(
        self, selection: str, influenced: str, weight: float, floor: float, *, above: bool
    ) -> str:
        """What a selection weighs for the answer or a sentence of it, and whether that is more than
        the floor."""
        subject = v.session_part_iri("influence", self.uuid, self._influences)
        state_entity(
            self._out,
            subject,
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
        subject = v.session_part_iri("influence-result", self.uuid)
        state_entity(
            self._out,
            subject,
            "InfluenceResult",
            (v.tg("lds"), lds),
            label="Result of the influence analysis",
            by=self.analysis,
        )
        self._metrics(subject, metrics)
        self.dropped(subject, dropped)
        self._write()
        return subject
