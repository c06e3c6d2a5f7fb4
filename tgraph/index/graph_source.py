"""What questions look up of the graph itself: triples, names, types, weights.

As with evidence, where it is read is a matter of its own: in the store (``StoredGraph``), or in the
table that an index run leaves beside the vectors (``tgraph.index.lookup_table``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple, Protocol

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.knowledge import is_statement
from tgraph.model import Object
from tgraph.store.base import Store, Term, select, text_of

Statement = tuple[NamedNode, NamedNode, Object]
Edges = dict[str, Statement]
"""Triples by the IRI of their edge."""

HUB = 2_000
"""Triples read of one entity in one direction; of more the first by the IRIs of their edges."""

_MOST = 5 * HUB
"""Triples among which these are looked for, where no table is."""


class EdgeAttributes(NamedTuple):
    weight: float
    description: str


class GraphSource(Protocol):
    """Look-ups in knowledge, each of many keys at once; what is not there is left out."""

    def triples(self, edges: Sequence[str]) -> Edges:
        """What the edges say, those of the texts that knowledge has under other names included."""

    def around(self, entity: str) -> Edges:
        """The statements of knowledge with the entity at an end, at most ``HUB`` each way."""

    def attributes(self, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
        """Weight and description of the edges that knowledge holds."""

    def labels(self, items: Sequence[str]) -> dict[str, str]:
        """What the resources are called; of several labels the first."""

    def aliases(self, entities: Sequence[str]) -> dict[str, list[str]]:
        """The other names of entities, sorted."""

    def types(self, items: Sequence[str]) -> dict[str, list[str]]:
        """The IRIs of the resources' types, sorted."""

    def named(self, names: Sequence[str]) -> dict[str, list[str]]:
        """For each name the entities that have exactly it, as label or alias, sorted."""


class StoredGraph:
    """A ``GraphSource`` that asks the store, for all keys in one query; around an entity in two."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def triples(self, edges: Sequence[str]) -> Edges:
        rows = self._rows("retrieve/triples", "edges", map(NamedNode, edges))
        return {text_of(row["edge"]): _statement(row) for row in rows}

    def around(self, entity: str) -> Edges:
        node = NamedNode(entity)
        found: Edges = {}
        for pattern in (node, None), (None, node):
            quads = self._store.match(pattern[0], None, pattern[1], v.KNOWLEDGE_GRAPH)
            stated = (q.triple for q in quads if is_statement(q.predicate))
            named = (t for t in stated if isinstance(t.subject, NamedNode))
            each = ((v.edge_iri(*(s := statement_of(t))), s) for t in islice(named, _MOST))
            found.update(nsmallest(HUB, each, key=lambda pair: pair[0]))
        return found

    def attributes(self, edges: Sequence[str]) -> dict[str, EdgeAttributes]:
        rows = self._rows("retrieve/edges", "edges", map(NamedNode, edges))
        return {
            text_of(row["edge"]): EdgeAttributes(
                float(text_of(row["weight"]) or 1.0), text_of(row["description"])
            )
            for row in rows
        }

    def labels(self, items: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for row in self._rows("retrieve/labels", "items", map(NamedNode, items)):
            if isinstance(row["label"], Literal):
                found.setdefault(text_of(row["item"]), row["label"].value)
        return found

    def aliases(self, entities: Sequence[str]) -> dict[str, list[str]]:
        rows = self._rows("retrieve/aliases", "entities", map(NamedNode, entities))
        return _grouped((text_of(row["entity"]), text_of(row["alias"])) for row in rows)

    def types(self, items: Sequence[str]) -> dict[str, list[str]]:
        rows = self._rows("retrieve/types", "items", map(NamedNode, items))
        return _grouped((text_of(row["item"]), text_of(row["type"])) for row in rows)

    def named(self, names: Sequence[str]) -> dict[str, list[str]]:
        rows = self._rows("retrieve/named", "names", map(Literal, names))
        return _grouped((text_of(row["name"]), text_of(row["entity"])) for row in rows)

    def _rows(
        self, query: str, parameter: str, terms: Iterable[Term]
    ) -> list[dict[str, Term | None]]:
        wanted = sorted(set(terms), key=str)
        return select(self._store, query, {parameter: wanted}, union=False) if wanted else []


def statement_of(triple: Triple) -> Statement:
    """The triple of a statement, whose subject is a resource."""
    return _statement(dict(zip(_PARTS, triple, strict=True)))


_PARTS = ("subject", "predicate", "object")


def _statement(parts: Mapping[str, Term | None]) -> Statement:
    subject, predicate, obj = (parts[name] for name in _PARTS)
    assert isinstance(subject, NamedNode)
    assert isinstance(predicate, NamedNode)
    assert isinstance(obj, NamedNode | Literal)
    return subject, predicate, obj


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, text in pairs:
        found.setdefault(key, []).append(text)
    return {key: sorted(set(texts)) for key, texts in found.items()}
