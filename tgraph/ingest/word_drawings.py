"""Drawings of Word documents: text boxes, charts, diagrams and pictures as paragraphs and marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from tgraph.ingest.blocks import LossList
from tgraph.ingest.word_package import A, R, W, WordPackage
from tgraph.rendering import collapse_whitespace

_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_PICTURE = "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic"
_PLACE = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_VML = "{urn:schemas-microsoft-com:vml}"
_OFFICE = "{urn:schemas-microsoft-com:office:office}"
_TEXT_BOX = f"{W}txbxContent"
DRAWINGS = (f"{W}drawing", f"{W}pict", f"{W}object")
MARK_STYLE = "readingMark"
_LONG_NUMBER = re.compile(r"-?\d{1,15}\.\d{12,20}(?:E-?\d{1,2})?$")
_MOST_CELLS = 20_000
_UNPRINTED = frozenset(("pres", "parTrans", "sibTrans"))


class DrawingReader:
    """Takes the content of drawings out into paragraphs behind the paragraph of the drawing."""

    def __init__(self, package: WordPackage, path: str, losses: LossList) -> None:
        self._package = package
        self._relations = package.relations(path)
        self._losses = losses
        self._last: dict[etree._Element, etree._Element] = {}

    def read_drawing(self, drawing: etree._Element) -> None:
        """Replace a drawing by a mark where it has no text, and by its text where it has some."""
        run = drawing.getparent()
        blocks = [child for box in _find_boxes(drawing) for child in box]
        words = [text for text in drawing.iterfind(f".//{_VML}textpath") if text.get("string")]
        blocks += [make_paragraph(text.get("string", "")) for text in words]
        blocks += [make_paragraph(text) for text in _read_paragraphs(drawing, outside=_TEXT_BOX)]
        kind, parts = self._read_part(drawing)
        for mark in [kind] if kind else self._classify_drawing(drawing, bool(blocks)):
            alt = _chart_title(parts) or _describe(drawing)
            run.addnext(make_run(f"{mark}: {alt}", MARK_STYLE))
            self._losses.add(mark, f"the {mark} isn't text", marked=True)
        self.add_behind(drawing, [*blocks, *_chart_blocks(parts)])
        run.remove(drawing)

    def add_behind(self, element: etree._Element, blocks: Sequence[etree._Element]) -> None:
        """Move blocks behind the paragraph that an element stands in, in order."""
        paragraph = next(element.iterancestors(f"{W}p"), None)
        if paragraph is None:
            return
        for block in blocks:
            self._last.get(paragraph, paragraph).addnext(block)
            self._last[paragraph] = block

    def _classify_drawing(self, drawing: etree._Element, has_text: bool) -> Iterator[str]:
        """Yield the kinds of marks of a drawing that isn't a chart or a diagram."""
        program = next(drawing.iter(f"{_OFFICE}OLEObject"), None)
        if program is not None:
            is_equation = (program.get("ProgID") or "").startswith(("Equation", "MathType"))
            yield "equation" if is_equation else "embedded object"
        elif next(drawing.iter(_PICTURE, f"{_VML}imagedata"), None) is not None:
            yield "image"
        elif not has_text and not _is_rule(drawing):
            yield "drawing"

    def _read_part(self, drawing: etree._Element) -> tuple[str, list[etree._Element]]:
        """Return the kind and the content of a chart or diagram in a part of its own."""
        for reference in drawing.iter(f"{_CHART}chart", f"{_DIAGRAM}relIds"):
            is_chart = reference.tag == f"{_CHART}chart"
            _, path = self._relations.get(
                reference.get(f"{R}id" if is_chart else f"{R}dm", ""), ("", "")
            )
            root = self._package.find_part(path)
            if root is not None:
                return ("chart" if is_chart else "diagram"), [root]
            self._losses.add("damaged part", f"{path or 'a part'} can't be read", marked=True)
        return "", []


def make_run(text: str, style: str = "") -> etree._Element:
    """Return a run of text in a style of characters."""
    run = etree.Element(f"{W}r")
    if style:
        properties = etree.SubElement(run, f"{W}rPr")
        etree.SubElement(properties, f"{W}rStyle", {f"{W}val": style})
    etree.SubElement(run, f"{W}t").text = text
    return run


