"""Node-link pictures of graph parts: boxes for nodes, arrows for relationships.

Positions follow Kamada and Kawai (1989) from a circular start, so that identical graphs look
identical; overlapping boxes are then moved apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tgraph.explain.render.svg import fit_text, safe, text_width
from tgraph.explain.trace.facts import KnownFact
from tgraph.explain.trace.values import Trace
from tgraph.rendering import collapse_whitespace

MOST = 40
"""Arrows that a picture has room for."""
_WIDEST, _HEIGHT, _LINE = 150.0, 24.0, 13.0
_GAP = 26.0
_MARGIN = 10.0
_ROUNDS = 200

Href = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class GraphLink:
    """An arrow between two nodes, given by IRIs or words; ``strong`` marks arrows cited by an
    answer."""

    source: str
    target: str
    label: str
    strong: bool = False


@dataclass
class NodeLinkGraph:
    """A drawable graph: node labels by key, kinds of non-entity nodes, and arrows; ``left_out``
    counts arrows beyond the limit."""

    labels: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    links: list[GraphLink] = field(default_factory=list)
    left_out: int = 0

    def tie(
        self, source: tuple[str, str], target: tuple[str, str], label: str, *, strong: bool = False
    ) -> None:
        """Add an arrow between labelled nodes; count arrows beyond the limit as left out."""
        if len(self.links) >= MOST:
            self.left_out += 1
            return
        for key, words in (source, target):
            self.labels.setdefault(key, words)
        self.links.append(GraphLink(source[0], target[0], label, strong))


def used_by(trace: Trace) -> NodeLinkGraph:
    """Return a graph of answer evidence: selected edges, cited edges first, marked with
    sentence numbers; other items are linked to their source documents."""
    graph = NodeLinkGraph()
    cited: dict[str, list[int]] = {}
    for number, sentence in enumerate(trace.sentences, 1):
        for selection in sentence.edge_selections:
            cited.setdefault(selection, []).append(number)
    for item in sorted(trace.selected, key=lambda item: item.iri not in cited):
        numbers = cited.get(item.iri, [])
        marks = f" [{', '.join(map(str, numbers))}]" if numbers else ""
        if item.kind == "edge":
            ends = (item.subject, item.subject_label), (item.object, item.object_label)
            graph.tie(
                *ends, f"{collapse_whitespace(item.predicate_label)}{marks}", strong=bool(numbers)
            )
            continue
        places = item.evidence or tuple(
            place
            for sentence in trace.sentences
            for place in sentence.citations
            if place.edge_selection == item.iri
        )
        graph.kinds[item.item] = "item"
        for place in {evidence.document: evidence for evidence in places}.values():
            graph.kinds[place.document] = "document"
            ends = (item.item, item.label), (place.document, place.title)
            graph.tie(*ends, f"from{marks}", strong=bool(numbers))
    return graph


def facts_of(facts: Sequence[KnownFact]) -> NodeLinkGraph:
    """Return a graph of entity facts."""
    graph = NodeLinkGraph()
    for fact in facts:
        ends = (fact.subject, fact.subject_label), (fact.object, fact.object_label)
        graph.tie(*ends, collapse_whitespace(fact.predicate_label))
    return graph


def triples_of(triples: Sequence[tuple[str, str, str]], words: Mapping[str, str]) -> NodeLinkGraph:
    """Return a graph of constructed triples; ``words`` maps term keys to labels."""
    graph = NodeLinkGraph()
    for subject, predicate, obj in triples:
        ends = (subject, words.get(subject, subject)), (obj, words.get(obj, obj))
        graph.tie(*ends, collapse_whitespace(words.get(predicate, predicate)))
    return graph


@dataclass
class _Box:
    """A node box; ``x`` and ``y`` are its centre."""

    key: str
    lines: list[str]
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


def node_link_svg(graph: NodeLinkGraph, href: Href, title: str) -> str:
    """Return the graph as SVG with CSS classes instead of styles, nodes with IRIs as links;
    empty without arrows."""
    if not graph.links:
        return ""
    boxes = {key: _make_box(key, collapse_whitespace(words)) for key, words in graph.labels.items()}
    _arrange(list(boxes.values()), [(link.source, link.target) for link in graph.links])
    drawn = [_Drawn(item, boxes, _arrow_bend(item, graph.links)) for item in graph.links]
    left_edge, top, width, height = _frame([*boxes.values()], drawn)
    arrows = [item.arrow() for item in drawn]
    words = [item.words() for item in drawn]
    node_elements = [
        _node_element(box, graph.kinds.get(key, "entity"), graph.labels[key], href)
        for key, box in boxes.items()
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="node-link" role="group"'
        f' viewBox="{left_edge:.0f} {top:.0f} {width:.0f} {height:.0f}">'
        f"<title>{safe(title)}</title>"
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9"'
        ' markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
        f"{''.join(arrows)}{''.join(words)}{''.join(node_elements)}</svg>"
    )


def _make_box(key: str, words: str) -> _Box:
    lines = fit_text(words, (_WIDEST - 16, _WIDEST - 16)) or ["–"]
    width = max(44.0, max(map(text_width, lines)) * 1.12 + 18)
    return _Box(key, lines, width, _HEIGHT + _LINE * (len(lines) - 1))


def _arrange(boxes: list[_Box], links: Sequence[tuple[str, str]]) -> None:
    """Assign positions to all boxes."""
    import igraph

    places = {box.key: n for n, box in enumerate(boxes)}
    pairs = {tuple(sorted((places[a], places[b]))) for a, b in links if a != b}
    drawn = igraph.Graph(len(boxes), sorted(pairs))
    layout = drawn.layout_kamada_kawai(seed=drawn.layout_circle())
    for box, (x, y) in zip(boxes, layout.coords, strict=True):
        box.x, box.y = x * 150, y * 95
    for _ in range(_ROUNDS):
        if not _move_apart(boxes):
            return


def _move_apart(boxes: list[_Box]) -> bool:
    """Push overlapping boxes apart along the shorter direction. Return whether any overlapped."""
    moved = False
    for n, a in enumerate(boxes):
        for b in boxes[n + 1 :]:
            wide = (a.width + b.width) / 2 + _GAP - abs(a.x - b.x)
            tall = (a.height + b.height) / 2 + _GAP - abs(a.y - b.y)
            if wide <= 0.1 or tall <= 0.1:
                continue
            moved = True
            if wide < tall:
                push = math.copysign(wide / 2, a.x - b.x or -1)
                a.x, b.x = a.x + push, b.x - push
            else:
                push = math.copysign(tall / 2, a.y - b.y or -1)
                a.y, b.y = a.y + push, b.y - push
    return moved


def _arrow_bend(link: GraphLink, links: Sequence[GraphLink]) -> float:
    """Return an arrow's sideways bend, which separates parallel arrows between two nodes."""
    same = [e for e in links if {e.source, e.target} == {link.source, link.target}]
    place = next(n for n, parallel_link in enumerate(same) if parallel_link is link)
    bend = 34 * (place - (len(same) - 1) / 2)
    return bend if link.source <= link.target else -bend


