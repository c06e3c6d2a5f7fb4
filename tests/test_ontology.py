"""Ontology and code agree: every term that is emitted is declared, and the reverse."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode
from rdflib import OWL, RDF, RDFS, SKOS, XSD, Graph, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

import tgraph
from tests.support.small_reader import small_reader
from tgraph.engine.components import Components
from tgraph.errors import ModelError
from tgraph.extensions.interchange import import_graph
from tgraph.extensions.lab import measure_influence
from tgraph.models.reader import OnnxReader
from tgraph.resources import list_names, read_text
from tgraph.retrieve.modes.registry import MODES
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock

TG = Namespace("https://trustgraph.ai/ns/")
PROV = Namespace("http://www.w3.org/ns/prov#")
OA = Namespace("http://www.w3.org/ns/oa#")
PACKAGE = Path(tgraph.__file__).parent
EARLIER = {str(TG.lds)}
"""Terms of records of earlier versions, read by another function than ``tg``."""
COMMENT = re.compile(r"#[^\n<>]*$", re.MULTILINE)
KINDS = (OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty)


@pytest.fixture(scope="module")
def ontology() -> Graph:
    return Graph().parse(data=read_text("ontology", "tgraph.ttl"), format="turtle")


@pytest.fixture(scope="module")
def declared(ontology) -> set[str]:
    return {str(s) for kind in KINDS for s in ontology.subjects(RDF.type, kind) if s in TG}


# --- what the code can emit ---


NAMED_AT = {"tg": 0, "step": 0, "Activity": 1, "activity": 1, "entity": 1, "state_entity": 2}
"""The functions that state a term by its name, and which argument that is."""


@cache
def in_code() -> frozenset[str]:
    """The terms of ``tg("...")``, and the kinds of steps, activities and entities."""
    modules = (ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py"))
    given = {
        constant.value
        for module in modules
        for node in ast.walk(module)
        for place in naming(node)
        for constant in ast.walk(place)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    }
    return frozenset(str(TG[term]) for term in given if term)


def naming(node: ast.AST) -> list[ast.expr]:
    """What in the node gives a term: an argument of a function of ``NAMED_AT``, or the class of
    activities that a retriever or selector has as its ``step``."""
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
        place = NAMED_AT.get(name)
        return [] if place is None else node.args[place : place + 1]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        return [node.value] if ast.unparse(node.targets[0]) == "step" else []
    return []


def in_queries() -> set[str]:
    queries = [read_text("sparql", name) for name in list_names("sparql") if name.endswith(".rq")]
    return {str(TG[term]) for text in queries for term in re.findall(r"\btg:(\w+)", _code(text))}


def _code(query: str) -> str:
    return COMMENT.sub("", query)


# --- what really stands in a store ---

TEXTS = {
    "radium.md": "# Radium\n\nMarie Curie discovered Polonium in Paris. M. Curie worked there.\n",
    "pages.html": "<h1>Becquerel</h1><p>Henri Becquerel taught Marie Curie in Paris.</p>",
}
GRAPH = """{"entities": [
  {"name": "Marie Curie", "type": "person", "description": "A physicist.", "aliases": ["M. Curie"]},
  {"name": "M. Curie", "type": "person", "description": "A chemist.", "aliases": []},
  {"name": "Polonium", "type": "element", "description": "", "aliases": []}],
 "relationships": [{"subject": "M. Curie", "predicate": "discovered", "object": "Polonium",
  "description": "She found it.", "keywords": ["element"], "strength": 9,
  "quote": "Marie Curie discovered Polonium in Paris."}], "attributes": [{"bad": 1}]}"""

PEOPLE = """@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
:lise a :Physicist ; :met :otto ; owl:sameAs :meitner . :meitner :born 1878 ."""

EMPTY = '{"entities": [], "relationships": [], "attributes": []}'


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[OxigraphStore]:
    """Documents taken in, revised and merged; questions answered, not answered and failed."""
    root, ids, clock = tmp_path_factory.mktemp("ontology"), count(), ticking_clock()
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    switches = {"claims.enabled": True, "global_search.dynamic": True}
    settings = load_settings(None, switches)
    model = ScriptedModel(
        {
            "extract_graph": lambda r: GRAPH if "Polonium" in str(r.messages) else EMPTY,
            "decompose_question": '{"steps": ["Who discovered Polonium?", "Where was #1 born?"]}',
        },
        clock=clock,
    )
    broken = ScriptedModel({"synthesise_answer": ModelError("The model is gone.")}, clock=clock)
    working, failing = (
        Components(settings, root / "cache", chat=chat, embedder=HashingEmbedder())
        for chat in (model, broken)
    )

    def opened(parts: Components) -> tgraph.KnowledgeGraph:
        return tgraph.open(
            root / "graph",
            create=True,
            parts=parts,
            settings=switches,
            clock=clock,
            uuid=lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
        )

    with opened(working) as kg:
        kg.index([root / name for name in TEXTS])
        (root / "radium.md").write_text(TEXTS["radium.md"] + "\nIrene Curie was born in Paris.\n")
        kg.index([root / "radium.md"])
        sessions = [kg.ask("What did Marie Curie discover?", mode).session for mode in MODES]
        kg.ask("Where was the woman who discovered Polonium born?", "ppr")
        kg.verify(sessions[0], lexical=True)
        measure_influence(kg, sessions[0])
        kg.entities.split("M. Curie", reason="It may be another.")
        kg.entities.rejoin("M. Curie", "Marie Curie", reason="It is not.")
        kg.entities.add_fact(
            "Marie Curie", "won", "Nobel Prize", description="Twice.", reason="She did."
        )
        kg.entities.edit("Marie Curie", not_aliases=["M. Curie"], reason="Nobody calls her so.")
        kg.entities.create("Paris", reason="It is lacking.")
        kg.entities.merge("Nobel Prize", "Polonium", reason="An example.")
        kg.entities.deny_fact("M. Curie", "discovered", "Polonium", reason="It was another.")
        kg.entities.delete("Paris", reason="An example.")
        for _ in range(3):
            kg.history.undo_curation("last", reason="An example.")
        kg.documents.set_authority("*.md", 0.9, reason="An example.")
        (root / "people.ttl").write_text(PEOPLE)
        import_graph(kg, [root / "people.ttl"])
        kg.ask("How many physicists met otto?", "sparql")
    reader = OnnxReader.of_folder(small_reader(root / "reader", {"Polonium": 5.0}))
    reading = Components(settings, root / "cache", embedder=HashingEmbedder(), reader=reader)
    with opened(reading) as kg:
        kg.ask("What did Marie Curie discover?", "graph")
        kg.ask("How many physicists met otto?", "sparql")
    with opened(failing) as kg:
        with pytest.raises(ModelError):
            kg.ask("What did Marie Curie discover?")
        found = kg.opened.read()
        assert isinstance(found, OxigraphStore)
        yield found


def in_data(store: OxigraphStore) -> set[str]:
    terms = {t for quad in store.match() for t in (quad.predicate, quad.object)}
    return {t.value for t in terms if isinstance(t, NamedNode) and t.value.startswith(str(TG))}


# --- both ways ---


@pytest.mark.slow
def test_every_term_that_is_emitted_or_asked_for_is_declared(declared, store):
    assert in_code() | in_queries() | in_data(store) <= declared


@pytest.mark.slow
def test_every_declared_term_is_emitted_or_asked_for(declared, store, ontology):
    """Or says what is written in its place."""
    others = {str(term) for term in ontology.subjects(SKOS.scopeNote)}
    assert declared - others - EARLIER <= in_code() | in_queries() | in_data(store)
    assert not others & (in_code() | in_queries() | in_data(store))


SPECIFICATION = {
    *("query", "edgeCount", "selectedEdge", "edge", "reasoning", "content", "document", "reifies"),
    *("pageCount", "mimeType", "pageNumber", "chunkIndex", "charOffset", "charLength"),
    *("chunkSize", "chunkOverlap", "componentVersion", "llmModel", "ontology", "embeddingModel"),
    *("sourceText", "sourceCharOffset", "sourceCharLength"),
}


def test_every_term_of_the_specification_is_declared(declared):
    assert {str(TG[term]) for term in SPECIFICATION} <= declared


# --- OWL 2 DL (W3C 2012, OWL 2 Structural Specification, 3 and 5.8; Mapping to RDF, 3) ---

RESERVED = tuple(map(str, (RDF, RDFS, OWL, XSD)))
BUILT_IN = {
    *(RDF.type, RDFS.label, RDFS.comment, RDFS.isDefinedBy, RDFS.seeAlso, OWL.versionInfo),
    *(RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range, OWL.disjointWith),
    *(OWL.unionOf, RDF.first, RDF.rest),
}
DATATYPES = {RDFS.Literal, XSD.string, XSD.integer, XSD.double, XSD.boolean, XSD.dateTime}
DECLARED_AS = (*KINDS, OWL.AnnotationProperty, OWL.Ontology)


def kinds_of(ontology: Graph) -> dict[Node, set[Node]]:
    found: dict[Node, set[Node]] = {}
    for subject, kind in ontology.subject_objects(RDF.type):
        found.setdefault(subject, set()).add(kind)
    return found


def test_every_name_is_declared_once_and_none_is_reserved(ontology):
    for subject, kinds in kinds_of(ontology).items():
        assert len(kinds) == 1, subject
        assert kinds <= set(DECLARED_AS), subject
        assert not str(subject).startswith(RESERVED), subject
    for term in {t for triple in ontology for t in triple if isinstance(t, URIRef) and t in TG}:
        assert term in kinds_of(ontology), term


def test_axioms_are_of_what_is_declared_for_them(ontology):
    kinds = kinds_of(ontology)

    def is_class(node: Node) -> bool:
        members = ontology.value(node, OWL.unionOf)
        if members is not None:
            parts = list(Collection(ontology, members))
            return len(parts) > 1 and all(map(is_class, parts))
        return isinstance(node, URIRef) and kinds.get(node) == {OWL.Class}

    for subject, path, value in ontology:
        if path in (RDFS.subClassOf, OWL.disjointWith):
            assert is_class(subject), (subject, path, value)
            assert is_class(value), (subject, path, value)
        elif path == RDFS.subPropertyOf:
            assert kinds[subject] == kinds[value], (subject, value)
        elif path == RDFS.domain:
            assert is_class(value), (subject, value)
        elif path == RDFS.range and kinds[subject] == {OWL.DatatypeProperty}:
            assert value in DATATYPES, (subject, value)
        elif path == RDFS.range:
            assert is_class(value), (subject, value)
        elif path not in BUILT_IN:
            assert kinds[path] == {OWL.AnnotationProperty}, path


KNOWLEDGE = {"Entity", "EntityType", "Relation", "Edge", "Claim", "Community", "OntologyFit"}
"""What knowledge speaks of, which is no record of anything that was done."""
VALUES = {"Parameter", "Dropped", "Metric"}
"""What is said of an activity in more than one value."""


def test_every_class_of_the_record_stands_under_prov_or_the_web_annotation_vocabulary(ontology):
    alone = {
        str(term).removeprefix(str(TG))
        for term in ontology.subjects(RDF.type, OWL.Class)
        if term in TG
        and not any(
            str(above).startswith((str(PROV), str(OA)))
            for above in ontology.transitive_objects(term, RDFS.subClassOf)
        )
    }
    assert alone == KNOWLEDGE | VALUES


@pytest.mark.slow
def test_the_record_of_a_small_corpus_holds_most_of_the_terms(declared, store, ontology):
    """So that what follows has something to check; the rest needs a PDF, a model that repairs, or
    an export in TrustGraph's names."""
    written = declared - {str(term) for term in ontology.subjects(SKOS.scopeNote)}
    assert len(in_data(store)) > 0.75 * len(written), sorted(written - in_data(store))


