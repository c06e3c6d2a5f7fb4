"""Documents that answer a question differently: both answers, their dates, and no short answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.model import Answer
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

TEXTS = {
    "spring.md": """---
title: Spring minutes
date: 2021-03-14
---
The treasurer of the club is Marlow. The subscription of the club is 40 pounds. The boathouse of the
club closes at
21:00. The oar of the club was given by Conway.
""",
    "autumn.md": """---
title: Autumn minutes
date: 2023-09-19
---
The treasurer of the club is Tully. The subscription of the club is 55 pounds. The boathouse of the
club closes at
20:00. The oar of the club was given by Ann Conway.
""",
}
TREASURERS = (
    "The documents answer differently: “Tully” in Autumn minutes (2023-09-19), “Marlow” in Spring"
    " minutes (2021-03-14). Autumn minutes is the later document."
)
SUBSCRIPTIONS = (
    "The documents disagree: “40 pounds” in Spring minutes (2021-03-14), “55 pounds” in Autumn"
    " minutes (2023-09-19). Autumn minutes is the later document."
)
HOURS = (
    "The documents disagree: “21:00” in Spring minutes (2021-03-14), “20:00” in Autumn minutes"
    " (2023-09-19). Autumn minutes is the later document."
)


pytestmark = pytest.mark.usefixtures("shipped_reader")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conflicts")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    with opened(folder, create=True) as graph:
        graph.index([folder / name for name in TEXTS])
    return folder


def opened(folder: Path, *, create: bool = False) -> tgraph.KnowledgeGraph:
    parts = Components(load_settings(None, {}), folder / "cache", embedder=HashingEmbedder())
    return tgraph.open(folder / "graph", create=create, parts=parts)


def ask(folder: Path, question: str) -> Answer:
    with opened(folder) as graph:
        return graph.ask(question, "graph", history=())


@pytest.mark.parametrize(
    ("question", "notes"),
    [
        ("Who is the treasurer of the club?", [TREASURERS]),
        ("What is the subscription of the club?", [SUBSCRIPTIONS]),
        ("When does the boathouse of the club close?", [HOURS]),
        (
            "Who is the treasurer of the club and how much is the subscription of the club?",
            [TREASURERS, SUBSCRIPTIONS],
        ),
    ],
)
def test_answers_that_differ_are_both_told_with_the_later_document(folder, question, notes):
    answer = ask(folder, question)
    assert [note.text for note in answer.notes] == notes
    assert not answer.short
    assert all(len(note.places) == 2 for note in answer.notes)


def test_one_person_by_two_names_is_no_conflict(folder):
    answer = ask(folder, "Who gave the oar of the club?")
    assert answer.notes == ()
    assert "Conway" in answer.short
