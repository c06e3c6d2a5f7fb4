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
from tgraph.extensions.interchange.graphs.rdf_syntax import StatedTriple, Term
from tgraph.extensions.interchange.graphs.rdf_terms import is_reserved
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
    """Something that an export is about."""

    kind: str
    said: dict[NamedNode, list[Term]] = field(default_factory=dict)

    def texts(self, predicate: NamedNode) -> list[str]:
        terms = self.said.get(predicate, ())
        return sorted(term.value for term in terms if isinstance(term, NamedNode | Literal))

    def text(self, predicate: NamedNode) -> str:
        return next(iter(self.texts(predicate)), "")


class OwnTerms:
    """The things of tgraph's own vocabulary that a graph describes."""

    def __init__(self, stated: Iterable[StatedTriple]) -> None:
        known = [said for said in stated if said.graph != v.SOURCE_GRAPH.value]
        self._things: dict[str, _DescribedThing] = {}
        for said in known:
            if said.predicate == v.RDF_TYPE and said.object in _CLASSES:
                self._things.setdefault(said.subject.value, _DescribedThing(_CLASSES[said.object]))  # type: ignore[index]
        self._edges: dict[Triple, str] = {}
        for said in known:
            thing = self._things.get(said.subject.value)
            if thing is not None:
                thing.said.setdefault(said.predicate, []).append(said.object)
                if said.predicate == v.RDF_REIFIES and isinstance(said.object, Triple):
                    self._edges[said.object] = said.subject.value

    def __bool__(self) -> bool:
        return any(thing.kind == "Entity" for thing in self._things.values())

    def takes(self, said: StatedTriple) -> bool:
        """Whether the triple is part of what an export says, and is read here."""
        if said.graph == v.SOURCE_GRAPH.value:
            return True
        if not isinstance(said.object, Triple):
            obj: NamedNode | Literal = said.object
            if Triple(said.subject, said.predicate, obj) in self._edges:
                return True
        thing = self._things.get(said.subject.value)
        return thing is not None and (
            thing.kind != "Entity" or said.predicate in _ABOUT or said.predicate == v.RDF_TYPE
        )

    def extraction(
        self, chunk: Chunk, run: Sequence[StatedTriple], text: str, key: str
    ) -> Extraction:
        """What the triples state, as far as they are read here."""
        found = _ChunkStatements(self, text)
        for said in run:
            if (thing := self._things.get(said.subject.value)) and self.takes(said):
                found.take(said, thing)
        return Extraction(
            chunk.iri,
            (*found.entities, *found.ends()),
            tuple(found.relationships),
            key,
            found.dropped,
            tuple(found.claims),
        )

    def entity(self, iri: str, span: Span, **told: object) -> ExtractedEntity:
        """The entity as it is named everywhere."""
        thing = self._things.get(iri, _DescribedThing("Entity"))
        minted = (one for one in thing.texts(v.RDF_TYPE) if one.startswith(_MINTED))
        kind = next((unquote(one.removeprefix(_MINTED)) for one in minted), "concept")
        name = thing.text(v.RDFS_LABEL) or v.local_words(iri)
        return ExtractedEntity(name, kind, span=span, iri=iri, **told)  # type: ignore[arg-type]

    def label(self, iri: str) -> str:
        """What a relation is called."""
        thing = self._things.get(iri)
        return thing.text(v.RDFS_LABEL) if thing else ""


_ABOUT = frozenset((v.RDFS_LABEL, v.SKOS_ALT_LABEL, _DESCRIPTION))


class _ChunkStatements:
    """What a chunk states."""

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
        """Who is spoken of, and not described here."""
        described = {entity.iri for entity in self.entities}
        for iri, span in self._ends.items():
            if iri not in described:
                yield self._own.entity(iri, span)

    def take(self, said: StatedTriple, thing: _DescribedThing) -> None:
        """Read a triple about a thing: what is said of it by one is recorded once, at that."""
        begins = said.predicate == v.RDF_TYPE and said.object == v.tg(thing.kind)
        if thing.kind == "Entity":
            self._take_entity(said, thing, begins=begins)
        elif thing.kind == "Edge":
            self._take_edge(said, thing)
        elif thing.kind == "Claim" and begins:
            self._take_claim(said, thing)

    def _take_entity(self, said: StatedTriple, thing: _DescribedThing, *, begins: bool) -> None:
        iri, span = said.subject.value, self._span(said)
        if begins:
            classes = [
                one for one in thing.texts(v.RDF_TYPE) if not one.startswith((v.TG, v.type_iri("")))
            ]
            aliases = tuple(thing.texts(v.SKOS_ALT_LABEL))
            told = {"aliases": aliases, "classes": tuple(classes)}
            self.entities.append(self._own.entity(iri, span, **told))
        elif said.predicate == _DESCRIPTION and isinstance(said.object, Literal):
            self.entities.append(self._own.entity(iri, span, description=said.object.value))

    def _take_edge(self, said: StatedTriple, thing: _DescribedThing) -> None:
        triple = next(iter(thing.said.get(v.RDF_REIFIES, ())), None)
        if not isinstance(triple, Triple) or not isinstance(triple.subject, NamedNode):
            return
        if said.predicate == v.RDF_REIFIES:
            weight = float(thing.text(v.tg("weight")) or 0)
            words = tuple(thing.texts(v.tg("keyword")))
            self._relate(triple, self._span(said), strength=weight, keywords=words)
        elif said.predicate == _DESCRIPTION and isinstance(said.object, Literal):
            place = self._literal(said, said.object)
            self._relate(triple, place, strength=0.0, description=said.object.value)

    def _relate(self, triple: Triple, span: Span, **told: object) -> None:
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
        subject, other = thing.text(v.tg("subject")), thing.text(v.tg("object"))
        if not all(v.is_iri(end) and not is_reserved(end) for end in (subject, other or subject)):
            return
        span = self._span(said)
        for end in filter(None, (subject, other)):
            self._ends.setdefault(end, span)
        started, ended = (
            next((d for d in thing.said.get(v.tg(name), ()) if isinstance(d, Literal)), None)
            for name in ("claimStart", "claimEnd")
        )
        claim = ExtractedClaim(
            self._own.entity(subject, span).name,
            self._own.entity(other, span).name if other else "",
            thing.text(v.tg("claimType")),
            _STATUSES.get(thing.text(v.tg("claimStatus")), "SUSPECTED"),
            thing.text(_DESCRIPTION),
            started,
            ended,
            span,
            subject,
            other,
        )
        self.claims.append(claim)

    def _span(self, said: StatedTriple) -> Span:
        return Span(said.start, said.end, self._text[said.start : said.end])

    def _literal(self, said: StatedTriple, literal: Literal) -> Span:
        """Where a text stands in the lines that state it; all of these where it can't be found."""
        for written in (str(literal), literal.value):
            at = self._text.find(written, said.start, said.end)
            if at >= 0:
                return Span(at, at + len(written), written)
        return self._span(said)