def test_terms_are_described(ontology, declared):
    for term in map(URIRef, sorted(declared)):
        assert ontology.value(term, RDFS.label), term
        assert len(str(ontology.value(term, RDFS.comment))) >= 10, term
        assert ontology.value(term, RDFS.isDefinedBy) == URIRef(str(TG)), term
        assert len([kind for kind in KINDS if (term, RDF.type, kind) in ontology]) == 1, term
    assert ontology.value(URIRef(str(TG)), OWL.versionInfo)


def test_the_shapes_speak_of_declared_terms_only(declared):
    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    used = {str(t) for triple in shapes for t in triple if isinstance(t, URIRef) and t in TG}
    texts = [str(t) for t in shapes.objects() if "SELECT" in str(t)]
    used |= {str(TG[term]) for text in texts for term in re.findall(r"\btg:(\w+)", text)}
    assert len(used) > 80
    assert used - {str(TG)} <= declared


def test_nothing_is_a_subclass_of_both_entity_and_activity(ontology, declared):
    assert (PROV.Entity, OWL.disjointWith, PROV.Activity) in ontology
    for term in map(URIRef, declared):
        above = set(ontology.transitive_objects(term, RDFS.subClassOf))
        assert not {PROV.Entity, PROV.Activity} <= above, term


def test_the_stages_are_mapped_to_trustgraphs_names(ontology):
    mapped = {
        (str(s), str(o))
        for path in (SKOS.closeMatch, SKOS.relatedMatch)
        for s, o in ontology.subject_objects(path)
        if o in TG
    }
    assert {o.removeprefix(str(TG)) for _, o in mapped} >= {
        "Question", "Grounding", "Exploration", "Focus",
    }  # fmt: skip


