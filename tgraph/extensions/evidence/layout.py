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
    Figure,
    Frame,
    Shape,
    arrow,
    drawn,
    lines_of,
    side,
    svg,
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


def figures(picture: Picture, frame: Frame = WIDE) -> list[Figure]:
    """The whole by kind, and then what each sentence cites; nothing is wider than the frame."""
    return [lanes(picture, frame), *panels(picture, frame)] if picture.nodes else []


def to_svg(picture: Picture) -> bytes:
    """The picture as one image, 720 pixels wide and as high as it has to be."""
    return svg(figures(picture), WIDE)


def acyclic(graph: DiGraph) -> DiGraph:
    """The graph without arrows that close a circle."""
    open_ended = graph.copy()
    try:
        while True:
            open_ended.remove_edge(*nx.find_cycle(open_ended)[-1])
    except nx.NetworkXNoCycle:
        return open_ended


def reduced(graph: DiGraph) -> DiGraph:
    """The graph without arrows that a longer way says as well, or that close a circle."""
    return nx.transitive_reduction(acyclic(graph))


def words(kind: str) -> str:
    """``EdgeSelection`` as words: ``Edge selection``. An embedder is on record as a language model;
    what it is here is a model."""
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
    """Which kinds there are, the arrows between them, and the row of each; an agent stands in the
    row of every activity that it is associated with, which is the last of its three."""

    shapes: dict[Key, Shape]
    arrows: dict[tuple[Key, Key], str]
    rows: dict[Key, int] = field(default_factory=dict)
    agents: list[tuple[int, Key, Key | None]] = field(default_factory=list)
    count: int = 0


def lanes(picture: Picture, frame: Frame) -> Figure:
    """The figure; it is as high as there are kinds."""
    found = _kinds(picture)
    _rows(found)
    paths = _lane_paths(found, frame)
    bodies = [
        drawn(
            found.shapes[key],
            *_place(key[0], row, frame),
            frame.lanes[_LANE[key[0]]],
            titled=frame.titled,
        )
        for key, row in [*found.rows.items(), *((key, row) for row, key, _ in found.agents)]
    ]
    height = _LANES_ABOVE + found.count * _STEP
    return Figure("All of it, by kind", lines_of(paths) + "".join(bodies), frame.width, height)


def _kinds(picture: Picture) -> _Lanes:
    keys: list[Key] = [(n.shape, n.iri if n.shape == "agent" else n.kind) for n in picture.nodes]
    together: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        together.setdefault(key, []).append(place)
    shapes = {key: _kind_shape(picture, key, places) for key, places in together.items()}
    arrows = {
        (keys[source], keys[target]): name
        for source, target, name in picture.arrows
        if keys[source] != keys[target]
    }
    between = sorted(pair for pair in arrows if pair[0][0] == pair[1][0] == "entity")
    implied = set(between).difference(reduced(DiGraph(between)).edges)
    return _Lanes(shapes, {pair: name for pair, name in arrows.items() if pair not in implied})


def _kind_shape(picture: Picture, key: Key, places: Sequence[int]) -> Shape:
    nodes = [picture.nodes[place] for place in places]
    labels = list(dict.fromkeys(node.label[:MOST_LETTERS] for node in nodes if node.label))
    title, count = words(nodes[0].kind), len(nodes)
    if labels and labels[0].lower() == title.lower():
        labels = labels[1:]
    more = [f"and {count - 1} more"] if len(labels) > 1 else []
    text = "\n".join([*labels[:1], nodes[0].iri]) if count == 1 else ""
    name = f"{count} × {title}" if count > 1 else title
    return Shape(key[0], name, (*labels[:1], *more), text, count)


def _rows(found: _Lanes) -> None:
    """Give each kind a row: an activity that of the first thing that it generated, or its own."""
    for key in _ordered(found):
        generated = [
            found.rows[s]
            for (s, t), name in found.arrows.items()
            if t == key and name == GENERATED and s in found.rows
        ]
        taken = {row for other, row in found.rows.items() if other[0] == key[0]}
        free = [row for row in sorted(generated) if row not in taken]
        found.rows[key] = free[0] if free else found.count
        found.count = max(found.count, found.rows[key] + 1)
    for (source, target), name in found.arrows.items():
        if name == ASSOCIATED and source in found.rows:
            _beside(found, found.rows[source], target, source)
    met = {key for _, key, _ in found.agents}
    for key in found.shapes:
        if key[0] == "agent" and key not in met:
            _beside(found, found.count, key, None)


