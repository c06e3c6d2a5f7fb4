"""The embedded default: entities and relationships of a chunk without a language model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from pyoxigraph import Literal

from tgraph.extract import chinese, english, pipeline, rows, statistics
from tgraph.extract.blocks import Block, cut
from tgraph.extract.kinds import kind_of_name
from tgraph.extract.language import language_of
from tgraph.extract.names import UNKNOWN, Named, Names
from tgraph.extract.reading import MENTIONS, Fact, Reading
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
from tgraph.vocabulary import canonical, digest

NAME = "embedded-extractor"
VERSION = "4"
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")


class EmbeddedExtractor:
    """Extracts by rules; implements ``tgraph.extract.base.Extractor``.

    English goes through spaCy and dependency rules, Chinese through the optional LAC tagger,
    anything else through statistics of its words; rows of tables are read column by column in any
    language. The method is deterministic: the same chunk and title give the same extraction on
    every machine with the same versions.

    Safe to use from several threads: parsing is serialised, everything else has no shared state.
    ``mentions=False`` leaves out the weak edges from the title to what is merely named.
    """

    def __init__(self, *, mentions: bool = True) -> None:
        self._mentions = mentions

    @property
    def agent(self) -> Agent:
        return Agent("method", NAME, VERSION)

    @cached_property
    def key(self) -> str:
        """A digest of the rules' version, the options and the versions of what they stand on."""
        parts = (*pipeline.versions(), chinese.version())
        return digest(NAME, VERSION, str(self._mentions), *parts)

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return ()

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """The extraction of one chunk; never raises for its text, whatever it holds.

        ``TgraphError`` where the text is English and spaCy isn't installed. ``sink`` is not used:
        no model is called.
        """
        blocks = cut(chunk.text, chunk.headings)
        names = Names()
        titles = titles_of(title, chunk.headings)
        for text in titles:
            names.add(text, kind_of_name(text) or UNKNOWN)
        reading = self._read(blocks, titles, names)
        return _extraction(chunk, reading, self._mentions)

    def _read(self, blocks: Sequence[Block], titles: Sequence[str], names: Names) -> Reading:
        prose = [block for block in blocks if block.kind == "prose"]
        found = language_of(" ".join(block.text for block in prose))
        if found == "en":
            reading = english.read(prose, titles, names)
        elif found == "zh" and chinese.version():
            reading = chinese.read(prose, titles, names)
        else:
            reading = statistics.read(prose, titles, names)
        topic = names.find(titles[0]) if titles else None
        rows.read([block for block in blocks if block.kind == "row"], reading, topic)
        _read_headings([block for block in blocks if block.kind == "heading"], reading, topic)
        return reading


def titles_of(title: str, headings: Sequence[str]) -> list[str]:
    """The names that the document gives itself, without what only tells homonyms apart."""
    texts = (_QUALIFIER.sub("", text).strip() for text in (title, *headings))
    return list(dict.fromkeys(text for text in texts if any(map(str.isalnum, text))))


def _read_headings(blocks: Iterable[Block], reading: Reading, topic: Named | None) -> None:
    for block in blocks:
        entity = reading.names.get(block.text, kind_of_name(block.text) or "topic")
        reading.see(entity, block, 0, len(block.text))
        if topic is not None and topic is not entity:
            reading.facts.append(
                Fact(topic, "have section", entity, 3.0, block, 0, len(block.text))
            )


# --- the result -----------------------------------------------------------------------------------


def _extraction(chunk: Chunk, reading: Reading, mentions: bool) -> Extraction:
    facts = [fact for fact in reading.facts if mentions or fact.predicate != MENTIONS]
    relationships = dict.fromkeys(_relationship(chunk, fact) for fact in facts)
    entities = {id(e): e for e in reading.found}
    for fact in facts:
        entities.setdefault(id(fact.subject), fact.subject)
    return Extraction(
        chunk.iri,
        tuple(_entity(chunk, entity, reading) for entity in entities.values()),
        tuple(relationships),
        dropped=dict(sorted(reading.dropped.items())),
    )


def _entity(chunk: Chunk, entity: Named, reading: Reading) -> ExtractedEntity:
    where = reading.first.get(id(entity))
    aliases = tuple(alias for alias in entity.aliases if alias != entity.name)
    return ExtractedEntity(
        entity.name, entity.type, aliases=aliases, span=_span(chunk, *where) if where else None
    )


def _relationship(chunk: Chunk, fact: Fact) -> ExtractedRelationship:
    obj = canonical(fact.object) if isinstance(fact.object, Literal) else fact.object.name
    span = _span(chunk, fact.block, fact.start, fact.end)
    return ExtractedRelationship(
        fact.subject.name, fact.predicate, obj, strength=fact.strength, span=span
    )


def _span(chunk: Chunk, block: Block, start: int, end: int) -> Span:
    first, last = block.locate(start, end)
    return Span(chunk.start + first, chunk.start + last, chunk.text[first:last])
