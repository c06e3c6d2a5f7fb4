"""PDF pages, read by PDFium: text with its layout, and what isn't text.

PDFium gives the characters with their places; columns, tables and running heads are found from the
places (``pdf_layout``, ``pdf_running``), so that a file has one text, and one set of IRIs, on
every machine with the same PDFium."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from statistics import mean
from typing import Any

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable
from tgraph.ingest.blocks import LossList, PageBuilder, count_visible
from tgraph.ingest.pdf_annotations import count_unshown, open_page
from tgraph.ingest.pdf_blocks import (
    DraftBlock,
    block_text,
    body_style,
    carry_sentences,
    draft_blocks,
    indent_code,
    rank_headings,
    split_item,
)
from tgraph.ingest.pdf_drawings import take_drawings
from tgraph.ingest.pdf_fragments import CONTROLS, Box, PageContent, read_content
from tgraph.ingest.pdf_labels import holds_labels
from tgraph.ingest.pdf_layout import Line, PageImage, arrange_page
from tgraph.ingest.pdf_line_numbers import take_line_numbers
from tgraph.ingest.pdf_recognition import PACKAGE, TextRecogniser
from tgraph.ingest.pdf_running import RunningLine, take_running_lines
from tgraph.ingest.pdf_tables import OpenTable, add_table
from tgraph.model import Page, ReadingReport, TextLine, UnitCount
from tgraph.rendering import collapse_whitespace

# PDFium is not thread-safe.
_lock = threading.Lock()
_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?")
_NO_TITLE = re.compile(
    r"(?i)untitled|microsoft word|powerpoint|^slide \d|^document\d*$|[\\/]"
    r"|\.(?:docx?|odt|rtf|tex|dvi|indd|pptx?|xlsx?|html?|txt|pdf|eps|qxd)$"
)
_PLACEHOLDERS = frozenset(("(unspecified)", "(anonymous)", "anonymous", "unspecified", "unknown"))
_LITTLE_TEXT = 60
"""Characters below which a page that is nearly all image counts as scanned."""
_SMALLEST_IMAGE = 36
"""Points of an image that is more than decoration, in width and height."""
_MANY_PATHS = 30
"""Drawn lines and shapes of a page without text that may be text drawn as shapes."""
_MOST_LISTED = 20
_TOLERANCE = 0.02
_FEW = 10
"""Characters, as a share of a page's and at least, by which a page may differ from its file."""
_REMEDY = (
    "Run text recognition (OCR): pip install 'tgraph-rag[ocr]', set ingest.ocr to true, and index"
    " the file again; or run ocrmypdf on the file first."
)


