"""The segments of a page whose blocks are known."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tgraph.ingest.apparatus import is_address, recognise_apparatus
from tgraph.ingest.reading_text import ReadingText, joined_cells
from tgraph.ingest.sentences import sentences
from tgraph.ingest.table_shape import distinct_names, join_heads
from tgraph.model import Block, BlockKind, Segment, SegmentKind

_KINDS: dict[BlockKind, SegmentKind] = {
    "prose": "prose",
    "item": "item",
    "heading": "heading",
    "code": "code",
    "row": "row",
    "field": "row",
    "display": "display",
    "mark": "display",
    "note": "prose",
    "comment": "display",
}
_LED = frozenset(("item", "row", "code"))


def block_segments(text: str, blocks: Sequence[Block]) -> tuple[Segment, ...]:
    """Return the segments of a page's text, one for each block that has letters or digits.

    A row is read as ``Column: value; Column: value`` with the names of its table's head. Items,
    rows and code are led by the sentence before them, inner items by the item that they are in."""
    segment_list = list(_BlockReading(text).read(blocks))
    links = [is_address(segment.text) for segment in segment_list]
    return tuple(recognise_apparatus(segment_list, links))


@dataclass(slots=True)
class _BlockReading:
    """The state of reading blocks in order: open headings, items and tables."""

    text: str
    above: list[tuple[int, str]] = field(default_factory=list)
    items: list[tuple[int, str]] = field(default_factory=list)
    lead: str = ""
    heads: dict[int, list[list[str]]] = field(default_factory=dict)
    names: dict[int, list[str]] = field(default_factory=dict)
    rows: Counter[int] = field(default_factory=Counter)

    def read(self, blocks: Sequence[Block]) -> Iterator[Segment]:
        for block in blocks:
            if block.kind == "head":
                self._read_head(block)
            segment = self._read_block(block)
            if segment is None or not any(map(str.isalnum, segment.text)):
                continue
            yield self._place(segment, block)

    def _read_head(self, block: Block) -> None:
        """Read the columns' names; a head of several lines that names no columns is joined."""
        if self.rows[block.table]:
            self.heads[block.table] = []
        line: list[str] = []
        for cell in block.cells:
            line += [""] * (cell.column + 1 - len(line))
            line[cell.column] = " ".join(self.text[cell.start : cell.end].split())
        lines = self.heads.setdefault(block.table, [])
        lines.append(line)
        names = list(block.names) or distinct_names(join_heads(lines))
        self.names[block.table] = list(map(_without_references, names))

    def _read_block(self, block: Block) -> Segment | None:
        if block.kind == "code":
            return self._read_code(block)
        if block.cells:
            kind: SegmentKind = "display" if block.kind == "head" else _KINDS[block.kind]
            return self._read_cells(block, kind)
        if block.kind == "field":
            return self._read_field(block)
        return self._read_span(block.start, block.end, _KINDS.get(block.kind, "display"))

    def _read_span(self, start: int, end: int, kind: SegmentKind) -> Segment | None:
        text = self.text[start:end]
        if text.isprintable() and "[" not in text and text == " ".join(text.split()):
            return Segment(kind, start, end, text, array("q", range(start, end)))
        reading = ReadingText()
        reading.add(text, range(start, end))
        return reading.segment(kind)

    def _read_code(self, block: Block) -> Segment:
        places = array("q", range(block.start, block.end))
        code = self.text[block.start : block.end]
        return Segment("code", block.start, block.end, code, places)

    def _read_cells(self, block: Block, kind: SegmentKind) -> Segment | None:
        names = [] if block.kind == "head" else self.names.get(block.table, [])
        place = None
        if block.kind == "row" and block.table >= 0:
            place = block.table, self.rows[block.table]
            self.rows[block.table] += 1
        width = max(cell.column for cell in block.cells) + 1
        cells: list[Segment | None] = [None] * width
        for cell in block.cells:
            cells[cell.column] = self._read_span(cell.start, cell.end, kind)
        return joined_cells(kind, cells, names, place)

    def _read_field(self, block: Block) -> Segment | None:
        segment = self._read_span(block.start, block.end, "row")
        name, colon, value = segment.text.partition(": ") if segment else ("", "", "")
        if segment is None or not colon:
            return segment
        at = len(name) + len(colon)
        return replace(segment, pairs=(((0, len(name)), (at, at + len(value))),))

    def _place(self, segment: Segment, block: Block) -> Segment:
        """Return the segment under its headings and behind its lead."""
        kind = segment.kind
        if block.kind == "heading":
            self.above = [heading for heading in self.above if heading[0] < block.level]
        headings = tuple(heading for _, heading in self.above)
        if kind == "item":
            self.items = [item for item in self.items if item[0] < block.level]
        elif kind not in _LED:
            self.items = []
        outer = tuple(item for _, item in self.items) if kind == "item" else ()
        lead = (self.lead, *outer) if self.lead and kind in _LED else outer
        if block.kind == "heading":
            self.above.append((block.level, segment.text))
        if kind == "item":
            self.items.append((block.level, segment.text))
        if block.kind not in ("head", "mark") and kind not in _LED:
            self.lead = _last_sentence(segment.text) if kind in ("prose", "display") else ""
        return replace(segment, headings=headings, lead=lead)


def _without_references(name: str) -> str:
    """Return a column's name without references of notes."""
    if "[" not in name:
        return name
    reading = ReadingText()
    reading.add(name, range(len(name)))
    segment = reading.segment("display")
    return segment.text if segment and segment.text.strip() else name


def _last_sentence(text: str) -> str:
    spans = sentences(text)
    return text[slice(*spans[-1])] if spans else ""
