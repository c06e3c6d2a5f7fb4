"""ODT and ODP: documents and presentations in the OpenDocument format, by their XML."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import open_archive
from tgraph.ingest.base import FileContent, FileLimits
from tgraph.ingest.blocks import LossList, PageBuilder, count_visible
from tgraph.ingest.equations import convert_mathml
from tgraph.ingest.odf_numbers import BULLET, OdfNumbers
from tgraph.ingest.odf_xml import (
    MOST_REPEATED,
    READER,
    attribute_of,
    local_name,
    parse_part,
    read_metadata,
    repetitions_of,
)
from tgraph.ingest.tables import add_grid
from tgraph.model import Page, UnitCount
from tgraph.rendering import collapse_whitespace

_SPACES = {"s": " ", "tab": " ", "line-break": "\n"}
_ASIDES = frozenset(("note", "annotation", "frame", "custom-shape", "g", "table"))
_UNREAD = frozenset(
    ("tracked-changes", "forms", "sequence-decls", "variable-decls", "user-field-decls")
)


def read_odt(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read an OpenDocument text as a single page.

    Tracked deletions and hidden text are left out and counted. Raises ``IngestError`` for what
    isn't an ODT, is encrypted, or unpacks to more than the limit."""
    return _read_odf(data, name, limits, "ODT")


