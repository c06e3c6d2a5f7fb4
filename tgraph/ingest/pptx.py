"""PPTX: the slides of a presentation in order, with tables, charts, notes and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import unpack_archive, unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable, write_number
from tgraph.ingest.blocks import LossList, PageBuilder, count_visible, loss_mark
from tgraph.ingest.equations import OFFICE_MATH, convert_office_math
from tgraph.ingest.tables import add_grid
from tgraph.model import Page, UnitCount
from tgraph.rendering import collapse_whitespace

if TYPE_CHECKING:
    from pptx.presentation import Presentation
    from pptx.slide import Slide

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_FIELDS = ("sldNum", "dt", "ftr", "hdr")
"""Placeholders that repeat on every slide: number, date, footer, header."""
_DIAGRAM = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData"
_COMMENTS = "/comments"
_EQUATION = loss_mark("equation")
_MATH = f"{OFFICE_MATH}oMath"
_STYLES = {"arabic": "1", "alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}
_AROUND = {"Period": ("", "."), "ParenR": ("", ")"), "ParenBoth": ("(", ")"), "Plain": ("", "")}
_NUMBER = re.compile(f"({'|'.join(_STYLES)})({'|'.join(_AROUND)})")
_ROW = 100_000
"""Height of a line in English Metric Units (914,400 an inch), within which shapes stand side by
side."""


def read_pptx(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a presentation as a page for each slide, with the slide's number.

    Hidden slides, and what repeats on every slide, are left out and counted. Raises
    ``IngestError`` for what isn't a PPTX, is encrypted, or unpacks to more than the limit."""
    if data.startswith(_OLE):
        raise IngestError(
            name, "The file is an encrypted or an old presentation.", "Save it as an open PPTX."
        )
    package = unpack_archive(data, name, limits, "PPTX")
    import pptx

    try:
        presentation = pptx.Presentation(package)
        reader = _SlideReader()
        for number, slide in enumerate(presentation.slides, 1):
            reader.read_slide(slide, number)
        title, metadata = _read_properties(presentation)
    except Exception as error:  # a damaged package makes the XML libraries fail in any way whatever
        raise unreadable_error(name, "PPTX", error_reason(error)) from None
    if not any(page.text.strip() for page in reader.pages):
        raise IngestError(name, "The PPTX holds no text.")
    units = [
        UnitCount("characters", reader.in_file, reader.in_text, reader.left_out),
        UnitCount("slides", reader.slides, reader.slides - reader.hidden, reader.hidden),
    ]
    report = reader.losses.report(f"python-pptx {pptx.__version__}", units)
    headings = (heading.text for page in reader.pages for heading in page.headings)
    return FileContent(tuple(reader.pages), title or next(headings, ""), metadata, report)


def _read_properties(presentation: Presentation) -> tuple[str, dict[str, str]]:
    core = presentation.core_properties
    values = {
        "author": core.author,
        "description": core.subject,
        "language": core.language,
        "date": core.created.date().isoformat() if core.created else "",
    }
    metadata = {key: collapse_whitespace(storable(value or "")) for key, value in values.items()}
    title = collapse_whitespace(storable(core.title or ""))
    if title == "PowerPoint Presentation":  # PowerPoint's own
        title = ""
    return title, {key: value for key, value in metadata.items() if value}


