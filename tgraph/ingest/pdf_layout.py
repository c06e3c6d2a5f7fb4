"""The reading order of a PDF's page: columns read down one after the other, tables as rows.

A gutter is a strip that no text crosses between two heights, with text on both of its sides. The
gutter with the most text beside it divides a page into what is above, left, right and below, each
of which is divided again. Where the text on both sides forms rows of short cells, it is a table
instead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import median

from tgraph.ingest.pdf_fragments import Box, Fragment, PageContent

_COLUMN_EMS = 10
"""The width of a line of prose in a column, in font sizes, at least."""
_GUTTER_EMS = 0.55
_APART_EMS = 2.0
"""A gap that separates texts on one line which belong to no table, in font sizes."""
_MOST_FRAGMENTS = 2_500
"""Fragments of a page (a map, a drawing) above which the order of drawing is kept."""
_MOST_DEPTH = 12
_MOST_TABLES = 60
_ROW_CELLS = 3
"""Texts apart on one line that are a row of their own."""
BULLETS = "•‣◦▪▫●○■□◆◇⁃∙·–—*➢➤✓✔❖\ufffd\ue000-\uf8ff"
"""Characters that begin an item, as a regular expression's class: with them those of symbol fonts
(private use), and those of fonts that don't say what they are."""
_MARK = re.compile(
    rf"(?:[{BULLETS}-]|"
    r"\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]|\d+(?:\.\d+){2,}\.?|\.\d{1,2})$"
)
_MARK_EMS = 8
"""The gap behind an item's bullet or number, in font sizes, at most."""
_LONG_LINE = 30
"""Characters of a line that is running text rather than a label."""
_BAND_LINES = 3
"""Lines between two rules that are more than a row's, where nothing divides them into cells."""
_MOST_CELL_LINES = 8
"""Lines of a cell above which it is a text of its own rather than a value."""


@dataclass(slots=True)
class Line:
    """A line of text, with the left and the right end of the column that it stands in;
    ``leftward`` states whether it is read from right to left."""

    fragments: list[Fragment]
    left: float
    top: float
    right: float
    bottom: float
    baseline: float
    size: float
    text: str
    bold: bool
    monospaced: bool
    column: tuple[int, float, float] = (0, 0.0, 0.0)
    confidence: float = 1.0
    sideways: bool = False
    leftward: bool = False

    @property
    def box(self) -> Box:
        return self.left, self.top, self.right, self.bottom

    @property
    def start(self) -> float:
        """How far the line's beginning is from the page's edge at which lines begin."""
        return -self.right if self.leftward else self.left

    @property
    def end(self) -> float:
        """The line's end, on the same scale as ``start``."""
        return -self.left if self.leftward else self.right

    @property
    def column_end(self) -> float:
        """The end of the column that the line stands in, on the same scale."""
        return -self.column[1] if self.leftward else self.column[2]


@dataclass(slots=True)
class TableGrid:
    """A table: rows of cells, each a list of lines. ``edges`` are between its columns, ``sources``
    the identities of the fragments that it is made of."""

    left: float
    top: float
    right: float
    bottom: float
    rows: list[list[list[Line]]]
    edges: tuple[float, ...] = ()
    sources: frozenset[int] = frozenset()

    @property
    def box(self) -> Box:
        return self.left, self.top, self.right, self.bottom


@dataclass(slots=True)
class PageImage:
    """An image, or a drawing with its labels."""

    left: float
    top: float
    right: float
    bottom: float
    kind: str = "image"
    labels: tuple[Line, ...] = ()


@dataclass(slots=True)
class _TextGrid:
    """A grid drawn around texts of many lines; each of its cells is read like a page."""

    left: float
    top: float
    right: float
    bottom: float
    cells: list[list[Fragment]]


PlacedItem = Line | TableGrid | PageImage
_Element = Fragment | TableGrid | PageImage | _TextGrid


def arrange_page(content: PageContent, pictures: Sequence[PageImage] = ()) -> list[PlacedItem]:
    """Return the lines, tables and pictures of a page in reading order; text in other directions
    comes last."""
    items = _Arrangement().arrange(content.fragments, content, pictures)
    for turns in sorted(content.turned):
        aside = _Arrangement(len(items) + turns).arrange(content.turned[turns])
        for item in aside:
            if isinstance(item, Line):
                item.sideways = True
        items += aside
    return items


