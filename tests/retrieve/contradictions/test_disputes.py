"""Facts that disagree: the audit lists them, and an answer that touches one says so."""

from __future__ import annotations

import json
from html import unescape

import pytest
from click.testing import CliRunner

import tgraph
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.explain.audit.named_audits import find_audit, run_audit
from tgraph.retrieve.contradictions.disputes import once_only
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks
from tgraph.vocabulary import collection_iri

FACTS = {
    "one": [
        ("be born on", "1867-11-07", "date", "Marie Curie was born on 7 November 1867."),
        ("die in", "1934", "gYear", "Marie Curie died in 1934."),
    ],
    "two": [
        ("born", "1866", "gYear", "Marie Curie, born 1866, was a physicist."),
        ("died", "1934-07-04", "date", "She, Marie Curie, died on 4 July 1934."),
    ],
}
EDGES = {
    "one": ("forgive", "Marie Curie forgave Pierre Curie."),
    "two": ("do not forgive", "Marie Curie did not forgive Pierre Curie."),
}


def extraction(request) -> str:
    text = parse_blocks(request.messages)["TEXT"]
    name = "one" if "7 November" in text else "two"
    predicate, quote = EDGES[name]
    people = ("Marie Curie", "Pierre Curie")
    return json.dumps(
        {
            "entities": [{"name": p, "type": "person", "description": ""} for p in people],
            "relationships": [
                {
                    "subject": people[0],
                    "predicate": predicate,
                    "object": people[1],
                    "description": quote,
                    "keywords": [],
                    "strength": 5,
                    "quote": quote,
                }
            ],
            "attributes": [
                {
                    "subject": people[0],
                    "predicate": predicate,
                    "value": value,
                    "datatype": datatype,
                    "quote": quote,
                }
                for predicate, value, datatype, quote in FACTS[name]
            ],
        }
    )


def claims(request) -> str:
    text = parse_blocks(request.messages)["TEXT"]
    status = "TRUE" if "7 November" in text else "FALSE"
    quote = EDGES["one" if status == "TRUE" else "two"][1]
    return json.dumps(
        {
            "claims": [
                {
                    "subject": "Marie Curie",
                    "object": "Pierre Curie",
                    "type": "FORGIVENESS",
                    "status": status,
                    "description": quote,
                    "quote": quote,
                }
            ]
        }
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contradictions")
    for name, facts in FACTS.items():
        lines = [*(quote for *_, quote in facts), EDGES[name][1]]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    settings = load_settings(None, {"claims.enabled": True})
    replies = {"extract_graph": extraction, "extract_claims": claims}
    parts = Components(
        settings, folder / "cache", chat=ScriptedModel(replies), embedder=HashingEmbedder()
    )
    root = folder / "graph"
    with tgraph.open(root, create=True, parts=parts, settings={"claims.enabled": True}) as kg:
        kg.index([folder / "one.txt", folder / "two.txt"])
        yield kg


def rows(graph, *arguments: str) -> list[dict[str, str]]:
    result = graph.audit("contradictions", *arguments)
    return [dict(zip(result.audit.columns, row, strict=True)) for row in result.rows]


def test_each_kind_is_listed_once_with_the_documents_of_both_sides(graph):
    found = rows(graph)
    assert sorted(row["kind"] for row in found) == ["claims", "denial", "values"]
    for row in found:
        assert row["subject"] == "Marie Curie"
        ends = {row["sources"].rpartition("/")[2], row["other_sources"].rpartition("/")[2]}
        assert ends == {"one.txt", "two.txt"}
    values = next(row for row in found if row["kind"] == "values")
    assert "1866" in values["statement"]
    assert "1867-11-07" in values["other"]


def test_a_date_that_is_less_exact_does_not_disagree(graph):
    assert not any("1934" in row["statement"] + row["other"] for row in rows(graph))


def test_the_audit_can_be_about_one_thing(graph):
    assert len(rows(graph, "marie")) == 3
    assert rows(graph, "Becquerel") == []


def test_the_list_of_what_there_is_once_is_read_from_the_query():
    assert once_only()["urn:trustgraph:relation:born"] == "birth"
    assert len(set(once_only().values())) >= 5


def test_an_answer_that_cites_one_side_notes_both(graph):
    answer = graph.ask("When was Marie Curie born?", history=[])
    cited = {c.item for s in answer.sentences for c in s.citations}
    assert answer.notes
    for note in answer.notes:
        assert cited & set(note.facts)
        assert {place.path.rpartition("/")[2] for place in note.places} == {"one.txt", "two.txt"}
        assert "disagree" in note.text
    trace = graph.trace(answer.session)
    assert [note.text for note in trace.notes] == [note.text for note in answer.notes]
    assert all(len(note.places) == 2 for note in trace.notes)
    page = unescape(graph.export(answer.session, "html").decode())
    assert all(note.text in page for note in trace.notes)
    assert all(place.quote in page for note in trace.notes for place in note.places)
    shapes = run_audit(
        graph.opened.read(),
        collection_iri("explainability"),
        find_audit("shapes"),
        [answer.session],
    )
    assert shapes.passed, shapes.rows


def test_an_answer_from_chunks_notes_what_stands_at_the_cited_characters(graph):
    answer = graph.ask("When was Marie Curie born?", "basic", history=[])
    assert answer.sentences
    assert any("1866" in note.text for note in answer.notes)


def test_the_command_prints_the_rows(graph):
    root = str(graph.root)
    result = CliRunner().invoke(cli, ["audit", "contradictions", "--format", "json", "-r", root])
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)) == 3