class _SlideReader:
    """Reads slides into pages, and counts characters."""

    def __init__(self) -> None:
        self.builder = PageBuilder()
        self.pages: list[Page] = []
        self.losses = LossList()
        self.in_file = self.in_text = self.left_out = self.slides = self.hidden = 0

    def read_slide(self, slide: Slide, number: int) -> None:
        self.slides += 1
        place = f"slide {number}"
        characters = _count_characters(slide)
        self.in_file += characters
        if slide._element.get("show") in ("0", "false"):
            self.hidden += 1
            self.left_out += characters
            self.losses.add("hidden slide", "the author hid the slide", place=place)
            self.pages.append(Page(number, ""))
            return
        self.builder = PageBuilder()
        title = slide.shapes.title
        text = collapse_whitespace(title.text_frame.text) if title is not None else ""
        self.in_text += count_visible(text)
        self.builder.add_heading(text, 2)
        for shape in _in_reading_order(slide.shapes):
            if title is None or shape.shape_id != title.shape_id:
                self._read_shape(shape, place)
        self._read_notes(slide)
        self._read_comments(slide, place)
        self.pages.append(self.builder.page(number))

    def _read_shape(self, shape: Any, place: str) -> None:
        placeholder = shape.element.ph if shape.is_placeholder else None
        if placeholder is not None and placeholder.get("type") in _FIELDS:
            self.left_out += _visible_in(shape.element)
            self.losses.add("slide number, date or footer", "it repeats on every slide")
            return
        if _is_hidden(shape.element):
            self.left_out += _visible_in(shape.element)
            self.losses.add("hidden shape", "the author hid the shape", place=place)
            return
        if hasattr(shape, "shapes"):
            for inner in _in_reading_order(shape.shapes):
                self._read_shape(inner, place)
        elif getattr(shape, "has_table", False):
            self._read_table(shape.table)
        elif getattr(shape, "has_chart", False):
            self._read_chart(shape.chart._chartSpace, place)
        elif getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
            self._read_paragraphs(shape.text_frame)
        elif shape.element.tag.endswith("}pic"):
            self._add_mark("image", _alternative_text(shape.element), place)
        elif shape.element.tag.endswith("}graphicFrame"):
            self._read_diagram(shape, place)

    def _read_paragraphs(self, frame: Any) -> None:
        numbers: dict[int, int] = {}
        for paragraph in frame.paragraphs:
            text = _paragraph_text(paragraph._p)
            equations = "".join(map(_write_equation, paragraph._p.iter(_MATH)))
            self.in_text += count_visible(text) - count_visible(equations)
            unwritten = equations.count(_EQUATION)
            self.losses.add(
                "equation", "the equation can't be written", marked=True, count=unwritten
            )
            if _is_item(paragraph, frame):
                label = _number_item(paragraph, numbers) if text.strip() else "-"
                self.builder.add_item(text, paragraph.level, label)
            else:
                self.builder.add_paragraph(text)

    def _read_table(self, table: Any) -> None:
        rows: list[list[str]] = []
        for row in table.rows:
            texts = ["" if cell.is_spanned else cell.text_frame.text for cell in row.cells]
            self.in_text += sum(map(count_visible, texts))
            covered = [cell._tc.vMerge and not cell._tc.hMerge for cell in row.cells]
            above = rows[-1] if rows else texts
            rows.append([a if c else t for a, c, t in zip(above, covered, texts, strict=True)])
        add_grid(self.builder, rows, 1 if table.first_row else None)

    def _read_chart(self, chart: etree._Element, place: str) -> None:
        """Read a chart's data as a table of categories and series."""
        title = chart.find(f"{_C}chart/{_C}title")
        self._add_mark("chart", "" if title is None else _joined_text(title, f"{_A}t"), place)
        series = list(chart.iter(f"{_C}ser"))
        categories = _point_texts(series[0], "cat", "xVal") if series else {}
        columns = [_point_texts(data_series, "val", "yVal") for data_series in series]
        names = [_joined_text(data_series.find(f"{_C}tx"), f"{_C}v") for data_series in series]
        places = sorted(set(categories).union(*columns))
        rows = [[categories.get(at, ""), *(c.get(at, "") for c in columns)] for at in places]
        add_grid(self.builder, [["", *names], *rows] if rows else [], 1)

    def _read_diagram(self, shape: Any, place: str) -> None:
        """Read the texts of a diagram (SmartArt), which lie in a part of their own."""
        texts = list(_diagram_texts(shape))
        if not texts:
            self._add_mark("drawing", _alternative_text(shape.element), place)
        for text in texts:
            self.builder.add_item(text)

    def _read_notes(self, slide: Slide) -> None:
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            text = slide.notes_slide.notes_text_frame.text
            if text.strip():
                self.in_text += count_visible(text)
                self.builder.add_note("notes", text)

    def _read_comments(self, slide: Slide, place: str) -> None:
        for relation in slide.part.rels.values():
            if not relation.is_external and relation.reltype.endswith(_COMMENTS):
                for text in _comment_texts(relation.target_part.blob):
                    self.builder.add_paragraph(f"[comment: {text}]", "comment")
                    self.losses.add(
                        "comment", "it isn't part of the slide", place=place, marked=True
                    )

    def _add_mark(self, kind: str, description: str, place: str) -> None:
        self.builder.add_mark(kind, description)
        self.losses.add(kind, f"{kind}s have no text of their own", place=place, marked=True)


