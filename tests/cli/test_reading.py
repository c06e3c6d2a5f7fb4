"""The commands that read the record: sessions, trace, source, audit, sparql."""

from __future__ import annotations

import csv
import io
import json
import os

import jsonschema
import pyoxigraph
import pytest

from tgraph.cli.terminal import create_console
from tgraph.engine.schemas import build_schemas
from tgraph.explain.audit.named_audits import list_audits

from .conftest import CURIE, QUESTION, SHIPS


@pytest.fixture
def run(terminal):
    """Runs a command on the shared graph."""
    return lambda name, *arguments, **options: terminal(
        name, "-r", str(terminal.root), *arguments, **options
    )


@pytest.fixture
def answered(terminal):
    """The session of a question that was answered, asked now."""
    return json.loads(terminal.ask("--json", QUESTION).stdout)


def test_sessions_are_listed_newest_first(run, answered):
    found = json.loads(run("sessions", "--json").stdout)
    jsonschema.validate(found, build_schemas()["sessions"])
    assert found[0]["explain_id"] == answered["explain_id"]
    assert [s["started"] for s in found] == sorted((s["started"] for s in found), reverse=True)
    assert {s["status"] for s in found} >= {"completed", "no-evidence"}
    assert len(json.loads(run("sessions", "--format", "json", "--limit", "1").stdout)) == 1


def test_the_table_of_sessions_has_whole_ids_and_questions(run, answered):
    table = run("sessions").stdout
    assert answered["explain_id"].rpartition(":")[2] in table
    assert QUESTION in table


@pytest.mark.parametrize("cut", [0, len("urn:trustgraph:session:"), -20])
def test_a_trace_is_found_by_iri_uuid_prefix_and_last(run, answered, cut):
    full = answered["explain_id"]
    name = {0: full}.get(cut, full[len("urn:trustgraph:session:") :])
    name = name[:cut] if cut < 0 else name
    for session in (name, "last"):
        trace = json.loads(run("trace", session, "--format", "json").stdout)
        assert trace["explain_id"] == full


def test_a_trace_leads_from_the_answer_to_the_characters(run, answered):
    shown = run("trace", "last").stdout
    citation = answered["sentences"][0]["citations"][0]
    expected = [
        QUESTION,
        answered["sentences"][0]["text"],
        "reason: ",
        f"characters {citation['start']}–{citation['end']}",
        "Candidates",
        "Steps",
    ]
    places = [shown.index(text) for text in expected]
    assert places == sorted(places)


def test_all_lists_what_was_rejected(terminal, run):
    terminal.ask("--edge-limit", "1", QUESTION)
    trace = json.loads(run("trace", "--format", "json").stdout)
    assert trace["rejected"]
    assert all(edge["reasoning"] for edge in trace["rejected"])
    assert trace["selected"][0]["evidence"][0]["chunk"] in run("trace", "--all").stdout
    brief, whole = run("trace").stdout, run("trace", "--all").stdout
    assert "--all" in brief
    assert len(whole.splitlines()) >= len(brief.splitlines()) + len(trace["rejected"])


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("trig", pyoxigraph.RdfFormat.TRIG),
        ("nquads", pyoxigraph.RdfFormat.N_QUADS),
        ("turtle", pyoxigraph.RdfFormat.TURTLE),
    ],
)
def test_a_trace_as_rdf_reaches_the_document(run, answered, tmp_path, name, format):
    target = tmp_path / "trace"
    assert run("trace", "--format", name, "-o", str(target)).stdout == ""
    assert target.read_bytes().decode() == run("trace", "--format", name).stdout
    store = pyoxigraph.Store()
    store.extend(pyoxigraph.parse(target.read_bytes(), format))
    query = f"""
        PREFIX prov: <http://www.w3.org/ns/prov#>
        PREFIX tg: <https://trustgraph.ai/ns/>
        ASK {{
          <{answered["sentences"][0]["citations"][0]["edge_selection"]}>
            prov:wasDerivedFrom+ <{answered["sources"][0]["document"]}> ; tg:edge <<?s ?p ?o>> }}"""
    assert store.query(query, use_default_graph_as_union=True)