def reading_order(items: Iterable[PlacedItem]) -> Iterator[int]:
    """Yield PDFium's numbers of the characters of items, in reading order."""
    for item in items:
        if isinstance(item, Line):
            yield from chain.from_iterable(part.characters for part in item.fragments)
        elif isinstance(item, TableGrid):
            cells = chain.from_iterable(item.rows)
            yield from reading_order(line for cell in cells for line in cell)


class _Arrangement:
    """One division of a page into columns; columns are numbered in reading order."""

    def __init__(self, first: int = 0) -> None:
        self._columns = first
        self._behind: Set[int] = frozenset()

    def arrange(
        self,
        fragments: Sequence[Fragment],
        content: PageContent | None = None,
        pictures: Sequence[PageImage] = (),
    ) -> list[PlacedItem]:
        if len(fragments) > _MOST_FRAGMENTS:
            return list(self._place_lines(list(fragments), _lines_as_drawn))
        elements: list[_Element] = [*_attach_marks(fragments), *pictures]
        self._behind = _find_behind(fragments, pictures)
        if content is not None:
            elements = _take_ruled_tables(elements, content)
        return self._order(elements, 0)

    def _order(self, elements: list[_Element], depth: int) -> list[PlacedItem]:
        for _ in range(_MOST_TABLES if depth < _MOST_DEPTH else 0):
            division = _find_division(elements, self._behind)
            if isinstance(division, TableGrid):
                elements = _replace_by_table(elements, division)
            elif division is None:
                break
            else:
                return [item for part in division for item in self._order(part, depth + 1)]
        return self._place_lines(elements, _visual_lines)

    def _place_lines(
        self,
        elements: Sequence[_Element],
        make_lines: Callable[[Sequence[Fragment]], list[list[Line]]],
    ) -> list[PlacedItem]:
        """Return the elements of a column from top to bottom."""
        if not elements:
            return []
        self._columns += 1
        fragments = [element for element in elements if isinstance(element, Fragment)]
        rows = make_lines(fragments)
        lines = [line for row in rows for line in row]
        left_edge = min((line.left for line in lines), default=0.0)
        right = max((line.right for line in lines), default=0.0)
        for line in lines:
            line.column = self._columns, left_edge, right
        others = [element for element in elements if not isinstance(element, Fragment)]
        items: list[PlacedItem | _TextGrid] = []
        for row in rows:
            cells = [[line] for line in row]
            items += row if len(row) < _ROW_CELLS else [_bounded_table([cells], (), ())]
        for other in sorted(others, key=lambda element: element.top):
            below = (k for k, item in enumerate(items) if item.top > other.top + 1)
            items.insert(next(below, len(items)), other)
        return list(chain.from_iterable(map(self._open_grid, items)))

    def _open_grid(self, item: PlacedItem | _TextGrid) -> Sequence[PlacedItem]:
        if not isinstance(item, _TextGrid):
            return [item]
        return [placed for cell in item.cells for placed in self._order([*cell], 0)]


# --- lines --------------------------------------------------------------------------------------


def make_line(fragments: Iterable[Fragment]) -> Line:
    """Return the line of fragments on one baseline."""
    parts = sorted(fragments, key=lambda part: part.left)
    leftward = _reads_leftward(parts)
    if leftward:
        parts.reverse()
    main = max(parts, key=lambda part: (len(part.text), part.size))
    text = parts[0].text
    for before, part in pairwise(parts):
        gap = max(part.left - before.right, before.left - part.right)
        is_apart = part.spaced or gap > 0.12 * main.size
        text += f" {part.text}" if is_apart else part.text
    return Line(
        parts,
        min(part.left for part in parts),
        min(part.top for part in parts),
        max(part.right for part in parts),
        max(part.bottom for part in parts),
        main.baseline,
        main.size,
        text,
        all(part.bold for part in parts),
        all(part.monospaced for part in parts),
        confidence=min(part.confidence for part in parts),
        leftward=leftward,
    )


