"""Writers of small real files, as fixtures."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import docx
import pytest


def _pdf(*pages: str) -> bytes:
    """A PDF with one line of Helvetica for each line of each page (PDF 32000-1, 7.5)."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, text in enumerate(pages):
        lines = [
            line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            for line in text.split("\n")
        ]
        drawn = " T* ".join(f"({line}) Tj" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {drawn} ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * index} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return bytes(out) + f"{tail}startxref\n{len(out)}\n%%EOF\n".encode()


def _word(*paragraphs: str) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _book(*chapters: str, head: str = "", parts: dict[str, bytes] | None = None) -> bytes:
    """An EPUB of chapters given as the content of their bodies, with a page of contents."""
    names = [f"text/{number}.xhtml" for number in range(len(chapters))]
    items = "".join(
        f'<item id="c{k}" href="{name}" media-type="application/xhtml+xml"/>'
        for k, name in enumerate(names)
    )
    spine = "".join(f'<itemref idref="c{k}"/>' for k in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{head}</metadata>'
        '<manifest><item id="nav" href="nav.xhtml" properties="nav" '
        f'media-type="application/xhtml+xml"/>{items}</manifest>'
        f'<spine><itemref idref="nav"/>{spine}</spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
        '<rootfiles><rootfile full-path="OPS/book.opf" '
        'media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    page = '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="e"><body>{}</body></html>'
    files = {
        "META-INF/container.xml": container.encode(),
        "OPS/book.opf": package.encode(),
        "OPS/nav.xhtml": page.format("<nav><ol><li>Contents</li></ol></nav>").encode(),
    }
    files |= {f"OPS/{n}": page.format(c).encode() for n, c in zip(names, chapters, strict=True)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for name, data in {**files, **(parts or {})}.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.fixture(scope="session")
def book() -> Callable[..., bytes]:
    return _book


@pytest.fixture(scope="session")
def pdf() -> Callable[..., bytes]:
    return _pdf


@pytest.fixture(scope="session")
def word() -> Callable[..., bytes]:
    return _word
