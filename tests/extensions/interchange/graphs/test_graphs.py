"""Graphs of GraphRAG, LightRAG and TrustGraph come in with their texts, communities and reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tgraph
from tests.support import graphs
from tests.support.graphs import rows_of
from tests.support.shared_data import shared
from tgraph import vocabulary as v
from tgraph.extensions.interchange import hash_knowledge, import_graph
from tgraph.extensions.interchange.graphs.graphrag import date_literal
from tgraph.extensions.interchange.graphs.text_units import split_weight

SORVIK = v.entity_iri("Sorvik")


def levels(graph: tgraph.KnowledgeGraph) -> list[tuple[int, int]]:
    query = (
        "SELECT ?c ?l (COUNT(?m) AS ?n) WHERE { ?c a tg:Community ; tg:level ?l ; tg:member ?m }"
    )
    rows = rows_of(graph, f"{query} GROUP BY ?c ?l")
    return sorted((int(row["l"].value), int(row["n"].value)) for row in rows)


def titles(graph: tgraph.KnowledgeGraph) -> set[str]:
    rows = rows_of(graph, "SELECT ?t WHERE { ?r a tg:CommunityReport ; rdfs:label ?t }")
    return {row["t"].value for row in rows}


GIVEN = {title for title, *_ in graphs.REPORTS}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph of version 3, imported."""
    folder = tmp_path_factory.mktemp("graphrag")
    tables = graphs.write_tables(folder / "v3", 3)
    with graphs.opened(folder / "g") as graph:
        report = import_graph(graph, [tables])
    assert not report.failed
    assert not report.skipped
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_generation_says_the_same(indexed: Path, version: int, tmp_path: Path) -> None:
    tables = graphs.write_tables(tmp_path / "tables", version)
    with graphs.opened(tmp_path / "g") as graph, graphs.opened(indexed / "g") as newest:
        import_graph(graph, [tables])
        assert hash_knowledge(graph) == hash_knowledge(newest)
        assert levels(graph) == levels(newest)
        assert titles(graph) == titles(newest) == GIVEN


@pytest.mark.slow
def test_all_of_it_is_there_with_its_places(indexed: Path) -> None:
    with graphs.opened(indexed / "g") as graph:
        found = hash_knowledge(graph)
        assert (found.entities, found.edges, found.claims) == (4, 3, 1)
        assert levels(graph) == [(0, 4), (1, 2)]
        quotes = rows_of(
            graph,
            "SELECT ?q ?at ?w WHERE { ?e tg:edge ?t ; tg:quote ?q ; tg:charOffset ?at . "
            "?t tg:weight ?w }",
        )
        for row in quotes:
            at, quote = int(row["at"].value), row["q"].value
            assert graphs.TEXT[at : at + len(quote)] == quote
        rows = rows_of(graph, "SELECT ?w WHERE { ?e tg:weight ?w }")
        assert sorted(float(row["w"].value) for row in rows) == [1.0, 1.0, 2.0]
        assert graph.audit("integrity").passed
        assert graph.audit("knowledge").passed


def test_findings_rest_on_what_they_speak_of(indexed: Path) -> None:
    with graphs.opened(indexed / "g") as graph:
        rows = rows_of(
            graph,
            "SELECT ?said ?q WHERE { ?f a tg:Finding ; tg:summaryText ?said . "
            "?f prov:wasDerivedFrom ?e . ?e tg:quote ?q }",
        )
        found: dict[str, set[str]] = {}
        for row in rows:
            found.setdefault(row["said"].value, set()).add(row["q"].value)
    assert found.keys() == {one for one, _ in graphs.FINDINGS}
    assert "Mira Holm built the lighthouse at Sorvik in 1887." in found["It was built in 1887"]
    assert all(quote in graphs.TEXT for quotes in found.values() for quote in quotes)


