"""EPUB: book chapters in reading order, each read as HTML."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import open_archive, read_part, unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, TextBuilder, error_reason, storable
from tgraph.ingest.html import read_html
from tgraph.model import Page
from tgraph.rendering import collapse_whitespace

_DC = "{http://purl.org/dc/elements/1.1/}"
_METADATA = {
    "creator": "author",
    "date": "date",
    "language": "language",
    "description": "description",
}
_CHAPTERS = frozenset(("application/xhtml+xml", "text/html"))
_WHAT = "EPUB"


def read_epub(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a book as a single page: chapters in reading order, without the table of contents.

    Raises ``IngestError`` if the file isn't an EPUB, is encrypted, or unpacks to more than the
    limit."""
    with open_archive(data, name, limits, _WHAT) as archive:
        place, package = _read_package(archive, name)
        title, metadata = _read_metadata(package)
        hidden = _encrypted_paths(archive, name)
        builder = TextBuilder()
        for path in _chapter_paths(package, place):
            if path in hidden:
                raise IngestError(
                    name, "The EPUB is encrypted (DRM).", "Get a copy without protection."
                )
            if chapter := _read_chapter(read_part(archive, path, name, _WHAT), path, limits):
                builder.append(chapter)
    page = builder.page()
    if not page.text.strip():
        raise IngestError(name, "The EPUB holds no text.")
    title = title or (page.headings[0].text if page.headings else "")
    return FileContent((page,), title, metadata)


def _parse_xml(data: bytes, name: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise unreadable_error(name, _WHAT, error_reason(error)) from None


def _read_package(archive: zipfile.ZipFile, name: str) -> tuple[str, etree._Element]:
    """Return path and root element of the package document."""
    container = _parse_xml(read_part(archive, "META-INF/container.xml", name, _WHAT), name)
    rootfile = container.find(".//{*}rootfile")
    place = rootfile.get("full-path") if rootfile is not None else None
    if not place:
        raise unreadable_error(name, _WHAT, "it names no package")
    return place, _parse_xml(read_part(archive, place, name, _WHAT), name)


def _read_metadata(package: etree._Element) -> tuple[str, dict[str, str]]:
    title = ""
    metadata: dict[str, str] = {}
    for element in package.iterfind(".//{*}metadata/*"):
        text = collapse_whitespace(storable("".join(element.itertext())))
        tag = element.tag if isinstance(element.tag, str) else ""
        if tag == f"{_DC}title":
            title = title or text
        elif text and (key := _METADATA.get(tag.removeprefix(_DC))):
            metadata.setdefault(key, text)
    return title, metadata


def _chapter_paths(package: etree._Element, place: str) -> Iterator[str]:
    """Yield chapter paths in reading order, leaving out the book's navigation."""
    items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
    for reference in package.iterfind(".//{*}spine/{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _CHAPTERS:
            continue
        if "nav" not in (item.get("properties") or "").split() and item.get("href"):
            path = unquote(item.get("href").partition("#")[0])
            yield posixpath.normpath(posixpath.join(posixpath.dirname(place), path))


def _read_chapter(data: bytes, path: str, limits: FileLimits) -> Page | None:
    """Return a chapter's text; None for pictures or blank pages."""
    try:
        return read_html(data, path, limits).pages[0]
    except IngestError:
        return None


def _encrypted_paths(archive: zipfile.ZipFile, name: str) -> frozenset[str]:
    """Return paths of encrypted files (encrypted fonts may be included, without harm)."""
    if "META-INF/encryption.xml" not in archive.namelist():
        return frozenset()
    root = _parse_xml(read_part(archive, "META-INF/encryption.xml", name, _WHAT), name)
    uris = (reference.get("URI") for reference in root.iterfind(".//{*}CipherReference"))
    return frozenset(unquote(uri) for uri in uris if uri)
