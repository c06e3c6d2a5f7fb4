"""Word documents: what Word shows stands in the text, what it doesn't show is counted."""

from __future__ import annotations

import random
import zipfile
from contextlib import suppress
from io import BytesIO

import docx
import pytest

from tests.support.word_documents import paragraph, root, row, run, table, word_document
from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document, ReadingReport

DELETED = '<w:del w:id="1"><w:r><w:delText>{}</w:delText></w:r></w:del>'
BOX = "<w:txbxContent>{}</w:txbxContent>"
SHAPE = (
    "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:inline><wp:docPr id='1'/>"
    f"<a:graphic><a:graphicData><wps:wsp><wps:txbx>{BOX}</wps:txbx></wps:wsp></a:graphicData>"
    f"</a:graphic></wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>{BOX}"
    "</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
)
PICTURE = (
    "<w:r><w:drawing><wp:inline><wp:docPr id='1' descr='{}'/><a:graphic><a:graphicData><pic:pic/>"
    "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
)
NUMBERING = root(
    "numbering",
    '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt '
    'w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl><w:lvl w:ilvl="1"><w:start w:val="1"/>'
    '<w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0">'
    '<w:startOverride w:val="7"/></w:lvlOverride></w:num>',
)
STYLES = root(
    "styles",
    '<w:style w:type="paragraph" w:styleId="T1"><w:name w:val="heading 1"/><w:pPr><w:numPr>'
    '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="T1"/>'
    "</w:style>"
    '<w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/><w:rPr><w:vanish/>'
    "</w:rPr></w:style>"
    '<w:style w:type="character" w:styleId="Power"><w:name w:val="Power"/><w:rPr>'
    '<w:vertAlign w:val="superscript"/></w:rPr></w:style>',
)


def read(*blocks: str, parts: dict[str, str] | None = None, strict: bool = False) -> Document:
    document = load(word_document(*blocks, parts=parts, strict=strict), "a.docx")
    assert not report_of(document).warnings
    return document


def report_of(document: Document) -> ReadingReport:
    assert document.report is not None
    return document.report


def text_of(*blocks: str, parts: dict[str, str] | None = None, strict: bool = False) -> str:
    return read(*blocks, parts=parts, strict=strict).pages[0].text


def losses_of(document: Document) -> dict[str, int]:
    return {loss.kind: loss.count for loss in report_of(document).losses}


def numbered(text: str, number: int = 1, level: int = 0) -> str:
    return paragraph(
        text,
        properties=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>',
    )


def test_tracked_changes_are_accepted():
    inserted = f"<w:ins w:id='2'>{run('not ')}</w:ins>"
    document = read(
        paragraph("Brevanol must ", inserted, DELETED.format("always "), "be given to children."),
        paragraph(f"<w:ins w:id='4'>{run('New.')}</w:ins>", properties="<w:rPr><w:ins/></w:rPr>"),
    )
    assert document.pages[0].text == "Brevanol must not be given to children.\n\nNew."
    assert losses_of(document) == {"deleted text": 1}
    (characters,) = report_of(document).units
    assert (characters.in_file, characters.in_text, characters.left_out) == (43, 37, 6)


def test_moved_text_stands_where_it_was_moved_to():
    moved = f"<w:moveFrom w:id='1'>{run('The keeper is Bo.')}</w:moveFrom>"
    document = read(
        f"<w:p><w:pPr><w:rPr><w:moveFrom w:id='5'/></w:rPr></w:pPr>{moved}</w:p>",
        paragraph("First."),
        paragraph(f"<w:moveTo w:id='2'>{run('The keeper is Bo.')}</w:moveTo>"),
    )
    assert document.pages[0].text == "First.\n\nThe keeper is Bo."
    assert losses_of(document) == {"moved text": 1}


def test_a_deleted_end_of_a_paragraph_joins_it_with_the_next():
    mark = "<w:rPr><w:del w:id='1'/></w:rPr>"
    blocks = [paragraph("The fee ", properties=mark), paragraph("is 40 euros.")]
    assert text_of(*blocks) == "The fee is 40 euros."
    assert text_of(table(row(blocks[0], paragraph("x")))) == "The fee | x"


