"""TrustGraph's provenance of its triples: which chunk, and of what document, a triple was read in.

Its triples are RDF like any other. Beside them, in the graph ``urn:graph:source``, a subgraph
contains triples (``tg:contains``; in the seed vocabulary a statement ``tg:reifies`` one) and is
derived from a chunk, that from a page or a section, that from a document. TrustGraph writes the
literals there without datatype or language, so triples are compared without these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.extensions.interchange.graphs.rdf_syntax import StatedTriple
from tgraph.model import ExtractedRelationship, Extraction

_HOLDS = frozenset(NamedNode(v.TG + name) for name in ("contains", "reifies"))
_DERIVED = v.prov("wasDerivedFrom")
_STEPS = 8
"""From a chunk to its document there are fewer."""

_Key = tuple[str, str, str]


class SubgraphProvenance:
    """What the subgraphs of a graph say."""

    def __init__(self, stated: Iterable[StatedTriple]) -> None:
        self._holders: dict[_Key, list[str]] = {}
        self._origin: dict[str, str] = {}
        for said in stated:
            if said.predicate in _HOLDS and isinstance(said.object, Triple):
                self._holders.setdefault(_key(*said.object), []).append(said.subject.value)
            elif said.predicate == _DERIVED and isinstance(said.object, NamedNode):
                self._origin.setdefault(said.subject.value, said.object.value)

    def __bool__(self) -> bool:
        return bool(self._holders)

    def sourced(self, found: Extraction) -> Extraction:
        """The extraction with the chunks that its statements were read in, each with the document
        that it is of."""
        relationships = tuple(
            replace(one, sources=tuple(dict.fromkeys((*one.sources, *self._sources(one)))))
            for one in found.relationships
        )
        return replace(found, relationships=relationships)

    def chunks(self, said: StatedTriple) -> tuple[str, ...]:
        """The chunks that a triple was read in."""
        ways = map(self._way, self._holders.get(_key(*said[:3]), ()))
        return tuple(dict.fromkeys(way[0] for way in ways if way))

    def _sources(self, relationship: ExtractedRelationship) -> tuple[str, ...]:
        key = _key(relationship.subject, relationship.predicate, relationship.object)
        found: dict[str, None] = {}
        for holder in self._holders.get(key, ()):
            way = self._way(holder)
            found |= dict.fromkeys((*way[:1], *way[-1:]))
        return tuple(found)

    def _way(self, holder: str) -> list[str]:
        """What the holder is derived from, step by step."""
        way: list[str] = []
        while holder in self._origin and len(way) < _STEPS:
            holder = self._origin[holder]
            way.append(holder)
        return way


def _key(subject: object, predicate: object, obj: object) -> _Key:
    return _plain(subject), _plain(predicate), _plain(obj)


def _plain(term: object) -> str:
    return term.value if isinstance(term, NamedNode | Literal) else str(term)
