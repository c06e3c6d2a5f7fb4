"""Rows as data: which columns name the subject, its class, totals and notes, long cells."""

from __future__ import annotations

import pytest

from tgraph.ingest.base import FileLimits
from tgraph.ingest.blocks import PageBuilder
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.csv_tables import read_csv
from tgraph.ingest.segments import segments
from tgraph.model import Document, Segment


def rows_of(source: str) -> list[Segment]:
    (page,) = read_csv(source.encode(), "a.csv", FileLimits()).pages
    read = segments(page.text, "text/csv", page.blocks)
    return [segment for segment in read if segment.row is not None]


def label_of(segment: Segment) -> str:
    assert segment.row is not None
    return " ".join(segment.text[slice(*segment.pairs[at][1])] for at in segment.row.label)


@pytest.mark.parametrize(
    ("source", "labels", "subject"),
    [
        ("id,product,price\n1,Pump A,3\n2,Pump B,4\n", ["Pump A", "Pump B"], "product"),
        (
            "Index,Customer Id,First Name,Last Name,Company\n"
            "1,DD37Cf,Ana,Berg,Norden\n2,1Ef7b8,Bo,Lund,Süden\n",
            ["Ana Berg", "Bo Lund"],
            "customer",
        ),
        ("order_id,customer,total\n1042,Berg,3\n1043,Berg,4\n", ["1042", "1043"], "order"),
        ("Year,Ships\n1901,3\n1902,4\n", ["1901", "1902"], "year"),
        ("Captain,Ship name\nBerg,Aurora\nBerg,Fram\n", ["Aurora", "Fram"], "ship"),
        (
            "Year,League,Result\n1901,North,won\n1902,North,lost\n1903,North,won\n1904,South,won\n",
            ["1901", "1902", "1903", "1904"],
            "year",
        ),
        (
            "Year,Cup,Place\n1901,North,1st\n1901,South,2nd\n1902,North,3rd\n1902,South,1st\n",
            ["North 1901", "South 1901", "North 1902", "South 1902"],
            "cup",
        ),
        ("Low,High\n1.5,2.5\n1.5,3.5\n", ["", ""], ""),
        (
            "id,Name,Born\n7,Ana Berg,1980\n8,Ana Berg,1990\n9,Bo Lund,1990\n",
            ["Ana Berg 7", "Ana Berg 8", "Bo Lund"],
            "",
        ),
    ],
)
def test_the_columns_that_name_the_subject(source, labels, subject):
    rows = rows_of(source)
    assert [sorted(label_of(row)) for row in rows] == [sorted(label) for label in labels]
    assert {row.row.subject for row in rows if row.row} == {subject}


@pytest.mark.parametrize(
    ("last", "role"),
    [
        ("Total,4,6", "total"),
        ("Grand total:,4,6", "total"),
        (",4,6", "total"),
        ("Total Energies,9,9", "data"),
        ("Total north,4,6", "total"),
        (",9,9", "data"),
    ],
)
def test_rows_of_sums_are_recognised(last, role):
    rows = rows_of(f"Name,Weight,Length\nTent,1,2\nStove,3,4\n{last}\n")
    assert [row.row.role for row in rows if row.row] == ["data", "data", role]
    if role == "total":
        assert rows[-1].row is not None
        assert not rows[-1].row.label
        assert {cell.value for cell in rows[-1].row.cells} == {""}


def test_a_title_between_rows_is_a_note():
    rows = rows_of("Name,Weight,Length\nTent,1,2\nKitchen,,\nStove,3,4\n")
    assert [row.row.role for row in rows if row.row] == ["data", "note", "data"]


def test_a_long_cell_is_prose_about_the_subject():
    plot = "A ship leaves the harbour at night. " * 12
    source = f'Title,Year,Plot,Rating\nThe Night,1901,"{plot}",4.5\nThe Day,1902,short,3.5\n'
    (page,) = read_csv(source.encode(), "a.csv", FileLimits()).pages
    read = segments(page.text, "text/csv", page.blocks)
    assert [segment.kind for segment in read] == ["display", "row", "prose", "row", "row"]
    assert read[2].text == plot.strip()
    assert read[2].lead == ("The Night",)
    assert read[3].text == "Title: The Night; Rating: 4.5"
    assert label_of(read[3]) == "The Night"


def test_a_row_that_chunks_cut_keeps_its_subject_and_every_cell():
    names = ["product", *(f"metric {at}" for at in range(80))]
    lines = [[f"Pump {n}", *(str(n * 1000 + at) for at in range(80))] for n in range(1, 6)]
    source = "\n".join(",".join(line) for line in [names, *lines])
    content = read_csv(source.encode(), "a.csv", FileLimits())
    document = Document("0" * 64, "A", "text/csv", content.pages)
    stated = set()
    for chunk in chunk_document(document, size=150, overlap=20):
        for segment in chunk.segments:
            if segment.row is not None:
                for (start, end), (first, last) in segment.pairs:
                    key, value = segment.text[start:end], segment.text[first:last]
                    stated.add((label_of(segment), key, value))
    wanted = {
        (line[0], name, cell) for line in lines for name, cell in zip(names, line, strict=True)
    }
    assert stated == wanted


def test_tables_of_every_format_are_read_alike():
    builder = PageBuilder()
    table = builder.open_table()
    builder.add_row(table, ["No.", "Ship", "Tons (t)"], head=True)
    builder.add_row(table, ["1", "Aurora", "300"])
    builder.add_row(table, ["2", "Fram", "400"])
    page = builder.page()
    markdown = (
        "| No. | Ship | Tons (t) |\n|---|---|---|\n| 1 | Aurora | 300 |\n| 2 | Fram | 400 |\n"
    )
    html = (
        "<table><tr><th>No.</th><th>Ship</th><th>Tons (t)</th></tr>"
        "<tr><td>1</td><td>Aurora</td><td>300</td></tr>"
        "<tr><td>2</td><td>Fram</td><td>400</td></tr></table>\n"
    )
    readings = [
        segments(page.text, "application/pdf", page.blocks),
        segments(markdown, "text/markdown"),
        segments(html, "text/markdown"),
    ]
    rows = [[segment.row for segment in reading if segment.row] for reading in readings]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0][1].label == (1,)
    assert rows[0][1].cells[2][1:3] == ("t", "400")