def _beside(found: _Lanes, row: int, agent: Key, activity: Key | None) -> None:
    """Put the agent into the row, or into a new one below all where another agent stands there."""
    if row in {taken for taken, _, _ in found.agents}:
        row = found.count
    found.agents.append((row, agent, activity))
    found.count = max(found.count, row + 1)


def _ordered(found: _Lanes) -> list[Key]:
    """The entities and activities so that arrows lead on, where there is no circle, and chains stay
    together; what belongs to an answer's sentences before what was selected as a whole."""
    graph = DiGraph()
    graph.add_nodes_from(sorted(key for key in found.shapes if key[0] == "entity"))
    graph.add_nodes_from(sorted(key for key in found.shapes if key[0] == "activity"))
    graph.add_edges_from(sorted(p for p in found.arrows if p[0] in graph and p[1] in graph))
    return list(nx.dfs_postorder_nodes(acyclic(graph)))[::-1]


# --- the whole: its arrows ---


def _place(kind: str, row: int, frame: Frame) -> tuple[float, float]:
    """The middle of what stands in a lane and row."""
    first, second, third = frame.lanes
    between = (frame.width - frame.margin - first - second - third - 4) / 2
    lefts = (frame.margin, frame.margin + first + between, frame.width - third - 4)
    lane = _LANE[kind]
    return lefts[lane] + frame.lanes[lane] / 2, _LANES_ABOVE + row * _STEP + HEIGHT / 2


def _lane_paths(found: _Lanes, frame: Frame) -> list[str]:
    beside = [(row, activity) for row, _, activity in found.agents if activity is not None]
    paths = [_across(found.rows[activity], row, frame) for row, activity in beside]
    for name in (DERIVED, INFORMED, USED, GENERATED):
        links = sorted(
            ((s[0], found.rows[s]), (t[0], found.rows[t]))
            for (s, t), said in found.arrows.items()
            if s in found.rows and t in found.rows and _drawn_as(s, t, said) == name
        )
        links.sort(key=lambda link: (link[0][1], link[1][1]))
        tracks = _tracks([(source[1], target[1]) for source, target in links])
        many = max(tracks, default=0) + 2
        for (source, target), track in zip(links, tracks, strict=True):
            paths.append(_routed(name, source, target, (track + 1) / many, frame))
    return paths


def _drawn_as(source: Key, target: Key, name: str) -> str:
    """Arrows between entities are drawn alike, and so are those between activities."""
    if source[0] == target[0]:
        return DERIVED if source[0] == "entity" else INFORMED
    return name


def _tracks(links: Iterable[tuple[int, int]]) -> list[int]:
    """A track for each link so that none that run side by side share one."""
    found: list[tuple[int, int, int]] = []
    for low, high in map(sorted, links):
        beside = {track for start, end, track in found if start < high and low < end}
        found.append((low, high, min(set(range(len(found) + 1)) - beside)))
    return [track for _, _, track in found]


def _across(row: int, agent_row: int, frame: Frame) -> str:
    """From an activity to its agent."""
    x, y = _place("activity", row, frame)
    to_x, to_y = _place("agent", agent_row, frame)
    start, end = x + frame.lanes[1] / 2, to_x - frame.lanes[2] / 2
    middle = start + (end - start) * 0.3
    bend = "" if row == agent_row else f" H{middle:.0f} V{to_y + 8:.0f}"
    height = y if row == agent_row else to_y + 8
    return arrow(f"M{start:.0f} {y:.0f}{bend} L{end:.0f} {height:.0f}", ASSOCIATED, frame)


