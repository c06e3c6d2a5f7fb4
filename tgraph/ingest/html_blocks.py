"""The one walk over HTML: web pages, chapters of books and Word documents become blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lxml import etree

from tgraph.ingest.base import split_words, storable, write_number
from tgraph.ingest.blocks import LossList, PageBuilder, count_visible
from tgraph.ingest.equations import convert_mathml
from tgraph.ingest.html_selection import REASONS, ContentSelection, element_roles, is_note_reference
from tgraph.ingest.html_tables import HtmlTable, TableLine, is_layout, write_lines
from tgraph.ingest.inline_text import SPACES, STRUCK, InlineText, Mark, split_struck
from tgraph.model import BlockKind
from tgraph.rendering import collapse_whitespace, shorten_text

MARK = "reading-mark"
LABEL = "reading-label"
COMMENT = "reading-comment"
NOTE = "reading-note"
"""Elements that readers of other formats write for a mark (``kind: description``), for the label of
an item or note, for a reviewer's comment, and for a note."""

_LEVELS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = split_words(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset "
    "figcaption figure footer form header hgroup hr html legend main menu nav ol p pre search "
    f"section summary ul {COMMENT} {NOTE}"
).union(_LEVELS)
_TABLE_PARTS = split_words("table tr td th thead tbody tfoot caption")
_DISPLAYS = split_words("figcaption summary legend caption")
_OPENING = {"br": "\n", "q": "“", "rt": "("}
_CLOSING = {"q": "”", "rt": ")"}
_STRUCK = split_words("del s strike")
_LISTS = split_words("ul ol menu")
_MEDIA = {
    "svg": "drawing",
    "canvas": "drawing",
    "iframe": "frame",
    "object": "embedded object",
    "embed": "embedded object",
    "audio": "sound",
    "video": "video",
}
_NOTE_ROLES = split_words(
    "footnote endnote rearnote note doc-footnote doc-endnote doc-endnotes-item"
)
_LONGEST_TERM = 80
_SMALLEST_IMAGE = 40
"""Width and height, in pixels, up to which an image without words is an ornament."""
_LONGEST_DESCRIPTION = 300


def add_html_blocks(
    root: etree._Element, selection: ContentSelection, builder: PageBuilder, losses: LossList
) -> None:
    """Add the blocks below the root element of an HTML tree to a page.

    ``selection`` says what isn't read; what a person would see of that is added to ``losses``."""
    _HtmlWalk(selection, builder, losses).read_tree(root)


@dataclass(slots=True)
class _List:
    """An open list; ``next_number`` is None where the items have no numbers."""

    next_number: int | None
    style: str = "1"
    is_note: bool = False


