"""The embedded default: entities and relationships of a chunk without a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from pyoxigraph import Literal

from tgraph.extract import chinese, language
from tgraph.extract.blocks import Block, cut, pairs
from tgraph.extract.english import parser, rules
from tgraph.extract.entity_types import kind_of_name, kind_of_noun
from tgraph.extract.facts import (
    MENTIONS,
    UNKNOWN,
    WEAK,
    ChunkReading,
    NamedEntity,
    NameTable,
    StatedFact,
)
from tgraph.extract.language import language_of
from tgraph.extract.literals import parse_literal
from tgraph.model import (
    Agent,
    Chunk,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Prompt,
    Span,
)
from tgraph.models.base import CallSink, no_sink
from tgraph.resources import word_set
from tgraph.vocabulary import canonical, digest

NAME = "embedded-extractor"
VERSION = "5"
_STRENGTH = 9.0
_FIELD_STRENGTH = 7.0
_LONGEST_NAME = 8
_PLACES = word_set("english", "places")
_PARTICLES = word_set("english", "particles")
_EMPTY = frozenset({"", "-", "–", "—", "n/a", "na", "null", "none", "unknown", "?"})
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")


def _read_rows(blocks: Sequence[Block], reading: ChunkReading, topic: NamedEntity | None) -> None:
    """Adds what the rows state to a reading: ``Name: Fram; Builder: Colin Archer``, for example.

    The first column names the subject, every other one is a relationship and its name the
    predicate; empty cells state nothing.
    A row that the start of the chunk cuts has lost its subject and is dropped.
    """
    rows = [block for block in blocks if not _is_field(block)]
    for block in blocks:
        if _is_field(block):
            _read_field(block, reading, topic)
        elif block is rows[0] and _is_cut(rows):
            reading.dropped["row cut by the chunk"] += 1
        else:
            _read_row(block, reading, topic)


def _read_row(block: Block, reading: ChunkReading, topic: NamedEntity | None) -> None:
    columns = [(block.text[slice(*key)], value) for key, value in pairs(block)]
    key, (start, end) = columns[0]
    name = block.text[start:end].strip()
    if not any(map(str.isalpha, name)) or name.lower() in _EMPTY or parse_literal(name) is not None:
        reading.dropped["row without a name"] += 1
        return
    table = topic.name.split()[-1].lower() if topic is not None else ""
    kind = _kind(key, name) or kind_of_noun(table.removesuffix("s")) or UNKNOWN
    subject = reading.see(reading.names.get(name, kind), block, start, end)
    reading.state(topic, MENTIONS, subject, WEAK, block)
    for key, (start, end) in columns[1:]:
        value = block.text[start:end].strip()
        if value.lower() not in _EMPTY:
            obj = _object(key, value, block, start, reading)
            reading.state(subject, _words(key), obj, _STRENGTH, block)


def _is_cut(rows: Sequence[Block]) -> bool:
    firsts = [row.text[slice(*pairs(row)[0][0])] for row in rows[:2]]
    return len(firsts) == 2 and firsts[0] != firsts[1]


def _words(key: str) -> str:
    return " ".join(key.replace("_", " ").split()).lower()


def _is_field(block: Block) -> bool:
    return len(pairs(block)) < 2


def _read_field(block: Block, reading: ChunkReading, topic: NamedEntity | None) -> None:
    """A line of its own such as ``Author: Charles Dickens`` describes the document."""
    key, _, value = block.text.partition(":")
    start = len(block.text) - len(value.lstrip())
    if topic is not None and value.strip():
        obj = _object(key, value.strip(), block, start, reading)
        reading.state(topic, _words(key), obj, _FIELD_STRENGTH, block)


def _kind(key: str, name: str) -> str:
    """The type of a cell: by its column where that names one ("builder"), else by its own words."""
    words = _words(key).split()
    return kind_of_noun(words[-1]) or ("place" if _PLACES & set(words) else kind_of_name(name))


def _object(
    key: str, value: str, block: Block, start: int, reading: ChunkReading
) -> NamedEntity | Literal:
    """A cell as a typed literal, as a name where it looks like one, else as text."""
    literal = parse_literal(value)
    if literal is not None:
        return literal
    if not _is_name(value):
        return Literal(value)
    kind = _kind(key, value) or UNKNOWN
    entities = []
    for part in value.split(", ") if kind == "place" else [value]:
        at = block.text.find(part, start)
        entities.append(reading.see(reading.names.get(part, kind), block, at, at + len(part)))
    for inner, outer in pairwise(entities):
        reading.facts.append(StatedFact(inner, "in", outer, _STRENGTH, block, 0, len(block.text)))
    return entities[0]


def _is_name(value: str) -> bool:
    words = value.split()
    if len(words) > _LONGEST_NAME or value[-1] in ".!?;:," or not value[0].isupper():
        return False
    return all(not word[0].islower() or word.lower() in _PARTICLES for word in words)


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
        """A digest of the rules' version, the options and the versions of what they stand on."""
        parts = (*parser.versions(), chinese.version())
        return digest(NAME, VERSION, str(self._mentions), *parts)

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """The extraction of one chunk; never raises for its text, whatever it holds.

        ``TgraphError`` where the text is English and spaCy isn't installed. ``sink`` is not used:
        no model is called.
        """
        blocks = cut(chunk.text, chunk.headings)
        names = NameTable()
        titles = titles_of(title, chunk.headings)
        for text in titles:
            names.add(text, kind_of_name(text) or UNKNOWN)
        prose, rows, headings = (
            [block for block in blocks if block.kind == kind]
            for kind in ("prose", "row", "heading")
        )
        found = language_of(" ".join(block.text for block in prose))
        if found == "en":
            reading = rules.read(prose, titles, names)
        elif found == "zh" and chinese.version():
            reading = chinese.read(prose, titles, names)
        else:
            reading = language.read(prose, titles, names)
        topic = names.find(titles[0]) if titles else None
        _read_rows(rows, reading, topic)
        for block in headings:
            entity = names.get(block.text, kind_of_name(block.text) or "topic")
            reading.see(entity, block, 0, len(block.text))
            reading.state(topic, "have section", entity, 3.0, block)
        return _extraction(chunk, reading, self._mentions)


