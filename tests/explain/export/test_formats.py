"""Exports: what is written reads back as what was recorded."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from contextlib import suppress
from datetime import datetime
from importlib import resources
from xml.etree import ElementTree

import pytest
from lxml import etree
from prov.constants import PROV_N_MAP
from prov.identifier import Identifier, QualifiedName
from prov.model import ProvAssociation, ProvDocument, ProvElement, ProvRelation
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse
from rdflib import Dataset, Graph, URIRef
from rdflib.compare import isomorphic

from tests.support.corpora import made, write
from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.export.formats import FORMATS, prov_document, serialise_quads, to_prov
from tgraph.explain.trace.record_quads import replace_triple_terms
from tgraph.extensions.interchange.trustgraph_sessions import RETRIEVAL_GRAPH
from tgraph.extensions.lab import measure_influence
from tgraph.store.base import Term
from tgraph.store.oxigraph import OxigraphStore

TEXT = "Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie in Paris.\n"
QUESTION = "What did Marie Curie discover?"
EVIL = 'A label with "quotes" <b>&amp; a | pipe\\ and a\nline'


MODES = ("global", "drift", "graph")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory):
    """A graph whose document has two versions, and the IRIs of five records on it by name: sessions
    of three modes, a verification and an influence analysis."""
    folder = tmp_path_factory.mktemp("records")
    with made(folder, {"curie.md": TEXT}, scripted=True) as (kg, _):
        kg.index(write(folder, {"curie.md": f"{TEXT}Marie Curie was born in Warsaw.\n"}))
        nothing = kg.ask("Who is zxcvb qwrtp?", "graph", history=[])
        assert nothing.no_evidence
        asked = {mode: kg.ask(f"{QUESTION} {EVIL}", mode, history=[]).session for mode in MODES}
        verified = kg.verify(asked["graph"]).verification
        analysed = measure_influence(kg, asked["graph"]).analysis
        asked["no evidence"] = nothing.session
        yield kg, {**asked, "verification": verified, "influence": analysed}


@pytest.fixture(scope="module")
def graph(records):
    """The graph of ``records``; its last session asked in mode ``graph``."""
    return records[0]


def quads(graph, format: str, **options: object):
    return set(parse(graph.export("last", format, **options), FORMATS[format]))


def test_trig_and_nquads_say_the_same(graph):
    assert quads(graph, "trig") == quads(graph, "nquads")


def test_turtle_has_the_triples_of_all_graphs(graph):
    triples = {quad.triple for quad in quads(graph, "turtle")}
    assert triples == {quad.triple for quad in quads(graph, "nquads")}


@pytest.mark.parametrize("format", ["json-ld", "rdf-xml"])
def test_formats_without_triple_terms_have_the_classic_view(graph, format):
    expected = {quad.triple for quad in replace_triple_terms(quads(graph, "nquads"))}
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


Statement = tuple[str, str, tuple[tuple[str, str], ...]]


def said(term: object) -> str:
    """A value of a record: an IRI, a time, or a literal with its type or language."""
    return str(getattr(term, "uri", term))


def statements(document: ProvDocument) -> Counter[Statement]:
    """Each record: its type, its identifier, and all attributes, of a relation both ends too."""
    return Counter(
        (
            said(record.get_type()),
            said(record.identifier),
            tuple(sorted((said(name), said(value)) for name, value in record.attributes)),
        )
        for record in document.get_records()
    )


def recorded(kg, iri: str) -> tuple[list[Quad], ProvDocument]:
    """The quads of a record, and what tgraph makes of them for the formats of PROV."""
    found = list(parse(kg.export(iri, "nquads"), RdfFormat.N_QUADS))
    return found, prov_document(found)


NAMES = (*MODES, "verification", "influence")
RELATIONS = {
    "used": "Usage",
    "wasGeneratedBy": "Generation",
    "wasDerivedFrom": "Derivation",
    "wasRevisionOf": "Derivation",
    "wasAssociatedWith": "Association",
    "wasInformedBy": "Communication",
    "hadMember": "Membership",
    "specializationOf": "Specialization",
    "wasAttributedTo": "Attribution",
    "wasInvalidatedBy": "Invalidation",
}
ELEMENTS = ("Entity", "Activity", "Agent")


def of_prov(*names: str) -> set[NamedNode]:
    return {v.prov(name) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_prov_json_and_prov_xml_say_what_the_rdf_says(records, name):
    kg, iris = records
    expected = statements(recorded(kg, iris[name])[1])
    assert len(expected) > 20
    assert statements(read_prov(kg.export(iris[name], "prov-json"), "json")) == expected
    assert of_xml(kg.export(iris[name], "prov-xml")) == expected


IDENTIFIER = v.dcterms("identifier").value


ESCAPED = re.compile(r"_x([0-9A-F]{4}|[0-9A-F]{8})_")


def of_xml(data: bytes) -> Counter[Statement]:
    """The statements of PROV-XML, with the IRIs of names that are escaped in XML: these undo the
    escaping, and records that have such a name say theirs."""

    def iri(term: object) -> object:
        if not isinstance(term, QualifiedName):
            return term
        rest = ESCAPED.sub(lambda match: chr(int(match[1], 16)), term.localpart)
        return Identifier(term.namespace.uri + rest)

    found = read_prov(data, "xml")
    records = []
    for record in found.get_records():
        name, told = iri(record.identifier), record.get_attribute(IDENTIFIER)
        changed = [said(name)] if said(name) != said(record.identifier) else []
        assert list(map(said, told)) == changed
        records.append((record.get_type(), name, record.attributes))
    return Counter(
        (
            said(kind),
            said(name),
            tuple(sorted((said(n), said(iri(x))) for n, x in values if said(n) != IDENTIFIER)),
        )
        for kind, name, values in records
    )


@pytest.fixture(scope="module")
def prov_schema() -> etree.XMLSchema:
    """W3C's schema of PROV-XML, which the package ``prov`` has with its tests."""
    folder = resources.files("prov") / "tests" / "schemas"
    with resources.as_file(folder) as schemas:
        return etree.XMLSchema(etree.parse(schemas / "prov.xsd"))


