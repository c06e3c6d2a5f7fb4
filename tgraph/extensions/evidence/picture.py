"""Answer pictures: nodes cited by answer sentences, with their derivation.

Nodes not selected, or selected and not cited, are left out, because a picture of everything
shows nothing. Nothing cited is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.render.svg import STYLE
from tgraph.explain.trace.bundle_reader import SELECTIONS, iri_numbers, kind_of
from tgraph.rendering import collapse_whitespace, escape_controls, shorten_text

DERIVED, GENERATED, USED = "wasDerivedFrom", "wasGeneratedBy", "used"
ASSOCIATED, INFORMED, CITED = "wasAssociatedWith", "wasInformedBy", "citation"

_RELATIONS = {
    **{v.prov(name): name for name in (DERIVED, GENERATED, USED, ASSOCIATED, INFORMED)},
    v.tg("sentence"): "sentence",
}
_LEFT_OUT = frozenset(
    map(v.tg, ("Candidate", "Call", "Parameter", "Dropped", "EntityMatch", "Citation", "Prompt"))
)
_FOLLOWED = (*map(v.prov, (GENERATED, ASSOCIATED, INFORMED)), *map(v.tg, ("sentence", "citation")))
_WIDE = frozenset(
    v.tg(name)
    for name in (
        *("Selection", "EdgeSelection", "ItemSelection", "Point"),
        *("CommunityReport", "ReportRecord", "DescriptionSummary", "SummaryRecord"),
    )
)
"""What derives from more than a sentence cites: the citations lead on from there."""
_SHAPES = {v.prov(shape.capitalize()): shape for shape in ("activity", "entity", "agent")}
_LABELS = (v.tg("text"), v.tg("quote"), v.dcterms("title"), v.RDFS_LABEL, v.tg("reasoning"))

StatedProperties = Mapping[str, Mapping[NamedNode, Sequence[object]]]
NameFunction = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class PictureNode:
    """A resource of the picture; ``shape`` is entity, activity or agent."""

    iri: str
    shape: str
    kind: str
    label: str


Arrow = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of nodes, and of named arrows between node positions.

    ``chains`` lists, for each citation in sentence order, positions of entities leading from
    the sentence (first position) to the document; a sentence without citations has its own
    chain."""

    nodes: tuple[PictureNode, ...]
    arrows: tuple[Arrow, ...]
    chains: tuple[tuple[int, ...], ...] = ()


def build_picture(quads: Iterable[Quad], name: NameFunction = lambda iri: "") -> Picture:
    """Return a picture of a session's answer derivation, or of its complete record without an
    answer.

    ``name`` provides labels missing from the record, such as community report titles."""
    statements: dict[str, dict[NamedNode, list[object]]] = {}
    for quad in quads:
        if isinstance(quad.subject, NamedNode):
            values = statements.setdefault(quad.subject.value, {})
            values.setdefault(quad.predicate, []).append(quad.object)
    answers = [
        iri
        for iri, properties in statements.items()
        if v.tg("Answer") in properties.get(v.RDF_TYPE, ())
    ]
    shown_iris = sorted(
        _reachable_nodes(statements, answers, _next_nodes) if answers else statements,
        key=lambda i: (iri_numbers(i), i),
    )
    nodes = [node for iri in shown_iris if (node := _make_node(iri, statements, name)) is not None]
    places = {node.iri: place for place, node in enumerate(nodes)}
    chains = [chain for answer in answers for chain in _citation_chains(statements, answer, places)]
    arrows = {
        (places[iri], places[target], relation): None
        for iri in places
        for property, relation in _RELATIONS.items()
        for target in _linked_nodes(statements, iri, property)
        if target in places
    }
    for chain in chains:
        arrows |= dict.fromkeys(_direct_citations(chain, arrows))
    return Picture(tuple(nodes), tuple(sorted(arrows)), tuple(chains))


def _linked_nodes(said: StatedProperties, iri: str, property: NamedNode) -> list[str]:
    return [t.value for t in said[iri].get(property, ()) if isinstance(t, NamedNode)]


def _reachable_nodes(
    said: StatedProperties,
    starts: Iterable[str],
    onward: Callable[[StatedProperties, str], Iterable[str]],
) -> set[str]:
    """Return start nodes and all nodes reachable from them."""
    reached: set[str] = set()
    queue = list(starts)
    while queue:
        iri = queue.pop()
        if iri in said and iri not in reached:
            reached.add(iri)
            queue += onward(said, iri)
    return reached


