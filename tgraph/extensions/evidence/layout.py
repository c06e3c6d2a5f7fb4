"""Where the shapes of a picture stand: the whole of it by kind, and then sentence by sentence.

The whole has three lanes: entities, the activities that generated them, and the agents that these
were associated with, with as many of a kind as there are in one shape. What came last is at the
top.

The panels show what each sentence cites, down to the documents. As many citations share a panel as
fit side by side, so that what they have in common is drawn once. What several cite in the same way
is one shape that lists each. So a panel has a bound on its width, and nothing cited is left out.

An arrow that a longer way says as well is left out.

The places are computed here rather than by igraph's ``layout_sugiyama``, which has no bound on the
width: of the pictures of 104 recorded sessions 97 were wider than 720 pixels as a whole (at most
2,456, the three lanes mixed and arrows drawn through shapes), and 25 of 183 panels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx
from networkx import DiGraph

from tgraph.explain.render.svg import (
    HEIGHT,
    WIDE,
    DrawingFrame,
    Figure,
    Shape,
    draw_arrow,
    draw_shape,
    lines_of,
    render_svg,
    side_distance,
)
from tgraph.extensions.evidence.picture import (
    ASSOCIATED,
    CITED,
    DERIVED,
    GENERATED,
    INFORMED,
    USED,
    Picture,
)

MOST_LETTERS = 240
"""Letters of a label that a pointer shows."""


def layout_figures(picture: Picture, frame: DrawingFrame = WIDE) -> list[Figure]:
    """Return figures within the frame's width: the picture by kind, then panels of sentence
    citations."""
    return [layout_lanes(picture, frame), *layout_panels(picture, frame)] if picture.nodes else []


def to_svg(picture: Picture) -> bytes:
    """Return the picture as an SVG image, 720 pixels wide, height as needed."""
    return render_svg(layout_figures(picture), WIDE)


def remove_cycles(graph: DiGraph) -> DiGraph:
    """Return the graph without arrows that close a cycle."""
    open_ended = graph.copy()
    try:
        while True:
            open_ended.remove_edge(*nx.find_cycle(open_ended)[-1])
    except nx.NetworkXNoCycle:
        return open_ended


def reduce_graph(graph: DiGraph) -> DiGraph:
    """Return the graph without cycle-closing arrows and without arrows implied by longer paths."""
    return nx.transitive_reduction(remove_cycles(graph))


def format_kind(kind: str) -> str:
    """Return a kind in words: ``EdgeSelection`` becomes ``Edge selection``.

    A recorded ``LanguageModel`` becomes ``Model``, because embedders are recorded as language
    models."""
    if kind == "LanguageModel":
        return "Model"
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
    return spaced[:1].upper() + spaced[1:]


# --- the whole: what there is of each kind ---

_STEP = HEIGHT + 16
_LANES_ABOVE = 8
_LANE = {"entity": 0, "activity": 1, "agent": 2}

Key = tuple[str, str]
"""A shape of the picture: entity, activity or agent, and its kind; an agent by its IRI."""
End = tuple[str, int]
"""A lane and a row."""


@dataclass(slots=True)
class _Lanes:
    """Lane layout: shapes by kind, arrows between kinds, rows of kinds.

    An agent stands in the row of every associated activity, which is the last of its three."""

    shapes: dict[Key, Shape]
    arrows: dict[tuple[Key, Key], str]
    rows: dict[Key, int] = field(default_factory=dict)
    agents: list[tuple[int, Key, Key | None]] = field(default_factory=list)
    count: int = 0


def layout_lanes(picture: Picture, frame: DrawingFrame) -> Figure:
    """Return the lane figure; its height depends on the number of kinds."""
    lane_layout = _collect_kinds(picture)
    _assign_rows(lane_layout)
    paths = _lane_paths(lane_layout, frame)
    bodies = [
        draw_shape(
            lane_layout.shapes[key],
            *_cell_centre(key[0], row, frame),
            frame.lanes[_LANE[key[0]]],
            titled=frame.titled,
        )
        for key, row in [
            *lane_layout.rows.items(),
            *((key, row) for row, key, _ in lane_layout.agents),
        ]
    ]
    height = _LANES_ABOVE + lane_layout.count * _STEP
    return Figure("All of it, by kind", lines_of(paths) + "".join(bodies), frame.width, height)


def _collect_kinds(picture: Picture) -> _Lanes:
    keys: list[Key] = [(n.shape, n.iri if n.shape == "agent" else n.kind) for n in picture.nodes]
    positions_by_key: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        positions_by_key.setdefault(key, []).append(place)
    shapes = {key: _kind_shape(picture, key, places) for key, places in positions_by_key.items()}
    arrows = {
        (keys[source], keys[target]): name
        for source, target, name in picture.arrows
        if keys[source] != keys[target]
    }
    between = sorted(pair for pair in arrows if pair[0][0] == pair[1][0] == "entity")
    implied = set(between).difference(reduce_graph(DiGraph(between)).edges)
    return _Lanes(shapes, {pair: name for pair, name in arrows.items() if pair not in implied})


def _kind_shape(picture: Picture, key: Key, places: Sequence[int]) -> Shape:
    nodes = [picture.nodes[place] for place in places]
    labels = list(dict.fromkeys(node.label[:MOST_LETTERS] for node in nodes if node.label))
    title, count = format_kind(nodes[0].kind), len(nodes)
    if labels and labels[0].lower() == title.lower():
        labels = labels[1:]
    remainder_label = [f"and {count - 1} more"] if len(labels) > 1 else []
    text = "\n".join([*labels[:1], nodes[0].iri]) if count == 1 else ""
    name = f"{count} × {title}" if count > 1 else title
    return Shape(key[0], name, (*labels[:1], *remainder_label), text, count)


def _assign_rows(found: _Lanes) -> None:
    """Assign a row to each kind: an activity shares its earliest generated entity's row if
    free, otherwise gets a new row."""
    for key in _order_kinds(found):
        generated = [
            found.rows[s]
            for (s, t), name in found.arrows.items()
            if t == key and name == GENERATED and s in found.rows
        ]
        occupied_rows = {row for neighbour, row in found.rows.items() if neighbour[0] == key[0]}
        free = [row for row in sorted(generated) if row not in occupied_rows]
        found.rows[key] = free[0] if free else found.count
        found.count = max(found.count, found.rows[key] + 1)
    for (source, target), name in found.arrows.items():
        if name == ASSOCIATED and source in found.rows:
            _place_agent(found, found.rows[source], target, source)
    met = {key for _, key, _ in found.agents}
    for key in found.shapes:
        if key[0] == "agent" and key not in met:
            _place_agent(found, found.count, key, None)


def _place_agent(found: _Lanes, row: int, agent: Key, activity: Key | None) -> None:
    """Place an agent in this row, or below all rows if another agent occupies it."""
    if row in {occupied_row for occupied_row, _, _ in found.agents}:
        row = found.count
    found.agents.append((row, agent, activity))
    found.count = max(found.count, row + 1)


def _order_kinds(found: _Lanes) -> list[Key]:
    """Return entity and activity kinds in arrow order (ignoring cycles), with chains kept
    together; kinds of answer sentences precede kinds of the whole selection."""
    graph = DiGraph()
    graph.add_nodes_from(sorted(key for key in found.shapes if key[0] == "entity"))
    graph.add_nodes_from(sorted(key for key in found.shapes if key[0] == "activity"))
    graph.add_edges_from(sorted(p for p in found.arrows if p[0] in graph and p[1] in graph))
    return list(nx.dfs_postorder_nodes(remove_cycles(graph)))[::-1]


# --- the whole: its arrows ---


def _cell_centre(kind: str, row: int, frame: DrawingFrame) -> tuple[float, float]:
    """Return centre coordinates of a lane cell in a row."""
    first, second, third = frame.lanes
    between = (frame.width - frame.margin - first - second - third - 4) / 2
    lefts = (frame.margin, frame.margin + first + between, frame.width - third - 4)
    lane = _LANE[kind]
    return lefts[lane] + frame.lanes[lane] / 2, _LANES_ABOVE + row * _STEP + HEIGHT / 2


def _lane_paths(found: _Lanes, frame: DrawingFrame) -> list[str]:
    beside = [(row, activity) for row, _, activity in found.agents if activity is not None]
    paths = [_agent_arrow(found.rows[activity], row, frame) for row, activity in beside]
    for name in (DERIVED, INFORMED, USED, GENERATED):
        links = sorted(
            ((s[0], found.rows[s]), (t[0], found.rows[t]))
            for (s, t), arrow_name in found.arrows.items()
            if s in found.rows and t in found.rows and _drawn_as(s, t, arrow_name) == name
        )
        links.sort(key=lambda link: (link[0][1], link[1][1]))
        tracks = _assign_tracks([(source[1], target[1]) for source, target in links])
        many = max(tracks, default=0) + 2
        for (source, target), track in zip(links, tracks, strict=True):
            paths.append(_route_arrow(name, source, target, (track + 1) / many, frame))
    return paths


def _drawn_as(source: Key, target: Key, name: str) -> str:
    """Return the drawn arrow name; arrows between entities share a name, as do arrows between
    activities."""
    if source[0] == target[0]:
        return DERIVED if source[0] == "entity" else INFORMED
    return name


def _assign_tracks(links: Iterable[tuple[int, int]]) -> list[int]:
    """Return a track number per link; overlapping links get different tracks."""
    placed_links: list[tuple[int, int, int]] = []
    for low, high in map(sorted, links):
        beside = {track for start, end, track in placed_links if start < high and low < end}
        placed_links.append((low, high, min(set(range(len(placed_links) + 1)) - beside)))
    return [track for _, _, track in placed_links]


def _agent_arrow(row: int, agent_row: int, frame: DrawingFrame) -> str:
    """Return an arrow connecting an activity with its agent."""
    x, y = _cell_centre("activity", row, frame)
    to_x, to_y = _cell_centre("agent", agent_row, frame)
    start, end = x + frame.lanes[1] / 2, to_x - frame.lanes[2] / 2
    middle = start + (end - start) * 0.3
    bend = "" if row == agent_row else f" H{middle:.0f} V{to_y + 8:.0f}"
    height = y if row == agent_row else to_y + 8
    return draw_arrow(f"M{start:.0f} {y:.0f}{bend} L{end:.0f} {height:.0f}", ASSOCIATED, frame)


def _route_arrow(name: str, source: End, target: End, track: float, frame: DrawingFrame) -> str:
    """Return an arrow inside its lane or around intermediate shapes; ``track`` gives a relative
    position (0 to 1) beside the lane."""
    (x, y), (to_x, to_y) = _cell_centre(*source, frame), _cell_centre(*target, frame)
    half, to_half = frame.lanes[_LANE[source[0]]] / 2, frame.lanes[_LANE[target[0]]] / 2
    if source[0] == target[0]:
        if target[1] == source[1] + 1:
            path = f"M{x:.0f} {y + HEIGHT / 2:.0f} V{to_y - HEIGHT / 2:.0f}"
        elif source[0] == "entity":
            beside = frame.margin * (1 - track)
            path = _detour_path(x - side_distance("entity", 2 * half, 7), y + 7, beside, to_y - 7)
        else:
            gutter = _cell_centre("agent", 0, frame)[0] - frame.lanes[2] / 2 - (x + half)
            path = _detour_path(x + half, y + 9, x + half + gutter * (0.35 + 0.5 * track), to_y - 9)
    elif name == GENERATED and source[1] == target[1]:
        path = f"M{x + half:.0f} {y:.0f} H{to_x - to_half:.0f}"
    else:
        half, to_half = (
            side_distance(source[0], 2 * half, 12),
            side_distance(target[0], 2 * to_half, 4),
        )
        start, end = (x - half, to_x + to_half) if x > to_x else (x + half, to_x - to_half)
        path = _detour_path(
            start, y + 12, start + (end - start) * (0.15 + 0.7 * track), to_y - 4, end
        )
    return draw_arrow(path, name, frame)


def _detour_path(x: float, y: float, beside: float, to_y: float, to_x: float | None = None) -> str:
    """Return a detour path: sideways to ``beside``, vertically to ``to_y``, then back to ``x``
    or ``to_x``."""
    return f"M{x:.0f} {y:.0f} H{beside:.0f} V{to_y:.0f} H{x if to_x is None else to_x:.0f}"


# --- panels: what stands together ---

MOST_LISTED = 24
"""Resources that one shape lists."""
_BETWEEN = 32
_ABOVE = 6
_CHOSEN = ("EdgeSelection", "ItemSelection")

NodeGroup = tuple[int, ...]
"""Nodes that are drawn as one shape, by their positions."""
Interval = tuple[float, float]
"""From where to where, along one axis."""
_LayoutRow = tuple[float, float, list[float]]
"""The top and bottom of a row, and the middles of what stands in it."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """A citation panel: chains, group graph, and layers from top to bottom."""

    chains: Sequence[NodeGroup]
    groups: DiGraph
    layers: Sequence[Sequence[NodeGroup]]

    @classmethod
    def from_chains(cls, picture: Picture, leads: DiGraph, chains: Sequence[NodeGroup]) -> _Panel:
        """Return a panel for these chains."""
        groups = reduce_graph(_group_nodes(picture, leads, chains))
        return cls(chains, groups, _build_layers(picture, groups))

    def column(self, group: NodeGroup) -> float:
        """Return the preferred horizontal position of a group (0 to 1): the centre of chains
        sharing it."""
        chain_numbers = [
            n for n, chain in enumerate(self.chains) if not set(chain).isdisjoint(group)
        ]
        return (sum(chain_numbers) / len(chain_numbers) + 0.5) / len(self.chains)

    def fits(self, frame: DrawingFrame) -> bool:
        """Tell whether all layers fit in rows, and all groups in shapes."""
        widest = max(len(layer) for layer in self.layers)
        return widest <= frame.columns and max(map(len, self.groups)) <= MOST_LISTED


def layout_panels(picture: Picture, frame: DrawingFrame) -> Iterator[Figure]:
    """Yield panel figures from first to last sentence."""
    sentences = list(dict.fromkeys(chain[0] for chain in picture.chains))
    numbers = {place: number for number, place in enumerate(sentences, 1)}
    for panel in _pack_panels(picture, frame):
        yield _panel_figure(picture, panel, numbers, frame)


def _pack_panels(picture: Picture, frame: DrawingFrame) -> Iterator[_Panel]:
    """Yield citation panels, each filled with consecutive citations until the frame is full."""
    leads = DiGraph()
    leads.add_nodes_from(range(len(picture.nodes)))
    leads.add_edges_from(
        (s, t) for s, t, name in picture.arrows if name in (DERIVED, CITED) and s != t
    )
    packed: _Panel | None = None
    for chain in picture.chains:
        extended = _Panel.from_chains(picture, leads, [*(packed.chains if packed else ()), chain])
        if packed and not extended.fits(frame):
            yield packed
            extended = _Panel.from_chains(picture, leads, [chain])
        packed = extended
    if packed:
        yield packed


def _group_nodes(picture: Picture, leads: DiGraph, chains: Sequence[NodeGroup]) -> DiGraph:
    """Return a graph of node groups: nodes of a kind with equal predecessors and successors
    share a group.

    Sentences, selections and nodes leading to their own kind stay single."""
    nodes = dict.fromkeys(node for chain in chains for node in sorted(chain))
    part = leads.subgraph(nodes)
    nodes_by_key: dict[object, list[int]] = {}
    for node in nodes:
        kind = picture.nodes[node].kind
        alone = kind == "Sentence" or kind in _CHOSEN
        neighbourhood = kind, frozenset(part.predecessors(node)), frozenset(part.successors(node))
        nodes_by_key.setdefault(node if alone else neighbourhood, []).append(node)
    group_of = {node: tuple(group) for group in nodes_by_key.values() for node in group}
    groups = DiGraph()
    groups.add_nodes_from(sorted(set(group_of.values())))
    groups.add_edges_from(
        sorted({(group_of[s], group_of[t]) for s, t in part.edges if group_of[s] != group_of[t]})
    )
    return groups


def _build_layers(picture: Picture, groups: DiGraph) -> list[list[NodeGroup]]:
    """Return layers from top to bottom: sentences, selections, then remaining groups by height
    above documents."""
    tops = {"Sentence": 0} | dict.fromkeys(_CHOSEN, 1)
    above: list[list[NodeGroup]] = [[], []]
    below: list[list[NodeGroup]] = []
    for height in nx.topological_generations(groups.reverse(copy=False)):
        below.insert(0, [])
        for group in sorted(height):
            top = tops.get(picture.nodes[group[0]].kind)
            (below[0] if top is None else above[top]).append(group)
    return [layer for layer in (*map(sorted, above), *below) if layer]


# --- panels: drawing ---


def _panel_figure(
    picture: Picture, panel: _Panel, numbers: Mapping[int, int], frame: DrawingFrame
) -> Figure:
    shapes = {group: _group_shape(picture, group, numbers) for group in panel.groups}
    at: dict[NodeGroup, tuple[float, float]] = {}
    rows: list[_LayoutRow] = []
    top = float(_ABOVE)
    for layer in panel.layers:
        preferred_positions = sorted((panel.column(group), group) for group in layer)
        for start in range(0, len(preferred_positions), frame.columns):
            row = preferred_positions[start : start + frame.columns]
            bottom = top + max(shapes[group].height for _, group in row)
            xs = _spread_nodes([column * frame.width for column, _ in row], frame)
            at |= {group: (x, (top + bottom) / 2) for x, (_, group) in zip(xs, row, strict=True)}
            rows.append((top, bottom, xs))
            top = bottom + _BETWEEN
    paths = []
    for source, target in sorted(panel.groups.edges):
        x, y = at[source]
        to_x, to_y = at[target]
        ends = y + shapes[source].height / 2, to_y - shapes[target].height / 2
        paths.append(draw_arrow(_connect_shapes((x, to_x), ends, rows, frame), DERIVED, frame))
    bodies = [
        draw_shape(shapes[group], *at[group], frame.node, titled=frame.titled)
        for group in sorted(shapes)
    ]
    sentence_numbers = sorted({numbers[chain[0]] for chain in panel.chains})
    caption = (
        f"Sentence {sentence_numbers[0]}"
        if len(sentence_numbers) == 1
        else f"Sentences {sentence_numbers[0]} to {sentence_numbers[-1]}"
    )
    body = lines_of(paths) + "".join(bodies)
    return Figure(caption, body, frame.width, round(top - _BETWEEN + _ABOVE))


def _spread_nodes(wanted: Sequence[float], frame: DrawingFrame) -> list[float]:
    """Return centres of side-by-side nodes, as near as possible to preferred positions."""
    step = frame.node + frame.gap
    first, last = frame.node / 2 + 1, frame.width - frame.node / 2 - 3
    xs: list[float] = []
    for n, x in enumerate(wanted):
        room = last - step * (len(wanted) - 1 - n)
        xs.append(min(max(x, xs[-1] + step if xs else first), room))
    return xs


def _connect_shapes(
    xs: Interval, ys: Interval, rows: Iterable[_LayoutRow], frame: DrawingFrame
) -> str:
    """Return a path connecting two shapes, bottom to top, avoiding intermediate rows."""
    (x, to_x), (y, to_y) = xs, ys
    path = [f"M{x:.0f} {y:.0f}"]
    for top, bottom, middles in rows:
        if top > y and bottom < to_y:
            beside = _gap_position(x + (to_x - x) * (top - y) / (to_y - y), middles, frame)
            path.append(f"{_curve_path(x, y, beside, top)} V{bottom:.0f}")
            x, y = beside, bottom
    return " ".join([*path, _curve_path(x, y, to_x, to_y)])


def _gap_position(x: float, middles: Iterable[float], frame: DrawingFrame) -> float:
    """Return the nearest x position where a line passes a row without crossing shapes."""
    half = (frame.node + frame.gap) / 2
    for middle in middles:
        if abs(x - middle) < half:
            right = middle + half if middle + half < frame.width else middle - half
            left_gap = middle - half if middle > half else middle + half
            return right if x >= middle else left_gap
    return x


def _curve_path(x: float, y: float, to_x: float, to_y: float) -> str:
    if abs(x - to_x) < 1:
        return f"V{to_y:.0f}"
    middle = (y + to_y) / 2
    return f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"


def _group_shape(picture: Picture, group: NodeGroup, numbers: Mapping[int, int]) -> Shape:
    nodes = [picture.nodes[place] for place in group]
    kind = nodes[0].kind
    title = f"{format_kind(kind)} {numbers[group[0]]}" if kind == "Sentence" else format_kind(kind)
    several = len(nodes) > 1
    return Shape(
        nodes[0].shape,
        f"{len(nodes)} × {title}" if several else title,
        tuple((node.label or node.iri)[:MOST_LETTERS] for node in nodes),
        "\n".join(f"{node.label[:MOST_LETTERS]}\n{node.iri}".strip() for node in nodes),
        len(nodes),
        several,
    )
