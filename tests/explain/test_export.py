"""Exports: what is written reads back as what was recorded."""

from __future__ import annotations

import json
import warnings
from xml.etree import ElementTree

import pytest
from prov.model import ProvDocument
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse
from rdflib import Graph
from rdflib.compare import isomorphic

from tests.corpora import made
from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.classic import classic
from tgraph.explain.export import FORMATS, serialise

TEXT = "Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie in Paris.\n"
EVIL = 'A label with "quotes" <b>&amp; a | pipe\\ and a\nline'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("export")
    with made(folder, {"curie.md": TEXT}, scripted=True) as (kg, _):
        kg.ask(f"What did Marie Curie discover? {EVIL}")
        yield kg


def quads(graph, format: str, **options: object):
    return set(parse(graph.export("last", format, **options), FORMATS[format]))


def test_trig_and_nquads_say_the_same(graph):
    assert quads(graph, "trig") == quads(graph, "nquads")


def test_turtle_has_the_triples_of_all_graphs(graph):
    triples = {quad.triple for quad in quads(graph, "turtle")}
    assert triples == {quad.triple for quad in quads(graph, "nquads")}


@pytest.mark.parametrize("format", ["json-ld", "rdf-xml"])
def test_formats_without_triple_terms_have_the_classic_view(graph, format):
    expected = {quad.triple for quad in classic(quads(graph, "nquads"))}
    assert {quad.triple for quad in quads(graph, format)} == expected


def test_rdflib_reads_the_classic_view(graph):
    ours = Graph().parse(data=graph.export("last", "turtle", classic=True), format="turtle")
    theirs = Graph().parse(data=graph.export("last", "rdf-xml"), format="xml")
    assert len(ours) > 100
    assert isomorphic(ours, theirs)
    linked = json.loads(graph.export("last", "json-ld"))
    nodes = linked["@graph"] if isinstance(linked, dict) else linked
    subjects = {node["@id"] for node in nodes}
    assert subjects == {str(subject) for subject in ours.subjects()}


def read_prov(data: bytes, name: str) -> ProvDocument:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = ProvDocument.deserialize(content=data.decode(), format=name)
    assert isinstance(document, ProvDocument)
    return document


def test_the_formats_of_prov_say_the_same(graph):
    by_json = read_prov(graph.export("last", "prov-json"), "json")
    by_xml = read_prov(graph.export("last", "prov-xml"), "xml")
    kinds = [len(list(document.get_records())) for document in (by_json, by_xml)]
    assert kinds[0] == kinds[1] > 100
    assert by_json.get_provn().splitlines()[-1] == "endDocument"
    text = graph.export("last", "prov-n").decode()
    assert text.startswith("document")
    assert "wasDerivedFrom(" in text


def test_characters_that_xml_lacks_are_replaced_and_nothing_else_is(graph):
    said = [
        Literal("a\x1b[31mb\x00\uffff"),
        Literal("tab\t, line\n, \u202e, \U0001f427"),
        Literal("caf\x0be", language="fr"),
        Literal("2020", datatype=v.xsd("gYear")),
    ]
    subject, predicate = NamedNode("urn:s"), NamedNode("http://example.org/p")
    quads_ = [Quad(subject, predicate, value) for value in said]
    read = [q.object for q in parse(serialise(quads_, "rdf-xml"), RdfFormat.RDF_XML)]
    replaced = Literal("a\ufffd[31mb\ufffd\ufffd"), Literal("caf\ufffde", language="fr")
    assert read == [replaced[0], said[1], replaced[1], said[3]]
    entity = Quad(subject, v.RDF_TYPE, v.prov("Entity"))
    label = Quad(subject, v.RDFS_LABEL, said[0])
    for format in ("prov-xml", "svg"):
        ElementTree.fromstring(serialise([entity, label], format))


def test_pictures_are_well_formed_whatever_the_labels(graph):
    svg = ElementTree.fromstring(graph.export("last", "svg"))
    assert svg.tag.endswith("svg")
    titles = [t.text or "" for t in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert any(v.answer_iri("") in title for title in titles)
    dot = graph.export("last", "dot").decode()
    assert dot.startswith("digraph record {")
    assert dot.rstrip().endswith("}")


@pytest.mark.parametrize("format", ["prov-n", "prov-json", "prov-xml"])
def test_trustgraphs_stages_are_written_in_the_formats_of_prov(graph, format):
    written = graph.export("last", format, vocabulary="trustgraph").decode()
    assert "exploration" in written
    assert "wasDerivedFrom" in written


def test_trustgraph_finds_its_own_stages(graph):
    found = set(parse(graph.export("last", "nquads", vocabulary="trustgraph"), RdfFormat.N_QUADS))
    kinds = {q.object.value for q in found if q.predicate == v.RDF_TYPE}
    for stage in ("Question", "Grounding", "Exploration", "Focus", "Synthesis", "EdgeSelection"):
        assert f"{v.TG}{stage}" in kinds
    edges = [q for q in found if q.predicate == v.tg("edge")]
    assert edges
    assert all(isinstance(q.object, Triple) for q in edges)
    (focus,) = {q.subject for q in found if q.object == NamedNode(f"{v.TG}Focus")}
    chosen = {q.object for q in found if q.subject == focus and q.predicate == v.tg("selectedEdge")}
    assert chosen == {q.subject for q in edges}
    links = {(q.subject, q.object) for q in found if q.predicate == v.prov("wasDerivedFrom")}
    assert len(links) == 4


def test_what_there_is_not_is_wrong_usage(graph):
    with pytest.raises(UsageError, match="csv"):
        graph.export("last", "csv")
    with pytest.raises(UsageError, match="vocabulary"):
        graph.export("last", "trig", vocabulary="theirs")
    assert json.loads(graph.export("last", "prov-json"))
