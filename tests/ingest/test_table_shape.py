"""Which lines of a grid are fields above a table, its head and its rows."""

from __future__ import annotations

import pytest

from tgraph.ingest.table_shape import find_tables

HEAD = ["Authority", "Electorate", "Wards", "Type"]
ROWS = [["Adur", "47300", "14", "District"], ["Arun", "115296", "23", "District"]]


@pytest.mark.parametrize(
    "fields",
    [
        [["Last updated", "2015-09-21", "", ""]],
        [["Publisher", "The Registry", "", ""], ["Next update", "tbc", "", ""]],
        [["Wards and electors", "", "", ""], ["Last updated", "2015-09-21", "", ""]],
    ],
)
def test_fields_that_touch_a_table_are_no_rows_of_it(fields: list[list[str]]) -> None:
    *_, table = find_tables([*fields, HEAD, *ROWS])
    assert (table.names, table.rows) == (HEAD, ROWS)


def test_a_table_of_two_columns_keeps_its_rows() -> None:
    (table,) = find_tables([["Name", "Age"], ["Ann", "3"], ["Bo", "4"]])
    assert (table.names, len(table.rows)) == (["Name", "Age"], 2)


def test_a_long_head_is_a_head() -> None:
    long = "Percentage of drivers involved in fatal collisions who had not been in accidents before"
    (table,) = find_tables([["State", long], ["Ohio", "30"], ["Utah", "25"]])
    assert table.names == ["State", long]
