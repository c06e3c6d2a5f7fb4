"""Facts of the rows of tables: a row's subject, and a fact for each of its other cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.extract.entity_types import kind_of_name, kind_of_noun
from tgraph.extract.facts import (
    MENTIONS,
    UNKNOWN,
    WEAK,
    ChunkReading,
    NamedEntity,
    StatedFact,
)
from tgraph.extract.literals import parse_literal
from tgraph.ingest.table_columns import NUMBERS, is_missing
from tgraph.ingest.table_values import split_unit
from tgraph.model import CellPlace, CellValue, Segment, TableRow, TextSpan
from tgraph.resources import word_set
from tgraph.vocabulary import xsd

NAMELESS = "row"
"""What a row is called beside its number, where nothing says what the rows are."""

_STRENGTH = 9.0
_FIELD_STRENGTH = 7.0
_LONGEST_NAME = 8
_LONGEST_TITLE = 12
_TABLE_NUMBER = re.compile(r"(?:table|tab\.)\s+[\w.]*\d[\w.]*[.:]?\s+(?=\S)", re.IGNORECASE)
_GLUED = re.compile(r"(?<=[a-z]{2})(?=[A-Z](?:[a-z]|[A-Z]))|(?<=[A-Z]{2})(?=[A-Z][a-z]{2})")
"""Between two words of a head: not within "PhD", "pH" or "GDPs"."""
_HEAD_WORD = re.compile(r"[^\W_]+")
_PLACES = word_set("english", "places")
_PREPOSITIONS = word_set("ontology", "prepositions") | word_set("ontology", "places")
_PARTICLES = word_set("english", "particles")
_MOMENTS = frozenset(("year", "date"))
_DATES = {7: "gYearMonth", 10: "date"}


PageKey = tuple[str, int | None]
"""The hash of a document, and the number of its page."""


def read_row(
    block: Segment, reading: ChunkReading, section: NamedEntity | None, page: PageKey
) -> None:
    """Add what a row states to a reading: its subject, which the label column names, and a fact for
    each other cell, whose column names the predicate.

    A row outside a table that has a single pair is a field of its section; a row of sums and a note
    state nothing, nor do empty cells."""
    if block.row is None and len(block.pairs) == 1:
        _read_field(block, reading, section)
    elif block.row is None:
        _read_data(block, _plain_row(block), reading, section, page)
    elif block.row.role == "data":
        _read_data(block, block.row, reading, section, page)


def _plain_row(block: Segment) -> TableRow:
    """Return how a row outside a table is read: its first pair names the subject."""
    return TableRow(-1, 0, label=(0,) if _names_subject(block, block.pairs[0][1]) else ())


def _names_subject(block: Segment, span: TextSpan) -> bool:
    name = block.text[slice(*span)]
    return any(map(str.isalpha, name)) and not is_missing(name) and parse_literal(name) is None


def _read_data(
    block: Segment,
    row: TableRow,
    reading: ChunkReading,
    section: NamedEntity | None,
    page: PageKey,
) -> None:
    subject = (
        _place_subject(block, row, reading, section, page)
        if row.is_placed
        else _find_subject(block, row, reading, section)
    )
    if subject is None:
        reading.dropped["row without a name"] += 1
        return
    reading.state(section, MENTIONS, subject, WEAK, block)
    keys: Counter[str] = Counter()
    for at, (key_span, (start, end)) in enumerate(block.pairs):
        key, text = block.text[slice(*key_span)], block.text[start:end].strip()
        cell = row.cells[at] if row.cells else None
        is_moment = cell is not None and cell.kind in _MOMENTS
        is_name = row.label == (at,) and not is_moment and not row.is_placed
        if is_name or not key or is_missing(text):
            continue
        is_part = at in row.label and not is_moment and not row.is_placed
        obj = Literal(text) if is_part else _read_object(key, (start, end), cell, block, reading)
        place = _cell_place(block, row, cell) if cell else None
        keys[key] += 1
        column = key if keys[key] == 1 else f"{key} {keys[key]}"
        reading.state(subject, _predicate_of(column, cell), obj, _STRENGTH, block, cell=place)


def _cell_place(block: Segment, row: TableRow, cell: CellValue) -> CellPlace:
    unit, title = _unit_of(cell), title_of_table(block)
    return CellPlace(row.number + 1, cell.column + 1, unit, row.table + 1, title)


def title_of_table(row: Segment) -> str:
    """Return the title of a row's table: its caption, else the heading above it; empty without
    one."""
    lead = row.lead[0] if row.lead else ""
    if numbered := _TABLE_NUMBER.match(lead):
        return lead[numbered.end() :].rstrip(".")
    is_caption = lead and lead[-1].isalnum() and len(lead.split()) <= _LONGEST_TITLE
    return lead if is_caption else next(reversed(row.headings), "")


def _find_subject(
    block: Segment, row: TableRow, reading: ChunkReading, section: NamedEntity | None
) -> NamedEntity | None:
    """Return the subject of a row; None where nothing names it."""
    if not row.label:
        return None
    row_class = row.subject or _class_by_titles(block, section)
    spans = [block.pairs[at][1] for at in row.label]
    name = " ".join(block.text[slice(*span)].strip() for span in spans)
    kinds = {row.cells[at].kind for at in row.label} if row.cells else set()
    if kinds and (kinds <= _MOMENTS or not any(map(str.isalpha, name))):
        name = f"{row_class or NAMELESS} {name}"
    key = block.text[slice(*block.pairs[row.label[0]][0])]
    has_parts = len(row.label) > 1 and kinds.isdisjoint(("identifier", *_MOMENTS))
    kind = "person" if has_parts else _kind_of_class(row_class)
    subject = reading.names.find_or_create(name, kind or _cell_kind(key, name) or UNKNOWN)
    if row_class and row_class != subject.type:
        subject.classes[v.type_iri(row_class)] = None
    return reading.record_mention(subject, block, *_span_of_name(block, row))


def _place_subject(
    block: Segment,
    row: TableRow,
    reading: ChunkReading,
    section: NamedEntity | None,
    page: PageKey,
) -> NamedEntity:
    """Return the subject of a row that its place identifies, called after its naming cells and its
    number."""
    row_class = _class_by_titles(block, section) or NAMELESS
    number = row.number + 1
    cells = (block.text[slice(*block.pairs[at][1])].strip() for at in row.label)
    name = " ".join(cells)
    name = f"{name} ({NAMELESS} {number})" if name else f"{row_class} {number}"
    subject = NamedEntity(
        name,
        Counter((_kind_of_class(row_class),)),
        mentions=1,
        iri=v.row_iri(name, *page, row.table, row.number),
    )
    if row_class != subject.type:
        subject.classes[v.type_iri(row_class)] = None
    return reading.record_mention(subject, block, *_span_of_name(block, row))


def _class_by_titles(block: Segment, section: NamedEntity | None) -> str:
    """Return the class of a table's rows as the title of the table, or of its section, names it."""
    columns = [block.text[slice(*key)] for key, _ in block.pairs]
    titles = (title_of_table(block), section.name if section else "")
    return next(filter(None, (class_of_title(title, columns) for title in titles)), "")