@pytest.mark.slow
def test_again_is_no_change(indexed: Path) -> None:
    with graphs.opened(indexed / "g") as graph:
        before = hash_knowledge(graph)
        report = import_graph(graph, [indexed / "v3"])
        assert not report.indexed
        assert len(report.unchanged) == 2
        assert hash_knowledge(graph) == before


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False], ids=["after the graph", "before the graph"])
def test_given_communities_stand_while_the_graph_stands_alone(tmp_path: Path, first: bool) -> None:
    """The order of what came makes no difference."""
    tables = graphs.write_tables(tmp_path / "v3", 3)
    other = tmp_path / "other.ttl"
    other.write_text(
        f"<{SORVIK}> a <{v.type_iri('geo')}> ; <http://www.w3.org/2000/01/rdf-schema#label>"
        f' "SORVIK" ; <{v.relation_iri("lies in")}> <{v.entity_iri("norway")}> .\n'
    )
    with graphs.opened(tmp_path / "g") as graph:
        for path in (tables, other) if first else (other, tables):
            assert not import_graph(graph, [path]).failed
        assert not GIVEN & titles(graph)
        graph.retract(str(other), reason="It is wrong.")
        assert titles(graph) == GIVEN
        assert levels(graph) == [(0, 4), (1, 2)]
        assert graph.audit("knowledge").passed


@pytest.mark.slow
def test_what_has_no_known_text_rests_on_a_row(tmp_path: Path) -> None:
    rows = graphs.tables(3)
    rows["entities"][3]["text_unit_ids"] = ["nowhere"]
    rows["relationships"][2]["text_unit_ids"] = []
    rows["relationships"].append({**rows["relationships"][0], "id": "bad", "source": None})
    rows["text_units"][1]["text"] = "Another text. Jon Dahl kept the lighthouse at Sorvik."
    tables = graphs.write_tables(tmp_path / "v3", 3, **rows)
    with graphs.opened(tmp_path / "g") as graph:
        report = import_graph(graph, [tables])
        assert [(one.row, one.file) for one in report.skipped] == [(4, "relationships.parquet")]
        assert hash_knowledge(graph).edges == 3
        places = {document.title for document in graph.documents.summaries()}
        assert places == {
            *("sorvik.txt", "Text unit unit-1", "Rows without a text", "Community reports")
        }
        assert '"entity": "BERGEN"' in graph.documents.read_text("Rows without a text")


def test_a_table_that_is_none_is_told(tmp_path: Path) -> None:
    tables = graphs.write_tables(tmp_path / "v3", 3)
    (tables / "relationships.parquet").write_bytes(b"no parquet")
    with graphs.opened(tmp_path / "g") as graph:
        (failed,) = import_graph(graph, [tables]).failed
        assert failed.path.endswith("relationships.parquet")
        assert failed.message.startswith("It is no parquet file")


def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = graphs.write_tables(tmp_path / "v3", 3)
    (tmp_path / "places").mkdir()
    (tmp_path / "places" / "pyarrow.py").write_text("raise ModuleNotFoundError('pyarrow')")
    monkeypatch.syspath_prepend(str(tmp_path / "places"))
    with graphs.opened(tmp_path / "g") as graph:
        (failed,) = import_graph(graph, [tables]).failed
    assert "tgraph-rag[parquet]" in str(failed)


@pytest.mark.slow
def test_an_erasure_reaches_reports(tmp_path: Path) -> None:
    tables = graphs.write_tables(tmp_path / "v3", 3)
    with graphs.opened(tmp_path / "g") as graph:
        import_graph(graph, [tables])
        graph.purge("Community reports", reason="Nobody may read these.")
        assert not titles(graph) & GIVEN
        assert graph.audit("integrity").passed
    kept = b"".join(p.read_bytes() for p in (tmp_path / "g").rglob("*") if p.is_file())
    assert b"It is all there is." not in kept


# --- LightRAG ---


