"""Text statements of standing documents: evidence with the supported edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Generic, TypeVar

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.store.base import Store, Term

Properties = Mapping[str, Sequence[NamedNode | Literal]]
"""The values of an evidence by the last part of the predicate's name, such as ``nameKey``; its own
IRI is under ``evidence``."""

Weigh = Callable[[Properties], Properties | None]
"""What a piece of evidence counts for; None where it does not count."""

_VAGUE_TYPES = frozenset({"", "concept", "thing"})
_ENTITY = v.tg("entity")
_EVIDENCE = f"{v.URN}evidence:"
KEYS = (v.tg("nameKey"), v.tg("aliasKey"))


KEPT_EVIDENCE = 150_000
"""Pieces of evidence that are kept, about 3 kB each: those of the names that a change of a page
touches."""

KEPT_EDGES = 100_000
"""Edges of chunks that are kept, about 500 bytes each."""

K = TypeVar("K")
T = TypeVar("T")


class _RecentlyRead(Generic[K, T]):
    """A cache of read values with stated sizes, each counted plus one; emptied when the total
    exceeds ``most``."""

    def __init__(self, most: int) -> None:
        self._found: dict[K, T] = {}
        self._most = most
        self._size = 0
        self.get = self._found.get

    def add_item(self, key: K, found: T, size: int = 0) -> None:
        self._size += size + 1
        if self._size > self._most:
            self._found.clear()
            self._size = size + 1
        self._found[key] = found


class StandingEvidence:
    """A reader of source graph evidence, caching some entity evidence.

    ``stands`` returns whether a chunk's document still stands; ``weigh`` selects evidence that
    counts differently from its record."""

    def __init__(
        self, store: Store, stands: Callable[[str], bool], weigh: Weigh | None = None
    ) -> None:
        self._store = store
        self._stands = stands
        self._weigh = weigh
        self._evidence = _RecentlyRead[str, list[Properties]](KEPT_EVIDENCE)
        self._read = _RecentlyRead[NamedNode, Properties](KEPT_EVIDENCE)
        self._chunks = _RecentlyRead[str, dict[str, Triple]](KEPT_EDGES)

    def of_entity(self, entity: str) -> Sequence[Properties]:
        """Return standing evidence of a text entity, sorted by evidence IRI."""
        evidence = self._evidence.get(entity)
        if evidence is None:
            evidence = self._standing_evidence(_ENTITY, entity)
            self._evidence.add_item(entity, evidence, len(evidence))
        return evidence

    def of_edge(self, edge: str) -> list[Properties]:
        """Return standing evidence of a text edge, sorted by evidence IRI."""
        return self._standing_evidence(v.tg("edge"), edge)

    def of_claim(self, claim: str) -> list[Properties]:
        """Return standing evidence of a claim, sorted by evidence IRI."""
        return self._standing_evidence(v.tg("claim"), claim)

    def claims_naming(self, entity: str) -> set[str]:
        """Return claims about the entity, given its text name."""
        roles = (v.tg("subject"), v.tg("object"))
        return self._related_values(roles, NamedNode(entity), (v.tg("claim"),))

    def _related_values(
        self, names: Sequence[NamedNode], term: Term, wanted: Sequence[NamedNode]
    ) -> set[str]:
        """Return values of the ``wanted`` properties, from evidence having the term in one of
        ``names``."""
        return {
            term_value(node)
            for name in names
            for item in self._find_evidence(name, term)
            for predicate in wanted
            for node in item.get(_last_part(predicate.value), ())
        }

    def _find_evidence(self, name: NamedNode, term: Term) -> Iterator[Properties]:
        """Yield evidence having the term as property value, standing or not, sorted by IRI."""
        quads = self._store.match(None, name, term, v.SOURCE_GRAPH)
        for subject in sorted((quad.subject for quad in quads), key=str):
            assert isinstance(subject, NamedNode)
            properties = self._read.get(subject)
            if properties is None:
                properties = properties_of(self._store, subject)
                if (
                    "entity" in properties
                ):  # an edge is asked for once, an entity for much beside it
                    self._read.add_item(subject, properties)
            yield properties

    def _standing_evidence(self, role: NamedNode, subject: str) -> list[Properties]:
        items = map(self._weigh_standing, self._find_evidence(role, NamedNode(subject)))
        return [item for item in items if item is not None]

    def _weigh_standing(self, found: Properties) -> Properties | None:
        if "wasDerivedFrom" not in found or not self._stands(found["wasDerivedFrom"][0].value):
            return None
        return self._weigh(found) if self._weigh else found

    def keys_of(self, entity: str) -> set[str]:
        """Return names and aliases given to the entity by evidence, standing or not.

        Evidence no longer standing may have kept other entities apart, or together."""
        return self._related_values((_ENTITY,), NamedNode(entity), KEYS)

    def entities_with(self, key: str) -> set[str]:
        """Return entities given this name or alias by evidence, standing or not."""
        return self._related_values(KEYS, Literal(key), (_ENTITY,))

    def same_as(self, entity: str) -> set[str]:
        """Return entities declared equal to the entity, in either direction, by evidence
        standing or not."""
        node, entities, same = NamedNode(entity), (_ENTITY,), (v.tg("same"),)
        return self._related_values(entities, node, same) | self._related_values(
            same, node, entities
        )

    # --- edges of the texts ---

    def triple(self, edge: str) -> Triple | None:
        """What the edge IRI reifies."""
        quads = self._store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        triple = next((quad.object for quad in quads), None)
        return triple if isinstance(triple, Triple) else None

    def merged_into(self, edge: str) -> list[str]:
        """Return text edges merged into the given edge, now or earlier."""
        quads = self._store.match(NamedNode(edge), v.tg("mergedFrom"), None, v.SOURCE_GRAPH)
        return [term_value(quad.object) for quad in quads]

    def edges_naming(self, entity: str, named: str = "") -> dict[str, Triple]:
        """Return edges with the entity at an end, stated by chunks that mention the entity or
        ``named``."""
        edges: dict[str, Triple] = {}
        for item in self.of_entity(named or entity):
            for edge, triple in self._edges_of_chunk(item["wasDerivedFrom"][0]).items():
                if entity in (_end_iri(triple.subject), _end_iri(triple.object)):
                    edges[edge] = triple
        return edges

    def _edges_of_chunk(self, chunk: NamedNode | Literal) -> dict[str, Triple]:
        edges = self._chunks.get(chunk.value)
        if edges is None:
            edges = {}
            for part in self._store.match(None, v.prov("wasDerivedFrom"), chunk, v.SOURCE_GRAPH):
                if term_value(part.subject).startswith(_EVIDENCE):  # which contains nothing
                    continue
                contained = self._store.match(part.subject, v.tg("contains"), None, v.SOURCE_GRAPH)
                for quad in contained:
                    triple = self.triple(term_value(quad.object))
                    if triple is not None:
                        edges[term_value(quad.object)] = triple
            self._chunks.add_item(chunk.value, edges, len(edges))
        return edges


def properties_of(store: Store, evidence: NamedNode) -> Properties:
    """Return source graph properties of an evidence."""
    properties: dict[str, list[NamedNode | Literal]] = {"evidence": [evidence]}
    for quad in store.match(evidence, None, None, v.SOURCE_GRAPH):
        _, predicate, term, _ = quad
        assert isinstance(term, NamedNode | Literal)
        properties.setdefault(_last_part(predicate.value), []).append(term)
    return properties


def commonest_value(evidence: Sequence[Properties], name: str) -> str:
    """Return a property's commonest value; among equally common values the longest, then the
    alphabetically first."""
    counts = Counter(term.value for item in evidence for term in item.get(name, ()))
    if not counts:
        return ""
    return min(counts, key=lambda text: (-counts[text], -len(text), text))


def distinct_values(evidence: Sequence[Properties], name: str) -> list[str]:
    return sorted({term.value for item in evidence for term in item.get(name, ())})


def type_of(evidence: Sequence[Properties]) -> str:
    """Return the commonest type; a vague type gives way to a specific type with at least half
    the votes."""
    kind = commonest_value(evidence, "entityType")
    if kind.lower() not in _VAGUE_TYPES:
        return kind
    votes = Counter(term.value for item in evidence for term in item.get("entityType", ()))
    enough = votes[kind] / 2
    specific = [k for k, n in votes.items() if k.lower() not in _VAGUE_TYPES and n >= enough]
    return min(specific, key=lambda k: (-votes[k], -len(k), k)) if specific else kind


def term_value(term: object) -> str:
    """Return the IRI or text of a term."""
    assert isinstance(term, NamedNode | Literal)
    return term.value


def _end_iri(term: object) -> str:
    return term.value if isinstance(term, NamedNode) else ""


@cache
def _last_part(predicate: str) -> str:
    return predicate.rpartition("#")[2].rpartition("/")[2]