def _find_behind(fragments: Sequence[Fragment], pictures: Sequence[PageImage]) -> set[int]:
    """Return the identities of pictures that running text is drawn on."""
    texts = [part for part in fragments if len(part.text) > _LONG_LINE]
    return {
        id(picture)
        for picture in pictures
        if any(
            picture.left < _middle(part) < picture.right
            and picture.top < part.baseline < picture.bottom
            for part in texts
        )
    }


def _attach_marks(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Return fragments, each bullet or number of an item joined to the text behind the gap.

    A number at the right end of a column is an equation's."""
    ends = Counter(round(part.right) for part in fragments if len(part.text) > _LONG_LINE)
    joined: list[Fragment] = []
    for group in group_baselines(fragments):
        group.sort(key=lambda part: part.left)
        mark: Fragment | None = None
        for part in group:
            if mark is not None and 0 <= part.left - mark.right < _MARK_EMS * part.size:
                joined[-1] = part = _join_fragments(mark, part)
                mark = None
                continue
            joined.append(part)
            is_at_end = sum(ends[round(part.right) + k] for k in (-1, 0, 1)) > 1
            mark = part if _MARK.match(part.text) and not is_at_end else None
    return joined


def _join_fragments(mark: Fragment, part: Fragment) -> Fragment:
    return replace(
        part,
        left=mark.left,
        top=min(mark.top, part.top),
        bottom=max(mark.bottom, part.bottom),
        text=f"{mark.text} {part.text}",
        characters=mark.characters + part.characters,
    )


def _reads_leftward(fragments: Sequence[Fragment]) -> bool:
    """Return whether a line is in a script that is written from right to left."""
    letters = [c for fragment in fragments for c in fragment.text if c.isalpha()]
    leftward = sum("\u0590" <= c <= "\u08ff" or "\ufb1d" <= c <= "\ufefc" for c in letters)
    return 2 * leftward > len(letters)


def group_baselines(fragments: Iterable[Fragment]) -> list[list[Fragment]]:
    """Return fragments grouped by baseline, from top to bottom."""
    groups: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda part: (part.baseline, part.left)):
        before = groups[-1][0] if groups else None
        near = before is not None and (
            abs(fragment.baseline - before.baseline) <= 0.3 * min(before.size, fragment.size)
        )
        if near:
            groups[-1].append(fragment)
        else:
            groups.append([fragment])
    return groups


def _visual_lines(fragments: Sequence[Fragment]) -> list[list[Line]]:
    """Return the lines of a column, each divided at gaps."""
    lines: list[list[Line]] = []
    for group in group_baselines(fragments):
        group.sort(key=lambda part: part.left)
        start, row = 0, []
        for place, (before, part) in enumerate(pairwise(group), 1):
            if part.left - before.right > _APART_EMS * max(before.size, part.size):
                row.append(make_line(group[start:place]))
                start = place
        row.append(make_line(group[start:]))
        lines.append(row[::-1] if _reads_leftward(group) else row)
    return lines


def _lines_as_drawn(fragments: Sequence[Fragment]) -> list[list[Line]]:
    return [[make_line([fragment])] for fragment in fragments]


# --- columns ------------------------------------------------------------------------------------


def _find_division(
    elements: list[_Element], behind: Set[int]
) -> TableGrid | list[list[_Element]] | None:
    """Return a table to take out, or the parts above, left of, right of and below a gutter; None
    where the elements stand in one column. A gutter may run over pictures ``behind`` text."""
    fragments = [element for element in elements if isinstance(element, Fragment)]
    gaps = _find_gaps(fragments)
    if len(gaps) < 2:
        return None
    solid = [element for element in elements if id(element) not in behind]
    runs = sorted(_gutter_runs(solid, gaps), key=lambda run: (-run[1], -run[2], run[0]))
    for at, _, _, top, bottom in runs[:8]:
        inside = [e for e in elements if e.top >= top and e.bottom <= bottom]
        sides = [[e for e in inside if _middle(e) < at], [e for e in inside if _middle(e) >= at]]
        texts = [[e for e in side if isinstance(e, Fragment)] for side in sides]
        if _are_columns(*texts):
            if _reads_leftward([*texts[0], *texts[1]]):
                sides.reverse()
            above = [e for e in elements if e.top < top and e.bottom <= bottom]
            held = {id(e) for part in (above, *sides) for e in part}
            below = [e for e in elements if id(e) not in held]
            return [part for part in (above, *sides, below) if part]
        if table := _make_table([*texts[0], *texts[1]]):
            return table
    return None


