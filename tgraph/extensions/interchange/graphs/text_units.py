"""Text stretches read by foreign graphs, located in their documents.

A stretch is found by exact match, and is then a chunk of its document; a stretch not found is a
document of its own. Statements of no known stretch rest on a document of rows, one per line, so
that everything has a place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from pyoxigraph import Literal, NamedNode

from tgraph.extensions.interchange.graphs.base import ImportedDocument, Reading
from tgraph.extensions.interchange.graphs.mentions import UnitText, parts_of_name
from tgraph.model import (
    Chunk,
    Document,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Page,
    Span,
)
from tgraph.models.tokens import count_tokens
from tgraph.vocabulary import normalise_name

RELATED = "related to"
"""The relation of an edge that says in words only what it is."""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A document kept in the graph."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A text stretch read by the graph. ``documents`` lists its documents, if stated."""

    id: str
    text: str
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcedClaim:
    """A claim with its source words."""

    claim: ExtractedClaim
    source: str = ""


@dataclass(slots=True)
class UnitReading:
    """Extractions from a stretch."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    relationships: list[ExtractedRelationship] = field(default_factory=list)
    claims: list[SourcedClaim] = field(default_factory=list)


class UnitReadings:
    """Graph statements by supporting stretch; statements without known stretch are under
    ``""``.

    ``entities`` are all by normalised name, ``relationships`` by subject."""

    def __init__(self, units: Iterable[str]) -> None:
        self.of: dict[str, UnitReading] = {unit: UnitReading() for unit in units}
        self.of[""] = UnitReading()
        self.entities: dict[str, ExtractedEntity] = {}
        self.relationships: dict[str, list[ExtractedRelationship]] = {}

    def _known_units(self, units: Iterable[str]) -> list[str]:
        return [unit for unit in dict.fromkeys(units) if unit and unit in self.of] or [""]

    def add_entity(self, entity: ExtractedEntity, units: Iterable[str]) -> None:
        """Add an entity to every stretch naming it."""
        self.entities.setdefault(normalise_name(entity.name), entity)
        for unit in self._known_units(units):
            self.of[unit].entities.append(entity)

    def add_relationship(self, relationship: ExtractedRelationship, units: Iterable[str]) -> None:
        """Add a relationship to every stretch stating it, dividing its weight."""
        self.relationships.setdefault(str(relationship.subject), []).append(relationship)
        known_units = self._known_units(units)
        for unit, strength in zip(
            known_units, split_weight(relationship.strength, len(known_units)), strict=True
        ):
            self.of[unit].relationships.append(replace(relationship, strength=strength))

    def add_claim(self, claim: SourcedClaim, units: Iterable[str]) -> None:
        """Add a claim to the leading stretch."""
        self.of[self._known_units(units)[0]].claims.append(claim)

    def list_aliases(self, name: str) -> tuple[str, ...]:
        """Return alternative names: aliases, for persons also name parts."""
        entity = self.entities.get(normalise_name(name))
        if entity is None:
            return ()
        is_person = entity.type.casefold() == "person"
        return (*entity.aliases, *(parts_of_name(name) if is_person else ()))

    def complete(self, unit: str) -> UnitReading:
        """Return a stretch's reading, completed with entities for all names used."""
        read = self.of[unit]
        known_keys = {normalise_name(entity.name) for entity in read.entities}
        used = [n for r in read.relationships for n in (r.subject, r.object) if isinstance(n, str)]
        used += [n for c in read.claims for n in (c.claim.subject, c.claim.object) if n]
        for name in used:
            if (key := normalise_name(name)) not in known_keys:
                known_keys.add(key)
                known_entity = self.entities.get(key)
                read.entities.append(known_entity or ExtractedEntity(name, "concept"))
        return read


def split_weight(weight: float, count: int) -> list[float]:
    """Return a weight split into equal shares, rounded to six decimals, summing to the weight."""
    part = round(weight / count, 6)
    return [weight - part * (count - 1), *[part] * (count - 1)] if count else []


def documents_of(
    documents: Sequence[TextDocument], units: Sequence[TextUnit], readings: UnitReadings, path: str
) -> Iterator[ImportedDocument]:
    """Yield documents with their readings: graph documents, stretches found in no document, and
    rows without stretch."""

    def read(chunk: Chunk, units: Sequence[str]) -> Extraction:
        stretch = UnitText(chunk.text, chunk.start, readings.list_aliases)
        return _create_extraction(chunk, stretch, map(readings.complete, units))

    yield from texts_of(documents, units, read, path)
    if row_document := _create_row_document(readings, f"{path}/rows without a text"):
        yield row_document


