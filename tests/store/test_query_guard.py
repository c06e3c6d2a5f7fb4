"""Which SPARQL may run: the tokenizer sees keywords through every disguise, and only keywords."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.errors import QueryError
from tgraph.store.query_guard import check_query, gives_triples

REACHING = [
    "SELECT * { SERVICE <http://x/> { ?s ?p ?o } }",
    "SELECT * { sErViCe SILENT <http://x/> { ?s ?p ?o } }",
    "SELECT * {SERVICE<http://x/>{}}",
    "SELECT * { # a comment '\n SERVICE <http://x/> {} }",
    "SELECT * { ?s ?p '#' . SERVICE <http://x/> {} }",
    "SELECT * { ?s ?p <urn:x#y> . SERVICE <http://x/> {} }",
    "SELECT * { ?s ?p 'it\\'s' . SERVICE ?x {} }",
    "SELECT * { ?s ?p '''a'b''c''' . SERVICE ?x {} }",
    'SELECT * { ?s ?p """SERVICE""" SERVICE ?x {} }',
    "SELECT * { FILTER(1<2) SERVICE <http://x/> {} FILTER(3>2) }",
    "SELECT * { ?s ?p 'a\\u0027 . SERVICE <http://x/> {} # ' }",
    "SELECT * { SERV\\u0049CE <http://x/> {} }",
    "SELECT * { \\u0053ERVICE <http://x/> {} }",
    "SELECT * { ?x \\U00000053ERVICE <http://x/> {} }",
    "PREFIX service: <http://x/> SELECT * { SERVICE service:a {} }",
    "ASK {} SERVICE",
]


@pytest.mark.parametrize("query", REACHING)
def test_a_query_that_reaches_out_is_refused(query):
    with pytest.raises(QueryError):
        check_query(query)


@pytest.mark.parametrize(
    "update",
    [
        "LOAD <http://x/>",
        "load silent <http://x/> into graph <urn:g>",
        "INSERT DATA { <a:a> <a:b> 'x' } ; LOAD <file:///etc/passwd>",
        "INSERT { ?s ?p ?o } WHERE { SERVICE <http://x/> { ?s ?p ?o } }",
    ],
)
def test_an_update_that_reaches_out_is_refused(update):
    with pytest.raises(QueryError, match=r"LOAD|SERVICE"):
        check_query(update, update=True)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?service WHERE { ?service tg:service $load }",
        "SELECT * { ?s ?p 'SERVICE <http://x/>' } # SERVICE",
        'SELECT * { ?s ?p "LOAD" , """a SERVICE "b" """ }',
        "SELECT * { <urn:SERVICE> ?p <http://x/LOAD#SERVICE> }",
        "PREFIX SERVICE: <http://x/> SELECT * { SERVICE:a ?p :SERVICE }",
        "SELECT * { ?s ?p 'caf\\u00E9' , <urn:caf\\u00E9> , 'x'@en-GB }",
        "SELECT * { ?s ?p ?o FILTER(?o < 3 && ?o > 1) }",
        "SELECT * { << ?s ?p ?o >> tg:service 'it''s' }",
        "ASK { ?s ?p ?o }",
        "DESCRIBE <urn:x>",
    ],
)
def test_the_words_elsewhere_are_no_offence(query):
    check_query(query)


@pytest.mark.parametrize(
    "form",
    [
        "INSERT DATA {}",
        "DELETE WHERE {}",
        "CLEAR ALL",
        "drop graph <u:g>",
        "WITH <u:g> DELETE {} INSERT {} WHERE {}",
        "CREATE GRAPH <u:g>",
        "PREFIX a: <u:a> INSERT DATA {}",
        "COPY <u:a> TO <u:b>",
    ],
)
def test_updates_are_told_from_queries(form):
    with pytest.raises(QueryError, match="--update"):
        check_query(form)
    check_query(form, update=True)


def test_a_query_is_no_update():
    with pytest.raises(QueryError, match="not an update"):
        check_query("SELECT * {}", update=True)


@given(st.text(max_size=30), st.sampled_from(["'", '"', "'''", '"""']))
def test_a_string_hides_whatever_is_in_it(text, quote):
    inside = "".join("\\" + c if c in "\"'\\" else c for c in text)
    if len(quote) == 1:
        inside = inside.replace("\n", "\\n").replace("\r", "\\r")
    literal = f"{quote}{inside} SERVICE {quote}"
    check_query(f"SELECT * {{ ?s ?p {literal} }}")
    with pytest.raises(QueryError, match="SERVICE"):
        check_query(f"SELECT * {{ ?s ?p {literal} . SERVICE ?x {{}} }}")


def test_the_kind_of_result_is_known():
    assert gives_triples("# SELECT\nPREFIX ask: <u:> CONSTRUCT WHERE { ?s ?p ?o }")
    assert gives_triples("describe <u:x>")
    assert not gives_triples("SELECT ?construct {}")
