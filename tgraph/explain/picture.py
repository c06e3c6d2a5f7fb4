"""The derivation of an answer as a picture, in the visual grammar of PROV (W3C, 2013).

Entities are ellipses, activities rectangles and agents houses; an arrow leads from what came about
to what it came from. The picture shows what the answer's sentences cite and how they came to it;
what was not selected or not cited is left out, for a picture of everything shows nothing.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v

_RELATIONS = {
    v.prov("wasDerivedFrom"): "wasDerivedFrom",
    v.prov("wasGeneratedBy"): "wasGeneratedBy",
    v.prov("used"): "used",
    v.prov("wasAssociatedWith"): "wasAssociatedWith",
    v.prov("wasInformedBy"): "wasInformedBy",
    v.tg("sentence"): "sentence",
}
_LEFT_OUT = frozenset(
    v.tg(name)
    for name in ("Candidate", "Call", "Parameter", "Dropped", "EntityMatch", "Citation", "Prompt")
)
_FOLLOWED = (
    v.prov("wasGeneratedBy"),
    v.prov("wasAssociatedWith"),
    v.prov("wasInformedBy"),
    v.tg("sentence"),
    v.tg("citation"),
)
_WIDE = frozenset(
    v.tg(name)
    for name in ("Selection", "EdgeSelection", "ItemSelection", "CommunityReport", "ReportRecord")
)
"""What derives from more than a sentence cites: the citations lead on from there."""

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _LETTERS = 190, 44, 24, 56, 30
_STYLE = {
    "entity": ("#fffc87", "#808080"),
    "activity": ("#9fb1fc", "#0000ff"),
    "agent": ("#fed37f", "#b77b00"),
}


Said = Mapping[str, Mapping[NamedNode, Sequence[object]]]


@dataclass(frozen=True, slots=True)
class Node:
    """A resource of the picture; ``shape`` is entity, activity or agent."""

    iri: str
    shape: str
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes, and arrows between them by position with the name of the relation."""

    nodes: tuple[Node, ...]
    arrows: tuple[tuple[int, int, str], ...]


def picture(quads: Iterable[Quad]) -> Picture:
    """What a session's record shows of how its answer came about."""
    said: dict[str, dict[NamedNode, list[object]]] = {}
    for quad in quads:
        if isinstance(quad.subject, NamedNode):
            values = said.setdefault(quad.subject.value, {})
            values.setdefault(quad.predicate, []).append(quad.object)
    shown = sorted(_behind_the_answer(said))
    nodes = [node for iri in shown if (node := _node(iri, said[iri])) is not None]
    places = {node.iri: place for place, node in enumerate(nodes)}
    arrows = {
        (places[iri], places[target.value], name): None
        for iri in places
        for relation, name in _RELATIONS.items()
        for target in said[iri].get(relation, ())
        if isinstance(target, NamedNode) and target.value in places
    }
    return Picture(tuple(nodes), tuple(sorted(arrows)))


def _behind_the_answer(said: Said) -> set[str]:
    """What an answer came from; everything where there is no answer."""
    answers = [iri for iri, about in said.items() if v.tg("Answer") in about.get(v.RDF_TYPE, ())]
    reached: set[str] = set()
    queue = answers
    while queue:
        iri = queue.pop()
        if iri in said and iri not in reached:
            reached.add(iri)
            queue += [term.value for term in _next(said, iri) if isinstance(term, NamedNode)]
    return reached or set(said)


def _next(said: Said, iri: str) -> Iterator[object]:
    """Where to go on from a node: not from a collection to all that it holds."""
    about = said[iri]
    types = set(about.get(v.RDF_TYPE, ()))
    for relation in _FOLLOWED:
        yield from about.get(relation, ())
    if v.tg("Citation") in types or types.isdisjoint(_WIDE):
        yield from about.get(v.prov("wasDerivedFrom"), ())
    elif v.tg("Selection") in types:
        for origin in about.get(v.prov("wasDerivedFrom"), ()):
            if isinstance(origin, NamedNode) and origin.value.startswith(v.retrieval_iri("")):
                yield origin


def _node(iri: str, about: Mapping[NamedNode, Sequence[object]]) -> Node | None:
    types = [t for t in about.get(v.RDF_TYPE, ()) if isinstance(t, NamedNode)]
    shapes = {
        v.prov("Activity"): "activity",
        v.prov("Entity"): "entity",
        v.prov("Agent"): "agent",
    }
    shape = next((shapes[t] for t in types if t in shapes), "")
    own = sorted(t.value.removeprefix(v.TG) for t in types if t.value.startswith(v.TG))
    if not shape or not own or _LEFT_OUT.intersection(types):
        return None
    labels = [v.RDFS_LABEL, v.tg("text"), v.tg("reasoning"), v.tg("quote"), v.dcterms("title")]
    texts = (t.value for p in labels for t in about.get(p, ()) if isinstance(t, Literal))
    return Node(iri, shape, own[0], " ".join(next(texts, "").split()))


