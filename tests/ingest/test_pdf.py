"""PDFs read by the places of their characters: columns, running lines, tables, scans."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

import pytest

from tests.ingest.pdf_pages import Field, Image, PdfPage, Rule, Square, Text, Wave, make_pdf
from tgraph.errors import IngestError
from tgraph.extensions.server.pdf_page import page_boxes
from tgraph.ingest.base import DEFAULT_LIMITS
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments, sentences_of
from tgraph.model import Document, Page

LEFT = (
    "The committee reviewed the annual",
    "report of the harbour and found it",
    "complete. The harbour master, Olav",
    "Strand, resigned on 3 May 2024.",
)
RIGHT = (
    "The museum was founded by Ingrid",
    "Dahl in 1931. It holds a collection",
    "of whale bones. The museum closed",
    "in 1978 after the flood.",
)
BODY = (
    "The survey of the coast took the whole summer, since the boats could",
    "leave the harbour on calm days only, and there were few of these. The",
    "crew kept a journal, which the museum bought later on.",
)


def read(*pages: PdfPage) -> Document:
    return load(make_pdf(*pages), "a.pdf")


def quotes(page: Page) -> list[str]:
    found = segments(page.text, "application/pdf", page.blocks)
    return [segment.text[a:b] for segment in found for a, b in sentences_of(segment)]


def lines(x: float, y: float, texts: Sequence[str], pitch: float = 14, size: float = 11) -> PdfPage:
    return PdfPage([Text(x, y - pitch * k, text, size) for k, text in enumerate(texts)])


def losses(document: Document) -> dict[str, int]:
    assert document.report is not None
    counts: dict[str, int] = {}
    for loss in document.report.losses:
        counts[loss.kind] = counts.get(loss.kind, 0) + loss.count
    return counts


# --- columns ---


@pytest.mark.parametrize("shift", [0, 5])
@pytest.mark.parametrize("by_rows", [True, False])
def test_columns_are_read_one_after_the_other(by_rows: bool, shift: int) -> None:
    left, right = lines(60, 712, LEFT).texts, lines(310, 712 - shift, RIGHT).texts
    drawn = [text for row in zip(left, right, strict=True) for text in row]
    document = read(PdfPage(drawn if by_rows else [*right, *left]))
    (page,) = document.pages
    assert page.text == "\n".join(LEFT) + "\n\n" + "\n".join(RIGHT)
    assert "The harbour master, Olav Strand, resigned on 3 May 2024." in quotes(page)
    assert document.report is not None
    assert document.report.is_whole


def test_a_title_over_columns_and_a_line_below_stay_outside() -> None:
    title = Text(60, 760, "A history of the harbour, of its masters and of the museum", size=18)
    below = Text(60, 620, "Both texts were written for the yearbook of the town in the year 2024.")
    parts = [*lines(60, 712, LEFT).texts, *lines(310, 712, RIGHT).texts]
    (page,) = read(PdfPage([below, *parts, title])).pages
    blocks = page.text.split("\n\n")
    assert blocks[0].startswith("# A history")
    assert blocks[1:] == ["\n".join(LEFT), "\n".join(RIGHT), below.text]
    assert [heading.text for heading in page.headings] == [title.text]


def test_three_columns_are_read_down() -> None:
    middle = [text.replace("museum", "chapel").replace("whale", "old") for text in RIGHT]
    columns = [
        lines(x, 700, texts, size=9) for x, texts in ((30, LEFT), (220, middle), (410, RIGHT))
    ]
    rows = zip(*(column.texts for column in columns), strict=True)
    (page,) = read(PdfPage([text for row in rows for text in row])).pages
    assert page.text.split("\n\n") == ["\n".join(t) for t in (LEFT, middle, RIGHT)]


def test_a_sentence_goes_on_in_the_next_column() -> None:
    left = (*LEFT[:3], "Strand, resigned in May, and the")
    right = ("deputy, Kari Moe, took his place", "on the first day of June. Since then", *RIGHT[2:])
    (page,) = read(PdfPage([*lines(60, 712, left).texts, *lines(310, 712, right).texts])).pages
    assert any(q.endswith("and the deputy, Kari Moe, took his place on the first day of June.")
               for q in quotes(page))  # fmt: skip


def test_a_number_at_the_right_end_of_a_column_is_no_mark_of_the_next_column() -> None:
    left = lines(60, 712, (LEFT[0], LEFT[0], LEFT[0])).texts
    formula = [Text(80, 670, "e = m c"), Text(220.8, 670, "\\(1\\)")]
    right = lines(250, 712, RIGHT).texts
    (page,) = read(PdfPage([*left, *formula, *lines(60, 656, (LEFT[0],)).texts, *right])).pages
    assert page.text.index("(1)") < page.text.index(RIGHT[0])
    assert page.text.endswith("\n".join(RIGHT))


def test_a_picture_behind_text_parts_no_columns() -> None:
    columns = [*lines(60, 712, LEFT).texts, *lines(310, 712, RIGHT).texts]
    (page,) = read(PdfPage(columns, images=[Image(40, 650, 500, 60)])).pages
    texts = [page.text[b.start : b.end] for b in page.blocks if b.kind == "prose"]
    assert texts == ["\n".join(LEFT), "\n".join(RIGHT)]


def test_headings_of_two_columns_are_two() -> None:
    heads = [Text(x, 740, text, 11, True) for x, text in ((60, "Of boats"), (310, "Of crews"))]
    parts = [*lines(60, 720, LEFT).texts, *lines(310, 720, RIGHT).texts]
    last = Text(60, 650, "Of the harbour, of its masters and", 11, True)
    (page,) = read(PdfPage([*heads, *parts, last])).pages
    names = [heading.text for heading in page.headings]
    assert sorted(names) == sorted(("Of boats", last.text, "Of crews"))


def test_a_formula_stays_inside_its_sentence() -> None:
    texts = [
        *lines(60, 740, (*BODY[:2], "crew kept a journal, in which we simply find")).texts,
        Text(120, 696, "e = m c", 9),
        *lines(60, 680, ("instead of the longer account of the expedition.",)).texts,
    ]
    (page,) = read(PdfPage(texts)).pages
    assert page.text.index("simply find") < page.text.index("e = m c") < page.text.index("instead")


# --- running lines and page breaks ---


def running_pages() -> list[PdfPage]:
    head = Text(60, 800, "Annual Report 2024 - Harbour Authority")
    first = [
        "The new lighthouse was designed by the engi-",
        "neer Marta Lindqvist, who had built the",
    ]
    second = ["bridge at Solvik in 1998. It cost 4 million kroner."]
    return [
        PdfPage([head, *lines(60, 740, texts).texts, Text(60, 40, f"Page {number} of 2")])
        for number, texts in enumerate((first, second), 1)
    ]


def test_a_sentence_over_a_page_break_is_whole_and_running_lines_are_no_part_of_it() -> None:
    document = read(*running_pages())
    first, second = document.pages
    assert quotes(first)[-1] == (
        "The new lighthouse was designed by the engineer Marta Lindqvist, who had built the bridge"
        " at Solvik in 1998."
    )
    assert second.text == "It cost 4 million kroner."
    assert losses(document) == {"running head": 3}
    assert document.report is not None
    assert document.report.warnings == ()
    assert any("page break" in unit.unit and unit.in_text == 1 for unit in document.report.units)


def test_a_quote_that_ends_on_the_next_page_has_boxes_where_it_begins() -> None:
    data = make_pdf(*running_pages())
    text = load(data, "a.pdf").pages[0].text
    start = text.index("The new")
    found = page_boxes(data, 1, text, start, len(text))
    assert len(found.boxes) == 2
    columns = make_pdf(PdfPage([*lines(60, 712, LEFT).texts, *lines(310, 712, RIGHT).texts]))
    text = load(columns, "a.pdf").pages[0].text
    start = text.index("The harbour master")
    assert len(page_boxes(columns, 1, text, start, text.index("2024.") + 5).boxes) == 2


def test_heads_of_chapters_beside_page_numbers_are_running_lines() -> None:
    pages = []
    for number in range(7, 13):
        head = f"{number}   The coast" if number % 2 else f"Of boats and crews   {number}"
        text = Text(60, 740, f"Of the harbour in its year {1900 + number}.")
        pages.append(PdfPage([Text(60, 800, head), text, *lines(60, 726, BODY).texts]))
    document = read(*pages)
    assert losses(document) == {"running head": 4}
    assert all("Of the harbour in its year" in page.text for page in document.pages)
    assert [page.number for page in document.pages if "crews" in page.text] == [2]


def test_titles_of_slides_and_copies_of_a_page_stay() -> None:
    slides = [
        PdfPage([Text(60, 700, f"Step {n}", size=30), *lines(60, 600, BODY).texts]) for n in (1, 2)
    ]
    assert [page.headings[0].text for page in read(*slides).pages] == ["Step 1", "Step 2"]
    letter = lines(60, 790, (*BODY, *LEFT), pitch=30)
    first, second = read(letter, letter).pages
    assert first.text == second.text


def test_a_number_of_its_own_above_the_text_of_one_page_stays() -> None:
    (page,) = read(PdfPage([Text(60, 800, "1998"), *lines(60, 760, BODY).texts])).pages
    assert page.text.startswith("1998")


# --- paragraphs ---


def test_paragraphs_end_at_gaps_indents_and_short_lines() -> None:
    gap = [*lines(60, 740, BODY).texts, *lines(60, 680, LEFT).texts]
    indent = [*lines(60, 740, BODY).texts, Text(78, 698, LEFT[0]), *lines(60, 684, LEFT[1:]).texts]
    for texts in (gap, indent):
        (page,) = read(PdfPage(texts)).pages
        assert page.text == "\n".join(BODY) + "\n\n" + "\n".join(LEFT)


def test_numbered_sections_are_blocks_of_their_own() -> None:
    sections = [f"{n}.{m} The supplier shall deliver the goods of lot {m} to the harbour in time."
                for n in (1, 2) for m in (1, 2, 3)]  # fmt: skip
    (page,) = read(lines(60, 740, sections)).pages
    assert page.text.split("\n\n") == sections


def test_items_headings_and_notes_are_what_they_are() -> None:
    (page,) = read(
        PdfPage(
            [
                Text(60, 760, "2.1 Equipment", bold=True),
                *lines(60, 740, BODY).texts,
                Text(60, 680, "\\225"),
                Text(78, 680, "a tent for two"),
                Text(60, 666, "\\225"),
                Text(78, 666, "a stove"),
                Text(60, 60, "3 The journal is in the library of the town.", size=8),
            ]
        )
    ).pages
    kinds = [(block.kind, page.text[block.start : block.end]) for block in page.blocks]
    assert kinds[0] == ("heading", "2.1 Equipment")
    assert kinds[2:4] == [("item", "a tent for two"), ("item", "a stove")]
    assert kinds[4][0] == "note"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("It was a large light-", "house of red brick.", "a large lighthouse of"),
        ("It was the COVID-", "year of the town.", "the COVID-year of"),
        ("They sailed from Tromso-", "Oslo in May.", "from Tromso-\nOslo in"),
        ("It is well-known, a well-", "known house.", "a well-known house"),
        ("The years 1914-", "1918 were hard.", "1914-\n1918 were"),
    ],
)
def test_a_hyphen_goes_only_where_the_word_goes_on(first: str, second: str, expected: str) -> None:
    (page,) = read(lines(60, 740, (first, second))).pages
    assert expected in page.text


def test_raised_digits_are_not_part_of_a_number() -> None:
    raised = Text(60 + 12.3, 744, "6", size=7)
    (page,) = read(PdfPage([Text(60, 740, "10"), raised, Text(78, 740, "years of ice")])).pages
    assert page.text == "10⁶ years of ice"


# --- tables ---

COLUMNS = (
    (60, ("Item", "Tent", "Stove", "Sledge")),
    (200, ("Mass", "11 kg", "3 kg", "42 kg")),
    (330, ("Owner", "Berg", "Lund", "Holm")),
)


def table_texts(y: float = 730, first: int = 0) -> list[Text]:
    return [
        Text(x, y - 14 * k, cell) for x, cells in COLUMNS for k, cell in enumerate(cells[first:])
    ]


def table_rules(top: float, rows: int) -> list[Rule]:
    across = [Rule(55, top - 14 * k, 400, top - 14 * k) for k in range(rows + 1)]
    return [*across, *(Rule(x, top, x, top - 14 * rows) for x in (55, 195, 325, 400))]


@pytest.mark.parametrize("is_ruled", [True, False])
def test_a_table_is_rows_however_it_is_drawn(is_ruled: bool) -> None:
    rules = table_rules(741, 4) if is_ruled else []
    title = Text(60, 760, "Weights of the equipment")
    (page,) = read(PdfPage([title, *table_texts()], rules=rules)).pages
    assert quotes(page)[-3:] == [
        "Item: Tent; Mass: 11 kg; Owner: Berg",
        "Item: Stove; Mass: 3 kg; Owner: Lund",
        "Item: Sledge; Mass: 42 kg; Owner: Holm",
    ]
    assert page.text.startswith(f"{title.text}\n\nItem | Mass | Owner\nTent | 11 kg | Berg")


@pytest.mark.parametrize("repeats_head", [True, False])
def test_a_table_that_goes_on_keeps_the_names_of_its_columns(repeats_head: bool) -> None:
    first = PdfPage([*lines(60, 740, BODY).texts, *table_texts(690)])
    second = PdfPage(table_texts(700, 0 if repeats_head else 1))
    document = read(first, second)
    assert quotes(document.pages[1])[-1] == "Item: Sledge; Mass: 42 kg; Owner: Holm"
    assert document.pages[1].text.startswith("Item" if repeats_head else "Tent")


ENTRIES = [("1 Origins", "3"), ("1.1 Boats and crews", "4"), ("2 Results", "12"), ("Annex", "45")]


@pytest.mark.parametrize("dots", [". . . . . . . . . . .", "................", "·········"])
@pytest.mark.parametrize("apart", [True, False])
def test_a_table_of_contents_is_no_table_of_data(dots: str, apart: bool) -> None:
    drawn = [Text(60, 760, "Contents")]
    for k, (title, number) in enumerate(ENTRIES):
        y = 730 - 14 * k
        drawn += [Text(60, y, title if apart else f"{title} {dots}"), Text(400, y, number)]
        drawn += [Text(220, y, dots)] * apart
    (page,) = read(PdfPage(drawn)).pages
    assert " | " not in page.text
    kinds = [s.kind for s in segments(page.text, "application/pdf", page.blocks)]
    assert kinds[-4:] == ["navigation"] * 4


@pytest.mark.parametrize(
    ("rest", "goes_on"), [((330, "northern station"), True), ((60, "Boats"), False)]
)
def test_the_rest_of_a_cell_above_a_table_that_goes_on_parts_it_from_no_head(
    rest: tuple[float, str], goes_on: bool
) -> None:
    first = PdfPage([*lines(60, 740, BODY).texts, *table_texts(690)])
    second = PdfPage([Text(rest[0], 740, rest[1]), *table_texts(726, 1)])
    document = read(first, second)
    head = "Item: Sledge; Mass: 42 kg; Owner: Holm"
    assert quotes(document.pages[1])[-1] == (head if goes_on else "Sledge; 42 kg; Holm")


def test_a_table_of_figures_behind_dots_stays_a_table() -> None:
    figures = [("Tents", "120"), ("Stoves", "31"), ("Sledges", "42"), ("Boats", "7")]
    drawn = [
        text
        for k, (name, figure) in enumerate(figures)
        for text in (Text(60, 730 - 14 * k, f"{name} ........"), Text(400, 730 - 14 * k, figure))
    ]
    (page,) = read(PdfPage(drawn)).pages
    assert "Tents ........ | 120" in page.text


def test_a_cell_of_several_lines_is_one_cell() -> None:
    drawn = [Text(x, 730 - 28 * k, cell) for x, cells in COLUMNS for k, cell in enumerate(cells)]
    (page,) = read(PdfPage([*drawn, Text(330, 690, "and company")])).pages
    assert "Item: Tent; Mass: 11 kg; Owner: Berg and company" in quotes(page)


def test_names_with_a_colon_are_fields() -> None:
    names = [Text(60, 740 - 14 * k, name) for k, name in enumerate(("Name:", "Born:", "Place:"))]
    values = [Text(200, 740 - 14 * k, v) for k, v in enumerate(("Anna Berg", "1931", "Oslo"))]
    (page,) = read(PdfPage([*names, *values])).pages
    assert page.text == "Name: Anna Berg\nBorn: 1931\nPlace: Oslo"


# --- text from right to left ---


def leftward(x: float, y: float, text: str) -> Text:
    return Text(x, y, text, is_meant=True)


def test_columns_from_right_to_left_begin_at_the_right() -> None:
    left = [leftward(60, 740 - 14 * k, "abcdefgh ijklmno pqrstuv wxyz abc") for k in range(3)]
    right = [leftward(310, 740 - 14 * k, "ponmlkji hgfedcb zyxwvut srqp nml") for k in range(3)]
    (page,) = read(PdfPage([*left, *right])).pages
    texts = page.text.split("\n")
    assert [text[:1] for text in texts] == ["\u05db"] * 3 + ["\u05d2"] * 3


def test_a_row_from_right_to_left_begins_at_the_right() -> None:
    names, values = ("cba", "fed", "ihg"), ("mno", "pqr", "stu")
    cells = [
        leftward(x, 730 - 14 * k, text)
        for x, column in ((60, values), (200, names))
        for k, text in enumerate(column)
    ]
    (page,) = read(
        PdfPage(cells, rules=[*table_rules(741, 3)[:-2], Rule(195, 741, 195, 699)])
    ).pages
    assert page.text.split("\n")[0] == "\u05d0\u05d1\u05d2 | \u05de\u05dd\u05dc"


# --- characters ---


def test_an_accent_that_is_drawn_over_a_letter_is_part_of_it() -> None:
    document = read(PdfPage([Text(60, 740, "Kuttler wrote it."), Text(68.56, 740, "\\250")]))
    assert document.pages[0].text == "Küttler wrote it."
    assert document.report is not None
    assert document.report.is_whole
    data = make_pdf(PdfPage([Text(60, 740, "Kuttler wrote it."), Text(68.56, 740, "\\250")]))
    assert len(page_boxes(data, 1, "Küttler wrote it.", 0, 7).boxes) == 1


def test_characters_that_no_font_names_are_counted_and_a_letter_named_twice_is_one() -> None:
    texts = [leftward(60, 740, "#"), Text(72, 740, "is the time"), leftward(60, 700, "ab$cde")]
    document = read(PdfPage(texts))
    assert document.pages[0].text.startswith("\U0001d461 is the time")
    assert "\u05d2\N{REPLACEMENT CHARACTER}\u05d1\u05d0" in document.pages[0].text
    assert losses(document) == {"unreadable character": 1}
    assert document.report is not None
    assert document.report.warnings == ()


def test_an_item_is_as_large_as_its_text_whatever_its_bullet() -> None:
    marks = [Text(60, y, "!", 15, is_meant=True) for y in (740, 712)]
    first = lines(
        80, 740, ("a tent for two people and all of their dogs", "and for the cook")
    ).texts
    second = lines(80, 712, ("a stove",)).texts
    (page,) = read(PdfPage([*marks, *first, *second])).pages
    kinds = [(block.kind, page.text[block.start : block.end]) for block in page.blocks]
    texts = [f"{first[0].text}\n{first[1].text}", "a stove"]
    assert kinds == [("item", text) for text in texts]


# --- annotations ---


def test_values_of_form_fields_are_read_and_comments_are_counted() -> None:
    fields = [
        Field(160, 735, "Anna Berg"),
        Field(160, 700, "Bo Lund", is_drawn=False),
        Field(160, 600, "Is she?", is_drawn=False, is_comment=True),
    ]
    page = PdfPage([Text(60, 740, "Chair:"), *lines(60, 700, BODY).texts], fields=fields)
    document = read(page)
    text = document.pages[0].text
    assert text.split()[:4] == ["Chair:", "Anna", "Berg", "The"]
    assert losses(document) == {"form field": 1, "comment": 1}
    start = text.index("Anna")
    assert len(page_boxes(make_pdf(page), 1, text, start, start + 9).boxes) == 1


# --- grids ---


def test_a_grid_of_long_texts_is_no_table() -> None:
    texts = [*LEFT[:3], "Strand, resigned on 3 May.", *RIGHT[:3], "in 1978.", *LEFT[:2]]
    places = [(60, 700, texts), (310, 700, texts[::-1]), (60, 545, texts)]
    cells = [text for place in places for text in lines(*place).texts]
    rules = [
        *(Rule(50, y, 550, y) for y in (715, 560, 405)),
        *(Rule(x, 715, x, 405) for x in (50, 300, 550)),
    ]
    (page,) = read(PdfPage(cells, rules=rules)).pages
    assert {block.kind for block in page.blocks} == {"prose"}
    assert page.text.startswith("\n".join(LEFT[:3]))


def test_text_in_the_frame_of_a_table_is_no_row_of_it() -> None:
    frame = [Rule(50, y, 550, y) for y in (790, 741, 685, 620)]
    frame += [Rule(x, 790, x, 620) for x in (50, 550)]
    rules = [*frame, *(Rule(x, 741, x, 685) for x in (195, 325))]
    above, below = lines(60, 775, LEFT[:3], pitch=12).texts, lines(60, 668, BODY).texts
    (page,) = read(PdfPage([*above, *table_texts(), *below], rules=rules)).pages
    assert page.text.startswith("\n".join(LEFT[:3]) + "\n\nItem")
    assert page.text.endswith("\n".join(BODY))


def test_squares_to_tick_are_no_cells() -> None:
    ticks = [Square(x, y) for x in (200, 250) for y in (698, 684)]
    rules: list[Rule | Wave | Square] = [*table_rules(741, 4), *ticks]
    (page,) = read(PdfPage(table_texts(), rules=rules)).pages
    assert "Item: Stove; Mass: 3 kg; Owner: Lund" in quotes(page)


# --- scans and images ---

SCAN = Image(60, 300, 400, 400)


def scanned_pages() -> list[PdfPage]:
    first = PdfPage([Text(60, 740, "The board is chaired by Anna Berg.")])
    last = PdfPage([Text(60, 740, "The annex was signed by Bo Lund.")])
    numbered = PdfPage([Text(60, 800, "Page 3 of 5")], images=[SCAN])
    return [first, PdfPage(images=[SCAN]), numbered, PdfPage(images=[SCAN]), last]


def test_pages_that_are_images_are_named() -> None:
    document = read(*scanned_pages())
    assert [page.text for page in document.pages[1:4]] == [
        "[scanned page 2]",
        "[scanned page 3]",
        "[scanned page 4]",
    ]
    report = document.report
    assert report is not None
    assert [loss.place for loss in report.losses if loss.kind == "scanned page"] == [
        "page 2",
        "page 3",
        "page 4",
    ]
    (warning,) = report.warnings
    assert warning.startswith("Pages 2, 3, 4 hold no text. ")
    assert "tgraph-rag[ocr]" in warning
    assert next(unit for unit in report.units if unit.unit == "pages").left_out == 3


def test_a_page_of_an_image_with_little_text_is_scanned_and_keeps_the_text() -> None:
    stamp = PdfPage([Text(60, 800, "Received in Oslo")], images=[Image(0, 0, 595, 842)])
    document = read(stamp, PdfPage(lines(60, 740, BODY).texts))
    assert document.pages[0].text == "[scanned page 1]\n\nReceived in Oslo"


def test_text_of_an_earlier_recognition_is_read_though_it_is_invisible() -> None:
    texts = [replace(text, mode=3) for text in lines(60, 740, BODY).texts]
    document = read(PdfPage(texts, images=[Image(0, 0, 595, 842)]))
    assert document.pages[0].text == "\n".join(BODY)
    assert losses(document) == {}


def test_an_image_stands_in_the_text_unless_it_is_decoration() -> None:
    logo, map_ = Image(500, 780, 20, 20), Image(60, 400, 300, 200)
    document = read(PdfPage(lines(60, 740, BODY).texts, images=[logo, map_]))
    assert document.pages[0].text == "\n".join(BODY) + "\n\n[image]"
    assert losses(document) == {"image": 1}


def test_a_chart_is_a_drawing_and_its_labels_state_nothing() -> None:
    waves = [Wave(100, 400 + 12 * k) for k in range(10)]
    labels = [Text(95, 395, "1900"), Text(200, 390, "1950"), Text(300, 395, "2000")]
    behind = [Wave(60, 670 + 12 * k) for k in range(10)]
    document = read(PdfPage([*lines(60, 740, BODY).texts, *labels], rules=[*waves, *behind]))
    (page,) = document.pages
    assert page.text == "\n".join(BODY) + "\n\n[drawing]\n\n1900 2000\n1950"
    assert [block.kind for block in page.blocks] == ["prose", "mark", "display"]
    assert losses(document) == {"drawing": 1}


def test_a_page_of_labels_is_named() -> None:
    labels = [
        Text(60 + 97 * (k % 5) + 13 * (k % 3), 740 - 23 * (k // 5) - 9 * (k % 2), f"Part {k}")
        for k in range(15)
    ]
    report = read(PdfPage(lines(60, 740, BODY).texts), PdfPage(labels)).report
    assert report is not None
    (warning,) = report.warnings
    assert warning.startswith("The texts of page 2 are short")
    table = read(PdfPage(table_texts())).report
    assert table is not None
    assert table.warnings == ()


def test_sideways_text_is_read_and_text_outside_the_page_is_not() -> None:
    sideways = Text(560, 200, "Printed in Bergen by the museum", turned=True)
    outside = Text(60, 900, "not on the page")
    document = read(PdfPage([sideways, *lines(60, 740, BODY).texts, outside]))
    assert document.pages[0].text == "\n".join(BODY) + "\n\nPrinted in Bergen by the museum"
    assert losses(document) == {"text outside the page": 12}
    turned = read(PdfPage([replace(text, turned=True) for text in lines(60, 100, BODY).texts]))
    assert BODY[0] in turned.pages[0].text


def test_a_pdf_of_images_alone_is_refused_with_the_remedy() -> None:
    with pytest.raises(IngestError) as refusal:
        read(PdfPage(images=[SCAN]))
    assert "ingest.ocr" in refusal.value.remedy


def test_recognition_says_what_it_lacks() -> None:
    data = make_pdf(*scanned_pages())
    with pytest.raises(IngestError, match="1,700 MB"):
        load(data, "a.pdf", limits=replace(DEFAULT_LIMITS, recognise_text=True))
    if not find_spec("rapidocr_onnxruntime"):
        with pytest.raises(IngestError) as refusal:
            load(data, "a.pdf", limits=replace(DEFAULT_LIMITS, recognise_text=True, memory=2 << 30))
        assert "tgraph-rag[ocr]" in refusal.value.remedy


@pytest.mark.slow
def test_text_of_scanned_pages_is_recognised() -> None:
    pytest.importorskip("rapidocr_onnxruntime", reason="needs the extra 'ocr'")
    pdfium = pytest.importorskip("pypdfium2")
    picture = pdfium.PdfDocument(make_pdf(lines(60, 740, LEFT, size=12)))[0].render(scale=2)
    pixels = picture.to_numpy()[:, :, :3]
    image = Image(0, 0, 595, 842, pixels.tobytes(), pixels.shape[1], pixels.shape[0])
    limits = replace(DEFAULT_LIMITS, recognise_text=True, memory=2 << 30, seconds=300)
    document = load(make_pdf(PdfPage(images=[image])), "a.pdf", limits=limits)
    (page,) = document.pages
    assert "The harbour master, Olav Strand, resigned on 3 May 2024." in quotes(page)
    assert len(page.lines) == 4
    assert all(0.5 < line.confidence <= 1 and line.left < line.right for line in page.lines)
    first = page.text[page.lines[0].start : page.lines[0].end]
    assert first.replace(" ", "") == LEFT[0].replace(" ", "")
    assert document.report is not None
    assert "mean confidence" in document.report.warnings[0]


# --- damage ---


@dataclass
class Mutation:
    seed: int
    data: bytes = field(repr=False)

    def damage(self) -> bytes:
        rng = random.Random(self.seed)
        damaged = bytearray(self.data)
        for _ in range(rng.randint(1, 30)):
            damaged[rng.randrange(20, len(damaged))] = rng.randrange(256)
        return bytes(damaged[: rng.randrange(len(damaged) // 2, len(damaged) + 1)])


@pytest.mark.slow
def test_a_damaged_pdf_is_read_or_refused() -> None:
    data = make_pdf(
        *running_pages(), PdfPage(table_texts(), rules=table_rules(741, 4)), *scanned_pages()
    )
    for seed in range(150):
        try:
            document = load(Mutation(seed, data).damage(), "a.pdf")
        except IngestError:
            continue
        assert document.report is not None


def test_numbers_of_lines_in_the_margin_are_no_part_of_the_text() -> None:
    bill = [
        "SECTION 1. REEDS.",
        "The council of the town shall have the reeds",
        "counted by persons who are members of the Reed",
        "Club, and shall have the sum told to the inhab-",
        "itants of the town before the end of the year in",
        "which the reeds were counted.",
    ]
    drawn = [
        Text(*place)
        for k, text in enumerate(bill, 1)
        for place in ((60, 700 - 26 * k, str(k)), (90, 700 - 26 * k, text))
    ]
    document = read(PdfPage(drawn))
    assert quotes(document.pages[0])[-1] == " ".join(bill[1:4])[:-1] + " ".join(bill[4:])
    assert losses(document)["line number"] == 6
    ranks = [
        Text(x, 700 - 20 * k, text)
        for k, name in enumerate(("Reed", "Rush", "Sedge", "Iris", "Cane", "Moss"), 1)
        for x, text in ((60, str(k)), (90, name), (200, f"{k}0 cm"))
    ]
    assert "line number" not in losses(read(PdfPage(ranks)))


def test_footnotes_beside_their_numbers_are_no_table() -> None:
    notes = [
        Text(x, 200 - 30 * k, text, 8)
        for k in range(1, 5)
        for x, text in (
            (60, str(k)),
            (80, f"The reeds of bank {k} were counted by the members of the club in May."),
        )
    ]
    body = Text(60, 700, "Reeds are counted in every year. They grow.")
    kinds = [block.kind for block in read(PdfPage([body, *notes])).pages[0].blocks]
    assert kinds == ["prose", *["note"] * 4]


def test_an_item_that_goes_on_to_the_left_of_its_text_is_whole() -> None:
    drawn = [
        Text(60, 700, "The reeds of the river are counted by these persons:"),
        Text(78, 670, "- There are undoubtedly a few members of the Reed"),
        Text(60, 640, "club, and a slightly larger number of guests."),
    ]
    found = quotes(read(PdfPage(drawn)).pages[0])
    assert found[1] == (
        "There are undoubtedly a few members of the Reed club, and a slightly larger number of"
        " guests."
    )
