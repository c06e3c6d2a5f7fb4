"""Cuts a chunk into blocks that a parser can read, each with the way back to the chunk.

A block's text is the chunk's with white space collapsed and mark-up characters left out, so every
character of it knows where it stands in the chunk.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as Choice

from tgraph.vocabulary import normalise_name

Kind = Choice["prose", "heading", "row", "display"]

_BLANK = re.compile(r"\n[^\S\n]*\n\s*|(?<=\S)[^\S\n]{3,}(?=\S)")
_FIELD = re.compile(r"[A-Z][\w]*(?: [\w]+){0,2}: \S(?:.{0,118}[^.!?,;:\s])?")
_FIELD_LINE = re.compile(r"\s*[A-Z]\w*(?: \w+){0,2}:\s+\S")
_MARKER = re.compile(r"\s*(?:[-*•‣–]\s+|\d{1,3}[.)]\s+|#{1,6}\s+|>\s+)")
_DROPPED = r"\s_*`|\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff"
_PIECE = re.compile(rf"[^{_DROPPED}]+(?:_+[^{_DROPPED}]+)*")
_PAIR = re.compile(r"\s*([^:;\n]{1,60}?)\s*:\s+([^;\n]*?)\s*(?:;|$)", re.MULTILINE)
_MARKDOWN_HEADING = re.compile(r"\s*#{1,6}\s+\S")
_RULED = re.compile(r"\S(?: {4,}|\t+)\S|^\s*\||={3,}|-{4,}")
_GAP = re.compile(r"[\s|]")
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a chunk: prose, a known heading, a row or field, or a line set apart (display).

    ``offsets[i]`` is where character ``i`` of ``text`` stands in the chunk.
    """

    kind: Kind
    text: str
    offsets: array[int]

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """The chunk's coordinates of ``text[start:end]``, which must not be empty."""
        return self.offsets[start], self.offsets[end - 1] + 1

    def find(self, position: int) -> int:
        """The first character of ``text`` at or after a position of the chunk."""
        return bisect_left(self.offsets, position)


def cut(text: str, headings: Sequence[str] = ()) -> list[Block]:
    """The blocks of a chunk's text in order; blocks without a letter are left out."""
    known = {normalise_name(heading) for heading in headings}
    blocks = []
    for start, end in _stretches(text):
        shown, offsets = _clean(text, start, end)
        if any(map(str.isalpha, shown)):
            blocks.append(Block(_kind(shown, text[start:end], known), shown, offsets))
    return blocks


def pairs(block: Block) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where keys and values stand in the text of a row such as ``Name: Fram; Year: 1892``."""
    return [(match.span(1), match.span(2)) for match in _PAIR.finditer(block.text)]


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for gap in _BLANK.finditer(text):
        yield from _lines(text, start, gap.start())
        start = gap.end()
    yield from _lines(text, start, len(text))


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A paragraph whole, or line by line where its lines are items, rows or headings."""
    begin = position = start
    previous = ""
    for line in text[start:end].splitlines(keepends=True):
        if position > begin and (_starts_block(line, previous) or position - begin > _LONGEST):
            yield begin, position
            begin = position
        previous = line
        position += len(line)
    for cut_at in range(begin, end, _LONGEST):
        yield cut_at, min(cut_at + _LONGEST, end)


def _starts_block(line: str, previous: str) -> bool:
    if _MARKER.match(line) or _FIELD_LINE.match(line) or _MARKDOWN_HEADING.match(previous):
        return True
    return any(_RULED.search(part) or _is_row(part) for part in (line, previous))


def _is_row(text: str) -> bool:
    if ";" not in text or text.count(": ") < 2:
        return False
    found = _PAIR.findall(text)
    if len(found) < 2:
        return False
    covered = sum(len(key) + len(value) + 2 for key, value in found)
    return covered > 0.8 * len(text.strip()) and all(
        len(key.split()) <= 6 and key.count("(") == key.count(")") for key, _ in found
    )


def _clean(text: str, start: int, end: int) -> tuple[str, array[int]]:
    marker = _MARKER.match(text, start, end)
    pieces: list[str] = []
    offsets = array("l")
    position = marker.end() if marker else start
    for match in _PIECE.finditer(text, position, end):
        if pieces and _GAP.search(text, position, match.start()):
            pieces.append(" ")
            offsets.append(position)
        pieces.append(match.group())
        offsets.extend(range(*match.span()))
        position = match.end()
    return "".join(pieces), offsets


def _kind(text: str, raw: str, headings: set[str]) -> Kind:
    if _is_row(text) or _FIELD.fullmatch(text):
        return "row"
    if normalise_name(text) in headings or _MARKDOWN_HEADING.match(raw):
        return "heading"
    return "display" if _is_display(text) else "prose"


def _is_display(text: str) -> bool:
    """Whether a line is set apart from the prose: in capitals, or a few words unended."""
    letters = [c for c in text if c.isalpha()]
    if sum(map(str.isupper, letters)) > 0.7 * len(letters):
        return True
    words = text.split()
    if len(words) > 9 or text[-1] in ".,;:!?\"'”’)" or not text[0].isalpha():
        return False
    return all(word[0].isupper() or len(word) <= 3 for word in words)