@pytest.mark.parametrize("name", NAMES)
def test_prov_xml_is_valid(records, prov_schema, name):
    kg, iris = records
    prov_schema.assertValid(etree.fromstring(kg.export(iris[name], "prov-xml")))


ODD_ENDS = (
    *("3", "0.1.0", "a%20b", "1915-05-06", "a(b)", "-", "%2F", "\u6e2f", "\u6e2f:3", "\U0001f427"),
    *("", "a::", "_x0030_", "a_x0030_b", "a#3", "4ec71c"),
)


def test_prov_xml_has_a_name_for_every_iri(prov_schema):
    nodes = [NamedNode(f"urn:x:{end}") for end in ODD_ENDS]
    quads_ = [Quad(node, v.RDF_TYPE, v.prov("Entity")) for node in nodes]
    quads_ += [
        Quad(node, predicate, nodes[0])
        for node in nodes[1:]
        for predicate in (v.prov("wasDerivedFrom"), v.tg("edge"))
    ]
    written = to_prov(quads_, "prov-xml")
    prov_schema.assertValid(etree.fromstring(written))
    assert of_xml(written) == statements(prov_document(quads_))


@pytest.mark.parametrize("name", NAMES)
def test_no_relation_of_the_rdf_is_lost_or_made_up(records, name):
    kg, iris = records
    found, document = recorded(kg, iris[name])
    relations = {
        (record.get_type().localpart, *(said(value) for _, value in record.formal_attributes[:2]))
        for record in document.get_records(ProvRelation)
    }
    expected = {
        (RELATIONS[q.predicate.value.rpartition("#")[2]], _value(q.subject), _value(q.object))
        for q in found
        if q.predicate in of_prov(*RELATIONS)
    }
    timed = {
        ("Generation", _value(q.subject), "None")
        for q in found
        if q.predicate == v.prov("generatedAtTime")
        and not any(o.subject == q.subject and o.predicate == MADE_BY for o in found)
    }
    assert relations == expected | timed
    plans = {
        (said(r.args[1]), said(r.args[2]))
        for r in document.get_records(ProvAssociation)
        if r.args[2] is not None
    }
    told = {(q.subject, q.predicate): _value(q.object) for q in found if q.predicate in WHO}
    assert plans == {
        (agent, told[node, v.prov("hadPlan")])
        for (node, predicate), agent in told.items()
        if predicate == v.prov("agent") and (node, v.prov("hadPlan")) in told
    }


