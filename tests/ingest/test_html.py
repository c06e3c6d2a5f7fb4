"""HTML whose elements are nested, left open, hidden or encoded in unusual ways."""

from __future__ import annotations

import random
import time
from contextlib import suppress

import pytest

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments


def text_of(markup: str | bytes) -> str:
    data = markup.encode() if isinstance(markup, str) else markup
    return load(data, "a.html").pages[0].text


def test_an_encoding_declaration_of_xml_is_no_obstacle():
    declared = "<?xml version='1.0' encoding='{}'?><!DOCTYPE html><html><p>Zażółć</p></html>"
    assert text_of(declared.format("utf-8")) == "Zażółć"
    assert text_of(declared.format("iso-8859-2")) == "Zażółć"  # the bytes are UTF-8


def test_comments_and_instructions_part_no_words():
    assert text_of("<p>Sir Er<!-- a <b> -->nest <?php echo 1 ?>Shackleton</p>after") == (
        "Sir Ernest Shackleton\n\nafter"
    )


def test_entities_are_characters():
    assert text_of("<p>A &amp; B &hellip; &#x43; &eacute; &lt;p&gt; &nosuch;</p>") == (
        "A & B … C é <p> &nosuch;"
    )


def test_a_title_inside_a_picture_is_not_the_page_s():
    page = "<svg><title>Arrow</title></svg><title>Page</title><p>Text.</p>"
    assert load(page.encode(), "a.html").title == "Page"


def test_what_follows_a_hidden_element_is_read():
    assert text_of("<p>one</p><p hidden>two</p><p>three <i hidden>four</i>five</p>") == (
        "one\n\nthree five"
    )


def test_elements_left_open_end_where_the_standard_says():
    markup = "<ul><li>One<li>Two</ul><table><tr><td>a<td>b<tr><td>c<td>d</table><p>e<p>f"
    assert text_of(markup) == "- One\n- Two\n\na | b\nc | d\n\ne\n\nf"


def test_a_table_inside_a_cell_stands_behind_its_row():
    inner = "<table><tr><td>x</td><td>y</td></tr></table>"
    assert text_of(f"<table><tr><td>a {inner} b</td><td>c</td></tr></table>") == (
        "a; b | c\n\nx | y"
    )


def test_deep_nesting_is_read_without_recursion():
    assert text_of("<div>" * 2000 + "deep" + "</div>" * 2000) == "deep"