def lightrag(folder: Path) -> Path:
    import networkx

    graph = networkx.Graph()
    for title, kind, said, units in graphs.ENTITIES:
        source = "<SEP>".join(graphs.ids("unit", units))
        graph.add_node(title, entity_id=title, entity_type=kind, description=said, source_id=source)
    for one, other, said, weight, units in graphs.TIES:
        source = "<SEP>".join(graphs.ids("unit", units))
        told = {"description": said, "weight": weight, "keywords": "light, sea"}
        graph.add_edge(one, other, source_id=source, **told)
    folder.mkdir()
    networkx.write_graphml(graph, folder / "graph_chunk_entity_relation.graphml")
    chunks = {
        f"unit-{n}": {"content": said, "full_doc_id": "d", "chunk_order_index": n}
        for n, said in enumerate(graphs.UNITS)
    }
    (folder / "kv_store_text_chunks.json").write_text(json.dumps(chunks))
    documents = {"d": {"content": graphs.TEXT, "file_path": "sorvik.txt"}}
    (folder / "kv_store_full_docs.json").write_text(json.dumps(documents))
    return folder


def custom(path: Path) -> Path:
    told = {
        "chunks": [
            {"content": said, "source_id": f"unit-{n}"} for n, said in enumerate(graphs.UNITS)
        ],
        "entities": [
            {
                "entity_name": title,
                "entity_type": kind,
                "description": said,
                "source_id": "<SEP>".join(graphs.ids("unit", units)),
            }
            for title, kind, said, units in graphs.ENTITIES
        ],
        "relationships": [
            {
                "src_id": one,
                "tgt_id": other,
                "description": said,
                "keywords": "light, sea",
                "weight": weight,
                "source_id": "<SEP>".join(graphs.ids("unit", units)),
            }
            for one, other, said, weight, units in graphs.TIES
        ],
    }
    path.write_text(json.dumps(told))
    return path


def test_lightrag_folders_and_custom_graphs_say_the_same(tmp_path: Path) -> None:
    with graphs.opened(tmp_path / "g") as graph, graphs.opened(tmp_path / "h") as other:
        assert not import_graph(graph, [lightrag(tmp_path / "work")]).failed
        assert not import_graph(other, [custom(tmp_path / "custom.json")]).failed
        found = hash_knowledge(graph)
        same = hash_knowledge(other)  # whose edges have a direction, unlike LightRAG's
        assert (found.entities, found.edges) == (same.entities, same.edges)
        assert (found.entities, found.edges) == (4, 3)
        rows = rows_of(graph, "SELECT DISTINCT ?k WHERE { ?e tg:keyword ?k }")
        assert {row["k"].value for row in rows} == {"light", "sea"}
        assert [document.title for document in graph.documents.summaries()] == ["sorvik.txt"]
        assert graph.audit("integrity").passed


@pytest.mark.parametrize("weight", ["NaN", "Infinity", "1e400", f"1{'0' * 400}", '"x"', "null"])
def test_a_weight_that_is_no_number_stops_no_import(tmp_path: Path, weight: str) -> None:
    text = json.dumps(json.loads(custom(tmp_path / "c.json").read_text()))
    one = json.loads(text)["relationships"][0]["weight"]
    (tmp_path / "c.json").write_text(text.replace(f'"weight": {one}', f'"weight": {weight}'))
    (tmp_path / "own.ttl").write_text(f"""
        @prefix tg: <{v.TG}> . @prefix rdf: <{v.RDF}> .
        <urn:example:a> a tg:Entity .
        <urn:example:1> a tg:Edge ; tg:weight "{weight.strip('"')}" ;
          rdf:reifies <<( <urn:example:a> <urn:example:knows> <urn:example:b> )>> .
    """)
    with graphs.opened(tmp_path / "g") as graph:
        report = import_graph(graph, [tmp_path / "c.json", tmp_path / "own.ttl"])
        assert not report.failed
        assert hash_knowledge(graph).edges == 4


# --- TrustGraph ---


