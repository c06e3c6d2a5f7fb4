"""Rows of tables and records, as the loaders write them: ``Name: Fram; Builder: Colin Archer``.

The first column names the subject, every other column is one relationship, its name the predicate.
"""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.extract.blocks import Block, pairs
from tgraph.extract.reading import MENTIONS, Fact, Reading
from tgraph.extract.kinds import kind_of_name, kind_of_noun
from tgraph.extract.literals import parse_literal
from tgraph.extract.names import UNKNOWN, Named

from pyoxigraph import Literal

_STRENGTH = 9.0
_FIELD_STRENGTH = 7.0
_LONGEST_NAME = 8
_EMPTY = frozenset({"", "-", "–", "—", "n/a", "na", "null", "none", "unknown", "?"})


def read(blocks: Sequence[Block], reading: Reading, topic: Named | None) -> None:
    """Adds what the rows state to a reading; empty cells state nothing."""
    for block in blocks:
        if _is_field(block):
            _read_field(block, reading, topic)
            continue
        columns = [(block.text[slice(*key)], value) for key, value in pairs(block)]
        subject = _subject(columns, block, reading)
        if subject is None:
            reading.dropped["row without a name"] += 1
            continue
        if topic is not None and topic is not subject:
            reading.facts.append(Fact(topic, MENTIONS, subject, 2.0, block, 0, len(block.text)))
        for key, (start, end) in columns[1:]:
            value = block.text[start:end].strip()
            if value.lower() not in _EMPTY:
                obj = _object(key, value, block, start, reading)
                predicate = " ".join(key.replace("_", " ").split()).lower()
                reading.facts.append(
                    Fact(subject, predicate, obj, _STRENGTH, block, 0, len(block.text))
                )


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
        predicate = " ".join(key.lower().split())
        reading.facts.append(Fact(topic, predicate, obj, _FIELD_STRENGTH, block, 0, len(block.text)))


def _subject(
    columns: Sequence[tuple[str, tuple[int, int]]], block: Block, reading: Reading
) -> Named | None:
    if not columns:
        return None
    key, (start, end) = columns[0]
    name = block.text[start:end].strip()
    if name.lower() in _EMPTY:
        return None
    kind = kind_of_noun(key.split()[-1].lower()) or kind_of_name(name) or UNKNOWN
    entity = reading.names.get(name, kind)
    reading.see(entity, block, start, end)
    return entity


def _object(key: str, value: str, block: Block, start: int, reading: Reading) -> Named | Literal:
    """A cell as a typed literal, as a name where it looks like one, else as text."""
    literal = parse_literal(value)
    if literal is not None:
        return literal
    words = value.split()
    if not words[0][0].isupper() or len(words) > _LONGEST_NAME or value[-1] in ".!?":
        return Literal(value)
    kind = kind_of_noun(key.split()[-1].lower()) or kind_of_name(value) or UNKNOWN
    entity = reading.names.get(value, kind)
    reading.see(entity, block, start, start + len(value))
    return entity