def _next_nodes(said: StatedProperties, iri: str) -> Iterator[str]:
    """Yield neighbours to visit from a node, excluding members of collections."""
    types = set(said[iri].get(v.RDF_TYPE, ()))
    for relation in _FOLLOWED:
        if relation != v.tg("sentence") or v.tg("Answer") in types:
            yield from _linked_nodes(said, iri, relation)
    if v.tg("Selection") in types:
        origins = _linked_nodes(said, iri, v.prov(DERIVED))
        yield from (origin for origin in origins if origin.startswith(v.retrieval_iri("")))
    yield from _origin_nodes(said, iri)


def _origin_nodes(said: StatedProperties, iri: str) -> Iterator[str]:
    """Yield origins of a node, unless they exceed its cited content by far, and its point."""
    if kind_of(iri) != "finding" and _WIDE.isdisjoint(said[iri].get(v.RDF_TYPE, ())):
        yield from _linked_nodes(said, iri, v.prov(DERIVED))
    yield from (item for item in _linked_nodes(said, iri, v.tg("item")) if kind_of(item) == "point")


def _citation_chains(
    said: StatedProperties, answer: str, places: Mapping[str, int]
) -> Iterator[tuple[int, ...]]:
    """Yield entity positions for each citation, in sentence order."""
    for sentence in sorted(_linked_nodes(said, answer, v.tg("sentence")), key=iri_numbers):
        if sentence not in places:
            continue
        citations = sorted(_linked_nodes(said, sentence, v.tg("citation")), key=iri_numbers)
        starts = [_linked_nodes(said, c, v.prov(DERIVED)) for c in citations if c in said]
        for start in starts or [_linked_nodes(said, sentence, v.prov(DERIVED))]:
            reachable = _reachable_nodes(said, start, _origin_nodes)
            yield (places[sentence], *sorted(places[i] for i in reachable if i in places))


def _direct_citations(chain: Sequence[int], arrows: Iterable[Arrow]) -> Iterator[Arrow]:
    """Yield citation arrows from a sentence to chain nodes without other incoming arrows."""
    inside = set(chain)
    met = {
        target
        for source, target, name in arrows
        if source in inside and target in inside and name == DERIVED and source != target
    }
    yield from ((chain[0], place, CITED) for place in chain[1:] if place not in met)


def _make_node(iri: str, said: StatedProperties, name: NameFunction) -> PictureNode | None:
    types = [t for t in said[iri].get(v.RDF_TYPE, ()) if isinstance(t, NamedNode)]
    shape = next((_SHAPES[t] for t in types if t in _SHAPES), "")
    if not shape or _LEFT_OUT.intersection(types):
        return None
    type_names = sorted(t.value.removeprefix(v.TG) for t in types if t.value.startswith(v.TG))
    if not type_names and kind_of(iri) != "finding":
        return None
    return PictureNode(
        iri,
        shape,
        type_names[0] if type_names else "Finding",
        collapse_whitespace(_node_label(iri, said, name)),
    )


def _node_label(iri: str, said: StatedProperties, name: NameFunction) -> str:
    """Return a node's label or text; a selection is labelled by its selected item."""
    for relation in (v.tg("edge"), v.tg("item")):
        for item_iri in _linked_nodes(said, iri, relation):
            if iri.startswith(SELECTIONS) and (
                label := _node_text(said, item_iri) or name(item_iri)
            ):
                return label
    if kind_of(iri) == "chunk":
        return name(iri) or _node_text(said, iri)
    return _node_text(said, iri) or name(iri)


def _node_text(said: StatedProperties, iri: str) -> str:
    properties = said.get(iri, {})
    texts = (t.value for p in _LABELS for t in properties.get(p, ()) if isinstance(t, Literal))
    return next(texts, "")


# --- Graphviz ---

_LETTERS = 40


def to_dot(drawn: Picture) -> bytes:
    """Return the picture in Graphviz DOT, with unique nodes linking to their IRIs, drawn from
    left to right so that large pictures grow downwards."""
    shapes = {"entity": "ellipse", "activity": "box", "agent": "house"}
    lines = ["digraph record {", "  rankdir=LR;", "  node [style=filled, fontname=Helvetica];"]
    for place, node in enumerate(drawn.nodes):
        fill, line = STYLE[node.shape]
        label = _quote_dot(f"{node.kind}\n{shorten_text(node.label, _LETTERS)}".strip())
        lines.append(
            f"  n{place} [shape={shapes[node.shape]}, fillcolor={_quote_dot(fill)},"
            f" color={_quote_dot(line)}, label={label}, URL={_quote_dot(node.iri)}];"
        )
    for source, target, name in drawn.arrows:
        lines.append(f"  n{source} -> n{target} [label={_quote_dot(name)}, fontsize=8];")
    return ("\n".join([*lines, "}"]) + "\n").encode()


def _quote_dot(text: str) -> str:
    escaped = escape_controls(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
