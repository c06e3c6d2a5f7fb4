"""Pictures of how an answer came about, for a screen, a page and a telephone."""

from __future__ import annotations

from tgraph.explain.picture import Picture
from tgraph.explain.picture_lanes import lanes
from tgraph.explain.picture_panels import panels
from tgraph.explain.picture_shapes import NARROW, WIDE, Figure, Frame, svg

__all__ = ["NARROW", "WIDE", "figures", "svg", "to_svg"]


def figures(drawn: Picture, frame: Frame = WIDE) -> list[Figure]:
    """The whole by kind, and then what each sentence cites; nothing is wider than the frame."""
    return [lanes(drawn, frame), *panels(drawn, frame)] if drawn.nodes else []


def to_svg(drawn: Picture) -> bytes:
    """The picture as one image, 720 pixels wide and as high as it has to be."""
    return svg(figures(drawn), WIDE)
