"""A plot of recall by depth as SVG, written by hand so that it needs no library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 190, 36, 46
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8a5fbf", "#c98a1b", "#4a4a4a", "#00a1a1", "#9b2226")
FONT = 'font-family="sans-serif" font-size="12" fill="#222"'

Line = Mapping[int, float]
"""Recall in percent by the number of passages read."""


def plot(title: str, lines: Mapping[str, Line]) -> str:
    """The lines by name as one SVG: depth to the right (evenly spaced), recall upwards from 0 to
    100 percent. Names and title are escaped."""
    depths = sorted({depth for line in lines.values() for depth in line})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-weight="bold" {FONT}>{escape(title)}</text>',
        *_axes(depths),
    ]
    for place, (name, line) in enumerate(lines.items()):
        parts += _line(name, line, depths, place)
    return "\n".join([*parts, "</svg>", ""])


def _axes(depths: Sequence[int]) -> list[str]:
    parts = []
    for percent in range(0, 101, 20):
        y = _y(percent)
        parts.append(
            f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#ddd"/>'
            f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end" {FONT}>{percent}</text>'
        )
    for depth in depths:
        x = _x(depth, depths)
        parts.append(
            f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" {FONT}>{depth}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) // 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle" {FONT}>passages read</text>'
        f'<text x="14" y="{TOP - 2}" {FONT}>gold found, %</text>'
    )
    return parts


def _line(name: str, line: Line, depths: Sequence[int], place: int) -> list[str]:
    colour = COLOURS[place % len(COLOURS)]
    points = [(_x(depth, depths), _y(line[depth])) for depth in depths if depth in line]
    y = TOP + 10 + 20 * place
    x = WIDTH - RIGHT + 16
    return [
        f'<polyline fill="none" stroke="{colour}" stroke-width="2"'
        f' points="{" ".join(f"{px},{py}" for px, py in points)}"/>',
        *(f'<circle cx="{px}" cy="{py}" r="3" fill="{colour}"/>' for px, py in points),
        f'<line x1="{x}" y1="{y}" x2="{x + 18}" y2="{y}" stroke="{colour}" stroke-width="3"/>',
        f'<text x="{x + 24}" y="{y + 4}" {FONT}>{escape(name)}</text>',
    ]


def _x(depth: int, depths: Sequence[int]) -> float:
    step = (WIDTH - LEFT - RIGHT) / max(1, len(depths) - 1)
    return round(LEFT + depths.index(depth) * step, 1)


def _y(percent: float) -> float:
    return round(HEIGHT - BOTTOM - percent / 100 * (HEIGHT - TOP - BOTTOM), 1)
