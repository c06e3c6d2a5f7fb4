"""Results of an extractor: entities, relationships and claims of a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode


@dataclass(frozen=True, slots=True)
class Span:
    """A quote's position in page coordinates."""

    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity named in a chunk; ``span`` contains the (first) mention, None if unknown.

    ``classes`` are further types by IRI: that of a table's rows, or those that a graph gives. A
    graph may also give an ``iri`` (else the IRI is minted from the name), equal entities
    (``same``) by IRI, and a ``graph``, the named graph stating the entity."""

    name: str
    type: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    span: Span | None = None
    iri: str = ""
    classes: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    graph: str = ""


class CellPlace(NamedTuple):
    """The cell of a table that states a relationship: the numbers of its row below the head and of
    its column (both from 1), the unit of its amount, and the table's number on the page (from 1)
    and title, which is its caption or the heading above it."""

    row: int
    column: int
    unit: str = ""
    table: int = 1
    title: str = ""


@dataclass(frozen=True, slots=True)
class ExtractedRelationship:
    """A chunk's statement: subject, predicate and object, with supporting quote.

    ``object`` is the name of an entity, or a typed literal for an attribute. ``span`` is the
    supporting quote: the stating sentence or part of the sentence, or the row of the ``cell``.
    ``strength`` ranges from 1 to 10. A graph names entities and relations by IRI (a
    ``NamedNode``; ``label`` is the relation's label); a graph may also give the stating named
    ``graph`` and the statement's ``sources``, by IRI."""

    subject: str | NamedNode
    predicate: str | NamedNode
    object: str | NamedNode | Literal
    description: str = ""
    keywords: tuple[str, ...] = ()
    strength: float = 5.0
    span: Span | None = None
    label: str = ""
    graph: str = ""
    sources: tuple[str, ...] = ()
    cell: CellPlace | None = None


ClaimStatus = Choice["TRUE", "FALSE", "SUSPECTED"]


@dataclass(frozen=True, slots=True)
class ExtractedClaim:
    """A chunk's claim about an entity (GraphRAG's covariate): subject, type and status.

    ``object`` is the name of an entity, empty if the claim concerns nobody else; the dates are
    ``xsd:date``, ``xsd:dateTime``, ``xsd:gYearMonth`` or ``xsd:gYear`` literals, as exact as
    the text, None if not stated. ``span`` is the supporting quote. A graph may give the IRIs of
    subject and object (else the IRIs are minted from the names)."""

    subject: str
    object: str
    type: str
    status: ClaimStatus
    description: str
    started: Literal | None = None
    ended: Literal | None = None
    span: Span | None = None
    subject_iri: str = ""
    object_iri: str = ""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A sentence in page coordinates, with entities mentioned.

    ``entities`` contains places in the extraction, in the order of first mention. ``paragraph``
    counts within the chunk."""

    start: int
    end: int
    entities: tuple[int, ...]
    paragraph: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """An extractor's results for a chunk, plus counts of dropped results by reason.

    ``sentences`` come from an extractor that states no relationships itself: relationships then
    follow from the frequency of entities named together in the whole collection."""

    chunk: str
    entities: tuple[ExtractedEntity, ...]
    relationships: tuple[ExtractedRelationship, ...]
    reply_hash: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    claims: tuple[ExtractedClaim, ...] = ()
    sentences: tuple[Occurrence, ...] = ()
