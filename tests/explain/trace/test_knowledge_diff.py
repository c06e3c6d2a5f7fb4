"""What came, went and changed in knowledge between two points in time, and because of what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode

import tgraph
from tests.support.workers import LineParts
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.as_of.store import as_of
from tgraph.explain.trace.knowledge_diff import ItemChange, KnowledgeDiff
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder

VALUES = {"embedding.provider": "hashing", "person": "Ada"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """Five generations: two index runs, a split, a changed file, a retraction."""
    root = tmp_path_factory.mktemp("diff")
    parts = LineParts(load_settings(None, VALUES), root / "cache", embedder=HashingEmbedder())
    day = [1]

    def index(**texts: str) -> None:
        day[0] += 1
        for name, text in texts.items():
            (root / f"{name}.txt").write_text(text)
        assert not kg.index([root / f"{name}.txt" for name in texts]).failed

    with tgraph.open(
        root / "graph",
        create=True,
        settings=VALUES,
        parts=parts,
        clock=lambda: datetime(2026, 5, day[0], 12, tzinfo=UTC),
    ) as kg:
        index(pole="Roald Amundsen = Amundsen\nRoald Amundsen reached Pole.\n")
        index(fram="Amundsen led Fram.\nAmundsen reached Pole.\n", scott="Scott led Discovery.\n")
        kg.entities.split("Amundsen", reason="His cousin.")
        index(fram="Roald Amundsen led Fram.\n")
        kg.retract("scott.txt", reason="A legend.")
        yield kg


def told(changes: tuple[ItemChange, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"came": set(), "went": set(), "changed": set()}
    for change in changes:
        found[change.change].add(change.label)
    return found


def causes(changes: tuple[ItemChange, ...], label: str) -> set[tuple[str, str]]:
    [change] = [change for change in changes if change.label == label]
    return {(d.change, d.path.rpartition("/")[2]) for d in change.documents}


def test_what_an_index_run_brought(graph):
    found = graph.history.compare(1, 2)
    assert [g.number for g in found.generations] == [2]
    assert told(found.entities) == {
        "came": {"Fram", "Scott", "Discovery"},
        "went": set(),
        "changed": {"Roald Amundsen"} if found.entities[-1].change == "changed" else set(),
    }
    assert told(found.facts)["came"] == {"Roald Amundsen — led — Fram", "Scott — led — Discovery"}
    assert told(found.facts)["changed"] == {"Roald Amundsen — reached — Pole"}
    assert causes(found.entities, "Fram") == {("came", "fram.txt")}
    assert causes(found.facts, "Scott — led — Discovery") == {("came", "scott.txt")}
    [weight] = [
        value
        for change in found.facts
        if change.change == "changed"
        for value in change.values
        if value.name == "weight"
    ]
    assert (weight.before, weight.after) == ("5", "10")
    assert [(pair.name, pair.entity) for pair in found.merged] in (
        [],
        [("Amundsen", "Roald Amundsen")],
    )


def test_what_a_split_changed(graph):
    found = graph.history.compare(2, 3)
    [split] = found.generations
    assert (split.what, split.reason, split.person) == ("Split", "His cousin.", "Ada")
    assert [(pair.name, pair.entity) for pair in found.unmerged] == [("Amundsen", "Roald Amundsen")]
    assert "Amundsen" in told(found.entities)["came"]
    assert "Amundsen — led — Fram" in told(found.facts)["came"]
    assert "Roald Amundsen — led — Fram" in told(found.facts)["went"]
    assert all(change.documents == () for change in found.facts)


def test_what_a_changed_file_and_a_retraction_took_away(graph):
    changed = graph.history.compare(3, 4)
    assert causes(changed.facts, "Amundsen — led — Fram") == {("went", "fram.txt")}
    assert causes(changed.facts, "Roald Amundsen — led — Fram") == {("came", "fram.txt")}
    gone = graph.history.compare(4)
    assert gone.after.generation == 5
    assert told(gone.entities)["went"] == {"Scott", "Discovery"}
    assert causes(gone.entities, "Scott") == {("went", "scott.txt")}
    assert gone.generations[0].reason == "A legend."


def test_nothing_comes_of_what_came_and_went_between(graph):
    found = graph.history.compare("2026-05-02", "now")
    assert (found.before.generation, found.after.generation) == (1, 5)
    labels = {change.label for change in (*found.entities, *found.facts)}
    assert not {"Scott", "Discovery", "Amundsen — led — Fram"} & labels
    assert graph.history.compare(3, 3).is_same
    assert not found.is_same


def mirrored(found: KnowledgeDiff) -> set[tuple[str, str]]:
    turn = {"came": "went", "went": "came", "changed": "changed"}
    return {(turn[c.change], c.item) for c in (*found.entities, *found.facts)}


def test_backwards_is_the_mirror_image(graph):
    there, back = graph.history.compare(1, 4), graph.history.compare(4, 1)
    assert {(c.change, c.item) for c in (*back.entities, *back.facts)} == mirrored(there)
    assert there.merged == back.unmerged
    assert there.unmerged == back.merged
    assert {k: (b, a) for k, (a, b) in there.others.items()} == back.others


@pytest.mark.parametrize("first", range(5))
def test_it_is_the_difference_of_the_states(graph, first):
    """Entities and edges of the store as it was, and as it is, say the same."""
    store = graph.context().store
    assert isinstance(store, OxigraphStore)

    def things(of: OxigraphStore) -> set[str]:
        kinds = (v.tg("Entity"), v.tg("Edge"))
        return {
            quad.subject.value
            for kind in kinds
            for quad in of.match(None, v.RDF_TYPE, kind, v.KNOWLEDGE_GRAPH)
            if isinstance(quad.subject, NamedNode)
        }

    def weights(of: OxigraphStore) -> dict[str, str]:
        return {
            quad.subject.value: quad.object.value
            for quad in of.match(None, v.tg("weight"), None, v.KNOWLEDGE_GRAPH)
            if isinstance(quad.subject, NamedNode) and isinstance(quad.object, Literal)
        }

    with as_of(store, graph.opened.librarian, first) as past:
        before, heavy = things(past), weights(past)
    found = graph.history.compare(first)
    changes = (*found.entities, *found.facts)
    assert {c.item for c in changes if c.change == "came"} == things(store) - before
    assert {c.item for c in changes if c.change == "went"} == before - things(store)
    for change in changes:
        for value in change.values:
            if value.name == "weight":
                assert value.before == heavy[change.item]
                assert value.after == weights(store)[change.item]


def test_from_the_beginning(graph):
    found = graph.history.compare(0)
    assert told(found.entities)["went"] == set()
    assert len(found.generations) == 5


def test_what_is_no_point_in_time(graph):
    with pytest.raises(UsageError, match="no generation 9"):
        graph.history.compare(9)


def run(graph: KnowledgeGraph, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, ["diff", "--knowledge", "--root", str(graph.root), *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_command(graph):
    text = run(graph, "2", "3")
    assert "From generation 2, 2026-05-03 12:00:00 UTC to generation 3" in text
    assert "Split: His cousin. (Ada)" in text
    assert "Amundsen told apart from Roald Amundsen" in text
    assert "+ fram.txt" not in run(graph, "5")
    assert "Knowledge is the same." in run(graph, "5")
    assert "The first point is later" in run(graph, "5", "1")
    data = json.loads(run(graph, "1", "2", "--json"))
    assert not data["same"]
    assert {change["change"] for change in data["facts"]} == {"came", "changed"}
    run(graph, "1", "2", "--exit-code", code=4)
    run(graph, "5", "--exit-code")
    run(graph, "soon", code=2)


def test_a_large_difference_is_cut(graph, monkeypatch):
    monkeypatch.setattr("tgraph.cli.replay._MOST", 1)
    assert "more (--all)" in run(graph, "0")
    assert "more (--all)" not in run(graph, "0", "--all")
