"""Segments: what may be quoted of a page, exactly where it stands, and under what."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.ingest.segments import Segment, segments, sentences_of

MARKDOWN = "text/markdown"


def read(text: str, media_type: str = MARKDOWN) -> list[tuple[str, str]]:
    return [(s.kind, s.text) for s in checked(text, media_type)]


def checked(text: str, media_type: str = MARKDOWN) -> tuple[Segment, ...]:
    """The segments, after what holds for every page has been held against them."""
    found = segments(text, media_type)
    for segment in found:
        assert segment.text.strip()
        assert len(segment.text) == len(segment.offsets)
        assert 0 <= segment.start <= segment.offsets[0]
        assert segment.offsets[-1] < segment.end <= len(text)
        assert all(a <= b for a, b in pairwise(segment.offsets))
        if segment.kind not in ("row", "display"):
            for character, place in zip(segment.text, segment.offsets, strict=True):
                same = character == text[place]
                assert same or character in " \n\ufffd" or text[place] in "&\t", (segment, place)
        for start, end in sentences_of(segment):
            assert segment.text[start:end].strip()
            first, last = segment.locate(start, end)
            assert segment.start <= first < last <= segment.end
    assert all(a.end <= b.start for a, b in pairwise(found))
    return found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A [link](https://x.y/z 'T') and *more*.", "A link and more."),
        ("See ![the *ship*](a.png) at sea.", "See the ship at sea."),
        ("An ***odd*** **b*c*d** snake_case `co de`.", "An odd bcd snake_case co de."),
        ("`` a ` b `` and ` c `", "a ` b and c"),
        ("a\\*b &amp; c&nbsp;d \\d", "a*b & c d \\d"),
        ("[Label][1] and [two].\n\n[1]: http://x\n[two]: <y z> 'Title'", "Label and two."),
        ("See <https://x.y/%20z> or <a@b.cd>.", "See https://x.y/%20z or a@b.cd."),
        ("It was <b>bold</b><!-- no --> <br/>here.", "It was bold here."),
        ("Paris[^1] is big.[27][28] Yes. [edit]", "Paris is big. Yes."),
        ("It is ~~gone~~ here ~~~three", "It is here ~~~three"),
        ("Keep <del>five</del> ten <S>x</S>years", "Keep ten years"),
        (":::danger\nHot.\n:::", "Hot."),
        ("two  \nlines\\\nhere", "two lines here"),
        ("> quoted\n> text *over\n> lines*", "quoted text over lines"),
        ("Use {{< version >}} of {% raw %} it {#id}", "Use of it"),
        ("{ a: b } and {c}", "{ a: b } and {c}"),
        (
            'He left.[1](#n1)She "came."[[2]](#n2) I,[3](#n3) too.[4](#n4)',
            'He left. She "came." I, too.',
        ),
        ("A Boeing [747](/b) and CO[2](/c), see [1](/n).", "A Boeing 747 and CO2, see 1."),
    ],
)
def test_markup_is_not_read(text: str, shown: str):
    assert read(text) == [("prose", shown)]


def test_front_matter_is_no_text():
    text = "---\ntitle: T\ntags: [a]\n---\n\n# Head\n\nText.\n"
    assert read(text) == [("heading", "Head"), ("prose", "Text.")]
    assert read("+++\ntitle = 'T'\n+++\nText.") == [("prose", "Text.")]
    assert read("---\n\nText.\n\n---\n\nMore.") == [("prose", "Text."), ("prose", "More.")]


def test_a_table_is_rows_with_their_columns():
    text = "T:\n\n| Key | *Value* |\n|---|:--:|\n| [a](b) | `x\\|y` |\n|  | z |\n"
    assert read(text) == [
        ("prose", "T:"),
        ("display", "Key; Value"),
        ("row", "Key: a; Value: x|y"),
        ("row", "Value: z"),
    ]
    row = segments(text, MARKDOWN)[2]
    assert text[row.start : row.end] == "| [a](b) | `x\\|y` |"
    assert text[slice(*row.locate(row.text.index("x|y"), len(row.text)))] == "`x\\|y`"
    assert row.context == ("T:",)


def test_code_keeps_its_lines():
    text = "So:\n\n- item\n\n  ```sh\n  a b\n    c\n\n  d\n  ```\n\n      indented\n"
    found = checked(text)
    assert [(s.kind, s.text) for s in found] == [
        ("prose", "So:"),
        ("item", "item"),
        ("code", "a b\n  c\n\nd"),
        ("code", "indented"),
    ]
    assert found[2].context == ("So:", "item")


def test_long_code_is_quoted_in_runs_that_begin_at_the_margin():
    body = [
        line for name in "abcdefgh" for line in (f"def {name}():", "    x = 1", "", "    y = 2")
    ]
    flat = [f"key{number}: {number}" for number in range(60)]
    for lines in (body, flat):
        (code,) = checked("```\n" + "\n".join(lines) + "\n```\n")
        runs = [code.text[start:end].split("\n") for start, end in sentences_of(code)]
        assert len(runs) > 1
        assert all(len(run) <= 24 and run[0][:1].strip() for run in runs)
        assert [line for run in runs for line in run if line] == [line for line in lines if line]


def test_items_know_their_heading_list_and_parent():
    text = "# A\n\n## B\n\nIntro. These are:\n\n1. one\n   - sub\n\n   more\n2. two\n"
    found = checked(text)
    assert [(s.kind, s.text, s.context) for s in found[3:]] == [
        ("item", "one", ("A", "B", "These are:")),
        ("item", "sub", ("A", "B", "These are:", "one")),
        ("prose", "more", ("A", "B", "These are:", "one")),
        ("item", "two", ("A", "B", "These are:")),
    ]


def test_an_admonition_is_text_under_its_title():
    page = """# Clients

