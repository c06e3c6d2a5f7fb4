"""ODS: sheets under their names, cells with the text that they show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tgraph.errors import IngestError
from tgraph.ingest.archive import unpack_archive, unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable
from tgraph.ingest.blocks import LossList, PageBuilder, count_visible
from tgraph.ingest.sheets import Sheet, add_sheet
from tgraph.model import UnitCount
from tgraph.rendering import collapse_whitespace

_MOST_REPEATED = 1_000
_UNSEEN = frozenset(("collapse", "filter"))


def read_ods(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a spreadsheet as one page. Hidden sheets, rows and columns are left out and counted.

    Raise ``IngestError`` for what isn't an ODS, is encrypted, or unpacks to more than the limit."""
    package = unpack_archive(data, name, limits, "ODS")
    import odf.opendocument

    losses, builder = LossList(), PageBuilder()
    counts = [0, 0, 0]
    try:
        document = odf.opendocument.load(package)
        hidden = set(_hidden_styles(document))
        for element in _children(document.spreadsheet, "table:table"):
            sheet = _read_sheet(element, hidden)
            add_sheet(builder, sheet, losses)
            cells = sum(map(count_visible, sheet.cells.values()))
            left_out = sum(
                count_visible(text) for at, text in sheet.cells.items() if not sheet.is_shown(*at)
            )
            counts = [counts[0] + _count_characters(element), counts[1] + cells - left_out, 0]
            counts[2] += left_out
        title, metadata = _read_metadata(document)
    except Exception as error:  # a damaged package makes the XML libraries fail in any way whatever
        raise unreadable_error(name, "ODS", error_reason(error)) from None
    page = builder.page()
    if not page.text.strip():
        raise IngestError(name, "The ODS holds no text.")
    report = losses.report("odfpy", [UnitCount("characters", *counts)])
    return FileContent((page,), title, metadata, report)


def _children(element: Any, name: str) -> Iterator[Any]:
    return (child for child in element.childNodes if getattr(child, "tagName", "") == name)


def _below(element: Any, name: str) -> Iterator[Any]:
    """Yield the elements of a name below an element, not those inside one of them."""
    for child in getattr(element, "childNodes", ()):
        if getattr(child, "tagName", "") == name:
            yield child
        else:
            yield from _below(child, name)


def _attribute(element: Any, name: str) -> str:
    """Return an attribute by its local name; empty for none."""
    values = (value for (_, local), value in element.attributes.items() if local == name)
    return str(next(values, ""))


def _repeated(element: Any, name: str) -> int:
    count = _attribute(element, f"number-{name}-repeated")
    return int(count) if count.isdigit() else 1


def _hidden_styles(document: Any) -> Iterator[str]:
    """Yield the names of the styles of sheets that aren't shown."""
    for style in _children(document.automaticstyles, "style:style"):
        for properties in _children(style, "style:table-properties"):
            if _attribute(properties, "display") == "false":
                yield _attribute(style, "name")


def _read_sheet(table: Any, hidden_styles: set[str]) -> Sheet:
    sheet = Sheet(_attribute(table, "name"), _attribute(table, "style-name") in hidden_styles)
    column = 1
    for element in _below(table, "table:table-column"):
        count = _repeated(element, "columns")
        if _attribute(element, "visibility") in _UNSEEN:
            sheet.hidden_columns.update(range(column, column + min(count, _MOST_REPEATED)))
        column += count
    number = 1
    for row in _below(table, "table:table-row"):
        count = _repeated(row, "rows")
        filled = _read_row(row, number, sheet)
        for again in range(1, min(count, _MOST_REPEATED) if filled else 1):
            _read_row(row, number + again, sheet)
        if _attribute(row, "visibility") in _UNSEEN:
            sheet.hidden_rows.update(range(number, number + min(count, _MOST_REPEATED)))
        number += count
    _read_shapes(table, sheet)
    return sheet


