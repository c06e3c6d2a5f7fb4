"""The counts of a catalogue after a change are those of a fresh count."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from tests.support.examples import examples
from tgraph import vocabulary as v
from tgraph.index import catalogue, catalogue_changes
from tgraph.index.catalogue import CatalogueCounts, count_knowledge, make_catalogue
from tgraph.index.catalogue_changes import revise_counts
from tgraph.store.base import text_of
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import edge_of, reifier_quad

FEW_VALUES = 2


def node(name: str) -> NamedNode:
    return NamedNode(f"http://example.org/{name}")


THINGS = [node(f"thing{number}") for number in range(4)]
CLASSES = [node("City"), node("Ship"), NamedNode(v.type_iri("thing"))]
SAID = NamedNode(v.relation_iri("said"))
PROPERTIES = [node("size"), node("near"), SAID]
LITERALS = [
    Literal("1", datatype=v.xsd("integer")),
    Literal("2", datatype=v.xsd("integer")),
    Literal("many", datatype=v.xsd("integer")),
    Literal("1901", datatype=v.xsd("gYear")),
    Literal("blue"),
    Literal("bleu", language="fr"),
    Literal("long " * 20),
]
NAMES = [Literal(name) for name in ("Pump One", "Pump Two", "pump Three", "Oslo", "P1 Two")]

_things = st.sampled_from(THINGS)
_declared = st.sampled_from(
    [Quad(one, v.RDF_TYPE, v.tg("EntityType"), v.KNOWLEDGE_GRAPH) for one in CLASSES]
    + [Quad(one, v.RDF_TYPE, v.tg("Relation"), v.KNOWLEDGE_GRAPH) for one in PROPERTIES]
)
_knowledge = st.just(v.KNOWLEDGE_GRAPH)
_facts = st.one_of(
    st.builds(Quad, _things, st.just(v.RDF_TYPE), st.sampled_from(CLASSES), _knowledge),
    st.builds(Quad, _things, st.just(v.RDFS_LABEL), st.sampled_from(NAMES), _knowledge),
    st.builds(
        Quad, _things, st.sampled_from(PROPERTIES), st.sampled_from(LITERALS + THINGS), _knowledge
    ),
)


def cell_quads(document: str, row: int, stated: Quad) -> list[Quad]:
    """Return the cell of a table that states what knowledge does, and its statement."""
    chunk, edge = NamedNode(f"{v.URN}chunk:{document}:0"), edge_of(stated.triple)
    evidence = NamedNode(f"{v.URN}evidence:{document}-{row}-{edge[-8:]}")
    whole, accession = document_node(document), NamedNode(f"{v.URN}accession:{document}")
    pairs = (
        (chunk, v.RDF_TYPE, v.tg("Chunk")),
        (chunk, v.prov("wasDerivedFrom"), whole),
        (accession, v.prov("specializationOf"), whole),
        (evidence, v.CSVW_ROWNUM, Literal(row)),
        (evidence, v.tg("tableColumn"), Literal(PROPERTIES.index(stated.predicate))),
        (evidence, v.tg("name"), Literal(stated.predicate.value[-4:])),
        (evidence, v.tg("edge"), NamedNode(edge)),
        (evidence, v.tg("charOffset"), Literal(row * 10)),
        (evidence, v.prov("wasDerivedFrom"), chunk),
    )
    quads = [Quad(s, p, o, v.SOURCE_GRAPH) for s, p, o in pairs]
    return [*quads, reifier_quad(edge, stated.triple), stated]


def document_node(document: str) -> NamedNode:
    return NamedNode(v.document_iri(document))


def ended_quad(document: str) -> list[Quad]:
    accession = NamedNode(f"{v.URN}accession:{document}")
    return [Quad(accession, v.prov("invalidatedAtTime"), Literal("now"), v.SOURCE_GRAPH)]


_documents = st.sampled_from("ab")
_stated = st.builds(
    Quad, _things, st.sampled_from(PROPERTIES), st.sampled_from(LITERALS), _knowledge
)
_steps = st.lists(
    st.one_of(
        _declared.map(lambda quad: [quad]),
        st.lists(_facts, min_size=1, max_size=4),
        st.builds(cell_quads, _documents, st.integers(0, 2), _stated),
        _documents.map(ended_quad),
    ),
    min_size=1,
    max_size=4,
).map(lambda groups: [quad for group in groups for quad in group])


@pytest.fixture(autouse=True)
def few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MOST_VALUES", FEW_VALUES)
    monkeypatch.setattr(catalogue_changes, "MOST_VALUES", FEW_VALUES)


@settings(max_examples=examples(60))
@given(st.lists(_steps, min_size=2, max_size=6))
def test_any_history_counts_what_a_fresh_count_does(history: list[list[Quad]]) -> None:
    """Each step adds what isn't there, and takes away what of knowledge is."""
    quads = [Quad(one, v.RDF_TYPE, v.tg("EntityType"), v.KNOWLEDGE_GRAPH) for one in CLASSES]
    quads += [Quad(one, v.RDF_TYPE, v.tg("Relation"), v.KNOWLEDGE_GRAPH) for one in PROPERTIES]
    store = OxigraphStore.memory(quads)
    counts = count_knowledge(store)
    for step in history:
        cells = {quad for quad in step if quad.graph_name == v.SOURCE_GRAPH}
        changed = [quad for quad in step if quad not in cells or not store.has_quad(quad)]
        for quad in changed:
            (store.remove if store.has_quad(quad) else store.extend)([quad])
        edges = [text_of(quad.object) for quad in cells if quad.predicate == v.tg("edge")]
        revised = revise_counts(counts, store, changed, edges)
        assert revised is not None
        fresh = count_knowledge(store)
        assert parts_of(revised) == parts_of(fresh)
        assert make_catalogue(store, revised) == make_catalogue(store, fresh)
        counts = revised


def parts_of(counts: CatalogueCounts) -> dict[str, object]:
    parts = {name: getattr(counts, name) for name in ("members", "domains", "kinds", "namesakes")}
    return parts | {"values": counts.values, "tables": set(counts.tables)}