def titles_of(title: str, headings: Sequence[str]) -> list[str]:
    """The names that the document gives itself, without what only tells homonyms apart."""
    texts = (_QUALIFIER.sub("", text).strip() for text in (title, *headings))
    return list(dict.fromkeys(text for text in texts if any(map(str.isalnum, text))))


def _extraction(chunk: Chunk, reading: ChunkReading, mentions: bool) -> Extraction:
    facts = [fact for fact in reading.facts if mentions or fact.predicate != MENTIONS]
    relationships = dict.fromkeys(_relationship(chunk, fact) for fact in facts)
    entities = {id(e): e for e in (*reading.found, *(fact.subject for fact in facts))}
    return Extraction(
        chunk.iri,
        tuple(_entity(chunk, entity, reading) for entity in entities.values()),
        tuple(relationships),
        dropped=dict(sorted(reading.dropped.items())),
    )


def _entity(chunk: Chunk, entity: NamedEntity, reading: ChunkReading) -> ExtractedEntity:
    where = reading.first.get(id(entity))
    return entity.extracted(entity.type, _span(chunk, *where) if where else None)


def _relationship(chunk: Chunk, fact: StatedFact) -> ExtractedRelationship:
    obj = canonical(fact.object) if isinstance(fact.object, Literal) else fact.object.name
    span = _span(chunk, fact.block, fact.start, fact.end)
    return ExtractedRelationship(
        fact.subject.name, fact.predicate, obj, strength=fact.strength, span=span
    )


def _span(chunk: Chunk, block: Block, start: int, end: int) -> Span:
    first, last = block.locate(start, end)
    return Span(chunk.start + first, chunk.start + last, chunk.text[first:last])
