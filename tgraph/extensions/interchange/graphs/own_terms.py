"""What tgraph exported, read again: entities, edges with their attributes, and claims.

Elsewhere tgraph's own terms are reserved. Here they say of whole things what they are, so that what
is imported is what was exported: a weight is one piece of evidence of that strength, and each
description another of none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.extensions.interchange.graphs.base import read_number
from tgraph.extensions.interchange.graphs.rdf_syntax import RdfTerm, StatedTriple
from tgraph.model import (
    Chunk,
    ClaimStatus,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Span,
)

UNPLACED = "another description of an edge in the same place"
_STATUSES: dict[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE", "SUSPECTED": "SUSPECTED"}
_KINDS = ("Entity", "Relation", "EntityType", "Edge", "Claim")
_CLASSES = {v.tg(kind): kind for kind in _KINDS}
_DESCRIPTION = v.tg("description")
_MINTED = v.type_iri("")


@dataclass(slots=True)
class _DescribedThing:
    """A resource described by an export."""

    kind: str
    said: dict[NamedNode, list[RdfTerm]] = field(default_factory=dict)

    def texts(self, predicate: NamedNode) -> list[str]:
        terms = self.said.get(predicate, ())
        return sorted(term.value for term in terms if isinstance(term, NamedNode | Literal))

    def text(self, predicate: NamedNode) -> str:
        return next(iter(self.texts(predicate)), "")


class OwnTerms:
    """Graph resources described in tgraph's vocabulary."""

    def __init__(self, stated: Iterable[StatedTriple]) -> None:
        triples = [triple for triple in stated if triple.graph != v.SOURCE_GRAPH.value]
        self._things: dict[str, _DescribedThing] = {}
        for triple in triples:
            kind = triple.object
            if triple.predicate == v.RDF_TYPE and isinstance(kind, NamedNode) and kind in _CLASSES:
                self._things.setdefault(triple.subject.value, _DescribedThing(_CLASSES[kind]))
        self._edges: dict[Triple, str] = {}
        for triple in triples:
            resource = self._things.get(triple.subject.value)
            if resource is not None:
                resource.said.setdefault(triple.predicate, []).append(triple.object)
                if triple.predicate == v.RDF_REIFIES and isinstance(triple.object, Triple):
                    self._edges[triple.object] = triple.subject.value

    def __bool__(self) -> bool:
        return any(resource.kind == "Entity" for resource in self._things.values())

    def takes(self, said: StatedTriple) -> bool:
        """Tell whether a triple belongs to tgraph's own export, read by this class."""
        if said.graph == v.SOURCE_GRAPH.value:
            return True
        if not isinstance(said.object, Triple):
            obj: NamedNode | Literal = said.object
            if Triple(said.subject, said.predicate, obj) in self._edges:
                return True
        resource = self._things.get(said.subject.value)
        return resource is not None and (
            resource.kind != "Entity" or said.predicate in _ABOUT or said.predicate == v.RDF_TYPE
        )

    def extraction(
        self, chunk: Chunk, run: Sequence[StatedTriple], text: str, key: str
    ) -> Extraction:
        """Return the extraction of the triples read here."""
        chunk_statements = _ChunkStatements(self, text)
        for triple in run:
            if (resource := self._things.get(triple.subject.value)) and self.takes(triple):
                chunk_statements.add_statement(triple, resource)
        return Extraction(
            chunk.iri,
            (*chunk_statements.entities, *chunk_statements.ends()),
            tuple(chunk_statements.relationships),
            key,
            chunk_statements.dropped,
            tuple(chunk_statements.claims),
        )

    def entity(self, iri: str, span: Span, **told: object) -> ExtractedEntity:
        """Return an entity labelled consistently across the graph."""
        resource = self._things.get(iri, _DescribedThing("Entity"))
        minted = (
            type_iri for type_iri in resource.texts(v.RDF_TYPE) if type_iri.startswith(_MINTED)
        )
        kind = next((unquote(type_iri.removeprefix(_MINTED)) for type_iri in minted), "concept")
        name = resource.text(v.RDFS_LABEL) or v.local_words(iri)
        return ExtractedEntity(name, kind, span=span, iri=iri, **told)  # type: ignore[arg-type]

    def label(self, iri: str) -> str:
        """Return a relation's label."""
        resource = self._things.get(iri)
        return resource.text(v.RDFS_LABEL) if resource else ""


_ABOUT = frozenset((v.RDFS_LABEL, v.SKOS_ALT_LABEL, _DESCRIPTION))


