"""Stretches of text that a graph of others was read from, found again in their documents.

A stretch is found by exact match, and is then a chunk of its document; one that is not found is a
document of its own. What was read from no stretch that is known rests on a document of rows, one a
line, so that nothing is without a place.
"""

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
    """A document as the graph keeps it."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A stretch that was read. ``documents`` are those that it is of, as far as that is said."""

    id: str
    text: str
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcedClaim:
    """A claim, and the words that it was read from."""

    claim: ExtractedClaim
    source: str = ""


@dataclass(slots=True)
class UnitReading:
    """What was read from a stretch."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    relationships: list[ExtractedRelationship] = field(default_factory=list)
    claims: list[SourcedClaim] = field(default_factory=list)


class UnitReadings:
    """What a graph states, by the stretches that it rests on; what has none that is known is under
    ``""``. ``entities`` are all by their normalised names, ``relationships`` by their subjects."""

    def __init__(self, units: Iterable[str]) -> None:
        self.of: dict[str, UnitReading] = {unit: UnitReading() for unit in units}
        self.of[""] = UnitReading()
        self.entities: dict[str, ExtractedEntity] = {}
        self.relationships: dict[str, list[ExtractedRelationship]] = {}

    def _known(self, units: Iterable[str]) -> list[str]:
        return [unit for unit in dict.fromkeys(units) if unit and unit in self.of] or [""]

    def add_entity(self, entity: ExtractedEntity, units: Iterable[str]) -> None:
        """An entity that each of the stretches names."""
        self.entities.setdefault(normalise_name(entity.name), entity)
        for unit in self._known(units):
            self.of[unit].entities.append(entity)

    def add_relationship(self, relationship: ExtractedRelationship, units: Iterable[str]) -> None:
        """A relationship that each of the stretches states, with its share of the weight."""
        self.relationships.setdefault(str(relationship.subject), []).append(relationship)
        known = self._known(units)
        for unit, strength in zip(known, shares(relationship.strength, len(known)), strict=True):
            self.of[unit].relationships.append(replace(relationship, strength=strength))

    def add_claim(self, claim: SourcedClaim, units: Iterable[str]) -> None:
        """A claim that the first of the stretches makes."""
        self.of[self._known(units)[0]].claims.append(claim)

    def also(self, name: str) -> tuple[str, ...]:
        """How else what has the name may be called: by its aliases, a person by parts of it."""
        known = self.entities.get(normalise_name(name))
        if known is None:
            return ()
        is_person = known.type.casefold() == "person"
        return (*known.aliases, *(parts_of_name(name) if is_person else ()))

    def complete(self, unit: str) -> UnitReading:
        """The reading of a stretch with an entity for each name that it uses."""
        read = self.of[unit]
        named = {normalise_name(entity.name) for entity in read.entities}
        used = [n for r in read.relationships for n in (r.subject, r.object) if isinstance(n, str)]
        used += [n for c in read.claims for n in (c.claim.subject, c.claim.object) if n]
        for name in used:
            if (key := normalise_name(name)) not in named:
                named.add(key)
                known = self.entities.get(key)
                read.entities.append(known or ExtractedEntity(name, "concept"))
        return read


def shares(weight: float, count: int) -> list[float]:
    """A weight in so many parts of six decimals, whose sum is the weight."""
    part = round(weight / count, 6)
    return [weight - part * (count - 1), *[part] * (count - 1)] if count else []


def documents_of(
    documents: Sequence[TextDocument], units: Sequence[TextUnit], readings: UnitReadings, path: str
) -> Iterator[ImportedDocument]:
    """The documents with what was read from each: those of the graph, stretches that are not found
    in any, and the rows of what rests on no stretch."""

    def read(chunk: Chunk, units: Sequence[str]) -> Extraction:
        stretch = UnitText(chunk.text, chunk.start, readings.also)
        return _extraction(chunk, stretch, map(readings.complete, units))

    yield from texts_of(documents, units, read, path)
    if rest := _rows(readings, f"{path}/rows without a text"):
        yield rest


ReadUnits = Callable[[Chunk, Sequence[str]], Extraction]
"""What is said to have been read in a chunk, which one or more stretches, by their ids, are."""


def texts_of(
    documents: Sequence[TextDocument], units: Sequence[TextUnit], read: ReadUnits, path: str
) -> Iterator[ImportedDocument]:
    """The documents, and the stretches that are in none, with what was read from each."""
    placed, apart = _placed(documents, units)
    names = _paths(path, [(d.id, d.title or d.id) for d in documents])
    for document in documents:
        if document.text:
            yield _document(names[document.id], document, placed.get(document.id, ()), read)
    names = _paths(path, [(unit.id, f"text unit {unit.id}") for unit in apart])
    for unit in apart:
        if unit.text:
            whole = TextDocument(unit.id, f"Text unit {unit.id}", unit.text)
            yield _document(names[unit.id], whole, [(unit, 0)], read)


def _placed(
    documents: Sequence[TextDocument], units: Sequence[TextUnit]
) -> tuple[dict[str, list[tuple[TextUnit, int]]], list[TextUnit]]:
    """Where each stretch begins in its document, and the stretches that are in none."""
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


def _paths(folder: str, named: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Under which path each is taken in: its own, whatever their titles are."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for identity, title in named:
        path = f"{folder}/{' '.join(title.split())}"
        if path in taken:
            path = f"{path} ({identity[:12]})"
        taken.add(path)
        found[identity] = path
    return found


def _document(
    path: str,
    document: TextDocument,
    units: Iterable[tuple[TextUnit, int]],
    read: ReadUnits,
) -> ImportedDocument:
    content = document.text.encode("utf-8", "replace")
    text = content.decode()
    digest = sha256(content).hexdigest()
    page = Page(None, text)
    kept = Document(digest, document.title, "text/plain", (page,))
    ordered = sorted(units, key=lambda pair: (pair[1], len(pair[0].text), pair[0].id))
    return ImportedDocument(path, content, kept, _readings(digest, text, ordered, read))


def _readings(
    digest: str, text: str, units: Iterable[tuple[TextUnit, int]], read: ReadUnits
) -> Iterator[Reading]:
    merged: dict[tuple[int, int], list[str]] = {}
    for unit, start in units:  # units of one text are one chunk
        merged.setdefault((start, start + len(unit.text)), []).append(unit.id)
    for index, ((start, end), ids) in enumerate(merged.items()):
        stretch = text[start:end]
        chunk = Chunk(digest, None, index, start, end, stretch, count_tokens(stretch))
        yield Reading(chunk, read(chunk, ids))


def _extraction(chunk: Chunk, stretch: UnitText, read: Iterable[UnitReading]) -> Extraction:
    parts = list(read)
    entities = [
        replace(entity, span=stretch.of_entity(entity.name))
        for part in parts
        for entity in part.entities
    ]
    relationships = [_spanned(r, stretch) for part in parts for r in part.relationships]
    claims = [_claim(c, stretch) for part in parts for c in part.claims]
    return Extraction(
        chunk.iri,
        tuple(dict.fromkeys(entities)),
        tuple(_summed(relationships)),
        claims=tuple(claims),
    )


def _spanned(relationship: ExtractedRelationship, stretch: UnitText) -> ExtractedRelationship:
    one, other, said = relationship.subject, relationship.object, relationship.description
    if not isinstance(one, str) or not isinstance(other, str):
        return relationship
    return replace(relationship, span=stretch.of_relationship(one, other, said))


def _claim(sourced: SourcedClaim, stretch: UnitText) -> ExtractedClaim:
    claim = sourced.claim
    span = stretch.of_quote(sourced.source) or stretch.of_entity(claim.subject)
    return replace(claim, span=span)


def _summed(relationships: Iterable[ExtractedRelationship]) -> list[ExtractedRelationship]:
    """One statement of one place is one piece of evidence, with the strength of all."""
    found: dict[tuple[object, ...], ExtractedRelationship] = {}
    for one in relationships:
        ends = (one.subject, one.predicate, one.object)
        named = (normalise_name(e) if isinstance(e, str) else str(e) for e in ends)
        key = (*named, one.span)
        known = found.get(key)
        if known is None:
            found[key] = one
            continue
        words = dict.fromkeys((*known.keywords, *one.keywords))
        found[key] = replace(
            known,
            strength=known.strength + one.strength,
            description=known.description or one.description,
            keywords=tuple(words),
        )
    return list(found.values())


# --- what rests on no stretch ---

_Item = ExtractedEntity | ExtractedRelationship | ExtractedClaim


def _rows(readings: UnitReadings, path: str) -> ImportedDocument | None:
    """The document of the rows that have no stretch; None where all have one."""
    read = readings.complete("")
    if not (read.entities or read.relationships or read.claims):
        return None
    items: list[_Item] = [*dict.fromkeys(read.entities), *_summed(read.relationships)]
    items += [sourced.claim for sourced in read.claims]
    names = {entity.iri: entity.name for entity in read.entities if entity.iri}
    lines = [_line(item, names) for item in items]
    text = "\n".join(lines) + "\n"
    content = text.encode("utf-8", "replace")
    digest = sha256(content).hexdigest()
    document = Document(digest, "Rows without a text", "text/plain", (Page(None, text),))
    return ImportedDocument(path, content, document, _row_readings(digest, lines, items, read))


def _row_readings(
    digest: str,
    lines: Sequence[str],
    items: Sequence[_Item],
    read: UnitReading,
) -> Iterator[Reading]:
    entities = {each.iri or normalise_name(each.name): each for each in read.entities}
    at = 0
    for index, (line, item) in enumerate(zip(lines, items, strict=True)):
        span = Span(at, at + len(line), line)
        chunk = Chunk(digest, None, index, at, span.end, line, count_tokens(line))
        at = span.end + 1
        yield Reading(chunk, _row(chunk, item, entities, span))


def _row(
    chunk: Chunk,
    item: _Item,
    entities: Mapping[str, ExtractedEntity],
    span: Span,
) -> Extraction:
    if isinstance(item, ExtractedEntity):
        return Extraction(chunk.iri, (replace(item, span=span),), ())
    named = (entities.get(name) for name in map(_key, _ends(item)))
    ends = tuple(replace(end, span=span, description="") for end in named if end)
    if isinstance(item, ExtractedClaim):
        return Extraction(chunk.iri, ends, (), claims=(replace(item, span=span),))
    return Extraction(chunk.iri, ends, (replace(item, span=span),))


def _ends(item: ExtractedRelationship | ExtractedClaim) -> tuple[str | NamedNode | Literal, ...]:
    if isinstance(item, ExtractedRelationship):
        return item.subject, item.object
    ends = ((item.subject, item.subject_iri), (item.object, item.object_iri))
    return tuple(NamedNode(iri) if iri else name for name, iri in ends)


def _key(end: str | NamedNode | Literal) -> str:
    """What an entity is known by; empty for a value."""
    if isinstance(end, NamedNode):
        return end.value
    return normalise_name(end) if isinstance(end, str) else ""


def _line(item: _Item, names: Mapping[str, str]) -> str:
    if isinstance(item, ExtractedEntity):
        said = {"entity": item.name, "type": item.type, "description": item.description}
    else:
        told = item.type if isinstance(item, ExtractedClaim) else item.label or str(item.predicate)
        subject, obj = (names.get(_key(end)) or str(end) for end in (item.subject, item.object))
        said = {
            "subject": subject,
            "relation": told,
            "object": obj,
            "description": item.description,
        }
    return json.dumps({k: value for k, value in said.items() if value}, ensure_ascii=False)
