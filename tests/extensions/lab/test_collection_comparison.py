"""Two extractions of the same texts side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tgraph
from tests.engine.test_exactness import read_names
from tests.support.workers import LineParts
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.errors import StoreError, UsageError
from tgraph.extensions.lab import compare_collections
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXTS = {
    "curie.txt": "Marie Curie discovered polonium.\nMarie Curie worked in Paris.\n",
    "oslo.txt": "Roald Amundsen lived in Oslo.\n",
}
VALUES = {"claims.enabled": True, "claims.gleanings": 0, "extract.gleanings": 0}


def indexed(root: Path, files: list[Path], collection: str, parts: Components) -> None:
    values = VALUES if parts.chat else {}
    with tgraph.open(
        root, create=True, collection=collection, settings=values, parts=parts
    ) as graph:
        assert not graph.index(files).failed


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "only.txt").write_text("Henri Becquerel lived in Paris.\n")
    files, graph = [folder / name for name in TEXTS], folder / "graph"
    lines = LineParts(load_settings(None), folder / "a", embedder=HashingEmbedder())
    indexed(graph, [*files, folder / "only.txt"], "lines", lines)
    chat = ScriptedModel({"extract_graph": read_names})
    model = Components(
        load_settings(None, VALUES), folder / "b", chat=chat, embedder=HashingEmbedder()
    )
    indexed(graph, files, "model", model)
    again = LineParts(load_settings(None), folder / "c", embedder=HashingEmbedder())
    indexed(graph, files, "again", again)
    return graph


def test_what_both_found_and_what_only_one(root):
    found = compare_collections(root, "lines", "model")
    assert [d.paths[0].rpartition("/")[2] for d in found.documents] == ["curie.txt", "oslo.txt"]
    assert [path.rpartition("/")[2] for path in found.only[0]] == ["only.txt"]
    assert found.only[1] == ()
    entities = {item.label: item for item in found.documents[0].entities}
    marie, polonium = entities["Marie Curie"], entities["polonium"]
    assert marie.first is not None
    assert marie.second is not None
    assert {"places", "descriptions"} <= set(marie.differs)
    assert (polonium.first is None, polonium.second) == (False, None)
    counts = found.agreement["entities"]
    both = sum(i.first is not None and i.second is not None for i in entities.values())
    assert counts.both >= both >= 1
    assert counts.jaccard == counts.both / (counts.first + counts.second - counts.both)
    assert found.agreement["claims"].first == 0
    assert found.agreement["claims"].second == len(found.documents[0].claims) + len(
        found.documents[1].claims
    )


def test_quotes_are_the_characters_of_the_text(root):
    for document in compare_collections(root, "lines", "model").documents:
        text = TEXTS[document.paths[0].rpartition("/")[2]]
        for item in (*document.entities, *document.facts, *document.claims):
            for found in filter(None, (item.first, item.second)):
                for place in found.places:
                    assert place.quote in ("", text[place.start : place.end])


def test_who_read_it_and_by_which_prompts(root):
    lines, model = compare_collections(root, "lines", "model").readings
    assert [(reading.agent, reading.passages) for reading in lines] == [("lines 1", 2)]
    assert lines[0].prompts == ()
    told = [name.partition(" ")[0] for reading in model for name in reading.prompts]
    assert {"extract_graph", "extract_claims"} <= set(told)


def test_the_same_extraction_agrees_in_all(root):
    found = compare_collections(root, "lines", "again")
    for kind in ("entities", "pairs", "facts"):
        assert found.agreement[kind].jaccard == 1
    assert found.agreement["claims"].jaccard is None
    for document in found.documents:
        assert not any(item.differs for item in (*document.entities, *document.facts))


def test_one_is_the_other_the_other_way_round(root):
    one = compare_collections(root, "lines", "model")
    other = compare_collections(root, "model", "lines")
    for kind, agreement in one.agreement.items():
        turned = other.agreement[kind]
        assert (agreement.first, agreement.both) == (turned.second, turned.both)
    for left, right in zip(one.documents, other.documents, strict=True):
        assert {i.item: i.first for i in left.facts} == {i.item: i.second for i in right.facts}


def test_what_can_not_be_compared_is_an_error(root):
    with pytest.raises(UsageError, match="one collection"):
        compare_collections(root, "lines", "lines")
    with pytest.raises(StoreError, match="no collection"):
        compare_collections(root, "lines", "nowhere")
    with pytest.raises(UsageError, match="no document"):
        compare_collections(root, "lines", "model", document="only.txt")
    tgraph.create_collection(root, "empty")
    with pytest.raises(StoreError, match="Nothing has been indexed"):
        compare_collections(root, "lines", "empty")
    tgraph.delete_collection(root, "empty")


def run(root: Path, *arguments: str) -> str:
    result = CliRunner().invoke(cli, ["compare", "--root", str(root), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command(root):
    text = run(root, "lines", "model")
    assert "2 documents in both lines and model" in text
    assert "Only in lines: " in text
    assert "lines was read by lines 1 (2 passages)" in text
    whole = run(root, "lines", "model", "--document", "curie.txt", "--limit", "1")
    assert "Entities in both that differ" in whole
    assert "more (--limit)" in whole
    data = json.loads(run(root, "lines", "model", "--json"))
    assert data["names"] == ["lines", "model"]
    assert set(data["agreement"]) == {"entities", "pairs", "facts", "claims"}
    assert data["agreement"]["claims"]["jaccard"] == 0
    short = json.loads(run(root, "lines", "model", "--json", "--limit", "1"))
    assert [len(d["entities"]) for d in short["documents"]] == [1, 1]
