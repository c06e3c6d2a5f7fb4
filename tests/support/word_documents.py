"""Word documents made of raw XML, with what no library writes."""

from __future__ import annotations

import io
import zipfile

MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_SPACES = " ".join(
    f'xmlns:{prefix}="{uri}"'
    for prefix, uri in {
        "w": MAIN,
        "r": f"{OFFICE}/relationships",
        "m": f"{OFFICE}/math",
        "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
        "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
        "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
        "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "v": "urn:schemas-microsoft-com:vml",
    }.items()
)


def paragraph(*texts: str, properties: str = "") -> str:
    """A paragraph of runs; what begins with ``<`` stands as it is."""
    runs = (text if text.startswith("<") else run(text) for text in texts)
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(runs)}</w:p>"


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def row(*cells: str, properties: str = "") -> str:
    """A row of a table, of cells given as XML of blocks."""
    content = "".join(f"<w:tc>{cell}</w:tc>" for cell in cells)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{content}</w:tr>"


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(rows)}</w:tbl>"


def root(tag: str, content: str) -> str:
    return f"<w:{tag} {_SPACES}>{content}</w:{tag}>"


def word_document(*blocks: str, parts: dict[str, str] | None = None, strict: bool = False) -> bytes:
    """A DOCX of blocks and of other parts by path; relationships are made for parts of Word's
    kinds, by the part's name without its suffix."""
    parts = {"word/document.xml": root("document", f"<w:body>{''.join(blocks)}</w:body>")} | (
        parts or {}
    )
    relations = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/relationships/{name.rstrip("0123456789")}"'
        f' Target="{path.removeprefix("word/")}"/>'
        for path in parts
        if (name := path.rpartition("/")[2].removesuffix(".xml")) != "document"
    )
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    parts["word/_rels/document.xml.rels"] = (
        f'<Relationships xmlns="{package}">{relations}</Relationships>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in parts.items():
            text = content
            if strict:
                text = text.replace(MAIN, "http://purl.oclc.org/ooxml/wordprocessingml/main")
                text = text.replace(OFFICE, "http://purl.oclc.org/ooxml/officeDocument")
            archive.writestr(path, text)
    return out.getvalue()
