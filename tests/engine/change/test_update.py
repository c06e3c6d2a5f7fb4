"""``KnowledgeGraph.update``: all or nothing, on record, published, and the sessions untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions

import tgraph
from tests.support.examples import examples
from tgraph.engine.change.update import compare_stores
from tgraph.engine.components import Components
from tgraph.errors import QueryError
from tgraph.settings import load_settings
from tgraph.store.files import FileLock
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXT = "Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie."
INSERT = (
    'INSERT DATA { <urn:x:a> rdfs:label "A" . GRAPH <urn:x:mine> { <urn:x:a> rdfs:comment "n" .'
    " <urn:x:n> rdf:reifies <<( <urn:x:a> <urn:x:b> 1 )>> } }"
)
EVIDENCE = "GRAPH <urn:graph:source> { ?e a tg:Evidence ; tg:quote ?q }"
FORGED = "GRAPH <urn:graph:source> { ?e tg:quote 'Marie Curie discovered Thallium in Paris.' }"
NESTED = "INSERT DATA {{ GRAPH <urn:x:mine> {{ <urn:x:a> <urn:x:b> {}{}{} }} }}"
WRAP = """ ; INSERT { GRAPH <urn:x:mine> { <urn:x:a> <urn:x:b> ?t } }
  WHERE { GRAPH <urn:x:mine> { <urn:x:a> <urn:x:b> ?o }
    BIND(TRIPLE(<urn:x:a>, <urn:x:b>, ?o) AS ?t) }"""
OFFSET = "GRAPH <urn:graph:source> { ?e tg:charOffset ?n }"


@pytest.fixture
def graph(tmp_path: Path):
    document = tmp_path / "curie.txt"
    document.write_text(TEXT)
    parts = Components(
        load_settings(None), tmp_path / "cache", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    with tgraph.open(tmp_path / "graph", create=True, parts=parts) as kg:
        kg.index([document])
        kg.ask("What did Marie Curie discover?")
        yield kg


def rows(graph, query: str) -> list[Any]:
    found = graph.sparql(query)
    assert isinstance(found, QuerySolutions)
    return [tuple(None if t is None else getattr(t, "value", str(t)) for t in row) for row in found]


@pytest.mark.slow
def test_an_update_is_published_recorded_and_chained(graph):
    before = rows(graph, "SELECT (MAX(?n) AS ?most) { ?entry tg:sequence ?n }")
    assert graph.update(INSERT) == (3, 0)
    assert bool(graph.sparql('ASK { GRAPH <urn:x:mine> { <urn:x:a> rdfs:comment "n" } }'))
    query = """SELECT ?update ?hash ?agent WHERE {
      ?update a tg:Update, prov:Activity ; tg:contentHash ?hash ;
        prov:wasAssociatedWith/rdfs:label ?agent ; prov:startedAtTime ?s ; prov:endedAtTime ?e }"""
    ((update, content, agent),) = rows(graph, query)
    assert graph.opened.librarian.get_text(content) == INSERT
    assert agent == "tgraph"
    assert rows(graph, f"SELECT ?b {{ ?b tg:run <{update}> ; tg:chainHash ?h }}")
    after = rows(graph, "SELECT (MAX(?n) AS ?most) { ?entry tg:sequence ?n }")
    assert int(after[0][0]) == int(before[0][0]) + 1


def test_the_vectors_fit_the_knowledge_after_an_update(graph):
    said: list[str] = []
    graph.opened.message = said.append
    graph.update(INSERT)
    assert graph.ask("What did Marie Curie discover?", "graph", history=[]).sentences
    assert said == []


def test_an_update_says_that_it_waits_for_another_writer(graph):
    lock = FileLock.try_acquire(graph.root / "collections" / "default" / "write.lock")
    assert lock is not None
    said: list[str] = []

    def let_go(text: str) -> None:
        said.append(text)
        lock.release()

    graph.opened.message = let_go
    assert graph.update(INSERT) == (3, 0)
    assert [text for text in said if "waiting" in text]


@pytest.mark.slow
def test_what_was_removed_is_gone_and_can_come_back(graph):
    graph.update(INSERT)
    assert graph.update("DELETE WHERE { GRAPH <urn:x:mine> { ?s ?p ?o } }") == (0, 2)
    assert not graph.sparql("ASK { GRAPH <urn:x:mine> { ?s ?p ?o } }")
    assert graph.update("CLEAR SILENT GRAPH <urn:x:nothing>") == (0, 0)


def test_an_update_that_changes_nothing_leaves_no_trace(graph):
    before = rows(graph, "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o")
    assert graph.update("DELETE DATA { <urn:x:no> <urn:x:no> <urn:x:no> }") == (0, 0)
    assert rows(graph, "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o") == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("update", "problem"),
    [
        ("DELETE WHERE { GRAPH ?g { ?s a tg:Answer } }", "sealed"),
        ("INSERT { GRAPH ?g { ?s tg:note 1 } } WHERE { GRAPH ?g { ?s a tg:Session } }", "sealed"),
        ("DELETE WHERE { GRAPH ?g { ?b tg:sequence ?n } }", "sealed"),
        (f"DELETE {{ {EVIDENCE} }} INSERT {{ {FORGED} }} WHERE {{ {EVIDENCE} }}", "rest on"),
        (f"DELETE {{ {OFFSET} }} WHERE {{ {OFFSET} }}", "rest on.*charOffset"),
        ("DELETE WHERE { GRAPH ?g { ?d tg:contentHash ?h ; a tg:Document } }", "rest on"),
        ("DELETE WHERE { GRAPH ?g { ?d tg:textHash ?h } }", "knowledge.*graphs of your own"),
        ("DELETE WHERE { GRAPH ?g { ?accession tg:path ?path } }", "rest on"),
        ("DELETE WHERE { GRAPH ?g { ?run a tg:IndexRun ; prov:endedAtTime ?t } }", "rest on"),
        ("INSERT { ?e tg:quote 'x' } WHERE { GRAPH ?g { ?e a tg:Evidence } }", "rest on"),
        ("INSERT { ?c tg:charOffset 1 } WHERE { GRAPH ?g { ?c a tg:Chunk } }", "rest on"),
        ("INSERT { ?e tg:original <urn:x:e> } WHERE { ?e a tg:Edge }", "rest on"),
        ("INSERT DATA { _:a rdfs:comment 1 }", "blank nodes"),
        ("INSERT DATA { <urn:x:a> tg:note 1 } ; INSERT DATA {", "wrong"),
        ("INSERT DATA { <urn:x:a> <urn:x:b> <<( <urn:x:a> <urn:x:b> 1 )>> }", "relate a triple"),
        (NESTED.format("<<( <urn:x:a> <urn:x:b> " * 2, "1", " )>>" * 2), "triple term"),
        (
            NESTED.format("<<( <urn:x:a> <urn:x:b> " * 12_000, "1", " )>>" * 12_000),
            "triple term|nested",
        ),
        (NESTED.format("", "1", "") + WRAP * 2, "triple term"),
        ("LOAD <http://127.0.0.1:9/>", "LOAD"),
        ("SELECT * { ?s ?p ?o }", "not an update"),
    ],
)
def test_a_refused_update_changes_nothing(graph, update, problem):
    before = rows(graph, "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o")
    with pytest.raises(QueryError, match=problem):
        graph.update(update)
    assert rows(graph, "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o") == before
    staging = graph.root / "collections" / "default" / "staging"
    assert not any(staging.iterdir())


def test_the_library_s_sparql_gives_values(graph):
    assert bool(graph.sparql("ASK { ?s a tg:Session }")) is True
    triples = graph.sparql("CONSTRUCT { ?s a tg:Session } WHERE { ?s a tg:Session }")
    assert isinstance(triples, list)
    assert len(triples) == 1
    assert len(rows(graph, "SELECT ?s { ?s ?p ?o }")) > 3
    limited = graph.sparql("SELECT ?s { ?s ?p ?o }", limit=3)
    assert len(list(limited)) == 3


names = st.integers(0, 5).map(lambda i: NamedNode(f"urn:x:{i}"))
quads = st.builds(Quad, names, names, names | st.integers(0, 3).map(Literal), names)


@settings(max_examples=examples(50), deadline=None)
@given(st.sets(quads, max_size=30), st.sets(quads, max_size=30))
def test_the_difference_of_two_stores_is_that_of_their_sets(before, after):
    added, removed = compare_stores(OxigraphStore.memory(before), OxigraphStore.memory(after))
    assert (set(added), set(removed)) == (after - before, before - after)
    assert len(added) == len(set(added))
