"""The edges of the texts that edges of knowledge are made of."""

from __future__ import annotations

from pyoxigraph import NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.name_resolution import Merges
from tgraph.index.standing_knowledge import StandingEvidence
from tgraph.store.base import Store
from tgraph.store.statements import edge_of


class TextEdges:
    """Finds edges of the texts in a store whose knowledge is that from before a change."""

    def __init__(self, store: Store, texts: StandingEvidence, merges: Merges) -> None:
        self._store = store
        self._texts = texts
        self._merges = merges

    def naming(self, entity: str) -> dict[str, Triple]:
        """The edges with the entity at an end, under whatever names knowledge has them. Edges
        between two names of one entity are missing: whoever names either names them."""
        edges: dict[str, Triple] = {}
        for name in self._merges.names_before(entity):
            edges |= self._texts.edges_naming(entity, name)
        node = NamedNode(self._merges.before.get(entity, entity))
        for subject, obj in (None, node), (node, None):
            for quad in self._store.match(subject, None, obj, v.KNOWLEDGE_GRAPH):
                if v.is_statement(quad.predicate):
                    edges |= self.stated_of(quad.triple, entity)
        return edges

    def stated_of(self, triple: Triple, entity: str) -> dict[str, Triple]:
        """The edges that this edge of knowledge is made of, as far as they name the entity."""
        edge = edge_of(triple)
        texts = {e: self._texts.triple(e) for e in (edge, *self._texts.merged_into(edge))}
        node = NamedNode(entity)
        return {e: t for e, t in texts.items() if t and node in (t.subject, t.object)}
