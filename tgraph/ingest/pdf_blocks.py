"""The blocks of a PDF's pages: paragraphs, headings, items and tables, made of lines in reading
order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from tgraph.ingest.pdf_layout import BULLETS, Line, PlacedItem, TableGrid
from tgraph.ingest.sentences import sentences
from tgraph.model import BlockKind

_ITEM = re.compile(
    rf"(?P<mark>[{BULLETS}]|-(?=\s)|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{1,5}})[.)])\s+(?=\S)"
)
_WEAK_BULLETS = frozenset("·–—*-")
"""Bullets that stand inside sentences too."""
_BULLET = re.compile(rf"[{BULLETS}-]$")
_SECTION = re.compile(r"(?:§+\s*)?(\d{1,3}(?:\.\d{1,3})*)(\.?)\s+(?=[^\W\d_])")
_LABEL = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+|[*∗†‡§¶]|\[?\d{1,3}\]?(?=\s)")
_ENDS = re.compile(r"[.!?:;…。！？][\"'”’»)\]*⁰¹²³⁴⁵⁶⁷⁸⁹]*$")
_WORD_GOES_ON = re.compile(r"(?<![^\W\d_])([^\W\d_]++)[-\u2010]$")
_JOINS = re.compile(
    r"(?:[,–—]|\b(?:a|an|the|of|and|or|to|in|for|by|with|at|on|from|der|die|das|und|de|la|le|et))$"
)
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_SOFT = "\u00ad"
_LONGEST_HEADING = 200


@dataclass(slots=True)
class DraftBlock:
    """A block under construction. ``text`` is set where it isn't that of the lines, and
    ``joined`` counts the hyphens that it lacks."""

    kind: BlockKind
    lines: list[Line] = field(default_factory=list)
    table: TableGrid | None = None
    level: int = 0
    text: str = ""
    joined: int = 0

    @property
    def is_unfinished(self) -> bool:
        """Whether the last sentence doesn't end in the block."""
        return self.kind in ("prose", "item") and not _ENDS.search(self.lines[-1].text)


@dataclass(frozen=True, slots=True)
class BodyStyle:
    """The style of a document's running text: the size of most characters, their weight, the
    distance of lines in sizes, and the words with and without hyphens."""

    size: float
    bold: bool
    monospaced: bool
    pitch: float
    words: Set[str]


def body_style(pages: Iterable[Sequence[PlacedItem]]) -> BodyStyle:
    """Return the style of most of the characters of pages."""
    styles: Counter[tuple[float, bool, bool]] = Counter()
    pitches: Counter[float] = Counter()
    words: set[str] = set()
    for items in pages:
        lines = [item for item in items if isinstance(item, Line)]
        for line in lines:
            styles[round(line.size, 1), line.bold, line.monospaced] += len(line.text)
            words.update(word.strip("-") for word in re.findall(r"[\w-]{4,40}", line.text.lower()))
        for before, line in pairwise(lines):
            step = (line.baseline - before.baseline) / line.size
            if before.column == line.column and 0.9 < step < 2.6:
                pitches[round(step, 1)] += len(line.text)
    sizes: Counter[float] = Counter()
    for (size, _, _), count in styles.items():
        sizes[size] += count
    size = sizes.most_common(1)[0][0] if sizes else 1.0
    of_size = {key: count for key, count in styles.items() if key[0] == size}
    bold = sum(n for (_, is_bold, _), n in of_size.items() if is_bold) * 2 > sizes[size]
    mono = sum(n for (_, _, is_mono), n in of_size.items() if is_mono) * 2 > sizes[size]
    usual = pitches.most_common(1)[0][0] if pitches else 1.2
    return BodyStyle(size, bold, mono, usual, words)


# --- paragraphs ---------------------------------------------------------------------------------


def draft_blocks(items: Sequence[PlacedItem], body: BodyStyle) -> list[DraftBlock]:
    """Return the blocks of a page's items; a sentence that goes on in the next column is whole."""
    drafting = _Drafting(body)
    for item in items:
        drafting.add(item)
    for block in drafting.blocks:
        _decide_kind(block, body)
    return drafting.blocks