def test_deleted_rows_are_left_out():
    head = row(paragraph("Item"), paragraph("Cost"))
    cells = paragraph("Boat"), paragraph("100")
    assert text_of(table(head, row(*cells))) == "Item | Cost\nBoat | 100"
    gone = row(*cells, properties="<w:del w:id='1'/>")
    assert text_of(table(head, gone)) == "Item | Cost"


def test_a_struck_name_is_shown_and_not_read():
    document = read(
        paragraph("The keeper is ", run("Anna Berg", "<w:strike/>"), " Bo Lund."),
        paragraph(run("Double.", "<w:dstrike/>")),
        paragraph(run("Kept.", '<w:strike w:val="0"/>')),
    )
    page = document.pages[0]
    assert page.text == "The keeper is [struck: Anna Berg] Bo Lund.\n\n[struck: Double.]\n\nKept."
    read_texts = [s.text for s in segments(page.text, document.media_type, page.blocks)]
    assert read_texts == ["The keeper is Bo Lund.", "Kept."]
    assert losses_of(document) == {"struck text": 2}


def test_hidden_runs_are_left_out_and_counted():
    document = read(
        paragraph(
            "Seen. ",
            run("The bribe was 500 euros.", "<w:vanish/>"),
            run("By style.", '<w:rStyle w:val="Secret"/>'),
            run("Shown.", '<w:rStyle w:val="Secret"/><w:vanish w:val="0"/>'),
        ),
        parts={"word/styles.xml": STYLES},
    )
    assert document.pages[0].text == "Seen. Shown."
    assert losses_of(document) == {"hidden text": 2}


def test_powers_indices_and_references_of_notes():
    up, down = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'
    styled = run("3", '<w:rStyle w:val="Power"/>')
    blocks = [
        paragraph("It holds 10", run("6", up), " m", styled, " of H", run("2", down), "O."),
        paragraph("The fee is 55 euros", run("3", up), "."),
    ]
    assert text_of(*blocks, parts={"word/styles.xml": STYLES}) == (
        "It holds 10^6 m^3 of H2O.\n\nThe fee is 55 euros[3]."
    )


def test_content_controls_fields_and_links_are_read():
    control = f"<w:sdt><w:sdtPr/><w:sdtContent>{run('Norden AB')}</w:sdtContent></w:sdt>"
    field = f'<w:fldSimple w:instr="REF a">{run("7.4")}</w:fldSimple>'
    block = f"<w:sdt><w:sdtPr/><w:sdtContent>{paragraph('Cover title')}</w:sdtContent></w:sdt>"
    nested = "".join(
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>{text}'
        for kind, text in [
            ("begin", "<w:r><w:instrText> IF </w:instrText></w:r>"),
            ("begin", "<w:r><w:instrText> MERGEFIELD x </w:instrText></w:r>"),
            ("separate", run("unseen")),
            ("end", ""),
            ("separate", run("Malmö")),
            ("end", "."),
        ]
    )[:-1]
    text = text_of(
        block,
        paragraph("The supplier is ", control, " (section ", field, ") of ", nested, "."),
        paragraph(f'<w:hyperlink w:anchor="x">{run("Helga Moe")}</w:hyperlink>', " wrote it."),
    )
    assert text == (
        "Cover title\n\nThe supplier is Norden AB (section 7.4) of Malmö.\n\nHelga Moe wrote it."
    )


def test_a_text_box_is_read_once_behind_its_paragraph():
    content = paragraph("Report within 24 hours.") + paragraph("By phone.")
    document = read(
        paragraph("Rules:", SHAPE.format(content, content)),
        paragraph("End."),
    )
    assert document.pages[0].text == "Rules:\n\nReport within 24 hours.\n\nBy phone.\n\nEnd."
    assert not report_of(document).losses


def test_pictures_and_shapes_are_marked():
    document = read(
        paragraph(PICTURE.format("A map of the fjord")),
        paragraph("Press ", PICTURE.format("the bell"), " to open."),
        paragraph("<w:r><w:drawing><wp:inline/></w:drawing></w:r>", "End."),
    )
    assert document.pages[0].text == (
        "[image: A map of the fjord]\n\nPress [image: the bell] to open.\n\n[drawing]\n\nEnd."
    )
    assert losses_of(document) == {"image": 2, "drawing": 1}
    assert document.pages[0].blocks[0].kind == "mark"