def _middle(element: _Element) -> float:
    return (element.left + element.right) / 2


_Gap = tuple[float, float, float]
"""Left end, right end and height of a gap between neighbours on a line."""


def _find_gaps(fragments: Sequence[Fragment]) -> list[_Gap]:
    """Return the gaps between fragments and their right neighbours."""
    gaps = []
    ordered = sorted(fragments, key=lambda part: part.top)
    tallest = max((part.bottom - part.top for part in ordered), default=0.0)
    for place, part in enumerate(ordered):
        nearest: Fragment | None = None
        for other in _near(ordered, place, tallest):
            overlap = min(part.bottom, other.bottom) - max(part.top, other.top)
            if overlap < 0.3 * min(part.bottom - part.top, other.bottom - other.top):
                continue
            is_right = other.left >= part.right - 1 and other is not part
            if is_right and (nearest is None or other.left < nearest.left):
                nearest = other
        if nearest and nearest.left - part.right >= _GUTTER_EMS * min(part.size, nearest.size):
            gaps.append((part.right, nearest.left, (part.top + part.bottom) / 2))
    return gaps


def _near(ordered: Sequence[Fragment], place: int, tallest: float) -> Iterable[Fragment]:
    """Yield fragments that may overlap in height with the one at a place of the order by top."""
    part = ordered[place]
    for step in (-1, 1):
        at = place + step
        while 0 <= at < len(ordered) and part.top - tallest < ordered[at].top < part.bottom:
            yield ordered[at]
            at += step


_Run = tuple[float, int, float, float, float]
"""A gutter's place, the number of gaps that it goes through, its height, its top and bottom."""


def _gutter_runs(elements: Sequence[_Element], gaps: Sequence[_Gap]) -> Iterable[_Run]:
    places = {round(right - 1) for _, right, _ in gaps}
    places |= {round((left_edge + right) / 2) for left_edge, right, _ in gaps}
    low = min(element.top for element in elements) - 1
    high = max(element.bottom for element in elements) + 1
    for at in sorted(places):
        heights = [y for left_edge, right, y in gaps if left_edge <= at <= right]
        if len(heights) < 2:
            continue
        crossing = sorted((e.top, e.bottom) for e in elements if e.left < at - 0.5 < e.right - 1)
        top = low
        for begin, end in [*crossing, (high, high)]:
            inside = sum(top < y < begin for y in heights)
            if inside >= 2:
                yield float(at), inside, begin - top, top, begin
            top = max(top, end - 0.5 * min(end - begin, 10))


def _are_columns(left_edge: Sequence[Fragment], right: Sequence[Fragment]) -> bool:
    """Return whether two texts beside each other are columns rather than cells of rows."""
    sides = [group_baselines(side) for side in (left_edge, right)]
    if min(map(len, sides)) < 2:
        return False
    if all(map(_is_prose, sides)):
        return True
    fewer, more = sorted(sides, key=len)
    size = median(group[0].size for group in more)
    heights = [group[0].baseline for group in more]
    aligned = sum(any(abs(y - line[0].baseline) < 0.25 * size for y in heights) for line in fewer)
    return len(fewer) >= 3 and aligned < 0.5 * len(fewer)


def _is_prose(lines: Sequence[Sequence[Fragment]]) -> bool:
    """Return whether most lines are as wide as those of prose, with few gaps inside."""
    wide = sum(
        max(part.right - part.left for part in line) > _COLUMN_EMS * line[0].size for line in lines
    )
    return wide >= 0.5 * len(lines)


# --- tables -------------------------------------------------------------------------------------


def _replace_by_table(elements: Sequence[_Element], table: TableGrid) -> list[_Element]:
    """Return the elements with a table in place of its text, or of its text and another part of it
    that was taken out before."""
    rest = [element for element in elements if id(element) not in table.sources]
    for other in rest:
        if isinstance(other, TableGrid) and _touch(table, other):
            parts = [*_table_fragments(table), *_table_fragments(other)]
            whole = _make_table(parts)
            if whole and len(whole.sources) == len(parts):
                return [*(element for element in rest if element is not other), whole]
    return [*rest, table]