class _Drafting:
    """Blocks of a page, of which the last may go on, or an earlier one that is unfinished: behind
    a table, a picture or the end of a column, not behind lines in its own column."""

    def __init__(self, body: BodyStyle) -> None:
        self._body = body
        self.blocks: list[DraftBlock] = []
        self._open: DraftBlock | None = None
        self._suspended: DraftBlock | None = None
        self._is_parted = False

    def add(self, item: PlacedItem) -> None:
        if not isinstance(item, Line):
            self._suspend()
            if isinstance(item, TableGrid):
                self.blocks.append(DraftBlock("row", table=item))
            else:
                self.blocks.append(DraftBlock("mark", text=item.kind))
                self.blocks += [DraftBlock("display", list(item.labels))] * bool(item.labels)
            return
        block = self._open
        if block is not None and _is_next_line(block, item, self._body):
            block.lines.append(item)
            return
        if block is not None and block.lines[-1].column != item.column:
            self._suspend()
        if self._suspended is not None:
            last = self._suspended.lines[-1]
            is_parted = self._is_parted or last.column != item.column
            if is_parted and sentence_goes_on(last, item):
                self._open, self._suspended = self._suspended, None
                self._open.lines.append(item)
                return
            if _same_style(last, item) or item.size > self._body.size * 1.08:
                self._suspended = None
        elif block is not None and block.is_unfinished and item.size < 0.95 * block.lines[-1].size:
            self._suspended, self._is_parted = block, False
        mark = _ITEM.match(item.text)
        self._open = DraftBlock("item" if mark else "prose", [item])
        self.blocks.append(self._open)

    def _suspend(self) -> None:
        block, self._open, self._is_parted = self._open, None, True
        if block is None or self._suspended is not None or _heads(block, self._body):
            return
        if block.is_unfinished:
            self._suspended = block


def _same_style(line: Line, other: Line) -> bool:
    near = 0.92 < line.size / other.size < 1.08
    return near and line.bold == other.bold and line.monospaced == other.monospaced


def _is_next_line(block: DraftBlock, line: Line, body: BodyStyle) -> bool:
    """Return whether a line is the next of a block in its column."""
    before = block.lines[-1]
    is_title = min(before.size, line.size) > 1.12 * body.size and before.size == line.size
    if before.column != line.column or not (is_title or _same_style(before, line)):
        return False
    step = line.baseline - before.baseline
    if not 0.2 * line.size < step < _most_step(block, line, body):
        return False
    if line.monospaced and not body.monospaced:
        return True
    ends = bool(_ENDS.search(before.text))
    if _starts_block(line, ends, block):
        return False
    if _heads(block, body) or line.size > 1.12 * body.size:
        return True
    return not (_is_indented(block, line, ends) or _stops_short(block, line))


def _most_step(block: DraftBlock, line: Line, body: BodyStyle) -> float:
    """Return the distance of baselines that begins a paragraph."""
    lines = block.lines[-2:]
    usual = body.pitch if abs(line.size / body.size - 1) < 0.08 else 1.3
    if len(lines) == 2:
        own = (lines[1].baseline - lines[0].baseline) / line.size
        if 0.9 < own < 2.6:
            usual = min(usual, own) if abs(usual - own) < 0.4 else own
    return (1.3 * usual + 0.05) * line.size


def _starts_block(line: Line, ends: bool, block: DraftBlock) -> bool:
    if mark := _ITEM.match(line.text):
        if _BULLET.match(mark["mark"]) and mark["mark"] not in _WEAK_BULLETS:
            return True
        return ends or block.kind == "item" or _stops_short(block, line)
    match = _SECTION.match(line.text)
    return (
        match is not None
        and line.text[match.end()].isupper()
        and (ends or _stops_short(block, line))
    )


def _heads(block: DraftBlock, body: BodyStyle) -> bool:
    first = block.lines[0]
    return (first.bold and not body.bold) or first.size > 1.12 * body.size