def _bend_point(a: _Box, b: _Box, bend: float) -> tuple[float, float]:
    """Return the control point of a bent arrow."""
    if a is b:
        return a.x + a.width / 2 + 40, a.y - a.height / 2 - 30
    far = math.hypot(b.x - a.x, b.y - a.y) or 1
    return (
        (a.x + b.x) / 2 - (b.y - a.y) / far * bend * 2,
        (a.y + b.y) / 2 + (b.x - a.x) / far * bend * 2,
    )


def _edge(box: _Box, x: float, y: float) -> tuple[float, float]:
    """Return the border point where a line from box centre to a point leaves the box."""
    across, down = x - box.x, y - box.y
    share = min(
        box.width / 2 / abs(across) if across else math.inf,
        box.height / 2 / abs(down) if down else math.inf,
        1.0,
    )
    return box.x + across * share, box.y + down * share


class _Drawn:
    """A positioned arrow: curve ends, control point, label centre and label width."""

    def __init__(self, link: GraphLink, boxes: dict[str, _Box], bend: float) -> None:
        a, b = boxes[link.source], boxes[link.target]
        self.link, self.towards = link, _bend_point(a, b, bend)
        if a is b:
            self.start, self.end = (a.x, a.y - a.height / 2), _edge(a, self.towards[0], a.y)
            self.label = self.towards
        else:
            self.start, self.end = _edge(a, *self.towards), _edge(b, *self.towards)
            self.label = _bend_point(a, b, bend / 2)
        self.shown = "".join(fit_text(link.label, (130,)))
        self.width = text_width(self.shown)
        self.said = (
            f"{collapse_whitespace(a.lines[0])} — {link.label} — {collapse_whitespace(b.lines[0])}"
        )

    @property
    def class_(self) -> str:
        return " strong" if self.link.strong else ""

    def trace_curve(self) -> list[tuple[float, float]]:
        """Points of its curve (a quadratic Bézier curve)."""
        shares = [n / 8 for n in range(9)]
        parts = [((1 - t) ** 2, 2 * t * (1 - t), t * t) for t in shares]
        points = self.start, self.towards, self.end
        return [
            (
                sum(part * point[0] for part, point in zip(weights, points, strict=True)),
                sum(part * point[1] for part, point in zip(weights, points, strict=True)),
            )
            for weights in parts
        ]

    def corners(self) -> list[tuple[float, float]]:
        """Return two opposite corners of the label area."""
        (x, y), half = self.label, self.width * 0.56
        return [(x - half, y - _LINE), (x + half, y + _LINE)]

    def arrow(self) -> str:
        path = (
            f"M{_format_point(self.start)} Q{_format_point(self.towards)} {_format_point(self.end)}"
        )
        return f'<path class="link{self.class_}" d="{path}" marker-end="url(#arrow)"/>'

    def words(self) -> str:
        x, y = self.label
        return (
            f'<text class="label{self.class_}" x="{x:.0f}" y="{y + 3:.0f}">'
            f"<title>{safe(self.said)}</title>{safe(self.shown)}</text>"
        )


