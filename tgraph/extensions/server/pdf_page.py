"""PDF page images, and positions of cited characters on them.

PDFium draws in a separate process with limits, because a file may be made to harm its renderer.
A box is given only for characters that spell the quote: a wrong box is worse than none."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from tgraph.errors import EvidenceError
from tgraph.ingest.pdf_annotations import open_page
from tgraph.ingest.pdf_fragments import level_text
from tgraph.isolation import forbid_sockets, forbid_writing, limit_memory, limit_time, start_process
from tgraph.model import TextLine

WIDTH = 1000
"""Pixels of an image from left to right."""
_MOST_PIXELS = 4_000_000
_SECONDS = 20.0
_MEMORY = 2 << 30
_MOST_CUTS = 20
"""Lines by which a quote is shortened where its end isn't on the page."""
_FINE = 100_000
"""The steps in which places are told."""
_HIDDEN = re.compile("[-\u2010\\s\x00-\x20\x7f\xad\u200b-\u200f\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class PageBox:
    """A box around a line of cited characters: sides as fractions of the page, from the top
    left corner."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Line boxes of a page quote; ``width`` and ``height`` give the page's aspect ratio.

    Boxes are empty if the characters were not found with certainty."""

    width: int
    height: int
    boxes: tuple[PageBox, ...]


def page_image(data: bytes, page: int) -> bytes:
    """Return a PDF page (counted from 1) as PNG. Raise ``EvidenceError`` if drawing fails."""
    return _ask_process({"page": page, "draw": True}, data)


def page_boxes(
    data: bytes, page: int, text: str, start: int, end: int, lines: Sequence[TextLine] = ()
) -> PageBoxes:
    """Return page boxes of characters from ``start`` to ``end`` in the page's stored text.

    ``lines`` has the places of recognised text, which the PDF itself doesn't have."""
    order = {"page": page, "draw": False, "text": text, "start": start, "end": end}
    order["lines"] = [astuple(line) for line in lines if line.start < end and start < line.end]
    reply = json.loads(_ask_process(order, data))
    boxes = tuple(PageBox(*sides) for sides in reply["boxes"])
    return PageBoxes(reply["width"], reply["height"], boxes)


def _ask_process(order: dict[str, Any], data: bytes) -> bytes:
    process = start_process(__name__, stderr=subprocess.DEVNULL)
    try:
        output, _ = process.communicate(json.dumps(order).encode() + b"\n" + data, _SECONDS * 2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        output = b""
    if process.returncode or not output:
        raise EvidenceError("The page can't be drawn.", "Its text is what citations count in.")
    return output


# --- in the process ---


def main() -> None:
    """Process the request on standard input and write its result to standard output."""
    order = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    import pypdfium2

    limit_memory(_MEMORY)
    limit_time(_SECONDS)
    forbid_sockets()
    forbid_writing()
    document, index = pypdfium2.PdfDocument(data), order["page"] - 1
    if order["draw"]:
        output = _draw_page(document[index])
    else:
        output = _locate_quote(open_page(document, index), order)
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def _draw_page(page: Any) -> bytes:
    width, height = page.get_size()
    scale = min(WIDTH / max(width, 1), (_MOST_PIXELS / max(width * height, 1)) ** 0.5)
    image = page.render(scale=scale, rev_byteorder=True, no_smoothtext=False)
    pixels = image.to_numpy()[:, :, :3]
    return encode_png(pixels.shape[1], pixels.shape[0], (row.tobytes() for row in pixels))


def encode_png(width: int, height: int, rows: Iterable[bytes]) -> bytes:
    """Rows of RGB as PNG (W3C, third edition, 5 and 9: no filter)."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    start_of = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start_of + chunk(b"IDAT", content) + chunk(b"IEND", b"")


def _locate_quote(page: Any, order: dict[str, Any]) -> bytes:
    width, height = page.get_size()
    textpage = page.get_textpage()
    place = order["text"], order["start"], order["end"]
    boxes = [_cut_line(TextLine(*line), *place[1:]) for line in order["lines"]]
    if not boxes:
        drawn = dict(_visible_characters(textpage))
        matches = match_characters(drawn.items(), *place) or _match_in_reading_order(
            page, drawn, *place
        )
        boxes = [_place_box(page, textpage.get_charbox(index, loose=True)) for index in matches]
    lines = [[round(side, 5) for side in line] for line in lines_of_boxes(boxes)]
    result = {"width": round(width * 10), "height": round(height * 10), "boxes": lines}
    return json.dumps(result).encode()


def _cut_line(line: TextLine, start: int, end: int) -> tuple[float, ...]:
    """Return the box of the part of a recognised line from ``start`` to ``end`` of the page."""
    wide = (line.right - line.left) / max(line.end - line.start, 1)
    left = line.left + wide * max(start - line.start, 0)
    right = line.right - wide * max(line.end - end, 0)
    return left, line.top, right, line.bottom


def _match_in_reading_order(
    page: Any, drawn: dict[int, str], text: str, start: int, end: int
) -> Sequence[int]:
    """Return numbers of characters that spell the quote, or each cell of a row, or the beginning
    of a quote that ends on the next page, in the order in which the page is read."""
    from tgraph.ingest.pdf_fragments import read_content
    from tgraph.ingest.pdf_layout import arrange_page, reading_order

    order = reading_order(arrange_page(read_content(page)))
    characters = [(index, drawn[index]) for index in order if index in drawn]
    cells = [
        (start + match.start(), start + match.end())
        for match in re.finditer(r"(?:(?! \| )[^\n])+", text[start:end])
    ]
    spans = [[(start, end)], [(start, line) for _, line in cells[-2::-1]][:_MOST_CUTS], cells]
    for span in spans[0] + spans[1] * (" | " not in text[start:end]):
        if matches := match_characters(characters, text, *span):
            return matches
    return [index for cell in cells for index in match_characters(characters, text, *cell)]


def _visible_characters(textpage: Any) -> Iterator[tuple[int, str]]:
    """Yield visible page characters with their numbers."""
    import pypdfium2.raw as raw

    for index in range(textpage.count_chars()):
        code = raw.FPDFText_GetUnicode(textpage, index)
        if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            continue
        if not _HIDDEN.match(chr(code)) and (character := level_text(chr(code))):
            yield index, character


def match_characters(
    characters: Iterable[tuple[int, str]], text: str, start_at: int, end: int
) -> Sequence[int]:
    """Return numbers of characters that spell the quote, if its position among identical
    spellings agrees on page and in text; empty without certainty."""
    numbered_characters = list(characters)
    drawn = "".join(character for _, character in numbered_characters)
    quote_text = _remove_hidden(text[start_at:end])
    if not quote_text:
        return ()
    before, spelt = len(_remove_hidden(text[:start_at])), _remove_hidden(text)
    places, listed = _places(drawn, quote_text), _places(spelt, quote_text)
    if len(places) != len(listed) or before not in listed:
        return ()
    first = places[listed.index(before)]
    return [index for index, _ in numbered_characters[first : first + len(quote_text)]]


def _remove_hidden(text: str) -> str:
    visible = level_text(_HIDDEN.sub("", text))
    return "".join(character for character in visible if ord(character) < 0x10000)


def _places(text: str, wanted: str) -> list[int]:
    places, at = [], text.find(wanted)
    while at >= 0:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places


def _place_box(page: Any, box: tuple[float, float, float, float]) -> tuple[float, ...]:
    """Return sides of a character box as fractions of the displayed page (crop box, rotation)."""
    from ctypes import byref, c_int

    import pypdfium2.raw as raw

    left, bottom, right, top = box
    xs, ys = [], []
    for across, up in ((left, top), (right, bottom)):
        x, y = c_int(), c_int()
        raw.FPDF_PageToDevice(page, 0, 0, _FINE, _FINE, 0, across, up, byref(x), byref(y))
        xs.append(x.value / _FINE)
        ys.append(y.value / _FINE)
    return min(xs), min(ys), max(xs), max(ys)


def lines_of_boxes(boxes: Iterable[Sequence[float]]) -> list[list[float]]:
    """Return line boxes, merged from consecutive character boxes."""
    lines: list[list[float]] = []
    for left_side, top, right, bottom in boxes:
        if lines:
            last = lines[-1]
            overlap = min(bottom, last[3]) - max(top, last[1])
            if (
                overlap > 0.5 * min(bottom - top, last[3] - last[1])
                and left_side >= last[0] - 0.001
            ):
                last[1], last[2] = min(top, last[1]), max(right, last[2])
                last[3] = max(bottom, last[3])
                continue
        lines.append([left_side, top, right, bottom])
    return lines
