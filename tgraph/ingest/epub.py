"""EPUB: book chapters in reading order, each read as HTML."""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import open_archive, read_part, unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.html import parse_html, reader_name
from tgraph.ingest.html_blocks import add_html_blocks
from tgraph.ingest.html_selection import select_content
from tgraph.ingest.unit_counts import compare_characters
from tgraph.model import ReadingReport, UnitCount
from tgraph.rendering import collapse_whitespace

_DC = "{http://purl.org/dc/elements/1.1/}"
_METADATA = {
    "creator": "author",
    "date": "date",
    "language": "language",
    "description": "description",
}
_CHAPTERS = frozenset(
    ("application/xhtml+xml", "text/html", "application/xml", "text/xml", "text/x-oeb1-document")
)
_SUFFIXES = (".xhtml", ".html", ".htm")
_PICTURES = "image/"
_WHAT = "EPUB"


def read_epub(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a book as a single page: chapters in reading order, without the table of contents.

    A chapter that is missing or damaged is a loss of the report. Raises ``IngestError`` if the file
    isn't an EPUB, is encrypted, holds no text, or unpacks to more than the limit."""
    with open_archive(data, name, limits, _WHAT) as archive:
        place, package = _read_package(archive, name)
        title, metadata = _read_metadata(package)
        book = _Book(archive, name, limits)
        for chapter in _list_chapters(package, place):
            book.add_chapter(chapter)
    page = book.builder.page()
    if not book.builder.has_text:
        raise IngestError(name, "The EPUB holds no text.")
    title = title or (page.headings[0].text if page.headings else "")
    return FileContent((page,), title, metadata, book.report(page.text))


@dataclass(frozen=True, slots=True)
class _Chapter:
    """An entry of the book's reading order."""

    path: str
    media_type: str
    is_navigation: bool = False


class _Book:
    """A book whose chapters are being read."""

    def __init__(self, archive: zipfile.ZipFile, name: str, limits: FileLimits) -> None:
        self.builder = PageBuilder()
        self._archive = archive
        self._name = name
        self._limits = limits
        self._encrypted = _encrypted_paths(archive, name)
        self._losses = LossList()
        self._note_ids: set[str] = set()
        self._visible: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._chapters = self._read_chapters = 0

    def add_chapter(self, chapter: _Chapter) -> None:
        """Add a chapter's blocks, or name the chapter as a loss."""
        if chapter.is_navigation:
            reason = "it names the chapters"
            self._losses.add("table of contents", reason, place=chapter.path)
            return
        self._chapters += 1
        if chapter.path in self._encrypted:
            raise IngestError(
                self._name, "The EPUB is encrypted (DRM).", "Get a copy without protection."
            )
        if chapter.media_type.startswith(_PICTURES):
            self.builder.add_mark("image", "")
            self._losses.add("image", "an image has no text", place=chapter.path, marked=True)
            self._read_chapters += 1
        elif chapter.media_type not in _CHAPTERS and not chapter.path.lower().endswith(_SUFFIXES):
            self._lose_chapter(chapter, f"its media type is {chapter.media_type or 'missing'}")
        else:
            self._read_chapter(chapter)

    def report(self, text: str) -> ReadingReport:
        """Return the report of the book, whose stored text is given."""
        lost = self._chapters - self._read_chapters
        chapters = UnitCount("chapters", self._chapters, self._read_chapters, lost)
        characters = compare_characters(self._visible, text, self._left_out)
        return self._losses.report(reader_name(), [chapters, characters])

    def _read_chapter(self, chapter: _Chapter) -> None:
        try:
            data = read_part(self._archive, chapter.path, self._name, _WHAT)
            root = parse_html(data, chapter.path, self._limits) if data.strip() else None
        except IngestError as error:
            self._lose_chapter(chapter, error.message.removeprefix("The EPUB can't be read: "))
            return
        self._read_chapters += 1
        if root is not None:
            selection = select_content(root)
            self._note_ids |= selection.note_ids
            lead = f"{posixpath.basename(chapter.path)}#"
            selection.note_ids |= {
                note.removeprefix(lead) for note in self._note_ids if note.startswith(lead)
            }
            add_html_blocks(root, selection, self.builder, self._losses)
            visible, left_out = selection.count_texts(root)
            self._visible += visible
            self._left_out += left_out

    def _lose_chapter(self, chapter: _Chapter, reason: str) -> None:
        self._losses.add("chapter", reason, place=chapter.path, marked=True)
        self.builder.add_mark("chapter", f"{chapter.path} can't be read")


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


def _list_chapters(package: etree._Element, place: str) -> Iterator[_Chapter]:
    """Yield the chapters and the navigation in reading order, each once."""
    seen: set[str] = set()
    items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
    for reference in package.iterfind(".//{*}spine/{*}itemref"):
        name = reference.get("idref") or ""
        item = items.get(name)
        href = item.get("href") if item is not None else None
        if item is None or not href:
            yield _Chapter(name, "")
        else:
            path = unquote(href.partition("#")[0])
            path = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
            is_navigation = "nav" in (item.get("properties") or "").split()
            if path not in seen:
                yield _Chapter(path, _essence(item.get("media-type") or ""), is_navigation)
            seen.add(path)


def _essence(media_type: str) -> str:
    """Return a media type in lower case without parameters."""
    return media_type.partition(";")[0].strip().lower()


def _encrypted_paths(archive: zipfile.ZipFile, name: str) -> frozenset[str]:
    """Return paths of encrypted files (encrypted fonts may be included, without harm)."""
    if "META-INF/encryption.xml" not in archive.namelist():
        return frozenset()
    root = _parse_xml(read_part(archive, "META-INF/encryption.xml", name, _WHAT), name)
    uris = (reference.get("URI") for reference in root.iterfind(".//{*}CipherReference"))
    return frozenset(unquote(uri) for uri in uris if uri)