def _is_indented(block: DraftBlock, line: Line, ends: bool) -> bool:
    """Return whether a line's left end begins another paragraph."""
    before, size = block.lines[-1], line.size
    shift = line.start - before.start
    if block.kind == "item":
        return ends and shift < -0.8 * size
    if abs(shift) <= 0.8 * size or not ends:
        return False
    return shift > 0 or len(block.lines) > 1


def _stops_short(block: DraftBlock, line: Line) -> bool:
    """Return whether a block's last line was ended before its column, or before the block's other
    lines, though the next word had fitted."""
    before = block.lines[-1]
    word = line.text.split(" ", 1)[0]
    if word[:1].islower() or _JOINS.search(before.text) or _WORD_GOES_ON.search(before.text):
        return False
    _, left, right = before.column
    lines = block.lines
    end = max(other.end for other in lines) if len(lines) > 1 else before.column_end
    width = (line.right - line.left) * (len(word) + 1) / max(len(line.text), 1)
    return end - before.end > max(0.25 * (right - left), width)


def sentence_goes_on(before: Line, line: Line) -> bool:
    """Return whether a line continues, in another column or on another page, the sentence that a
    line leaves unfinished."""
    text, following = before.text, line.text
    if not _same_style(before, line) or _ENDS.search(text) or not following:
        return False
    if _ITEM.match(following):
        return False
    if following[0].islower() or _JOINS.search(text) or _WORD_GOES_ON.search(text):
        return True
    _, left, right = before.column
    width = right - left
    is_full = width > 8 * before.size and before.end > before.column_end - 0.12 * width
    return is_full and not _SECTION.match(following)


# --- kinds --------------------------------------------------------------------------------------


def _decide_kind(block: DraftBlock, body: BodyStyle) -> None:
    if not block.lines or block.kind == "display":
        return
    first, count = block.lines[0], len(block.lines)
    text = " ".join(line.text for line in block.lines)
    if not any(map(str.isalnum, text)):
        block.kind = "display"
    elif first.monospaced and not body.monospaced and count > 1:
        block.kind = "code"
    elif first.sideways:
        block.kind = "display"
    elif _is_heading(block, text, body):
        block.kind = "heading"
    elif first.size < 0.93 * body.size and _LABEL.match(text) and len(text) > 12:
        block.kind = "note"


def _is_heading(block: DraftBlock, text: str, body: BodyStyle) -> bool:
    first = block.lines[0]
    letters = sum(map(str.isalpha, text))
    if len(block.lines) > 4 or len(text) > _LONGEST_HEADING or letters < 2:
        return False
    if _BULLET.match(text[:1]) or text.endswith((",", ";")):
        return False
    is_larger = first.size > 1.12 * body.size
    is_bold = all(line.bold for line in block.lines) and not body.bold
    if is_larger or (is_bold and not text.endswith(".")):
        return is_larger or first.size > 0.9 * body.size
    section = _SECTION.match(text)
    is_short = len(block.lines) == 1 and len(text.split()) <= 12
    is_title = section is not None and text[section.end()].isupper() and not _ENDS.search(text)
    return is_short and is_title and first.right < first.column[2] - 0.1 * first.size


def rank_headings(pages: Iterable[Sequence[DraftBlock]]) -> None:
    """Give the headings of a document levels by size, weight and numbering."""
    headings = [block for blocks in pages for block in blocks if block.kind == "heading"]
    styles = sorted({_heading_style(block) for block in headings}, reverse=True)
    for block in headings:
        section = _SECTION.match(block.lines[0].text)
        depth = section[1].count(".") if section else 0
        block.level = min(styles.index(_heading_style(block)) + 1 + depth, 6)


def _heading_style(block: DraftBlock) -> tuple[int, bool]:
    return round(block.lines[0].size), block.lines[0].bold


# --- text ---------------------------------------------------------------------------------------