def read_odp(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read an OpenDocument presentation as a page for each slide, as ``read_odt``."""
    return _read_odf(data, name, limits, "ODP")


def _read_odf(data: bytes, name: str, limits: FileLimits, kind: str) -> FileContent:
    with open_archive(data, name, limits, kind) as archive:
        content = parse_part(archive, "content.xml", name, kind)
        roots = [content]
        if "styles.xml" in archive.namelist():
            roots.append(parse_part(archive, "styles.xml", name, kind))
        reader = _OdfReader(archive, roots, name, kind)
        pages = reader.read_body(content)
        title, metadata = read_metadata(archive, name, kind)
    if not any(page.text.strip() for page in pages):
        raise IngestError(name, f"The {kind} holds no text.")
    units = [UnitCount("characters", reader.in_file, reader.in_text, reader.left_out)]
    headings = (heading.text for page in pages for heading in page.headings)
    report = reader.losses.report(READER, units)
    return FileContent(tuple(pages), title or next(headings, ""), metadata, report)


@dataclass(slots=True)
class _Styles:
    """The names of styles whose text is hidden, struck or raised, and of hidden slides."""

    hidden: set[str] = field(default_factory=set)
    struck: set[str] = field(default_factory=set)
    raised: set[str] = field(default_factory=set)


def _read_styles(roots: Iterable[etree._Element]) -> _Styles:
    styles = _Styles()
    for style in (style for root in roots for style in root.iter("{*}style")):
        style_name = attribute_of(style, "name")
        for properties in style:
            if attribute_of(properties, "display") == "none" or (
                attribute_of(properties, "visibility") == "hidden"
            ):
                styles.hidden.add(style_name)
            if attribute_of(properties, "text-line-through-style") not in ("", "none"):
                styles.struck.add(style_name)
            if attribute_of(properties, "text-position").startswith("super"):
                styles.raised.add(style_name)
    return styles


class _OdfReader:
    """Reads the body of a document into pages, and counts characters."""

    def __init__(
        self, archive: zipfile.ZipFile, roots: Sequence[etree._Element], name: str, kind: str
    ) -> None:
        self.losses = LossList()
        self.in_file = self.in_text = self.left_out = 0
        self._archive, self._styles = archive, _read_styles(roots)
        self._numbers = OdfNumbers(roots)
        self._margins = list(_margins_of(roots)) if kind == "ODT" else []
        self._name, self._kind = name, kind
        self._builder = PageBuilder()
        self._running: set[str] = set()
        self._aside: list[etree._Element] = []

    def read_body(self, content: etree._Element) -> list[Page]:
        body = next(content.iter("{*}body"), None)
        if body is None:
            return []
        descriptions = [*body.iter("{*}desc"), *body.iter("{*}title")]
        self.in_file = _visible_in(body) - sum(map(_visible_in, descriptions))
        for changes in body.iter("{*}tracked-changes"):
            for deletion in changes.iter("{*}deletion"):
                self.losses.add("deleted passage", "the author deleted the passage")
                self.left_out += _visible_in(deletion)
            for note in changes.iter("{*}change-info"):
                self.left_out += _visible_in(note)
        slides = list(body.iter("{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}page"))
        if not slides or self._kind == "ODT":
            self._read_margins("header")
            self._read_blocks(body, 0)
            self._read_margins("footer")
            return [self._builder.page()]
        return [self._read_slide(slide, number) for number, slide in enumerate(slides, 1)]

    def _read_slide(self, slide: etree._Element, number: int) -> Page:
        self._builder = PageBuilder()
        if attribute_of(slide, "style-name") in self._styles.hidden:
            self.losses.add("hidden slide", "the author hid the slide", place=f"slide {number}")
            self.left_out += _visible_in(slide)
            return Page(number, "")
        self._read_blocks(slide, 0)
        return self._builder.page(number)

    def _read_blocks(self, elements: Iterable[etree._Element], depth: int) -> None:
        for child in elements:
            name = local_name(child)
            if not name or name in _UNREAD:
                continue
            if self._is_hidden(child):
                self._leave_out(child)
            elif name == "h":
                self._add_heading(child)
            elif name == "p":
                self._add_paragraph(child)
            elif name == "list":
                self._read_list(child, depth)
            elif name == "table":
                self._read_table(child)
            elif name == "notes":
                self._add_notes(child)
            elif name == "frame":
                self._read_frame(child, depth)
            else:
                self._read_blocks(child, depth)

    def _read_margins(self, kind: str) -> None:
        """Add the headers or footers of pages, each text once and without the page's number."""
        for margin in (m for m in self._margins if local_name(m).startswith(kind)):
            for paragraph in margin.iter("{*}p"):
                if next(paragraph.iterancestors("{*}tracked-changes"), None) is not None:
                    continue
                self.in_file += _visible_in(paragraph)
                for number in list(paragraph.iter("{*}page-number", "{*}page-count")):
                    self.left_out += _visible_in(number)
                    number.text = None
                text = collapse_whitespace("".join(map(str, paragraph.itertext())))
                if text in self._running:
                    self.left_out += _visible_in(paragraph)
                    self.losses.add("running head", "it stands once in the text")
                elif text:
                    self._running.add(text)
                    self._builder.add_paragraph(self._read_inline(paragraph), "display")
        self._read_asides()

    def _add_heading(self, element: etree._Element, label: str | None = None) -> None:
        value = attribute_of(element, "outline-level")
        level = int(value) if value.isdigit() else 1
        text = self._read_inline(element)
        if label is None and text.strip():
            label = self._numbers.number_heading(element, level)
        self._builder.add_heading(f"{label} {text}" if label and text.strip() else text, level)
        self._read_asides()

    def _add_paragraph(self, element: etree._Element) -> None:
        if _is_title(element):
            self._builder.add_heading(self._read_inline(element), 1)
        else:
            self._builder.add_paragraph(self._read_inline(element))
        self._read_asides()

    def _read_list(
        self, element: etree._Element, depth: int, opened: tuple[str, Counter[int]] | None = None
    ) -> None:
        """Read a list; ``opened`` has style and counters of the list that it is in."""
        style, counters = opened or self._numbers.open_list(element)
        style = attribute_of(element, "style-name") or style
        for item in element:
            is_labelled = local_name(item) == "list-item"
            for child in item:
                name = local_name(child)
                if name in ("p", "h") and is_labelled and not self._is_hidden(child):
                    start = attribute_of(item, "start-value")
                    label = self._numbers.number_item(style, counters, depth, start)
                    self._add_item(child, depth, label)
                    is_labelled = False
                elif name == "list":
                    self._read_list(child, depth + 1, (style, counters))
                else:
                    self._read_blocks([child], depth)

    def _add_item(self, element: etree._Element, depth: int, label: str) -> None:
        if local_name(element) == "h":
            self._add_heading(element, "" if label == BULLET else label)
            return
        self._builder.add_item(self._read_inline(element), depth, label)
        self._read_asides()

    def _read_table(self, table: etree._Element) -> None:
        rows, heads = [], 0
        for row in _rows_of(table):
            cells: list[str] = []
            for cell in row:
                if local_name(cell) == "table-cell":
                    times = repetitions_of(cell, "number-columns-repeated")
                    cells += [self._read_cell(cell)] + [""] * (min(times, MOST_REPEATED) - 1)
                elif local_name(cell) == "covered-table-cell":
                    cells += [""] * min(
                        repetitions_of(cell, "number-columns-repeated"), MOST_REPEATED
                    )
            parent = row.getparent()
            heads += parent is not None and local_name(parent) == "table-header-rows"
            rows.append(cells)
        add_grid(self._builder, rows, heads or None)
        self._read_asides()

    def _read_cell(self, cell: etree._Element) -> str:
        """Return the text of a cell, of the tables in it too."""
        lines = [
            self._read_inline(element)
            for element in cell.iter("{*}p", "{*}h")
            if not self._is_hidden(element) and not _is_aside(element, cell)
        ]
        return "\n".join(filter(None, lines))

    def _add_notes(self, notes: etree._Element) -> None:
        texts = [self._read_inline(paragraph) for paragraph in notes.iter("{*}p")]
        self._builder.add_note("notes", "\n".join(filter(None, texts)))

    def _read_frame(self, frame: etree._Element, depth: int = 0) -> None:
        """Read a frame: a text box, a table, a formula, a picture."""
        for child in frame:
            if local_name(child) in ("text-box", "table"):
                self._read_blocks([child] if local_name(child) == "table" else child, depth)
                return
        described = _described(frame)
        if formula := self._read_formula(frame):
            self._builder.add_paragraph(f"$${formula}$$")
        elif frame.find("{*}object") is not None:
            self._mark("object", described)
        elif frame.find("{*}image") is not None:
            self._mark("image", described)

    def _read_formula(self, frame: etree._Element) -> str:
        """Return a frame's formula as LaTeX; empty for a frame without one."""
        for embedded in frame.iterfind("{*}object"):
            math = embedded.find("{*}math")
            if math is None:
                path = f"{attribute_of(embedded, 'href').removeprefix('./')}/content.xml"
                if path not in self._archive.namelist():
                    return ""
                math = parse_part(self._archive, path, self._name, self._kind)
            if local_name(math) == "math":
                return convert_mathml(math)
        return ""

    def _mark(self, kind: str, description: str) -> None:
        self._builder.add_mark(kind, description)
        self.losses.add(kind, f"{kind}s have no text of their own", marked=True)

    # --- inside a paragraph ---

    def _read_inline(self, element: etree._Element) -> str:
        """Return the text of a paragraph; notes, comments and frames wait for its end."""
        return "".join(self._inline_parts(element))

    def _inline_parts(self, element: etree._Element) -> Iterator[str]:
        yield self._take(element.text)
        for child in element:
            yield from self._inline_child(child)
            yield self._take(child.tail)

    def _take(self, text: str | None) -> str:
        """Return text of the file, counted, with white space as in one line."""
        if not text:
            return ""
        self.in_text += count_visible(text)
        return " ".join(text.split("\n")).replace("\t", " ")

    def _inline_child(self, child: etree._Element) -> Iterator[str]:
        name = local_name(child)
        if not name or name == "annotation-end":
            return
        if name in _SPACES:
            yield _SPACES[name] * min(repetitions_of(child, "c"), MOST_REPEATED)
        elif name in _ASIDES:
            yield self._set_aside(child)
        elif self._is_hidden(child) or name in ("hidden-text", "hidden-paragraph"):
            self._leave_out(child)
        else:
            yield self._mark_style(child, "".join(self._inline_parts(child)))

    def _set_aside(self, element: etree._Element) -> str:
        """Keep a note, comment or frame for the paragraph's end; return what stands in its
        place."""
        name = local_name(element)
        if name == "frame" and (formula := self._read_formula(element)):
            return f"${formula}$"
        self._aside.append(element)
        return f"[{_note_label(element)}]" if name == "note" else ""

    def _mark_style(self, element: etree._Element, text: str) -> str:
        style = attribute_of(element, "style-name")
        if not text.strip():
            return text
        if style in self._styles.struck:
            return f"[struck: {text}]"
        return f"^{text}" if style in self._styles.raised else text

    def _read_asides(self) -> None:
        """Add what stands in a paragraph but isn't its text: notes, comments, frames."""
        asides, self._aside = self._aside, []
        for element in asides:
            name = local_name(element)
            if name == "note":
                body = element.find("{*}note-body")
                lines = [] if body is None else [self._read_inline(p) for p in body.iter("{*}p")]
                self._builder.add_note(_note_label(element), "\n".join(lines))
                self.left_out += _visible_in(element.find("{*}note-citation"))
            elif name == "annotation":
                lines = [self._read_inline(p) for p in element.iter("{*}p")]
                comment = " ".join(filter(None, lines))
                self._builder.add_paragraph(f"[comment: {comment}]", "comment")
                reason = "a comment isn't part of the text"
                self.losses.add("comment", reason, marked=True)
                self.left_out += sum(
                    _visible_in(part) for part in element if local_name(part) not in ("p", "list")
                )
            else:
                self._read_blocks([element], 0)
        if self._aside:
            self._read_asides()

    def _is_hidden(self, element: etree._Element) -> bool:
        return (
            attribute_of(element, "style-name") in self._styles.hidden
            or attribute_of(element, "display") == "none"
        )

    def _leave_out(self, element: etree._Element) -> None:
        self.left_out += _visible_in(element)
        self.losses.add("hidden text", "the author hid the text")


def _margins_of(roots: Sequence[etree._Element]) -> Iterator[etree._Element]:
    """Yield the headers and footers of the pages that a document uses."""
    pages = {attribute_of(page, "name"): page for r in roots for page in r.iter("{*}master-page")}
    used = {attribute_of(element, "style-name") for element in roots[0].iter()}
    styles = [style for root in roots for style in root.iter("{*}style")]
    for style in styles:
        if attribute_of(style, "name") in used:
            used.add(attribute_of(style, "parent-style-name"))
    names = [
        attribute_of(style, "master-page-name")
        for style in styles
        if attribute_of(style, "name") in used
    ]
    waiting = ["Standard", *names]
    while waiting:
        page = pages.pop(waiting.pop(0), None)
        if page is not None:
            waiting.append(attribute_of(page, "next-style-name"))
            yield from (
                part
                for part in page
                if local_name(part).startswith(("header", "footer"))
                and attribute_of(part, "display") != "false"
            )


def _rows_of(table: etree._Element) -> Iterator[etree._Element]:
    """Yield the rows of a table, not those of tables in its cells."""
    for child in table:
        if local_name(child) == "table-row":
            yield child
        elif local_name(child) in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _rows_of(child)


def _is_title(paragraph: etree._Element) -> bool:
    """Return whether a paragraph is a title by the name of its style or the class of its frame."""
    if attribute_of(paragraph, "style-name") == "Title":
        return True
    box = paragraph.getparent()
    frame = box.getparent() if box is not None and local_name(box) == "text-box" else None
    return frame is not None and attribute_of(frame, "class") == "title"


def _is_aside(element: etree._Element, cell: etree._Element) -> bool:
    for parent in element.iterancestors():
        if parent is cell:
            return False
        if local_name(parent) in ("note", "annotation", "frame"):
            return True
    return False


def _note_label(note: etree._Element) -> str:
    citation = note.find("{*}note-citation")
    return "" if citation is None else collapse_whitespace("".join(citation.itertext()))


def _described(frame: etree._Element) -> str:
    texts = (frame.find(f"{{*}}{name}") for name in ("desc", "title"))
    return next((str(text.text) for text in texts if text is not None and text.text), "")


def _visible_in(element: etree._Element | None) -> int:
    return 0 if element is None else sum(map(count_visible, map(str, element.itertext())))