def test_the_page_of_the_ontology_is_current():
    docs = PACKAGE.parent / "docs"
    made = runpy.run_path(str(docs / "ontology_reference.py"))["page"]()
    assert (docs / "reference/ontology.md").read_text("utf-8") == made


# --- what stands in a store is as declared ---


def classes(ontology: Graph, node: Node | None) -> set[str]:
    """The classes that a domain or range names: one, or those of a union."""
    if node is None:
        return set()
    union = ontology.value(node, OWL.unionOf)
    return {str(node)} if union is None else {str(c) for c in Collection(ontology, union)}


def types_of(store: OxigraphStore, ontology: Graph) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for quad in store.match(None, NamedNode(str(RDF.type))):
        assert isinstance(quad.subject, NamedNode)
        assert isinstance(quad.object, NamedNode)
        kind = URIRef(quad.object.value)
        above = {str(c) for c in ontology.transitive_objects(kind, RDFS.subClassOf)}
        found.setdefault(quad.subject.value, set()).update(above)
    return found


@pytest.mark.slow
def test_data_is_of_the_declared_kind(store, ontology):
    types = types_of(store, ontology)
    for quad in store.match():
        path = URIRef(quad.predicate.value)
        if path not in TG:
            continue
        domain = classes(ontology, ontology.value(path, RDFS.domain))
        ranges = classes(ontology, ontology.value(path, RDFS.range))
        assert isinstance(quad.subject, NamedNode)
        assert not domain or domain & types.get(quad.subject.value, set()), quad
        if (path, RDF.type, OWL.DatatypeProperty) in ontology:
            assert isinstance(quad.object, Literal), quad
            assert ranges <= {str(RDFS.Literal)} or quad.object.datatype.value in ranges, quad
        else:
            assert isinstance(quad.object, NamedNode), quad
            assert not ranges or ranges & types.get(quad.object.value, set()), quad


def test_instances_are_not_of_disjoint_classes(store, ontology):
    for subject, found in types_of(store, ontology).items():
        assert not {str(PROV.Entity), str(PROV.Activity)} <= found, subject


def test_types_are_classes(store, ontology):
    for quad in store.match(None, NamedNode(str(RDF.type))):
        assert isinstance(quad.object, NamedNode)
        if quad.object.value.startswith(str(TG)):
            assert (URIRef(quad.object.value), RDF.type, OWL.Class) in ontology, quad


def test_ranges_are_datatypes_for_datatype_properties_only(ontology, declared):
    for term in map(URIRef, declared):
        ranges = classes(ontology, ontology.value(term, RDFS.range))
        data = {r for r in ranges if r.startswith(str(XSD)) or r == str(RDFS.Literal)}
        if (term, RDF.type, OWL.DatatypeProperty) in ontology:
            assert ranges, term
            assert data == ranges, term
        else:
            assert not data, term
