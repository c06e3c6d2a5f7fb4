"""Pages of labels: short texts apart from one another, as a drawing has, in no certain order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tgraph.ingest.pdf_layout import Line, PlacedItem, TableGrid

_FEWEST = 10
_MOST_WORDS = 3
_FEWEST_ROWS = 3
_LEAST_FILLED = 0.7


def holds_labels(items: Sequence[PlacedItem]) -> bool:
    """Return whether most of a page's text is short texts beside one another in no table."""
    texts = [item for item in items if isinstance(item, Line | TableGrid)]
    labels = [line for item in texts for line in _find_labels(item, texts)]
    whole = sum(len(line.text) for item in texts for line in _lines_of(item))
    return len(labels) >= _FEWEST and sum(len(line.text) for line in labels) > 0.5 * whole


def _lines_of(item: Line | TableGrid) -> Iterator[Line]:
    if isinstance(item, Line):
        yield item
    else:
        yield from (line for row in item.rows for cell in row for line in cell)


def _find_labels(item: Line | TableGrid, texts: Sequence[Line | TableGrid]) -> Iterator[Line]:
    if isinstance(item, Line):
        if _is_short(item) and any(_shares_line(item, text) for text in texts):
            yield item
        return
    cells = [cell for row in item.rows for cell in row]
    filled = sum(map(bool, cells))
    if len(item.rows) < _FEWEST_ROWS or filled < _LEAST_FILLED * len(cells):
        yield from filter(_is_short, _lines_of(item))


def _is_short(line: Line) -> bool:
    return len(line.text.split()) <= _MOST_WORDS


def _shares_line(line: Line, other: Line | TableGrid) -> bool:
    shared = min(line.bottom, other.bottom) - max(line.top, other.top)
    return other is not line and shared > 0.5 * (line.bottom - line.top)