def test_nesting_beyond_every_parser_is_refused_not_cut():
    with pytest.raises(IngestError, match="nested too deep"):
        load(("<p>seen</p>" + "<div>" * 100_000 + "lost").encode(), "a.html")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["<p>", "<li>", "<tr><td>", "<script>x</script>y", "<a href=", "<!--", "&amp", "</p>"]
)
def test_reading_takes_linear_time(piece: str):
    started = time.process_time()
    text_of("<p>text</p>" + piece * (400_000 // len(piece)))
    assert time.process_time() - started < 10


def blocks_of(markup: str) -> list[tuple[str, str]]:
    page = load(markup.encode(), "a.html").pages[0]
    return [(block.kind, page.text[block.start : block.end]) for block in page.blocks]


def losses_of(markup: str) -> dict[str, int]:
    report = load(markup.encode(), "a.html").report
    assert report is not None
    assert not report.warnings
    return {loss.kind: loss.count for loss in report.losses}


def read_texts(markup: str) -> list[str]:
    document = load(markup.encode(), "a.html")
    page = document.pages[0]
    return [s.text for s in segments(page.text, document.media_type, page.blocks)]


def test_deleted_and_struck_words_are_shown_and_not_read():
    markup = (
        "<p>Kept for <del>five</del><ins>ten</ins> years.</p><p>The officer is <s>Anna Berg</s> "
        "Bo Lund.</p><p>colo<del>u</del>r</p><p><strike>All gone.</strike></p>"
        "<p>It costs <span style='text-decoration: line-through'>40</span> 55 euros.</p>"
    )
    assert text_of(markup) == (
        "Kept for [struck: five] ten years.\n\nThe officer is [struck: Anna Berg] Bo Lund.\n\n"
        "colo[struck: u]r\n\n[struck: All gone.]\n\nIt costs [struck: 40] 55 euros."
    )
    assert read_texts(markup) == [
        "Kept for ten years.",
        "The officer is Bo Lund.",
        "color",
        "It costs 55 euros.",
    ]
    assert losses_of(markup) == {"struck text": 5}


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("10<sup>6</sup> units", "10^6 units"),
        ("10<sup>−6</sup> m", "10^−6 m"),
        ("40 m<sup>2</sup> or km<sup>2</sup>", "40 m^2 or km^2"),
        ("x<sup>n</sup> and (a+b)<sup>2</sup>", "x^n and (a+b)^2"),
        ("55 euros<sup>3</sup>.", "55 euros[3]."),
        ("The end.<sup>12</sup>", "The end.[12]"),
        ("(see above)<sup>4</sup>", "(see above)[4]"),
        ("a 1<sup>st</sup> prize", "a 1st prize"),
        ("Acme<sup>TM</sup>", "AcmeTM"),
        ("H<sub>2</sub>O, x<sub>2</sub>, x<sub>i</sub>", "H2O, x2, x_i"),
        ("year<sup><a href='#a'>b</a></sup>", "year[b]"),
        ("<q>Yes</q>, <ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "“Yes”, 漢(kan)"),
        (
            "<math><mi>x</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>",
            r"$x = \frac{1}{2}$",
        ),
        ("<math alttext='E=mc^2'><mi>E</mi></math>", "$E=mc^2$"),
        ("<input type=checkbox checked>Paid <input type=radio>Open", "☒ Paid ☐ Open"),
    ],
)
def test_raised_and_lowered_signs(markup: str, text: str):
    assert text_of(f"<p>{markup}</p>") == text


def test_what_the_page_hides_is_left_out_and_counted():
    markup = (
        "<style>.gone, #too { display: none } @media print { .shown { display: none } }</style>"
        "<p>Seen.</p><p hidden>a</p><p style='color:red; display:none'>b</p>"
        "<p style='VISIBILITY: hidden'>c</p><p aria-hidden=true>d</p><p class='x gone'>e</p>"
        "<p id=too>f</p><p class=shown>Shown.</p><template><p>g</p></template>"
        "<noscript>h</noscript><select><option>i</select><textarea>j</textarea>"
        "<details><summary>Who signs?</summary><p>Eva Lind signs.</p></details>"
    )
    assert text_of(markup) == "Seen.\n\nShown.\n\nWho signs?\n\nEva Lind signs."
    assert losses_of(markup) == {"hidden text": 6, "form control": 2}


def test_tables_with_spans_and_heads_of_several_rows():
    markup = (
        "<table><caption>Prices</caption><thead><tr><th rowspan=2>Item<th colspan=2>Cost<tr>"
        "<th>2020<th>2021</thead><tr><td rowspan=2>Boat<td>100<td>110<tr><td>200<td>220"
        "<tr><td colspan=3>Others</td></tr><tr><td>Oar<td><td>5</table>"
    )
    assert text_of(markup) == (
        "Prices\n\nItem | Cost\n2020 | 2021\nBoat | 100 | 110\nBoat | 200 | 220"
        "\n\nOthers\n\nOar | 5"
    )
    assert read_texts(markup)[3:] == [
        "Item: Boat; Cost 2020: 100; Cost 2021: 110",
        "Item: Boat; Cost 2020: 200; Cost 2021: 220",
        "Others",
        "Item: Oar; Cost 2021: 5",
    ]


def test_names_beside_values_are_fields_and_tables_of_one_column_are_blocks():
    assert blocks_of("<table><tr><th>Born<td>1815<tr><th>Died:<td>1852</table>") == [
        ("field", "Born: 1815"),
        ("field", "Died: 1852"),
    ]
    assert blocks_of("<table><tr><td><h1>Top</h1><p>One.</p><ul><li>Two</ul></table>") == [
        ("heading", "Top"),
        ("prose", "One."),
        ("item", "Two"),
    ]
    cell = "<table><tr><td>a<td><ol><li>b<li>c</ol></table>"
    assert text_of(cell) == "a | 1. b; 2. c"


def test_empty_lines_part_paragraphs():
    assert blocks_of("<div>One<br>two.<br><br>Three.</div>") == [
        ("prose", "One\ntwo."),
        ("prose", "Three."),
    ]
    cells = "<td>Who:<td>Ada</td><tr><td></td><td>x<br><br>y</td>"
    assert text_of(f"<table><tr>{cells}</table>") == "Who: Ada\n\nx; y"


def test_lists_have_their_numbers_and_depths():
    markup = "<ol start=3><li>A<ul><li>B</ul><li value=7>C</ol><ol type=a><li>D<li>E</ol>"
    assert text_of(markup) == "3. A\n  - B\n7. C\na. D\nb. E"


def test_definitions_are_fields_and_questions_are_not():
    markup = "<dl><dt>Draught<dd>5 m<dd>6 m laden<dt>Who built it?<dd>Colin.</dl>"
    assert blocks_of(markup) == [
        ("field", "Draught: 5 m"),
        ("field", "Draught: 6 m laden"),
        ("display", "Who built it?"),
        ("prose", "Colin."),
    ]


def test_pictures_and_other_media_are_marked():
    markup = (
        "<figure><img src=x alt='Portrait of Gro Dahl'><figcaption>Gro in 1999</figure>"
        "<p>Press <img src=y alt='the bell'> now.</p><img src=z><img src=d alt=''>"
        "<iframe title='Map'></iframe><svg><title>Plan</title><text>North</text></svg><svg></svg>"
    )
    assert blocks_of(markup) == [
        ("mark", "[image: Portrait of Gro Dahl]"),
        ("display", "Gro in 1999"),
        ("prose", "Press [image: the bell] now."),
        ("mark", "[image]"),
        ("mark", "[frame: Map]"),
        ("mark", "[drawing: Plan North]"),
    ]
    assert losses_of(markup) == {"image": 3, "frame": 1, "drawing": 1}


def test_notes_stand_apart():
    markup = (
        "<p>It sank.<sup><a href='#fn1'>1</a></sup> It rose."
        "<a role=doc-noteref href='#fn2'>2</a></p>"
        "<ol><li id=fn1>By accident. <a href='#r'>↩</a></ol><aside id=fn2>On purpose.</aside>"
        "<aside role=doc-footnote>Third.</aside><p>End.</p>"
    )
    assert blocks_of(markup) == [
        ("prose", "It sank.[1] It rose.[2]"),
        ("note", "By accident."),
        ("note", "On purpose."),
        ("note", "Third."),
        ("prose", "End."),
    ]


MENU = "".join(f"<li><a href='/{name}'>{name}</a>" for name in ("Home", "News", "Shop", "About"))


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        (f"<nav><ul>{MENU}</ul></nav>", "menu"),
        (f"<div class=main-menu>{MENU}</div>", "menu"),
        (f"<div><ul>{MENU}</ul></div>", "menu"),
        ("<div role=navigation>Go on</div>", "menu"),
        ("<div id=cookie-banner><p>We use cookies.</p><p>Accept</p></div>", "cookie notice"),
        ("<footer>All rights</footer>", "page footer"),
        ("<div role=contentinfo>Imprint</div>", "page footer"),
        ("<div role=doc-toc><p>One</p></div>", "table of contents"),
    ],
)
def test_what_belongs_to_the_site_is_left_out_and_counted(extra: str, kind: str):
    text = "The fram was built by Colin Archer in 1892. " * 3
    markup = f"<body>{extra}<h1>Fram</h1><p>{text}</p></body>"
    assert text_of(markup) == f"# Fram\n\n{text.strip()}"
    assert losses_of(markup) == {kind: 1}