def join_lines(lines: Sequence[Line], words: Set[str]) -> tuple[str, int]:
    """Return the text of lines, one below the other, and how many hyphens were joined.

    A hyphen at a line's end goes where the word goes on in the next line; it stays where the
    document has the word with a hyphen, or where a part of it isn't a small-letter word."""
    text, joined = lines[0].text, 0
    for line in lines[1:]:
        following = line.text
        split, after = _WORD_GOES_ON.search(text), _NEXT_WORD.match(following)
        if text.endswith(_SOFT):
            text = f"{text[:-1]}{following}"
            joined += 1
        elif split and after and after[0][0].islower():
            kept = _keeps_hyphen(text, split[1], after[0], words)
            text = f"{text if kept else text[:-1]}{following}"
            joined += not kept
        elif split and after and text[-2:-1].isalnum() and _is_compound(split[1], after[0], words):
            text += following
        else:
            text += f"\n{following}"
    return text, joined


def block_text(block: DraftBlock, words: Set[str]) -> tuple[str, int]:
    """Return a block's text and how many hyphens were joined."""
    return (block.text, block.joined) if block.text else join_lines(block.lines, words)


def split_item(text: str) -> tuple[str, str]:
    """Return the mark of a list's item (``-`` for any bullet), and the text after it."""
    match = _ITEM.match(text)
    if match is None:
        return "-", text
    mark = match["mark"]
    return "-" if _BULLET.match(mark) else mark, text[match.end() :]


def indent_code(lines: Sequence[Line]) -> str:
    """Return lines of code, indented by their place."""
    left = min(line.left for line in lines)
    rows = []
    for line in lines:
        width = (line.right - line.left) / max(len(line.text), 1)
        rows.append(" " * min(round((line.left - left) / max(width, 1.0)), 80) + line.text)
    return "\n".join(rows)


def _is_compound(first: str, second: str, words: Set[str]) -> bool:
    return f"{first}-{second}".lower() in words


def _keeps_hyphen(text: str, first: str, second: str, words: Set[str]) -> bool:
    whole = text.split()[-1]
    if any(map(str.isdigit, whole)) or "-" in whole[:-1] or not first[1:].islower():
        return not first[1:].islower() or f"{first}{second}".lower() not in words
    return _is_compound(first, second, words) and f"{first}{second}".lower() not in words


def carry_sentences(pages: Sequence[list[DraftBlock]], words: Set[str]) -> dict[int, int]:
    """Take the end of a sentence that goes on over a page break to the page where it begins;
    return how many characters were moved to which page."""
    moved = {}
    for number, (blocks, following) in reversed(list(enumerate(pairwise(pages), 1))):
        last, first = _last_text(blocks), _first_text(following)
        if last is None or first is None or not sentence_goes_on(last.lines[-1], first.lines[0]):
            continue
        moved[number] = _carry_sentence(last, first, following, words)
    return moved


def _last_text(blocks: Sequence[DraftBlock]) -> DraftBlock | None:
    """Return the block of text that a page ends in, before notes and what isn't text."""
    for block in reversed(blocks):
        if block.kind in ("prose", "item"):
            return block if block.is_unfinished else None
        if block.kind in ("heading", "code"):
            return None
    return None


def _first_text(blocks: Sequence[DraftBlock]) -> DraftBlock | None:
    for block in blocks:
        if block.kind in ("prose", "item"):
            return block
        if block.kind in ("heading", "code"):
            return None
    return None


def _carry_sentence(
    last: DraftBlock, first: DraftBlock, following: list[DraftBlock], words: Set[str]
) -> int:
    before, joined = block_text(last, words)
    after, more = block_text(first, words)
    junction = Line(**{name: getattr(last.lines[-1], name) for name in Line.__slots__})
    junction.text = before
    head = Line(**{name: getattr(first.lines[0], name) for name in Line.__slots__})
    head.text = after
    whole, hyphens = join_lines([junction, head], words)
    at = len(whole) - len(after)
    end = next((stop for start, stop in sentences(whole) if stop > at), len(whole))
    last.text, last.joined = whole[:end], joined + more + hyphens
    rest = whole[end:].strip()
    if rest:
        first.text, first.joined = rest, 0
    else:
        following.remove(first)
        last.lines.append(first.lines[-1])
    return sum(map(len, whole[at:end].split()))