def _read_row(row: Any, number: int, sheet: Sheet) -> bool:
    """Add the cells of a row; return whether one of them has text."""
    column, filled = 1, False
    for cell in row.childNodes:
        count = _repeated(cell, "columns")
        text = "\n".join(_text_of(paragraph) for paragraph in _paragraphs(cell))
        if text.strip():
            filled = True
            for again in range(min(count, _MOST_REPEATED)):
                sheet.cells[number, column + again] = text
            rows = _attribute(cell, "number-rows-spanned")
            if rows.isdigit() and int(rows) > 1:
                sheet.merged.append((number, column, number + min(int(rows), _MOST_REPEATED) - 1))
        for note in _children(cell, "office:annotation"):
            words = " ".join(_text_of(paragraph) for paragraph in _children(note, "text:p"))
            sheet.comments.append((f"{_letters(column)}{number}", words))
        column += count
    return filled


def _paragraphs(cell: Any) -> Iterator[Any]:
    for child in cell.childNodes:
        if getattr(child, "tagName", "") in ("text:p", "text:h"):
            yield child


def _text_of(element: Any) -> str:
    """Return the text of a paragraph without the notes and drawings in it."""
    pieces = []
    for child in element.childNodes:
        if child.nodeType == child.TEXT_NODE:
            pieces.append(str(child.data))
        elif child.tagName == "text:s":
            pieces.append(" " * max(1, int(_attribute(child, "c") or 1)))
        elif child.tagName in ("text:tab", "text:line-break"):
            pieces.append(" ")
        elif child.tagName not in ("office:annotation", "draw:frame"):
            pieces.append(_text_of(child))
    return "".join(pieces)


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, at = divmod(column - 1, 26)
        letters = chr(ord("A") + at) + letters
    return letters


def _read_shapes(table: Any, sheet: Sheet) -> None:
    """Add marks of pictures and charts, and texts of text boxes."""
    for frame in _below(table, "draw:frame"):
        if boxes := list(_children(frame, "draw:text-box")):
            lines = (_text_of(paragraph) for box in boxes for paragraph in _below(box, "text:p"))
            sheet.texts.append("\n".join(filter(str.strip, lines)))
            continue
        kind = "chart" if list(_children(frame, "draw:object")) else "image"
        described = " ".join(
            _text_of(child) for tag in ("svg:title", "svg:desc") for child in _children(frame, tag)
        )
        sheet.marks.append((kind, described))


def _count_characters(table: Any) -> int:
    """Return how many visible characters the cells' paragraphs of a sheet have, comments and
    drawings left out: a count that doesn't go by rows and columns."""
    total = 0
    waiting = [(table, 1)]
    while waiting:
        element, times = waiting.pop()
        tag = getattr(element, "tagName", "")
        if element.nodeType == element.TEXT_NODE:
            total += times * count_visible(str(element.data))
        elif tag not in ("office:annotation", "draw:frame", "table:shapes", "office:forms"):
            if tag == "table:table-row":
                times *= min(_repeated(element, "rows"), _MOST_REPEATED)
            elif tag in ("table:table-cell", "table:covered-table-cell"):
                times *= min(_repeated(element, "columns"), _MOST_REPEATED)
            waiting += [(child, times) for child in element.childNodes]
    return total


def _read_metadata(document: Any) -> tuple[str, dict[str, str]]:
    """Return title and metadata of the file."""
    values = {
        str(child.tagName): collapse_whitespace(storable(_text_of(child)))
        for child in document.meta.childNodes
        if hasattr(child, "tagName")
    }
    metadata = {
        "author": values.get("meta:initial-creator") or values.get("dc:creator", ""),
        "date": (values.get("meta:creation-date") or values.get("dc:date", ""))[:10],
        "language": values.get("dc:language", ""),
        "description": values.get("dc:description", ""),
    }
    return values.get("dc:title", ""), {key: value for key, value in metadata.items() if value}
