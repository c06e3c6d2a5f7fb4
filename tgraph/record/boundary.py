"""The boundary of the record: what nobody but the record itself may state.

Every door to knowledge goes through here: extractions of documents and imported graphs, facts that
people state, updates; and whoever takes a bundle in asks whether it speaks of its own session
alone. Readers match the record's own graphs (``match_record``), so that what got past before, or in
another way, says nothing of the record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.model import ExtractedClaim, ExtractedEntity, ExtractedRelationship, Extraction

RESERVED = "statement in tgraph's own terms"

_SAID_OF_KNOWLEDGE = frozenset(map(v.tg, ("description", "weight", "keyword")))
_CLASSES_OF_KNOWLEDGE = frozenset(map(v.tg, ("Entity", "Relation", "EntityType", "Edge")))
_EDGE = f"{v.URN}edge:"
_LANGUAGES = (v.PROV, v.RDF, v.RDFS, v.OA, v.DCTERMS, v.SKOS)
_TIES = frozenset((v.RDF_REIFIES, v.prov("wasDerivedFrom")))
"""What ties knowledge to the evidence that it rests on."""


def names_reserved(term: object) -> bool:
    """Return whether a term is reserved, or a triple term with such a part."""
    if isinstance(term, Triple):
        return any(map(names_reserved, term))
    return isinstance(term, NamedNode) and v.is_reserved(term.value)


def is_reserved_statement(quad: Quad) -> bool:
    """Return whether only the record, or a derivation from it, may state a quad.

    Such are statements in tgraph's terms, but for what is said of entities, relations, types and
    edges; what the languages of the record say of something on record; and what ties knowledge to
    its evidence."""
    subject, predicate, term = quad.subject, quad.predicate, quad.object
    if predicate.value.startswith(v.TG):
        return predicate not in _SAID_OF_KNOWLEDGE or _is_on_record(subject)
    if predicate == v.RDF_TYPE and names_reserved(term):
        return term not in _CLASSES_OF_KNOWLEDGE or _is_on_record(subject)
    if predicate in _TIES and isinstance(subject, NamedNode) and subject.value.startswith(v.URN):
        return True
    is_language = predicate.value.startswith(_LANGUAGES)
    return is_language and (_is_on_record(subject) or _is_on_record(term))


def _is_on_record(term: object) -> bool:
    if isinstance(term, Triple):
        return any(map(_is_on_record, term))
    return names_reserved(term) and not str(term).startswith(f"<{_EDGE}")


def admit_extraction(extraction: Extraction) -> Extraction:
    """Return an extraction without what the record alone may state; that is counted."""
    relationships = [r for r in extraction.relationships if not _speaks_of_reserved(r)]
    entities = [e for e in extraction.entities if not v.is_reserved(e.iri)]
    claims = [c for c in extraction.claims if not _claims_of_reserved(c)]
    lost = len(extraction.relationships) - len(relationships)
    lost += len(extraction.claims) - len(claims)
    entities = [_admit_entity(e) if e.iri else e for e in entities]
    relationships = [_admit_relationship(r) if r.graph or r.sources else r for r in relationships]
    if (
        not lost
        and tuple(entities) == extraction.entities
        and tuple(relationships) == extraction.relationships
    ):
        return extraction
    dropped = dict(extraction.dropped)
    if lost:
        dropped[RESERVED] = dropped.get(RESERVED, 0) + lost
    return replace(
        extraction,
        entities=tuple(entities),
        relationships=tuple(relationships),
        claims=tuple(claims),
        dropped=dropped,
    )


def _speaks_of_reserved(relationship: ExtractedRelationship) -> bool:
    parts = (relationship.subject, relationship.predicate, relationship.object)
    return any(map(names_reserved, parts))


def _claims_of_reserved(claim: ExtractedClaim) -> bool:
    return v.is_reserved(claim.subject_iri) or v.is_reserved(claim.object_iri)


def _admit_entity(entity: ExtractedEntity) -> ExtractedEntity:
    return replace(
        entity,
        classes=_admit_iris(entity.classes),
        same=_admit_iris(entity.same),
        graph="".join(_admit_iris([entity.graph])),
    )


def _admit_relationship(relationship: ExtractedRelationship) -> ExtractedRelationship:
    return replace(
        relationship,
        sources=_admit_iris(relationship.sources),
        graph="".join(_admit_iris([relationship.graph])),
    )


def _admit_iris(iris: Iterable[str]) -> tuple[str, ...]:
    return tuple(iri for iri in iris if not v.is_reserved(iri))
