"""A row of a table that has no word of what is asked for is no sure answer by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.model import Answer
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

BRIDGES = """bridge,river,town,opened
Alder Bridge,Wend,Marlow Cross,1871
Long Bridge,Osk,Dunmere,1856
Queen's Bridge,Tarn,Ashford Green,1911
"""
PEOPLE = """name,department,room,extension
Anna Kessler,Accounts,12,204
Boris Lund,Archive,3,211
"""

pytestmark = pytest.mark.usefixtures("shipped_reader")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verdicts")
    (folder / "bridges.csv").write_text(BRIDGES)
    (folder / "people.csv").write_text(PEOPLE)
    with opened(folder, create=True) as graph:
        graph.index([folder / "bridges.csv", folder / "people.csv"])
    return folder


def opened(folder: Path, *, create: bool = False) -> tgraph.KnowledgeGraph:
    parts = Components(load_settings(None, {}), folder / "cache", embedder=HashingEmbedder())
    return tgraph.open(folder / "graph", create=create, parts=parts)


def ask(folder: Path, question: str) -> Answer:
    with opened(folder) as graph:
        return graph.ask(question, "graph", history=())


@pytest.mark.parametrize(
    "question",
    [
        "Which bridge is the longest?",
        "Which bridge cost the most?",
        "How many people work in Accounts?",
        "What is the salary of Boris Lund?",
    ],
)
def test_what_no_row_states_is_not_answered(folder, question):
    answer = ask(folder, question)
    assert answer.verdict != "answered"
    assert not answer.short


@pytest.mark.parametrize(
    ("question", "short"),
    [("Which room is Boris Lund in?", "3"), ("Which river does Queen's Bridge cross?", "Tarn")],
)
def test_what_a_row_states_is_answered(folder, question, short):
    assert ask(folder, question).short == short


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("When was Queen's Bridge opened?", "1911"),
        ("When was Queen's Bridge built?", "1911"),
        ("When did Queen's Bridge collapse?", ""),
    ],
)
def test_a_time_of_a_row_answers_for_its_own_event(folder, question, short):
    answer = ask(folder, question)
    assert answer.short == short
    assert (answer.verdict == "answered") == bool(short)
