"""XLSX: sheets under their names, cells as shown, formulas by their stored values."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

from tgraph.errors import IngestError
from tgraph.ingest.archive import unpack_archive, unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.inline_text import InlineText
from tgraph.ingest.number_formats import show_value
from tgraph.ingest.sheets import Sheet, add_sheet
from tgraph.model import UnitCount
from tgraph.rendering import collapse_whitespace

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_STRINGS = "xl/sharedStrings.xml"
_LARGEST_COLUMN = 16_384
_NO_VALUE = "the file has no value of it; open and save it in a spreadsheet program"


def read_xlsx(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a workbook as one page. Hidden sheets, rows and columns are left out and counted.

    Raise ``IngestError`` for what isn't an XLSX, is encrypted, or unpacks to more than the
    limit."""
    if data.startswith(_OLE):
        raise IngestError(
            name, "The file is an encrypted or an old Excel workbook.", "Save it as an open XLSX."
        )
    package = unpack_archive(data, name, limits, "XLSX")
    import openpyxl

    losses, builder = LossList(), PageBuilder()
    try:
        workbook = openpyxl.load_workbook(package, read_only=True, data_only=True, rich_text=True)
        counts = [0, 0, 0]
        with ZipFile(package) as archive:
            for sheet, in_file in _read_sheets(archive, workbook, losses):
                add_sheet(builder, sheet, losses)
                hidden = sheet.hidden_cells
                added = (in_file, len(sheet.cells) - hidden, hidden)
                counts = [a + b for a, b in zip(counts, added, strict=True)]
        properties = workbook.properties
    except Exception as error:  # a damaged package makes the XML libraries fail in any way whatever
        raise unreadable_error(name, "XLSX", error_reason(error)) from None
    page = builder.page()
    if not page.text.strip():
        raise IngestError(name, "The XLSX holds no text.")
    metadata = {
        "author": properties.creator if properties.creator != "openpyxl" else "",
        "date": properties.created.date().isoformat() if properties.created else "",
        "language": properties.language,
        "description": properties.description,
    }
    cleaned = {key: collapse_whitespace(storable(value or "")) for key, value in metadata.items()}
    report = losses.report(f"openpyxl {openpyxl.__version__}", [UnitCount("cells", *counts)])
    title = collapse_whitespace(storable(properties.title or ""))
    return FileContent((page,), title, {k: v for k, v in cleaned.items() if v}, report)


def _read_sheets(archive: ZipFile, workbook: Any, losses: LossList) -> Iterator[tuple[Sheet, int]]:
    """Yield each sheet with the number of its cells that have a value."""
    from lxml import etree

    paths = _sheet_paths(archive)
    blank = _blank_strings(archive)
    charts = {sheet.title for sheet in workbook.chartsheets}
    for worksheet in workbook.worksheets:
        path = paths.get(worksheet.title, "")
        sheet = Sheet(worksheet.title, worksheet.sheet_state != "visible")
        worksheet.reset_dimensions()
        for row in worksheet.iter_rows():
            for cell in row:
                value = _write_runs(cell.value) if isinstance(cell.value, list) else cell.value
                text = show_value(value, cell.number_format)
                if text.strip():
                    sheet.cells[cell.row, cell.column] = text
        with archive.open(path) as part:
            in_file, unknown = _read_layout(etree.iterparse(part, events=("end",)), sheet, blank)
        losses.add("formula", _NO_VALUE, place=sheet.name, count=unknown)
        _read_relations(archive, path, sheet)
        yield sheet, in_file
    for title in sorted(charts):
        yield Sheet(title, marks=[("chart", "")]), 0


def _write_runs(runs: list[Any]) -> str:
    """Return the text of runs with their own fonts, superscripts as they are in other formats."""
    text = InlineText()
    for run in runs:
        start = len(text)
        text.add(str(run))
        if not isinstance(run, str) and run.font.vertAlign == "superscript":
            text.close_superscript(start, is_reference=False)
    return text.take_lines()


def _blank_strings(archive: ZipFile) -> set[str]:
    """Return the numbers of the shared strings without visible characters, and empty text."""
    from lxml import etree

    if _STRINGS not in archive.namelist():
        return {""}
    root = etree.fromstring(archive.read(_STRINGS), _parser())
    texts = ("".join(t.text or "" for t in item.iter("{*}t")) for item in root.iter("{*}si"))
    return {"", *(str(number) for number, text in enumerate(texts) if not text.strip())}


