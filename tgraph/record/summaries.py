"""The record of summaries: each sentence leads to the evidence whose descriptions it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.extract.summaries import Summary
from tgraph.index.descriptions import Described
from tgraph.model import Agent, Prompt
from tgraph.record.agents import associations
from tgraph.store.statements import Statements, iri


class SummaryRecord:
    """One making of a summary: the activity, and what it made.

    ``error`` tells why the summariser that was asked made none, where another had to stand in.
    """

    def __init__(self, run: str, described: Described, summary: str, text: Summary) -> None:
        self._run = run
        self._described = described
        self._summary = summary
        self._text = text
        uuid = run.rpartition(":")[2]
        self.activity = f"{v.URN}summarising:{uuid}:{v.digest(summary)}"

    def state(
        self,
        out: Statements,
        agent: Agent,
        prompts: Iterable[Prompt],
        started: datetime,
        ended: datetime,
        error: str = "",
    ) -> None:
        """All of it: the activity, the summary, and its sentences in order."""
        self._made_by(out, started, ended, error)
        associations(out, self.activity, agent, prompts)
        originals = self._described.originals
        evidence = sorted({one for original in originals for one in original.evidence})
        self._entity(out, self._summary, v.tg("DescriptionSummary"), self._text.text, evidence)
        out.add(
            self._summary,
            (v.prov("generatedAtTime"), ended),
            (v.tg("summarises"), iri(self._described.subject)),
        )
        for index, sentence in enumerate(self._text.sentences):
            name = f"{self._summary}:{index}"
            rests_on = sorted({one for at in sentence.rests_on for one in originals[at].evidence})
            self._entity(out, name, v.tg("SummarySentence"), sentence.text, rests_on)
            out.add(name, (v.dcterms("isPartOf"), iri(self._summary)), (v.tg("index"), index))
            out.add(self._summary, (v.tg("sentence"), iri(name)))

    def _made_by(self, out: Statements, started: datetime, ended: datetime, error: str) -> None:
        out.add(
            self.activity,
            (v.RDF_TYPE, [v.prov("Activity"), v.tg("Summarising")]),
            (v.RDFS_LABEL, "Summary of descriptions"),
            (v.dcterms("isPartOf"), iri(self._run)),
            (v.prov("startedAtTime"), started),
            (v.prov("endedAtTime"), ended),
            (v.tg("error"), error or None),
        )
        for reason, count in sorted(self._text.dropped.items()):
            key = f"{v.URN}prov:dropped:{v.digest(self.activity, reason)}"
            out.add(self.activity, (v.tg("dropped"), iri(key)))
            out.add(
                key, (v.RDF_TYPE, v.tg("Dropped")), (v.tg("reason"), reason), (v.tg("count"), count)
            )

    def _entity(
        self, out: Statements, name: str, kind: NamedNode, text: str, evidence: Iterable[str]
    ) -> None:
        out.add(
            name,
            (v.RDF_TYPE, [v.prov("Entity"), kind]),
            (v.prov("wasGeneratedBy"), iri(self.activity)),
            (v.prov("wasDerivedFrom"), map(iri, evidence)),
            (v.tg("text"), text),
        )