@pytest.mark.parametrize(
    "markup",
    [
        f"<h1>Links</h1><p>See these:</p><ul>{MENU}</ul>",
        f"<ul>{MENU}</ul>",
        f"<nav><ul>{MENU}</ul></nav>",
        f"<nav><ul>{MENU}</ul></nav><p>Links</p>",
        f"<main><h2>Where</h2><ul>{MENU}</ul></main>",
        "<article><header>By Ida</header><p>One.</p><footer>Filed in Oslo.</footer></article>",
        "<blockquote><p>Yes.</p><footer>Ida Roe</footer></blockquote>",
        "<div class=cookie-recipes><p>Bake for ten minutes.</p></div>",
        "<div class=menu><p>Soup costs 5 euros.</p><p>Fish costs 9 euros.</p></div>",
    ],
)
def test_a_page_of_content_alone_loses_nothing(markup: str):
    report = load(markup.encode(), "a.html").report
    assert report is not None
    assert report.is_whole
    (characters,) = report.units
    assert characters.in_file == characters.in_text > 0


def test_mutated_pages_are_read_or_refused():
    whole = (
        "<table><tr><th rowspan=2>a<td colspan=3>b<tr><td>c</table><p>d<sup><a href='#n'>1</a>"
        "</sup><del>e</del><dl><dt>f<dd>g</dl><ol start=2><li id=n>h</ol><math><mi>x</mi></math>"
    )
    chance = random.Random(3)
    for _ in range(80):
        at = chance.randrange(len(whole))
        piece = chance.choice(["", "<table>", "</td>", "<sup>", "</del>", "<dd>", "rowspan=99999 "])
        with suppress(IngestError):
            load((whole[:at] + piece + whole[at + chance.randrange(9) :]).encode(), "mutant.html")


@pytest.mark.parametrize(
    "markup",
    [
        "<tr>" + "<td rowspan=60000 colspan=1000>x" * 300 + "<tr><td>y" * 5000,
        "<div class=cookie-banner>" * 1000 + "<p>text</p>" * 5000,
        "<p>" + "<del>x</del>y" * 20_000,
        "<p>" + "<sup>" * 900 + "x",
    ],
)
def test_pages_made_to_cost_time_are_read_soon(markup: str):
    started = time.process_time()
    text_of(f"<table>{markup}" if markup.startswith("<tr>") else markup)
    assert time.process_time() - started < 10


def test_a_heading_that_is_a_button_opens_its_section():
    page = """<main><h1>Speakers</h1><p>Three people speak at the meeting of this year.</p>
    <ul><li><h4><button aria-expanded="false"><span>Ann Reed (Botany)</span></button></h4>
    <div><p>She measures reeds.</p></div></li></ul>
    <h3>Rushes <button>Copy the link</button></h3><p>They grow.</p></main>"""
    assert text_of(page) == (
        "# Speakers\n\nThree people speak at the meeting of this year.\n\n#### Ann Reed (Botany)"
        "\n\nShe measures reeds.\n\n### Rushes\n\nThey grow."
    )
