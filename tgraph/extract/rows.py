"""Rows of tables and records, as the loaders write them: ``Name: Fram; Builder: Colin Archer``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pyoxigraph import Literal

from tgraph.extract.blocks import Block, pairs
from tgraph.extract.kinds import kind_of_name, kind_of_noun
from tgraph.extract.literals import parse_literal
from tgraph.extract.names import UNKNOWN, Named
from tgraph.extract.reading import MENTIONS, WEAK, Fact, Reading
from tgraph.resources import word_set

_STRENGTH = 9.0
_FIELD_STRENGTH = 7.0
_LONGEST_NAME = 8
_PLACES = word_set("english", "places")
_PARTICLES = word_set("english", "particles")
_EMPTY = frozenset({"", "-", "–", "—", "n/a", "na", "null", "none", "unknown", "?"})


def read(blocks: Sequence[Block], reading: Reading, topic: Named | None) -> None:
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


def _read_row(block: Block, reading: Reading, topic: Named | None) -> None:
    columns = [(block.text[slice(*key)], value) for key, value in pairs(block)]
    subject = _subject(columns, block, reading, topic)
    if subject is None:
        reading.dropped["row without a name"] += 1
        return
    if topic is not None and topic is not subject:
        reading.facts.append(Fact(topic, MENTIONS, subject, WEAK, block, 0, len(block.text)))
    for key, (start, end) in columns[1:]:
        value = block.text[start:end].strip()
        if value.lower() not in _EMPTY:
            obj = _object(key, value, block, start, reading)
            if obj is not subject:
                reading.facts.append(
                    Fact(subject, _words(key), obj, _STRENGTH, block, 0, len(block.text))
                )


def _is_cut(rows: Sequence[Block]) -> bool:
    firsts = [row.text[slice(*pairs(row)[0][0])] for row in rows[:2]]
    return len(firsts) == 2 and firsts[0] != firsts[1]


def _words(key: str) -> str:
    return " ".join(key.replace("_", " ").split()).lower()


def _is_field(block: Block) -> bool:
    return len(pairs(block)) < 2


def _read_field(block: Block, reading: Reading, topic: Named | None) -> None:
    """A line of its own such as ``Author: Charles Dickens`` describes the document."""
    key, _, value = block.text.partition(":")
    start = len(block.text) - len(value.lstrip())
    if topic is None or not value.strip():
        return
    obj = _object(key, value.strip(), block, start, reading)
    if obj is not topic:
        reading.facts.append(
            Fact(topic, _words(key), obj, _FIELD_STRENGTH, block, 0, len(block.text))
        )


def _subject(
    columns: Sequence[tuple[str, tuple[int, int]]],
    block: Block,
    reading: Reading,
    topic: Named | None,
) -> Named | None:
    key, (start, end) = columns[0]
    name = block.text[start:end].strip()
    if not any(map(str.isalpha, name)) or name.lower() in _EMPTY or parse_literal(name) is not None:
        return None
    table = topic.name.split()[-1].lower() if topic is not None else ""
    entity = reading.names.get(
        name, _kind(key, name) or kind_of_noun(table.removesuffix("s")) or UNKNOWN
    )
    reading.see(entity, block, start, end)
    return entity


def _kind(key: str, name: str) -> str:
    """The type of a cell: by its column where that names one ("builder"), else by its own words."""
    words = _words(key).split()
    return kind_of_noun(words[-1]) or ("place" if _PLACES & set(words) else kind_of_name(name))


def _object(key: str, value: str, block: Block, start: int, reading: Reading) -> Named | Literal:
    """A cell as a typed literal, as a name where it looks like one, else as text."""
    literal = parse_literal(value)
    if literal is not None:
        return literal
    if not _is_name(value):
        return Literal(value)
    kind = _kind(key, value) or UNKNOWN
    parts = value.split(", ") if kind == "place" else [value]
    entities = []
    for part in parts:
        entity = reading.names.get(part, kind)
        at = block.text.find(part, start)
        reading.see(entity, block, at, at + len(part))
        entities.append(entity)
    for inner, outer in pairwise(entities):
        reading.facts.append(Fact(inner, "in", outer, _STRENGTH, block, 0, len(block.text)))
    return entities[0]


def _is_name(value: str) -> bool:
    words = value.split()
    if len(words) > _LONGEST_NAME or value[-1] in ".!?;:,":
        return False
    return value[0].isupper() and all(
        not word[0].islower() or word.lower() in _PARTICLES for word in words
    )