class _HtmlWalk:
    """A non-recursive walk over elements in document order."""

    def __init__(self, selection: ContentSelection, builder: PageBuilder, losses: LossList) -> None:
        self._selection = selection
        self._builder = builder
        self._losses = losses
        self._text = InlineText()
        self._struck = 0
        self._preformatted = 0
        self._heading = 0
        self._kind: BlockKind = "prose"
        self._lists: list[_List] = []
        self._mark: str | None = None
        self._term = ""
        self._term_shown = False
        self._in_term = False
        self._note: str | None = None
        self._notes = 0
        self._tables: list[HtmlTable | None] = []
        self._scripts: list[tuple[int, bool]] = []
        self._label = False

    def read_tree(self, root: etree._Element) -> None:
        walk = etree.iterwalk(root, events=("start", "end"))
        outside = None
        for event, element in walk:
            if event == "start" and not self._enter_element(element):
                outside = element
                walk.skip_subtree()
            elif event == "end":
                if element is not outside:
                    self._close_tag(element)
                if element is not root:
                    self._add_text(element.tail)
        self._end_block()

    def _enter_element(self, element: etree._Element) -> bool:
        """Open an element, and return whether its content is read by the walk."""
        kind = self._selection.left_out.get(element)
        if kind is not None:
            self._leave_out(element, kind)
            return False
        if element.tag in _REPLACED:
            _REPLACED[element.tag](self, element)
            return False
        self._open_tag(element)
        self._add_text(element.text)
        return True

    def _leave_out(self, element: etree._Element, kind: str) -> None:
        if element.tag in _BLOCKS or element.tag in _LISTS or element.tag == "table":
            self._end_block()
        if kind and count_visible("".join(element.itertext())):
            self._losses.add(kind, REASONS[kind])

    def _add_text(self, text: str | None) -> None:
        if not text:
            return
        if self._label and self._note is not None:
            self._note = text.strip()
        elif self._label:
            self._mark = text.strip()
        else:
            collapsed = text if self._preformatted else SPACES.sub(" ", text)
            self._text.add(collapsed, struck=self._struck > 0)

    # --- elements -----------------------------------------------------------------------------

    def _open_tag(self, element: etree._Element) -> None:
        tag = element.tag
        if element.attrib or tag == NOTE:
            self._open_note(element)
        if tag in _TABLE_PARTS:
            self._open_table_part(element)
        elif tag == "li":
            self._open_item(element)
        elif tag in _BLOCKS:
            self._open_block(element)
        else:
            self._open_inline(element)
        if _is_struck(element):
            self._struck += 1
            self._losses.add(f"{STRUCK} text", "its author struck it out", marked=True)

    def _close_tag(self, element: etree._Element) -> None:
        tag = element.tag
        if tag in _TABLE_PARTS:
            self._close_table_part(tag)
        elif tag == "li":
            self._end_block()
            self._mark = self._note = None
        elif tag in _BLOCKS:
            self._close_block(element)
        else:
            self._close_inline(element)
        self._struck -= _is_struck(element)

    def _open_inline(self, element: etree._Element) -> None:
        tag = element.tag
        if _is_script(element):
            is_reference = tag == "a" or any(is_note_reference(child) for child in element)
            self._scripts.append((len(self._text), is_reference))
        elif tag == LABEL:
            self._label = True
        else:
            self._text.add(_OPENING.get(tag, ""))

    def _close_inline(self, element: etree._Element) -> None:
        tag = element.tag
        if _is_script(element):
            start, is_reference = self._scripts.pop()
            start = min(start, len(self._text))
            if tag == "sub":
                self._text.close_subscript(start)
            else:
                self._text.close_superscript(start, is_reference=is_reference)
        elif tag == LABEL:
            self._label = False
        else:
            self._text.add(_CLOSING.get(tag, ""))

    def _open_block(self, element: etree._Element) -> None:
        tag = element.tag
        self._end_block()
        self._heading = _LEVELS.get(tag, 0)
        self._preformatted += tag == "pre"
        self._kind = "display" if tag in _DISPLAYS else "comment" if tag == COMMENT else "prose"
        if tag in _LISTS:
            start = element.get("start") or "1"
            number = int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 1
            style = element.get("type") or "1"
            self._lists.append(_List(number if tag == "ol" else None, style))
        elif tag in ("dl", "dt"):
            self._end_term()
            self._in_term = tag == "dt"

    def _close_block(self, element: etree._Element) -> None:
        tag = element.tag
        self._end_block()
        self._kind = "prose"
        self._preformatted -= tag == "pre"
        if tag in _LISTS:
            self._lists.pop()
        elif tag in ("dt", "dl"):
            self._in_term = False
            if tag == "dl":
                self._end_term()
        if tag == NOTE or (tag in ("aside", "div", "section", "p") and self._is_note(element)):
            self._note = None

    def _open_item(self, element: etree._Element) -> None:
        self._end_block()
        current = self._lists[-1] if self._lists else _List(None)
        self._mark = "-"
        if current.next_number is not None:
            value = element.get("value") or ""
            if value.isascii() and value.isdigit() and len(value) < 9:
                current.next_number = int(value)
            self._mark = f"{write_number(current.next_number, current.style)}."
            current.next_number += 1
        if self._is_note(element):
            self._note = self._mark.rstrip(".-")

    def _open_note(self, element: etree._Element) -> None:
        if element.tag == NOTE or (element.tag != "li" and self._is_note(element)):
            if element.tag in _BLOCKS:
                self._end_block()
            self._note = ""

    def _is_note(self, element: etree._Element) -> bool:
        name = element.get("id") or element.get("name")
        if name and name in self._selection.note_ids:
            return not is_note_reference(element)
        return not element_roles(element).isdisjoint(_NOTE_ROLES) and element.tag != "a"

    def _open_table_part(self, element: etree._Element) -> None:
        tag = element.tag
        self._end_block()
        if tag == "table":
            self._tables.append(None if is_layout(element) else HtmlTable())
        table = self._table
        if table is None:
            self._kind = "display" if tag == "caption" else "prose"
        elif tag in ("td", "th"):
            table.open_cell(element)
        elif tag == "tr":
            table.open_row()
        elif tag == "caption":
            table.in_caption = True
        elif tag in ("thead", "tbody", "tfoot"):
            table.place = "head" if tag == "thead" else "foot" if tag == "tfoot" else "body"

    def _close_table_part(self, tag: str) -> None:
        self._end_block()
        self._kind = "prose"
        table = self._table
        if tag == "table":
            if self._tables:
                self._tables.pop()
            if table is not None:
                self._add_lines(list(table.lines()))
        elif table is not None and tag in ("td", "th"):
            table.cell = None
        elif table is not None and tag == "caption":
            table.in_caption = False
        elif table is not None and tag in ("thead", "tfoot"):
            table.place = "body"

    @property
    def _table(self) -> HtmlTable | None:
        return self._tables[-1] if self._tables else None

    @property
    def _holder(self) -> HtmlTable | None:
        """The table whose open cell or caption takes the next block."""
        tables = (t for t in reversed(self._tables) if t is not None)
        return next((t for t in tables if t.cell is not None or t.in_caption), None)

    def _add_lines(self, lines: list[TableLine]) -> None:
        """Add a table's lines to the page, or to the row that the table stands in."""
        outer = self._holder
        if outer is not None and outer.cell is not None:
            outer.add_lines(lines)
        else:
            write_lines(lines, self._builder)

    # --- blocks -------------------------------------------------------------------------------

    def _end_block(self) -> None:
        level, self._heading = self._heading, 0
        self._scripts = [(0, is_reference) for _, is_reference in self._scripts]
        if self._preformatted and self._holder is None:
            self._builder.add_code(self._text.take_lines())
            return
        before, text, after = self._text.take()
        for mark in before:
            self._add_mark(mark)
        for paragraph in text.split("\n\n") if text else ():
            self._add_block(paragraph, level)
        for mark in after:
            self._add_mark(mark)

    def _add_mark(self, mark: Mark) -> None:
        table = self._holder
        if table is not None and table.cell is not None:
            table.cell.add(str(mark))
        else:
            self._builder.add_mark(mark.kind, mark.description)

    def _add_block(self, text: str, level: int) -> None:
        table = self._holder
        if table is not None and table.cell is not None:
            number = f"{self._mark} " if self._mark not in (None, "-") else ""
            table.cell.add(number + text, is_item=self._mark is not None)
        elif table is not None:
            table.captions.append(text)
        elif self._note is not None:
            self._builder.add_note(self._note, text)
            self._note = ""
        elif (words := split_struck(text)) is not None:
            self._builder.add_mark(STRUCK, words)
        elif level:
            self._builder.add_heading(text, level)
        elif self._in_term:
            self._end_term()
            self._term, self._term_shown = text, False
        elif self._term and self._kind == "prose" and self._mark is None:
            self._add_definition(text)
        elif self._mark is not None:
            self._show_term()
            self._builder.add_item(text, max(0, len(self._lists) - 1), self._mark)
        else:
            self._builder.add_paragraph(text, self._kind)
        self._mark = None

    def _add_definition(self, text: str) -> None:
        if len(self._term) <= _LONGEST_TERM and not self._term.endswith("?"):
            self._builder.add_field(self._term.rstrip(":"), text)
            self._term_shown = True
        else:
            self._end_term()
            self._builder.add_paragraph(text)

    def _end_term(self) -> None:
        self._show_term()
        self._term = ""

    def _show_term(self) -> None:
        """Add a term that isn't the name of a field, as a line of its own."""
        if self._term and not self._term_shown:
            self._builder.add_paragraph(self._term, "display")
        self._term_shown = True

    # --- elements that stand as a mark or an equation -----------------------------------------

    def _read_image(self, element: etree._Element) -> None:
        alt = element.get("alt")
        if alt is not None and not alt.strip():
            return  # the page says that the image has no content
        words = alt or element.get("title") or ""
        if not words and _is_small(element):
            return  # an ornament
        self._text.add_mark("image", words)
        self._losses.add("image", "an image has no text", marked=True)

    def _read_medium(self, element: etree._Element) -> None:
        words = element.get("aria-label") or element.get("title") or ""
        if element.tag in ("svg", "canvas"):
            parts = [part.strip() for part in element.itertext("text", "title", "desc", "tspan")]
            words = words or " ".join(filter(None, parts))
            if not words and element.get("role") != "img":
                return  # an ornament
        kind = _MEDIA[element.tag]
        self._text.add_mark(kind, shorten_text(collapse_whitespace(words), _LONGEST_DESCRIPTION))
        self._losses.add(kind, f"a {kind} isn't text", marked=True)

    def _read_math(self, element: etree._Element) -> None:
        latex = convert_mathml(element)
        if latex:
            self._text.add(f"${storable(latex)}$")
        else:
            self._text.add_mark("equation")
            self._losses.add("equation", "the equation can't be written as text", marked=True)

    def _read_input(self, element: etree._Element) -> None:
        is_box = element.get("type") in ("checkbox", "radio")
        if is_box and element.get("role") != "button":
            self._text.add("☒ " if "checked" in element.attrib else "☐ ")

    def _read_mark(self, element: etree._Element) -> None:
        kind, _, description = "".join(element.itertext()).partition(":")
        self._text.add_mark(kind.strip(), description.strip())


def _is_small(image: etree._Element) -> bool:
    sizes = [image.get(name, "").removesuffix("px") for name in ("width", "height")]
    return all(size.isascii() and size.isdigit() and len(size) < 4 for size in sizes) and all(
        int(size) <= _SMALLEST_IMAGE for size in sizes
    )


def _is_struck(element: etree._Element) -> bool:
    return element.tag in _STRUCK or "line-through" in (element.get("style") or "").lower()


def _is_script(element: etree._Element) -> bool:
    """Return whether an element is a superscript, a subscript or the reference of a note."""
    if element.tag in ("sup", "sub"):
        return True
    return is_note_reference(element) and element.getparent().tag != "sup"


_REPLACED: dict[str, Callable[[_HtmlWalk, etree._Element], None]] = {
    "img": _HtmlWalk._read_image,
    "math": _HtmlWalk._read_math,
    "input": _HtmlWalk._read_input,
    MARK: _HtmlWalk._read_mark,
    **dict.fromkeys(_MEDIA, _HtmlWalk._read_medium),
}