ReadUnits = Callable[[Chunk, Sequence[str]], Extraction]
"""What is said to have been read in a chunk, which one or more stretches, by their ids, are."""


def texts_of(
    documents: Sequence[TextDocument], units: Sequence[TextUnit], read: ReadUnits, path: str
) -> Iterator[ImportedDocument]:
    """Yield documents, then stretches outside documents, each with readings."""
    placed, apart = _locate_units(documents, units)
    names = _unique_paths(path, [(d.id, d.title or d.id) for d in documents])
    for document in documents:
        if document.text:
            yield _create_document(names[document.id], document, placed.get(document.id, ()), read)
    names = _unique_paths(path, [(unit.id, f"text unit {unit.id}") for unit in apart])
    for unit in apart:
        if unit.text:
            unit_document = TextDocument(unit.id, f"Text unit {unit.id}", unit.text)
            yield _create_document(names[unit.id], unit_document, [(unit, 0)], read)


def _locate_units(
    documents: Sequence[TextDocument], units: Sequence[TextUnit]
) -> tuple[dict[str, list[tuple[TextUnit, int]]], list[TextUnit]]:
    """Return stretch positions by document, plus stretches found in no document."""
    texts = {document.id: document.text for document in documents}
    placed: dict[str, list[tuple[TextUnit, int]]] = {}
    last: dict[str, int] = {}
    apart = []
    for unit in units:
        homes = [d for d in unit.documents if d in texts] or list(texts)
        for home in homes if unit.text else ():
            at = texts[home].find(unit.text, last.get(home, 0))
            at = texts[home].find(unit.text) if at < 0 else at
            if at >= 0:
                last[home] = at + 1
                placed.setdefault(home, []).append((unit, at))
                break
        else:
            apart.append(unit)
    return placed, apart


