"""The parts of a Word package: bodies, styles, relationships, properties."""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import read_part, unreadable_error
from tgraph.ingest.base import error_reason, storable
from tgraph.ingest.unit_counts import count_characters
from tgraph.rendering import collapse_whitespace

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_STRICT = (
    (b"purl.oclc.org/ooxml/wordprocessingml/main", b"wordprocessingml/2006/main"),
    (b"purl.oclc.org/ooxml/officeDocument/", b"officeDocument/2006/"),
    (b"purl.oclc.org/ooxml/drawingml/", b"drawingml/2006/"),
)
_TEXTS = (f"{W}t", f"{W}delText", f"{A}t")
_BODIES = ("footnotes", "endnotes", "comments")
_RELATIONS = "_rels/.rels"
_FRAME = ("[Content_Types].xml", _RELATIONS)
_SLICE = 2000
"""How many blocks of a document are read at once."""


class WordPackage:
    """The parts of a Word document, parsed; texts of Strict documents get the usual namespaces."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive = archive
        self._name = name
        self._paths = frozenset(archive.namelist())
        self._relations: dict[str, dict[str, tuple[str, str]]] = {}
        self.main_path = self._find_main()
        self.document = self.parse_part(self.main_path)
        self.notes = {
            kind: self.parse_part(path)
            for kind in _BODIES
            if (path := self._find_related(kind)) is not None
        }
        self.styles = self._parse_related("styles")
        self.numbering = self._parse_related("numbering")
        self.margins = {
            path: root
            for path in dict.fromkeys(self._list_margins())
            if (root := self.find_part(path)) is not None
        }

    def relations(self, path: str) -> dict[str, tuple[str, str]]:
        """Return kind and path of the parts that a part refers to, by the relationship's
        identifier."""
        if path not in self._relations:
            place = posixpath.join(
                posixpath.dirname(path), "_rels", f"{posixpath.basename(path)}.rels"
            )
            root = self.parse_part(place) if place in self._paths else None
            self._relations[path] = {
                element.get("Id", ""): (
                    element.get("Type", "").rpartition("/")[2],
                    _join_path(path, element.get("Target", "")),
                )
                for element in (() if root is None else root)
                if element.get("TargetMode") != "External"
            }
        return self._relations[path]

    def parse_part(self, path: str) -> etree._Element:
        """Return the root element of a part. Raise ``IngestError`` for a damaged part."""
        data = read_part(self._archive, path, self._name, "DOCX")
        if b"purl.oclc.org/ooxml" in data:
            for strict, usual in _STRICT:
                data = data.replace(strict, b"schemas.openxmlformats.org/" + usual)
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            root = etree.fromstring(data, parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise unreadable_error(self._name, "DOCX", error_reason(error)) from None
        etree.strip_tags(root, etree.Entity)
        return root

    def find_part(self, path: str) -> etree._Element | None:
        """Return the root element of a part; None for a part that is missing or damaged."""
        try:
            return self.parse_part(path) if path in self._paths else None
        except IngestError:
            return None

    def bodies(self) -> Iterator[tuple[str, etree._Element]]:
        """Yield path and root element of every part with text of the document."""
        yield self.main_path, self.document
        for kind, root in self.notes.items():
            yield self._find_related(kind) or "", root
        yield from self.margins.items()

    def count_texts(self) -> Counter[str]:
        """Return the characters of all text elements, those of deleted text among them."""
        texts: list[str] = []
        for _, root in self.bodies():
            walk = etree.iterwalk(root, events=("start",), tag=(*_TEXTS, f"{MC}Fallback"))
            for _, element in walk:
                if element.tag == f"{MC}Fallback":
                    walk.skip_subtree()
                else:
                    texts.append(element.text or "")
        return count_characters(texts)

    def read_properties(self) -> tuple[str, dict[str, str]]:
        """Return title and metadata of the document."""
        root = self.find_part("docProps/core.xml")
        if root is None:
            return "", {}

        def read(name: str) -> str:
            return collapse_whitespace(storable(root.findtext(name) or ""))

        metadata = {"language": read(f"{_DC}language"), "description": read(f"{_DC}subject")}
        author = read(f"{_DC}creator")
        if author != "python-docx":  # its template's author and date are nobody's
            metadata["author"] = author
            metadata["date"] = read(f"{_TERMS}created")[:10]
        return read(f"{_DC}title"), {key: value for key, value in metadata.items() if value}

    def slice_archives(self) -> Iterator[BytesIO]:
        """Yield packages with the blocks of the document as they are now, some in each, without
        pictures and styles: what reads all blocks at once needs memory for all."""
        body = self.document.find(f"{W}body")
        blocks = [] if body is None else list(body)
        frame = [(path, self.parse_part(path)) for path in _FRAME if path in self._paths]
        for start in range(0, len(blocks), _SLICE):
            document = etree.Element(self.document.tag, nsmap=self.document.nsmap)
            etree.SubElement(document, f"{W}body").extend(blocks[start : start + _SLICE])
            written = BytesIO()
            with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as target:
                for path, root in (*frame, (self.main_path, document)):
                    target.writestr(path, etree.tostring(root))
            written.seek(0)
            yield written

    def _find_main(self) -> str:
        for kind, path in self.relations("").values() if _RELATIONS in self._paths else ():
            if kind == "officeDocument" and path in self._paths:
                return path
        return "word/document.xml"

    def _find_related(self, kind: str) -> str | None:
        paths = (path for known, path in self.relations(self.main_path).values() if known == kind)
        fallback = posixpath.join(posixpath.dirname(self.main_path), f"{kind}.xml")
        return next((path for path in (*paths, fallback) if path in self._paths), None)

    def _list_margins(self) -> Iterator[str]:
        """Yield the paths of headers and footers that pages show."""
        relations = self.relations(self.main_path)
        settings = self._parse_related("settings")
        is_even_shown = settings is not None and settings.find(f"{W}evenAndOddHeaders") is not None
        for reference in self.document.iter(f"{W}headerReference", f"{W}footerReference"):
            is_first_shown = reference.getparent().find(f"{W}titlePg") is not None
            shown = {"first": is_first_shown, "even": is_even_shown}
            if shown.get(reference.get(f"{W}type", ""), True):
                yield relations.get(reference.get(f"{R}id", ""), ("", ""))[1]

    def _parse_related(self, kind: str) -> etree._Element | None:
        path = self._find_related(kind)
        return None if path is None else self.find_part(path)


def _join_path(source: str, target: str) -> str:
    """Return the path of a part that a part names relative to itself."""
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(source), target)).lstrip("/")
