"""``tgraph entities``: merges with their grounds, undone by hand for good, and done again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.workers import edges, generation
from tgraph.testing import ScriptedServer

from .conftest import Terminal

TEXTS = {
    "a.txt": "Robert Falcon Scott, called Scott, led the Terra Nova Expedition.",
    "b.txt": "Scott wrote Ivanhoe.",
}
SCOTT = ("Scott", "Robert Falcon Scott")
MERGED = {"robert-falcon-scott wrote ivanhoe"}
APART = {"scott wrote ivanhoe"}


def extracted(request) -> str:
    """The alias is in one text, the edge in the other."""
    alias = "called Scott" in str(request.body["messages"])
    names = [("Robert Falcon Scott", ["Scott"])] if alias else [("Scott", []), ("Ivanhoe", [])]
    entities = [
        {"name": name, "type": "person", "description": "", "aliases": aliases}
        for name, aliases in names
    ]
    edge = {
        "subject": "Scott",
        "predicate": "wrote",
        "object": "Ivanhoe",
        "description": "",
        "keywords": [],
        "strength": 5,
        "quote": TEXTS["b.txt"],
    }
    found = {
        "entities": entities,
        "relationships": [] if alias else [edge],
        "attributes": [],
    }
    return json.dumps(found)


@pytest.fixture
def run(tmp_path: Path):
    """Runs ``tgraph entities`` and ``tgraph index`` on a graph in which Scott was merged."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    with ScriptedServer({"extract_graph": extracted}) as server:
        terminal = Terminal(tmp_path / "g", server.base_url)

        def call(*arguments: str, code: int = 0):
            works = {"index", "split", "rejoin"} & set(arguments[:2])
            options = terminal.model if works else []
            return terminal(*arguments, "-r", str(terminal.root), *options, code=code)

        call("index", *(str(tmp_path / name) for name in TEXTS))
        call.root, call.folder = terminal.root, tmp_path  # type: ignore[attr-defined]
        yield call


def test_merges_are_listed_with_their_grounds(run):
    (merge,) = json.loads(run("entities", "merges", "--json").stdout)
    assert (merge["absorbed_name"], merge["canonical_name"]) == SCOTT
    assert merge["merged"].endswith("Z")
    (ground,) = merge["grounds"]
    assert (ground["kind"], ground["name"], ground["alias"]) == ("alias", *SCOTT[::-1])
    assert ground["paths"] == [str(run.folder / "a.txt")]
    assert ground["evidence"][0].startswith("urn:trustgraph:evidence:")
    shown = run("entities", "merges").stdout
    assert "'Robert Falcon Scott' is also called 'Scott'" in shown
    assert "No names have been split" in run("entities", "splits").stderr


def test_a_split_lasts_until_it_is_taken_back(run):
    assert edges(run.root) == MERGED
    run("entities", "split", "scott", "--reason", "The novelist is another.")
    assert edges(run.root) == APART
    assert "No names have been merged" in run("entities", "merges").stderr
    (run.folder / "a.txt").write_text(TEXTS["a.txt"] + " He went south.")
    run("index", str(run.folder / "a.txt"))
    assert edges(run.root) == APART, "an index run finds the alias again"
    (split,) = json.loads(run("entities", "splits", "--json").stdout)
    assert sorted(split["names"]) == sorted(SCOTT)
    assert (split["reason"], split["person"]) == ("The novelist is another.", "")
    run("entities", "rejoin", *SCOTT, "--reason", "He is not.")
    assert edges(run.root) == MERGED
    assert generation(run.root) == 4
    assert json.loads(run("entities", "splits", "--json").stdout) == []
    answers = "ASK { ?a a tg:Curation ; tg:reason 'He is not.' ; prov:wasAssociatedWith ?who }"
    assert "true" in run("sparql", answers, "--format", "json").stdout


def test_who_decided_is_on_record_where_the_settings_say_so(run, monkeypatch):
    monkeypatch.setenv("TGRAPH_PERSON", "Ada Archivist")
    run("entities", "split", *SCOTT, "--reason", "Seen.")
    (split,) = json.loads(run("entities", "splits", "--json").stdout)
    assert split["person"] == "Ada Archivist"
    assert "Ada Archivist" in run("entities", "splits").stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("split", "Nobody"), "No document names 'Nobody'"),
        (("split", "Robert Falcon Scott"), "was not merged into another name"),
        (("split", "Scott", "Ivanhoe"), "are not one entity"),
        (("rejoin", *SCOTT), "have not been split"),
    ],
)
def test_a_decision_that_makes_no_sense_changes_nothing(run, arguments, problem):
    failed = run("entities", *arguments, "--reason", "Because.", code=2)
    assert problem in failed.stderr
    assert (generation(run.root), edges(run.root)) == (1, MERGED)
    assert (
        "reason of the decision is missing"
        in run("entities", "split", "Scott", "--reason", " ", code=2).stderr
    )
    staging = run.root / "collections" / "default" / "staging"
    assert not any(staging.iterdir())
