"""The audit of what answers depend on without citing it, against a writer that is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.audit.named_audits import find_audit, run_audit
from tgraph.extensions.lab import measure_influence
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock
from tgraph.testing.script import parse_blocks

CARGOES = ("Aster", "Boreal", "Cobalt")
QUESTION = "What did Fram carry?"
HIDDEN, CITED = "Cobalt was the heaviest of all.", "Aster was loaded first."


def choose_all(request: Any) -> str:
    rows = [json.loads(row) for row in parse_blocks(request.messages)["EDGES"].splitlines()]
    return "\n".join(
        json.dumps({"id": row["id"], "reasoning": "It is about Fram.", "score": 0.5})
        for row in rows
    )


def write(request: Any) -> str:
    """Says one thing from what it cites, and another that it cites something else for."""
    listed = [json.loads(row) for row in parse_blocks(request.messages)["EVIDENCE"].splitlines()]
    ids = {name: row["id"] for row in listed for name in CARGOES if name in json.dumps(row)}
    said = [(CITED, "Aster", "Aster"), (HIDDEN, "Cobalt", "Boreal")]
    lines = [
        json.dumps({"sentence": text, "citations": [ids[cites]] if cites in ids else []})
        for text, needs, cites in said
        if needs in ids
    ]
    return "\n".join(lines) or '{"no_evidence": true}'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("audit-influence")
    text = " ".join(f"Fram carried {name}." for name in CARGOES)
    (folder / "fram.txt").write_text(f"{text}\n", "utf-8")
    replies: dict[str, Any] = {
        "select_edges": choose_all,
        "synthesise_answer": write,
        "answer_alone": json.dumps({"sentence": "Ships sail."}),
    }
    parts = Components(
        load_settings(None, {"summaries.enabled": False}),
        folder / "cache",
        chat=ScriptedModel(replies),
        embedder=HashingEmbedder(),
    )
    with tgraph.open(folder / "graph", create=True, parts=parts, clock=ticking_clock()) as kg:
        kg.index([Path(folder / "fram.txt")])
        kg.ask(QUESTION, history=[])
        yield kg


def found(graph: KnowledgeGraph) -> list[dict[str, str]]:
    result = graph.audit("uncited-influence")
    assert result.passed is None
    return [dict(zip(result.audit.columns, row, strict=True)) for row in result.rows]


def test_only_what_is_not_cited_and_matters_is_told(graph):
    assert found(graph) == []
    trace = graph.trace("last")
    assert {s.text for s in trace.sentences} == {HIDDEN, CITED}
    (hidden,) = (item for item in trace.selected if "Cobalt" in item.label)
    influence = measure_influence(graph, trace.explain_id)
    rows = found(graph)
    assert {row["edge"] for row in rows} == {hidden.item}
    assert influence.gap.influential_uncited == (hidden.iri,)
    weights = {i.selection: i.weight for i in influence.items}
    assert {row["sentence"]: float(row["weight"]) for row in rows} == {
        "": weights[hidden.iri],
        HIDDEN: 1.0,
    }
    assert {row["session"] for row in rows} == {trace.explain_id}
    assert all("Cobalt" in row["fact"] and float(row["floor"]) < 1 for row in rows)


def test_a_later_analysis_takes_the_place_of_an_earlier(graph):
    if not found(graph):
        measure_influence(graph, "last")
    store = OxigraphStore.memory(graph.opened.read().match())
    answer = NamedNode(
        v.answer_iri(graph.sessions.summaries()[0].explain_id.removeprefix(v.session_iri("")))
    )
    later, bundle = NamedNode(v.influence_analysis_iri("later")), NamedNode(v.bundle_iri("later"))
    time = Literal("2999-01-01T00:00:00Z", datatype=v.xsd("dateTime"))
    said = [
        Quad(later, v.RDF_TYPE, v.tg("InfluenceAnalysis"), bundle),
        Quad(later, v.prov("used"), answer, bundle),
        Quad(later, v.prov("startedAtTime"), time, bundle),
    ]
    audit = find_audit("uncited-influence")
    store.extend(said)
    assert run_audit(store, v.collection_iri("explainability"), audit).rows
    store.extend([Quad(later, v.tg("status"), Literal("completed"), bundle)])
    assert not run_audit(store, v.collection_iri("explainability"), audit).rows
