"""TrustGraph provenance of triples: source chunk and document of every triple.

Its triples are RDF like any other. Beside them, in the graph ``urn:graph:source``, a subgraph
contains triples (``tg:contains``; in the seed vocabulary a statement ``tg:reifies`` one) and is
derived from a chunk, that from a page or a section, that from a document. TrustGraph writes the
literals there without datatype or language, so triples are compared without these."""

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

_TripleKey = tuple[str, str, str]


class SubgraphProvenance:
    """Provenance statements found in subgraphs."""

    def __init__(self, stated: Iterable[StatedTriple]) -> None:
        self._holders: dict[_TripleKey, list[str]] = {}
        self._origin: dict[str, str] = {}
        for triple in stated:
            if triple.predicate in _HOLDS and isinstance(triple.object, Triple):
                self._holders.setdefault(_triple_key(*triple.object), []).append(
                    triple.subject.value
                )
            elif triple.predicate == _DERIVED and isinstance(triple.object, NamedNode):
                self._origin.setdefault(triple.subject.value, triple.object.value)

    def __bool__(self) -> bool:
        return bool(self._holders)

    def add_sources(self, found: Extraction) -> Extraction:
        """Return the extraction with source chunks and documents added to its statements."""
        relationships = tuple(
            replace(
                relationship,
                sources=tuple(
                    dict.fromkeys((*relationship.sources, *self._find_sources(relationship)))
                ),
            )
            for relationship in found.relationships
        )
        return replace(found, relationships=relationships)

    def chunks(self, said: StatedTriple) -> tuple[str, ...]:
        """Return a triple's source chunks."""
        ways = map(self._derivation_path, self._holders.get(_triple_key(*said[:3]), ()))
        return tuple(dict.fromkeys(way[0] for way in ways if way))

    def _find_sources(self, relationship: ExtractedRelationship) -> tuple[str, ...]:
        key = _triple_key(relationship.subject, relationship.predicate, relationship.object)
        sources: dict[str, None] = {}
        for holder in self._holders.get(key, ()):
            way = self._derivation_path(holder)
            sources |= dict.fromkeys((*way[:1], *way[-1:]))
        return tuple(sources)

    def _derivation_path(self, holder: str) -> list[str]:
        """Return a holder's derivation sources, step by step."""
        way: list[str] = []
        while holder in self._origin and len(way) < _STEPS:
            holder = self._origin[holder]
            way.append(holder)
        return way


def _triple_key(subject: object, predicate: object, obj: object) -> _TripleKey:
    return _term_text(subject), _term_text(predicate), _term_text(obj)


def _term_text(term: object) -> str:
    return term.value if isinstance(term, NamedNode | Literal) else str(term)
