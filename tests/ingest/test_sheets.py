"""Workbooks and typed tables: XLSX, ODS, Parquet, JSON records."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import date
from typing import Any

import odf.opendocument
import odf.table
import odf.text
import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.number_formats import show_value
from tgraph.ingest.segments import segments
from tgraph.model import Document, ReadingLoss, Segment


def save(workbook: openpyxl.Workbook) -> bytes:
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def read(document: Document) -> list[Segment]:
    (page,) = document.pages
    return list(segments(page.text, document.media_type, page.blocks))


def rows_of(document: Document) -> list[str]:
    return [segment.text for segment in read(document) if segment.kind == "row"]


def losses_of(document: Document) -> dict[str, ReadingLoss]:
    assert document.report is not None
    assert not document.report.warnings
    return {loss.kind: loss for loss in document.report.losses}


def pumps() -> openpyxl.Workbook:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Pumps"
    sheet.append(["Our pumps"])
    sheet.merge_cells("A1:C1")
    sheet.append([])
    sheet.append(["Maker", "Pump", "Price", "Since", "Secret"])
    sheet.append(["Norden", "Aqua 200", 1234.5, date(2020, 1, 2), "s1"])
    sheet.append([None, "Aqua 300", 0.45, date(2021, 3, 4), "s2"])
    sheet.append(["Berg", "Delta", 3, date(2022, 5, 6), "s3"])
    sheet.merge_cells("A4:A5")
    sheet["C4"].number_format = '#,##0.00 "€"'
    sheet["C5"].number_format = '0.00 "€"'
    sheet["C6"].number_format = '0.00 "€"'
    sheet.column_dimensions["E"].hidden = True
    return workbook


def test_a_sheet_is_read_as_it_is_shown():
    document = load(save(pumps()), "a.xlsx")
    assert rows_of(document) == [
        "Maker: Norden; Pump: Aqua 200; Price: 1,234.50 €; Since: 2020-01-02",
        "Maker: Norden; Pump: Aqua 300; Price: 0.45 €; Since: 2021-03-04",
        "Maker: Berg; Pump: Delta; Price: 3.00 €; Since: 2022-05-06",
    ]
    assert [heading.text for heading in document.pages[0].headings] == ["Pumps"]
    row = read(document)[3].row
    assert row is not None
    assert (row.label, row.subject) == ((1,), "pump")
    assert [cell.value for cell in row.cells] == ["", "", "1234.50", "2020-01-02"]
    assert losses_of(document)["hidden column"].count == 1


def test_what_is_hidden_is_left_out_and_counted():
    workbook = pumps()
    workbook.create_sheet("Draft").append(["hidden", "text"])
    workbook["Draft"].sheet_state = "hidden"
    workbook["Pumps"].row_dimensions[6].hidden = True
    document = load(save(workbook), "a.xlsx")
    assert "Delta" not in document.pages[0].text
    assert "hidden" not in document.pages[0].text
    losses = losses_of(document)
    assert losses["hidden sheet"].place == "Draft"
    assert losses["hidden row"].count == 1
    assert document.report is not None
    (cells,) = document.report.units
    assert (cells.unit, cells.unexplained) == ("cells", 0)
    assert cells.left_out == 10


def test_comments_charts_and_formulas_without_a_value():
    workbook = pumps()
    sheet = workbook["Pumps"]
    sheet["B4"].comment = Comment("Ask the maker.", "Ana")
    sheet["C7"] = "=SUM(C4:C6)"
    chart = BarChart()
    chart.title = "Prices"
    chart.add_data(Reference(sheet, min_col=3, min_row=3, max_row=6))
    sheet.add_chart(chart, "G3")
    document = load(save(workbook), "a.xlsx")
    text = document.pages[0].text
    assert "Comment on B4: Ask the maker." in text
    assert "[chart: Prices]" in text
    losses = losses_of(document)
    assert losses["chart"].marked
    assert losses["formula"].count == 1


def test_hidden_shapes_are_left_out_and_counted():
    workbook = pumps()
    workbook["Pumps"].add_chart(BarChart(), "G3")
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(save(workbook))) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            part = source.read(name).decode()
            if name == "xl/drawings/drawing1.xml":
                end = part.rindex("</")
                shapes = (
                    f'<sp><cNvPr id="9" name="a" hidden="{hidden}"/><p><t>{text}</t></p></sp>'
                    for hidden, text in ((1, "Draft"), (0, "Note"))
                )
                part = part[:end] + "".join(shapes) + part[end:]
            target.writestr(name, part)
    document = load(out.getvalue(), "a.xlsx")
    assert "Note" in document.pages[0].text
    assert "Draft" not in document.pages[0].text
    assert losses_of(document)["hidden text"].count == 1


def test_tables_side_by_side_and_forms():
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for line in (
        ["Ship", "Tons", None, "Port", "Depth"],
        ["Aurora", 300, None, "Kiel", 9],
        ["Fram", 400, None, "Oslo", 12],
    ):
        sheet.append(line)
    form = workbook.create_sheet("Form")
    form.append(["Revenue", 500])
    form.append(["Profit", 200])
    assert rows_of(load(save(workbook), "a.xlsx")) == [
        "Ship: Aurora; Tons: 300",
        "Ship: Fram; Tons: 400",
        "Port: Kiel; Depth: 9",
        "Port: Oslo; Depth: 12",
        "Revenue: 500",
        "Profit: 200",
    ]


def test_merged_heads_name_every_column_that_they_cover():
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for line in (
        ["", "Clear", "", "", "", "Eligible", ""],
        ["", "Yes", "", "No", "", "Total", ""],
        ["", "no.", "%", "no.", "%", "no.", "%"],
        ["Kiel", 20, 57.8, 17, 42.2, 37, 100],
        ["Oslo", 30, 64.9, 11, 35.1, 41, 100],
    ):
        sheet.append(line)
    for merged in ("B1:E1", "F1:G1", "B2:C2", "D2:E2", "F2:G2"):
        sheet.merge_cells(merged)
    document = load(save(workbook), "a.xlsx")
    assert document.pages[0].text.split("\n")[2] == "Clear | Eligible"
    assert rows_of(document)[1] == (
        "Column 1: Oslo; Clear Yes no.: 30; Clear Yes %: 64.9; Clear No no.: 11; "
        "Clear No %: 35.1; Eligible Total no.: 41; Eligible Total %: 100"
    )


def test_a_head_has_as_many_lines_as_its_merged_cells():
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for line in (
        ["", "Pupils", "Staff", ""],
        ["School", "Count", "", "", ""],
        ["", "", "Years", ""],
        ["", "", "in", "Not"],
        ["", "", "class", "in"],
        ["", "", "data", "field"],
        ["Kiel", 116, 3, 2],
        ["Oslo", 625, 4, 5],
    ):
        sheet.append(line)
    for merged in ("C1:D1", "A2:A6", "B2:B6"):
        sheet.merge_cells(merged)
    assert rows_of(load(save(workbook), "a.xlsx")) == [
        "School: Kiel; Pupils Count: 116; Staff Years in class data: 3; Staff Not in field: 2",
        "School: Oslo; Pupils Count: 625; Staff Years in class data: 4; Staff Not in field: 5",
    ]


def test_merged_heads_of_open_documents_name_their_columns():
    document = odf.opendocument.OpenDocumentSpreadsheet()
    table = odf.table.Table(name="Ships")
    for line in (
        ("Ship", ("Built", 2)),
        ("", "First", "Second"),
        ("Fram", "18", "402"),
        ("Vega", "17", "357"),
    ):
        row = odf.table.TableRow()
        for text, columns in ((t, 1) if isinstance(t, str) else t for t in line):
            cell = odf.table.TableCell(numbercolumnsspanned=columns)
            cell.addElement(odf.text.P(text=text))
            row.addElement(cell)
            if columns > 1:
                row.addElement(odf.table.CoveredTableCell(numbercolumnsrepeated=columns - 1))
        table.addElement(row)
    document.spreadsheet.addElement(table)
    out = io.BytesIO()
    document.write(out)
    rows = rows_of(load(out.getvalue(), "a.ods"))
    assert rows[0] == "Ship: Fram; Built First: 18; Built Second: 402"


def test_sections_of_a_table_keep_the_names_of_its_columns():
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for line in (
        ["Ship", "Tons", "Port"],
        ["North"],
        ["Aurora", 300, "Kiel"],
        [],
        ["South"],
        ["Fram", 400, "Oslo"],
        [],
        ["Harbours"],
        ["Kiel", "Baltic", 9],
    ):
        sheet.append(line)
    assert rows_of(load(save(workbook), "a.xlsx")) == [
        "Ship: North",
        "Ship: Aurora; Tons: 300; Port: Kiel",
        "Ship: South",
        "Ship: Fram; Tons: 400; Port: Oslo",
        "Column 1: Kiel; Column 2: Baltic; Column 3: 9",
    ]


def share_strings(data: bytes, runs: str) -> bytes:
    """Return a workbook whose texts ``runs`` are of a string with runs, as Excel shares strings."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            part = source.read(name).decode()
            part = part.replace(
                "</Types>", f'<Override PartName="/xl/shared.xml" ContentType="{kind}"/></Types>'
            )
            part = part.replace('t="inlineStr"><is><t>runs</t></is>', 't="s"><v>0</v>')
            target.writestr(name, part)
        space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        target.writestr("xl/shared.xml", f'<sst xmlns="{space}"><si>{runs}</si></sst>')
    return out.getvalue()


