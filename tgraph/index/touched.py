"""The entities, edges and claims whose knowledge is to be derived again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyoxigraph import NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.standing_knowledge import StandingEvidence, term_value
from tgraph.store.base import Store, select_rows


@dataclass(slots=True)
class Touched:
    """Entities, edges and claims with changed evidence, as named in the texts."""

    entities: set[str] = field(default_factory=set)
    edges: dict[str, Triple] = field(default_factory=dict)
    claims: set[str] = field(default_factory=set)


def touch_unsummarised(store: Store, touched: Touched) -> None:
    """Touch subjects with multiple parallel descriptions, derived without a summariser."""
    texts = StandingEvidence(store, lambda chunk: True)
    for row in select_rows(store, "index/several-descriptions"):
        subject = row["subject"]
        assert isinstance(subject, NamedNode)
        triple = texts.triple(subject.value)
        if triple is not None:
            touched.edges[subject.value] = triple
        else:
            touched.entities.add(subject.value)


def touch_everything(store: Store, touched: Touched) -> None:
    """Touch all entities, edges and claims with evidence."""
    texts = StandingEvidence(store, lambda chunk: True)
    for edge in _with_evidence(store, "edge"):
        triple = texts.triple(edge)
        if triple is not None:
            touched.edges[edge] = triple
    touched.entities.update(_with_evidence(store, "entity"))
    touched.claims.update(_with_evidence(store, "claim"))


def _with_evidence(store: Store, role: str) -> Iterator[str]:
    for quad in store.match(None, v.tg(role), None, v.SOURCE_GRAPH):
        yield term_value(quad.object)
