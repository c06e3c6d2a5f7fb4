"""Blocks: a page's stored text is made of blocks, and reads back as the same blocks."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tgraph.ingest.blocks import LossList, PageBuilder, pack_layout, unpack_blocks, unpack_lines
from tgraph.ingest.segments import segments
from tgraph.model import TextLine, UnitCount

KINDS = st.sampled_from(["paragraph", "heading", "item", "code", "row", "note", "field"])
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def add_block(builder: PageBuilder, kind: str, text: str, table: int) -> None:
    match kind:
        case "paragraph":
            builder.add_paragraph(text)
        case "heading":
            builder.add_heading(text, 2)
        case "item":
            builder.add_item(text, 1)
        case "code":
            builder.add_code(text)
        case "row":
            builder.add_row(table, [text, "", text])
        case "note":
            builder.add_note("1", text)
        case "field":
            builder.add_field("From", text)


@given(st.lists(st.tuples(KINDS, WORDS), max_size=8))
def test_blocks_stand_in_order_and_read_back(blocks):
    builder = PageBuilder()
    table = builder.open_table()
    for kind, text in blocks:
        add_block(builder, kind, text, table)
    page = builder.page()
    places = [(block.start, block.end) for block in page.blocks]
    assert places == sorted(places)
    assert all(end <= after for (_, end), (after, _) in itertools.pairwise(places))
    assert unpack_blocks(pack_layout(page)) == page.blocks
    for block in page.blocks:
        for cell in block.cells:
            assert block.start <= cell.start < cell.end <= block.end
    for heading, block in zip(
        page.headings, [b for b in page.blocks if b.kind == "heading"], strict=True
    ):
        assert page.text[block.start : block.end] == heading.text
    for segment in segments(page.text, "text/html", page.blocks):
        assert segment.start < segment.end <= len(page.text)
        assert list(segment.offsets) == sorted(segment.offsets)


def test_rows_are_read_with_the_names_of_their_columns():
    builder = PageBuilder()
    builder.add_paragraph("The ships of the fleet are these:")
    table = builder.open_table()
    builder.add_row(table, ["Ship", "Builder", "Year"], head=True)
    builder.add_row(table, ["Fram", "", "1892"])
    page = builder.page()
    assert page.text == "The ships of the fleet are these:\n\nShip | Builder | Year\nFram | 1892"
    row = segments(page.text, "text/html", page.blocks)[-1]
    assert row.kind == "row"
    assert row.text == "Ship: Fram; Year: 1892"
    assert row.lead == ("The ships of the fleet are these:",)
    assert [page.text[slice(*row.locate(*value))] for _, value in row.pairs] == ["Fram", "1892"]


def test_a_table_that_goes_on_has_the_names_of_its_head():
    builder = PageBuilder()
    table = builder.open_table()
    builder.add_row(table, [], head=True, names=["Ship", "Year"])
    builder.add_row(table, ["Gjøa", "1872"])
    page = builder.page(2)
    assert page.text == "Gjøa | 1872"
    assert segments(page.text, "application/pdf", page.blocks)[0].text == "Ship: Gjøa; Year: 1872"


def test_pages_appended_keep_their_blocks():
    chapter = PageBuilder()
    chapter.add_heading("One", 1)
    table = chapter.open_table()
    chapter.add_row(table, ["A", "B"])
    book = PageBuilder()
    for _ in range(2):
        book.append(chapter.page())
    page = book.page()
    assert [page.text[block.start : block.end] for block in page.blocks] == ["One", "A | B"] * 2
    assert [block.table for block in page.blocks] == [-1, 0, -1, 1]


def test_places_of_recognised_lines_are_kept():
    builder = PageBuilder()
    builder.add_paragraph("First.")
    builder.add_paragraph("A line read by a machine.")
    builder.add_lines([TextLine(0, 6, 0.1, 0.2, 0.5, 0.25, 0.93)])
    page = builder.page(3)
    line = unpack_lines(pack_layout(page))[0]
    assert page.text[line.start : line.end] == "A line"
    assert (line.left, line.confidence) == (0.1, 0.93)


def test_a_report_counts_losses_and_warns_of_what_nothing_explains():
    losses = LossList()
    losses.add("image", "an image has no text", place="page 2", marked=True)
    losses.add("image", "an image has no text", place="page 2", marked=True)
    report = losses.report("reader 1.0", [UnitCount("characters", 1000, 900, left_out=20)])
    assert [(loss.kind, loss.count) for loss in report.losses] == [("image", 2)]
    assert report.units[0].unexplained == 80
    assert len(report.warnings) == 1
    assert "80 of 1,000 characters" in report.warnings[0]
    assert not losses.report("reader", [UnitCount("characters", 1000, 995)]).warnings
