"""The one form that all readers give a document: blocks in reading order, and a report of what is
missing.

A reader adds the blocks of a page to a ``PageBuilder``, which makes the stored text and records
where each block stands in the text; ``tgraph.ingest.block_segments`` reads the blocks again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tgraph.ingest.base import FENCE, storable
from tgraph.model import (
    Block,
    BlockKind,
    Heading,
    Page,
    ReadingLoss,
    ReadingReport,
    TableCell,
    TextLine,
    UnitCount,
)
from tgraph.rendering import collapse_whitespace

CELL_GAP = " | "
"""What parts the cells of a row in the stored text."""
_LOWEST = 6
_TIGHT = frozenset(("item", "row", "head", "field"))
_LINE_END = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")


class PageBuilder:
    """Builds a page's stored text from blocks; blocks without text are left out.

    Blocks are separated by a blank line; items of a list, rows of a table and fields stand on
    adjacent lines."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._headings: list[Heading] = []
        self._lines: list[TextLine] = []
        self._tables = 0

    @property
    def block_count(self) -> int:
        return len(self._blocks)

    @property
    def has_text(self) -> bool:
        """Whether a block is more than a mark for content that isn't text."""
        return any(block.kind != "mark" for block in self._blocks)

    def add_paragraph(self, text: str, kind: BlockKind = "prose") -> None:
        """Add a paragraph, or a block of another kind whose text is read like a paragraph's."""
        self._add_block(kind, clean_text(text))

    def add_heading(self, text: str, level: int) -> None:
        """Add a heading of a level (1 is highest)."""
        heading = collapse_whitespace(storable(text))
        lead = f"{'#' * min(max(level, 1), _LOWEST)} "
        if block := self._add_block("heading", heading, lead, level=level):
            self._headings.append(Heading(heading, level, block.start - len(lead)))

    def add_item(self, text: str, depth: int = 0, mark: str = "-") -> None:
        """Add an item of a list; ``depth`` 0 is the outermost list, ``mark`` its bullet or
        number."""
        self._add_block("item", clean_text(text), f"{'  ' * depth}{mark} ", level=depth)

    def add_code(self, text: str) -> None:
        """Add lines of code, which are kept unchanged."""
        code = storable(text).strip("\n").rstrip()
        self._add_block("code", code, f"{FENCE}\n", f"\n{FENCE}")

    def add_mark(self, kind: str, description: str = "") -> None:
        """Add a mark for content that isn't text, such as ``[image: A map]``."""
        self._add_block("mark", loss_mark(kind, description))

    def add_note(self, label: str, text: str) -> None:
        """Add a footnote or an endnote under its label."""
        self._add_block("note", clean_text(text), f"[{label}] " if label else "")

    def add_field(self, name: str, value: str) -> None:
        """Add a line ``name: value``, such as a message's sender."""
        text = f"{collapse_whitespace(storable(name))}: {clean_text(value)}"
        if value.strip():
            self._add_block("field", text)

    def open_table(self) -> int:
        """Return the number of a new table."""
        self._tables += 1
        return self._tables - 1

    def add_row(
        self,
        table: int,
        cells: Sequence[str],
        *,
        head: bool = False,
        names: Sequence[str] = (),
        kind: BlockKind | None = None,
    ) -> None:
        """Add a row of a table, an empty cell of which takes no place in the text.

        ``names`` names the columns where the head's cells don't. A head without any text and with
        ``names`` names the columns of a table that goes on from another page."""
        texts = [collapse_whitespace(storable(cell)) for cell in cells]
        text = CELL_GAP.join(filter(None, texts))
        block_kind: BlockKind = kind or ("head" if head else "row")
        column_names = tuple(collapse_whitespace(storable(name)) for name in names)
        if not text:
            if head and any(column_names):
                here = self._length
                self._blocks.append(Block("head", here, here, table=table, names=column_names))
            return
        at = self._next_start(block_kind, table)
        placed = []
        for column, cell in enumerate(texts):
            if cell:
                placed.append(TableCell(column, at, at + len(cell)))
                at += len(cell) + len(CELL_GAP)
        self._add_block(block_kind, text, table=table, cells=tuple(placed), names=column_names)

    def add_lines(self, lines: Iterable[TextLine]) -> None:
        """Add places on the page's image of lines in the last block; their offsets are from the
        block's start."""
        start = self._blocks[-1].start
        self._lines += [
            replace(line, start=start + line.start, end=start + line.end) for line in lines
        ]

    def append(self, page: Page) -> None:
        """Append another page's blocks with their text."""
        if not page.text:
            return
        shift = self._length + (2 if self._parts else 0)
        self._append_text(page.text, "\n\n")
        self._blocks += [_shift_block(block, shift, self._tables) for block in page.blocks]
        self._headings += [replace(h, start=h.start + shift) for h in page.headings]
        self._lines += [
            replace(line, start=line.start + shift, end=line.end + shift) for line in page.lines
        ]
        self._tables = max((block.table + 1 for block in self._blocks), default=0)

    def page(self, number: int | None = None) -> Page:
        """Return the page built."""
        return Page(
            number,
            "".join(self._parts),
            tuple(self._headings),
            tuple(self._blocks),
            tuple(self._lines),
        )

    def _add_block(
        self,
        kind: BlockKind,
        text: str,
        lead: str = "",
        tail: str = "",
        *,
        level: int = 0,
        table: int = -1,
        cells: tuple[TableCell, ...] = (),
        names: tuple[str, ...] = (),
    ) -> Block | None:
        """Append a block of nonempty text between ``lead`` and ``tail``, which aren't read."""
        if not text.strip():
            return None
        start = self._next_start(kind, table) + len(lead)
        block = Block(kind, start, start + len(text), level, table, cells, names)
        self._append_text(f"{lead}{text}{tail}", self._gap(kind, table))
        self._blocks.append(block)
        return block

    def _gap(self, kind: BlockKind, table: int) -> str:
        before = self._blocks[-1] if self._blocks else None
        tight = before is not None and before.table == table and {kind, before.kind} <= _TIGHT
        if tight and "item" in (kind, before.kind if before else "") and before is not None:
            tight = kind == before.kind
        return "\n" if tight else "\n\n"

    def _next_start(self, kind: BlockKind, table: int) -> int:
        return self._length + (len(self._gap(kind, table)) if self._parts else 0)

    def _append_text(self, text: str, gap: str) -> None:
        lead = gap if self._parts else ""
        self._parts.append(lead + text)
        self._length += len(lead) + len(text)


