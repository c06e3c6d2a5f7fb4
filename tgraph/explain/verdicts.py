"""What verifications have said of the sentences of answers, as it is on record."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.explain.said import Said, kind_of
from tgraph.store.base import Store


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
    found = []
    for quad in store.match(None, v.prov("wasDerivedFrom"), NamedNode(sentence), None):
        if isinstance(quad.subject, NamedNode) and kind_of(quad.subject.value) == "verdict":
            said = Said(store.match(quad.subject, None, None, quad.graph_name))
            verdict = quad.subject.value
            verification = said.one(verdict, "wasGeneratedBy")
            times = store.match(
                NamedNode(verification), v.prov("startedAtTime"), None, quad.graph_name
            )
            started = next((t.object.value for t in times if isinstance(t.object, Literal)), "")
            found.append(
                RecordedVerdict(
                    verification,
                    started,
                    said.one(verdict, "verdict"),
                    said.one(verdict, "reasoning"),
                    said.one(verdict, "lostAt"),
                    said.one(verdict, "lostIn"),
                )
            )
    return sorted(found, key=lambda verdict: (v.in_time(verdict.started), verdict.verification))
