"""The boundary of the record: what nobody but the record itself may state.

Every door to knowledge goes through here: extractions of documents and imported graphs, facts that
people state, updates; and whoever takes a bundle in asks whether it speaks of its own session
alone. Readers match the record's own graphs (``match_record``), so that what got past before, or in
another way, says nothing of the record."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.model import ExtractedClaim, ExtractedEntity, ExtractedRelationship, Extraction
from tgraph.record.bundle import INVALIDATION

RESERVED = "statement in tgraph's own terms"

_SAID_OF_KNOWLEDGE = frozenset(map(v.tg, ("description", "weight", "keyword")))
_CLASSES_OF_KNOWLEDGE = frozenset(map(v.tg, ("Entity", "Relation", "EntityType", "Edge")))
_EDGE = f"{v.URN}edge:"
_LANGUAGES = (v.RDF, v.RDFS, v.DCTERMS, v.SKOS)
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
    if predicate.value.startswith((v.PROV, v.OA)):
        return names_reserved(subject) or names_reserved(term)
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


# --- bundles ---

_DIGESTED = tuple(f"<{v.URN}prov:{kind}:".encode() for kind in ("association", "dropped"))
_ASSOCIATED, _DROPPED, _AGENT, _PLAN = (
    str(predicate).encode()
    for predicate in (
        v.prov("qualifiedAssociation"),
        v.tg("dropped"),
        v.prov("agent"),
        v.prov("hadPlan"),
    )
)
_STANDING = f"<{v.standing_iri('')}".encode()


def foreign_subjects(bundle: str, lines: Collection[bytes], kind: str) -> tuple[str, ...]:
    """Return what a bundle speaks of, by its N-Quads, that isn't its own, sorted.

    Its own are the names with its UUID, and associations and omissions of these, whose names are
    digests. An invalidation speaks of the standing of others' answers."""
    uuid = re.escape(bundle.removeprefix(v.bundle_iri("")))
    own = re.compile(rf"<{v.URN}(?:prov:)?[a-z-]+:{uuid}(?::[^>]*)?>".encode())
    subjects = {line.partition(b" ")[0] for line in lines}
    foreign = {subject for subject in subjects if not own.fullmatch(subject)}
    if kind == INVALIDATION.name:
        foreign = {subject for subject in foreign if not subject.startswith(_STANDING)}
    if any(subject.startswith(_DIGESTED) for subject in foreign):
        foreign -= _digested_parts(lines, own)
    return tuple(sorted(subject.decode("utf-8", "replace").strip("<>") for subject in foreign))


def _digested_parts(lines: Iterable[bytes], own: re.Pattern[bytes]) -> set[bytes]:
    """Return the associations and omissions of a bundle's own subjects."""
    parts, activities = set(), dict[bytes, bytes]()
    details: dict[bytes, dict[bytes, bytes]] = {}
    for line in lines:
        subject, predicate, rest = line.split(b" ", 2)
        term = rest.partition(b" ")[0]
        if predicate == _DROPPED and own.fullmatch(subject):
            parts.add(term)
        elif predicate == _ASSOCIATED and own.fullmatch(subject):
            activities[term] = subject
        elif predicate in (_AGENT, _PLAN):
            details.setdefault(subject, {})[predicate] = term
    for association, activity in activities.items():
        said = details.get(association, {})
        ends = (activity, said.get(_AGENT, b""), said.get(_PLAN, b""))
        name = v.digest_parts(*(end.decode().strip("<>") for end in ends))
        if association == _DIGESTED[0] + name.encode() + b">":
            parts.add(association)
    return parts
