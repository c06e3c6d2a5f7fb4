"""The embedded default: entities and relationships of a chunk without a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from pyoxigraph import Literal, NamedNode

from tgraph.extract import chinese, language
from tgraph.extract.english import parser, rules
from tgraph.extract.entity_types import kind_of_name
from tgraph.extract.facts import (
    MENTIONS,
    UNKNOWN,
    WEAK,
    ChunkReading,
    NamedEntity,
    NameTable,
    StatedFact,
)
from tgraph.extract.table_facts import PageKey, read_row
from tgraph.ingest.base import shorten_line
from tgraph.ingest.languages import language_of
from tgraph.ingest.segments import sentences_of
from tgraph.model import (
    Agent,
    Chunk,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Prompt,
    Segment,
    Span,
)
from tgraph.models.base import CallSink, no_sink
from tgraph.vocabulary import canonicalise_literal, digest_parts

NAME = "embedded-extractor"
VERSION = "10"
_SECTION_STRENGTH = 3.0
_LONGEST_ITEM = 200
_SENTENCES = frozenset(("prose", "item"))
_QUALIFIER = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")


class EmbeddedExtractor:
    """Extracts by rules; implements ``tgraph.extract.base.Extractor``.

    English goes through spaCy and dependency rules, Chinese through the optional LAC tagger,
    anything else through statistics of its words; rows of tables are read column by column in any
    language. The method is deterministic: the same chunk and title give the same extraction on
    every machine with the same versions.

    Safe to use from several threads: parsing is serialised, everything else has no shared state.
    ``mentions=False`` leaves out the weak edges from the title to what is merely named.
    """

    agent = Agent("method", NAME, VERSION)
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, *, mentions: bool = True) -> None:
        self._mentions = mentions

    @cached_property
    def key(self) -> str:
        """Digest of rules version, options and dependency versions."""
        parts = (*parser.package_versions(), chinese.tagger_version())
        return digest_parts(NAME, VERSION, str(self._mentions), *parts)

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """Return a chunk's extraction; chunk text never causes errors.

        Raise ``TgraphError`` if the text is English and spaCy isn't installed. ``sink`` is not
        used: no model is called."""
        names = NameTable()
        titles = titles_of(title, chunk.headings)
        for text in titles:
            names.add(text, kind_of_name(text) or UNKNOWN)
        prose = [block for block in chunk.segments if block.kind in _SENTENCES]
        language_code = language_of(" ".join(block.text for block in prose))
        if language_code == "en":
            reading = rules.read_english(prose, titles, names)
        elif language_code == "zh" and chinese.tagger_version():
            reading = chinese.read_chinese(prose, titles, names)
        else:
            reading = language.read_text(prose, titles, names)
        topic = names.find(titles[0]) if titles else None
        for block in chunk.segments:
            _read_structure(block, reading, topic, (chunk.sha256, chunk.page))
        return _create_extraction(chunk, reading, self._mentions)


def _read_structure(
    block: Segment, reading: ChunkReading, topic: NamedEntity | None, page: PageKey
) -> None:
    """Add facts implied by a segment's structure: heading sections, list items, table rows,
    code blocks."""
    section = _section_entity(block, reading, topic)
    if block.kind == "heading":
        entity = reading.names.find_or_create(block.text, kind_of_name(block.text) or "topic")
        reading.record_mention(entity, block, 0, len(block.text))
        reading.state(section, "have section", entity, _SECTION_STRENGTH, block)
    elif block.kind == "item":
        item = Literal(shorten_line(block.text, _LONGEST_ITEM))
        reading.state(section, "have item", item, _SECTION_STRENGTH, block)
    elif block.kind == "row":
        read_row(block, reading, section, page)
    elif block.kind == "code":
        for start, end in sentences_of(block):
            code = Literal(shorten_line(block.text[start:end], _LONGEST_ITEM))
            reading.state(section, "have code", code, WEAK, block, (start, end))


def _section_entity(
    block: Segment, reading: ChunkReading, topic: NamedEntity | None
) -> NamedEntity | None:
    """Return a segment's section entity: its innermost heading, otherwise the document topic."""
    titles = titles_of("", block.headings[-1:])
    if not titles:
        return topic
    return reading.names.find_or_create(titles[0], kind_of_name(titles[0]) or "topic")


def titles_of(title: str, headings: Sequence[str]) -> list[str]:
    """Return the document's own names, without homonym qualifiers."""
    texts = (_QUALIFIER.sub("", text).strip() for text in (title, *headings))
    return list(dict.fromkeys(text for text in texts if any(map(str.isalnum, text))))


def _create_extraction(chunk: Chunk, reading: ChunkReading, mentions: bool) -> Extraction:
    facts = [fact for fact in reading.facts if mentions or fact.predicate != MENTIONS]
    relationships = dict.fromkeys(_create_relationship(chunk, fact) for fact in facts)
    entities = {id(e): e for e in (*reading.found, *(fact.subject for fact in facts))}
    return Extraction(
        chunk.iri,
        tuple(_create_entity(chunk, entity, reading) for entity in entities.values()),
        tuple(relationships),
        dropped=dict(sorted(reading.dropped.items())),
    )


def _create_entity(chunk: Chunk, entity: NamedEntity, reading: ChunkReading) -> ExtractedEntity:
    where = reading.first.get(id(entity))
    return entity.to_extracted(entity.type, _create_span(chunk, *where) if where else None)


def _create_relationship(chunk: Chunk, fact: StatedFact) -> ExtractedRelationship:
    obj: str | NamedNode | Literal
    if isinstance(fact.object, Literal):
        obj = canonicalise_literal(fact.object)
    else:
        obj = _name_node(fact.object)
    span = _create_span(chunk, fact.block, fact.start, fact.end)
    subject = _name_node(fact.subject)
    return ExtractedRelationship(
        subject, fact.predicate, obj, strength=fact.strength, span=span, cell=fact.cell
    )


def _name_node(entity: NamedEntity) -> str | NamedNode:
    return NamedNode(entity.iri) if entity.iri else entity.name


def _create_span(chunk: Chunk, block: Segment, start: int, end: int) -> Span:
    first, last = block.locate(start, end)
    return Span(first, last, chunk.text[first - chunk.start : last - chunk.start])
