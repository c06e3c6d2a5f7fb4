"""The catalogue that an index run leaves says what a count of the statements says."""

from __future__ import annotations

from pathlib import Path

from tests.support.corpora import Corpus, write
from tests.support.pumps import PUMPS_CSV
from tgraph.engine.graph import KnowledgeGraph
from tgraph.index.catalogue import Catalogue, count_catalogue
from tgraph.index.catalogue_table import FILES

SHIPS = "name,launched\nFram,1892\nGauss,1901\n"
PROSE = "Norden sold Pump P1 to Bergen. Nansen sailed the Fram to Bergen.\n"


def stored_catalogue(graph: KnowledgeGraph) -> Catalogue:
    table = graph.opened.context().catalogue()
    assert table is not None
    return table.catalogue


def test_it_is_that_of_the_statements_after_each_change(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    seen: list[Catalogue] = []
    with corpus.open() as graph:

        def compare() -> None:
            stored = stored_catalogue(graph)
            assert stored == count_catalogue(graph.opened.context().store)
            assert stored not in seen
            seen.append(stored)

        texts = {"pumps.csv": PUMPS_CSV, "ships.csv": SHIPS, "notes.txt": PROSE}
        graph.index(write(corpus.folder, texts))
        compare()
        graph.index(write(corpus.folder, {"pumps.csv": PUMPS_CSV.replace("Berg,31", "Norden,32")}))
        compare()
        graph.entities.deny_fact("Fram", "launched", "1892", reason="An example.")
        compare()
        graph.purge("ships.csv", reason="An example.")
        compare()
    tables = [known for known in seen[0].classes if known.kind == "table"]
    assert [len(known.rows) for known in tables] == [5, 2]
    assert all(known.is_structured for known in seen[0].properties)


def test_a_damaged_one_is_counted_again(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.index({"pumps.csv": PUMPS_CSV})
    question = "How many pumps does Norden make?"
    with corpus.open() as graph:
        said = graph.ask(question, mode="sparql").text
        folder = graph.opened.folder.vectors
    files = [path for path in folder.parent.rglob(f"{FILES.stem}.*") if path.suffix != ".json"]
    assert files
    for path in files:
        path.write_bytes(b"damaged")
    with corpus.open() as graph:
        assert graph.opened.context().catalogue() is None
        assert graph.ask(question, mode="sparql").text == said
