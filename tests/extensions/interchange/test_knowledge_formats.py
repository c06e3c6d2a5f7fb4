"""What a graph knows goes out in the formats of others, and comes back the same."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyoxigraph import RdfFormat, parse

import tgraph
from tests.support import graphs
from tests.support.graphs import rows_of
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.errors import UsageError
from tgraph.extensions.interchange import export_knowledge, hash_knowledge, import_graph
from tgraph.extensions.interchange.knowledge.notes import escape_markdown, file_names

HOSTILE = (
    ('=HYPERLINK("x")', "PERSON", "A name [[like]] a *formula* <b>.\nIgnore\u202eall.", (0,)),
    ("CON", "GEO", "../../etc: a name of a device.", (1,)),
    ("Con.", "GEO", 'Another, but for its full stop, ends in ¦ and "quotes" \\.', (1,)),
)
SUFFIX = {"trig": "trig", "turtle": "ttl", "nquads": "nq", "graphml": "graphml"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with entities, weights, descriptions, a claim, values, communities and hostile
    texts."""
    folder = tmp_path_factory.mktemp("exported")
    rows = graphs.tables(3)
    rows["entities"] += [
        {
            "id": f"hostile-{n}",
            "human_readable_id": 100 + n,
            "title": title,
            "type": kind,
            "description": said,
            "text_unit_ids": graphs.ids("unit", units),
        }
        for n, (title, kind, said, units) in enumerate(HOSTILE)
    ]
    tables = graphs.write_tables(folder / "v3", 3, **rows)
    more = folder / "more.ttl"
    more.write_text(
        "@prefix e: <http://example.org/> . @prefix s: <http://www.w3.org/2004/02/skos/core#> .\n"
        'e:Lamp s:prefLabel "oil lamp" ; s:altLabel "lamp", "burner" ;\n'
        ' s:definition "It burns." ; s:definition "It lights." ; e:litIn 1887 .\n'
        f"<{v.entity_iri('sorvik')}> e:uses e:Lamp .\n"
    )
    with graphs.opened(folder / "g") as graph:
        report = import_graph(graph, [tables, more])
    assert not report.failed
    assert not report.skipped
    return folder / "g"


@pytest.fixture
def graph(root: Path) -> Iterator[tgraph.KnowledgeGraph]:
    with graphs.opened(root) as opened:
        yield opened


def written(graph: tgraph.KnowledgeGraph, name: str, **how: bool) -> bytes:
    out = BytesIO()
    export_knowledge(graph, out, name, **how)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sources"),
    [*product(("trig", "turtle", "nquads"), (False, True)), ("graphml", False)],
)
def test_it_comes_back_the_same(
    graph: tgraph.KnowledgeGraph, name: str, sources: bool, tmp_path: Path
) -> None:
    file = tmp_path / f"knowledge.{SUFFIX[name]}"
    export_knowledge(graph, file, name, sources=sources)
    with graphs.opened(tmp_path / "g") as fresh:
        report = import_graph(fresh, [file])
        assert not report.failed
        assert not report.skipped
        assert hash_knowledge(fresh) == hash_knowledge(graph)
        assert fresh.audit("integrity").passed
        assert fresh.audit("knowledge").passed


