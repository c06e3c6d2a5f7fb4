"""Books whose chapters have unusual types, are missing, or refer to notes elsewhere."""

from __future__ import annotations

import io
import zipfile

import pytest

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.model import Document

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
    '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
    "</container>"
)


def book(*chapters: tuple[str, str, str | None]) -> bytes:
    """An EPUB of chapters, each with its path, media type and body; None is a missing file."""
    items = "".join(
        f'<item id="c{number}" href="{path}" media-type="{kind}" properties="{path[:3]}"/>'
        for number, (path, kind, _) in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr(
            "OPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/>'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        for path, _, body in chapters:
            if body is not None:
                space = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="e"'
                archive.writestr(f"OPS/{path}", f"<html {space}><body>{body}</body></html>")
    return out.getvalue()


def read(*chapters: tuple[str, str, str | None]) -> Document:
    return load(book(*chapters), "a.epub")


@pytest.mark.parametrize(
    "media_type",
    [
        "application/xhtml+xml",
        "text/html",
        "Application/XHTML+XML; charset=utf-8",
        "application/xml",
        "text/x-oeb1-document",
        "application/unknown",
    ],
)
def test_chapters_are_known_by_the_essence_of_their_type(media_type: str):
    document = read(("a.xhtml", media_type, "<p>The bridge is red.</p>"))
    assert document.pages[0].text == "The bridge is red."
    assert document.report is not None
    assert document.report.is_whole
    assert [(u.unit, u.in_file, u.in_text) for u in document.report.units] == [
        ("chapters", 1, 1),
        ("characters", 15, 15),
    ]


def test_a_chapter_that_cannot_be_read_is_named_and_costs_itself_alone():
    html = "application/xhtml+xml"
    document = read(
        ("gone.xhtml", html, None),
        ("map.pdf", "application/pdf", "x"),
        ("a.xhtml", html, "<p>The bridge is red.</p>"),
    )
    assert document.pages[0].text == (
        "[chapter: OPS/gone.xhtml can't be read]\n\n[chapter: OPS/map.pdf can't be read]\n\n"
        "The bridge is red."
    )
    report = document.report
    assert report is not None
    assert [(loss.kind, loss.place, loss.reason) for loss in report.losses] == [
        ("chapter", "OPS/gone.xhtml", "its part 'OPS/gone.xhtml' is missing."),
        ("chapter", "OPS/map.pdf", "its media type is application/pdf"),
    ]
    assert not report.warnings
    with pytest.raises(IngestError, match="no text"):
        read(("gone.xhtml", html, None))


def test_notes_in_another_chapter_stand_apart():
    html = "application/xhtml+xml"
    document = read(
        ("a.xhtml", html, "<p>It is red.<a epub:type='noteref' href='n.xhtml#n1'>1</a></p>"),
        ("n.xhtml", html, "<nav epub:type='toc'><p>One</p></nav><p id='n1'>Since 1950.</p>"),
    )
    page = document.pages[0]
    assert page.text == "It is red.[1]\n\nSince 1950."
    assert [block.kind for block in page.blocks] == ["prose", "note"]
    assert document.report is not None
    assert [loss.kind for loss in document.report.losses] == ["table of contents"]


def test_a_table_of_contents_among_the_chapters_is_left_out_and_named():
    html = "application/xhtml+xml"
    document = read(("nav.xhtml", html, "<p>One</p>"), ("a.xhtml", html, "<p>It is red.</p>"))
    assert document.pages[0].text == "It is red."
    assert document.report is not None
    assert [(loss.kind, loss.place) for loss in document.report.losses] == [
        ("table of contents", "OPS/nav.xhtml")
    ]


def test_a_file_that_is_named_twice_is_read_once():
    html = "application/xhtml+xml"
    body = "<p>The bridge is red.</p>"
    document = read(("a.xhtml", html, body), ("a.xhtml#two", html, None))
    assert document.pages[0].text == "The bridge is red."
