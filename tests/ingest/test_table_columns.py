"""What columns hold: kinds, units and canonical values, decided over all cells."""

from __future__ import annotations

import pytest

from tgraph.ingest.table_columns import Column, read_columns
from tgraph.ingest.table_values import read_unit, split_unit


def column(head: str, *cells: str) -> Column:
    return read_columns([head], [cells])[0]


@pytest.mark.parametrize(
    ("head", "cells", "kind", "values"),
    [
        ("Weight", ["1", "2,000"], "integer", ["1", "2000"]),
        ("Weight", ["1.5", "2"], "decimal", ["1.5", "2"]),
        ("Fläche", ["1.234,5", "2.000"], "decimal", ["1234.5", "2000"]),
        ("Fläche", ["1 234", "2\u00a0000"], "integer", ["1234", "2000"]),
        ("Change", ["(1,200)", "−3", "+4"], "integer", ["-1200", "-3", "4"]),
        ("Share", ["12 %", "3.5%"], "percent", ["12", "3.5"]),
        ("Price", ["€ 5", "€ 6.50"], "money", ["5", "6.50"]),
        ("Version", ["1.2.3", "1.2.4"], "identifier", ["", ""]),
        ("Built", ["1876", "1892"], "year", ["1876", "1892"]),
        ("Height", ["1876", "12"], "integer", ["1876", "12"]),
        ("Zip", ["01067", "10115"], "identifier", ["", ""]),
        ("id", ["1", "2"], "identifier", ["", ""]),
        ("Open", ["yes", "no", "yes"], "boolean", ["true", "false", "true"]),
        ("Open", ["ja", "nein"], "boolean", ["true", "false"]),
        ("Name", ["Ana Berg", "Bo Lund"], "name", ["", ""]),
        ("Maker", ["Norden", "Norden", "Berg", "Berg"], "category", [""] * 4),
        ("Email", ["a@b.org", "c@d.org"], "text", ["", ""]),
        ("Since", ["3 May 1999", "1. März 2001"], "date", ["1999-05-03", "2001-03-01"]),
        ("Since", ["Fri Aug 9 2019", "(Sat) 10 Aug 2019"], "date", ["2019-08-09", "2019-08-10"]),
        ("Since", ["24-Sep-98", "3-Oct-04"], "date", ["1998-09-24", "2004-10-03"]),
        ("Since", ["24-Sep-36", "3-Oct-04"], "date", ["", ""]),
        ("Since", ["2024-01-05T23:30:00-0800"], "date", ["2024-01-05T23:30:00-08:00"]),
        ("Since", ["May 2020", "2021-06"], "date", ["2020-05", "2021-06"]),
        ("Weight", ["11", "n/a", "-"], "integer", ["11", "", ""]),
    ],
)
def test_kinds_and_values(head, cells, kind, values):
    read = column(head, *cells)
    assert read.kind == kind
    assert [value.value for value in read.values] == values


@pytest.mark.parametrize(
    ("cells", "order", "values"),
    [
        (["03/04/2024", "13/04/2024"], "DMY", ["2024-04-03", "2024-04-13"]),
        (["03/04/2024", "03/14/2024"], "MDY", ["2024-03-04", "2024-03-14"]),
        (["03.04.2024", "05.06.2024"], "DMY", ["2024-04-03", "2024-06-05"]),
        (["03/04/2024", "05/06/2024"], "", ["", ""]),
    ],
)
def test_the_column_decides_the_order_of_day_and_month(cells, order, values):
    read = column("Signed", *cells)
    assert read.kind == "date"
    assert [value.unit for value in read.values] == [order, order]
    assert [value.value for value in read.values] == values


@pytest.mark.parametrize(
    ("cells", "units", "values"),
    [
        (["1.5 kg", "500 g", "2 kg"], {"kg"}, ["1.5", "0.5", "2"]),
        (["16 oz", "2 lb", "1 lb"], {"lb"}, ["1", "2", "1"]),
        (["5 kg", "3 m"], {"kg", "m"}, ["5", "3"]),
        (["3 months", "90 days"], {"month", "d"}, ["3", "90"]),
    ],
)
def test_mixed_units_of_one_measure_are_converted(cells, units, values):
    read = column("Size", *cells)
    assert {value.unit for value in read.values} == units
    assert [value.value for value in read.values] == values


def test_a_column_of_years_decides_the_century():
    heads = ["Signed", "Year"]
    signed, _ = read_columns(heads, [["9/24/06", "6/8/38"], ["1906", "1938"]])
    assert [value.value for value in signed.values] == ["1906-09-24", "1938-06-08"]
    other, _ = read_columns(heads, [["9/24/06", "6/8/38"], ["1906", "1940"]])
    assert [value.value for value in other.values] == ["", ""]


def test_another_column_decides_where_a_column_is_ambiguous():
    people, area = read_columns(
        ["Einwohner", "Fläche"], [["246.601", "218.095"], ["118,65", "214,21"]]
    )
    assert [value.value for value in people.values] == ["246601", "218095"]
    assert [value.value for value in area.values] == ["118.65", "214.21"]


@pytest.mark.parametrize(
    ("head", "name", "unit"),
    [
        ("Weight (kg)", "Weight", "kg"),
        ("Weight [kg]", "Weight", "kg"),
        ("Length, m", "Length", "m"),
        ("Price in EUR", "Price", "EUR"),
        ("price_eur", "price", "EUR"),
        ("Weight / kg", "Weight", "kg"),
        ("Revenue (€ million)", "Revenue", "million EUR"),
        ("Area (sq km)", "Area", "km²"),
        ("Flow [m3/h]", "Flow", "m³/h"),
        ("Built (est.)", "Built (est.)", ""),
        ("Temp min", "Temp min", ""),
        ("Home port", "Home port", ""),
    ],
)
def test_units_of_heads(head, name, unit):
    assert split_unit(head) == (name, unit)


def test_units_of_cells():
    read = column("Pressure", "40 bar", "500 mbar")
    assert [(value.value, value.unit) for value in read.values] == [("40", "bar"), ("500", "mbar")]
    assert (read_unit("MW"), read_unit("mW"), read_unit("apples")) == ("MW", "mW", "")


def test_the_same_property_has_one_name_and_unit():
    heads = ("Weight (kg)", "weight_kg", "Weight in kg", "Weight, kg")
    assert {(split_unit(head)[0].lower(), split_unit(head)[1]) for head in heads} == {
        ("weight", "kg")
    }