!!! tip "Use *one* client"
    It keeps connections.

    - Close it.

    ```
    client.close()
    ```

??? note
\tOpen more where you must.

Then go on.
"""
    assert [(s.kind, s.text, s.lead) for s in checked(page)[1:]] == [
        ("display", "Use one client", ()),
        ("prose", "It keeps connections.", ()),
        ("item", "Close it.", ("It keeps connections.",)),
        ("code", "client.close()", ()),
        ("display", "Note", ()),
        ("prose", "Open more where you must.", ()),
        ("prose", "Then go on.", ()),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_are_as_they_are_stored(end: str):
    text = end.join(["# 𝔗wo", "", "It *is", "so*.", "", "| a | b |", "|---|---|", "| c | d |"])
    assert read(text) == [
        ("heading", "𝔗wo"),
        ("prose", "It is so."),
        ("display", "a; b"),
        ("row", "a: c; b: d"),
    ]


WORDS = st.text("abc é𝔗*_`[]()!<>&;\\|~#-+=:.^{}\"' \t\n\r123", max_size=60)


@given(st.lists(WORDS, max_size=8).map("\n".join))
def test_any_markdown_gives_exact_segments(text: str):
    checked(text)


LINES = st.sampled_from(
    [
        '!!! tip "A *b* `c`"',
        "!!! note",
        '??? x y "',
        "!!!",
        "    text",
        "\ttext",
        "  - item",
        "> !!! tip",
        "    ```",
        "```",
        "    !!! tip",
        "| a |",
        "|---|",
        "    | b |",
        "",
        "# H",
        "    # H",
        "text",
    ]
)


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_any_admonition_gives_exact_segments(text: str):
    checked(text)


@given(st.lists(WORDS, max_size=8).map("\n".join))
def test_any_text_gives_exact_segments(text: str):
    checked(text, "text/plain")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("`", "```\n", "> ", "- ", "# x\n", "[a]: (\n", "*a ", "![[](", "a\n", "<!--\n", "[a"),
        *(
            "a <!--",
            "{{",
            "{%",
            "[^a]",
            "[1",
            "| a ",
            "|a|\n|-|\n",
            "~~a",
            "<a ",
            "&",
            "<p>",
            "**a*",
        ),
        *("[a](b) ", "![a](b) ", "a: b; ", "- a\n  - b\n", "\\", "^[", "1. a\n\n"),
    ],
)
@pytest.mark.parametrize("media_type", [MARKDOWN, "text/plain"])
def test_segmenting_takes_linear_time(piece: str, media_type: str):
    def seconds(length: int) -> float:
        """The least of three runs, which other processes disturb least."""
        found = []
        for _ in range(3):
            started = time.process_time()
            segments(piece * (length // len(piece)), media_type)
            found.append(time.process_time() - started)
        return min(found)

    assert seconds(20_000) < 10 * max(seconds(5_000), 0.02)


def test_html_in_markdown_is_read():
    text = (
        "<h1 align='center'>A <b>ship</b></h1>\n\n<p>It&nbsp;was<br>big.</p>\n<script>\nno\n"
        "</script>\n\n<table><tr><th>Name</th><th>Year</th></tr>\n<tr><td><a href='x'>Fram</a></td>"
        "<td>1892</td></tr>\n</table>\n\n<details>\n<summary>More</summary>\n\nHidden *text*.\n\n"
        "</details>\n"
    )
    found = checked(text)
    assert [(s.kind, s.text) for s in found] == [
        ("heading", "A ship"),
        ("prose", "It was big."),
        ("display", "Name; Year"),
        ("row", "Name: Fram; Year: 1892"),
        ("display", "More"),
        ("prose", "Hidden text."),
    ]
    assert found[1].headings == ("A ship",)
    assert found[3].pairs == (((0, 4), (6, 10)), ((12, 16), (18, 22)))


def kinds(text: str, media_type: str = MARKDOWN) -> list[str]:
    return [segment.kind for segment in checked(text, media_type)]


BIBLIOGRAPHY = (
    "1. Baker, A. M. (1987). *On the growth of reeds*. Northern Press, pp. 12–40.",
    '2. C. Dole and E. Finch, "Rivers and their banks in winter", J. Waters 12(3): 44–51, 1999.',
    "3. Gray, H. (2003). [Ponds](http://a.b). Retrieved 2004.",
)


def test_bibliographies_are_known_by_their_form():
    entries = "\n".join(BIBLIOGRAPHY)
    assert kinds(f"# Reeds\n\nReeds grow.\n\n{entries}\n")[2:] == ["reference"] * 3
    assert kinds(f"# References\n\n{entries}\n\nSee also a note.\n")[1:] == ["reference"] * 3 + [
        "prose"
    ]
    prose = "In 1912, the ship, led by F. Wild, left (it was late). She came back in 1914."
    assert kinds(f"# Past\n\n{prose}\n\n{prose}\n\n{prose}\n")[1:] == ["prose"] * 3


def test_menus_and_contents_are_navigation_unless_a_sentence_leads_them_in():
    links = "- [One](#1)\n- [Two](#2)\n  - [Deep](#3)\n"
    assert kinds(f"# Contents\n\n{links}") == ["heading", *["navigation"] * 3]
    assert kinds(f"Text.\n\n<!-- toc -->\n\n{links}") == ["prose", *["navigation"] * 3]
    assert kinds(f"The system is made of these parts:\n\n{links}") == ["prose", *["item"] * 3]
    assert kinds(f"It now has:\n\n{links}") == ["prose", *["item"] * 3]
    assert kinds(f"In this section:\n\n{links}") == ["prose", *["navigation"] * 3]
    assert kinds("- [One](#1) is first\n- [Two](#2)\n") == ["item", "item"]
    contents = "1. Of ships ........ 12\n\nIntroduction . . . . . . xi\n\nThey sailed.\n"
    assert kinds(contents, "text/plain") == ["navigation", "navigation", "prose"]


def test_licences_are_known_by_their_form():
    notice = "Copyright (c) 2024 A. Writer. All rights reserved."
    grant = (
        "Permission is hereby granted, free of charge, to any person obtaining a copy of this "
        "software, subject to the following conditions:"
    )
    assert kinds(f"{notice}\n\n{grant}\n\nThe ship sailed.") == ["licence", "licence", "prose"]
    between = "1.B. You may give it away."
    whole = [notice, grant, between, notice]
    assert kinds("\n\n".join(whole)) == ["licence"] * 4
    assert kinds("The code is MIT licensed, the pictures belong to nobody.") == ["prose"]


def test_a_public_licence_is_known_as_far_as_its_name_goes():
    clause = "The fee is owed to the owner of the mark, who gives it away."
    own = [
        "You may copy it under the terms of the Project Gutenberg License that comes with it.",
        *["You must comply with all terms of this agreement.", *[clause] * 5] * 3,
        "Use of a Project Gutenberg™ work is without any warranty, subject to this license.",
    ]
    told = ["The ship came home.", "He agreed to the terms, and paid the damages."]
    found = kinds("\n\n".join([*told, *[told[0]] * 8, *own]))
    assert found == ["prose"] * 10 + ["licence"] * len(own)
    contract = ["Each party is liable for damages under these terms."] * 4
    assert kinds("\n\n".join(contract)) == ["prose"] * 4


def test_labels_between_links_belong_to_the_menu():
    links = "[Home](/)\n\nSections\n\n[News](/n)\n\nSubscribe\n\n[Sport](/s)\n\n"
    page = f"# The Reed\n\n{links}By Ann Reed, 9 October 2016\n\nReeds grow in water.\n"
    assert kinds(page) == ["heading", *["navigation"] * 5, "prose", "prose"]
    facts = "[Reed](/r) grows in water.\n\n[Rush](/u) grows on land.\n\n[Sedge](/e) does both.\n"
    assert kinds(f"# Plants\n\n{facts}") == ["heading", *["prose"] * 3]


def test_lists_that_are_indented_too_far_are_menus_and_prose_is_no_code():
    menu = "        *   [Partners](/partners)\n        *   [Impact](/impact)\n"
    prose = (
        "      The checksum is the sum of all bytes.  Both sums are done\n"
        "      modulo a prime, which is important to avoid errors.\n"
    )
    code = "    for each in sums:\n        total = total + each  # of all bytes, modulo a prime.\n"
    page = f"# Sums\n\nText.\n\n{menu}\nMore text.\n\n{prose}\nCode.\n\n{code}"
    assert kinds(page) == ["heading", "prose", "navigation", "prose", "prose", "prose", "code"]
    assert read(page)[4] == (
        "prose",
        "The checksum is the sum of all bytes. Both sums are done modulo a prime, which is"
        " important to avoid errors.",
    )


def test_notices_to_the_reader_of_a_web_page_are_navigation():
    body = "Reeds grow in water. " * 20
    notice = "We use cookies to improve our site. Manage your cookie settings."
    assert kinds(f"# Reeds\n\n{notice}\n\n{body}\n") == ["heading", "navigation", "prose"]
    about = "A browser keeps cookies. Sites use cookies to know who comes again."
    assert kinds(f"# Cookies\n\n{about}\n") == ["heading", "prose"]


def test_a_bibliography_in_one_paragraph_is_parted_from_the_text():
    entries = "".join(
        f"[{n}] A. Reed and B. Rush, Water plants, J. Bot. {n} (199{n}), 1{n}–2{n}. "
        for n in range(1, 6)
    )
    page = checked(f"# Plants\n\nReeds grow. We thank all of them. {entries}\n")
    assert [s.kind for s in page] == ["heading", "prose", "reference"]
    assert page[1].text == "Reeds grow. We thank all of them."


def test_entries_over_several_lines_are_references_and_dated_events_are_not():
    entries = "\n\n".join(
        f"{n}. A. B. Reed, Efficient counting of plants, Botany and\n\nBooks, New York, 19{n}."
        for n in range(80, 86)
    )
    text = "Reeds are counted by hand. They grow in water.\n\n" * 12
    assert set(kinds(f"# Plants\n\n{text}{entries}\n")[13:]) == {"reference"}
    events = "\n\n".join(
        f"June {n}. The council of the town agreed on a treaty. (Simonds, p. 69{n}. Cf. May 3.)"
        for n in range(1, 9)
    )
    assert set(kinds(f"# Events of 1939\n\n{events}\n")) == {"heading", "prose"}


def test_marks_of_scraped_pages_are_not_read():
    page = "# Search\n\nChoose [Titles](javascript:void(0);) where ![Image 12: {r}](/r.png) is.\n"
    assert read(page)[1] == ("prose", "Choose Titles where {r} is.")


def test_paragraphs_that_a_converter_broke_at_its_lines_are_whole():
    page = (
        "# Plants\n\nIt is not possible to count the reeds of the whole river inde-\n\npendently by"
        " the banks, but a\n\n[survey](/s) of them takes an hour.\n\nNo sedge grows there.\n"
    )
    assert read(page)[1:] == [
        (
            "prose",
            "It is not possible to count the reeds of the whole river independently by the banks,"
            " but a survey of them takes an hour.",
        ),
        ("prose", "No sedge grows there."),
    ]
    checked(page)
    lines = "\n\n".join(
        f"The {n}. reed of the river was counted again by the\n\ncouncil, and was measured by the"
        f" members of the\n\nReed Club in {1900 + n}."
        for n in range(1, 10)
    )
    whole = [text for _, text in read(lines, "text/plain")]
    assert len(whole) == 9
    assert whole[2].endswith("by the members of the Reed Club in 1903.")


def test_a_paragraph_goes_on_after_the_number_of_a_page():
    page = (
        "# Plants\n\nIn 1901 the council had the reeds of the river counted by\n\n--69--\n\n"
        "members of the Reed Club. They were many, and were counted in the\n\n--70--\n\n"
        "Summer of the year.\n\n--71--\n\nNo sedge grows there.\n"
    )
    assert [text for _, text in read(page)[1:]] == [
        "In 1901 the council had the reeds of the river counted by members of the Reed Club. They"
        " were many, and were counted in the Summer of the year.",
        "--71--",
        "No sedge grows there.",
    ]
    rows = "# Plants\n\nThe reeds of the river, counted by years:\n\n1901\n\n1902\n\nin thousands\n"
    assert len(read(rows)) == 5


def test_a_line_of_links_is_no_line_of_a_paragraph():
    lines = "".join(
        f"The {n}. reed of the river was counted again by the\n\ncouncil in {1900 + n}.\n\n"
        for n in range(1, 10)
    )
    byline = "Posted in [reeds](/r), [rivers](/v) | Tags: [counting of plants](/c), [banks](/b)"
    page = read(f"# Plants\n\n{byline}\n\nIn the last weeks reeds grew.\n\n{lines}")
    assert page[1][0] == "navigation"
    assert page[2] == ("prose", "In the last weeks reeds grew.")


def test_times_of_comments_and_versions_are_navigation():
    times = ("3 October, 2008 at 12:21 am", "[v2] Wed, 24 Oct 2012 13:48:35 UTC (328 KB)")
    page = "# Reeds\n\n" + "\n\n".join(times) + "\n\nThe reeds were cut on 24 Oct 2012 at 13:48.\n"
    assert kinds(page) == ["heading", "navigation", "navigation", "prose"]
    assert kinds("# Reeds\n\n24 October 2012\n") == ["heading", "prose"]


def test_notes_under_their_heading_need_not_cite():
    notes = "\n\n".join(
        f"{n}. Ibid." if n % 2 else f"{n}. Msg, Reed to Rush, 1{n} Jul 42." for n in range(1, 13)
    )
    assert set(kinds(f"# Plants\n\nText.\n\n## Footnotes\n\n{notes}\n")[3:]) == {"reference"}
    assert "reference" not in kinds(f"# Plants\n\nText.\n\n## Orders\n\n{notes}\n")


def test_short_lines_and_whole_paragraphs_stay_apart():
    page = "# Menu\n\nreeds and rushes\n\nsedges\n\nReeds grow in water.\n\nand on land.\n"
    assert len(read(page)) == 5
    rows = "reeds.md   plants of the river and of its banks, 1901\nsedges.md   plants of the moor\n"
    assert len(read(rows, "text/plain")) == len(read(rows.replace("\n", ".\n"), "text/plain"))


def test_notes_that_are_numbered_are_references_with_what_stands_between_them():
    notes = "\n\n".join(
        (
            f"{n}. Ltr, Secy of the Council to the Reed Club, 11 Nov 41, file 4{n}."
            if n % 3 == 0
            else f"{n}. A. B. Reed, The Rush, Vol. {n} (London, 19{n}), pp. {n}-{n + 2}."
        )
        for n in range(60, 70)
    )
    text = "Reeds are counted by hand. They grow in water.\n\n" * 12
    long = "70. See " + "C. Rush, ed., The Reed (New York, 1972); " * 16 + "ibid., p. 7."
    assert set(kinds(f"# Plants\n\n{text}{notes}\n\n{long}\n")[13:]) == {"reference"}
    links = "\n\n".join(
        f"{n}. C. Rush, “Reeds of rivers,” The Botanist‚ Vol. {n} (198{n}), 1{n}–1{n + 1}.\n\n"
        f"[Google Scholar](/s?{n})"
        for n in range(1, 5)
    )
    page = f"# Plants\n\n{text}## References for § 5\n\n{links}\n"
    assert set(kinds(page)[14:]) == {"reference"}
    steps = "\n\n".join(f"{n}. Count the reeds of bank {n} by hand." for n in range(1, 9))
    assert set(kinds(f"# Counting\n\n{steps}\n")) == {"heading", "item"}