def test_superscripts_of_cells_are_no_part_of_their_words():
    workbook = openpyxl.Workbook()
    for line in (["City", "runs"], ["Kiel", 250000]):
        workbook.active.append(line)
    raised = '<r><rPr><vertAlign val="superscript"/></rPr><t>2</t></r>'
    data = share_strings(save(workbook), f"<r><t>Population</t></r>{raised}")
    document = load(data, "a.xlsx")
    assert "City | Population[2]" in document.pages[0].text
    assert rows_of(document) == ["City: Kiel; Population: 250000"]


def test_a_merged_cell_over_all_rows_adds_no_rows():
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.append(["Ship", "Tons"])
    sheet.append(["Fram", 402])
    sheet.merged_cells.add("A2:A1048576")
    assert rows_of(load(save(workbook), "a.xlsx")) == ["Ship: Fram; Tons: 402"]


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        (0.45, "0%", "45%"),
        (1234.5, "#,##0.00", "1,234.50"),
        (-5.5, "0.0;(0.0)", "(5.5)"),
        (12.5, "[$€-407] #,##0.00", "€ 12.50"),
        (0.1 + 0.2, "General", "0.3"),
        (12, "0.##", "12"),
        (2_500_000, '0.0,,"M"', "2.5M"),
        (7, "000", "007"),
        (0.5, "# ?/?", "0.5"),
        (True, "General", "TRUE"),
        (date(2020, 1, 2), "dd.mm.yy", "2020-01-02"),
    ],
)
def test_values_as_shown(value, number_format, shown):
    assert show_value(value, number_format) == shown


