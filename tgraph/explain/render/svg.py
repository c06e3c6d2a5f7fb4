"""The shapes of PROV's visual grammar (W3C, 2013) as SVG, with words that fit into them.

Entities are ovals, activities rectangles and agents houses. Several of a kind are one shape with
another behind it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from tgraph.rendering import collapse_whitespace
from tgraph.rendering import escape_controls as visible

STYLE = {
    "entity": ("#fffc87", "#808080"),
    "activity": ("#9fb1fc", "#0000ff"),
    "agent": ("#fed37f", "#b77b00"),
}
"""Fill and line of each shape, as in the W3C's pictures."""
FONT = 10.5
"""Pixels of the words; a figure that is shown in its own width or more is legible."""
LINE = 12.5
HEIGHT = 50


@dataclass(frozen=True, slots=True)
class DrawingFrame:
    """A drawing frame: figure width, number of side-by-side nodes, node width, widths of three
    lanes, and left margin; all in pixels."""

    name: str
    width: int
    columns: int
    node: int
    lanes: tuple[int, int, int]
    margin: int
    titled: bool = True

    @property
    def gap(self) -> float:
        """Pixels between neighbouring nodes."""
        return (self.width - 4 - self.columns * self.node) / (self.columns - 1)


WIDE = DrawingFrame("wide", 720, 4, 164, (176, 154, 140), 34)
"""For a screen, and for a page of A4 (some 670 pixels between its margins)."""
NARROW = DrawingFrame("narrow", 336, 2, 160, (108, 92, 78), 18, titled=False)
"""For a telephone."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape for ``count`` resources of a kind.

    ``lines`` are listed below one another; ``iris`` and full ``text`` are shown at pointer
    contact."""

    kind: str
    title: str
    lines: tuple[str, ...]
    text: str
    count: int = 1
    listed: bool = False

    @property
    def height(self) -> float:
        """Shape height in pixels."""
        return HEIGHT if not self.listed else LINE * (len(self.lines) + 2) + 6


def safe(said: str) -> str:
    """The text as XML can hold it: escaped, with control and bidirectional characters visible."""
    return escape(visible(said)).translate({0xFFFE: "�", 0xFFFF: "�"})


def draw_shape(shape: Shape, x: float, y: float, width: float, *, titled: bool = True) -> str:
    """Return the shape as SVG, centred at a position."""
    fill, line = STYLE[shape.kind]
    tall = shape.height
    outlines = [_draw_outline(shape, x, y, width, tall)]
    if shape.count > 1:
        outlines.insert(0, _draw_outline(shape, x, y + 4, width, tall))
    body = f'<g fill="{fill}" stroke="{line}">{"".join(outlines)}</g>'
    title = f"<title>{safe(shape.text)}</title>" if titled and shape.text else ""
    return f"<g>{title}{body}{_words(shape, x, y, width)}</g>"


def _draw_outline(shape: Shape, x: float, y: float, width: float, tall: float) -> str:
    left_edge, top = x - width / 2, y - tall / 2
    if shape.kind == "agent":
        half, low, eaves = width / 2, tall / 2, -tall / 4
        points = [(-half, low), (half, low), (half, eaves), (0.0, -low), (-half, eaves)]
        return f'<polygon points="{" ".join(f"{x + a:.0f},{y + b:.0f}" for a, b in points)}"/>'
    if shape.kind == "entity" and not shape.listed:
        return f'<ellipse cx="{x:.0f}" cy="{y:.0f}" rx="{width / 2:.0f}" ry="{tall / 2:.0f}"/>'
    corner = f' rx="{HEIGHT / 2:.0f}"' if shape.kind == "entity" else ""
    box = f'x="{left_edge:.0f}" y="{top:.0f}" width="{width:.0f}" height="{tall:.0f}"'
    return f"<rect {box}{corner}/>"


def _words(shape: Shape, x: float, y: float, width: float) -> str:
    """Return title and content lines of a shape, limited to available lines."""
    room = width - (26 if shape.kind == "entity" else 10)
    titles = fit_text(shape.title, (room * 0.93, room * 0.93))
    free_lines = 3 - len(titles)
    if shape.listed or len(shape.lines) > 1:
        listed = shape.lines if shape.listed else shape.lines[:free_lines]
        lines = [line for text in listed for line in fit_text(text, (room,))]
    else:
        lines = fit_text("".join(shape.lines), [room + 4, room * 0.86][:free_lines])
    count = len(titles) + len(lines)
    first = y - LINE * (count - 1) / 2 + FONT * 0.35 + (3 if shape.kind == "agent" else 0)
    spans = [
        f'<text x="{x:.0f}" y="{first + LINE * n:.1f}"'
        + (' font-weight="bold"' if n < len(titles) else "")
        + f">{safe(line)}</text>"
        for n, line in enumerate([*titles, *lines])
    ]
    return "".join(spans)