class _ChunkStatements:
    """Statements read from a chunk."""

    def __init__(self, own: OwnTerms, text: str) -> None:
        self.entities: list[ExtractedEntity] = []
        self.relationships: list[ExtractedRelationship] = []
        self.claims: list[ExtractedClaim] = []
        self.dropped: dict[str, int] = {}
        self._own = own
        self._text = text
        self._ends: dict[str, Span] = {}
        self._places: set[tuple[str, int, int]] = set()

    def ends(self) -> Iterator[ExtractedEntity]:
        """Yield entities mentioned as ends without description in the chunk."""
        described = {entity.iri for entity in self.entities}
        for iri, span in self._ends.items():
            if iri not in described:
                yield self._own.entity(iri, span)

    def add_statement(self, said: StatedTriple, thing: _DescribedThing) -> None:
        """Read a triple about a resource; multi-triple statements are recorded once."""
        begins = said.predicate == v.RDF_TYPE and said.object == v.tg(thing.kind)
        if thing.kind == "Entity":
            self._take_entity(said, thing, begins=begins)
        elif thing.kind == "Edge":
            self._take_edge(said, thing)
        elif thing.kind == "Claim" and begins:
            self._take_claim(said, thing)

    def _take_entity(self, said: StatedTriple, thing: _DescribedThing, *, begins: bool) -> None:
        iri, span = said.subject.value, self._triple_span(said)
        if begins:
            classes = [
                class_iri
                for class_iri in thing.texts(v.RDF_TYPE)
                if not class_iri.startswith((v.TG, v.type_iri("")))
            ]
            aliases = tuple(thing.texts(v.SKOS_ALT_LABEL))
            properties = {"aliases": aliases, "classes": tuple(classes)}
            self.entities.append(self._own.entity(iri, span, **properties))
        elif said.predicate == _DESCRIPTION and isinstance(said.object, Literal):
            self.entities.append(self._own.entity(iri, span, description=said.object.value))

    def _take_edge(self, said: StatedTriple, thing: _DescribedThing) -> None:
        triple = next(iter(thing.said.get(v.RDF_REIFIES, ())), None)
        if not isinstance(triple, Triple) or not isinstance(triple.subject, NamedNode):
            return
        if said.predicate == v.RDF_REIFIES:
            weight = read_number(thing.text(v.tg("weight")), 0.0)
            words = tuple(thing.texts(v.tg("keyword")))
            self._add_relationship(triple, self._triple_span(said), strength=weight, keywords=words)
        elif said.predicate == _DESCRIPTION and isinstance(said.object, Literal):
            place = self._literal_span(said, said.object)
            self._add_relationship(triple, place, strength=0.0, description=said.object.value)

    def _add_relationship(self, triple: Triple, span: Span, **told: object) -> None:
        obj = triple.object
        assert isinstance(triple.subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        place = (v.edge_iri(triple.subject, triple.predicate, obj), span.start, span.end)
        if place in self._places:
            self.dropped[UNPLACED] = self.dropped.get(UNPLACED, 0) + 1
            return
        self._places.add(place)
        for end in (triple.subject, obj):
            if isinstance(end, NamedNode):
                self._ends.setdefault(end.value, span)
        label = self._own.label(triple.predicate.value)
        self.relationships.append(
            ExtractedRelationship(
                triple.subject,
                triple.predicate,
                obj,
                span=span,
                label=label,
                **told,  # type: ignore[arg-type]
            )
        )

    def _take_claim(self, said: StatedTriple, thing: _DescribedThing) -> None:
        subject, object_iri = thing.text(v.tg("subject")), thing.text(v.tg("object"))
        if not all(map(v.is_iri, (subject, object_iri or subject))):
            return
        span = self._triple_span(said)
        for end in filter(None, (subject, object_iri)):
            self._ends.setdefault(end, span)
        started, ended = (
            next((d for d in thing.said.get(v.tg(name), ()) if isinstance(d, Literal)), None)
            for name in ("claimStart", "claimEnd")
        )
        claim = ExtractedClaim(
            self._own.entity(subject, span).name,
            self._own.entity(object_iri, span).name if object_iri else "",
            thing.text(v.tg("claimType")),
            _STATUSES.get(thing.text(v.tg("claimStatus")), "SUSPECTED"),
            thing.text(_DESCRIPTION),
            started,
            ended,
            span,
            subject,
            object_iri,
        )
        self.claims.append(claim)

    def _triple_span(self, said: StatedTriple) -> Span:
        return Span(said.start, said.end, self._text[said.start : said.end])

    def _literal_span(self, said: StatedTriple, literal: Literal) -> Span:
        """Return a literal's position within its statement lines; all lines if not found."""
        for written in (str(literal), literal.value):
            at = self._text.find(written, said.start, said.end)
            if at >= 0:
                return Span(at, at + len(written), written)
        return self._triple_span(said)
