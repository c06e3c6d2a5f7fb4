"""Documents with pages, the segments in which a page is read, and chunks."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice
from typing import NamedTuple

from tgraph import vocabulary as v


@dataclass(frozen=True, slots=True)
class Heading:
    """A page heading: text, level (1 is highest) and start offset."""

    text: str
    level: int
    start: int


BlockKind = Choice[
    "prose",  # a paragraph
    "item",  # an item of a list
    "heading",
    "code",
    "head",  # the head of a table: its cells name the columns of the rows below
    "row",  # a row of a table
    "field",  # a line "Name: value" that describes the document or the section
    "display",  # a line set apart that states nothing: a caption, the title of a table
    "mark",  # stands for content that isn't text: "[image: A map]", "[scanned page 3]"
    "note",  # a footnote, an endnote, a note below a table
    "comment",  # a reviewer's comment beside the text
]


class TableCell(NamedTuple):
    """A cell of a table's row: the column's number, and the cell's characters on the page."""

    column: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document that stands apart in its own program, at ``text[start:end]`` of a page.

    ``level`` is a heading's level (1 is highest) or an item's depth (0 is outermost). ``table``
    numbers the tables of a page from 0; rows and heads have ``cells``. ``names`` names the columns
    where the cells of a head don't (a head of several rows, a table that goes on from another
    page)."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    table: int = -1
    cells: tuple[TableCell, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextLine:
    """Where a line of a page's text stands on the page's image, as shares of width and height from
    the upper left corner; ``confidence`` (0 to 1) is that of text recognition, 1 for written
    text."""

    start: int
    end: int
    left: float
    top: float
    right: float
    bottom: float
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Page:
    """Stored page text, or a document's text in pageless formats (``number`` None).

    ``blocks`` is the structure of the text where its reader knows the structure; of plain text and
    Markdown the text itself says it. ``lines`` has the places of recognised text."""

    number: int | None
    text: str
    headings: tuple[Heading, ...] = ()
    blocks: tuple[Block, ...] = field(default=(), repr=False)
    lines: tuple[TextLine, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ReadingLoss:
    """Content of a file that isn't in the stored text: its kind ("image", "equation", "scanned
    page"), how often, where ("page 3"), and the reason. ``marked`` states whether a mark stands for
    the content in the text."""

    kind: str
    count: int = 1
    place: str = ""
    reason: str = ""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class UnitCount:
    """How many units ("characters", "pages", "cells", "chapters") an independent count finds in the
    file, how many of them are in the stored text, and how many were left out on purpose."""

    unit: str
    in_file: int
    in_text: int
    left_out: int = 0

    @property
    def unexplained(self) -> int:
        """How many units are neither in the text nor left out on purpose."""
        return self.in_file - self.in_text - self.left_out


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """How much of a file is in the stored text. ``reader`` names the library that read the file
    with its version; ``warnings`` are sentences for the user. ``version`` is that of tgraph's
    reading of the format: another version may store another text."""

    reader: str = ""
    units: tuple[UnitCount, ...] = ()
    losses: tuple[ReadingLoss, ...] = ()
    warnings: tuple[str, ...] = ()
    version: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether the text has all that the file has, or says what is missing."""
        return not self.losses and not self.warnings


@dataclass(frozen=True, slots=True)
class Document:
    """Document content, identified by the SHA-256 of the bytes, regardless of file names."""

    sha256: str
    title: str
    media_type: str
    pages: tuple[Page, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)
    report: ReadingReport | None = field(default=None, compare=False)

    @property
    def iri(self) -> str:
        return v.document_iri(self.sha256)

    def page_iri(self, page: Page) -> str:
        """Return the origin of the page's chunks: the page, or the document if pageless."""
        return self.iri if page.number is None else v.page_iri(self.sha256, page.number)


SegmentKind = Choice[
    "prose",  # a paragraph, or the part of one
    "item",  # an item of a list
    "row",  # a row of a table, or a field such as "Author: Charles Dickens"
    "code",  # a block of code, its lines kept
    "heading",
    "display",  # a line set apart that states nothing: a caption, the head of a table
    "reference",  # an entry of a bibliography
    "navigation",  # contents, menus, lists of links
    "licence",
]


TextSpan = tuple[int, int]


class CellValue(NamedTuple):
    """What a cell of a table states: the kind of its column, its unit ("kg", "EUR"; of a date the
    order "DMY" or "MDY" in which the column writes day and month), the canonical lexical form of a
    number, date or boolean (empty for names and texts), and the number of its column (from 0)."""

    kind: ColumnKind
    unit: str = ""
    value: str = ""
    column: int = 0


ColumnKind = Choice[
    "text",
    "name",
    "category",
    "identifier",
    "integer",
    "decimal",
    "money",
    "percent",
    "date",
    "year",
    "boolean",
]


@dataclass(frozen=True, slots=True)
class TableRow:
    """How a row is read as data: the number of its table on the page and of the row in the table
    (both from 0), its role, which of the segment's pairs name the row's subject (several: first and
    last name; none where nothing names it), and what each pair's value states. ``subject`` is the
    class that the table's rows are of ("ship"), empty where nothing says it. ``is_placed`` says
    that the names don't tell the table's rows apart: a row is identified by its place."""

    table: int
    number: int
    role: Choice["data", "total", "note"] = "data"
    label: tuple[int, ...] = ()
    cells: tuple[CellValue, ...] = ()
    subject: str = ""
    is_placed: bool = False

    def select_cells(self, indexes: Sequence[int]) -> TableRow:
        """Return the row with the cells of some pairs."""
        return replace(
            self,
            label=tuple(at for at, index in enumerate(indexes) if index in self.label),
            cells=tuple(self.cells[index] for index in indexes),
        )


class Inline(NamedTuple):
    """Mark-up inside a block (CommonMark's inlines), in the coordinates of the page: emphasis, a
    link, an image, code, an element of HTML, an escaped character.

    ``start`` and ``end`` are those of all of it, the content stands between ``content_start`` and
    ``content_end``; of code and of what stands for a character the content is empty, since a part
    of it reads otherwise. ``outer`` is the place among the segment's inlines of the one that it is
    in, -1 where it is in none.
    """

    start: int
    content_start: int
    content_end: int
    end: int
    outer: int = -1


@dataclass(frozen=True, slots=True)
class Segment:
    """A page stretch read as a unit: a paragraph, list item, row or code block.

    ``text`` is the reader's view of ``page[start:end]``: without mark-up, white space collapsed
    (code keeps its lines), a row as ``Column: value; Column: value``. ``offsets[i]`` is the
    page position of character ``i`` in ``text``, and never decreases; text added by the reading
    (a column's name) has the place of the text it belongs to. ``headings`` contains the
    headings above the segment, highest first; ``lead`` contains the sentence introducing its
    list, table or code, and the enclosing item. ``pairs`` gives, for a row, the positions of
    each column's name and value in ``text``. ``inlines`` contains mark-up sorted by start:
    nested, never crossed. ``row`` says how a row of a table is read as data."""

    kind: SegmentKind
    start: int
    end: int
    text: str
    offsets: array[int] = field(hash=False, repr=False)
    headings: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()
    pairs: tuple[tuple[TextSpan, TextSpan], ...] = ()
    inlines: tuple[Inline, ...] = field(default=(), hash=False, repr=False)
    row: TableRow | None = field(default=None, hash=False, repr=False)

    @property
    def context(self) -> tuple[str, ...]:
        """The segment's context: headings, followed by lead sentences."""
        return (*self.headings, *self.lead)

    def clip(self, start: int, end: int) -> Segment:
        """Return a segment restricted to ``text[start:end]``, which must not be empty."""
        first, last = self.locate(start, end)
        first = self.start if start == 0 else first
        last = self.end if end == len(self.text) else last
        inside = [
            at for at, (key, value) in enumerate(self.pairs) if start <= key[0] and value[0] < end
        ]
        clipped_pairs = tuple(
            ((key[0] - start, key[1] - start), (value[0] - start, min(value[1], end) - start))
            for key, value in (self.pairs[at] for at in inside)
        )
        return replace(
            self,
            start=first,
            end=last,
            text=self.text[start:end],
            offsets=self.offsets[start:end],
            pairs=clipped_pairs,
            row=self.row.select_cells(inside) if self.row is not None else None,
        )

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return the page position of nonempty ``text[start:end]``, extended to a well-formed
        quote.

        Every inline shared beyond its content is included whole."""
        return self.widen_to_inlines(self.offsets[start], self.offsets[end - 1] + 1)

    def widen_to_inlines(self, first: int, last: int) -> tuple[int, int]:
        """Return the page stretch, extended to include whole every inline shared beyond its
        content.

        The result for a part of a stretch is never larger."""
        for innermost in (self._inline_at(first), self._inline_at(last - 1)):
            number = innermost
            while number >= 0:
                inline = self.inlines[number]
                if inline.content_start <= first and last <= inline.content_end:
                    break
                first, last = min(first, inline.start), max(last, inline.end)
                number = inline.outer
        return first, last

    def _inline_at(self, position: int) -> int:
        """Return the index of the innermost inline at a page position; -1 if none."""
        number = bisect_right(self.inlines, position, key=_inline_start) - 1
        while number >= 0 and self.inlines[number].end <= position:
            number = self.inlines[number].outer
        return number

    def fit(self, start: int, end: int, low: int, high: int) -> TextSpan:
        """Return the longest span of ``text[start:end]`` that stands in ``page[low:high]`` with
        whole inlines.

        For a cut inline, the inside or the outside is kept, whichever is longer. The span may
        be empty."""
        start, end = max(start, self.find(low)), min(end, self.find(high))
        while start < end:
            first, last = self.locate(start, end)
            if low <= first and last <= high:
                break
            cut = next(i for i in self.inlines if i.start == first < low or i.end == last > high)
            opens, inside, closes, after = map(self.find, cut[:4])
            parts = ((start, opens), (max(start, inside), min(end, closes)), (after, end))
            start, end = max(parts, key=lambda part: part[1] - part[0])
        return start, end

    def find(self, position: int) -> int:
        """Return the index of the earliest ``text`` character at or after a page position."""
        return bisect_left(self.offsets, position)


def _inline_start(inline: Inline) -> int:
    return inline.start


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a page: ``page_text[start:end] == text``, always.

    ``segments`` is what of the page's segments lies in it; a chunk that was read from a store comes
    without.
    """

    sha256: str
    page: int | None
    index: int
    start: int
    end: int
    text: str
    tokens: int
    headings: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = field(default=(), compare=False, repr=False)
    preface: str = field(default="", compare=False, repr=False)
    """What of its document's metadata stands before it where a model reads it."""

    @property
    def iri(self) -> str:
        return v.chunk_iri(self.sha256, self.page, self.start, self.end)


def well_formed(
    segments: Sequence[Segment], start: int, end: int, low: int, high: int
) -> tuple[int, int]:
    """Extend a page stretch to whole inlines of the segments, as in
    ``Segment.widen_to_inlines``, within ``page[low:high]``.

    The stretch itself must lie within ``page[low:high]``."""
    at = bisect_right(segments, start, key=_segment_end)
    while at < len(segments) and segments[at].start < end:
        segment = segments[at]
        first, last = segment.widen_to_inlines(max(start, segment.start), min(end, segment.end))
        start, end = max(min(start, first), low), min(max(end, last), high)
        at += 1
    return start, end


def _segment_end(segment: Segment) -> int:
    return segment.end


def kind_at(page: Sequence[Segment], start: int, end: int) -> SegmentKind | None:
    """Return the segment kind at a page stretch; None if the stretch crosses the segment's end."""
    at = bisect_right(page, start, key=lambda segment: segment.start) - 1
    return page[at].kind if at >= 0 and end <= page[at].end else None