def _read_layout(events: Any, sheet: Sheet, blank: set[str]) -> tuple[int, int]:
    """Add merged and hidden cells to a sheet; return how many cells of its file have a value, and
    how many formulas have none. ``blank`` has the numbers of the shared strings without text."""
    in_file = unknown = 0
    for _, element in events:
        tag = element.tag.rpartition("}")[2]
        if tag == "c":
            children = {child.tag.rpartition("}")[2]: child for child in element}
            value = "".join(
                text for key in ("v", "is") if key in children for text in children[key].itertext()
            )
            is_blank = value in blank if element.get("t") == "s" else not value.strip()
            in_file += not is_blank
            unknown += "f" in children and not value
            element.clear()
        elif tag == "row":
            if _is_true(element.get("hidden")):
                sheet.hidden_rows.add(int(element.get("r", 0)))
            element.clear()
        elif tag == "col" and _is_true(element.get("hidden")):
            last = min(int(element.get("max")), _LARGEST_COLUMN)
            sheet.hidden_columns.update(range(int(element.get("min")), last + 1))
        elif tag == "mergeCell":
            first, _, last_cell = element.get("ref", "").partition(":")
            place, last_place = _cell_place(first), _cell_place(last_cell or first)
            sheet.merged.append((*place, *last_place))
    return in_file, unknown


def _is_true(value: str | None) -> bool:
    return value in ("1", "true")


def _cell_place(reference: str) -> tuple[int, int]:
    """Return row and column (from 1) of a cell such as ``B3``; zeros for any other text."""
    match = _PLACE.fullmatch(reference.replace("$", ""))
    if match is None:
        return 0, 0
    column = 0
    for letter in match[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(match[2]), column


def _sheet_paths(archive: ZipFile) -> dict[str, str]:
    """Return the part of each sheet by the sheet's name."""
    from lxml import etree

    root = etree.fromstring(archive.read("xl/workbook.xml"), _parser())
    targets = {identity: target for identity, _, target in _relations(archive, "xl/workbook.xml")}
    return {
        element.get("name", ""): targets.get(
            next((v for k, v in element.attrib.items() if k.endswith("}id")), ""), ""
        )
        for element in root.iter("{*}sheet")
    }


def _parser() -> Any:
    from lxml import etree

    return etree.XMLParser(resolve_entities=False, no_network=True)


def _relations(archive: ZipFile, part: str) -> Iterator[tuple[str, str, str]]:
    """Yield identity, kind and path of the parts that a part refers to."""
    from lxml import etree

    folder, _, file = part.rpartition("/")
    path = f"{folder}/_rels/{file}.rels"
    if path not in archive.namelist():
        return
    for element in etree.fromstring(archive.read(path), _parser()).iter("{*}Relationship"):
        if element.get("TargetMode") == "External":
            continue
        target = element.get("Target", "")
        whole = target[1:] if target.startswith("/") else posixpath.join(folder, target)
        kind = element.get("Type", "").rpartition("/")[2]
        yield element.get("Id", ""), kind, posixpath.normpath(whole)


def _read_relations(archive: ZipFile, path: str, sheet: Sheet) -> None:
    """Add a sheet's comments, and marks and texts of its drawings."""
    relations = list(_relations(archive, path))
    threads = {p for _, kind, p in relations if kind == "threadedComment"}
    for _, kind, part in relations:
        if part not in archive.namelist():
            continue
        if part in threads or (kind == "comments" and not threads):
            sheet.comments += _read_comments(archive.read(part))
        elif kind == "drawing":
            _read_drawing(archive, part, sheet)


def _read_comments(data: bytes) -> Iterator[tuple[str, str]]:
    from lxml import etree

    for element in etree.fromstring(data, _parser()).iter("{*}comment", "{*}threadedComment"):
        text = "".join(
            piece.text or "" for piece in element.iter("{*}t", "{*}text") if not len(piece)
        )
        if text.strip():
            yield element.get("ref", ""), collapse_whitespace(text)


def _read_drawing(archive: ZipFile, part: str, sheet: Sheet) -> None:
    """Add texts of shapes, and marks of pictures and charts."""
    from lxml import etree

    root = etree.fromstring(archive.read(part), _parser())
    for shape in root.iter("{*}sp"):
        lines = ("".join(t.text or "" for t in p.iter("{*}t")) for p in shape.iter("{*}p"))
        if text := "\n".join(filter(str.strip, lines)):
            sheet.texts.append(text)
    for picture in root.iter("{*}pic"):
        described = next(picture.iter("{*}cNvPr"), None)
        sheet.marks.append(("image", described.get("descr", "") if described is not None else ""))
    for _, kind, path in _relations(archive, part):
        if kind in ("chart", "chartEx") and path in archive.namelist():
            chart = etree.fromstring(archive.read(path), _parser())
            title = next(chart.iter("{*}title"), None)
            words = [t.text or "" for t in title.iter("{*}t")] if title is not None else []
            sheet.marks.append(("chart", "".join(words)))