def test_what_is_written_to_a_file_leaves_pipes_links_and_folders_alone(run, tmp_path):
    (tmp_path / "here").touch()
    (tmp_path / "link").symlink_to(tmp_path / "here")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for name in ("link", "pipe"):
        run("export", "--format", "dot", "-o", str(tmp_path / name))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "here").read_text().startswith("digraph")
    assert os.read(reader, 7) == b"digraph"
    os.close(reader)
    missing = run("export", "-o", str(tmp_path / "none" / "x.trig"), code=2)
    assert "the folder doesn't exist" in missing.stderr
    assert not (tmp_path / "none").exists()


def test_a_narrow_terminal_gets_sessions_one_below_the_other(run, monkeypatch):
    monkeypatch.setattr("tgraph.cli.trace.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    lines = run("sessions").stdout.splitlines()
    assert max(map(len, lines)) <= 40
    assert any(line.startswith("  completed, graph: ") for line in lines)


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_sessions_are_told_in_whole_cells(run, monkeypatch, columns):
    monkeypatch.setattr("tgraph.cli.trace.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    found = json.loads(run("sessions", "--json").stdout)
    lines = run("sessions").stdout.splitlines()
    assert max(map(len, lines)) <= columns
    for session in found:
        assert any(session["started"][:19].replace("T", " ") in line for line in lines)
        question = " ".join(session["question"].split())
        assert any(question[:25] in line for line in lines)


def test_a_terminal_that_is_dumb_has_the_width_that_it_says(monkeypatch):
    for name, value in (("TERM", "dumb"), ("FORCE_COLOR", "1"), ("COLUMNS", "40")):
        monkeypatch.setenv(name, value)
    assert create_console().is_dumb_terminal
    assert create_console().width == 40


@pytest.mark.parametrize("name", ["costs", "slowest-steps", "documents-of-answer"])
def test_an_audit_breaks_no_word_on_any_terminal(run, answered, monkeypatch, name):
    monkeypatch.setattr("tgraph.cli.audit.is_terminal", lambda: True)
    call = ["audit", name, *(["last"] if name == "documents-of-answer" else [])]
    rows = json.loads(run(*call, "--json").stdout)
    words = {word for row in rows for pair in row.items() for cell in pair for word in cell.split()}
    forms = []
    for width in (30, 80, 110, 150, 400):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = run(*call).stdout
        found = shown.replace(": ", " ").replace(":\n", " ").split()
        assert words <= {*found, *(word.rstrip(":") for word in found)}
        stacked = "───" not in shown
        longest = max(map(len, words)) if stacked else 0
        assert max(map(len, shown.splitlines())) <= max(width, longest + 4)
        forms.append(stacked)
    assert forms == sorted(forms, reverse=True)
    assert {*forms} == {True, False}


@pytest.mark.parametrize("name", ["0000-not-one", ""])
def test_an_unknown_session_is_one_sentence(run, name):
    result = run("trace", name, code=2)
    assert result.stderr.startswith("Error: ")
    assert "tgraph sessions" in result.stderr


def test_source_text_is_untranslated(run):
    result = run("source", "ships.txt", "--text")
    assert result.stdout_bytes == SHIPS.encode()


def test_source_shows_what_was_extracted_and_where(run, documents):
    tree = json.loads(run("source", str(documents / "curie.md"), "--format", "json").stdout)
    (page,) = tree["pages"]
    edges = [edge for chunk in page["chunks"] for edge in chunk["edges"]]
    assert edges
    for edge in edges:
        assert CURIE[edge["start"] : edge["end"]] == edge["quote"]
    shown = run("source", "Marie Curie", "--show-content").stdout
    assert tree["document"]["document"] in shown
    assert f"“{edges[0]['quote']}”" in shown


def test_a_document_is_found_by_what_people_type(run, documents):
    iri = json.loads(run("source", "curie.md", "--format", "json").stdout)["document"]["document"]
    for name in (
        iri,
        iri.rpartition(":")[2][:12],
        "marie curie",
        "curie",
        str(documents / "curie.md"),
    ):
        found = json.loads(run("source", name, "--format", "json").stdout)
        assert found["document"]["document"] == iri
    assert "There is no document" in run("source", "nothing", code=2).stderr
    assert "Did you mean curie.md" in run("source", "curei.md", code=2).stderr
    assert "Did you mean uncited" in run("audit", "uncite", code=2).stderr


@pytest.mark.parametrize("arguments", [("--page", "1"), ("--text", "--page", "1")])
def test_a_page_that_there_is_not_is_refused(run, arguments):
    run("source", "curie.md", *arguments, code=2)


@pytest.mark.slow
def test_every_audit_runs_in_every_format(run, answered):
    edge = answered["sentences"][0]["citations"][0]["edge"]
    arguments = {
        "answers-on-document": ["curie.md"],
        "answers-on-edge": [edge],
        "shapes": ["last"],
    }
    for audit in list_audits():
        values = arguments.get(audit.name, [])
        rows = json.loads(run("audit", audit.name, *values, "--format", "json").stdout)
        assert all(tuple(row) == audit.columns for row in rows)
        table = list(
            csv.reader(io.StringIO(run("audit", audit.name, *values, "--format", "csv").stdout))
        )
        assert tuple(table[0]) == audit.columns
        assert len(table) == len(rows) + 1
        run("audit", audit.name, *values)


def test_the_list_of_audits_says_what_each_answers(run):
    shown = " ".join(run("audit", "--list").stdout.split())
    for audit in list_audits():
        assert audit.name in shown
        assert audit.question in shown


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["uncited", "x"],
        ["answers-on-edge"],
        ["answers-on-edge", "f00"],
        ["never-selected", "many"],
    ],
)
def test_an_audit_called_wrongly_is_wrong_usage(run, arguments):
    assert "Traceback" not in run("audit", *arguments, code=2).output


