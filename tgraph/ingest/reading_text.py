"""Readable text built from pieces, each character with its source place."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tgraph.model import CellValue, Inline, Segment, SegmentKind, TableRow

if TYPE_CHECKING:
    from tgraph.ingest.markdown_inline import Piece

TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
"""The beginning of a tag of HTML: whether it closes, and its name."""

# What is put between words and never read: soft hyphens, marks of width and direction.
_UNREAD = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff").union(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_UNREAD_MARK = re.compile(f"[{''.join(sorted(_UNREAD))}]")
# "[27]", "[^note]", "[edit]": marks of references and of a wiki's editors; words struck out.
_MARK = re.compile(
    r"\[(?:\d{1,3}(?:[,–-] ?\d{1,3}){0,4}|\^[^\[\]\s]{1,40}|[a-z]|(?:note|n|nb) \d{1,3}|edit"
    r"|edit source|citation needed|clarification needed|better source needed|when\?|who\?"
    r"|according to whom\?| |X|![A-Z]{3,12}|struck: [^\[\]]{1,2000})\]"
)
_NUMBER_CELL = re.compile(r"\s*\[\d{1,3}\]\s*")


class ReadingText:
    """A text under construction: white space collapsed, what isn't read left out."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.offsets = array("q")
        self._gap: int | None = None
        self._length = 0
        self._marks = _InlineMarks()

    def __len__(self) -> int:
        return self._length

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def append_piece(self, piece: Piece, places: Sequence[int]) -> None:
        """Append a piece's visible text, registering marks; character ``i`` of the content
        stands at ``places[i]``."""
        if piece.text:
            self.add(piece.text, [places[at] for at in piece.places])
        if piece.stretch:
            first, last = places[piece.stretch[0]], places[piece.stretch[-1]] + 1
            if piece.text:
                self._marks.found.append(Inline(first, first, first, last))
            else:
                self._marks.read_mark(piece.kind, first, last)

    def add(self, text: str, places: Sequence[int]) -> None:
        """Append readable ``text``; character ``i`` stands at ``places[i]``."""
        if _UNREAD_MARK.search(text):
            kept_indexes = [i for i, character in enumerate(text) if character not in _UNREAD]
            text = "".join(text[i] for i in kept_indexes)
            places = [places[i] for i in kept_indexes]
        at = 0
        for word in text.split():
            begin = text.index(word, at)
            if begin > at or (at and begin == at):
                self._open_gap(places[at])
            self._append_word(word, places[begin : begin + len(word)])
            at = begin + len(word)
        if at < len(text):
            self._open_gap(places[at])

    def add_words(self, text: str, start: int) -> None:
        """Append single-spaced words, reading exactly as the source from ``start``."""
        self._append_word(text, range(start, start + len(text)))

    def add_at(self, text: str, place: int) -> None:
        """Append text missing in the source, assigned to a single source place."""
        self.add(text, [place] * len(text))

    def gap(self) -> None:
        """Add a space missing in the source."""
        if self._length:
            self._open_gap(self.offsets[-1])

    def _open_gap(self, place: int) -> None:
        if self._gap is None:
            self._gap = place

    def _append_word(self, word: str, places: Sequence[int]) -> None:
        if self._gap is not None and self._length:
            self._parts.append(" ")
            self.offsets.append(self._gap)
            self._length += 1
        self._gap = None
        self._parts.append(word)
        self.offsets.extend(places)
        self._length += len(word)

    def segment(
        self, kind: SegmentKind, headings: tuple[str, ...] = (), lead: tuple[str, ...] = ()
    ) -> Segment | None:
        """Return a segment of the text read, minus reference marks; None for no text.

        The segment extends from the first to the last character read."""
        text, offsets = without_marks(self.text, self.offsets)
        if not text:
            return None
        inlines = _nest_inlines(
            inline for inline in self._marks.found if _contains_text(inline, offsets)
        )
        start, end = offsets[0], offsets[-1] + 1
        return Segment(
            kind,
            min((start, *(inline.start for inline in inlines))),
            max((end, *(inline.end for inline in inlines))),
            text,
            offsets,
            headings,
            lead,
            inlines=inlines,
        )


class _OpenInline:
    """Contents of a Markdown inline, or of the entire text: open HTML tags."""

    def __init__(self, start: int = 0, end: int = 0) -> None:
        self.mark = start, end
        self.tags: list[tuple[str, int, int]] = []
        self.names: Counter[str] = Counter()


