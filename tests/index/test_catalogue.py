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