def ods(rows: list[list[str]], **first_cell: Any) -> bytes:
    document = odf.opendocument.OpenDocumentSpreadsheet()
    table = odf.table.Table(name="Ships")
    for line in rows:
        row = odf.table.TableRow()
        for text in line:
            cell = odf.table.TableCell(**(first_cell if text == rows[-1][0] else {}))
            cell.addElement(odf.text.P(text=text))
            row.addElement(cell)
        table.addElement(row)
    hidden = odf.table.TableRow(visibility="collapse")
    cell = odf.table.TableCell()
    cell.addElement(odf.text.P(text="Nimrod"))
    hidden.addElement(cell)
    table.addElement(hidden)
    document.spreadsheet.addElement(table)
    out = io.BytesIO()
    document.write(out)
    return out.getvalue()


def test_an_open_document_sheet():
    document = load(ods([["Ship", "Tons"], ["Aurora", "300"], ["Fram", "400"]]), "a.ods")
    assert rows_of(document) == ["Ship: Aurora; Tons: 300", "Ship: Fram; Tons: 400"]
    assert losses_of(document)["hidden row"].count == 1
    assert document.report is not None
    assert document.report.units[0].unexplained == 0


def test_a_repeated_cell_is_bounded():
    data = ods([["Ship", "Tons"], ["Aurora", "300"]], numbercolumnsrepeated=10**9)
    assert len(load(data, "a.ods").pages[0].text) < 100_000