class _InlineMarks:
    """Marks opening and closing inlines, in order, plus the resulting inlines.

    A tag is closed within the emphasis or link where it was opened, or stands alone."""

    def __init__(self) -> None:
        self.found: list[Inline] = []
        self._levels = [_OpenInline()]

    def read_mark(self, kind: str, start: int, end: int) -> None:
        if tag := TAG.match(kind):
            self._match_tag(tag[2].lower(), bool(tag[1]), start, end)
        elif kind.endswith("_open"):
            self._levels.append(_OpenInline(start, end))
        elif kind.endswith("_close"):
            self.found.append(Inline(*self._levels.pop().mark, start, end))

    def _match_tag(self, name: str, closes: bool, start: int, end: int) -> None:
        level = self._levels[-1]
        if not closes:
            level.tags.append((name, start, end))
            level.names[name] += 1
            return
        opened = ""
        while level.names[name] and opened != name:
            opened, outside, inside = level.tags.pop()
            level.names[opened] -= 1
            if opened == name:
                self.found.append(Inline(outside, inside, start, end))


def _nest_inlines(inlines: Iterable[Inline]) -> tuple[Inline, ...]:
    """Return inlines sorted by start, each with its enclosing inline."""
    nested_inlines: list[Inline] = []
    for inline in sorted(inlines):
        outer = len(nested_inlines) - 1
        while outer >= 0 and nested_inlines[outer].end <= inline.start:
            outer = nested_inlines[outer].outer
        nested_inlines.append(inline._replace(outer=outer))
    return tuple(nested_inlines)


def _contains_text(inline: Inline, offsets: Sequence[int]) -> bool:
    """Return whether the inline contains readable text."""
    at = bisect_left(offsets, inline.start)
    return at < len(offsets) and offsets[at] < inline.end


def without_marks(text: str, offsets: array[int]) -> tuple[str, array[int]]:
    """Return the text and offsets, removing marks such as ``[27]`` and ``[edit]`` and leftover
    space before punctuation."""
    if "[" not in text or not _MARK.search(text) or _NUMBER_CELL.fullmatch(text):
        return text, offsets  # a number in brackets by itself is a value, not a reference
    text_parts, places, at = [], array("q"), 0
    for match in _MARK.finditer(text):
        begin, end = match.span()
        if begin and text[begin - 1] == " " and (end == len(text) or not text[end].isalnum()):
            begin -= 1
        if begin < at:
            begin = at
        text_parts.append(text[at:begin])
        places.extend(offsets[at:begin])
        at = end
    text_parts.append(text[at:])
    places.extend(offsets[at:])
    joined = "".join(text_parts)
    lead = len(joined) - len(joined.lstrip())
    joined = joined.strip()
    return joined, places[lead : lead + len(joined)]


def joined_cells(
    kind: SegmentKind,
    cells: Sequence[Segment | None],
    names: Sequence[str],
    place: tuple[int, int] | None = None,
) -> Segment | None:
    """Join nonempty cells into a row, prefixing cells with column names where known.

    ``place`` numbers the table on the page and the row in the table."""
    parts: list[str] = []
    offsets = array("q")
    pairs = []
    length = 0
    values = []
    for column, cell in enumerate(cells):
        if cell is None:
            continue
        name = names[column] if column < len(names) else ""
        values.append(CellValue("text", column=column))
        lead = ("; " if parts else "") + (f"{name}: " if name else "")
        if parts:
            offsets.extend([offsets[-1]] * 2)
        offsets.extend([cell.offsets[0]] * (len(lead) - 2 * bool(parts)))
        offsets.extend(cell.offsets)
        parts += (lead, cell.text)
        begin, at = length + 2 * (len(parts) > 2), length + len(lead)
        length = at + len(cell.text)
        pairs.append(((begin, begin + len(name)), (at, length)))
    if not parts:
        return None
    read = [cell for cell in cells if cell is not None]
    inlines = _nest_inlines(inline for cell in read for inline in cell.inlines)
    start, end = read[0].start, read[-1].end
    text = "".join(parts)
    row = TableRow(*place, cells=tuple(values)) if place is not None else None
    return Segment(kind, start, end, text, offsets, pairs=tuple(pairs), inlines=inlines, row=row)


def part_of_row(row: Segment, cells: Sequence[int]) -> Segment:
    """Return a row of a table with some of its pairs, and with those that name its subject: these
    have the place of the pair beside them where they aren't among ``cells``, which is sorted."""
    assert row.row is not None
    kept = sorted({*cells, *row.row.label})
    place = row.offsets[row.pairs[cells[0]][1][0]]
    parts: list[Segment | None] = []
    for at in kept:
        start, end = row.pairs[at][1]
        if at in cells:
            part = replace(row.clip(start, end), pairs=(), inlines=(), row=None)
            place = part.offsets[-1]
        else:
            places = array("q", [place]) * (end - start)
            part = Segment(row.kind, place, place + 1, row.text[start:end], places)
        parts.append(part)
    names = [row.text[slice(*row.pairs[at][0])] for at in kept]
    joined = joined_cells(row.kind, parts, names)
    assert joined is not None
    return replace(
        joined,
        headings=row.headings,
        lead=row.lead,
        inlines=row.inlines,
        row=row.row.select_cells(kept),
    )