@pytest.mark.parametrize("format", ["json", "csv", "tsv", "xml", "table"])
def test_the_specification_s_own_queries_run(run, format):
    for query in (
        "SELECT ?subgraph WHERE { ?subgraph tg:contains << ?s ?p ?o >> }",
        "SELECT * WHERE { ?sel tg:edge << ?s ?p ?o >> }",
    ):
        shown = run("sparql", query, "--format", format).stdout
        assert "urn:trustgraph:" in shown


def test_a_query_comes_from_the_argument_a_flag_a_file_or_standard_input(run, tmp_path):
    query = "ASK { ?session a tg:Session }"
    file = tmp_path / "query.rq"
    file.write_text(query)
    expected = run("sparql", query, "--format", "json").stdout
    for arguments in (("-q", query), ("-i", str(file)), ("-i", "-"), (), ("-",), ("-q", "-")):
        assert run("sparql", *arguments, "--format", "json", input=query).stdout == expected
    run("sparql", code=2)
    run("sparql", query, "-q", query, code=2)


def test_construct_gives_turtle(run):
    shown = run(
        "sparql", "CONSTRUCT WHERE { ?a a tg:Answer ; prov:wasDerivedFrom ?b }", "-l", "2"
    ).stdout
    assert len(list(pyoxigraph.parse(shown.encode(), pyoxigraph.RdfFormat.TURTLE))) == 2
    assert (
        "can't be written as csv"
        in run("sparql", "CONSTRUCT WHERE { ?a ?b ?c }", "--format", "csv", code=1).stderr
    )


def test_rows_are_limited_when_asked(run):
    rows = run("sparql", "SELECT ?s WHERE { ?s ?p ?o }", "-l", "3", "--format", "csv").stdout
    assert len(rows.splitlines()) == 4
    document = json.loads(
        run("sparql", "SELECT * { ?s ?p ?o }", "-l", "3", "--format", "json").stdout
    )
    assert len(document["results"]["bindings"]) == 3


@pytest.mark.slow
def test_a_long_table_says_that_it_is_cut(run):
    query = "SELECT ?a ?b { ?a rdf:type ?x . ?b rdf:type ?y }"
    shown = run("sparql", query)
    assert "first 1000 rows" in shown.stderr
    assert len(shown.stdout.splitlines()) == 1002


@pytest.mark.parametrize(
    "query", ["SELECT", "SELECT * { SERVICE <http://x/> {} }", "INSERT DATA { tg:a tg:b tg:c }"]
)
def test_a_query_that_may_not_run_is_one_sentence(run, query):
    result = run("sparql", query, code=1)
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
