"""Drawings of a PDF's page, such as charts: many shapes near each other, with short labels."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.ingest.pdf_fragments import Box, Fragment, PageContent
from tgraph.ingest.pdf_layout import PageImage, group_baselines, make_line

_NEAR = 12.0
"""Points between the shapes of a drawing, at most."""
_FEWEST_SHAPES = 8
_SMALLEST = 60
_LONGEST_LABEL = 30
_MOST_SHAPES = 2_000
_MOST_OF_PAGE = 0.8


def take_drawings(content: PageContent) -> list[PageImage]:
    """Return a page's drawings, and take their labels from its text.

    Shapes behind running text are decoration."""
    drawings = []
    for left, top, right, bottom in _find_clusters(content.shapes[:_MOST_SHAPES]):
        width, height = right - left, bottom - top
        if min(width, height) < _SMALLEST:
            continue
        if width * height > _MOST_OF_PAGE * content.width * content.height:
            continue
        box = left - _NEAR, top - _NEAR, right + _NEAR, bottom + _NEAR
        labels = [part for part in content.fragments if _is_inside(part, box)]
        if any(len(part.text) > _LONGEST_LABEL for part in labels):
            continue
        held = set(map(id, labels))
        content.fragments = [part for part in content.fragments if id(part) not in held]
        lines = tuple(map(make_line, group_baselines(labels)))
        drawings.append(PageImage(left, top, right, bottom, "drawing", lines))
    return drawings


def _is_inside(part: Fragment, box: Box) -> bool:
    x, y = (part.left + part.right) / 2, (part.top + part.bottom) / 2
    return box[0] < x < box[2] and box[1] < y < box[3]


def _find_clusters(shapes: Sequence[Box]) -> list[Box]:
    """Return the boxes around many shapes that are near each other."""
    clusters: list[tuple[Box, int]] = []
    for shape in shapes:
        box, count = shape, 1
        apart = []
        for other, more in clusters:
            if _are_near(box, other):
                box, count = _around(box, other), count + more
            else:
                apart.append((other, more))
        clusters = [*apart, (box, count)]
    return [box for box, count in clusters if count >= _FEWEST_SHAPES]


def _are_near(one: Box, other: Box) -> bool:
    across = max(one[0], other[0]) - min(one[2], other[2])
    down = max(one[1], other[1]) - min(one[3], other[3])
    return across < _NEAR and down < _NEAR


def _around(one: Box, other: Box) -> Box:
    left, top = min(one[0], other[0]), min(one[1], other[1])
    return left, top, max(one[2], other[2]), max(one[3], other[3])
