"""What verifications have said of the sentences of answers, as it is on record."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.said import Said, kind_of
from tgraph.store.base import Graph, Store, text_of


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A verdict on a sentence: of which verification, when that began, and where support was lost
    (empty where it was not)."""

    verification: str
    started: str
    verdict: str
    reason: str
    lost_at: str
    lost_in: str


def verdicts_on(store: Store, sentence: str) -> list[RecordedVerdict]:
    """The verdicts on a sentence of an answer, in the order in which they were made."""
    found = [
        _verdict(store, verdict, quad.graph_name)
        for quad in store.match(None, v.prov("wasDerivedFrom"), NamedNode(sentence), None)
        if kind_of(verdict := text_of(quad.subject)) == "verdict"
    ]
    return sorted(found, key=lambda verdict: (v.in_time(verdict.started), verdict.verification))


def _verdict(store: Store, verdict: str, graph: Graph) -> RecordedVerdict:
    said = Said(store.match(NamedNode(verdict), None, None, graph))
    verification = said.one(verdict, "wasGeneratedBy")
    of_it = Said(store.match(NamedNode(verification), v.prov("startedAtTime"), None, graph))
    return RecordedVerdict(
        verification,
        of_it.one(verification, "startedAtTime"),
        *(said.one(verdict, name) for name in ("verdict", "reasoning", "lostAt", "lostIn")),
    )
