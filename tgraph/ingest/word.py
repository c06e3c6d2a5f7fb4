"""Word documents (DOCX) as blocks: mammoth reads the package as HTML, after its XML has been made
plain by ``word_xml``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import open_archive, unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.html import parse_markup
from tgraph.ingest.html_blocks import COMMENT, LABEL, MARK, NOTE, add_html_blocks
from tgraph.ingest.html_selection import select_content
from tgraph.ingest.unit_counts import compare_characters
from tgraph.ingest.word_drawings import MARK_STYLE
from tgraph.ingest.word_package import WordPackage
from tgraph.ingest.word_xml import (
    COMMENT_STYLE,
    DISPLAY_STYLE,
    HEADING_STYLE,
    ITEM_STYLE,
    LABEL_STYLE,
    NOTE_STYLE,
    simplify_package,
)

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STYLES = "\n".join(
    (
        *(f"p.{HEADING_STYLE}{level} => h{level}:fresh" for level in range(1, 7)),
        *(f"p.{ITEM_STYLE}{depth} => {'ul > li > ' * depth}ul > li:fresh" for depth in range(9)),
        f"p.{DISPLAY_STYLE} => figcaption:fresh",
        f"p.{COMMENT_STYLE} => {COMMENT}:fresh",
        f"p.{NOTE_STYLE} => {NOTE}:fresh",
        f"r.{MARK_STYLE} => {MARK}:fresh",
        f"r.{LABEL_STYLE} => {LABEL}:fresh",
    )
)


def read_docx(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a Word document as one page, as Word shows the document with all changes accepted.

    Raises ``IngestError`` for what isn't a DOCX, is encrypted, or unpacks to more than the limit.
    """
    if data.startswith(_OLE):
        raise IngestError(
            name, "The file is an encrypted or an old Word document.", "Save it as an open DOCX."
        )
    losses, builder = LossList(), PageBuilder()
    with open_archive(data, name, limits, "DOCX") as archive:
        try:
            package = WordPackage(archive, name)
            texts = package.count_texts()
            title, metadata = package.read_properties()
            left_out = simplify_package(package, losses)
            for root in _convert_package(package, name):
                selection = select_content(root, with_furniture=True)
                add_html_blocks(root, selection, builder, losses)
        except (IngestError, MemoryError):
            raise
        except RecursionError:
            raise unreadable_error(name, "DOCX", "its tables are nested too deeply") from None
        except Exception as error:  # a damaged package makes the libraries fail in any way whatever
            raise unreadable_error(name, "DOCX", error_reason(error)) from None
    if not builder.has_text:
        raise IngestError(name, "The DOCX holds no text.")
    page = builder.page()
    title = title or (page.headings[0].text if page.headings else "")
    characters = compare_characters(texts, page.text, left_out)
    report = losses.report(f"mammoth {version('mammoth')}", [characters])
    return FileContent((page,), title, metadata, report)


def _convert_package(package: WordPackage, name: str) -> Iterator[etree._Element]:
    """Yield the document as HTML, slice by slice."""
    import mammoth

    for archive in package.slice_archives():
        converted = mammoth.convert_to_html(
            archive,
            style_map=_STYLES,
            include_embedded_style_map=False,
            include_default_style_map=False,
        )
        root = parse_markup(f"<html><body>{converted.value}</body></html>", name)
        if root is not None:
            yield root
