"""Graphs of others, taken in: RDF, each triple with its line, and all that holds of what is
imported as of what is indexed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    Triple,
    parse,
    serialize,
)
from rich.console import Console

import tgraph
from tests.support.paths import EXAMPLES
from tests.support.workers import knowledge
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import IngestError, UsageError
from tgraph.explain.render.text_trees import source_tree, trace_tree
from tgraph.extensions.interchange import graph_import, import_graph
from tgraph.extensions.interchange.graph_import import ImportReport
from tgraph.extensions.interchange.graphs.rdf_syntax import SYNTAXES, RdfText, Syntax, whole_lines
from tgraph.extract.resolution import Name, resolve_entities
from tgraph.store import writer

VALUES = {"embedding.provider": "hashing"}
EX = "http://example.org/"
HEAD = f"""@prefix : <{EX}> .
@prefix rdf: <{v.RDF}> .
@prefix rdfs: <{v.RDFS}> .
@prefix skos: <{v.SKOS}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix prov: <{v.PROV}> .
@prefix xsd: <{v.XSD}> .
"""
TURTLE, TRIG = (next(s for s in SYNTAXES if s.name == name) for name in ("turtle", "trig"))


@pytest.fixture
def graph(tmp_path) -> Iterator[KnowledgeGraph]:
    with tgraph.open(tmp_path / "g", create=True, settings=VALUES) as opened:
        yield opened


@pytest.fixture
def take(graph, tmp_path):
    """Imports a text under a name."""

    def imported(text: str, name: str = "a.ttl", **options: Any) -> ImportReport:
        path = tmp_path / name
        path.write_bytes((HEAD + text if name.endswith(("ttl", "trig")) else text).encode())
        report: ImportReport = import_graph(graph, [path], **options)
        return report

    return imported


def said(graph: KnowledgeGraph, subject: str, predicate: NamedNode) -> set[str]:
    node = NamedNode(subject if ":" in subject else EX + subject)
    quads = graph.opened.read().match(node, predicate, None, v.KNOWLEDGE_GRAPH)
    return {q.object.value if hasattr(q.object, "value") else str(q.object) for q in quads}


def quotes(graph: KnowledgeGraph, edge: str) -> set[str]:
    store = graph.opened.read()
    found = set()
    for quad in store.match(None, v.tg("edge"), NamedNode(edge), v.SOURCE_GRAPH):
        for quote in store.match(quad.subject, v.tg("quote"), None, v.SOURCE_GRAPH):
            assert isinstance(quote.object, Literal)
            found.add(quote.object.value)
    return found


def edge(subject: str, predicate: str, obj: str | Literal) -> str:
    end = NamedNode(EX + obj) if isinstance(obj, str) else obj
    return v.edge_iri(NamedNode(EX + subject), NamedNode(EX + predicate), end)


def is_sound(graph: KnowledgeGraph) -> bool:
    return bool(graph.audit("knowledge").passed and graph.integrity().ok)


# --- what is taken in ---


def test_each_triple_is_an_edge_that_rests_on_its_line(graph, take):
    report = take(':paris :capitalOf :france ;\n    :area 105.4 ;\n    :river "Seine"@fr .\n')
    assert (report.relationships, report.skipped, report.dropped) == (3, (), {})
    assert quotes(graph, edge("paris", "capitalOf", "france")) == {":paris :capitalOf :france ;"}
    area = Literal("105.4", datatype=NamedNode(v.XSD + "decimal"))
    assert quotes(graph, edge("paris", "area", area)) == {":area 105.4 ;"}
    assert quotes(graph, edge("paris", "river", Literal("Seine", language="fr")))
    assert said(graph, "paris", NamedNode(EX + "capitalOf")) == {EX + "france"}
    assert is_sound(graph)


@pytest.mark.slow
@pytest.mark.parametrize("syntax", SYNTAXES, ids=lambda s: s.name)
def test_every_syntax_says_the_same(graph, tmp_path, syntax):
    quads = [
        Quad(NamedNode(EX + "a"), v.RDFS_LABEL, Literal("Ada", language="en")),
        Quad(NamedNode(EX + "a"), NamedNode(EX + "knows"), NamedNode(EX + "b")),
        Quad(NamedNode(EX + "a"), NamedNode(EX + "born"), Literal(1815)),
    ]
    path = tmp_path / f"data{syntax.suffixes[0]}"
    path.write_bytes(serialize(quads, format=syntax.format))
    report = import_graph(graph, [path])
    assert (report.relationships, report.skipped_count) == (2, 0)
    assert said(graph, "a", v.RDFS_LABEL) == {"Ada"}
    assert quotes(graph, edge("a", "knows", "b"))
    assert is_sound(graph)


def test_names_come_in_the_order_of_languages_and_the_others_are_aliases(graph, take):
    take(
        ':a rdfs:label "Rome"@en , "Rom"@de , "Roma"@it ; skos:altLabel "Urbs" .\n'
        ':b skos:prefLabel "Bern"@de-CH .\n:c foaf:x 1 .\n:someThing_else :p :a .\n'.replace(
            "foaf:x", ":x"
        ),
        languages=["de", "it"],
    )
    assert said(graph, "a", v.RDFS_LABEL) == {"Rom"}
    assert said(graph, "a", v.SKOS_ALT_LABEL) == {"Rome", "Roma", "Urbs"}
    assert said(graph, "b", v.RDFS_LABEL) == {"Bern"}
    assert said(graph, "someThing_else", v.RDFS_LABEL) == {"some thing else"}


def test_types_keep_their_iris_and_descriptions_their_lines(graph, take):
    take(
        ':Town rdfs:label "town"@en .\n:a a :Town , :OldPlace ;\n  rdfs:comment "An old town." .\n'
    )
    types = {f"{EX}Town", f"{EX}OldPlace", v.TG + "Entity"}
    assert said(graph, "a", v.RDF_TYPE) >= types
    assert said(graph, "a", v.tg("description")) == {"An old town."}
    assert said(graph, "OldPlace", v.RDFS_LABEL) == {"Old Place"}
    assert said(graph, "Town", v.RDFS_LABEL) == {"town"}  # of which it is an entity too
    assert is_sound(graph)


def test_blank_nodes_have_names_that_stay(graph, take, tmp_path):
    text = ':a :lives [ a :Address ; :street "High" ] , _:x .\n_:x rdfs:label "Home" .\n'
    take(text)
    before = {q for q in map(str, knowledge(graph.opened.read())) if "skolem" in q}
    with tgraph.open(tmp_path / "other", create=True, settings=VALUES) as other:
        import_graph(other, [tmp_path / "a.ttl"])
        assert {q for q in map(str, knowledge(other.opened.read())) if "skolem" in q} == before
    names = [said(graph, iri, v.RDFS_LABEL) for iri in said(graph, "a", NamedNode(EX + "lives"))]
    assert sorted(name for each in names for name in each) == ["Address", "Home"]


def test_statements_about_statements_and_named_graphs_keep_where_they_are_from(graph, take):
    take(
        ":g { :a :met :b ~ :r {| prov:wasDerivedFrom <http://books.org/1> ; :sure 0.9 |} . }\n"
        "<< :a :fears :b >> :says :c .\n"
        ":s a rdf:Statement ; rdf:subject :a ; rdf:predicate :met ; rdf:object :b ; :by :c .\n",
        "a.trig",
    )
    met, store = edge("a", "met", "b"), graph.opened.read()
    evidence = [q.subject for q in store.match(None, v.tg("edge"), NamedNode(met), v.SOURCE_GRAPH)]

    def told(name: NamedNode) -> set[str]:
        quads = (store.match(e, name, None, v.SOURCE_GRAPH) for e in evidence)
        return {q.object.value for each in quads for q in each if isinstance(q.object, NamedNode)}

    assert told(v.prov("hadPrimarySource")) == {"http://books.org/1"}
    assert told(v.tg("graph")) == {EX + "g"}
    assert len(quotes(graph, met)) == 2  # the reifier's and rdf:Statement's line
    graph.ask("Whom did a meet?", "graph")
    trace = graph.trace()
    tree = graph.documents.read_extractions("a.trig")
    shown = [each for page in tree.pages for chunk in page.chunks for each in chunk.edges]
    cited = [place for sentence in trace.sentences for place in sentence.citations]
    assert {(EX + "g", ("http://books.org/1",))} <= {(each.graph, each.sources) for each in shown}
    assert (EX + "g", ()) in {(each.graph, each.sources) for each in cited}
    origin = f"by the file: in the graph {EX}g"
    assert origin in graph.export(format="html").decode()
    drawn = StringIO()
    Console(width=200, file=drawn).print(trace_tree(trace), source_tree(tree))
    assert f"{origin}; derived from http://books.org/1" in drawn.getvalue()
    assert f"{origin}\n" in drawn.getvalue()
    assert said(graph, "r", v.RDFS_LABEL) == {"a met b"}
    assert said(graph, "r", NamedNode(EX + "sure")) == {"0.9"}
    assert not said(graph, "a", NamedNode(EX + "fears"))  # which nobody asserts
    assert said(graph, "s", NamedNode(EX + "by")) == {EX + "c"}
    assert is_sound(graph)


def test_what_is_said_in_tgraphs_own_terms_is_left_out_and_counted(graph, take):
    report = take(
        f":a a <{v.TG}Entity> ; <{v.TG}weight> 9 ; :knows <urn:trustgraph:edge:1> , :b .\n"
    )
    assert (report.relationships, sum(report.dropped.values())) == (1, 2)
    assert not said(graph, "a", v.tg("weight"))


# --- what is the same ---


@pytest.mark.slow
def test_same_as_makes_one_until_it_is_taken_back(graph, take, tmp_path):
    take(':a rdfs:label "Ada Lovelace" ; :born 1815 .\n:b rdfs:label "Ada" ; :wrote :notes .\n')
    assert not graph.entities.read_merges()
    take(":a owl:sameAs :b .\n", "same.ttl")
    assert [(m.absorbed, m.canonical) for m in graph.entities.read_merges()] == [
        (EX + "b", EX + "a")
    ]
    assert said(graph, "a", NamedNode(EX + "wrote")) == {EX + "notes"}
    assert is_sound(graph)
    graph.entities.split(EX + "b", reason="Another Ada.")
    assert said(graph, "b", NamedNode(EX + "wrote"))
    graph.entities.rejoin(EX + "a", EX + "b", reason="The same after all.")
    assert graph.entities.read_merges()
    graph.retract(str(tmp_path / "same.ttl"), reason="Wrong.")
    assert not graph.entities.read_merges()
    assert is_sound(graph)


def test_a_name_joins_the_only_one_that_bears_it():
    ada, bert, other = (Name(EX + x, n) for x, n in (("a", "Ada"), ("b", "Bert"), ("c", "Bert")))
    named = [Name(v.entity_iri(name), name) for name in ("ada", "bert")]
    assert resolve_entities([ada, bert, other, *named]) == {named[0].iri: ada.iri}


def test_texts_and_graphs_share_what_has_one_name(graph, take, tmp_path):
    take(':fram a :Ship ; rdfs:label "Fram" .\n')
    (tmp_path / "text.md").write_text("# Ships\n\nColin Archer built the Fram.\n")
    graph.index([tmp_path / "text.md"])
    assert v.entity_iri("fram") in {merge.absorbed for merge in graph.entities.read_merges()}
    assert is_sound(graph)


# --- what can't be read ---


def test_an_error_costs_its_statement_and_is_told_with_its_line(graph, take):
    report = take(':a :b :c .\n:a :b .\n:d :e "x\n:f :g :h .\n:i :j :k .\n')
    lines = [row.row - HEAD.count("\n") for row in report.skipped]
    assert lines[0] == 2
    assert set(lines) <= {2, 3}
    assert said(graph, "i", NamedNode(EX + "j")) == {EX + "k"}
    named = ", ".join(str(row.row) for row in report.skipped)
    place = f"(a.ttl, line{'s' if len(lines) > 1 else ''} {named})"
    assert report.dropped == {f"{graph_import.SKIPPED} {place}": report.skipped_count}


@pytest.mark.parametrize(
    ("term", "kept", "what"),
    [
        ('"Nijar"@zh-classical', "Nijar", "@zh-classical is no language tag"),
        ('"Nijar"@en_US', "Nijar", "@en_US is no language tag"),
        ("<http://x/a b c>", "http://x/a%20b%20c", "is no IRI"),
        ("<http://x/?f[]=1#a#b>", "http://x/?f%5B%5D=1#a%23b", "is no IRI"),
        ("<http://x/34.7%>", "http://x/34.7%25", "is no IRI"),
        (f'"1"^^<{EX}a b>', "1", "is no IRI"),
    ],
)
@pytest.mark.parametrize(
    "statement", [":a :p :b ;\n :q TERM , :c .", ":a :p :b .\n:a :q TERM .\n:a :q :c ."]
)
def test_a_term_that_is_not_well_formed_is_mended_and_named(
    graph, take, statement, term, kept, what
):
    report = take(f"{statement.replace('TERM', term)}\n:d :p :e .\n")
    assert said(graph, "a", NamedNode(EX + "p")) == {EX + "b"}
    assert said(graph, "a", NamedNode(EX + "q")) == {EX + "c", kept}
    assert said(graph, "d", NamedNode(EX + "p")) == {EX + "e"}
    [row] = report.skipped
    assert (row.row - HEAD.count("\n"), row.mended) == (2, True)
    assert what in row.reason
    assert [graph_import.MENDED in reason for reason in report.dropped] == [True]
    assert is_sound(graph)


def test_a_term_that_can_not_be_mended_costs_its_triple(graph, take):
    report = take(":a :p :b ;\n :q <nowhere> , [ :r :s ] ;\n :t _: ; :u :v .\n")
    for predicate, objects in (("p", {EX + "b"}), ("t", set()), ("u", {EX + "v"})):
        assert said(graph, "a", NamedNode(EX + predicate)) == objects
    assert len(said(graph, "a", NamedNode(EX + "q"))) == 1
    assert [row.row - HEAD.count("\n") for row in report.skipped] == [2, 3]
    assert not any(row.mended for row in report.skipped)


def test_a_line_with_a_term_that_is_not_well_formed_is_kept(graph, take):
    report = take(f'<{EX}a> <{EX}p> "x"@en_US .\n<{EX}a> <{EX}q> <http://x/a b> .\n', "a.nt")
    assert said(graph, "a", NamedNode(EX + "p")) == {"x"}
    assert said(graph, "a", NamedNode(EX + "q")) == {"http://x/a%20b"}
    assert [(row.row, row.mended) for row in report.skipped] == [(1, True), (2, True)]


def test_a_bad_line_of_n_triples_is_told_with_its_number(graph, take):
    good = "".join(f"<{EX}{n}> <{EX}p> <{EX}q> .\n" for n in range(150))
    report = take(f"{good}# a comment\nnonsense\n{good}", "a.nt")
    assert [row.row for row in report.skipped] == [152]
    assert len(quotes(graph, edge("7", "p", "q"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "opening", "closing"),
    [
        ("a.nt", f"<<( <{EX}a> <{EX}b> ", " )>>"),
        ("a.ttl", f"<<( <{EX}a> <{EX}b> ", " )>>"),
        ("a.ttl", f"[ <{EX}b> ", " ]"),
        ("a.ttl", "(", ")"),
    ],
)
def test_what_is_nested_too_deeply_costs_itself_alone(graph, take, name, opening, closing):
    """A parser that calls itself for each bracket ends with its process."""
    deep = f"<{EX}a> <{EX}b> {opening * 50_000}<{EX}c>{closing * 50_000} .\n"
    report = take(f"{deep}<{EX}d> <{EX}e> <{EX}f> .\n", name)
    assert [row.reason for row in report.skipped] == ["More than 100 brackets are in each other"]
    assert said(graph, "d", NamedNode(EX + "e")) == {EX + "f"}


def test_nothing_is_fetched(graph, tmp_path):
    remote = tmp_path / "a.jsonld"
    remote.write_text('{"@context": "https://schema.org/", "@id": "urn:x:a", "name": "A"}')
    entity = tmp_path / "a.rdf"
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    entity.write_text(
        f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
        f'<rdf:RDF xmlns:rdf="{v.RDF}" xmlns:e="{EX}"><rdf:Description rdf:about="{EX}a">'
        "<e:p>&x;</e:p></rdf:Description></rdf:RDF>"
    )
    report = import_graph(graph, [remote, entity])
    assert len(report.failed) == 2
    assert "secret words" not in str(report)


def test_what_is_packed_is_unpacked_within_limits(graph, tmp_path):
    packed = tmp_path / "a.nt.gz"
    packed.write_bytes(gzip.compress(f"<{EX}a> <{EX}p> <{EX}b> .\n".encode()))
    (tmp_path / "b.ttl.gz").write_bytes(packed.read_bytes()[:-9])
    report = import_graph(graph, [packed, tmp_path / "b.ttl.gz", tmp_path / "none.ttl"])
    assert report.relationships == 1
    assert [str(failure).partition(".")[0] for failure in report.failed] == [
        "It is a damaged gzip archive",
        "There is no such file",
    ]
    with pytest.raises(UsageError, match="There is no format 'x'"):
        import_graph(graph, [packed], format="x")


# --- again, anew, away ---


def test_the_same_file_changes_nothing_and_a_changed_one_supersedes(graph, take):
    assert take(":a :b :c .\n").indexed
    generation = take(":a :b :c .\n").generation
    again = take(":a :b :c .\n")
    assert (again.indexed, len(again.unchanged), again.generation) == ((), 1, generation)
    assert take(":a :b :d .\n").superseded
    assert said(graph, "a", NamedNode(EX + "b")) == {EX + "d"}
    assert is_sound(graph)


def test_what_was_indexed_as_a_text_before_is_read_as_a_graph(graph, tmp_path):
    path = tmp_path / "a.nt"
    path.write_text(f"<{EX}a> <{EX}p> <{EX}b> .\n")
    graph.index([path])
    assert import_graph(graph, [path]).relationships == 1
    assert said(graph, "a", NamedNode(EX + "p"))


@pytest.mark.slow
def test_an_erased_graph_leaves_nothing(graph, take, tmp_path):
    take(':kept rdfs:label "Kept" .\n', "b.ttl")
    take(':hidden-person rdfs:label "Zebulon Quux" ; :secretLink :kept .\n')
    graph.ask("Who is Zebulon Quux?", "graph")
    graph.purge(str(tmp_path / "a.ttl"), reason="Asked for.")
    (tmp_path / "a.ttl").unlink()
    assert graph.integrity().ok
    graph.close()
    words = (b"Zebulon", b"hidden-person", b"secretLink")
    for file in (tmp_path / "g").rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            assert not any(word in data for word in words), file


def test_the_record_is_of_the_declared_shape(graph, take):
    take(
        ':g { :a a :B ; rdfs:label "A" ; skos:altLabel "AA" ; rdfs:comment "c" ; owl:sameAs :c ;'
        " :p :q {| prov:wasDerivedFrom :s |} . }\n",
        "a.trig",
    )
    assert graph.audit("shapes").passed


PIECES = (
    ':n a :Person ; rdfs:label "Nansen" ; :sailed :fram . :fram rdfs:label "Fram" ; a :Ship .',
    ':nn rdfs:label "Fridtjof Nansen" ; skos:altLabel "Nansen" ; :knows :n ; owl:sameAs :n .',
    ':n2 a :Person ; rdfs:label "Nansen" ; :knows :nn . :a rdfs:label "Roald" ; :sailed :fram .',
    ':sailed rdfs:label "sailed on" . :Person rdfs:label "person" . :Ship rdfs:comment "Big." .',
    ':fram :kind :Ship ; a :Vessel . :Ship rdfs:label "Ship" . :sailed :about :knows .',
    '<< :n :sailed :fram >> :in 1893 . :a :met :n {| :in [ rdfs:label "Oslo" ] |} .',
    ':fram owl:sameAs :maud . :maud rdfs:label "Maud" ; :sailed :fram ; :owner :a .',
    ":Person owl:sameAs :Human . :h a :Human .",
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_whatever_happened_knowledge_follows_from_what_stands(graph, take, tmp_path, seed):
    draw = random.Random(seed)
    take(":z :y :x .\n", "z.ttl")
    for _ in range(5):
        name, merges = f"{draw.choice('abc')}.ttl", graph.entities.read_merges()
        if draw.random() < 0.7 or not (tmp_path / name).exists():
            take("\n".join(draw.sample(PIECES, draw.randint(1, 3))), name, reinstate=True)
        elif merges and draw.random() < 0.6:
            merge = draw.choice(merges)
            graph.entities.split(merge.absorbed, merge.canonical, reason="Two.")
        else:
            with pytest.MonkeyPatch.context():
                try:
                    graph.retract(str(tmp_path / name), reason="Out.")
                except UsageError:
                    continue
        assert graph.audit("knowledge").passed
    assert graph.integrity().ok


# --- questions ---


GRAPHS = EXAMPLES / "graphs"


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> Iterator[KnowledgeGraph]:
    place = tmp_path_factory.mktemp("graphs")
    with tgraph.open(place, create=True, settings=VALUES) as opened:
        import_graph(opened, [GRAPHS])
        yield opened


@pytest.mark.parametrize("mode", ["graph", "naive", "bm25", "ppr", "local", "basic"])
def test_a_question_is_answered_in_words_with_lines_as_quotes(example, mode):
    answer = example.ask("What does pancake ice form from?", mode)
    first = answer.sentences[0]
    assert "pancake ice forms from grease ice." in first.text
    assert "ice:formsFrom ice:grease ;" in {cited.quote for cited in first.citations}
    document = (GRAPHS / "ice-terms.ttl").read_text()
    for cited in first.citations:
        assert document[cited.start : cited.end] == cited.quote


def test_what_is_imported_is_in_traces_impact_and_why_not(example):
    answer = example.ask("Who first charted South Georgia?", "graph")
    assert "James Cook" in answer.text
    assert ":charted :james-cook" in example.export(answer.session, "html").decode()
    assert example.why_not(answer.session, "Olavtoppen")
    assert example.impact("islands.ttl").answers
    assert example.verify(answer.session, lexical=True)


# --- large graphs ---


@pytest.mark.slow
def test_a_large_first_graph_says_what_it_says_read_piece_by_piece(tmp_path, monkeypatch):
    path = tmp_path / "a.ttl"
    path.write_text(HEAD + "\n".join(PIECES * 2) + "\n:n :sailed :fram .\n")
    found = []
    for size in (10**9, 10):
        monkeypatch.setattr(graph_import, "LARGE", size)
        monkeypatch.setattr(writer, "REPLACES", size)  # of its statements there are more than 10
        values = {**VALUES, "graphs.embedded": 3, "graphs.reports": 1}
        with tgraph.open(tmp_path / str(size), create=True, settings=values) as opened:
            messages: list[str] = []
            report = import_graph(opened, [path], message=messages.append)
            assert any("graphs.embedded" in message for message in messages)
            assert report.reports == 1
            assert graph_import.LEXICAL in report.dropped
            found.append(set(map(str, knowledge(opened.opened.read()))))
            assert is_sound(opened)
            for mode in ("naive", "bm25", "local"):
                answer = opened.ask("Who sailed the Fram?", mode)
                assert "Nansen" in f"{answer.text} {answer.notes}"  # or it is what comes nearest
            assert opened.audit("shapes").passed
    assert found[0] == found[1]


# --- the command ---


def test_the_command_tells_what_came_in_and_what_did_not(tmp_path):
    (tmp_path / "a.nt").write_text(f"<{EX}a> <{EX}p> <{EX}b> .\nwrong\n")
    root = ["--root", str(tmp_path / "g")]
    result = CliRunner().invoke(cli, ["import", str(tmp_path / "a.nt"), *root])
    assert result.exit_code == 1
    assert f"Skipped: {tmp_path / 'a.nt'}:2: " in result.stderr
    assert "1 imported" in result.stderr
    result = CliRunner().invoke(cli, ["import", str(tmp_path / "a.nt"), *root, "--json"])
    facts = json.loads(result.stdout)
    assert (result.exit_code, facts["unchanged"]) == (0, [str(tmp_path / "a.nt")])


# --- statements and their places ---


def read(text: str, syntax: Syntax, problems: list[int]) -> list[Quad]:
    said = RdfText(text, syntax, "key").read_triples(lambda line, *_: problems.append(line))
    return [Quad(*(_blank(term) for term in (*each[:3], _graph(each.graph)))) for each in said]


def _graph(name: str) -> Any:
    return NamedNode(name) if name else DefaultGraph()


def _blank(term: Any) -> Any:
    if isinstance(term, NamedNode) and term.value.startswith(f"{v.URN}skolem:"):
        return BlankNode(v.digest_parts(term.value))
    return Triple(*map(_blank, term)) if isinstance(term, Triple) else term


def canonical(quads: Sequence[Quad]) -> set[str]:
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return set(map(str, dataset))


NODES = st.sampled_from([":a", ":b.c", "<http://x.org/d>", "ex:e\\.f", "_:g", "_:h.i", "ex:"])
TEXTS = st.text(alphabet="ab .;,#'\"\\\n[]{}<>@|é", max_size=6)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


LITERALS = st.one_of(
    TEXTS.map(_quoted),
    TEXTS.map(lambda text: f"{_quoted(text)}@en-GB"),
    TEXTS.map(lambda text: f"{_quoted(text)}^^ex:t"),
    TEXTS.filter(lambda t: "'''" not in t and not t.endswith("'")).map(
        lambda text: "'''" + text.replace("\\", "\\\\") + "'''"
    ),
    st.sampled_from(["1", "1.5", "-2e3", ".5", "true"]),
)
VERBS = st.sampled_from(["a", ":p", "ex:q-1", "<http://x.org/#r>"])
SPACE = st.sampled_from([" ", "\n", "\t", " # a . comment ;\n", "\r\n  "])


def _objects(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(VERBS, SPACE, terms).map("".join)
    some = st.lists(pairs, max_size=3).map(" ; ".join)
    return st.one_of(
        st.lists(terms, max_size=3).map(lambda items: f"({' '.join(items)})"),
        some.map(lambda pairs: f"[ {pairs} ]"),
        st.tuples(NODES, VERBS, terms).map(lambda t: f"<< {t[0]} {t[1]} {t[2]} >>"),
        st.tuples(NODES, VERBS, NODES).map(lambda t: f"<<( {t[0]} {t[1]} {t[2]} )>>"),
    )


OBJECTS = st.recursive(st.one_of(NODES, LITERALS), _objects, max_leaves=4)
ANNOTATED = st.tuples(
    OBJECTS, st.sampled_from(["", "", " ~ :r", " {| :s 1 |}", " ~ {| :s 1 |}"])
).map("".join)
ENDS = st.sampled_from([" .", ".\n", " ;\n .", " ; ; ."])


@st.composite
def written(draw: st.DrawFn) -> str:
    subject = draw(st.one_of(NODES, st.just("[]")))
    parts = draw(
        st.lists(
            st.tuples(VERBS, st.lists(ANNOTATED, min_size=1, max_size=2)), min_size=1, max_size=3
        )
    )
    said = (f"{verb}{draw(SPACE)}{f' ,{draw(SPACE)}'.join(objects)}" for verb, objects in parts)
    return subject + draw(SPACE) + f" ;{draw(SPACE)}".join(said) + draw(ENDS)


PREFIXES = "@prefix : <http://e.org/> .\nPREFIX ex: <http://e.org/ex#>\n"


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(written(), min_size=1, max_size=4), st.booleans())
def test_statement_by_statement_is_the_same_as_the_whole(texts, in_graph):
    body = "\n".join(texts)
    syntax = TRIG if in_graph else TURTLE
    text = f"{PREFIXES}:g1 {{ {body} }}\n:x :y :z ." if in_graph else PREFIXES + body
    try:
        whole = list(parse(text, syntax.format))
    except SyntaxError:
        problems: list[int] = []
        read(text, syntax, problems)
        assert problems
        return
    problems = []
    found = read(text, syntax, problems)
    assert not problems
    assert canonical(found) == canonical(whole)


@given(st.text(alphabet="ab \r\n", max_size=40), st.data())
def test_whole_lines_hold_the_place(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = whole_lines(text, start, end)
    assert 0 <= first <= start <= end <= last <= len(text)


def test_a_file_of_no_suffix_needs_a_format(graph, tmp_path):
    (tmp_path / "data").write_text(f"<{EX}a> <{EX}p> <{EX}b> .\n")
    report = import_graph(graph, [tmp_path / "data"])
    assert isinstance(report.failed[0], IngestError)
    assert import_graph(graph, [tmp_path / "data"], format="ntriples").relationships == 1
