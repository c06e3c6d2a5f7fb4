"""The record of a verification: a later statement about a session, in a bundle of its own.

A verdict is derived from the sentence that it is on; the result from all verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.record.agents import SOFTWARE
from tgraph.record.bundle import VERIFICATION, BundleRecord, Clock
from tgraph.store.statements import iri


class VerificationRecord(BundleRecord):
    """One verification's provenance."""

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, VERIFICATION, uuid, clock)
        self.verification = self.subject
        self._verdicts: list[str] = []

    def start(
        self, answer: str, agent: Agent, prompts: tuple[Prompt, ...], explain_collection: str
    ) -> None:
        """The verification of an answer on record has begun; the agent is who judges."""
        began = self._clock()
        self._out.add(
            self.verification,
            (v.RDF_TYPE, [v.prov("Activity"), v.tg("Verification")]),
            (v.RDFS_LABEL, "Verification of an answer"),
            (v.prov("startedAtTime"), began),
            (v.prov("used"), iri(answer)),
        )
        self._associate(self.verification, SOFTWARE)
        self._associate(self.verification, agent, prompts)
        self._begin(began, explain_collection)

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
        subject = v.session_part_iri("verdict", self.uuid, index)
        self._verdicts.append(subject)
        self._out.add(
            subject,
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("Verdict")]),
            (v.prov("wasGeneratedBy"), iri(self.verification)),
            (v.prov("wasDerivedFrom"), iri(sentence)),
            (v.tg("index"), index),
            (v.tg("verdict"), verdict),
            (v.tg("reasoning"), reason or None),
            (v.tg("lostAt"), lost_at or None),
            (v.tg("lostIn"), iri(lost_in) if lost_in else None),
        )
        return subject

    def result(self, metrics: Mapping[str, float], dropped: Mapping[str, int]) -> str:
        """The measures (0 to 1), and what could not be used on the way."""
        subject = v.session_part_iri("verified", self.uuid)
        self._out.add(
            subject,
            (v.RDF_TYPE, [v.prov("Entity"), v.tg("VerificationResult")]),
            (v.RDFS_LABEL, "Result of the verification"),
            (v.prov("wasGeneratedBy"), iri(self.verification)),
            (v.prov("wasDerivedFrom"), map(iri, self._verdicts)),
        )
        self._metrics(subject, metrics)
        self.dropped(subject, dropped)
        self._write()
        return subject