def _frame(boxes: Sequence[_Box], drawn: Sequence[_Drawn]) -> tuple[float, float, float, float]:
    """Return left, top, width and height of the drawing, including margins."""
    points = [(b.x - b.width / 2, b.y - b.height / 2) for b in boxes]
    points += [(b.x + b.width / 2, b.y + b.height / 2) for b in boxes]
    points += [point for item in drawn for point in (*item.trace_curve(), *item.corners())]
    x_min, top = (min(point[n] for point in points) - _MARGIN for n in (0, 1))
    right, bottom = (max(point[n] for point in points) + _MARGIN for n in (0, 1))
    return x_min, top, right - x_min, bottom - top


def _format_point(place: tuple[float, float]) -> str:
    return f"{place[0]:.0f} {place[1]:.0f}"


def _node_element(box: _Box, kind: str, words: str, href: Href) -> str:
    left_edge, top = box.x - box.width / 2, box.y - box.height / 2
    first = box.y - _LINE * (len(box.lines) - 1) / 2 + 4
    lines = "".join(
        f'<text x="{box.x:.0f}" y="{first + _LINE * n:.0f}">{safe(line)}</text>'
        for n, line in enumerate(box.lines)
    )
    drawn = (
        f"<title>{safe(collapse_whitespace(words))}</title>"
        f'<rect x="{left_edge:.0f}" y="{top:.0f}" rx="7"'
        f' width="{box.width:.0f}" height="{box.height:.0f}"/>{lines}'
    )
    if box.key.startswith(("urn:", "http://", "https://")):
        return f'<a class="node {kind}" href="{safe(href(box.key))}">{drawn}</a>'
    return f'<g class="node value">{drawn}</g>'
