"""Bearers of one name: told apart by their documents, or by hand, and never without grounds."""

from __future__ import annotations

from pathlib import Path

import pytest

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes

MILL = "Ida Ray is the chief financial officer of Holm Mill. Ida Ray joined Holm Mill in 2015.\n"
PORT = "Ida Ray is the chief financial officer of Vik Port. Ida Ray lives in Turku.\n"
TEA = "Ida Ray likes green tea. Ida Ray plays chess.\n"
ON_MILL, ON_PORT = "Ida Ray (Holm Mill)", "Ida Ray (Vik Port)"


def indexed(folder: Path, *texts: str, name: str = "graph") -> KnowledgeGraph:
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.txt"
        path.write_text(text, "utf-8")
        paths.append(path)
    graph = tgraph.open(folder / name, create=True)
    assert not graph.index(paths).failed
    return graph


def labels(graph: KnowledgeGraph) -> set[str]:
    return {bearer.label for bearer in graph.entities.read_bearers()}


def facts_about(graph: KnowledgeGraph, name: str) -> str:
    return " ".join(
        f"{fact.predicate_label} {fact.object_label}" for fact in graph.entities.read_facts(name)
    )


def knowledge(graph: KnowledgeGraph) -> set[str]:
    return set(map(str, graph.context().store.match(None, None, None, v.KNOWLEDGE_GRAPH)))


@pytest.mark.slow
def test_documents_tell_holders_of_one_post_at_two_organisations_apart(tmp_path: Path):
    with indexed(tmp_path, MILL, PORT, TEA) as graph:
        bearers = graph.entities.read_bearers()
        assert [bearer.label for bearer in bearers] == [ON_MILL, ON_PORT]
        assert "chief financial officer of Holm Mill" in bearers[0].reason
        assert [Path(path).name for path in bearers[0].paths] == ["0.txt"]
        assert not bearers[0].by_hand
        assert "Turku" in facts_about(graph, ON_PORT)
        assert "Turku" not in facts_about(graph, ON_MILL)
        assert "tea" in facts_about(graph, "Ida Ray")
        assert graph.audit("knowledge").passed
        graph.ask("Where does Ida Ray of Vik Port live?", history=[])
        assert not check_shapes(graph.opened.read(), graph.opened.catalogue)


def test_the_home_of_one_is_not_given_for_the_other(tmp_path: Path):
    with indexed(tmp_path, MILL, PORT) as graph:
        question = "Where does the chief financial officer of {} live?"
        other = graph.ask(question.format("Holm Mill"), history=[])
        assert "Turku" not in other.text
        own = graph.ask(question.format("Vik Port"), history=[])
        assert "Turku" in own.text
        assert any(ON_PORT in note.text for note in own.notes)
        assert graph.replay(own.session).is_same


@pytest.mark.slow
def test_knowledge_is_the_same_in_whatever_order_documents_come(tmp_path: Path):
    (tmp_path / "forth").mkdir()
    (tmp_path / "back").mkdir()
    with (
        indexed(tmp_path / "forth", MILL, PORT, TEA) as forth,
        indexed(tmp_path / "back", TEA, PORT) as back,
    ):
        assert not labels(back)
        (tmp_path / "back" / "mill.txt").write_text(MILL, "utf-8")
        back.index([tmp_path / "back" / "mill.txt"])
        assert labels(back) == {ON_MILL, ON_PORT}
        edges = [{line for line in knowledge(g) if "relation" in line} for g in (forth, back)]
        assert edges[0] == edges[1]


@pytest.mark.slow
def test_bearers_are_one_again_when_a_document_goes(tmp_path: Path):
    with indexed(tmp_path, MILL, TEA) as graph:
        before = knowledge(graph)
        path = tmp_path / "port.txt"
        path.write_text(PORT, "utf-8")
        graph.index([path])
        assert labels(graph) == {ON_MILL, ON_PORT}
        graph.retract("port.txt", reason="A mistake.")
        assert not labels(graph)
        assert knowledge(graph) == before
        graph.index([path], reinstate=True)
        assert labels(graph) == {ON_MILL, ON_PORT}
        assert graph.audit("knowledge").passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MILL, "Ida Ray was the chief financial officer of Vik Port until 2010.\n"),
        (MILL, "Ida Ray is the chief financial officer of Holm Mill Ltd. She sings.\n"),
        (MILL, PORT + "Vik Port bought Holm Mill last year.\n"),
        (MILL, "Ida Ray is the mayor of Vik. Ida Ray lives in Turku.\n"),
        (MILL, "Ida Ray is a member of Vik Port. Ida Ray lives in Turku.\n"),
        (MILL + "Ida Ray lives in Turku.\n", PORT),
        ("Ida Ray was born in 1950.\n", "Ida Ray was born in 1952.\n"),
        ("Ida Ray was born in Turku.\n", "Ida Ray was born in Oslo.\n"),
        (
            f"---\ntitle: A\ndate: 2009\n---\n{MILL}",
            f"---\ntitle: B\ndate: 2021\n---\n{PORT}",
        ),
    ],
)
def test_what_one_person_may_have_parts_nobody(tmp_path: Path, one: str, other: str):
    with indexed(tmp_path, one.replace("---", "+++"), other.replace("---", "+++")) as graph:
        assert not labels(graph)


def test_years_of_birth_far_apart_tell_people_apart(tmp_path: Path):
    with indexed(tmp_path, "Ida Ray was born in 1950.\n", "Ida Ray was born in 1990.\n") as graph:
        assert labels(graph) == {"Ida Ray (born 1950)", "Ida Ray (born 1990)"}


@pytest.mark.slow
def test_bearers_are_parted_by_hand_and_the_parting_is_undone(tmp_path: Path):
    with indexed(tmp_path, "Ida Ray lives in Turku.\n", "Ida Ray lives in Oslo.\n") as graph:
        before = knowledge(graph)
        label = graph.entities.part("Ida Ray", ["1.txt"], qualifier="the poet", reason="Namesakes.")
        assert label == "Ida Ray (the poet)"
        [bearer] = graph.entities.read_bearers()
        assert (bearer.by_hand, bearer.reason, bearer.name) == (True, "Namesakes.", "Ida Ray")
        assert "Oslo" in facts_about(graph, label)
        assert "Turku" not in facts_about(graph, label)
        assert graph.audit("knowledge").passed
        assert not check_shapes(graph.opened.read(), graph.opened.catalogue)
        with pytest.raises(UsageError, match="means 'Ida Ray"):
            graph.entities.part("Ida Ray", ["1.txt"], qualifier="x", reason="Again.")
        with pytest.raises(UsageError, match="does not name"):
            graph.entities.part("Turku", ["1.txt"], qualifier="x", reason="Not there.")
        graph.history.undo_curation("last", reason="One person after all.")
        assert knowledge(graph) == before


def test_a_merge_by_hand_makes_bearers_one(tmp_path: Path):
    with indexed(tmp_path, MILL, PORT) as graph:
        graph.entities.merge(ON_MILL, ON_PORT, reason="She holds both posts.")
        assert "Turku" in facts_about(graph, ON_MILL)
        assert graph.audit("knowledge").passed


def test_an_erased_document_leaves_no_bearer_and_no_words(tmp_path: Path):
    with indexed(tmp_path, MILL, PORT) as graph:
        graph.purge("1.txt", reason="A request.")
        assert not labels(graph)
        dump = "\n".join(map(str, graph.context().store.match(None, None, None, None)))
        assert "Turku" not in dump
        assert "vik-port" not in dump.casefold()
        assert "Vik Port" not in dump
        assert graph.audit("integrity").passed
