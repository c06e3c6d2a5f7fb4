"""The picture sentence by sentence: what each cites, down to the documents.

As many citations share a panel as fit side by side, so that what they have in common is drawn once.
What several cite in the same way is one shape that lists each. So a panel has a bound on its width,
and nothing cited is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tgraph.explain.picture import CITED, DERIVED, Picture
from tgraph.explain.picture_shapes import Figure, Frame, Shape, arrow, drawn, lines_of

MOST_LISTED = 24
"""Resources that one shape lists."""
MOST_LETTERS = 240
"""Letters of a label that a pointer shows."""
_BETWEEN = 32
_ABOVE = 6
_CHOSEN = ("EdgeSelection", "ItemSelection")

Group = tuple[int, ...]
"""Nodes that are drawn as one shape, by their positions."""
T = TypeVar("T", bound=tuple[object, ...])
Leads = dict[int, set[int]]
Links = dict[Group, set[Group]]


def panels(picture: Picture, frame: Frame) -> Iterator[Figure]:
    """The panels, from the first sentence to the last."""
    sentences = list(dict.fromkeys(chain[0] for chain in picture.chains))
    numbers = {place: number for number, place in enumerate(sentences, 1)}
    for panel in _packed(picture, frame):
        yield _figure(picture, panel, numbers, frame)


def _packed(picture: Picture, frame: Frame) -> Iterator[_Panel]:
    """The citations in their order, as many together as fit."""
    leads: Leads = {}
    for source, target, name in picture.arrows:
        if name in (DERIVED, CITED) and source != target:
            leads.setdefault(source, set()).add(target)
    packed: _Panel | None = None
    for chain in picture.chains:
        more = _Panel.of(picture, leads, [*(packed.chains if packed else ()), chain])
        if packed and not _fits(more, frame):
            yield packed
            more = _Panel.of(picture, leads, [chain])
        packed = more
    if packed:
        yield packed


def _fits(panel: _Panel, frame: Frame) -> bool:
    most = max(len(layer) for layer in panel.layers)
    return most <= frame.columns and max(map(len, panel.links)) <= MOST_LISTED


@dataclass(frozen=True, slots=True)
class _Panel:
    """Chains, the links between their groups, and the groups in layers from the top down."""

    chains: Sequence[Group]
    links: Links
    layers: Sequence[Sequence[Group]]

    @classmethod
    def of(cls, picture: Picture, leads: Leads, chains: Sequence[Group]) -> _Panel:
        """The panel of these chains."""
        links = reduced(_grouped(picture, leads, chains))
        return cls(chains, links, _layers(picture, links))

    def column(self, group: Group) -> float:
        """Where the group would stand, 0 to 1: in the middle of the chains that share it."""
        own = [n for n, chain in enumerate(self.chains) if not set(chain).isdisjoint(group)]
        return (sum(own) / len(own) + 0.5) / len(self.chains)


def _grouped(picture: Picture, leads: Leads, chains: Sequence[Group]) -> Links:
    """What leads to what; nodes of a kind that have the same before and after them are one group.

    Sentences, selections and whatever leads to another of its kind stand for themselves.
    """
    nodes = {node: None for chain in chains for node in sorted(chain)}
    after = {node: frozenset(leads.get(node, set()) & nodes.keys()) for node in nodes}
    before: dict[int, tuple[int, ...]] = {}
    for node, targets in after.items():
        for target in targets:
            before[target] = (*before.get(target, ()), node)
    together: dict[object, list[int]] = {}
    for node in nodes:
        kind = picture.nodes[node].kind
        alone = kind == "Sentence" or kind in _CHOSEN
        key: object = node if alone else (kind, before.get(node), after[node])
        together.setdefault(key, []).append(node)
    group_of = {node: tuple(group) for group in together.values() for node in group}
    return {
        group: {group_of[target] for target in after[group[0]]} - {group}
        for group in dict.fromkeys(group_of.values())
    }


def reduced(links: dict[T, set[T]]) -> dict[T, set[T]]:
    """Without the links that a longer way says as well, and without those that close a circle."""
    below: dict[T, set[T]] = {}

    def descend(group: T, above: tuple[T, ...]) -> set[T]:
        if group not in below:
            links[group] = {g for g in links[group] if g not in above}
            below[group] = set()
            for target in sorted(links[group]):
                below[group] |= {target} | descend(target, (*above, group))
        return below[group]

    for group in sorted(links):
        descend(group, (group,))
    return {
        group: {t for t in targets if not any(t in below[o] for o in targets if o != t)}
        for group, targets in links.items()
    }


def _layers(picture: Picture, links: Links) -> list[list[Group]]:
    """Sentences at the top, what was selected below them, and the rest from the documents up."""
    heights: dict[Group, int] = {}

    def height(group: Group) -> int:
        if group not in heights:
            heights[group] = 0
            heights[group] = 1 + max(map(height, links[group]), default=-1)
        return heights[group]

    kinds = {group: picture.nodes[group[0]].kind for group in links}
    rest = [group for group, kind in kinds.items() if kind not in ("Sentence", *_CHOSEN)]
    tallest = max(map(height, rest), default=-1)
    layers: dict[int, list[Group]] = {}
    for group, kind in kinds.items():
        top = 0 if kind == "Sentence" else 1 if kind in _CHOSEN else 2 + tallest - height(group)
        layers.setdefault(top, []).append(group)
    return [layers[top] for top in sorted(layers)]


# --- drawing ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Places:
    """Where each group is drawn, and the tops and bottoms of the rows."""

    shapes: dict[Group, Shape]
    at: dict[Group, tuple[float, float]]
    rows: list[tuple[list[Group], float, float]]


def _figure(picture: Picture, panel: _Panel, numbers: dict[int, int], frame: Frame) -> Figure:
    shapes = {group: _shape(picture, group, numbers) for group in panel.links}
    places = _Places(shapes, {}, [])
    top = float(_ABOVE)
    for layer in panel.layers:
        wanted = sorted(layer, key=lambda group: (panel.column(group), group))
        for start in range(0, len(wanted), frame.columns):
            row = wanted[start : start + frame.columns]
            top = _row(row, panel, places, frame, top)
    paths = [
        _path(s, t, places, frame) for s in sorted(panel.links) for t in sorted(panel.links[s])
    ]
    bodies = [
        drawn(shapes[group], *places.at[group], frame.node, titled=frame.titled)
        for group in sorted(shapes)
    ]
    own = sorted({numbers[chain[0]] for chain in panel.chains})
    caption = f"Sentence {own[0]}" if len(own) == 1 else f"Sentences {own[0]} to {own[-1]}"
    body = lines_of(paths) + "".join(bodies)
    return Figure(caption, body, frame.width, round(top - _BETWEEN + _ABOVE))


def _row(row: Sequence[Group], panel: _Panel, places: _Places, frame: Frame, top: float) -> float:
    """Place a row; returns where the next begins."""
    tall = max(places.shapes[group].height for group in row)
    for group, x in zip(row, _apart([panel.column(g) for g in row], frame), strict=True):
        places.at[group] = (x, top + tall / 2)
    places.rows.append((list(row), top, top + tall))
    return top + tall + _BETWEEN


def _apart(columns: Iterable[float], frame: Frame) -> list[float]:
    """The middles of nodes side by side, as near to where they would stand as there is room."""
    step = frame.node + frame.gap
    first, last = frame.node / 2 + 1, frame.width - frame.node / 2 - 3
    xs: list[float] = []
    for column in columns:
        wanted = column * frame.width
        xs.append(max(min(max(wanted, first), last), xs[-1] + step if xs else first))
    limit = last
    for n in range(len(xs) - 1, -1, -1):
        xs[n] = min(xs[n], limit)
        limit = xs[n] - step
    return xs


def _path(source: Group, target: Group, places: _Places, frame: Frame) -> str:
    """An arrow from the bottom of one shape to the top of another, past the rows between."""
    (x, y), (to_x, to_y) = places.at[source], places.at[target]
    start, end = y + places.shapes[source].height / 2, to_y - places.shapes[target].height / 2
    path = [f"M{x:.0f} {start:.0f}"]
    for row, top, bottom in places.rows:
        if top > start and bottom < end:
            x_past = _past(x + (to_x - x) * (top - start) / (end - start), row, places, frame)
            path.append(_curve(x, start, x_past, top) + f" V{bottom:.0f}")
            x, start = x_past, bottom
    return arrow(" ".join([*path, _curve(x, start, to_x, end)]), DERIVED, frame)


def _past(x: float, row: Iterable[Group], places: _Places, frame: Frame) -> float:
    """The nearest place where a line passes a row without crossing a shape of it."""
    half = (frame.node + frame.gap) / 2
    for group in row:
        middle = places.at[group][0]
        if abs(x - middle) < half:
            right = middle + half if middle + half < frame.width else middle - half
            left = middle - half if middle > half else middle + half
            return right if x >= middle else left
    return x


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    if abs(x - to_x) < 1:
        return f"V{to_y:.0f}"
    middle = (y + to_y) / 2
    return f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"


def _shape(picture: Picture, group: Group, numbers: dict[int, int]) -> Shape:
    nodes = [picture.nodes[place] for place in group]
    kind = nodes[0].kind
    title = f"{words(kind)} {numbers[group[0]]}" if kind == "Sentence" else words(kind)
    several = len(nodes) > 1
    return Shape(
        nodes[0].shape,
        f"{len(nodes)} × {title}" if several else title,
        tuple((node.label or node.iri)[:MOST_LETTERS] for node in nodes),
        "\n".join(f"{node.label[:MOST_LETTERS]}\n{node.iri}".strip() for node in nodes),
        len(nodes),
        several,
    )


def words(kind: str) -> str:
    """``EdgeSelection`` as words: ``Edge selection``."""
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
    return spaced[:1].upper() + spaced[1:]