def side_distance(kind: str, width: float, off: float) -> float:
    """Return the horizontal distance between a shape's centre and side, at ``off`` pixels above
    or below the centre."""
    half = width / 2
    return half * math.sqrt(1 - (2 * off / HEIGHT) ** 2) if kind == "entity" else half


# --- words ---

_SLIM, _BROAD = frozenset("iIjlt.,;:'’|!()[]/ fr-·"), frozenset("mMwW@%—…")


def _character_width(character: str) -> float:
    """Return the approximate character width in Helvetica."""
    if unicodedata.east_asian_width(character) in "WF":
        return FONT
    if unicodedata.combining(character):
        return 0.0
    if character in _SLIM:
        return FONT * 0.32
    return FONT * (0.86 if character in _BROAD else 0.7 if character.isupper() else 0.56)


def text_width(text: str) -> float:
    """Return the approximate text width in a figure."""
    return sum(map(_character_width, text))


def fit_text(text: str, widths: Sequence[float]) -> list[str]:
    """Return text lines within these widths, cut with an ellipsis if too long."""
    words, lines = _PIECE.findall(collapse_whitespace(text)), []
    for number, width in enumerate(widths, 1):
        remaining_text = "".join(words).rstrip()
        if number == len(widths) and text_width(remaining_text) > width:
            words = [_head(remaining_text, width - text_width("…")).rstrip() + "…"]
        line = ""
        while words and text_width((line + words[0]).rstrip()) <= width:
            line += words.pop(0)
        if words and not line:  # a word that is longer than a line
            line = _head(words[0], width)
            words[0] = words[0][len(line) :]
        lines.append(line.strip())
    return [line for line in lines if line]


_PIECE = re.compile(r"[\u3040-\u9fff]|[^\s\u3040-\u9fff]+\s*")
"""A word with the space after it; a character of a script that writes none."""


def _head(text: str, width: float) -> str:
    while len(text) > 1 and text_width(text) > width:
        text = text[:-1]
    return text


# --- arrows and figures ---

_DASHES = {"used": "5 3", "wasInformedBy": "2 3", "wasAssociatedWith": "1 2"}


def draw_arrow(path: str, name: str, frame: DrawingFrame) -> str:
    """Return an arrow along an SVG path; its name is shown at pointer contact."""
    dashes = f' stroke-dasharray="{_DASHES[name]}"' if name in _DASHES else ""
    start = f'<path d="{path}" marker-end="url(#tip-{frame.name})"{dashes}'
    return f"{start}><title>{name}</title></path>" if frame.titled else f"{start}/>"


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture figure: caption, SVG body from the top left corner, width and height."""

    caption: str
    body: str
    width: int
    height: int


def render_svg(figures: Iterable[Figure], frame: DrawingFrame) -> bytes:
    """Return a single SVG image in frame width, with captioned figures below one another."""
    parts, top = [], 0
    for figure in figures:
        caption = safe(figure.caption)
        head = f'<text x="6" y="15" text-anchor="start" font-weight="bold">{caption}</text>'
        parts.append(f'<g transform="translate(0 {top})">{head}')
        parts.append(f'<g transform="translate(0 24)">{figure.body}</g></g>')
        top += figure.height + 24 + 12
    size = f'viewBox="0 0 {frame.width} {max(top, 1)}" width="{frame.width}" height="{max(top, 1)}"'
    mark = (
        f'<defs><marker id="tip-{frame.name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#555" stroke="none"/>'
        "</marker></defs>"
    )
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="{FONT}" text-anchor="middle"'
        ' font-family="Helvetica, Arial, sans-serif">'
    )
    inside = "\n".join([mark, '<rect width="100%" height="100%" fill="white"/>', *parts])
    title = "<title>How the answer came about</title>"
    return f"{start}{title}\n{inside}\n</svg>\n".encode()


def lines_of(paths: Iterable[str]) -> str:
    """Return an SVG group of arrows, placed below shapes."""
    return f'<g fill="none" stroke="#555">{"".join(paths)}</g>'