def _routed(name: str, source: End, target: End, track: float, frame: Frame) -> str:
    """An arrow down its lane, or around what stands between; ``track`` is where beside the lane,
    0 to 1."""
    (x, y), (to_x, to_y) = _place(*source, frame), _place(*target, frame)
    half, to_half = frame.lanes[_LANE[source[0]]] / 2, frame.lanes[_LANE[target[0]]] / 2
    if source[0] == target[0]:
        if target[1] == source[1] + 1:
            path = f"M{x:.0f} {y + HEIGHT / 2:.0f} V{to_y - HEIGHT / 2:.0f}"
        elif source[0] == "entity":
            beside = frame.margin * (1 - track)
            path = _around(x - side("entity", 2 * half, 7), y + 7, beside, to_y - 7)
        else:
            gutter = _place("agent", 0, frame)[0] - frame.lanes[2] / 2 - (x + half)
            path = _around(x + half, y + 9, x + half + gutter * (0.35 + 0.5 * track), to_y - 9)
    elif name == GENERATED and source[1] == target[1]:
        path = f"M{x + half:.0f} {y:.0f} H{to_x - to_half:.0f}"
    else:
        half, to_half = side(source[0], 2 * half, 12), side(target[0], 2 * to_half, 4)
        start, end = (x - half, to_x + to_half) if x > to_x else (x + half, to_x - to_half)
        path = _around(start, y + 12, start + (end - start) * (0.15 + 0.7 * track), to_y - 4, end)
    return arrow(path, name, frame)


def _around(x: float, y: float, beside: float, to_y: float, to_x: float | None = None) -> str:
    """Beside something, and back to where it began or to ``to_x``."""
    return f"M{x:.0f} {y:.0f} H{beside:.0f} V{to_y:.0f} H{x if to_x is None else to_x:.0f}"


# --- panels: what stands together ---

MOST_LISTED = 24
"""Resources that one shape lists."""
_BETWEEN = 32
_ABOVE = 6
_CHOSEN = ("EdgeSelection", "ItemSelection")

