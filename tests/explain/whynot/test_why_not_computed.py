"""Why a row is not in a computed result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.corpora import Corpus, indexed
from tests.support.pumps import PUMPS_CSV
from tgraph.engine.graph import KnowledgeGraph


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("pumps"), {"pumps.csv": PUMPS_CSV}) as graph:
        yield graph


OF_NORDEN, HEAVIEST = "How many pumps does Norden make?", "Which pump is the heaviest?"
NOT_NORDEN = "Which are not made by Norden?"
KEPT_OUT = "kept-out-by-query"


@pytest.mark.parametrize(
    ("question", "row", "cause", "reason"),
    [
        (OF_NORDEN, "P3", KEPT_OUT, "has the maker Norden, and the maker of Pump P3 is Berg."),
        (OF_NORDEN, "Pump P3", KEPT_OUT, "has the maker Norden, and the maker of Pump P3 is Berg."),
        (OF_NORDEN, "Pump P4", "used", "sentence 1"),
        (OF_NORDEN, "P9", "not-in-corpus", "No row of the table “Pumps” is “P9”; it has 5 rows."),
        (HEAVIEST, "P3", KEPT_OUT, "weight of Pump P3 is 27 kg; the greatest is 42 kg (Pump P2)."),
        (HEAVIEST, "Pump P2", "used", "sentence 1"),
        (
            NOT_NORDEN,
            "P1",
            KEPT_OUT,
            "maker other than Norden, and the maker of Pump P1 is Norden.",
        ),
        ("Which is lighter, P2 or P3?", "P1", KEPT_OUT, "asks only of Pump P2 and Pump P3."),
        ("How many pumps are blue?", "P1", "not-linked", "because it has no account of: blue."),
    ],
)
def test_a_row_that_is_not_in_the_result_has_its_reason(
    pumps: KnowledgeGraph, question: str, row: str, cause: str, reason: str
):
    session = pumps.ask(question, "sparql", history=[]).session
    found = pumps.why_not(session, row)
    assert (found.cause, reason in found.reason) == (cause, True), found.reason
    if cause == KEPT_OUT and "only" not in reason:
        number = row.removeprefix("Pump ")
        assert [place.quote.split(" | ")[0] for place in found.places] == [number]


def test_a_row_without_a_value_has_that_reason(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index(
        {"pumps.csv": "name,maker,weight_kg\nPump A,Berg,3\nPump B,Berg,\nPump C,Berg,4\n"}
    )
    with corpus.open() as graph:
        session = graph.ask("What is the total weight of the pumps?", "sparql", history=[]).session
        assert graph.why_not(session, "Pump B").reason == (
            "The query needs a value, and Pump B has no value of weight."
        )