def test_the_values_of_a_chart_are_a_table():
    points = "".join(
        f"<c:pt idx='{number}'><c:v>{value}</c:v></c:pt>" for number, value in enumerate("ab")
    )
    values = points.replace(">a<", ">4<").replace(">b<", ">5<")
    chart = (
        '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:chart><c:title><a:p><a:r>'
        "<a:t>Catch</a:t></a:r></a:p></c:title><c:ser><c:tx><c:v>Tons</c:v></c:tx>"
        f"<c:cat>{points}</c:cat><c:val>{values}</c:val></c:ser></c:chart></c:chartSpace>"
    )
    drawing = (
        "<w:r><w:drawing><wp:inline><a:graphic><a:graphicData><c:chart r:id='chart'/>"
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )
    text = text_of(paragraph(drawing), parts={"word/charts/chart.xml": chart})
    assert text == "[chart: Catch]\n\nTons\na | 4\nb | 5"


def test_equations_are_latex():
    fraction = (
        "<m:oMath><m:r><m:t>x=</m:t></m:r><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den>"
        "<m:sSup><m:e><m:r><m:t>y</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
        "</m:den></m:f></m:oMath>"
    )
    assert text_of(paragraph("We set ", fraction, ".")) == r"We set $x = \frac{1}{y^{2}}$."
    assert text_of(paragraph("So"), f"<w:p><m:oMathPara>{fraction}</m:oMathPara></w:p>") == (
        "So\n\n" + r"$x = \frac{1}{y^{2}}$"
    )


def test_notes_and_comments_stand_apart():
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    remark = '<w:r><w:commentReference w:id="0"/></w:r>'
    document = read(
        paragraph("The dam is safe.", note, remark),
        paragraph("It was built in 1950."),
        parts={
            "word/footnotes.xml": root(
                "footnotes",
                '<w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>'
                '<w:footnote w:id="2">'
                + paragraph("<w:r><w:footnoteRef/></w:r>", " Survey of 1999.")
                + "</w:footnote>",
            ),
            "word/comments.xml": root(
                "comments",
                f'<w:comment w:id="0" w:author="Ida Roe">{paragraph("Is it?")}</w:comment>',
            ),
        },
    )
    page = document.pages[0]
    assert [(b.kind, page.text[b.start : b.end]) for b in page.blocks] == [
        ("prose", "The dam is safe.[1]"),
        ("comment", "Comment by Ida Roe: Is it?"),
        ("prose", "It was built in 1950."),
        ("note", "Survey of 1999."),
    ]
    assert page.text.endswith("[1] Survey of 1999.")


def test_headers_and_footers_stand_once():
    def section(header: str, footer: str) -> str:
        return (
            f'<w:sectPr><w:headerReference w:type="default" r:id="{header}"/>'
            f'<w:footerReference w:type="default" r:id="{footer}"/></w:sectPr>'
        )

    number = '<w:fldSimple w:instr=" PAGE ">' + run("1") + "</w:fldSimple>"
    head = root("hdr", paragraph("Owner: Tarn Water Board"))
    document = read(
        paragraph("One.", properties=section("header1", "footer1")),
        paragraph("Two."),
        section("header2", "footer1"),
        parts={
            "word/header1.xml": head,
            "word/header2.xml": head,
            "word/header3.xml": root("hdr", paragraph("Of no section")),
            "word/footer1.xml": root("ftr", paragraph("Page ", number)),
        },
    )
    page = document.pages[0]
    assert page.text == "Owner: Tarn Water Board\n\nOne.\n\nTwo."
    assert page.blocks[0].kind == "display"
    assert losses_of(document) == {"page number": 1, "running head": 1}


def test_numbers_of_lists_and_headings_are_computed():
    heading = '<w:pStyle w:val="{}"/>'
    text = text_of(
        paragraph("Scope", properties=heading.format("T1")),
        paragraph("Terms", properties=heading.format("Own")),
        numbered("Deep", level=1),
        numbered("Deeper", level=1),
        numbered("Item", number=2),
        numbered("Next", number=2),
        numbered("None", number=0),
        parts={"word/styles.xml": STYLES, "word/numbering.xml": NUMBERING},
    )
    assert text == (
        "# 1. Scope\n\n# 2. Terms\n\n  2.a) Deep\n  2.b) Deeper\n7. Item\n8. Next\n\nNone"
    )