MADE_BY = v.prov("wasGeneratedBy")
WHO = of_prov("agent", "hadPlan")
TIMES = of_prov("startedAtTime", "endedAtTime")


@pytest.mark.parametrize("name", NAMES)
def test_every_element_has_all_that_the_rdf_says_of_it(records, name):
    kg, iris = records
    found, document = recorded(kg, iris[name])
    kinds = {
        (_value(q.subject), _value(q.object).rpartition("#")[2])
        for q in found
        if q.predicate == v.RDF_TYPE and q.object in of_prov(*ELEMENTS)
    }
    elements = {said(r.identifier): r for r in document.get_records(ProvElement)}
    assert {(iri, r.get_type().localpart) for iri, r in elements.items()} == kinds
    for quad in found:
        own = quad.predicate.value.startswith(v.TG) and isinstance(quad.object, Literal | NamedNode)
        if own and _value(quad.subject) in elements:
            record = elements[_value(quad.subject)]
            values = {_plain(value) for value in record.get_attribute(quad.predicate.value)}
            assert _plain(quad.object) in values
        if quad.predicate in TIMES:
            times = {value for _, value in elements[_value(quad.subject)].formal_attributes}
            assert datetime.fromisoformat(_value(quad.object)) in times


def _value(term: object) -> str:
    assert isinstance(term, NamedNode | Literal)
    return term.value


def _plain(term: object) -> str:
    """A value without its type: a number or a time may be written in more than one way."""
    text = str(getattr(term, "uri", None) or getattr(term, "value", term))
    for read in (float, datetime.fromisoformat):
        with suppress(ValueError):
            return str(read(text))
    return {"True": "true", "False": "false"}.get(text, text)


@pytest.mark.parametrize("name", NAMES)
def test_prov_n_has_a_line_for_each_record_with_its_identifier(records, name):
    kg, iris = records
    _, document = recorded(kg, iris[name])
    first, *lines, last = kg.export(iris[name], "prov-n").decode().splitlines()
    assert (first, last) == ("document", "endDocument")
    prefixes = dict(re.findall(r"^ +prefix (\S+) <(.*)>$", "\n".join(lines), re.MULTILINE))
    wanted: Counter[tuple[str, str]] = Counter()
    for record in document.get_records():
        shown = record.identifier if record.identifier else record.args[0]
        wanted[PROV_N_MAP[record.get_type()], said(shown)] += 1
    given = Counter(
        (match[1], _expanded(match[2], prefixes))
        for match in (re.match(r"  (\w+)\(((?:[^\\,;)]|\\.)+)", line) for line in lines)
        if match
    )
    assert given == wanted


def _expanded(name: str, prefixes: dict[str, str]) -> str:
    prefix, _, rest = name.partition(":")
    return prefixes[prefix] + re.sub(r"\\(.)", r"\1", rest)


def test_a_revision_and_the_time_of_a_generation_are_those_of_prov_dm():
    one, two, act = (NamedNode(f"urn:x:{name}") for name in ("one", "two", "act"))
    time = Literal("2026-01-02T03:04:05+00:00", datatype=v.xsd("dateTime"))
    document = prov_document(
        [
            *(Quad(node, v.RDF_TYPE, v.prov("Entity")) for node in (one, two)),
            Quad(act, v.RDF_TYPE, v.prov("Activity")),
            Quad(two, v.prov("wasRevisionOf"), one),
            Quad(two, v.prov("wasGeneratedBy"), act),
            Quad(two, v.prov("generatedAtTime"), time),
        ]
    )
    lines = [line.strip() for line in document.get_provn().splitlines()]
    assert "wasDerivedFrom(ns1:two, ns1:one, -, -, -, [prov:type='prov:Revision'])" in lines
    assert "wasGeneratedBy(ns1:two, ns1:act, 2026-01-02T03:04:05+00:00)" in lines


