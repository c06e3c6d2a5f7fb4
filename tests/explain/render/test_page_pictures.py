"""Boxes of quotes on PDF pages, and pictures of pieces of a graph."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.errors import EvidenceError
from tgraph.extensions.server.node_link import MOST, NodeLinkGraph, node_link_svg
from tgraph.extensions.server.pdf_page import (
    encode_png,
    lines_of_boxes,
    match_characters,
    page_boxes,
    page_image,
)

WORDS = [("Shackleton", 72, 700), ("sailed", 300, 700), ("south", 72, 650), ("again", 300, 400)]


def pdf(rotate: int = 0, crop: str = "") -> bytes:
    """A page of words at known places (PDF 1.7, 7.5), in Helvetica at 12 points."""
    shown = "".join(f"BT /F 12 Tf {x} {y} Td ({word}) Tj ET\n" for word, x, y in WORDS)
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]{crop}/Rotate {rotate}"
        "/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        f"<</Length {len(shown)}>>stream\n{shown}endstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = "%PDF-1.7\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj{each}endobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    return (out + f"trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF").encode()


TEXT = "Shackleton sailed\nsouth\nagain"


@pytest.mark.parametrize("word", [word for word, _, _ in WORDS])
def test_a_box_is_where_the_word_is(word: str) -> None:
    start = TEXT.index(word)
    found = page_boxes(pdf(), 1, TEXT, start, start + len(word))
    (box,) = found.boxes
    _, x, y = next(each for each in WORDS if each[0] == word)
    assert (found.width, found.height) == (6000, 8000)
    assert box.left * 600 == pytest.approx(x, abs=1.5)
    assert box.top < 1 - (y + 4) / 800 < box.bottom


def test_a_box_is_where_the_word_is_shown() -> None:
    turned = page_boxes(pdf(rotate=90), 1, TEXT, 0, 10)
    assert (turned.width, turned.height) == (8000, 6000)
    assert turned.boxes[0].left < 704 / 800 < turned.boxes[0].right
    assert turned.boxes[0].top * 600 == pytest.approx(72, abs=2)
    cut = page_boxes(pdf(crop="/CropBox[50 300 550 750]"), 1, TEXT, 0, 10)
    assert cut.boxes[0].left * 500 == pytest.approx(22, abs=1.5)


def test_a_quote_that_is_not_there_has_no_box() -> None:
    assert page_boxes(pdf(), 1, "something else", 0, 9).boxes == ()


def test_a_page_that_can_not_be_drawn() -> None:
    for data in (b"", b"%PDF-1.7 broken", pdf()[:200]):
        with pytest.raises(EvidenceError):
            page_image(data, 1)
    with pytest.raises(EvidenceError):
        page_image(pdf(), 2)


def test_an_image_has_the_size_of_its_page() -> None:
    image = page_image(pdf(), 1)
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(image[16:20]) == 1000
    assert int.from_bytes(image[20:24]) in (1333, 1334)
    assert encode_png(1, 1, [b"\0\0\0"])[-8:-4] == b"IEND"


@given(st.text("ab \n\u00ad", max_size=40), st.data())
def test_characters_are_those_that_spell_the_quote(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    seen = [(n, c) for n, c in enumerate(text) if c in "ab"]
    found = match_characters(seen, text, start, end)
    assert list(found) == [n for n, _ in seen if start <= n < end]


def test_characters_of_a_line_share_a_box() -> None:
    line = [(0.1, 0.1, 0.2, 0.15), (0.2, 0.11, 0.3, 0.15), (0.1, 0.2, 0.2, 0.25)]
    assert lines_of_boxes(line) == [[0.1, 0.1, 0.3, 0.15], [0.1, 0.2, 0.2, 0.25]]


# --- graphs ---

LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 12), LABELS, st.integers(0, 12)), max_size=25))
def test_no_two_things_lie_on_one_another(ties: list[tuple[int, str, int]]) -> None:
    graph = NodeLinkGraph()
    for source, label, target in ties:
        ends = [(f"urn:x:{n}", f"{label} {n}") for n in (source, target)]
        graph.tie(ends[0], ends[1], label)
    drawn = node_link_svg(graph, lambda iri: f"/at?iri={iri}", "A picture")
    assert drawn == node_link_svg(graph, lambda iri: f"/at?iri={iri}", "A picture")
    if not ties:
        assert drawn == ""
        return
    svg = ET.fromstring(drawn)
    space = {"s": "http://www.w3.org/2000/svg"}
    rects = [[float(r.get(k, 0)) for k in ("x", "y", "width", "height")]
             for r in svg.findall(".//s:a/s:rect", space)]  # fmt: skip
    assert len(rects) == len(graph.labels)
    left, top, width, height = map(float, svg.get("viewBox", "").split())
    for path in svg.findall("s:path[@class='link']", space):
        numbers = [float(each) for each in re.findall(r"-?\d+", path.get("d", ""))]
        for x, y in zip(numbers[:2:2] + numbers[4::2], numbers[1:2] + numbers[5::2], strict=True):
            assert left <= x <= left + width
            assert top <= y <= top + height
    for text in svg.findall("s:text", space):
        assert left < float(text.get("x", 0)) < left + width
        assert top < float(text.get("y", 0)) < top + height
    for n, (x, y, w, h) in enumerate(rects):
        assert left <= x
        assert top <= y
        assert x + w <= left + width
        assert y + h <= top + height
        for x2, y2, w2, h2 in rects[n + 1 :]:
            assert x + w <= x2 + 1 or x2 + w2 <= x + 1 or y + h <= y2 + 1 or y2 + h2 <= y + 1


def test_what_has_no_room_is_counted() -> None:
    graph = NodeLinkGraph()
    for n in range(MOST + 5):
        graph.tie(("urn:x:a", "a"), (f"urn:x:{n}", str(n)), "is")
    assert (len(graph.links), graph.left_out) == (MOST, 5)
