"""The ``GraphSource`` of a store: queries and matches of statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.evidence import StoredEvidence
from tgraph.index.graph_source import HUB, EdgeAttributes, Edges, Statement
from tgraph.index.hub import Hub
from tgraph.index.network_ties import Wording
from tgraph.index.stored_network import StoredNetwork
from tgraph.index.vectors.base import VectorIndex
from tgraph.store.base import Store, Term, select_rows, text_of

_MOST = 5 * HUB
"""Triples among which those of a hub are looked for."""

MOST_COUNTED = 2_000
"""Relationships of an entity that are counted in each direction."""


class StoredGraph:
    """A ``GraphSource`` that reads the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.statements = StoredStatements(store)
        self.evidence = StoredEvidence(store)
        self.hubs = StoredHubs()
        self.counts = StoredCounts(store)

    def network(self, vectors: Mapping[str, VectorIndex], wording: Wording) -> StoredNetwork:
        return StoredNetwork(self._store, vectors, wording)


class StoredStatements:
    """A ``StatementSource`` that asks the store, for all keys in one query; around an entity in
    two."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def triples(self, edges: Sequence[str]) -> Edges:
        rows = self._rows("retrieve/triples", "edges", map(NamedNode, edges))
        return {text_of(row["edge"]): _parse_statement(row) for row in rows}

    def read_edges_around(self, entity: str) -> Edges:
        node = NamedNode(entity)
        edges: Edges = {}
        for pattern in (node, None), (None, node):
            quads = self._store.match(pattern[0], None, pattern[1], v.KNOWLEDGE_GRAPH)
            triples = (q.triple for q in quads if v.is_statement(q.predicate))
            named_triples = (t for t in triples if isinstance(t.subject, NamedNode))
            pairs = ((v.edge_iri(*(s := statement_of(t))), s) for t in islice(named_triples, _MOST))
            edges.update(nsmallest(HUB, pairs, key=lambda pair: pair[0]))
        return edges

    def attributes(self, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
        rows = self._rows("retrieve/edges", "edges", map(NamedNode, edges))
        return {
            text_of(row["edge"]): EdgeAttributes(
                float(text_of(row["weight"]) or 1.0), text_of(row["description"])
            )
            for row in rows
        }

    def labels(self, items: Sequence[str]) -> dict[str, str]:
        labels: dict[str, str] = {}
        for row in self._rows("retrieve/labels", "items", map(NamedNode, items)):
            if isinstance(row["label"], Literal):
                labels.setdefault(text_of(row["item"]), row["label"].value)
        return labels

    def aliases(self, entities: Sequence[str]) -> dict[str, list[str]]:
        rows = self._rows("retrieve/aliases", "entities", map(NamedNode, entities))
        return _group_texts((text_of(row["entity"]), text_of(row["alias"])) for row in rows)

    def types(self, items: Sequence[str]) -> dict[str, list[str]]:
        rows = self._rows("retrieve/types", "items", map(NamedNode, items))
        return _group_texts((text_of(row["item"]), text_of(row["type"])) for row in rows)

    def find_entities_by_name(self, names: Sequence[str]) -> dict[str, list[str]]:
        rows = self._rows("retrieve/named", "names", map(Literal, names))
        return _group_texts((text_of(row["name"]), text_of(row["entity"])) for row in rows)

    def _rows(
        self, query: str, parameter: str, terms: Iterable[Term]
    ) -> list[dict[str, Term | None]]:
        sorted_terms = sorted(set(terms), key=str)
        return select_rows(self._store, query, {parameter: sorted_terms}) if sorted_terms else []


class StoredHubs:
    """A ``EntityHubSource`` that keeps no hubs: all entities are ranked edge by edge."""

    def hubs(self, entities: Iterable[str]) -> dict[str, Hub]:
        return {}

    def triples(self, edges: Iterable[str]) -> Edges:
        return {}


class StoredCounts:
    """A ``CountSource`` that counts statements, one entity after the other."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def degrees(self, entities: Iterable[str]) -> dict[str, int]:
        return {entity: self._degree(NamedNode(entity)) for entity in entities}

    def _degree(self, node: NamedNode) -> int:
        outgoing = self._store.match(node, None, None, v.KNOWLEDGE_GRAPH)
        incoming = self._store.match(None, None, node, v.KNOWLEDGE_GRAPH)
        ways = ((q for q in quads if v.is_statement(q.predicate)) for quads in (outgoing, incoming))
        return sum(1 for statements in ways for _ in islice(statements, MOST_COUNTED))

    def chunk_tokens(self, chunks: Iterable[str]) -> dict[str, int]:
        nodes = [NamedNode(chunk) for chunk in chunks]
        rows = select_rows(self._store, "retrieve/chunk-tokens", {"chunks": nodes})
        return {text_of(row["chunk"]): int(text_of(row["tokens"])) for row in rows}


def statement_of(triple: Triple) -> Statement:
    """Return a statement's triple, checking that the subject is a resource."""
    return _parse_statement(dict(zip(_PARTS, triple, strict=True)))


_PARTS = ("subject", "predicate", "object")


def _parse_statement(parts: Mapping[str, Term | None]) -> Statement:
    subject, predicate, obj = (parts[name] for name in _PARTS)
    assert isinstance(subject, NamedNode)
    assert isinstance(predicate, NamedNode)
    assert isinstance(obj, NamedNode | Literal)
    return subject, predicate, obj


def _group_texts(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, text in pairs:
        groups.setdefault(key, []).append(text)
    return {key: sorted(set(texts)) for key, texts in groups.items()}