def _unique_paths(folder: str, named: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return distinct ingestion paths by id, even for equal titles."""
    paths: dict[str, str] = {}
    used_paths: set[str] = set()
    for identity, title in named:
        path = f"{folder}/{' '.join(title.split())}"
        if path in used_paths:
            path = f"{path} ({identity[:12]})"
        used_paths.add(path)
        paths[identity] = path
    return paths


def _create_document(
    path: str,
    document: TextDocument,
    units: Iterable[tuple[TextUnit, int]],
    read: ReadUnits,
) -> ImportedDocument:
    content = document.text.encode("utf-8", "replace")
    text = content.decode()
    digest = sha256(content).hexdigest()
    page = Page(None, text)
    stored_document = Document(digest, document.title, "text/plain", (page,))
    ordered = sorted(units, key=lambda pair: (pair[1], len(pair[0].text), pair[0].id))
    return ImportedDocument(
        path, content, stored_document, _create_readings(digest, text, ordered, read)
    )


def _create_readings(
    digest: str, text: str, units: Iterable[tuple[TextUnit, int]], read: ReadUnits
) -> Iterator[Reading]:
    merged: dict[tuple[int, int], list[str]] = {}
    for unit, start in units:  # units of one text are one chunk
        merged.setdefault((start, start + len(unit.text)), []).append(unit.id)
    for index, ((start, end), ids) in enumerate(merged.items()):
        stretch = text[start:end]
        chunk = Chunk(digest, None, index, start, end, stretch, count_tokens(stretch))
        yield Reading(chunk, read(chunk, ids))


def _create_extraction(chunk: Chunk, stretch: UnitText, read: Iterable[UnitReading]) -> Extraction:
    parts = list(read)
    entities = [
        replace(entity, span=stretch.of_entity(entity.name))
        for part in parts
        for entity in part.entities
    ]
    relationships = [_locate_relationship(r, stretch) for part in parts for r in part.relationships]
    claims = [_locate_claim(c, stretch) for part in parts for c in part.claims]
    return Extraction(
        chunk.iri,
        tuple(dict.fromkeys(entities)),
        tuple(_merge_relationships(relationships)),
        claims=tuple(claims),
    )


def _locate_relationship(
    relationship: ExtractedRelationship, stretch: UnitText
) -> ExtractedRelationship:
    source, target, description = (
        relationship.subject,
        relationship.object,
        relationship.description,
    )
    if not isinstance(source, str) or not isinstance(target, str):
        return relationship
    return replace(relationship, span=stretch.of_relationship(source, target, description))


def _locate_claim(sourced: SourcedClaim, stretch: UnitText) -> ExtractedClaim:
    claim = sourced.claim
    span = stretch.of_quote(sourced.source) or stretch.of_entity(claim.subject)
    return replace(claim, span=span)


def _merge_relationships(
    relationships: Iterable[ExtractedRelationship],
) -> list[ExtractedRelationship]:
    """Return relationships with equal statements at equal places merged into one, strengths
    added."""
    merged: dict[tuple[object, ...], ExtractedRelationship] = {}
    for relationship in relationships:
        ends = (relationship.subject, relationship.predicate, relationship.object)
        end_keys = (normalise_name(e) if isinstance(e, str) else str(e) for e in ends)
        key = (*end_keys, relationship.span)
        previous = merged.get(key)
        if previous is None:
            merged[key] = relationship
            continue
        words = dict.fromkeys((*previous.keywords, *relationship.keywords))
        merged[key] = replace(
            previous,
            strength=previous.strength + relationship.strength,
            description=previous.description or relationship.description,
            keywords=tuple(words),
        )
    return list(merged.values())


# --- what rests on no stretch ---

_ExtractedItem = ExtractedEntity | ExtractedRelationship | ExtractedClaim


def _create_row_document(readings: UnitReadings, path: str) -> ImportedDocument | None:
    """Return a document of rows without stretch.

    Return None if every row has a stretch."""
    read = readings.complete("")
    if not (read.entities or read.relationships or read.claims):
        return None
    items: list[_ExtractedItem] = [
        *dict.fromkeys(read.entities),
        *_merge_relationships(read.relationships),
    ]
    items += [sourced.claim for sourced in read.claims]
    names = {entity.iri: entity.name for entity in read.entities if entity.iri}
    lines = [_format_row(item, names) for item in items]
    text = "\n".join(lines) + "\n"
    content = text.encode("utf-8", "replace")
    digest = sha256(content).hexdigest()
    document = Document(digest, "Rows without a text", "text/plain", (Page(None, text),))
    return ImportedDocument(path, content, document, _row_readings(digest, lines, items, read))


def _row_readings(
    digest: str,
    lines: Sequence[str],
    items: Sequence[_ExtractedItem],
    read: UnitReading,
) -> Iterator[Reading]:
    entities = {entity.iri or normalise_name(entity.name): entity for entity in read.entities}
    at = 0
    for index, (line, item) in enumerate(zip(lines, items, strict=True)):
        span = Span(at, at + len(line), line)
        chunk = Chunk(digest, None, index, at, span.end, line, count_tokens(line))
        at = span.end + 1
        yield Reading(chunk, _create_row_extraction(chunk, item, entities, span))


def _create_row_extraction(
    chunk: Chunk,
    item: _ExtractedItem,
    entities: Mapping[str, ExtractedEntity],
    span: Span,
) -> Extraction:
    if isinstance(item, ExtractedEntity):
        return Extraction(chunk.iri, (replace(item, span=span),), ())
    end_entities = (entities.get(name) for name in map(_entity_key, _item_ends(item)))
    ends = tuple(replace(end, span=span, description="") for end in end_entities if end)
    if isinstance(item, ExtractedClaim):
        return Extraction(chunk.iri, ends, (), claims=(replace(item, span=span),))
    return Extraction(chunk.iri, ends, (replace(item, span=span),))


def _item_ends(
    item: ExtractedRelationship | ExtractedClaim,
) -> tuple[str | NamedNode | Literal, ...]:
    if isinstance(item, ExtractedRelationship):
        return item.subject, item.object
    ends = ((item.subject, item.subject_iri), (item.object, item.object_iri))
    return tuple(NamedNode(iri) if iri else name for name, iri in ends)


def _entity_key(end: str | NamedNode | Literal) -> str:
    """Return an entity lookup key, blank for literal values."""
    if isinstance(end, NamedNode):
        return end.value
    return normalise_name(end) if isinstance(end, str) else ""


def _format_row(item: _ExtractedItem, names: Mapping[str, str]) -> str:
    if isinstance(item, ExtractedEntity):
        fields = {"entity": item.name, "type": item.type, "description": item.description}
    else:
        relation = (
            item.type if isinstance(item, ExtractedClaim) else item.label or str(item.predicate)
        )
        subject, obj = (
            names.get(_entity_key(end)) or str(end) for end in (item.subject, item.object)
        )
        fields = {
            "subject": subject,
            "relation": relation,
            "object": obj,
            "description": item.description,
        }
    return json.dumps({k: value for k, value in fields.items() if value}, ensure_ascii=False)
