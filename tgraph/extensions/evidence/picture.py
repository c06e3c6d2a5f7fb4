"""What a picture of an answer shows: what its sentences cite, and how that came about.

What was seen and not selected, or selected and not cited, is left out, for a picture of everything
shows nothing. Nothing that is cited is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.render.svg import STYLE
from tgraph.explain.trace.bundle_reader import SELECTIONS, kind_of, numbers
from tgraph.rendering import flat, safe, shortened

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

Said = Mapping[str, Mapping[NamedNode, Sequence[object]]]
Name = Callable[[str], str]


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
    """Nodes, and arrows between them by position with the name of the relation.

    ``chains`` has for each citation, sentence by sentence, the positions of the entities that lead
    from the sentence, which is the first, to the document; a sentence without one has its own.
    """

    nodes: tuple[PictureNode, ...]
    arrows: tuple[Arrow, ...]
    chains: tuple[tuple[int, ...], ...] = ()


def picture(quads: Iterable[Quad], name: Name = lambda iri: "") -> Picture:
    """What a session's record shows of how its answer came about; all of it where there is no
    answer. ``name`` tells what a thing is called of which the record does not say it, such as a
    community report."""
    said: dict[str, dict[NamedNode, list[object]]] = {}
    for quad in quads:
        if isinstance(quad.subject, NamedNode):
            values = said.setdefault(quad.subject.value, {})
            values.setdefault(quad.predicate, []).append(quad.object)
    answers = [iri for iri, about in said.items() if v.tg("Answer") in about.get(v.RDF_TYPE, ())]
    shown = sorted(
        _reached(said, answers, _next) if answers else said, key=lambda i: (numbers(i), i)
    )
    nodes = [node for iri in shown if (node := _node(iri, said, name)) is not None]
    places = {node.iri: place for place, node in enumerate(nodes)}
    chains = [chain for answer in answers for chain in _chains(said, answer, places)]
    arrows = {
        (places[iri], places[target], relation): None
        for iri in places
        for property, relation in _RELATIONS.items()
        for target in _nodes(said, iri, property)
        if target in places
    }
    for chain in chains:
        arrows |= dict.fromkeys(_loose(chain, arrows))
    return Picture(tuple(nodes), tuple(sorted(arrows)), tuple(chains))


def _nodes(said: Said, iri: str, property: NamedNode) -> list[str]:
    return [t.value for t in said[iri].get(property, ()) if isinstance(t, NamedNode)]


def _reached(
    said: Said, starts: Iterable[str], onward: Callable[[Said, str], Iterable[str]]
) -> set[str]:
    """The starts, and what lies onward of them."""
    reached: set[str] = set()
    queue = list(starts)
    while queue:
        iri = queue.pop()
        if iri in said and iri not in reached:
            reached.add(iri)
            queue += onward(said, iri)
    return reached


def _next(said: Said, iri: str) -> Iterator[str]:
    """Where to go on from a node: not from a collection to all that it holds."""
    types = set(said[iri].get(v.RDF_TYPE, ()))
    for relation in _FOLLOWED:
        if relation != v.tg("sentence") or v.tg("Answer") in types:
            yield from _nodes(said, iri, relation)
    if v.tg("Selection") in types:
        origins = _nodes(said, iri, v.prov(DERIVED))
        yield from (origin for origin in origins if origin.startswith(v.retrieval_iri("")))
    yield from _origins(said, iri)


def _origins(said: Said, iri: str) -> Iterator[str]:
    """What a node came from, unless that is far more than is cited of it; and its point."""
    if kind_of(iri) != "finding" and _WIDE.isdisjoint(said[iri].get(v.RDF_TYPE, ())):
        yield from _nodes(said, iri, v.prov(DERIVED))
    yield from (item for item in _nodes(said, iri, v.tg("item")) if kind_of(item) == "point")


def _chains(said: Said, answer: str, places: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """The entities of each citation of the answer's sentences, sentence by sentence."""
    for sentence in sorted(_nodes(said, answer, v.tg("sentence")), key=numbers):
        if sentence not in places:
            continue
        citations = sorted(_nodes(said, sentence, v.tg("citation")), key=numbers)
        starts = [_nodes(said, c, v.prov(DERIVED)) for c in citations if c in said]
        for start in starts or [_nodes(said, sentence, v.prov(DERIVED))]:
            found = _reached(said, start, _origins)
            yield (places[sentence], *sorted(places[i] for i in found if i in places))


def _loose(chain: Sequence[int], arrows: Iterable[Arrow]) -> Iterator[Arrow]:
    """What a sentence cites, and nothing else of the chain leads to."""
    inside = set(chain)
    met = {
        target
        for source, target, name in arrows
        if source in inside and target in inside and name == DERIVED and source != target
    }
    yield from ((chain[0], place, CITED) for place in chain[1:] if place not in met)


def _node(iri: str, said: Said, name: Name) -> PictureNode | None:
    types = [t for t in said[iri].get(v.RDF_TYPE, ()) if isinstance(t, NamedNode)]
    shape = next((_SHAPES[t] for t in types if t in _SHAPES), "")
    if not shape or _LEFT_OUT.intersection(types):
        return None
    own = sorted(t.value.removeprefix(v.TG) for t in types if t.value.startswith(v.TG))
    if not own and kind_of(iri) != "finding":
        return None
    return PictureNode(iri, shape, own[0] if own else "Finding", flat(_label(iri, said, name)))


def _label(iri: str, said: Said, name: Name) -> str:
    """What the thing says or is called; a selection is called by what was selected."""
    for relation in (v.tg("edge"), v.tg("item")):
        for about in _nodes(said, iri, relation):
            if iri.startswith(SELECTIONS) and (known := _text(said, about) or name(about)):
                return known
    if kind_of(iri) == "chunk":
        return name(iri) or _text(said, iri)
    return _text(said, iri) or name(iri)


def _text(said: Said, iri: str) -> str:
    about = said.get(iri, {})
    texts = (t.value for p in _LABELS for t in about.get(p, ()) if isinstance(t, Literal))
    return next(texts, "")


# --- Graphviz ---

_LETTERS = 40


def to_dot(drawn: Picture) -> bytes:
    """The picture for Graphviz, each resource once, from left to right, so that it grows downwards
    and not sideways; its nodes link to their IRIs."""
    shapes = {"entity": "ellipse", "activity": "box", "agent": "house"}
    lines = ["digraph record {", "  rankdir=LR;", "  node [style=filled, fontname=Helvetica];"]
    for place, node in enumerate(drawn.nodes):
        fill, line = STYLE[node.shape]
        label = _quoted(f"{node.kind}\n{shortened(node.label, _LETTERS)}".strip())
        lines.append(
            f"  n{place} [shape={shapes[node.shape]}, fillcolor={_quoted(fill)},"
            f" color={_quoted(line)}, label={label}, URL={_quoted(node.iri)}];"
        )
    for source, target, name in drawn.arrows:
        lines.append(f"  n{source} -> n{target} [label={_quoted(name)}, fontsize=8];")
    return ("\n".join([*lines, "}"]) + "\n").encode()


def _quoted(text: str) -> str:
    escaped = safe(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
