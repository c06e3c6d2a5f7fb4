"""EPUB: the chapters of a book in their order, each read as the HTML that it is."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import broken, open_archive, read_part
from tgraph.ingest.base import FileContent, FileLimits, TextBuilder, one_line, reason, storable
from tgraph.ingest.html import read_html
from tgraph.model import Page

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
    """A book as one page: its chapters in reading order, without its table of contents.

    Raises ``IngestError`` for what isn't an EPUB, is encrypted, or unpacks to more than the limit.
    """
    with open_archive(data, name, limits, _WHAT) as archive:
        place, package = _package(archive, name)
        title, metadata = _described(package)
        hidden = _encrypted(archive, name)
        builder = TextBuilder()
        for path in _chapters(package, place):
            if path in hidden:
                raise IngestError(
                    name, "The EPUB is encrypted (DRM).", "Get a copy without protection."
                )
            if chapter := _chapter(read_part(archive, path, name, _WHAT), path, limits):
                builder.append(chapter)
    page = builder.page()
    if not page.text.strip():
        raise IngestError(name, "The EPUB holds no text.")
    title = title or (page.headings[0].text if page.headings else "")
    return FileContent((page,), title, metadata)


def _xml(data: bytes, name: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise broken(name, _WHAT, reason(error)) from None


def _package(archive: zipfile.ZipFile, name: str) -> tuple[str, etree._Element]:
    """Where the package document stands, and its root."""
    container = _xml(read_part(archive, "META-INF/container.xml", name, _WHAT), name)
    found = container.find(".//{*}rootfile")
    place = found.get("full-path") if found is not None else None
    if not place:
        raise broken(name, _WHAT, "it names no package")
    return place, _xml(read_part(archive, place, name, _WHAT), name)


def _described(package: etree._Element) -> tuple[str, dict[str, str]]:
    title = ""
    metadata: dict[str, str] = {}
    for element in package.iterfind(".//{*}metadata/*"):
        text = one_line(storable("".join(element.itertext())))
        tag = element.tag if isinstance(element.tag, str) else ""
        if tag == f"{_DC}title":
            title = title or text
        elif text and (key := _METADATA.get(tag.removeprefix(_DC))):
            metadata.setdefault(key, text)
    return title, metadata


def _chapters(package: etree._Element, place: str) -> Iterator[str]:
    """The paths of what is to be read, in order, without the book's own contents."""
    items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
    for reference in package.iterfind(".//{*}spine/{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _CHAPTERS:
            continue
        if "nav" not in (item.get("properties") or "").split() and item.get("href"):
            path = unquote(item.get("href").partition("#")[0])
            yield posixpath.normpath(posixpath.join(posixpath.dirname(place), path))


def _chapter(data: bytes, path: str, limits: FileLimits) -> Page | None:
    """A chapter's text, None for a picture or an empty leaf."""
    try:
        return read_html(data, path, limits).pages[0]
    except IngestError:
        return None


def _encrypted(archive: zipfile.ZipFile, name: str) -> frozenset[str]:
    """The paths of what can't be read without a key (fonts may be among them, and do no harm)."""
    if "META-INF/encryption.xml" not in archive.namelist():
        return frozenset()
    root = _xml(read_part(archive, "META-INF/encryption.xml", name, _WHAT), name)
    uris = (reference.get("URI") for reference in root.iterfind(".//{*}CipherReference"))
    return frozenset(unquote(uri) for uri in uris if uri)