# --- Graphviz -----------------------------------------------------------------------------------


def to_dot(drawn: Picture) -> bytes:
    """The picture for Graphviz; its nodes link to their IRIs."""
    shapes = {"entity": "ellipse", "activity": "box", "agent": "house"}
    lines = ["digraph record {", "  rankdir=BT;", "  node [style=filled, fontname=Helvetica];"]
    for place, node in enumerate(drawn.nodes):
        fill, line = _STYLE[node.shape]
        label = _quoted(f"{node.kind}\n{_short(node.label)}".strip())
        lines.append(
            f"  n{place} [shape={shapes[node.shape]}, fillcolor={_quoted(fill)},"
            f" color={_quoted(line)}, label={label}, URL={_quoted(node.iri)}];"
        )
    for source, target, name in drawn.arrows:
        lines.append(f"  n{source} -> n{target} [label={_quoted(name)}, fontsize=8];")
    return ("\n".join([*lines, "}"]) + "\n").encode()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1].rstrip() + "…"


# --- SVG ----------------------------------------------------------------------------------------


def to_svg(drawn: Picture) -> bytes:
    """The picture itself: layers by Sugiyama's method, what came last at the top."""
    places, width, height = _layout(drawn)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" font-family="Helvetica, Arial, sans-serif">',
        "<title>How the answer came about</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for source, target, name in drawn.arrows:
        (x, y), (to_x, to_y) = places[source], places[target]
        down = _HEIGHT / 2 if to_y > y else -_HEIGHT / 2
        parts.append(
            f'<path d="M{x:.0f} {y + down:.0f} L{to_x:.0f} {to_y - down:.0f}" stroke="#555"'
            f' fill="none" marker-end="url(#tip)"><title>{name}</title></path>'
        )
    parts += [_drawn(node, *places[place]) for place, node in enumerate(drawn.nodes)]
    return ("\n".join([*parts, "</svg>"]) + "\n").encode()


def _layout(drawn: Picture) -> tuple[list[tuple[float, float]], int, int]:
    import igraph

    if not drawn.nodes:
        return [], _WIDTH, _HEIGHT
    edges = [(source, target) for source, target, _ in drawn.arrows]
    graph = igraph.Graph(n=len(drawn.nodes), edges=edges, directed=True)
    found = graph.layout_sugiyama(hgap=_WIDTH + _GAP_X, vgap=_HEIGHT + _GAP_Y)
    rows = [(float(x), float(y)) for x, y in found.coords[: len(drawn.nodes)]]
    left, top = min(x for x, _ in rows), min(y for _, y in rows)
    places = [(x - left + _WIDTH / 2 + _GAP_X, y - top + _HEIGHT / 2 + _GAP_X) for x, y in rows]
    width = max(x for x, _ in places) + _WIDTH / 2 + _GAP_X
    height = max(y for _, y in places) + _HEIGHT / 2 + _GAP_X
    return places, round(width), round(height)


def _drawn(node: Node, x: float, y: float) -> str:
    fill, line = _STYLE[node.shape]
    half, tall = _WIDTH / 2, _HEIGHT / 2
    style = f'fill="{fill}" stroke="{line}"'
    if node.shape == "entity":
        shape = f'<ellipse cx="{x:.0f}" cy="{y:.0f}" rx="{half:.0f}" ry="{tall:.0f}" {style}/>'
    elif node.shape == "activity":
        corner = f'x="{x - half:.0f}" y="{y - tall:.0f}"'
        shape = f'<rect {corner} width="{_WIDTH}" height="{_HEIGHT}" {style}/>'
    else:
        points = [(-half, tall), (half, tall), (half, -tall / 3), (0, -tall), (-half, -tall / 3)]
        outline = " ".join(f"{x + dx:.0f},{y + dy:.0f}" for dx, dy in points)
        shape = f'<polygon points="{outline}" {style}/>'
    kind, label = (html.escape(text) for text in (node.kind, _short(node.label)))
    words = (
        f'<text x="{x:.0f}" y="{y - 3:.0f}" text-anchor="middle" font-size="11"'
        f' font-weight="bold">{kind}</text>'
        f'<text x="{x:.0f}" y="{y + 12:.0f}" text-anchor="middle" font-size="10">{label}</text>'
    )
    title = html.escape(f"{node.label}\n{node.iri}".strip())
    return f"<g><title>{title}</title>{shape}{words}</g>"
