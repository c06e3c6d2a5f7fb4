"""The catalogue: what it counts, and that after any change it equals a fresh count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpora import Corpus, write
from tests.support.pumps import PUMPS_CSV
from tgraph.index.catalogue import Catalogue

SHIPS = "name,launched\nFram,1892\nGauss,1901\n"


def catalogue_of(corpus: Corpus) -> Catalogue:
    with corpus.open() as graph:
        return graph.catalogue()


def test_a_table_is_a_class_with_its_columns(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index({"pumps.csv": PUMPS_CSV})
    known = catalogue_of(corpus)
    table = next(each for each in known.classes if each.kind == "table")
    assert (table.label, table.type_label, table.members) == ("Pumps", "pump", 5)
    assert table.is_whole_type
    columns = [column.head for column in table.columns]
    assert columns == ["id", "maker", "weight in kg", "price in EUR"]
    by_label = {own.label: own for own in known.properties}
    weight, maker = by_label["weight in kg"], by_label["maker"]
    assert (weight.kind, weight.unit, weight.name, weight.subjects) == ("number", "kg", "weight", 5)
    assert (maker.kind, maker.distinct) == ("entity", 2)
    assert [(value.label, value.statements) for value in maker.values] == [
        ("Norden", 3),
        ("Berg", 2),
    ]


@pytest.mark.slow
def test_after_changes_it_equals_a_fresh_count(tmp_path: Path):
    changed, fresh = Corpus(tmp_path / "changed"), Corpus(tmp_path / "fresh")
    changed.index({"pumps.csv": PUMPS_CSV, "ships.csv": SHIPS})
    newer = PUMPS_CSV.replace("Berg,31", "Norden,32")
    with changed.open() as graph:
        before = graph.catalogue()
        graph.index(write(changed.folder, {"pumps.csv": newer}))
        graph.retract("ships.csv", reason="An example.")
        after = graph.catalogue()
    fresh.index({"pumps.csv": newer})
    assert after == catalogue_of(fresh)
    assert after != before


TABLES = """<html><body><h1>Fleet book</h1><h2>Ships of Bergen</h2><p>Some were lost.</p>
<table><tr><th>name</th><th>launched</th></tr><tr><td>Fram</td><td>1892</td></tr>
<tr><td>Gauss</td><td>1901</td></tr></table><p>The others stayed.</p>
<table><caption>Table 2. Ships of Dundee</caption><tr><th>name</th><th>launched</th></tr>
<tr><td>Discovery</td><td>1901</td></tr><tr><td>Nimrod</td><td>1867</td></tr>
<tr><td>Terra Nova</td><td>1884</td></tr></table></body></html>"""


def test_a_table_in_a_document_is_called_after_its_caption_or_heading(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index({"fleet.html": TABLES})
    with corpus.open() as graph:
        tables = [known for known in graph.catalogue().classes if known.kind == "table"]
        said = graph.ask("How many ships of Dundee were launched before 1890?", "sparql").text
    assert {known.label: (known.type_label, known.members) for known in tables} == {
        "Ships of Bergen": ("ship", 2),
        "Ships of Dundee": ("ship", 3),
    }
    assert len({known.key for known in tables}) == 2
    assert said == (
        "2 of the 3 ships in “Ships of Dundee” were launched before 1890: Nimrod and Terra Nova."
    )