def read_pdf(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read the text of each PDF page, numbered from 1, plus the file's metadata.

    Raises ``IngestError`` for a file that needs a password, is damaged or contains only
    pictures."""
    import pypdfium2

    if b"%PDF-" not in data[:1024]:
        raise IngestError(
            name, "The file is called a PDF but isn't one.", "Check where it is from."
        )
    with _lock, _open_document(data, name) as document:
        try:
            reading = _PdfReading()
            for index in range(len(document)):
                reading.read_page(document, index)
            reading.find_pages_without_text()
            if limits.recognise_text and reading.textless:
                reading.recognise_pages(document, TextRecogniser(name, limits))
            info = document.get_metadata_dict()
            pages = reading.build_pages()
        except pypdfium2.PdfiumError as error:
            raise _damage_error(name, error) from None
    if not reading.has_text:
        raise IngestError(
            name, f"The PDF holds no text on its {len(pages)} pages; it may be a scan.", _REMEDY
        )
    title = _clean_value(info.get("Title"))
    report = reading.report(pages)
    return FileContent(pages, title if _is_title(title) else "", _read_metadata(info), report)


@contextmanager
def _open_document(data: bytes, name: str) -> Iterator[Any]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "assword" not in str(error):
            raise _damage_error(name, error) from None
        raise IngestError(
            name,
            "The PDF is encrypted and can't be read without its password.",
            "Save a copy without a password, for example with `qpdf --decrypt`.",
        ) from None
    try:
        yield document
    finally:
        document.close()


def _damage_error(name: str, error: Exception) -> IngestError:
    why = f"The PDF is damaged: {error_reason(error)}."
    return IngestError(name, why, "Get or print it to PDF again.")


@dataclass(slots=True)
class _PdfReading:
    """A PDF's pages as read, and what is left out of their text."""

    contents: list[PageContent] = field(default_factory=list)
    running: list[list[RunningLine]] = field(default_factory=list)
    textless: dict[int, str] = field(default_factory=dict)
    recognised: dict[int, float] = field(default_factory=dict)
    losses: LossList = field(default_factory=LossList)
    characters: list[int] = field(default_factory=list)
    left_out: Counter[int] = field(default_factory=Counter)
    moved: dict[int, int] = field(default_factory=dict)
    labelled: list[int] = field(default_factory=list)

    @property
    def has_text(self) -> bool:
        """Whether a page has text that isn't repeated."""
        return any(page.fragments or page.turned for page in self.contents)

    def read_page(self, document: Any, index: int) -> None:
        """Add a page of PDFium's."""
        bare = document[index]
        for kind, count in count_unshown(bare).items():
            self.losses.add(kind, _UNSHOWN[kind], place=f"page {index + 1}", count=count)
        bare.close()
        page = open_page(document, index)
        textpage = page.get_textpage()
        readable = "".join(c for c in textpage.get_text_range() if c not in CONTROLS or c.isspace())
        textpage.close()
        content = read_content(page)
        dropped = content.unreadable - content.unnamed
        self.characters.append(count_visible(readable) + dropped)
        self.contents.append(content)
        page.close()

    def find_pages_without_text(self) -> None:
        """Take running lines out of all pages, and note pages that are images."""
        self.running = take_running_lines(self.contents)
        for number, content in enumerate(self.contents, 1):
            if count := take_line_numbers(content):
                self.left_out[number] += count
                why = "the numbers of lines in the margin are no part of the text"
                self.losses.add("line number", why, place=f"page {number}", count=count)
            if kind := _kind_without_text(content):
                self.textless[number] = kind

    def recognise_pages(self, document: Any, recogniser: TextRecogniser) -> None:
        """Give pages without text the text that is recognised on their images."""
        for number in list(self.textless):
            page, content = document[number - 1], self.contents[number - 1]
            fragments = recogniser.recognise(page)
            if fragments:
                self.recognised[number] = mean(fragment.confidence for fragment in fragments)
                self.textless.pop(number)
                self.left_out[number] += content.count_characters()
                content.width, content.height = page.get_size()
                content.fragments, content.turned = fragments, {}
            page.close()

    def build_pages(self) -> tuple[Page, ...]:
        """Return the pages with their blocks; note what is left out."""
        pictures = [
            [*(PageImage(*box) for box in boxes), *take_drawings(content)]
            for content, boxes in zip(self.contents, _content_images(self.contents), strict=True)
        ]
        items = [
            arrange_page(
                content, () if number in self.textless or number in self.recognised else some
            )
            for number, (content, some) in enumerate(zip(self.contents, pictures, strict=True), 1)
        ]
        self.labelled = [number for number, some in enumerate(items, 1) if holds_labels(some)]
        body = body_style(items)
        drafts = [draft_blocks(page_items, body) for page_items in items]
        rank_headings(drafts)
        self.moved = carry_sentences(drafts, body.words)
        pages = []
        before: OpenTable | None = None
        for number, blocks in enumerate(drafts, 1):
            writer = _PageWriter(self, number, body.words, before)
            pages.append(writer.write(blocks, self.running[number - 1]))
            before = writer.open_table
        return tuple(pages)

    def report(self, pages: Sequence[Page]) -> ReadingReport:
        """Return the reading report: PDFium's count of characters against those stored."""
        outside = sum(content.outside for content in self.contents)
        for number, content in enumerate(self.contents, 1):
            self.left_out[number] += content.outside + content.doubled + content.accents
        reason = "characters outside the page aren't displayed"
        self.losses.add("text outside the page", reason, count=outside)
        unreadable = sum(content.unreadable for content in self.contents)
        reason = "the font doesn't say which characters they are"
        self.losses.add("unreadable character", reason, marked=True, count=unreadable)
        stored = [_count_stored(p) for p in pages]
        for number in self.recognised:
            stored[number - 1] = 0
        count = UnitCount("characters", sum(self.characters), sum(stored), self.left_out.total())
        if differing := self._find_differing(stored):
            self.losses.warn(_difference_warning(differing))
        if self.labelled:
            self.losses.warn(_label_warning(self.labelled))
        units = [
            count,
            UnitCount("pages", len(pages), len(pages) - len(self.textless), len(self.textless)),
        ]
        if self.moved:
            moved = "sentences that go on over a page break, each on the page where it begins"
            units.append(UnitCount(moved, len(self.moved), len(self.moved)))
        if self.textless:
            self.losses.warn(_textless_warning(self.textless))
        reader = f"pypdfium2 {version('pypdfium2')}"
        if self.recognised:
            reader += f", {PACKAGE} {version(PACKAGE)}"
            self.losses.warn(_recognition_warning(self.recognised))
        return self.losses.report(reader, units)

    def _find_differing(self, stored: Sequence[int]) -> list[int]:
        """Return the numbers of pages whose stored text has another number of characters than the
        file, for no known reason."""
        differing = []
        for number, (in_file, in_text) in enumerate(zip(self.characters, stored, strict=True), 1):
            moved = self.moved.get(number, 0) - self.moved.get(number - 1, 0)
            unexplained = in_file - self.left_out[number] + moved - in_text
            if abs(unexplained) > max(_TOLERANCE * in_file, _FEW):
                differing.append(number)
        return differing


class _PageWriter:
    """Writes a page's blocks into its stored text."""

    def __init__(
        self, reading: _PdfReading, number: int, words: Set[str], before: OpenTable | None
    ) -> None:
        self._reading = reading
        self._number = number
        self._words = words
        self._builder = PageBuilder()
        self.open_table = before
        self._items: list[float] = []

    def write(self, blocks: Sequence[DraftBlock], running: Sequence[RunningLine]) -> Page:
        reading = self._reading
        self._add_running(running, at_top=True)
        if kind := reading.textless.get(self._number):
            mark = f"scanned page {self._number}" if kind == "scanned page" else kind
            self._builder.add_mark(mark)
            reading.losses.add(kind, "it holds no text", place=f"page {self._number}", marked=True)
        before, self.open_table = self.open_table, None
        for block in blocks:
            if block.table is not None:
                self.open_table, joined = add_table(self._builder, block.table, self._words, before)
                reading.left_out[self._number] += joined
            elif block.kind not in ("note", "mark"):
                self.open_table = None
            if block.table is not None or not (before and before.holds_rest(block.lines)):
                before = None
            self._add_block(block)
        self._add_running(running, at_top=False)
        page = self._builder.page(self._number)
        if self._number not in reading.recognised:
            return page
        return replace(page, lines=_locate_lines(page, blocks, reading.contents[self._number - 1]))

    def _add_block(self, block: DraftBlock) -> None:
        builder = self._builder
        if block.kind == "mark":
            builder.add_mark(block.text)
            self._reading.losses.add(block.text, place=f"page {self._number}", marked=True)
        if not block.lines:
            return
        if block.kind == "code":
            builder.add_code(indent_code(block.lines))
            return
        text, joined = block_text(block, self._words)
        self._reading.left_out[self._number] += joined
        if block.kind == "heading":
            builder.add_heading(text, block.level)
        elif block.kind == "item":
            mark, text = split_item(text)
            self._reading.left_out[self._number] += count_visible(mark)
            builder.add_item(text, self._depth(block), mark)
        else:
            builder.add_paragraph(text, block.kind)

    def _depth(self, block: DraftBlock) -> int:
        left_edge = block.lines[0].left
        while self._items and self._items[-1] >= left_edge - 4:
            self._items.pop()
        self._items.append(left_edge)
        return len(self._items) - 1

    def _add_running(self, running: Sequence[RunningLine], *, at_top: bool) -> None:
        """Add running lines whose words stand on no page before; the others are left out."""
        reading = self._reading
        for line in running:
            if line.at_top != at_top:
                continue
            if line.is_new:
                self._builder.add_paragraph(line.line.text, "display")
            else:
                reading.left_out[self._number] += count_visible(line.line.text)
                reading.losses.add("running head", _REPEATED)


_UNSHOWN = {
    "comment": "a comment is shown only to who opens it",
    "form field": "the file has no drawing of its value",
}
_REPEATED = "a head, foot or page number that is repeated on pages is no part of their text"


def _count_stored(page: Page) -> int:
    """Return how many of a page's visible characters come from the file."""
    return sum(
        sum(count_visible(page.text[cell.start : cell.end]) for cell in block.cells)
        if block.cells
        else count_visible(page.text[block.start : block.end])
        for block in page.blocks
        if block.kind != "mark"
    )


# --- images -------------------------------------------------------------------------------------


def _kind_without_text(content: PageContent) -> str:
    """Return the kind of a page that is an image or a drawing with hardly any text."""
    count = content.count_characters()
    covered = sum(_area(_clip(box, content)) for box in content.images)
    share = covered / max(content.width * content.height, 1.0)
    if (share > 0.05 and not count) or (share > 0.6 and count < _LITTLE_TEXT):
        return "scanned page"
    return "drawing" if content.paths > _MANY_PATHS and not count else ""


def _content_images(contents: Sequence[PageContent]) -> list[list[Box]]:
    """Return the boxes of images of each page that are content: neither tiny, nor the same on
    several pages, nor behind the whole page."""
    merged = [_merge_strips([_clip(box, page) for box in page.images]) for page in contents]
    places = Counter(_rounded(box) for boxes in merged for box in {*map(_rounded, boxes)})
    return [
        [
            box
            for box in boxes
            if min(box[2] - box[0], box[3] - box[1]) >= _SMALLEST_IMAGE
            and places[_rounded(box)] < 3
            and _area(box) < 0.8 * page.width * page.height
        ]
        for boxes, page in zip(merged, contents, strict=True)
    ]


def _merge_strips(boxes: Sequence[Box]) -> list[Box]:
    """Return boxes with those that continue each other downwards as one."""
    merged: list[Box] = []
    for left_edge, top, right, bottom in sorted(boxes, key=lambda box: (round(box[0]), box[1])):
        last = merged[-1] if merged else None
        if last and abs(last[0] - left_edge) < 2 and abs(last[2] - right) < 2 and top - last[3] < 2:
            merged[-1] = left_edge, last[1], right, max(bottom, last[3])
        else:
            merged.append((left_edge, top, right, bottom))
    return merged


def _clip(box: Box, page: PageContent) -> Box:
    left_edge, top, right, bottom = box
    return max(left_edge, 0.0), max(top, 0.0), min(right, page.width), min(bottom, page.height)


def _area(box: Box) -> float:
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)