def test_empty_paragraphs_of_lists_count_and_number_cells():
    empty = numbered("")
    text = text_of(
        numbered("one"),
        empty,
        numbered("three"),
        table(row(empty, paragraph("Name")), row(empty, paragraph("Address"))),
        parts={"word/numbering.xml": NUMBERING},
    )
    assert text == "1. one\n3. three\n\n4. | Name\n5. | Address"


def test_breaks_of_columns_and_pages_part_words():
    parted = [
        f"{run('First.')}<w:r><w:br w:type='{kind}'/><w:t>Next</w:t></w:r>"
        for kind in ("column", "page")
    ]
    assert text_of(*(f"<w:p>{runs}</w:p>" for runs in parted)) == "First.\nNext\n\nFirst.\nNext"


def test_tables_have_heads_spans_and_inner_tables():
    merged = "<w:tcPr><w:vMerge{}/></w:tcPr>"
    rows = table(
        row(paragraph("1"), paragraph("2"), properties="<w:tblHeader/>"),
        row(merged.format(' w:val="restart"') + paragraph("Boat"), paragraph("100")),
        row(merged.format("") + "<w:p/>", paragraph("200")),
    )
    page = read(rows).pages[0]
    assert page.text == "1 | 2\nBoat | 100\nBoat | 200"
    assert page.blocks[0].kind == "head"
    late = row(paragraph("c"), properties="<w:gridBefore w:val='1'/>")
    document = read(table(row(paragraph("A"), paragraph("B")), late))
    page = document.pages[0]
    assert [s.text for s in segments(page.text, document.media_type, page.blocks)][1:] == ["B: c"]
    inner = table(
        row(paragraph("Maker"), paragraph("Weight")), row(paragraph("Norden"), paragraph("7"))
    )
    outer = table(row(paragraph("Gate"), paragraph("Details:") + inner))
    assert text_of(outer) == "Gate | Details:\n\nMaker | Weight\nNorden | 7"


def test_strict_documents_are_read():
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    notes = root("footnotes", f'<w:footnote w:id="2">{paragraph("A note.")}</w:footnote>')
    parts = {"word/footnotes.xml": notes}
    assert text_of(paragraph("Text.", note), parts=parts, strict=True) == "Text.[1]\n\n[1] A note."


@pytest.mark.parametrize("broken", ["word/styles.xml", "word/numbering.xml", "docProps/core.xml"])
def test_a_damaged_part_that_has_no_text_costs_nothing_else(broken: str):
    assert text_of(paragraph("Text."), parts={broken: "<broken"}) == "Text."


def test_properties_are_metadata():
    document = docx.Document()
    document.core_properties.title = "The  Tarn"
    document.core_properties.author = "Ida Roe"
    document.add_paragraph("Text.")
    out = BytesIO()
    document.save(out)
    loaded = load(out.getvalue(), "a.docx")
    assert loaded.title == "The Tarn"
    assert loaded.metadata["author"] == "Ida Roe"
    assert report_of(loaded).reader.startswith("mammoth 1.")


def test_mutated_documents_are_read_or_refused_with_their_name():
    content = paragraph("Box:", SHAPE.format(paragraph("Inside."), paragraph("Inside.")))
    plain = word_document(
        content,
        table(row(paragraph("a"), paragraph("b"))),
        numbered("Item"),
        parts={"word/styles.xml": STYLES, "word/numbering.xml": NUMBERING},
    )
    chance = random.Random(5)
    with zipfile.ZipFile(BytesIO(plain)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    for _ in range(60):
        name = chance.choice(sorted(parts))
        at, length = chance.randrange(len(parts[name])), chance.randrange(1, 60)
        piece = chance.choice(["", '"9999999"', "<w:tr>", "w:val='-1'", "\u0000", "w:tbl"])
        mutant = parts | {name: parts[name][:at] + piece + parts[name][at + length :]}
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for path, text in mutant.items():
                archive.writestr(path, text)
        with suppress(IngestError):
            assert load(out.getvalue(), "mutant.docx").pages[0].text