def _table_fragments(table: TableGrid) -> list[Fragment]:
    return [part for row in table.rows for cell in row for line in cell for part in line.fragments]


def _touch(table: TableGrid, other: TableGrid) -> bool:
    """Return whether tables stand one below the other without a line between."""
    apart = max(table.top, other.top) - min(table.bottom, other.bottom)
    size = table.rows[0][0][0].size if table.rows[0][0] else 10.0
    wide = min(table.right, other.right) - max(table.left, other.left)
    return apart < size and wide > 0.5 * min(table.right - table.left, other.right - other.left)


def _make_table(fragments: Sequence[Fragment]) -> TableGrid | None:
    """Return the largest table of fragments whose gaps are aligned; None where they form none."""
    parts = _split_tables(group_baselines(fragments))
    for lines in sorted(parts, key=len, reverse=True):
        if table := _make_rows(lines):
            return table
    return None


_FragmentLines = list[list[Fragment]]


def _split_tables(lines: _FragmentLines) -> list[_FragmentLines]:
    """Return lines divided at gaps, and at single texts that run over several columns."""
    steps = [b[0].baseline - a[0].baseline for a, b in pairwise(lines)]
    usual = sorted(steps)[len(steps) // 4] if steps else 0.0
    parts: list[_FragmentLines] = [[]]
    for place, line in enumerate(lines):
        is_apart = place > 0 and steps[place - 1] > max(2.2 * usual, 1.6 * line[0].size)
        near = lines[max(place - 2, 0) : place] + lines[place + 1 : place + 3]
        is_title = len(line) == 1 and _runs_over_columns(line[0], near)
        if is_apart or is_title:
            parts.append([])
        if not is_title:
            parts[-1].append(line)
    return parts


def _runs_over_columns(part: Fragment, near: _FragmentLines) -> bool:
    """Return whether a text that begins like the rows near it runs below their second texts."""
    return all(part.left < row[0].left + part.size for row in near) and any(
        other.left < part.right for row in near for other in row[1:]
    )


def _make_rows(lines: _FragmentLines) -> TableGrid | None:
    filled = [place for place, line in enumerate(lines) if len(line) > 1]
    if len(filled) < 2:
        return None
    lines = lines[filled[0] : filled[-1] + 1]
    edges = _column_edges(lines)
    width = len(edges) + 1
    leftward = _reads_leftward([*chain(*lines)])
    rows: list[list[list[Line]]] = []
    pitch = min((b[0].baseline - a[0].baseline for a, b in pairwise(lines)), default=0.0)
    before = lines[0][0].baseline
    for line in lines:
        cells = _divide_line(line, edges)
        if leftward:
            cells.reverse()
        is_near = line[0].baseline - before <= 1.25 * pitch
        before = line[0].baseline
        if rows and is_near and _continues_row(rows[-1], cells):
            for cell, more in zip(rows[-1], cells, strict=True):
                cell += more
        else:
            rows.append(cells)
    several = sum(sum(map(bool, row)) > 1 for row in rows)
    named = sum(bool(row[0]) and row[0][-1].text.endswith(":") for row in rows)
    if width < 2 or several < 2 or (width * several < 6 and named < several):
        return None
    return _bounded_table(rows, edges, chain(*lines)) if several >= 0.4 * len(rows) else None


def _bounded_table(
    rows: list[list[list[Line]]], edges: Sequence[float], fragments: Iterable[Fragment]
) -> TableGrid:
    lines = [line for row in rows for cell in row for line in cell]
    return TableGrid(
        min(line.left for line in lines),
        min(line.top for line in lines),
        max(line.right for line in lines),
        max(line.bottom for line in lines),
        rows,
        tuple(edges),
        frozenset(map(id, fragments)),
    )


def _column_edges(lines: Sequence[Sequence[Fragment]]) -> list[float]:
    """Return the middles of strips between columns, which few lines cross."""
    changes: list[tuple[float, int]] = []
    for line in lines:
        changes += [(part.left, 1) for part in line] + [(part.right, -1) for part in line]
    allowed = len(lines) // 8
    size = median(line[0].size for line in lines)
    edges, covered, free_from = [], 0, None
    for at, change in sorted(changes):
        was_free, covered = covered <= allowed, covered + change
        is_free = covered <= allowed
        if is_free and not was_free:
            free_from = at
        elif was_free and not is_free and free_from is not None:
            if at - free_from >= 0.4 * size:
                edges.append((at + free_from) / 2)
            free_from = None
    return edges


def _divide_line(line: Sequence[Fragment], edges: Sequence[float]) -> list[list[Line]]:
    cells: list[list[Fragment]] = [[] for _ in range(len(edges) + 1)]
    parts = list(line)
    while parts:
        part = parts.pop()
        halves = next(filter(None, (_split_fragment(part, edge) for edge in edges)), None)
        if halves:
            parts += halves
            continue
        crosses = any(part.left < edge < part.right for edge in edges)
        at = part.left + 1 if crosses else (part.left + part.right) / 2
        cells[sum(edge < at for edge in edges)].append(part)
    return [[make_line(cell)] if cell else [] for cell in cells]


def _split_fragment(part: Fragment, edge: float) -> tuple[Fragment, Fragment] | None:
    """Return a fragment's parts before and after a column's edge, where a space is there."""
    if not part.left + part.size < edge < part.right - part.size:
        return None
    wide = (part.right - part.left) / len(part.text)
    spaces = [k for k, character in enumerate(part.text) if character == " "]
    space = min(spaces, key=lambda k: abs(part.left + wide * k - edge), default=0)
    if not spaces or abs(part.left + wide * space - edge) > 1.2 * part.size:
        return None
    first, second = part.text[:space], part.text[space + 1 :]
    count = len(first.replace(" ", ""))
    return (
        replace(part, right=edge - 1, text=first, characters=part.characters[:count]),
        replace(part, left=edge + 1, text=second, characters=part.characters[count:]),
    )


def _continues_row(row: Sequence[list[Line]], cells: Sequence[list[Line]]) -> bool:
    """Return whether cells are the next line of a row's cells rather than a row."""
    texts = [cell[0].text for cell in cells if cell]
    if not cells[0]:
        has_figure = any(text[:1].isdigit() or text[:1] in "+-−" for text in texts)
        return not has_figure and all(row[k] for k, cell in enumerate(cells) if cell)
    return all(text[:1].islower() or text[:1] in "(&" for text in texts)


def _take_ruled_tables(elements: list[_Element], content: PageContent) -> list[_Element]:
    """Return the elements with the text inside of drawn grids as tables; as texts where most lines
    stand in long cells of prose, unchanged where they stand in other long cells."""
    for xs, heights in _find_grids(content.horizontal_rules, content.vertical_rules):
        ys = _trim_bands(xs, heights, elements, content.vertical_rules)
        inside = [
            element
            for element in elements
            if isinstance(element, Fragment)
            and xs[0] - 2 < _middle(element) < xs[-1] + 2
            and ys[0] - 2 < (element.top + element.bottom) / 2 < ys[-1] + 2
        ]
        table = _make_ruled_table(inside, xs, ys) if len(ys) > 1 else None
        if table is None:
            continue
        long = [cell for row in table.rows for cell in row if len(cell) > _MOST_CELL_LINES]
        if 2 * sum(map(len, long)) <= sum(len(cell) for row in table.rows for cell in row):
            elements = _replace_by_table(elements, table)
        elif all(_is_prose([line.fragments for line in cell]) for cell in long):
            cells = [
                [f for line in cell for f in line.fragments] for row in table.rows for cell in row
            ]
            held = {id(part) for part in inside}
            elements = [element for element in elements if id(element) not in held]
            elements.append(_TextGrid(*table.box, cells))
    return elements


def _trim_bands(
    xs: Sequence[float], ys: Sequence[float], elements: Sequence[_Element], rules: Sequence[Box]
) -> Sequence[float]:
    """Return the heights of a grid without what stands above and below its rows in the same frame:
    bands of several lines that no vertical rule divides."""
    inner = [rule for rule in rules if xs[0] + 4 < rule[0] < xs[-1] - 4]

    def is_row(top: float, bottom: float) -> bool:
        half = 0.5 * (bottom - top)
        if any(min(rule[3], bottom) - max(rule[1], top) > half for rule in inner):
            return True
        held = [e for e in elements if isinstance(e, Fragment) and top < e.baseline < bottom]
        return len(group_baselines(held)) < _BAND_LINES

    first, last = 0, len(ys) - 1
    while first < last and not is_row(ys[first], ys[first + 1]):
        first += 1
    while first < last and not is_row(ys[last - 1], ys[last]):
        last -= 1
    return ys[first : last + 1]


def _make_ruled_table(
    fragments: Sequence[Fragment], xs: Sequence[float], ys: Sequence[float]
) -> TableGrid | None:
    bands: list[list[Fragment]] = [[] for _ in range(len(ys) - 1)]
    for part in fragments:
        y = (part.top + part.bottom) / 2
        bands[min(max(sum(edge <= y for edge in ys) - 1, 0), len(bands) - 1)].append(part)
    edges = xs[1:-1]
    rows = [row for band in bands for row in _divide_band(band, edges)]
    if _reads_leftward(fragments):
        rows = [row[::-1] for row in rows]
    cells = sum(bool(cell) for row in rows for cell in row)
    if len(rows) < 2 or cells < max(3, 0.25 * len(rows) * (len(edges) + 1)):
        return None
    return _bounded_table(rows, edges, fragments)


def _divide_band(band: Sequence[Fragment], edges: Sequence[float]) -> list[list[list[Line]]]:
    """Return the rows between two horizontal rules: one, or one for each line where every line
    has a cell in the first column and another, and not all columns are prose."""
    lines = [_divide_line(line, edges) for line in group_baselines(band)]
    if not lines:
        return []
    columns = [
        [line.fragments for cells in lines for line in cells[k]] for k in range(len(lines[0]))
    ]
    is_full = all(cells[0] and sum(map(bool, cells)) > 1 for cells in lines)
    if len(lines) > 2 and is_full and not all(map(_is_prose, columns)):
        return lines
    return [[[line for cells in lines for line in cells[k]] for k in range(len(edges) + 1)]]


def _find_grids(
    horizontal: Sequence[Box], vertical: Sequence[Box]
) -> list[tuple[list[float], list[float]]]:
    """Return the vertical and horizontal lines of grids drawn by rules that meet."""
    rules = [*horizontal, *vertical]
    if len(rules) > 3_000 or not vertical or len(horizontal) < 2:
        return []
    groups = _group_touching(rules, len(horizontal))
    grids = []
    for group in groups:
        xs = _merge_near(rules[k][0] for k in group if k >= len(horizontal))
        ys = _merge_near(rules[k][1] for k in group if k < len(horizontal))
        if len(ys) < 2 or not xs:
            continue
        lefts = [rules[k][0] for k in group if k < len(horizontal)]
        rights = [rules[k][2] for k in group if k < len(horizontal)]
        xs = _merge_near([min(lefts), *xs, max(rights)])
        tops = [rules[k][1] for k in group if k >= len(horizontal)]
        bottoms = [rules[k][3] for k in group if k >= len(horizontal)]
        ys = _merge_near([*ys, min(tops), max(bottoms)])
        if len(xs) > 2 and len(ys) > 2:
            grids.append((xs, ys))
    return grids


def _group_touching(rules: Sequence[Box], horizontals: int) -> list[list[int]]:
    """Return groups of horizontal and vertical rules that meet, directly or through others."""
    leaders = list(range(len(rules)))

    def leader(k: int) -> int:
        while leaders[k] != k:
            leaders[k] = k = leaders[leaders[k]]
        return k

    for h in range(horizontals):
        left_edge, top, right, bottom = rules[h]
        for v in range(horizontals, len(rules)):
            x0, y0, x1, y1 = rules[v]
            if x0 <= right + 3 and x1 >= left_edge - 3 and y0 <= bottom + 3 and y1 >= top - 3:
                leaders[leader(h)] = leader(v)
    groups: dict[int, list[int]] = {}
    for k in range(len(rules)):
        groups.setdefault(leader(k), []).append(k)
    return list(groups.values())


def _merge_near(values: Iterable[float]) -> list[float]:
    merged: list[float] = []
    for value in sorted(values):
        if not merged or value - merged[-1] > 4:
            merged.append(value)
    return merged
