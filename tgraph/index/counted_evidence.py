"""The standing evidence as it counts under the decisions of people."""

from __future__ import annotations

from pyoxigraph import Triple

from tgraph.extract.resolution import Name
from tgraph.index.decisions import Decisions, is_amendment
from tgraph.index.standing_knowledge import (
    Properties,
    StandingEvidence,
    commonest_value,
    distinct_values,
    type_of,
)

_ABOUT = ("subject", "object")


class CountedEvidence:
    """The evidence of entities, edges and claims of the ``texts``, without what people denied."""

    def __init__(self, texts: StandingEvidence, decisions: Decisions) -> None:
        self.texts = texts
        self._decisions = decisions

    def of_entity(self, *names: str) -> list[Properties]:
        """Return counting evidence of an entity under the given names, ignoring denied names."""
        admitted = [name for name in names if not self._decisions.drops(name)]
        items = (item for name in admitted for item in self.texts.of_entity(name))
        return self._decisions.prevailing(list(items))

    def of_edge(self, edge: str, triple: Triple) -> list[Properties]:
        """Return evidence of a text edge; no evidence if an edge end is denied."""
        ends = (triple.subject, triple.object)
        return [] if any(map(self._decisions.drops, ends)) else self.texts.of_edge(edge)

    def of_claim(self, claim: str) -> list[Properties]:
        """The evidence of a claim, unless the claim is about what is denied."""
        evidence = self.texts.of_claim(claim)
        subjects = (term for item in evidence for p in _ABOUT for term in item.get(p, ()))
        return [] if any(map(self._decisions.drops, subjects)) else evidence

    def name(self, entity: str) -> Name | None:
        """The name of an entity of the texts, as names are resolved; None where no evidence of the
        entity counts."""
        evidence = self.of_entity(entity)
        if not evidence:
            return None
        items = [item for item in self.texts.of_entity(entity) if not is_amendment(item)]
        return Name(
            entity,
            commonest_value(items, "name"),
            type_of(evidence),
            frozenset(distinct_values(evidence, "aliasKey")),
            frozenset(distinct_values(evidence, "same")),
            commonest_value(items, "nameKey"),
        )