def make_paragraph(text: str, style: str = "") -> etree._Element:
    """Return a paragraph of text in a style of paragraphs."""
    paragraph = etree.Element(f"{W}p")
    if style:
        set_style(paragraph, style)
    paragraph.append(make_run(text))
    return paragraph


def set_style(paragraph: etree._Element, style: str) -> None:
    """Give a paragraph a style, and take the number of its list away."""
    properties = paragraph.find(f"{W}pPr")
    if properties is None:
        properties = etree.Element(f"{W}pPr")
        paragraph.insert(0, properties)
    for name in ("pStyle", "numPr"):
        for element in properties.findall(W + name):
            properties.remove(element)
    properties.insert(0, etree.Element(f"{W}pStyle", {f"{W}val": style}))


def _find_boxes(drawing: etree._Element) -> Iterator[etree._Element]:
    """Yield the contents of the drawing's text boxes, outermost only."""
    walk = etree.iterwalk(drawing, events=("start",), tag=_TEXT_BOX)
    for _, box in walk:
        walk.skip_subtree()
        yield box


def _read_paragraphs(root: etree._Element, *, outside: str = "") -> Iterator[str]:
    """Yield the texts of DrawingML's paragraphs below an element."""
    for paragraph in root.iter(f"{A}p"):
        if outside and next(paragraph.iterancestors(outside), None) is not None:
            continue
        if text := collapse_whitespace("".join(t.text or "" for t in paragraph.iter(f"{A}t"))):
            yield text


def _describe(drawing: etree._Element) -> str:
    for element in drawing.iter(f"{_PLACE}docPr", f"{_VML}shape", f"{_VML}imagedata"):
        words = element.get("descr") or element.get("title") or element.get("alt")
        words = words or element.get(f"{_OFFICE}title")
        if words and words.strip():
            return collapse_whitespace(words)
    return ""


def _is_rule(drawing: etree._Element) -> bool:
    """Return whether a drawing is a horizontal rule, or only defines shapes."""
    rules = [shape.get(f"{_OFFICE}hr") for shape in drawing.iter(f"{_VML}rect")]
    return any(rules) or all(child.tag == f"{_VML}shapetype" for child in drawing)


def _chart_title(parts: Sequence[etree._Element]) -> str:
    titles = (title for root in parts for title in root.iterfind(f"{_CHART}chart/{_CHART}title"))
    return " ".join(text for title in titles for text in _read_paragraphs(title))


def _chart_blocks(parts: Sequence[etree._Element]) -> Iterator[etree._Element]:
    """Yield the texts of a diagram, or the values of a chart as a table."""
    for root in parts:
        for point in root.iter(f"{_DIAGRAM}pt"):
            if point.get("type") not in _UNPRINTED:
                yield from map(make_paragraph, _read_paragraphs(point))
        series = list(root.iter(f"{_CHART}ser"))
        if series:
            yield _make_table(series)


def _make_table(series: Sequence[etree._Element]) -> etree._Element:
    names, columns = [""], [_read_points(series[0], ("cat", "xVal"))]
    for number, values in enumerate(series, 1):
        name = " ".join(v.text or "" for v in values.iterfind(f"{_CHART}tx//{_CHART}v"))
        names.append(name or f"Series {number}")
        columns.append(_read_points(values, ("val", "yVal")))
    places = sorted(set().union(*columns))[: _MOST_CELLS // len(columns)]
    table = etree.Element(f"{W}tbl")
    for number, cells in enumerate((names, *([c.get(at, "") for c in columns] for at in places))):
        row = etree.SubElement(table, f"{W}tr")
        if not number:
            etree.SubElement(etree.SubElement(row, f"{W}trPr"), f"{W}tblHeader")
        for cell in cells:
            etree.SubElement(row, f"{W}tc").append(make_paragraph(cell))
    return table


def _read_points(series: etree._Element, names: Sequence[str]) -> dict[int, str]:
    """Return the values of a series by place."""
    points: dict[int, str] = {}
    for name in names:
        for point in series.iterfind(f"{_CHART}{name}//{_CHART}pt"):
            place = point.get("idx") or ""
            if place.isascii() and place.isdigit():
                points[int(place)] = _write_value(point.findtext(f"{_CHART}v") or "")
    return points


def _write_value(text: str) -> str:
    """Return a chart's value with the digits that a program shows of it."""
    return f"{float(text):.15g}" if _LONG_NUMBER.match(text) else collapse_whitespace(text)