def _span_of_name(block: Segment, row: TableRow) -> TextSpan:
    """Return where the block names the row's subject: the whole block for a row without a name, or
    one that is named in another part."""
    spans = [block.pairs[at][1] for at in row.label]
    if not spans:
        return 0, len(block.text)
    are_adjacent = max(row.label) - min(row.label) < len(row.label)
    start = min(start for start, _ in spans) if are_adjacent else spans[0][0]
    end = max(end for _, end in spans) if are_adjacent else spans[0][1]
    is_elsewhere = block.offsets[start] == block.offsets[end - 1]
    return (0, len(block.text)) if is_elsewhere else (start, end)


def _kind_of_class(row_class: str) -> str:
    return (kind_of_noun(row_class.split()[-1]) or row_class) if row_class else ""


def class_of_title(title: str, columns: Iterable[str] = ()) -> str:
    """Return the class of a table's rows as the plural at the end of its title, or before a
    preposition, names it: "pump" for "Our pumps" and "Pumps of Norden"; empty where none does.

    What a column is called is no class: "Weights of pumps" with the column weight are pumps, and
    the rows of "Goals" with the column goals are none."""
    words = title.lower().split()
    head_words = [_HEAD_WORD.findall(column.lower().replace("_", " ")) for column in columns]
    heads = {word for head in head_words for word in head}
    nouns = {singular_of(head[-1]) for head in head_words if head}
    ends = (
        at
        for at, word in enumerate(words)
        if at and word in _PREPOSITIONS and words[at - 1].rstrip("s") not in heads
    )
    word = words[next(ends, len(words)) - 1] if words else ""
    singular = singular_of(word)
    return "" if singular == word or not word.isalpha() or singular in nouns else singular


