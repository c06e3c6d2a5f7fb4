"""What questions look up in one state of a graph, by the interface that both readers have.

``StoredGraph`` (``tgraph.index.stored_graph``) asks the store, and is the reference: it reads any
state, also one with filters or of an earlier generation. ``LookupTable``
(``tgraph.index.lookup_table``) reads the tables that an index run leaves beside the vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from pyoxigraph import NamedNode

from tgraph.index.evidence import EvidenceSource
from tgraph.index.hub import Hub
from tgraph.index.network_ties import NetworkTies, Wording
from tgraph.index.vectors.base import VectorIndex
from tgraph.model import Object

Statement = tuple[NamedNode, NamedNode, Object]
Edges = dict[str, Statement]
"""Triples by the IRI of their edge."""

HUB = 2_000
"""Triples read of one entity in one direction; of more the first by the IRIs of their edges."""


class EdgeAttributes(NamedTuple):
    weight: float
    description: str


class StatementSource(Protocol):
    """Knowledge look-ups for many keys at once; missing keys are left out of results."""

    def triples(self, edges: Sequence[str]) -> Edges:
        """Return edge statements, including text edges known under other names."""

    def read_edges_around(self, entity: str) -> Edges:
        """Return knowledge statements around the entity, at most ``HUB`` in each direction."""

    def attributes(self, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
        """Weight and description of the edges that knowledge holds."""

    def labels(self, items: Sequence[str]) -> dict[str, str]:
        """Return resource labels; for several labels the first."""

    def aliases(self, entities: Sequence[str]) -> dict[str, list[str]]:
        """Return other names of the entities, sorted."""

    def types(self, items: Sequence[str]) -> dict[str, list[str]]:
        """The IRIs of the resources' types, sorted."""

    def find_entities_by_name(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return, by name, sorted entities with exactly this label or alias."""


class NetworkSource(Protocol):
    """Look-ups in the network of graph ranking, whose nodes are the entities and the chunks that
    have vectors."""

    def ties(self, least: float) -> NetworkTies | None:
        """Return the ties between nodes, with synonyms of at least this similarity; None if the
        source has the network of other vectors."""

    def merged_into(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return, by entity named in texts, the entity that the named entity was merged into;
        entities without a merge are left out."""

    def find_named_resources(self, forms: Iterable[str]) -> Mapping[str, Collection[str]]:
        """Return, by form of a name, the resources with a name of the form and the chunks of
        documents with a title of the form; resources outside the network are included."""


class EntityHubSource(Protocol):
    """Look-ups of hubs: entities whose many edges stand ready with the words of their sentences."""

    def hubs(self, entities: Iterable[str]) -> dict[str, Hub]:
        """Return the entities that the source keeps as hubs, with the edges of each."""

    def triples(self, edges: Iterable[str]) -> Edges:
        """Return the statements of hub edges that knowledge states."""


class CountSource(Protocol):
    """Counts; ``degrees`` has 0 for entities without relationships."""

    def degrees(self, entities: Iterable[str]) -> dict[str, int]:
        """Return the number of relationships and attributes of each entity, at most
        ``MOST_COUNTED`` in each direction."""

    def chunk_tokens(self, chunks: Iterable[str]) -> dict[str, int]:
        """Return the lengths of the chunks in tokens, as counted when the chunks were made."""


class GraphSource(Protocol):
    """All look-ups of a question in one state of a graph."""

    @property
    def statements(self) -> StatementSource: ...

    @property
    def evidence(self) -> EvidenceSource: ...

    @property
    def hubs(self) -> EntityHubSource: ...

    @property
    def counts(self) -> CountSource: ...

    def network(self, vectors: Mapping[str, VectorIndex], wording: Wording) -> NetworkSource:
        """The network over the entities and chunks of the ``vectors``, with names in the forms of
        the ``wording``."""