def clean_text(text: str) -> str:
    """Return a block's text: storable, its ends trimmed, each run of line ends a single one."""
    return _LINE_END.sub("\n", storable(text).replace("\r\n", "\n").replace("\r", "\n")).strip()


def loss_mark(kind: str, description: str = "") -> str:
    """Return the mark of content that isn't text: ``[image: A map]``."""
    words = collapse_whitespace(storable(description)).replace("[", "(").replace("]", ")")
    return f"[{kind}: {words}]" if words else f"[{kind}]"


def _shift_block(block: Block, shift: int, tables: int) -> Block:
    return replace(
        block,
        start=block.start + shift,
        end=block.end + shift,
        table=block.table + tables if block.table >= 0 else -1,
        cells=tuple(
            TableCell(cell.column, cell.start + shift, cell.end + shift) for cell in block.cells
        ),
    )


class LossList:
    """Collects what of a file isn't in the stored text."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, bool]] = Counter()
        self._warnings: list[str] = []

    def add(
        self,
        kind: str,
        reason: str = "",
        *,
        place: str = "",
        marked: bool = False,
        count: int = 1,
    ) -> None:
        """Add content of a kind ("image", "equation") at a place ("page 3"), with the reason."""
        self._counts[kind, place, reason, marked] += count

    def warn(self, sentence: str) -> None:
        """Add a sentence for the user."""
        self._warnings.append(sentence)

    def report(self, reader: str, units: Iterable[UnitCount] = ()) -> ReadingReport:
        """Return the report; a difference of units that nothing explains is a warning."""
        unit_counts = tuple(units)
        losses = tuple(
            ReadingLoss(kind, count, place, reason, marked)
            for (kind, place, reason, marked), count in self._counts.items()
            if count
        )
        unexplained = map(_unit_warning, filter(_differs, unit_counts))
        return ReadingReport(reader, unit_counts, losses, (*self._warnings, *unexplained))


_TOLERANCE = 0.01
"""The share of units whose absence needs no explanation (a hyphen joined, a page number)."""


def _differs(count: UnitCount) -> bool:
    return count.unexplained > _TOLERANCE * count.in_file


def _unit_warning(count: UnitCount) -> str:
    return (
        f"{count.unexplained:,} of {count.in_file:,} {count.unit} of the file aren't in the"
        " stored text, and nothing explains why."
    )


def report_whole(reader: str, text: str) -> ReadingReport:
    """Return the report of a text that is stored as it stands in the file."""
    characters = count_visible(text)
    return ReadingReport(reader, (UnitCount("characters", characters, characters),))


def count_visible(text: str) -> int:
    """Return how many characters of a text aren't white space: the unit of independent counts."""
    return sum(map(len, text.split()))


# --- storage ----------------------------------------------------------------------------------


def pack_layout(page: Page) -> str:
    """Return a page's blocks and lines as JSON, empty where the page has none.

    The result holds places and no text but names of columns; equal pages give equal results."""
    if not page.blocks and not page.lines:
        return ""
    rows = [[b.kind, b.start, b.end, b.level, b.table, b.cells, b.names] for b in page.blocks]
    lines = [
        [n.start, n.end, *(round(x, 5) for x in (n.left, n.top, n.right, n.bottom, n.confidence))]
        for n in page.lines
    ]
    layout = {"blocks": rows, "lines": lines} if lines else {"blocks": rows}
    return json.dumps(layout, ensure_ascii=False, separators=(",", ":"))


def unpack_blocks(layout: str) -> tuple[Block, ...]:
    """Return the blocks of a packed layout."""
    rows = json.loads(layout)["blocks"] if layout else ()
    return tuple(
        Block(kind, start, end, level, table, tuple(TableCell(*c) for c in cells), tuple(names))
        for kind, start, end, level, table, cells, names in rows
    )


def unpack_lines(layout: str) -> tuple[TextLine, ...]:
    """Return the lines with places on the page's image of a packed layout."""
    return tuple(TextLine(*row) for row in json.loads(layout).get("lines", ())) if layout else ()