def _rounded(box: Box) -> Box:
    left_edge, top, right, bottom = (float(round(side / 2)) for side in box)
    return left_edge, top, right, bottom


def _locate_lines(
    page: Page, blocks: Sequence[DraftBlock], content: PageContent
) -> tuple[TextLine, ...]:
    """Return where the lines of recognised text stand on a page's image."""
    located, at = [], 0
    for line in (line for block in blocks for line in _lines_of(block)):
        spellings = line.text, split_item(line.text)[1], line.text.rstrip("-\u00ad")
        places = [(page.text.find(text, at), len(text)) for text in spellings if text]
        start, length = next((place for place in places if place[0] >= 0), (-1, 0))
        if start < 0:
            continue
        at = start + length
        across = line.left / content.width, line.right / content.width
        down = line.top / content.height, line.bottom / content.height
        sides = across[0], down[0], across[1], down[1]
        located.append(TextLine(start, at, *sides, line.confidence))
    return tuple(located)


def _lines_of(block: DraftBlock) -> Iterator[Line]:
    yield from block.lines
    if block.table is not None:
        yield from (line for row in block.table.rows for cell in row for line in cell)


def _recognition_warning(recognised: Mapping[int, float]) -> str:
    pages = _name_pages(recognised)
    return (
        f"The text of {pages[0].lower()}{pages[1:]} was recognised (OCR) with a mean confidence of"
        f" {mean(recognised.values()):.2f}; compare what is quoted from there with the image."
    )