@pytest.mark.parametrize("holds", ["contains", "reifies"])
def test_trustgraphs_subgraphs_are_sources(tmp_path: Path, holds: str) -> None:
    e, tg, prov = "https://trustgraph.ai/e/", v.TG, v.PROV
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    said = f"<{e}mira> <{e}built> <{e}light>"
    lines = [
        f'<{e}mira> {label} "Mira Holm" .',
        f'<{e}light> {label} "lighthouse" .',
        f'<{e}built> {label} "built" .',
        f"{said} .",
        f"<urn:sub:1> <{tg}{holds}> <<( {said} )>> <urn:graph:source> .",
        f"<urn:sub:1> <{prov}wasDerivedFrom> <urn:chunk:1> <urn:graph:source> .",
        f"<urn:chunk:1> <{prov}wasDerivedFrom> <urn:doc:1> <urn:graph:source> .",
    ]
    file = tmp_path / "core.nq"
    file.write_text("\n".join(lines) + "\n")
    with graphs.opened(tmp_path / "g") as graph:
        assert not import_graph(graph, [file]).failed
        rows = rows_of(graph, "SELECT ?s WHERE { ?e prov:hadPrimarySource ?s ; tg:edge ?t }")
        assert {row["s"].value for row in rows} == {"urn:chunk:1", "urn:doc:1"}


# --- a real index ---


@pytest.mark.slow
def test_operation_dulce(tmp_path: Path) -> None:
    """All of a real index is there, and questions are cited to its text units."""
    from pyarrow import parquet

    folder = shared("operation_dulce")
    count = {
        name: parquet.read_metadata(folder / f"{name}.parquet").num_rows
        for name in ("entities", "relationships", "covariates", "communities", "community_reports")
    }
    with graphs.opened(tmp_path / "g") as graph:
        report = import_graph(graph, [folder])
        assert not report.failed
        assert not report.skipped
        found = hash_knowledge(graph)
        named = parquet.read_table(folder / "entities.parquet")["title"].to_pylist()
        there = {
            row["l"].value for row in rows_of(graph, "SELECT ?l { ?e a tg:Entity ; rdfs:label ?l }")
        }
        assert set(named) <= there
        assert len(named) == count["entities"]
        assert (found.edges, found.claims) == (count["relationships"], count["covariates"])
        assert len(levels(graph)) == count["communities"]
        told = parquet.read_table(folder / "community_reports.parquet")["title"].to_pylist()
        rows = rows_of(
            graph,
            "SELECT ?r ?t WHERE { ?r a tg:CommunityReport ; rdfs:label ?t ; tg:finding ?f . "
            "?f prov:wasDerivedFrom ?e . ?e tg:quote ?q } GROUP BY ?r ?t",
        )
        assert sorted(row["t"].value for row in rows) == sorted(told)
        asked = {
            "local": "What is the role of Sam Rivera?",
            "global": "What are the main themes?",
            "graph": "What is the role of Sam Rivera?",
        }
        for mode, question in asked.items():
            answer = graph.ask(question, mode, history=[])
            assert not answer.no_evidence
            assert {c.title for s in answer.sentences for c in s.citations} == {"dulce.txt"}


# --- values ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-03-01T00:00:00", '"2024-03-01"'),
        ("2024-03-01T10:20:30Z", '"2024-03-01T10:20:30Z"'),
        ("2024-03", '"2024-03"'),
        ("2024", '"2024"'),
        ("NONE", ""),
        ("2024-13-01", ""),
    ],
)
def test_dates_are_as_exact_as_they_are_said(text: str, value: str) -> None:
    found = date_literal(text)
    assert (str(found).partition("^^")[0] if found else "") == value


@pytest.mark.parametrize(("weight", "count"), [(1.0, 3), (0.1, 7), (9.5, 1)])
def test_shares_add_up(weight: float, count: int) -> None:
    assert len(split_weight(weight, count)) == count
    assert round(sum(split_weight(weight, count)), 6) == weight