Group = tuple[int, ...]
"""Nodes that are drawn as one shape, by their positions."""
Span = tuple[float, float]
"""From where to where, along one axis."""
_Row = tuple[float, float, list[float]]
"""The top and bottom of a row, and the middles of what stands in it."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """Chains, the graph of their groups, and these in layers from the top down."""

    chains: Sequence[Group]
    groups: DiGraph
    layers: Sequence[Sequence[Group]]

    @classmethod
    def of(cls, picture: Picture, leads: DiGraph, chains: Sequence[Group]) -> _Panel:
        """The panel of these chains."""
        groups = reduced(_grouped(picture, leads, chains))
        return cls(chains, groups, _layers(picture, groups))

    def column(self, group: Group) -> float:
        """Where the group would stand, 0 to 1: in the middle of the chains that share it."""
        own = [n for n, chain in enumerate(self.chains) if not set(chain).isdisjoint(group)]
        return (sum(own) / len(own) + 0.5) / len(self.chains)

    def fits(self, frame: Frame) -> bool:
        """Whether each layer has room in a row, and each group in a shape."""
        most = max(len(layer) for layer in self.layers)
        return most <= frame.columns and max(map(len, self.groups)) <= MOST_LISTED


def panels(picture: Picture, frame: Frame) -> Iterator[Figure]:
    """The panels, from the first sentence to the last."""
    sentences = list(dict.fromkeys(chain[0] for chain in picture.chains))
    numbers = {place: number for number, place in enumerate(sentences, 1)}
    for panel in _packed(picture, frame):
        yield _figure(picture, panel, numbers, frame)


def _packed(picture: Picture, frame: Frame) -> Iterator[_Panel]:
    """The citations in their order, as many together as fit."""
    leads = DiGraph()
    leads.add_nodes_from(range(len(picture.nodes)))
    leads.add_edges_from(
        (s, t) for s, t, name in picture.arrows if name in (DERIVED, CITED) and s != t
    )
    packed: _Panel | None = None
    for chain in picture.chains:
        more = _Panel.of(picture, leads, [*(packed.chains if packed else ()), chain])
        if packed and not more.fits(frame):
            yield packed
            more = _Panel.of(picture, leads, [chain])
        packed = more
    if packed:
        yield packed


def _grouped(picture: Picture, leads: DiGraph, chains: Sequence[Group]) -> DiGraph:
    """What leads to what; nodes of a kind that have the same before and after them are one group.

    Sentences, selections and whatever leads to another of its kind stand for themselves.
    """
    nodes = dict.fromkeys(node for chain in chains for node in sorted(chain))
    part = leads.subgraph(nodes)
    together: dict[object, list[int]] = {}
    for node in nodes:
        kind = picture.nodes[node].kind
        alone = kind == "Sentence" or kind in _CHOSEN
        around = kind, frozenset(part.predecessors(node)), frozenset(part.successors(node))
        together.setdefault(node if alone else around, []).append(node)
    group_of = {node: tuple(group) for group in together.values() for node in group}
    groups = DiGraph()
    groups.add_nodes_from(sorted(set(group_of.values())))
    groups.add_edges_from(
        sorted({(group_of[s], group_of[t]) for s, t in part.edges if group_of[s] != group_of[t]})
    )
    return groups


def _layers(picture: Picture, groups: DiGraph) -> list[list[Group]]:
    """Sentences at the top, what was selected below them, and the rest from the documents up."""
    tops = {"Sentence": 0} | dict.fromkeys(_CHOSEN, 1)
    above: list[list[Group]] = [[], []]
    below: list[list[Group]] = []
    for height in nx.topological_generations(groups.reverse(copy=False)):
        below.insert(0, [])
        for group in sorted(height):
            top = tops.get(picture.nodes[group[0]].kind)
            (below[0] if top is None else above[top]).append(group)
    return [layer for layer in (*map(sorted, above), *below) if layer]


# --- panels: drawing ---


def _figure(picture: Picture, panel: _Panel, numbers: Mapping[int, int], frame: Frame) -> Figure:
    shapes = {group: _group_shape(picture, group, numbers) for group in panel.groups}
    at: dict[Group, tuple[float, float]] = {}
    rows: list[_Row] = []
    top = float(_ABOVE)
    for layer in panel.layers:
        wanted = sorted((panel.column(group), group) for group in layer)
        for start in range(0, len(wanted), frame.columns):
            row = wanted[start : start + frame.columns]
            bottom = top + max(shapes[group].height for _, group in row)
            xs = _apart([column * frame.width for column, _ in row], frame)
            at |= {group: (x, (top + bottom) / 2) for x, (_, group) in zip(xs, row, strict=True)}
            rows.append((top, bottom, xs))
            top = bottom + _BETWEEN
    paths = []
    for source, target in sorted(panel.groups.edges):
        x, y = at[source]
        to_x, to_y = at[target]
        ends = y + shapes[source].height / 2, to_y - shapes[target].height / 2
        paths.append(arrow(_path((x, to_x), ends, rows, frame), DERIVED, frame))
    bodies = [
        drawn(shapes[group], *at[group], frame.node, titled=frame.titled)
        for group in sorted(shapes)
    ]
    own = sorted({numbers[chain[0]] for chain in panel.chains})
    caption = f"Sentence {own[0]}" if len(own) == 1 else f"Sentences {own[0]} to {own[-1]}"
    body = lines_of(paths) + "".join(bodies)
    return Figure(caption, body, frame.width, round(top - _BETWEEN + _ABOVE))


def _apart(wanted: Sequence[float], frame: Frame) -> list[float]:
    """The middles of nodes side by side, as near to where they would stand as there is room."""
    step = frame.node + frame.gap
    first, last = frame.node / 2 + 1, frame.width - frame.node / 2 - 3
    xs: list[float] = []
    for n, x in enumerate(wanted):
        room = last - step * (len(wanted) - 1 - n)
        xs.append(min(max(x, xs[-1] + step if xs else first), room))
    return xs


def _path(xs: Span, ys: Span, rows: Iterable[_Row], frame: Frame) -> str:
    """From the bottom of one shape to the top of another, past the rows between."""
    (x, to_x), (y, to_y) = xs, ys
    path = [f"M{x:.0f} {y:.0f}"]
    for top, bottom, middles in rows:
        if top > y and bottom < to_y:
            beside = _past(x + (to_x - x) * (top - y) / (to_y - y), middles, frame)
            path.append(f"{_curve(x, y, beside, top)} V{bottom:.0f}")
            x, y = beside, bottom
    return " ".join([*path, _curve(x, y, to_x, to_y)])


def _past(x: float, middles: Iterable[float], frame: Frame) -> float:
    """The nearest place where a line passes a row without crossing a shape of it."""
    half = (frame.node + frame.gap) / 2
    for middle in middles:
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


def _group_shape(picture: Picture, group: Group, numbers: Mapping[int, int]) -> Shape:
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