def singular_of(word: str) -> str:
    """Return the singular of a regular plural in small letters; any other word unchanged."""
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


def _key_words(key: str) -> str:
    """Return a column's head as words: "boiling point" for ``boilingPoint``."""
    return " ".join(_GLUED.sub(" ", key.replace("_", " ")).split()).lower()


def _unit_of(cell: CellValue) -> str:
    return cell.unit if cell.kind in NUMBERS else ""


def _predicate_of(key: str, cell: CellValue | None) -> str:
    """Return a column's predicate, which has the unit of its amounts: "weight in kg"."""
    if cell is None or not (unit := _unit_of(cell)):
        return _key_words(key)
    name, _ = split_unit(key)
    return f"{_key_words(name)} in {unit}"


def _read_field(block: Segment, reading: ChunkReading, section: NamedEntity | None) -> None:
    """Read a field line, such as ``Author: Charles Dickens``, as a description of its section
    subject."""
    (key, (start, end)) = block.pairs[0]
    name, value = block.text[slice(*key)], block.text[start:end].strip()
    if section is not None and name and value:
        obj = _read_object(name, (start, end), None, block, reading)
        reading.state(section, _key_words(name), obj, _FIELD_STRENGTH, block)


def _cell_kind(key: str, name: str) -> str:
    """Return a cell's type: from a type-naming column ("builder"), otherwise from its text."""
    words = _key_words(key).split() or [""]
    return kind_of_noun(words[-1]) or ("place" if _PLACES & set(words) else kind_of_name(name))


def _read_object(
    key: str, span: TextSpan, cell: CellValue | None, block: Segment, reading: ChunkReading
) -> NamedEntity | Literal:
    """Return a cell value as typed literal, as entities if name-like, otherwise as text.

    ``cell`` is how the cell's column reads it; None for a value outside a table."""
    text = block.text[slice(*span)].strip()
    literal = parse_literal(text) if cell is None else _typed_literal(cell)
    if literal is not None:
        return literal
    if (cell is not None and cell.kind == "identifier") or not _is_name(text):
        return Literal(text)
    return _read_names(key, text, span[0], block, reading)


def _typed_literal(cell: CellValue) -> Literal | None:
    if not cell.value:
        return None
    kind = cell.kind
    if kind == "date":
        return Literal(cell.value, datatype=xsd(_DATES.get(len(cell.value), "dateTime")))
    if kind == "year":
        return Literal(cell.value, datatype=xsd("gYear"))
    if kind in ("integer", "boolean"):
        return Literal(cell.value, datatype=xsd(kind))
    return Literal(cell.value, datatype=xsd("decimal"))


def _read_names(
    key: str, text: str, start: int, block: Segment, reading: ChunkReading
) -> NamedEntity:
    kind = _cell_kind(key, text) or UNKNOWN
    entities = []
    for part in text.split(", ") if kind == "place" else [text]:
        at = block.text.find(part, start)
        entities.append(
            reading.record_mention(
                reading.names.find_or_create(part, kind), block, at, at + len(part)
            )
        )
    for inner, outer in pairwise(entities):
        reading.facts.append(StatedFact(inner, "in", outer, _STRENGTH, block, 0, len(block.text)))
    return entities[0]


def _is_name(value: str) -> bool:
    words = value.split()
    if len(words) > _LONGEST_NAME or value[-1] in ".!?;:," or not value[0].isupper():
        return False
    return all(not word[0].islower() or word.lower() in _PARTICLES for word in words)
