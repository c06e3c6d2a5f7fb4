"""ODS: sheets under their names, cells with the text that they show."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import open_archive
from tgraph.ingest.base import FileContent, FileLimits
from tgraph.ingest.blocks import LossList, PageBuilder, count_visible
from tgraph.ingest.odf_xml import (
    MOST_REPEATED,
    READER,
    attribute_of,
    local_name,
    parse_part,
    read_metadata,
    repetitions_of,
)
from tgraph.ingest.sheets import Sheet, add_sheet
from tgraph.model import UnitCount

_UNSEEN = frozenset(("collapse", "filter"))
_CELLS = frozenset(("table-cell", "covered-table-cell"))
_NOT_CELLS = frozenset(("annotation", "frame", "shapes", "forms"))


def read_ods(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a spreadsheet as one page. Hidden sheets, rows and columns are left out and counted.

    Raise ``IngestError`` for what isn't an ODS, is encrypted, or unpacks to more than the limit."""
    with open_archive(data, name, limits, "ODS") as archive:
        content = parse_part(archive, "content.xml", name, "ODS")
        title, metadata = read_metadata(archive, name, "ODS")
    losses, builder = LossList(), PageBuilder()
    in_file = in_text = left_out = 0
    hidden = set(_hidden_styles(content))
    for element in content.iterfind("{*}body/{*}spreadsheet/{*}table"):
        sheet = _read_sheet(element, hidden)
        add_sheet(builder, sheet, losses)
        for place, text in sheet.cells.items():
            if sheet.is_shown(*place):
                in_text += count_visible(text)
            else:
                left_out += count_visible(text)
        in_file += _count_characters(element)
    page = builder.page()
    if not page.text.strip():
        raise IngestError(name, "The ODS holds no text.")
    report = losses.report(READER, [UnitCount("characters", in_file, in_text, left_out)])
    return FileContent((page,), title, metadata, report)


def _below(element: etree._Element, name: str) -> Iterator[etree._Element]:
    """Yield the elements of a name below an element, not those inside one of them."""
    for child in element:
        if local_name(child) == name:
            yield child
        else:
            yield from _below(child, name)


def _hidden_styles(content: etree._Element) -> Iterator[str]:
    """Yield the names of the styles of sheets that aren't shown."""
    for style in content.iter("{*}style"):
        for properties in style.iterfind("{*}table-properties"):
            if attribute_of(properties, "display") == "false":
                yield attribute_of(style, "name")


def _read_sheet(table: etree._Element, hidden_styles: set[str]) -> Sheet:
    is_hidden = attribute_of(table, "style-name") in hidden_styles
    sheet = Sheet(attribute_of(table, "name"), is_hidden)
    column = 1
    for element in _below(table, "table-column"):
        count = repetitions_of(element, "number-columns-repeated")
        if attribute_of(element, "visibility") in _UNSEEN:
            sheet.hidden_columns.update(range(column, column + min(count, MOST_REPEATED)))
        column += count
    number = 1
    for row in _below(table, "table-row"):
        count = repetitions_of(row, "number-rows-repeated")
        filled = _read_row(row, number, sheet)
        for again in range(1, min(count, MOST_REPEATED) if filled else 1):
            _read_row(row, number + again, sheet)
        if attribute_of(row, "visibility") in _UNSEEN:
            sheet.hidden_rows.update(range(number, number + min(count, MOST_REPEATED)))
        number += count
    _read_shapes(table, sheet)
    return sheet


def _read_row(row: etree._Element, number: int, sheet: Sheet) -> bool:
    """Add the cells of a row; return whether one of them has text."""
    column, filled = 1, False
    for cell in row:
        count = repetitions_of(cell, "number-columns-repeated")
        text = "\n".join(map(_text_of, cell.iterfind("{*}p")))
        if text.strip():
            filled = True
            for again in range(min(count, MOST_REPEATED)):
                sheet.cells[number, column + again] = text
            rows, columns = (
                min(repetitions_of(cell, f"number-{lines}-spanned"), MOST_REPEATED)
                for lines in ("rows", "columns")
            )
            if rows > 1 or columns > 1:
                last = number + rows - 1, column + columns - 1
                sheet.merged.append((number, column, *last))
        for note in cell.iterfind("{*}annotation"):
            words = " ".join(map(_text_of, note.iterfind("{*}p")))
            sheet.comments.append((f"{_letters(column)}{number}", words))
        column += count
    return filled


def _text_of(element: etree._Element) -> str:
    """Return the text of a paragraph without the notes and drawings in it."""
    pieces = [element.text or ""]
    for child in element:
        name = local_name(child)
        if name == "s":
            pieces.append(" " * min(repetitions_of(child, "c"), MOST_REPEATED))
        elif name in ("tab", "line-break"):
            pieces.append(" ")
        elif name and name not in _NOT_CELLS:
            pieces.append(_text_of(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, at = divmod(column - 1, 26)
        letters = chr(ord("A") + at) + letters
    return letters


def _read_shapes(table: etree._Element, sheet: Sheet) -> None:
    """Add marks of pictures and charts, and texts of text boxes."""
    for frame in _below(table, "frame"):
        if boxes := frame.findall("{*}text-box"):
            lines = (_text_of(paragraph) for box in boxes for paragraph in _below(box, "p"))
            sheet.texts.append("\n".join(filter(str.strip, lines)))
            continue
        kind = "image" if frame.find("{*}object") is None else "chart"
        described = (frame.find(f"{{*}}{tag}") for tag in ("title", "desc"))
        words = " ".join(_text_of(element) for element in described if element is not None)
        sheet.marks.append((kind, words))


def _count_characters(table: etree._Element) -> int:
    """Return how many visible characters the cells' paragraphs of a sheet have, comments and
    drawings left out: a count that doesn't go by rows and columns."""
    total = 0
    waiting = [(table, 1)]
    while waiting:
        element, times = waiting.pop()
        name = local_name(element)
        if name == "table-row":
            times *= min(repetitions_of(element, "number-rows-repeated"), MOST_REPEATED)
        elif name in _CELLS:
            times *= min(repetitions_of(element, "number-columns-repeated"), MOST_REPEATED)
        total += times * count_visible(element.text or "")
        for child in element:
            total += times * count_visible(child.tail or "")
            if local_name(child) not in _NOT_CELLS:
                waiting.append((child, times))
    return total
