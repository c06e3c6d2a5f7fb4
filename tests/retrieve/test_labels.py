"""Labels, ids and the way back: two different edges never share an id."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from tgraph.model import Edge
from tgraph.retrieve.labels import edge_id, get_labelgraph

LABELS = st.sampled_from(
    ["a", "a|b", "b", "|", "line\nbreak", "\u202eright to left", "שלום", '"', ""]
)
NODES = st.integers(0, 5).map(lambda number: NamedNode(f"urn:trustgraph:entity:{number}"))
TERMS = st.one_of(NODES, LABELS.map(Literal), LABELS.map(lambda text: Literal(text, language="en")))


@st.composite
def edges(draw: st.DrawFn) -> Edge:
    term = draw(TERMS)
    label = term.value if isinstance(term, Literal) else draw(LABELS)
    return Edge(draw(NODES), draw(NODES), term, draw(LABELS), draw(LABELS), label)


@given(st.lists(edges(), max_size=12, unique_by=lambda edge: edge.iri))
def test_ids_are_unique_and_lead_back(found):
    graph = get_labelgraph(found)
    assert len(set(graph.ids)) == len(found)
    for identity, edge in zip(graph.ids, found, strict=True):
        assert graph.uri_map[identity] == (edge.subject, edge.predicate, edge.object)
        assert graph.edge_map[identity] == edge


def test_an_id_alone_is_the_digest_of_the_labels():
    node = NamedNode("urn:trustgraph:entity:x")
    edge = Edge(node, node, Literal("y"), "s", "p", "y")
    assert edge_id("s", "p", "y") in get_labelgraph([edge]).ids[0]