def _textless_warning(textless: Iterable[int]) -> str:
    numbers = list(textless)
    return f"{_name_pages(numbers)} hold{'s' * (len(numbers) == 1)} no text. {_REMEDY}"


def _label_warning(numbers: Sequence[int]) -> str:
    pages = _name_pages(numbers)
    return (
        f"The texts of {pages[0].lower()}{pages[1:]} are short and stand apart from one another, as"
        " in a drawing: the order in which they are stored says little."
    )


def _difference_warning(numbers: Sequence[int]) -> str:
    pages = _name_pages(numbers)
    return (
        f"The stored text of {pages[0].lower()}{pages[1:]} has another number of characters than"
        " the file, and nothing explains why; compare what is quoted from there with the page."
    )


def _name_pages(pages: Iterable[int]) -> str:
    """Return pages as the beginning of a sentence: ``Pages 2, 3, 4``."""
    numbers = sorted(pages)
    listed = ", ".join(map(str, numbers[:_MOST_LISTED]))
    more = len(numbers) - _MOST_LISTED
    return f"Page{'s' * (len(numbers) > 1)} {listed}" + (f" and {more:,} more" * (more > 0))


# --- metadata -----------------------------------------------------------------------------------


def _clean_value(value: str | None) -> str:
    text = collapse_whitespace(storable(value or ""))
    return "" if text.lower() in _PLACEHOLDERS else text


def _is_title(title: str) -> bool:
    """Return whether a PDF's title is genuine, rather than left by a word processor."""
    letters = sum(character.isalpha() for character in title)
    return letters >= 3 and len(title) <= 300 and not _NO_TITLE.search(title)


def _read_metadata(info: Mapping[str, str]) -> dict[str, str]:
    metadata = {
        "author": _clean_value(info.get("Author")),
        "description": _clean_value(info.get("Subject")),
    }
    date = _DATE.match(info.get("CreationDate") or "")
    if date:
        metadata["date"] = "-".join(part for part in date.groups() if part)
    return {key: value for key, value in metadata.items() if value}
