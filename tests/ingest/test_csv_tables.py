"""CSV files as they come: delimiters, quotation marks, titles, heads, encodings."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.ingest.base import FileLimits
from tgraph.ingest.csv_tables import read_csv
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document, Segment

CELLS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"], exclude_characters="[]"),
    max_size=20,
)


def read(data: str | bytes, name: str = "a.csv") -> Document:
    return load(data.encode() if isinstance(data, str) else data, name)


def segments_of(document: Document) -> list[Segment]:
    return [
        segment
        for page in document.pages
        for segment in segments(page.text, document.media_type, page.blocks)
    ]


def rows_of(document: Document) -> list[str]:
    return [segment.text for segment in segments_of(document) if segment.kind == "row"]


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (
            '"Name", "Office", "Phone"\n"Ana Berg", "Oslo, Norway", "111"\n'
            '"Bo Lund", "Kiel", "222"\n',
            [
                "Name: Ana Berg; Office: Oslo, Norway; Phone: 111",
                "Name: Bo Lund; Office: Kiel; Phone: 222",
            ],
        ),
        (
            "sep=;\nStadt;Einwohner\nKiel;246.601\nBonn;331.885\n",
            ["Stadt: Kiel; Einwohner: 246.601", "Stadt: Bonn; Einwohner: 331.885"],
        ),
        (
            "Name,Value,Value,\nTent,1,2,x\nStove,3,4,y\n",
            [
                "Name: Tent; Value: 1; Value 2: 2; Column 4: x",
                "Name: Stove; Value: 3; Value 2: 4; Column 4: y",
            ],
        ),
        (
            "Ort;Länge;Breite\nA;1,5;2,5\nB;3,5;4,5\n",
            ["Ort: A; Länge: 1,5; Breite: 2,5", "Ort: B; Länge: 3,5; Breite: 4,5"],
        ),
        (
            'Name,Note\r\n"Doe, Jane","Signed.\r\nPaid."\r\n"a""b",plain\r\n',
            ["Name: Doe, Jane; Note: Signed. Paid.", 'Name: a"b; Note: plain'],
        ),
        (
            "Aurora,Berg,300\nFram,Lund,400\n",
            [
                "Column 1: Aurora; Column 2: Berg; Column 3: 300",
                "Column 1: Fram; Column 2: Lund; Column 3: 400",
            ],
        ),
        (
            "Aurora,Berg,1876\nFram,Lund,1892\n",
            [
                "Column 1: Aurora; Column 2: Berg; Column 3: 1876",
                "Column 1: Fram; Column 2: Lund; Column 3: 1892",
            ],
        ),
        (
            "Name,Weight,Length\n,(kg),(m)\nTent,4,2\nStove,2,1\n",
            [
                "Name: Tent; Weight (kg): 4; Length (m): 2",
                "Name: Stove; Weight (kg): 2; Length (m): 1",
            ],
        ),
        (
            "Region,2020,,2021,\n,low,high,low,high\nNorth,1,2,3,4\nSouth,5,6,7,8\n",
            [
                "Region: North; 2020 low: 1; 2020 high: 2; 2021 low: 3; 2021 high: 4",
                "Region: South; 2020 low: 5; 2020 high: 6; 2021 low: 7; 2021 high: 8",
            ],
        ),
        (
            "In millions,,January 2023\n,Sales,Profit\n\nNorth,12,3\nSouth,9,1\n",
            [
                "In millions: North; Sales: 12; January 2023 Profit: 3",
                "In millions: South; Sales: 9; January 2023 Profit: 1",
            ],
        ),
        (
            "Group,Tests,Results,\n,,Share,Time\nA,5,34 of 9,12 s\nB,6,99 of 9,14 s\n",
            [
                "Group: A; Tests: 5; Results Share: 34 of 9; Results Time: 12 s",
                "Group: B; Tests: 6; Results Share: 99 of 9; Results Time: 14 s",
            ],
        ),
        (
            'What,Said\na,"he said \\"no\\", twice"\nb,yes\n',
            ['What: a; Said: he said "no", twice', "What: b; Said: yes"],
        ),
    ],
)
def test_rows_are_read_under_their_heads(source, rows):
    document = read(source)
    assert rows_of(document) == rows
    assert document.report is not None
    assert document.report.is_whole


def test_many_short_columns_are_rows():
    heads = ["id", *(f"c{at}" for at in range(60))]
    lines = [",".join(heads), *(",".join(str(n * at) for at in range(61)) for n in (1, 2, 3))]
    assert len(rows_of(read("\n".join(lines)))) == 3


def test_a_quotation_mark_that_never_ends_costs_no_row():
    document = read('Q1,A1\nWhat is the fee?,"5 euros\nWhen?,In May\nWho pays?,The tenant\n')
    assert rows_of(document) == [
        'Q1: What is the fee?; A1: "5 euros',
        "Q1: When?; A1: In May",
        "Q1: Who pays?; A1: The tenant",
    ]
    assert document.report is not None
    (warning,) = document.report.warnings
    assert "line 2" in warning


def test_lines_above_and_below_a_table_are_no_rows():
    document = read(
        "Report of the harbour office\nPrinted on 2024-05-01\n\n"
        "Ship,Captain,Tons\nAurora,Berg,300\nFram,Lund,400\n\nSource: the harbour office.\n"
    )
    assert document.title == "Report of the harbour office"
    assert rows_of(document) == [
        "Ship: Aurora; Captain: Berg; Tons: 300",
        "Ship: Fram; Captain: Lund; Tons: 400",
    ]
    assert segments_of(document)[1].text == "Printed on 2024-05-01"
    assert segments_of(document)[-1].text == "Source: the harbour office."


def test_two_tables_have_their_own_heads():
    document = read("Ship,Tons\nA,1\nB,2\n\nPort,Depth,Quay\nX,4,n\nZ,5,s\n")
    assert rows_of(document) == [
        "Ship: A; Tons: 1",
        "Ship: B; Tons: 2",
        "Port: X; Depth: 4; Quay: n",
        "Port: Z; Depth: 5; Quay: s",
    ]


def test_a_list_of_texts_is_prose():
    document = read("notes\nhello, world\nbye\nThe pump was bought in 1999.\n")
    assert not rows_of(document)
    assert segments_of(document)[-1].text == "The pump was bought in 1999."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_encodings(encoding):
    source = "Ort;Bürgermeister\nGießen;Jürgen Groß\nKöln;Anna Möller\n"
    assert rows_of(read(source.encode(encoding)))[0] == "Ort: Gießen; Bürgermeister: Jürgen Groß"


def test_chinese_encoding():
    source = "城市,市长,人口\n北京,殷勇,21893095\n上海,龚正,24870895\n"
    assert rows_of(read(source.encode("gbk")))[1] == "城市: 上海; 市长: 龚正; 人口: 24870895"


@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), min_size=1, max_size=6))
def test_every_cell_stands_whole_in_the_text(grid):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(grid)
    if not any(any(map(str.isalnum, cell)) for line in grid for cell in line):
        return
    (page,) = read_csv(out.getvalue().encode(), "a.csv", FileLimits()).pages
    stored = page.text
    for cell in (cell for line in grid for cell in line):
        assert " ".join(cell.replace("\0", "\N{REPLACEMENT CHARACTER}").split()) in stored
    for segment in segments(stored, "text/csv", page.blocks):
        if segment.row is None:
            continue
        assert len(segment.row.cells) == len(segment.pairs)
        for _, (start, end) in segment.pairs:
            first, last = segment.locate(start, end)
            cell = "".join(segment.text[start:end].split())
            assert cell == "".join(stored[first:last].split())
