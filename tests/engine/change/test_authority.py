"""Documents that a person has weighed: what ranks by it, what says so, and what stays as it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tgraph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.index.authority import Authorities
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.registry import MODES
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

TEXTS = {
    "log.txt": "The Aurora left Hobart on 24 December 1914. The ship carried twenty-eight men.",
    "gossip.txt": "The Aurora left Sydney on 24 December 1914. The ship carried forty men.",
}
CATALOGUE = v.collection_iri("explainability")
QUESTION = "From where did the Aurora leave?"


def opened(root: Path) -> tgraph.KnowledgeGraph:
    parts = Components(load_settings(None), root / "c", embedder=HashingEmbedder())
    return tgraph.open(root / "g", create=True, parts=parts)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("authority")
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    with opened(root) as graph:
        graph.index([root / name for name in TEXTS])
    return root


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> Iterator[tgraph.KnowledgeGraph]:
    shutil.copytree(made / "g", tmp_path / "g")
    with opened(tmp_path) as graph:
        yield graph


@pytest.fixture(scope="module")
def without_gossip(
    made: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tgraph.KnowledgeGraph]:
    root = tmp_path_factory.mktemp("without")
    shutil.copytree(made / "g", root / "g")
    with opened(root) as graph:
        graph.documents.set_authority("gossip.txt", 0, reason="Invented.")
        yield graph


def first(answer: tgraph.Answer) -> str:
    return Path(answer.sentences[0].citations[0].path).name


def places(answer: tgraph.Answer) -> set[str]:
    return {Path(c.path).name for s in answer.sentences for c in s.citations}


def ask(graph: tgraph.KnowledgeGraph, mode: str = "graph") -> tgraph.Answer:
    return graph.ask(QUESTION, mode, history=[])


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_believed_less_comes_later(graph: tgraph.KnowledgeGraph, name: str):
    graph.documents.set_authority(name, 0.2, reason="Hearsay.")
    answer = ask(graph)
    assert first(answer) == next(other for other in TEXTS if other != name)
    weighed = [s for s in answer.selection if s.candidate.authority == 0.2]
    assert weighed
    assert all("authority of 0.2" in s.reasoning for s in weighed)
    assert {item.authority for item in graph.trace().selected} == {1.0, 0.2}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "bypass"])
def test_nothing_is_answered_from_what_is_not_believed(
    without_gossip: tgraph.KnowledgeGraph, mode: str
):
    answer = ask(without_gossip, mode)
    assert places(answer) <= {"log.txt"}
    if mode == "graph":
        why = without_gossip.why_not(answer.session, "Sydney")
        assert "authority of 0" in why.reason


def test_without_weights_and_with_those_of_others_nothing_changes(graph: tgraph.KnowledgeGraph):
    before = ask(graph)
    graph.documents.set_authority("elsewhere/*", 0.5, reason="Not here.")
    after = ask(graph)
    assert [s.text for s in after.sentences] == [s.text for s in before.sentences]
    assert [s.score for s in after.selection] == [s.score for s in before.selection]


def test_sessions_asked_before_replay_as_they_were(graph: tgraph.KnowledgeGraph):
    before = ask(graph)
    graph.documents.set_authority("gossip.txt", 0, reason="Invented.")
    after = ask(graph)
    for answer in (before, after):
        assert graph.replay(answer.session).is_same


def test_a_filter_keeps_the_weights(graph: tgraph.KnowledgeGraph):
    graph.documents.set_authority("gossip.txt", 0, reason="Invented.")
    only = Filters(documents=("*gossip.txt",))
    assert graph.ask(QUESTION, "graph", history=[], filters=only).no_evidence


@pytest.mark.slow
def test_a_decision_is_on_record_until_it_is_taken_back(graph: tgraph.KnowledgeGraph):
    graph.documents.set_authority("gossip.txt", 0.5, reason="Hearsay.")
    path = graph.documents.set_authority("gossip.txt", 0.25, reason="Worse.")
    assert {Path(d.path).name: d.authority for d in graph.documents.summaries()}[
        "gossip.txt"
    ] == 0.25
    with pytest.raises(UsageError, match=r"0\.25 already"):
        graph.documents.set_authority("gossip.txt", 0.25, reason="Again.")
    assert check_shapes(graph.opened.read(), CATALOGUE) == ()
    assert not graph.integrity().problems
    assert graph.audit("knowledge").passed
    assert graph.documents.set_authority("gossip.txt", None, reason="Confirmed.") == path
    assert {d.authority for d in graph.documents.summaries()} == {1.0}
    with pytest.raises(UsageError, match="has no authority that was set"):
        graph.documents.set_authority("gossip.txt", None, reason="Again.")


def test_the_weight_stays_with_the_path(graph: tgraph.KnowledgeGraph):
    path = Path(graph.documents.set_authority("gossip.txt", 0, reason="Invented."))
    path.write_text("The Aurora left Perth on 24 December 1914.")
    graph.index([path])
    assert places(ask(graph)) == {"log.txt"}


def test_a_removed_document_leaves_no_name_with_its_weight(graph: tgraph.KnowledgeGraph):
    graph.documents.set_authority("gossip.txt", 0, reason="Invented.")
    graph.purge("gossip.txt", reason="Asked for.")
    left = graph.sparql("SELECT ?p { GRAPH ?g { ?w tg:pathPattern ?p } }")
    assert all("gossip" not in str(row["p"]) for row in left)  # type: ignore[union-attr]


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_what_is_no_weight_is_refused(graph: tgraph.KnowledgeGraph, weight: float):
    with pytest.raises(UsageError, match="between 0 and 1"):
        graph.documents.set_authority("gossip.txt", weight, reason="No.")


def test_the_command_weighs_and_lists(graph: tgraph.KnowledgeGraph):
    run = CliRunner()
    root = ["--root", str(graph.root)]
    done = run.invoke(cli, ["documents", "weigh", "*gossip*", "0.5", "--reason", "So.", *root])
    assert done.exit_code == 0, done.output
    listed = json.loads(run.invoke(cli, ["documents", "list", "--json", *root]).stdout)
    assert {Path(d["path"]).name: d["authority"] for d in listed} == {
        "gossip.txt": 0.5,
        "log.txt": 1.0,
    }
    wrong = run.invoke(cli, ["documents", "weigh", "*gossip*", "--reason", "So.", *root])
    assert wrong.exit_code == 2


@given(st.dictionaries(st.text("ab/*", min_size=1, max_size=4), st.floats(0, 1)), st.text("ab/"))
def test_the_closest_pattern_counts(weights: dict[str, float], path: str):
    found = Authorities(weights).weigh_path(path)
    assert found == weights[path] if path in weights else found in {1.0, *weights.values()}
    assert Authorities({**weights, path: 0.125}).weigh_path(path) == 0.125