def _in_reading_order(shapes: Iterable[Any]) -> list[Any]:
    """Return shapes from top to bottom, those in one line from left to right.

    Placeholders without a place of their own stand where their order says."""
    placed = [(shape.top, shape.left, shape) for shape in shapes]
    if any(top is None or left is None for top, left, _ in placed):
        return [shape for *_, shape in placed]
    return [s for *_, s in sorted(placed, key=lambda entry: (entry[0] // _ROW, entry[1]))]


def _paragraph_text(paragraph: etree._Element) -> str:
    parts = []
    for element in paragraph.iter(f"{_A}t", f"{_A}br", _MATH):
        if element.tag == _MATH:
            parts.append(_write_equation(element))
        else:
            parts.append("\n" if element.tag == f"{_A}br" else element.text or "")
    return "".join(parts)


def _write_equation(element: etree._Element) -> str:
    latex = convert_office_math(element)
    return f"${latex}$" if latex else _EQUATION


def _is_item(paragraph: Any, frame: Any) -> bool:
    """Return whether a paragraph is an item: it has a bullet, or stands in the body of a slide
    among others."""
    properties = paragraph._p.pPr
    if properties is not None:
        for tag in ("buNone", "buChar", "buAutoNum", "buBlip"):
            if properties.find(f"{_A}{tag}") is not None:
                return tag != "buNone"
    placeholder = frame._parent.element
    is_body = getattr(placeholder, "ph", None) is not None
    return is_body and len(frame.paragraphs) > 1


def _number_item(paragraph: Any, numbers: dict[int, int]) -> str:
    """Return the label of the next item of a text; ``-`` for a bullet. ``numbers`` has the last
    number of each open level."""
    level = paragraph.level
    for deeper in [at for at in numbers if at > level]:
        del numbers[deeper]
    properties = paragraph._p.pPr
    shape = None if properties is None else properties.find(f"{_A}buAutoNum")
    kind = None if shape is None else _NUMBER.fullmatch(shape.get("type", ""))
    if shape is None or kind is None:
        numbers.pop(level, None)
        return "-"
    start = shape.get("startAt", "1")
    first = int(start) if start.isascii() and start.isdigit() else 1
    numbers[level] = numbers[level] + 1 if level in numbers else first
    before, behind = _AROUND[kind[2]]
    return f"{before}{write_number(numbers[level], _STYLES[kind[1]])}{behind}"


def _is_hidden(element: etree._Element) -> bool:
    described = next(element.iter("{*}cNvPr"), None)
    return described is not None and described.get("hidden") in ("1", "true")


def _point_texts(series: etree._Element, *roles: str) -> dict[int, str]:
    """Return the points of a series in one of the roles (``cat``, ``val``) by their index."""
    points = (point for role in roles for point in series.iterfind(f"{_C}{role}//{_C}pt"))
    return {int(point.get("idx") or 0): _joined_text(point, f"{_C}v") for point in points}


def _joined_text(element: etree._Element | None, tag: str) -> str:
    texts = () if element is None else element.iter(tag)
    return collapse_whitespace("".join(text.text or "" for text in texts))


def _alternative_text(element: etree._Element) -> str:
    for properties in element.iter("{*}cNvPr"):
        return properties.get("descr") or properties.get("title") or ""
    return ""


def _diagram_texts(shape: Any) -> Iterator[str]:
    for relation in shape.part.rels.values():
        if relation.is_external or relation.reltype != _DIAGRAM:
            continue
        if relation.rId not in etree.tostring(shape.element, encoding="unicode"):
            continue
        for paragraph in _parse_part(relation.target_part.blob).iter(f"{_A}p"):
            if text := _paragraph_text(paragraph).strip():
                yield text


def _comment_texts(part: bytes) -> Iterator[str]:
    for comment in _parse_part(part).iter("{*}cm"):
        texts = [*comment.iter("{*}text"), *comment.iter(f"{_A}t")]
        if text := collapse_whitespace("".join(element.text or "" for element in texts)):
            yield text


def _parse_part(part: bytes) -> etree._Element:
    return etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))


def _count_characters(slide: Slide) -> int:
    """Return the characters of all text nodes of a slide and its notes, by the XML alone."""
    count = _visible_in(slide._element)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        count += _visible_in(slide.notes_slide.notes_text_frame._txBody)
    return count


def _visible_in(element: etree._Element) -> int:
    return sum(count_visible(text.text or "") for text in element.iter(f"{_A}t"))
