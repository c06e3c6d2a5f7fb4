"""What the texts say, as far as their documents still stand: evidence, and the edges it is for."""

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
    """What was read, each as large as it is said to be, and one more; when there is more of it than
    ``most``, it is let go of."""

    def __init__(self, most: int) -> None:
        self._found: dict[K, T] = {}
        self._most = most
        self._size = 0
        self.get = self._found.get

    def put(self, key: K, found: T, size: int = 0) -> None:
        self._size += size + 1
        if self._size > self._most:
            self._found.clear()
            self._size = size + 1
        self._found[key] = found


class StandingEvidence:
    """Reads evidence from the source graph, and keeps some of that of entities. ``stands`` tells
    whether a chunk's document still stands, ``weigh`` what evidence counts for that does not count
    as it is."""

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
        """The standing evidence of an entity of the texts, in the order of its IRIs."""
        found = self._evidence.get(entity)
        if found is None:
            found = self._of(_ENTITY, entity)
            self._evidence.put(entity, found, len(found))
        return found

    def of_edge(self, edge: str) -> list[Properties]:
        """The standing evidence of an edge of the texts, in the order of its IRIs."""
        return self._of(v.tg("edge"), edge)

    def of_claim(self, claim: str) -> list[Properties]:
        """The standing evidence of a claim, in the order of its IRIs."""
        return self._of(v.tg("claim"), claim)

    def claims_naming(self, entity: str) -> set[str]:
        """The claims about the entity, by the name that the texts have for it."""
        roles = (v.tg("subject"), v.tg("object"))
        return self._beside(roles, NamedNode(entity), (v.tg("claim"),))

    def _beside(
        self, names: Sequence[NamedNode], term: Term, wanted: Sequence[NamedNode]
    ) -> set[str]:
        """What evidence that has the term by one of the properties has by the wanted ones."""
        return {
            value(found)
            for name in names
            for item in self._with(name, term)
            for predicate in wanted
            for found in item.get(_last_part(predicate.value), ())
        }

    def _with(self, name: NamedNode, term: Term) -> Iterator[Properties]:
        """The evidence that has the term by the property, standing or not, in the order of IRIs."""
        quads = self._store.match(None, name, term, v.SOURCE_GRAPH)
        for subject in sorted((quad.subject for quad in quads), key=str):
            assert isinstance(subject, NamedNode)
            found = self._read.get(subject)
            if found is None:
                found = properties_of(self._store, subject)
                if "entity" in found:  # an edge is asked for once, an entity for much beside it
                    self._read.put(subject, found)
            yield found

    def _of(self, role: NamedNode, subject: str) -> list[Properties]:
        items = map(self._standing, self._with(role, NamedNode(subject)))
        return [item for item in items if item is not None]

    def _standing(self, found: Properties) -> Properties | None:
        if "wasDerivedFrom" not in found or not self._stands(found["wasDerivedFrom"][0].value):
            return None
        return self._weigh(found) if self._weigh else found

    def keys_of(self, entity: str) -> set[str]:
        """The names and aliases that evidence gives the entity or gave it: what does not stand any
        more may have kept others apart, or together."""
        return self._beside((_ENTITY,), NamedNode(entity), KEYS)

    def entities_with(self, key: str) -> set[str]:
        """The entities that some evidence, standing or not, gives this name or alias."""
        return self._beside(KEYS, Literal(key), (_ENTITY,))

    def same_as(self, entity: str) -> set[str]:
        """What evidence, standing or not, calls the same as the entity, or calls the entity."""
        node, entities, same = NamedNode(entity), (_ENTITY,), (v.tg("same"),)
        return self._beside(entities, node, same) | self._beside(same, node, entities)

    # --- edges of the texts ---

    def triple(self, edge: str) -> Triple | None:
        """What the edge IRI reifies."""
        quads = self._store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
        triple = next((quad.object for quad in quads), None)
        return triple if isinstance(triple, Triple) else None

    def merged_into(self, edge: str) -> list[str]:
        """The edges of the texts that became this one, now or earlier."""
        quads = self._store.match(NamedNode(edge), v.tg("mergedFrom"), None, v.SOURCE_GRAPH)
        return [value(quad.object) for quad in quads]

    def edges_naming(self, entity: str, named: str = "") -> dict[str, Triple]:
        """The edges with the entity at an end that the chunks state which name it, or ``named``."""
        found: dict[str, Triple] = {}
        for item in self.of_entity(named or entity):
            for edge, triple in self._edges_of_chunk(item["wasDerivedFrom"][0]).items():
                if entity in (_end(triple.subject), _end(triple.object)):
                    found[edge] = triple
        return found

    def _edges_of_chunk(self, chunk: NamedNode | Literal) -> dict[str, Triple]:
        found = self._chunks.get(chunk.value)
        if found is None:
            found = {}
            for part in self._store.match(None, v.prov("wasDerivedFrom"), chunk, v.SOURCE_GRAPH):
                if value(part.subject).startswith(_EVIDENCE):  # which contains nothing
                    continue
                contained = self._store.match(part.subject, v.tg("contains"), None, v.SOURCE_GRAPH)
                for quad in contained:
                    triple = self.triple(value(quad.object))
                    if triple is not None:
                        found[value(quad.object)] = triple
            self._chunks.put(chunk.value, found, len(found))
        return found


def properties_of(store: Store, evidence: NamedNode) -> Properties:
    """What the source graph says of an evidence."""
    found: dict[str, list[NamedNode | Literal]] = {"evidence": [evidence]}
    for quad in store.match(evidence, None, None, v.SOURCE_GRAPH):
        _, predicate, term, _ = quad
        assert isinstance(term, NamedNode | Literal)
        found.setdefault(_last_part(predicate.value), []).append(term)
    return found


def commonest(evidence: Sequence[Properties], name: str) -> str:
    """The commonest value of a property; of equals the longest, then the first."""
    counts = Counter(term.value for item in evidence for term in item.get(name, ()))
    if not counts:
        return ""
    return min(counts, key=lambda text: (-counts[text], -len(text), text))


def distinct(evidence: Sequence[Properties], name: str) -> list[str]:
    return sorted({term.value for item in evidence for term in item.get(name, ())})


def type_of(evidence: Sequence[Properties]) -> str:
    """The commonest type; a specific one with at least half its votes goes before a vague one."""
    kind = commonest(evidence, "entityType")
    if kind.lower() not in _VAGUE_TYPES:
        return kind
    votes = Counter(term.value for item in evidence for term in item.get("entityType", ()))
    enough = votes[kind] / 2
    specific = [k for k, n in votes.items() if k.lower() not in _VAGUE_TYPES and n >= enough]
    return min(specific, key=lambda k: (-votes[k], -len(k), k)) if specific else kind


def value(term: object) -> str:
    """The IRI or the text of a term."""
    assert isinstance(term, NamedNode | Literal)
    return term.value


def _end(term: object) -> str:
    return term.value if isinstance(term, NamedNode) else ""


@cache
def _last_part(predicate: str) -> str:
    return predicate.rpartition("#")[2].rpartition("/")[2]
