"""PPTX: slides in order, what they hold besides text, and what is left out."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from lxml import etree
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml.ns import qn
from pptx.util import Inches

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document


def saved(presentation: Any) -> bytes:
    stream = io.BytesIO()
    presentation.save(stream)
    return stream.getvalue()


def slide_of(presentation: Any, title: str = ""):
    slide = presentation.slides.add_slide(presentation.slide_layouts[5 if title else 6])
    if title:
        slide.shapes.title.text = title
    return slide


def add_box(slide, text: str, left: float, top: float) -> None:
    box = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(3), Inches(1))
    box.text_frame.text = text


def loss_counts(document: Document) -> dict[str, int]:
    assert document.report is not None
    return {loss.kind: loss.count for loss in document.report.losses}


def test_slides_are_pages_whose_boxes_stand_in_reading_order() -> None:
    presentation = Presentation()
    slide = slide_of(presentation, "The mill")
    add_box(slide, "Right, first line", 5, 2)
    add_box(slide, "Below", 1, 4)
    add_box(slide, "Left, first line", 1, 2)
    slide.notes_slide.notes_text_frame.text = "Anna Berg built it."
    hidden = slide_of(presentation, "Draft")
    hidden._element.set("show", "0")
    add_box(slide_of(presentation), "The end", 1, 1)
    document = load(saved(presentation), "a.pptx")
    assert document.title == "The mill"
    assert [page.number for page in document.pages] == [1, 2, 3]
    assert document.pages[0].text == (
        "## The mill\n\nLeft, first line\n\nRight, first line\n\nBelow\n\n"
        "[notes] Anna Berg built it."
    )
    assert document.pages[1].text == ""
    assert loss_counts(document) == {"hidden slide": 1}
    assert document.report is not None
    assert not document.report.warnings


def test_tables_charts_and_pictures_are_read_or_marked(tmp_path) -> None:
    presentation = Presentation()
    slide = slide_of(presentation, "Sales")
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for place, text in enumerate(["Ship", "Year", "Fram", "1892"]):
        table.cell(place // 2, place % 2).text = text
    data = CategoryChartData()
    data.categories = ["2023", "2024"]
    data.add_series("Tons", (12, 7.5))
    box = Inches(1), Inches(3), Inches(4), Inches(3)
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *box, data)
    page = load(saved(presentation), "a.pptx").pages[0]
    rows = [s.text for s in segments(page.text, "", page.blocks) if s.kind == "row"]
    assert "Ship: Fram; Year: 1892" in rows
    assert any("2024" in row and "Tons: 7.5" in row for row in rows)
    assert "[chart" in page.text


MATH = (
    '<a14:m xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"><m:oMath xmlns:m='
    '"http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>x=2</m:t></m:r>'
    "</m:oMath></a14:m>"
)


def test_numbers_equations_and_hidden_shapes() -> None:
    presentation = Presentation()
    slide = slide_of(presentation)
    add_box(slide, "Heat\nMix\nStir\nServe", 1, 1)
    paragraphs = slide.shapes[0].text_frame.paragraphs
    for paragraph, kind in zip(paragraphs, ["arabicPeriod"] * 2 + ["alphaLcParenR"], strict=False):
        number = paragraph._p.get_or_add_pPr().makeelement(qn("a:buAutoNum"), {"type": kind})
        paragraph._p.get_or_add_pPr().append(number)
    paragraphs[2].level = 1
    paragraphs[3]._p.append(etree.fromstring(MATH))
    add_box(slide, "Nobody sees it", 1, 4)
    slide.shapes[1]._element.nvSpPr.cNvPr.set("hidden", "1")
    document = load(saved(presentation), "a.pptx")
    assert document.pages[0].text == "1. Heat\n2. Mix\n  a) Stir\n\nServe$x = 2$"
    assert loss_counts(document) == {"hidden shape": 1}
    assert document.report is not None
    assert not document.report.warnings


def test_rows_of_a_merged_cell_have_its_text() -> None:
    presentation = Presentation()
    shape = slide_of(presentation).shapes.add_table(3, 2, 0, 0, Inches(4), Inches(1))
    for place, text in enumerate(["Port", "Ship", "Kiel", "Fram", "", "Vega"]):
        shape.table.cell(place // 2, place % 2).text = text
    shape.table.cell(1, 0).merge(shape.table.cell(2, 0))
    page = load(saved(presentation), "a.pptx").pages[0]
    rows = [s.text for s in segments(page.text, "", page.blocks) if s.kind == "row"]
    assert rows == ["Port: Kiel; Ship: Fram", "Port: Kiel; Ship: Vega"]


@pytest.mark.parametrize("cut", [30, 400, 3000])
def test_a_damaged_presentation_is_an_error_with_its_name(cut: int) -> None:
    presentation = Presentation()
    slide_of(presentation, "One")
    with pytest.raises(IngestError, match="can't be read"):
        load(saved(presentation)[:-cut], "a.pptx")


def test_a_part_that_is_no_xml_is_an_error() -> None:
    presentation = Presentation()
    slide_of(presentation, "One")
    spoilt = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(saved(presentation))) as before,
        zipfile.ZipFile(spoilt, "w") as after,
    ):
        for name in before.namelist():
            is_slide = name.startswith("ppt/slides/slide")
            after.writestr(name, b"<p:sld" if is_slide else before.read(name))
    with pytest.raises(IngestError, match="can't be read"):
        load(spoilt.getvalue(), "a.pptx")
