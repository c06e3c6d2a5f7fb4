"""Queries that a person wrote: asked as sessions of their own, with the record, the witnesses and
the verification of every computed answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyoxigraph import QuerySolutions

from tests.support.corpora import indexed
from tests.support.pumps import PUMPS_CSV
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import QueryError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.model import Answer


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("pumps"), {"pumps.csv": PUMPS_CSV}) as kg:
        yield kg


def written_query(kg: KnowledgeGraph, answer: Answer) -> str:
    computed = kg.trace(answer.session).computed
    assert computed is not None
    return computed.written


def test_a_query_of_a_session_is_changed_and_asked_again(pumps: KnowledgeGraph):
    question = "What are the two cheapest pumps?"
    before = pumps.ask(question, "sparql", history=[])
    written = written_query(pumps, before)
    assert "LIMIT 2" in written
    assert pumps.ask_query(written).text == before.text
    after = pumps.ask_query(written.replace("LIMIT 2", "LIMIT 3"), after=before.session)
    assert after.question == question
    assert after.text.startswith("Pump P4 (250 EUR), Pump P1 (300 EUR) and Pump P5")
    assert all(sentence.citations for sentence in after.sentences)
    assert pumps.replay(after.session).is_same
    verified = pumps.verify(after.session)
    assert {sentence.verdict for sentence in verified.sentences} == {"supported"}
    assert not check_shapes(pumps.opened.read(), pumps.opened.catalogue, after.session)
    results = pumps.sparql(
        "SELECT ?from WHERE { GRAPH ?g { ?q a tg:ComputedQuery ; tg:revises ?from } }"
    )
    assert isinstance(results, QuerySolutions)
    uuid = before.session.removeprefix(v.session_iri(""))
    assert [row["from"].value for row in results] == [v.session_part_iri("query", uuid)]


def test_a_query_that_is_not_allowed_leaves_no_session(pumps: KnowledgeGraph):
    number = len(pumps.sessions.summaries())
    with pytest.raises(QueryError, match="GRAPH"):
        pumps.ask_query("SELECT ?row { GRAPH ?g { ?row a ?type } }")
    answer = pumps.ask("Who makes Pump P3?", "graph", history=[])
    with pytest.raises(UsageError, match="no query"):
        pumps.ask_query("SELECT ?row { ?row a ?type }", after=answer.session)
    assert len(pumps.sessions.summaries()) == number + 1


@pytest.mark.parametrize(
    "question",
    [
        "Is P2 heavier than P3?",
        "Which is lighter, P2 or P3?",
        "What is the difference in weight between P2 and P3?",
        "Which are not made by Norden?",
        "How many pumps does each maker make?",
    ],
)
def test_what_the_grammar_makes_is_written_so_that_it_is_read(pumps: KnowledgeGraph, question: str):
    answer = pumps.ask(question, "sparql", history=[])
    assert pumps.ask_query(written_query(pumps, answer)).text == answer.text