def test_agents_with_and_without_a_plan_are_not_confused():
    act, plan = NamedNode("urn:x:act"), NamedNode("urn:x:plan")
    agents = [NamedNode(f"urn:x:agent{number}") for number in range(8)]
    node = NamedNode("urn:x:association")
    document = prov_document(
        [
            Quad(act, v.RDF_TYPE, v.prov("Activity")),
            *(Quad(agent, v.RDF_TYPE, v.prov("Agent")) for agent in agents),
            *(Quad(act, v.prov("wasAssociatedWith"), agent) for agent in agents),
            Quad(act, v.prov("qualifiedAssociation"), node),
            Quad(node, v.RDF_TYPE, v.prov("Association")),
            Quad(node, v.prov("agent"), agents[3]),
            Quad(node, v.prov("hadPlan"), plan),
        ]
    )
    found = {(said(r.args[1]), said(r.args[2])) for r in document.get_records(ProvAssociation)}
    assert found == {(a.value, plan.value if a == agents[3] else "None") for a in agents}


def by_rdflib(data: bytes, format: str) -> set[str]:
    """The IRIs that rdflib finds as subjects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = Dataset().parse(data=data, format="xml" if format == "rdf-xml" else format)
        quads = list(Dataset.quads(read)) if isinstance(read, Dataset) else list(read)
    return {str(quad[0]) for quad in quads if isinstance(quad[0], URIRef)}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_format_of_every_record_is_read_by_another_library(records, name):
    kg, iris = records
    iri = iris[name]
    whole = set(parse(kg.export(iri, "nquads"), RdfFormat.N_QUADS))
    old = {quad.triple for quad in replace_triple_terms(whole)}
    subjects = {t.subject.value for t in old if isinstance(t.subject, NamedNode)}
    for format in FORMATS:
        read = set(parse(kg.export(iri, format), FORMATS[format]))
        known = old if format in ("json-ld", "rdf-xml") else {quad.triple for quad in whole}
        assert {quad.triple for quad in read} == known
        assert by_rdflib(kg.export(iri, format, classic=True), format) == subjects
    assert ElementTree.fromstring(kg.export(iri, "svg")).tag.endswith("svg")
    assert kg.export(iri, "dot").startswith(b"digraph record {")


def test_characters_that_xml_lacks_are_replaced_and_nothing_else_is(graph):
    given = [
        Literal("a\x1b[31mb\x00\uffff"),
        Literal("tab\t, line\n, \u202e, \U0001f427"),
        Literal("caf\x0be", language="fr"),
        Literal("2020", datatype=v.xsd("gYear")),
    ]
    subject, predicate = NamedNode("urn:s"), NamedNode("http://example.org/p")
    quads_ = [Quad(subject, predicate, value) for value in given]
    read = [q.object for q in parse(serialise_quads(quads_, "rdf-xml"), RdfFormat.RDF_XML)]
    replaced = Literal("a\ufffd[31mb\ufffd\ufffd"), Literal("caf\ufffde", language="fr")
    assert read == [replaced[0], given[1], replaced[1], given[3]]
    entity = Quad(subject, v.RDF_TYPE, v.prov("Entity"))
    label = Quad(subject, v.RDFS_LABEL, given[0])
    for format in ("prov-xml", "svg"):
        ElementTree.fromstring(serialise_quads([entity, label], format))


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
    own = [q for q in found if q.graph_name == RETRIEVAL_GRAPH]
    links = {(q.subject, q.object) for q in own if q.predicate == v.prov("wasDerivedFrom")}
    assert len(links) == 4


def of_trustgraph(kg, session: str, *, classic: bool = False) -> OxigraphStore:
    written = kg.export(session, "nquads", vocabulary="trustgraph", classic=classic)
    return OxigraphStore.memory(parse(written, RdfFormat.N_QUADS))


def objects(store: OxigraphStore, subject: Term | None, predicate: NamedNode) -> list[Term]:
    assert not isinstance(subject, Literal)
    return [quad.object for quad in store.match(subject, predicate, None, None)]


def edges_of(store: OxigraphStore, selection: Term | None = None) -> list[Triple]:
    """The edges that TrustGraph is told, of all selections or of one."""
    found = [t for t in objects(store, selection, v.tg("edge")) if isinstance(t, Triple)]
    assert found
    return found


def documents_behind(store: OxigraphStore, node: Term) -> set[str]:
    """The titles of the documents that the way from a chunk or a subgraph ends at."""
    origins = objects(store, node, v.prov("wasDerivedFrom"))
    if not origins:
        assert v.tg("Document") in objects(store, node, v.RDF_TYPE)
        assert objects(store, node, v.RDFS_LABEL)
        return {_value(title) for title in objects(store, node, DC_TITLE)}
    return {title for origin in origins for title in documents_behind(store, origin)}


DC_TITLE = NamedNode("http://purl.org/dc/elements/1.1/title")


def test_trustgraph_is_told_names_sources_and_tokens(records):
    kg, iris = records
    trace, found = kg.trace(iris["graph"]), of_trustgraph(kg, iris["graph"])
    edges = edges_of(found)
    assert len(edges) == len(trace.selected)
    for edge in edges:
        for end in (edge.subject, edge.predicate, edge.object):
            if isinstance(end, NamedNode):
                assert len(list(found.match(end, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH))) == 1
        containers = list(found.match(None, v.tg("contains"), edge, v.SOURCE_GRAPH))
        assert containers
        for each in containers:
            assert documents_behind(found, each.subject) == {"Curie"}
    assert {_value(m) for m in objects(found, None, v.tg("entity"))} == {
        match.entity for match in trace.matches
    }
    for name, kind in (("focus", "EdgeSelecting"), ("synthesis", "Synthesising")):
        (step,) = [step for step in trace.steps if step.kind == kind]
        stage = NamedNode(iris["graph"].replace("session", f"prov:{name}"))
        assert objects(found, stage, v.tg("inToken")) == [Literal(str(step.input_tokens))]
        assert objects(found, stage, v.tg("outToken")) == [Literal(str(step.output_tokens))]
        assert objects(found, stage, v.tg("llmModel"))
    assert objects(found, None, v.tg("content")) == [Literal(trace.answer)]


def test_chunks_are_selected_as_in_trustgraphs_document_retrieval(records):
    kg, _ = records
    session = kg.ask(QUESTION, "basic", history=[]).session
    trace, found = kg.trace(session), of_trustgraph(kg, session)
    (question,) = found.match(None, v.RDF_TYPE, v.tg("DocRagQuestion"), None)
    exploration, focus = (
        NamedNode(f"{_value(question.subject)}/{x}") for x in ("exploration", "focus")
    )
    retrieved = objects(found, exploration, v.tg("selectedChunk"))
    assert objects(found, exploration, v.tg("chunkCount")) == [Literal(str(len(retrieved)))]
    assert {_value(chunk) for chunk in retrieved} == {
        item.item for item in (*trace.selected, *trace.rejected)
    }
    chosen = objects(found, focus, v.tg("selectedChunk"))
    assert [objects(found, one, v.RDF_TYPE) for one in chosen] == [[v.tg("ChunkSelection")]]
    for one in chosen:
        (chunk,) = objects(found, one, v.tg("document"))
        assert chunk in retrieved
        assert documents_behind(found, chunk) == {"Curie"}
    assert not objects(found, None, v.tg("selectedEdge"))


def test_the_classic_view_has_an_edge_where_a_triple_term_stood(records):
    kg, iris = records
    found = of_trustgraph(kg, iris["graph"], classic=True)
    whole = of_trustgraph(kg, iris["graph"])
    for selection in objects(found, None, v.tg("selectedEdge")):
        (edge,) = objects(found, selection, v.tg("edge"))
        (term,) = edges_of(whole, selection)
        parts = [objects(found, edge, NamedNode(v.RDF + x)) for x in ("subject", "object")]
        assert parts == [[term.subject], [term.object]]
        assert edge in objects(found, None, v.tg("contains"))


def by_subject(quads: list[Quad], *predicates: NamedNode) -> dict[Term, set[Term]]:
    found: dict[Term, set[Term]] = {}
    for quad in quads:
        if quad.predicate in predicates:
            found.setdefault(quad.subject, set()).add(quad.object)
    return found


ASIDE = [v.tg(name) for name in ("Call", "Rating", "EntityMatch")]
SMALLER = 0.85
"""What is left of the smallest records; of those that saw hundreds of reports it is a twentieth."""


@pytest.mark.parametrize("name", [*MODES, "no evidence"])
def test_the_core_is_whole_in_itself_and_small(records, name):
    kg, iris = records
    session = iris[name]
    whole = set(parse(kg.export(session, "nquads"), RdfFormat.N_QUADS))
    core = list(parse(kg.export(session, "nquads", core=True), RdfFormat.N_QUADS))
    assert set(core) < whole
    types = by_subject(core, v.RDF_TYPE)
    relations = of_prov(*RELATIONS, "agent", "hadPlan")
    for quad in core:
        if quad.predicate in relations:
            assert quad.object in types, quad
        assert quad.object not in ASIDE
    answer = NamedNode(v.answer_iri(session.removeprefix(v.session_iri(""))))
    origins = by_subject(core, v.prov("wasDerivedFrom"))
    reached: set[Term] = set()
    queue: list[Term] = [answer]
    while queue:
        node = queue.pop()
        reached |= {node}
        queue += origins.get(node, set()) - reached
    cited = [c for s in kg.trace(session).sentences for c in s.citations]
    assert {c.document for c in cited} <= {_value(node) for node in reached}
    small, large = (sum(statements(prov_document(each)).values()) for each in (core, whole))
    assert small < SMALLER * large, (small, large)
    rejected = {quad.subject for quad in whole if quad.predicate == v.tg("rejectionReason")}
    assert not rejected & {term for quad in core for term in (quad.subject, quad.object)}


@pytest.mark.parametrize(("mode", "what"), [("graph", "edges"), ("global", "items")])
def test_stages_are_called_as_in_the_specification(records, mode, what):
    kg, iris = records
    uuid = iris[mode].removeprefix(v.session_iri(""))
    for stage, called in ((v.retrieval_iri, "Retrieved"), (v.selection_iri, "Selected")):
        labels = objects(kg.opened.read(), NamedNode(stage(uuid)), v.RDFS_LABEL)
        assert labels == [Literal(f"{called} {what}")]


def test_what_there_is_not_is_wrong_usage(graph):
    with pytest.raises(UsageError, match="csv"):
        graph.export("last", "csv")
    with pytest.raises(UsageError, match="vocabulary"):
        graph.export("last", "trig", vocabulary="theirs")
    assert json.loads(graph.export("last", "prov-json"))


def test_the_formats_of_prov_do_not_depend_on_the_order_of_statements(records):
    kg, iris = records
    found, _ = recorded(kg, iris["graph"])
    for format in ("prov-n", "prov-json", "prov-xml"):
        assert to_prov(found[::-1], format) == kg.export(iris["graph"], format)


@pytest.mark.parametrize("name", ["prov-n", "prov-json", "prov-xml"])
def test_iris_of_any_end_are_kept(name):
    """An IRI that ends with a full stop has to be escaped in Turtle, which rdflib does not read."""
    graph, one = NamedNode("urn:x:g"), NamedNode(v.entity_iri("Terra Nova/ Discovery Ltd."))
    other = NamedNode(f"{one.value}also")
    entity = v.RDF_TYPE, v.prov("Entity")
    quads = [Quad(one, *entity, graph), Quad(other, *entity, graph)]
    found = to_prov([*quads, Quad(other, v.prov("wasDerivedFrom"), one, graph)], name).decode()
    for end in (r"ltd\.also", r"ltd\\?\.(?!also)"):
        assert re.search("[:-]discovery-" + end, found)