def test_workbooks_without_a_suffix_are_known():
    assert rows_of(load(save(pumps()), "workbook"))
    assert rows_of(load(ods([["Ship", "Tons"], ["Aurora", "300"]]), "sheet"))


def test_parquet():
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra 'parquet'")
    from pyarrow import parquet

    table = pyarrow.table(
        {
            "id": [1, 2],
            "product": ["Pump A", "Pump B"],
            "price_eur": [100.5, 110.0],
            "since": [date(2020, 1, 2), None],
        }
    )
    out = io.BytesIO()
    parquet.write_table(table, out)
    document = load(out.getvalue(), "a.parquet")
    assert rows_of(document) == [
        "id: 1; product: Pump A; price_eur: 100.5; since: 2020-01-02",
        "id: 2; product: Pump B; price_eur: 110",
    ]
    row = read(document)[1].row
    assert row is not None
    assert row.cells[2][:3] == ("money", "EUR", "100.5")


def test_records_that_share_their_keys_are_a_table():
    records = [{"id": 1, "name": "Pump A", "price": 3}, {"id": 2, "name": "Pump B", "price": 4}]
    wanted = ["id: 1; name: Pump A; price: 3", "id: 2; name: Pump B; price: 4"]
    assert rows_of(load(json.dumps(records).encode(), "a.json")) == wanted
    lines = "\n".join(map(json.dumps, records))
    assert rows_of(load(lines.encode(), "a.jsonl")) == wanted
    whole = {"maker": "Norden", "pumps": records}
    assert rows_of(load(json.dumps(whole).encode(), "a.json")) == ["maker: Norden", *wanted]


def test_a_bad_line_costs_that_line_and_a_repeated_key_no_value():
    source = '\ufeff{"name":"Aurora","tons":300}\n\nnot json\n{"name":"Fram","name":"Nimrod"}\n'
    document = load(source.encode(), "a.jsonl")
    assert "Nimrod" in document.pages[0].text
    assert "Aurora" in document.pages[0].text
    assert losses_of(document)["damaged line"].place == "line 3"


def parquet_data() -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra 'parquet'")
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": [1, 2], "pump": ["A", "B"]}), out)
    return out.getvalue()


def reason_against(data: bytes, name: str) -> str:
    """Why the data can't be read; empty where it can."""
    try:
        load(data, name)
    except IngestError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.xlsx", lambda: save(pumps())),
        ("a.ods", lambda: ods([["Ship", "Tons"], ["Aurora", "300"]])),
        ("a.parquet", parquet_data),
    ],
)
def test_damaged_files_end_in_one_sentence(name, make):
    data = make()
    load(data, name)
    damaged = [data[:size] for size in range(1, len(data), len(data) // 12)]
    for at in range(8, len(data), len(data) // 25):
        damaged.append(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
    for broken in damaged:
        assert "\n" not in reason_against(broken, name)


def test_an_old_or_encrypted_workbook_names_the_remedy():
    with pytest.raises(IngestError, match="old Excel workbook"):
        load(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.xlsx")


def test_a_workbook_without_text():
    with pytest.raises(IngestError, match="holds no text"):
        load(save(openpyxl.Workbook()), "a.xlsx")
