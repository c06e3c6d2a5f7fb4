"""The record of a verification: a later statement about a session, in a bundle of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.record.activities import state_entity
from tgraph.record.bundle import VERIFICATION, BundleRecord, Clock
from tgraph.store.statements import iri


class VerificationRecord(BundleRecord):
    """One verification's provenance: a verdict is derived from the sentence that it is on, the
    result from all verdicts."""

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, VERIFICATION, uuid, clock)
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
        subject = v.session_part_iri("verdict", self.uuid, index)
        self._verdicts.append(subject)
        state_entity(
            self._out,
            subject,
            "Verdict",
            (v.tg("index"), index),
            (v.tg("verdict"), verdict),
            (v.tg("reasoning"), reason or None),
            (v.tg("lostAt"), lost_at or None),
            (v.tg("lostIn"), iri(lost_in) if lost_in else None),
            by=self.verification,
            origins=(sentence,),
        )
        return subject

    def result(self, metrics: Mapping[str, float], dropped: Mapping[str, int]) -> str:
        """The measures (0 to 1), and what could not be used on the way."""
        subject = v.session_part_iri("verified", self.uuid)
        state_entity(
            self._out,
            subject,
            "VerificationResult",
            label="Result of the verification",
            by=self.verification,
            origins=self._verdicts,
        )
        self._metrics(subject, metrics)
        self.dropped(subject, dropped)
        self._write()
        return subject