@pytest.mark.slow
def test_nquads_are_canonical(graph: tgraph.KnowledgeGraph) -> None:
    lines = written(graph, "nquads").decode().replace("\\u202e", "\u202e")
    assert sha256(lines.encode()).hexdigest() == hash_knowledge(graph).hash
    assert lines.splitlines() == sorted(set(lines.splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trig", "turtle", "nquads", "graphml"])
def test_an_export_is_the_same_each_time_and_commands_no_terminal(
    graph: tgraph.KnowledgeGraph, name: str
) -> None:
    first = written(graph, name)
    assert first == written(graph, name)
    assert "\u202e" not in first.decode()


def test_sources_are_exact(graph: tgraph.KnowledgeGraph) -> None:
    quads = list(parse(written(graph, "trig", sources=True), RdfFormat.TRIG))
    quotes = {q.object.value for q in quads if q.predicate == v.tg("quote")}
    assert "Mira Holm built the lighthouse at Sorvik in 1887." in quotes
    assert {str(q.graph_name) for q in quads} == {"DEFAULT", "<urn:graph:source>"}


@pytest.mark.slow
def test_graphrags_tables_come_back(root: Path, tmp_path: Path) -> None:
    """A graph of GraphRAG's kind: the same knowledge, communities and reports."""
    tables = graphs.write_tables(tmp_path / "v3", 3)
    with graphs.opened(tmp_path / "g") as first, graphs.opened(tmp_path / "h") as second:
        import_graph(first, [tables])
        export_knowledge(first, tmp_path / "out", "graphrag")
        assert not import_graph(second, [tmp_path / "out"]).failed
        assert hash_knowledge(second) == hash_knowledge(first)
        query = "SELECT ?t ?s WHERE { ?r a tg:CommunityReport ; rdfs:label ?t ; tg:summaryText ?s }"
        told = [
            sorted((row["t"].value, row["s"].value) for row in rows_of(each, query))
            for each in (first, second)
        ]
        assert told[0] == told[1] != []


def test_graphml_holds_every_node_and_edge(graph: tgraph.KnowledgeGraph, tmp_path: Path) -> None:
    from networkx import read_graphml

    export_knowledge(graph, tmp_path / "k.graphml", "graphml")
    found, known = read_graphml(tmp_path / "k.graphml"), hash_knowledge(graph)
    kinds = [told["kind"] for _, told in found.nodes(data=True)]
    assert (kinds.count("Entity"), kinds.count("Claim")) == (known.entities, known.claims)
    edges = [told for _, _, told in found.edges(data=True) if "weight" in told]
    assert len(edges) == known.edges


def test_csv_has_neo4js_headers_and_no_formulas(
    graph: tgraph.KnowledgeGraph, tmp_path: Path
) -> None:
    export_knowledge(graph, tmp_path / "csv", "csv", sources=True)
    files = {path.name: list(csv.reader(path.open())) for path in (tmp_path / "csv").iterdir()}
    assert files.keys() == {"nodes.csv", "relationships.csv", "evidence.csv"}
    assert {"id:ID", ":LABEL"} <= set(files["nodes.csv"][0])
    assert {":START_ID", ":END_ID", ":TYPE", "weight:double"} <= set(files["relationships.csv"][0])
    nodes = {row[0] for row in files["nodes.csv"][1:]}
    ends = {end for row in files["relationships.csv"][1:] for end in row[:2]}
    assert ends <= nodes
    cells = [cell for rows in files.values() for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)


def test_notes_are_linked_and_safe(graph: tgraph.KnowledgeGraph, tmp_path: Path) -> None:
    export_knowledge(graph, tmp_path / "notes", "markdown")
    notes = {p.stem: p.read_text("utf-8") for p in (tmp_path / "notes/entities").iterdir()}
    assert len({name.casefold() for name in notes}) == hash_knowledge(graph).entities
    assert "CON" not in notes
    assert "[[SORVIK|SORVIK]]" in notes["MIRA HOLM"]
    assert "> Mira Holm built the lighthouse at Sorvik in 1887." in notes["MIRA HOLM"]
    assert "sorvik.txt, characters 0–49" in notes["MIRA HOLM"].replace("\\", "")
    told = next(note for note in notes.values() if "HYPERLINK" in note)
    assert "\\[\\[like\\]\\] a \\*formula\\* \\<b\\>" in told
    assert "\u202e" not in told
    for name, note in notes.items():
        for link in note.split("[[")[1:]:
            target = link.partition("|")[0]
            assert "\\" in note.partition(f"[[{target}")[0][-2:] or target in notes, name
    assert (tmp_path / "notes/communities").is_dir()


def test_names_of_files() -> None:
    names = file_names([("1", "a/b"), ("2", "A b"), ("3", ".."), ("4", "nul"), ("5", "x" * 500)])
    assert names["1"] == "a b"
    assert names["2"].casefold() != "a b"
    assert len(set(names.values())) == 5
    assert names["4"] == "nul note"
    assert all(name and len(name) < 100 and "." not in name for name in names.values())
    assert escape_markdown("a\n# b") == "a \\# b"


@pytest.mark.parametrize("name", ["csv", "graphrag", "markdown"])
def test_several_files_need_a_folder_of_their_own(
    graph: tgraph.KnowledgeGraph, name: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="several files"):
        export_knowledge(graph, BytesIO(), name)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    with pytest.raises(UsageError, match="already"):
        export_knowledge(graph, tmp_path / "there", name)


def test_what_can_not_be_written_is_told(graph: tgraph.KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'xlsx'"):
        export_knowledge(graph, tmp_path / "x", "xlsx")
    with pytest.raises(UsageError, match="doesn't exist"):
        export_knowledge(graph, tmp_path / "no" / "x.trig", "trig")
    assert not list(tmp_path.iterdir())


def run(root: Path, *arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, ["export", *arguments, "--root", str(root)])
    return done.exit_code, done.stdout, done.stderr


def test_the_command(graph: tgraph.KnowledgeGraph, root: Path, tmp_path: Path) -> None:
    known = hash_knowledge(graph)
    code, out, told = run(root, "--knowledge", "--hash")
    assert (code, out.strip()) == (0, known.hash)
    assert f"{known.entities} entities" in told
    code, out, _ = run(root, "--knowledge", "--format", "nquads")
    assert (code, len(out.splitlines())) == (0, known.quads)
    file = tmp_path / "k.trig"
    assert run(root, "--knowledge", "-o", str(file))[0] == 0
    assert file.stat().st_mode & 0o077 == 0
    for wrong in (
        ("--knowledge", "last"),
        ("--knowledge", "--format", "svg"),
        ("--knowledge", "--format", "csv"),
        ("last", "--with-sources"),
        ("last", "--format", "csv"),
    ):
        assert run(root, *wrong)[0] == 2, wrong
    json.dumps(known._asdict())


def test_graphml_names_iris_only_as_others_may(tmp_path: Path) -> None:
    from networkx import MultiDiGraph, write_graphml

    made = MultiDiGraph()
    made.add_node(
        "urn:trustgraph:edge:1", kind="Entity", label="Bad", classes=f"no iri<SEP>{v.TG}Edge"
    )
    made.add_node("http://example.org/fine", kind="Entity", label="Fine")
    made.add_node("said", kind="Claim", label="Charge", status="TRUE", started="soon")
    made.add_node("unsaid", kind="Claim", label="Charge", status="perhaps")
    made.add_edge(
        "http://example.org/fine", "urn:trustgraph:edge:1", label="knows", relation="no iri"
    )
    made.add_edge("said", "http://example.org/fine", label="subject")
    write_graphml(made, tmp_path / "a.graphml")
    with graphs.opened(tmp_path / "g") as graph:
        report = import_graph(graph, [tmp_path / "a.graphml"])
        assert [row.row for row in report.skipped] == [4]
        found = {row["e"].value for row in rows_of(graph, "SELECT ?e WHERE { ?e a tg:Entity }")}
        assert found == {"http://example.org/fine", v.entity_iri("bad")}
        query = "SELECT ?s WHERE { ?c a tg:Claim ; tg:subject ?s MINUS { ?c tg:claimStart ?d } }"
        assert [row["s"].value for row in rows_of(graph, query)] == ["http://example.org/fine"]
        assert graph.audit("shapes").passed
        assert graph.audit("knowledge").passed
