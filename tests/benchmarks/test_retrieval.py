"""The retrieval benchmark: its figures, its formats, and a run over a small data set."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from benchmarks.retrieval import Score, cross_validated, figures, score
from benchmarks.retrieval_data import OpenIEExtractor, read_data
from benchmarks.retrieval_plot import plot
from tests.support.paths import REPOSITORY
from tgraph.errors import UsageError
from tgraph.model import Chunk

PASSAGES = [
    {"id": "fram", "title": "Fram", "text": "The Fram was built by Colin Archer."},
    {"id": "archer", "title": "Colin Archer", "text": "Colin Archer was born in Larvik."},
    {"id": "bread", "text": "Sourdough bread is baked in Paris."},
]
QUESTIONS = [{"question": "Where was the builder of the Fram born?", "gold": ["fram", "archer"]}]
OPENIE = {
    "docs": [
        {
            "title": "Fram",
            "text": "The Fram was built by Colin Archer.",
            "extracted_entities": ["Fram", "Colin Archer"],
            "extracted_triples": [
                ["Fram", "built by", "Colin Archer"],
                ["Fram", "floats"],
                ["Fram", "is", "fram"],
            ],
        }
    ]
}


@pytest.fixture
def folder(tmp_path):
    for name, rows in (("passages", PASSAGES), ("questions", QUESTIONS)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    (tmp_path / "openie.json").write_text(json.dumps(OPENIE))
    return tmp_path


def test_figures_of_a_ranking_are_those_counted_by_hand():
    found = score(["x", "a", "y", "b", "z"], frozenset("abc"))
    assert found.recall == {2: 1 / 3, 5: 2 / 3, 10: 2 / 3, 20: 2 / 3}
    assert found.all_of_8 == 0.0
    assert found.reciprocal == 0.5
    assert score(["a", "b"], frozenset("ab")).all_of_8 == 1.0
    assert score(["x"], frozenset("a")).reciprocal == 0.0
    assert figures([found, score([], frozenset("a"))])["MRR"] == 25.0


def test_cross_validation_does_not_see_what_it_measures():
    def scored(right: bool) -> Score:
        return score(["a" if right else "x"], frozenset("a"))

    seen = [scored(place % 2 == 0) for place in range(20)]
    other = [scored(place % 2 == 1) for place in range(20)]
    means, around = cross_validated([seen, other])
    assert means["R@2"] <= 50.0, "neither is better, so the choice can't be"
    assert around["R@2"] > 0, "it depends on the division which is chosen"
    same, around = cross_validated([seen, seen])
    assert (same["R@2"], around["R@2"]) == (50.0, 0.0)


def test_a_data_set_is_read(folder):
    data = read_data(folder)
    assert [passage.id for passage in data.passages] == ["fram", "archer", "bread"]
    assert data.questions[0].gold == {"fram", "archer"}
    assert data.openie == folder / "openie.json"
    files = data.write_documents(folder / "documents")
    assert [file.suffix for file in files] == [".md", ".md", ".txt"]
    assert files[0].read_text().startswith("# Fram\n")


def test_a_gold_passage_that_is_missing_is_an_error(folder):
    (folder / "questions.jsonl").write_text('{"question": "Why?", "gold": ["nowhere"]}\n')
    with pytest.raises(UsageError, match="nowhere"):
        read_data(folder)
    with pytest.raises(UsageError, match="no data set"):
        read_data(folder / "documents")


def test_an_extraction_is_read_with_exact_places(folder):
    text = "# Fram\n\nThe Fram was built by Colin Archer.\n"
    chunk = Chunk("0" * 64, None, 0, 0, len(text), text, 12)
    found = OpenIEExtractor(folder / "openie.json").extract(chunk, "Fram")
    (fact,) = found.relationships
    assert (fact.subject, fact.predicate, fact.object) == ("Fram", "built by", "Colin Archer")
    assert fact.span is not None
    assert text[fact.span.start : fact.span.end] == fact.span.quote
    assert "built by Colin Archer" in fact.span.quote
    assert found.dropped == {"triple that is none": 2}
    unknown = Chunk("0" * 64, None, 0, 0, 5, "Hello", 1)
    assert not OpenIEExtractor(folder / "openie.json").extract(unknown, "").entities


def test_the_plot_is_well_formed_whatever_the_names():
    drawn = plot("a < b & c", {"ppr": {2: 50.0, 5: 75.0}, "<x>": {2: 10.0, 5: 20.0}})
    root = ElementTree.fromstring(drawn)
    lines = [element for element in root if element.tag.endswith("polyline")]
    assert len(lines) == 2


@pytest.mark.slow
@pytest.mark.parametrize("how", ["openie", "embedded"])
def test_it_runs_from_the_command_line(folder, how):
    options = ["--data", folder, "--graph", how, "--modes", "basic,ppr,auto"]
    options += ["--set", "embedding.provider=hashing", "--plot", folder / "plot.svg"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.retrieval", *map(str, options)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows] == ["| mode", "| basic", "| ppr", "| auto"]
    assert "100.0" in rows[2]
    assert (folder / "plot.svg").read_text().startswith("<svg")
