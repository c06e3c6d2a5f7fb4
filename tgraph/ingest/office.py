"""DOCX: paragraphs and tables in document order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tgraph.errors import IngestError
from tgraph.ingest.archive import unpack_archive, unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, TextBuilder, error_reason, storable
from tgraph.ingest.tables import table_lines
from tgraph.rendering import collapse_whitespace

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from docx.table import Table, _Row
    from docx.text.paragraph import Paragraph

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADING = re.compile(r"Heading ([1-9])$")


def read_docx(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """A Word document as one page: paragraphs, list items, headings by style, rows as lines.

    Raises ``IngestError`` for what isn't a DOCX, is encrypted, or unpacks to more than the limit.
    """
    if data.startswith(_OLE):
        raise IngestError(
            name, "The file is an encrypted or an old Word document.", "Save it as an open DOCX."
        )
    package = unpack_archive(data, name, limits, "DOCX")
    import docx

    try:
        document = docx.Document(package)
        built = _render_document(document).page()
        title, metadata = _read_properties(document)
    except Exception as error:  # a damaged package makes the XML libraries fail in any way whatever
        raise unreadable_error(name, "DOCX", error_reason(error)) from None
    if not built.text.strip():
        raise IngestError(name, "The DOCX holds no text.")
    title = title or (built.headings[0].text if built.headings else "")
    return FileContent((built,), title, metadata)


def _read_properties(document: WordDocument) -> tuple[str, dict[str, str]]:
    core = document.core_properties
    properties = {"language": core.language, "description": core.subject}
    if core.author != "python-docx":  # its template's author and date are nobody's
        properties["author"] = core.author
        properties["date"] = core.created.date().isoformat() if core.created else ""
    metadata = {
        key: collapse_whitespace(storable(value or "")) for key, value in properties.items()
    }
    return collapse_whitespace(storable(core.title or "")), {
        key: metadata[key] for key in metadata if metadata[key]
    }


def _render_document(document: WordDocument) -> TextBuilder:
    from docx.table import Table

    builder = TextBuilder()
    in_list = False
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            _add_table(builder, block)
            in_list = False
        else:
            in_list = _add_paragraph(builder, block, in_list)
    return builder


def _add_paragraph(builder: TextBuilder, paragraph: Paragraph, in_list: bool) -> bool:
    """Add a paragraph with text, and return whether the paragraph is a list item."""
    text = storable(paragraph.text).strip()
    if not text:
        return in_list
    style = (paragraph.style.name if paragraph.style is not None else "") or ""
    match = _HEADING.match(style)
    if level := int(match[1]) if match else int(style == "Title"):
        builder.heading(collapse_whitespace(text), level)
        return False
    is_item = style.startswith("List")
    builder.add(f"- {text}" if is_item else text, "\n" if is_item and in_list else "\n\n")
    return is_item


def _add_table(builder: TextBuilder, table: Table) -> None:
    """Add the table's rows as lines; a merged cell counts once."""
    rows = [_read_cells(row) for row in table.rows]
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    for index, line in enumerate(table_lines(filled)):
        builder.add(line, "\n" if index else "\n\n")


def _read_cells(row: _Row) -> list[str]:
    cell_texts: list[str] = []
    before = None
    for cell in row.cells:
        cell_texts.append("" if cell._tc is before else storable(cell.text))
        before = cell._tc
    return cell_texts
