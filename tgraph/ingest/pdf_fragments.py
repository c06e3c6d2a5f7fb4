"""What stands on a PDF's page, with its place: fragments of text, rules, images.

Places are points from the upper left corner of the page as displayed (crop box, rotation). A
fragment is text on one baseline without a wide gap; PDFium's order of characters decides inside
a fragment only, since it is the order in which the file draws."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from ctypes import (
    addressof,
    byref,
    c_double,
    c_float,
    c_int,
    c_size_t,
    create_string_buffer,
)
from dataclasses import dataclass, field
from itertools import chain
from math import atan2, hypot, pi
from typing import Any

import pypdfium2.raw as raw

Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""
_FINE = 1_000_000
_BOLD = re.compile(r"(?i)bold|black|heavy|semibold|demi(?!-?ital)|-bd|cmbx|cmcsc.*b")
_MONOSPACED = re.compile(r"(?i)mono|courier|consol|typewriter|cmtt|inconsolata|menlo")
_WIDE_GAP = 0.9
"""A gap that ends a fragment, as a share of the font size."""
_SHIFTED = 0.12
"""A distance of baselines that raises or lowers a character, as a share of the font size."""
_LAST_CODE = 0x10FFFF
_TAKEN = -1
"""In place of the code of an accent that became part of a letter."""
_MOST_OBJECTS = 20_000
_MOST_DEPTH = 4
_THIN = 2.5
"""Points up to which a filled box is a rule."""
_BOX = 16
"""Points up to which a drawn square is a box to tick rather than a cell."""
_RECTANGLE = 5
"""Segments of a rectangle's path, with the one that closes it."""
_HYPHENS = {0x02: "-", 0xFFFE: "-"}
"""PDFium's marks of a hyphen at a line's end."""
CONTROLS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0)))) - {"\x02"}
"""Characters that are drawn by fonts that don't say what they are."""
_RAISED = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWERED = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")
_LEVELLED = {shifted: chr(plain) for to in (_RAISED, _LOWERED) for plain, shifted in to.items()}
_ACCENTS = {
    ord(drawn): combining
    for drawn, combining in zip(
        "`´ˆ˜¯˘˙¨˚˝ˇ¸˛",
        "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327\u0328",
        strict=True,
    )
}
"""Accents that are drawn over a letter, as TeX does, with their combining characters."""
_NO_ACCENTS = dict.fromkeys(_ACCENTS)
_MATHEMATICAL = frozenset(map(chr, range(0x1D400, 0x1D800)))
"""Letters that Word's equations name twice for one that is drawn."""
_DOTLESS = str.maketrans("ıȷ", "ij")


@dataclass(slots=True)
class Fragment:
    """A stretch of text on one baseline; ``characters`` numbers its visible characters as PDFium
    does, in the order of the text; ``spaced`` states whether white space is drawn before it, and
    ``confidence`` (0 to 1) is that of text recognition."""

    left: float
    top: float
    right: float
    bottom: float
    baseline: float
    size: float
    text: str = ""
    bold: bool = False
    monospaced: bool = False
    spaced: bool = False
    confidence: float = 1.0
    characters: array[int] = field(default_factory=lambda: array("I"))

    @property
    def box(self) -> Box:
        return self.left, self.top, self.right, self.bottom


@dataclass(slots=True)
class PageContent:
    """What stands on a page. ``turned`` has the fragments of text in another direction, by
    quarter turns clockwise, each in coordinates in which the text is upright. Of the visible
    characters, ``outside`` counts those outside the page, ``doubled`` those drawn twice,
    ``accents`` those that became part of a letter, and ``unreadable`` those of which the font
    doesn't say what they are, ``unnamed`` those among them that have no code at all; ``paths``
    counts drawn lines and shapes, ``shapes`` are those with more sides than a rectangle."""

    width: float
    height: float
    fragments: list[Fragment] = field(default_factory=list)
    turned: dict[int, list[Fragment]] = field(default_factory=dict)
    horizontal_rules: list[Box] = field(default_factory=list)
    vertical_rules: list[Box] = field(default_factory=list)
    images: list[Box] = field(default_factory=list)
    shapes: list[Box] = field(default_factory=list)
    outside: int = 0
    doubled: int = 0
    accents: int = 0
    unreadable: int = 0
    unnamed: int = 0
    paths: int = 0

    def count_characters(self) -> int:
        """Return how many visible characters the fragments have."""
        return sum(map(_count, chain(self.fragments, *self.turned.values())))


class _View:
    """The transformation of a page's coordinates into those of the page as displayed."""

    def __init__(self, page: Any) -> None:
        self.width, self.height = page.get_size()
        x0, y0 = self._project(page, 0.0, 0.0)
        x1, y1 = self._project(page, 100.0, 0.0)
        x2, y2 = self._project(page, 0.0, 100.0)
        self.a, self.b = (x1 - x0) / 100, (y1 - y0) / 100
        self.c, self.d = (x2 - x0) / 100, (y2 - y0) / 100
        self.e, self.f = x0, y0

    def _project(self, page: Any, x: float, y: float) -> tuple[float, float]:
        across, down = c_int(), c_int()
        raw.FPDF_PageToDevice(page, 0, 0, _FINE, _FINE, 0, x, y, byref(across), byref(down))
        return across.value / _FINE * self.width, down.value / _FINE * self.height

    def place_point(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def place_box(self, left_edge: float, bottom: float, right: float, top: float) -> Box:
        x0, y0 = self.place_point(left_edge, bottom)
        x1, y1 = self.place_point(right, top)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _turn_box(box: Box, turns: int, width: float, height: float) -> Box:
    """Return a box in coordinates in which text turned clockwise by quarters is upright."""
    left_edge, top, right, bottom = box
    if turns == 1:
        return top, width - right, bottom, width - left_edge
    if turns == 2:
        return width - right, height - bottom, width - left_edge, height - top
    if turns == 3:
        return height - bottom, left_edge, height - top, right
    return box


@dataclass(frozen=True, slots=True)
class _FontStyle:
    """How a text object draws: font size in points, quarter turns, weight, baseline."""

    size: float
    turns: int
    baseline: float
    bold: bool
    monospaced: bool


class _TextReader:
    """Gathers a page's characters into fragments."""

    def __init__(self, page: Any, view: _View, content: PageContent) -> None:
        self._page = page
        self._view = view
        self._content = content
        self._styles: dict[int, _FontStyle] = {}
        self._fonts: dict[int, tuple[bool, bool]] = {}
        self._open: Fragment | None = None
        self._turns = 0
        self._last: Box = (0.0, 0.0, 0.0, 0.0)
        self._last_style: _FontStyle | None = None
        self._is_spaced = self._may_be_spaced = False
        self._sizes: Counter[float] = Counter()
        self.by_turns: dict[int, list[Fragment]] = {}

    def read(self) -> None:
        textpage = self._page.get_textpage()
        try:
            rectangle, high = raw.FS_RECTF(), 0
            count = textpage.count_chars()
            codes = [raw.FPDFText_GetUnicode(textpage, index) for index in range(count)]
            letters = _place_accents(textpage, codes)
            for index, code in enumerate(codes):
                code = letters.get(index, code)
                if code == _TAKEN:
                    self._content.accents += 1
                    continue
                if 0xD800 <= code < 0xDC00:
                    high = code
                    continue
                if 0xDC00 <= code < 0xE000 and high:
                    code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
                high = 0
                if code > _LAST_CODE or 0xD800 <= code < 0xE000:
                    continue
                character = _HYPHENS.get(code) or chr(code)
                is_drawn = not raw.FPDFText_IsGenerated(textpage, index)
                if character in CONTROLS and is_drawn and not character.isspace():
                    character = "\N{REPLACEMENT CHARACTER}"
                    self._content.unreadable += 1
                    self._content.unnamed += not code
                if character.isspace() or character == "\0":
                    self._is_spaced |= is_drawn
                    self._may_be_spaced = True
                    continue
                if not raw.FPDFText_GetLooseCharBox(textpage, index, byref(rectangle)):
                    continue
                drawn = raw.FPDFText_GetTextObject(textpage, index)
                if not drawn:
                    continue
                style = self._style_of(drawn, textpage, index)
                sides = rectangle.left, rectangle.bottom, rectangle.right, rectangle.top
                self._add_character(index, character, self._view.place_box(*sides), style)
        finally:
            textpage.close()

    def _style_of(self, drawn: Any, textpage: Any, index: int) -> _FontStyle:
        key = addressof(drawn.contents)
        style = self._styles.get(key)
        if style is None:
            style = self._styles[key] = self._read_style(drawn, textpage, index)
        return style

    def _read_style(self, drawn: Any, textpage: Any, index: int) -> _FontStyle:
        """Return the style of a text object, of which a character is numbered ``index``.

        The character's matrix and origin are on the page also where the text is in a form."""
        matrix, size = raw.FS_MATRIX(), c_float()
        across_page, up_page = c_double(), c_double()
        raw.FPDFText_GetMatrix(textpage, index, byref(matrix))
        raw.FPDFText_GetCharOrigin(textpage, index, byref(across_page), byref(up_page))
        raw.FPDFTextObj_GetFontSize(drawn, byref(size))
        view = self._view
        across = view.a * matrix.a + view.c * matrix.b, view.b * matrix.a + view.d * matrix.b
        x, y = view.place_point(across_page.value, up_page.value)
        turns = round(atan2(across[1], across[0]) / (pi / 2)) % 4
        _, baseline, *_ = _turn_box((x, y, x, y), turns, view.width, view.height)
        bold, monospaced = self._read_font(raw.FPDFTextObj_GetFont(drawn))
        scale = hypot(matrix.c, matrix.d) or hypot(matrix.a, matrix.b)
        return _FontStyle(abs(size.value) * scale or 1.0, turns, baseline, bold, monospaced)

    def _read_font(self, font: Any) -> tuple[bool, bool]:
        if not font:
            return False, False
        key = addressof(font.contents)
        if key not in self._fonts:
            length = raw.FPDFFont_GetBaseFontName(font, None, c_size_t(0))
            name = create_string_buffer(max(min(length, 500), 1))
            raw.FPDFFont_GetBaseFontName(font, name, c_size_t(len(name)))
            text = name.value.decode("utf-8", "replace")
            is_bold = bool(_BOLD.search(text)) or raw.FPDFFont_GetWeight(font) >= 650
            flags = raw.FPDFFont_GetFlags(font)
            self._fonts[key] = is_bold, bool(_MONOSPACED.search(text)) or (flags > 0 and flags & 1)
        return self._fonts[key]

    def _add_character(self, index: int, character: str, placed: Box, style: _FontStyle) -> None:
        content = self._content
        x, y = (placed[0] + placed[2]) / 2, (placed[1] + placed[3]) / 2
        if not (-1 <= x <= content.width + 1 and -1 <= y <= content.height + 1):
            content.outside += 1
            self._is_spaced = True
            return
        box = _turn_box(placed, style.turns, content.width, content.height)
        fragment = self._open
        is_near = abs(box[0] - self._last[0]) < 0.1 * style.size
        if fragment and is_near and character in _MATHEMATICAL and fragment.text[-1] == character:
            content.doubled += 1
            return
        if fragment is None or style.turns != self._turns or not self._goes_on(box, style):
            self.end_fragment()
            fragment = self._open = _start_fragment(box, style)
            fragment.spaced = self._is_spaced
            self.by_turns.setdefault(style.turns, []).append(fragment)
            self._turns = style.turns
        else:
            character = self._shift_character(character, style)
            gap = max(box[0] - self._last[2], self._last[0] - box[2])
            if self._is_spaced or (
                self._may_be_spaced and gap > self._least_space(character, style)
            ):
                fragment.text += " "
            _extend_fragment(fragment, box, style)
        self._is_spaced = self._may_be_spaced = False
        self._last, self._last_style = box, style
        if abs(style.baseline - fragment.baseline) <= _SHIFTED * style.size:
            self._sizes[style.size] += 1
        fragment.text += character
        fragment.characters.append(index)

    def _least_space(self, character: str, style: _FontStyle) -> float:
        """Return how wide a gap is at least that PDFium takes for a space: the boxes of italic
        letters reach into it."""
        assert self._open is not None
        is_inside = self._open.text[-1].isalpha() and character.isalpha()
        share = 0.02 if is_inside and style == self._last_style else 0.1
        return share * self._open.size

    def end_fragment(self) -> None:
        """Give the fragment that ends here the size of most of its characters."""
        if self._open is not None and self._sizes:
            self._open.size = self._sizes.most_common(1)[0][0]
        self._sizes.clear()

    def _goes_on(self, box: Box, style: _FontStyle) -> bool:
        """Return whether a character continues the open fragment."""
        before = self._open
        assert before is not None
        size = max(before.size, style.size)
        rise = abs(style.baseline - before.baseline)
        is_shifted = rise > _SHIFTED * size
        if rise > 0.65 * size or (is_shifted and 0.9 < style.size / before.size < 1.1):
            return False
        last = self._last
        if box[0] >= last[0] - 0.2 * size:  # a ligature's letters share one box
            return box[0] - last[2] < _WIDE_GAP * size
        return -0.3 * size < last[0] - box[2] < _WIDE_GAP * size  # from right to left

    def _shift_character(self, character: str, style: _FontStyle) -> str:
        """Return a raised or lowered digit as such; join a raised label to what follows."""
        fragment = self._open
        assert fragment is not None
        rise = fragment.baseline - style.baseline
        if style.size < 0.9 * fragment.size and abs(rise) > _SHIFTED * fragment.size:
            return character.translate(_RAISED if rise > 0 else _LOWERED)
        if fragment.size < 0.9 * style.size and abs(rise) > _SHIFTED * style.size:
            if len(fragment.text) <= 4:
                fragment.text = fragment.text.translate(_RAISED if rise < 0 else _LOWERED)
                self._is_spaced |= rise < 0
            fragment.size, fragment.baseline = style.size, style.baseline
        return character


def _place_accents(textpage: Any, codes: Sequence[int]) -> dict[int, int]:
    """Return the codes of letters that have an accent drawn over them, by their indices, and of
    the accents themselves ``_TAKEN``."""
    accents = [index for index, code in enumerate(codes) if code in _ACCENTS]
    if not accents:
        return {}
    rectangle = raw.FS_RECTF()

    def box_of(index: int) -> Box:
        raw.FPDFText_GetLooseCharBox(textpage, index, byref(rectangle))
        return rectangle.left, rectangle.bottom, rectangle.right, rectangle.top

    middles = sorted(((box[0] + box[2]) / 2, box, k) for k in accents for box in [box_of(k)])
    places = [middle for middle, _, _ in middles]
    placed: dict[int, int] = {}
    for index, code in enumerate(codes):
        if code > _LAST_CODE or code in _ACCENTS or not chr(code).isalpha():
            continue
        left_edge, bottom, right, top = box_of(index)
        for at in range(bisect_left(places, left_edge), bisect_right(places, right)):
            _, box, accent = middles[at]
            near = abs(box[1] - bottom) < 0.4 * (top - bottom)
            plain = chr(code).translate(_DOTLESS)
            letter = unicodedata.normalize("NFC", plain + _ACCENTS[codes[accent]])
            if near and accent not in placed and len(letter) == 1:
                placed[index], placed[accent] = ord(letter), _TAKEN
                break
    return placed


def _start_fragment(box: Box, style: _FontStyle) -> Fragment:
    left_edge, top, right, bottom = box
    size, baseline = style.size, style.baseline
    if not 0.5 * size < bottom - top < 2.5 * size:
        top, bottom = baseline - 0.8 * size, baseline + 0.2 * size
    return Fragment(
        left_edge, top, right, bottom, baseline, size, bold=style.bold, monospaced=style.monospaced
    )


def _extend_fragment(fragment: Fragment, box: Box, style: _FontStyle) -> None:
    fragment.left, fragment.right = min(fragment.left, box[0]), max(fragment.right, box[2])
    fragment.bold = fragment.bold and style.bold
    fragment.monospaced = fragment.monospaced and style.monospaced
    if style.size >= fragment.size:
        fragment.top = min(fragment.top, style.baseline - 0.8 * style.size)
        fragment.bottom = max(fragment.bottom, style.baseline + 0.2 * style.size)


def level_text(text: str) -> str:
    """Return a text with plain characters in place of raised, lowered and accented ones."""
    plain = []
    for character in text.translate(_LEVELLED).translate(_DOTLESS):
        parts = unicodedata.normalize("NFD", character)
        is_accented = len(parts) > 1 and unicodedata.combining(parts[1])
        plain.append(parts[0] if is_accented else character)
    return "".join(plain).translate(_NO_ACCENTS)


def read_content(page: Any) -> PageContent:
    """Return what stands on a page of PDFium's."""
    view = _View(page)
    content = PageContent(view.width, view.height)
    reader = _TextReader(page, view, content)
    reader.read()
    reader.end_fragment()
    _read_objects(page, view, content)
    counts = Counter({turns: sum(map(_count, some)) for turns, some in reader.by_turns.items()})
    main = counts.most_common(1)[0][0] if counts else 0
    content.fragments = _drop_doubles(reader.by_turns.pop(main, []), content)
    content.turned = reader.by_turns
    if main:
        _turn_content(content, main)
    return content


def _drop_doubles(fragments: Sequence[Fragment], content: PageContent) -> list[Fragment]:
    """Return fragments without those drawn a second time beside themselves, as for a shadow."""
    by_text: dict[str, list[Fragment]] = {}
    kept = []
    for part in fragments:
        near = 0.35 * part.size
        same = by_text.setdefault(part.text, [])
        if any(
            abs(part.left - other.left) < near and abs(part.baseline - other.baseline) < near
            for other in same
        ):
            content.doubled += _count(part)
        else:
            same.append(part)
            kept.append(part)
    return kept


def _count(fragment: Fragment) -> int:
    return len(fragment.characters)


def _turn_content(content: PageContent, turns: int) -> None:
    """Turn a page whose text is drawn sideways."""
    size = content.width, content.height
    rules = content.horizontal_rules, content.vertical_rules
    first, second = ([_turn_box(box, turns, *size) for box in boxes] for boxes in rules)
    if turns % 2:
        first, second = second, first
        content.width, content.height = content.height, content.width
    content.horizontal_rules, content.vertical_rules = first, second
    content.images = [_turn_box(box, turns, *size) for box in content.images]


def _read_objects(page: Any, view: _View, content: PageContent) -> None:
    for kind, box, sides in _drawn_boxes(page, view):
        left_edge, top, right, bottom = box
        if right < 0 or bottom < 0 or left_edge > content.width or top > content.height:
            continue
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            content.images.append(box)
            continue
        content.paths += 1
        width, height = right - left_edge, bottom - top
        if height <= _THIN < width:
            content.horizontal_rules.append(box)
        elif width <= _THIN < height:
            content.vertical_rules.append(box)
        elif sides > _RECTANGLE:
            content.shapes.append(box)
        elif not sides and min(width, height) > 8 and max(width, height) > _BOX:
            content.horizontal_rules += [(left_edge, y, right, y) for y in (top, bottom)]
            content.vertical_rules += [(x, top, x, bottom) for x in (left_edge, right)]


def _drawn_boxes(page: Any, view: _View) -> Iterator[tuple[int, Box, int]]:
    """Yield kind and box of images and paths, also inside of forms, and how many sides a path has:
    none if it is an unfilled rectangle."""
    sides = c_float(), c_float(), c_float(), c_float()
    unit = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    stack = [(page, raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject, unit, 0)]
    seen = 0
    while stack:
        holder, count_objects, get_object, outer, depth = stack.pop()
        for index in range(max(count_objects(holder), 0)):
            seen += 1
            if seen > _MOST_OBJECTS:
                return
            drawn = get_object(holder, index)
            kind = raw.FPDFPageObj_GetType(drawn)
            if kind == raw.FPDF_PAGEOBJ_FORM and depth < _MOST_DEPTH:
                matrix = raw.FS_MATRIX()
                raw.FPDFPageObj_GetMatrix(drawn, byref(matrix))
                inner = _multiply(
                    (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f), outer
                )
                forms = raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject
                stack.append((drawn, *forms, inner, depth + 1))
            elif kind in (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH):
                if not raw.FPDFPageObj_GetBounds(drawn, *map(byref, sides)):
                    continue
                left_edge, bottom, right, top = (side.value for side in sides)
                corners = _transform(outer, left_edge, bottom) + _transform(outer, right, top)
                yield kind, view.place_box(*corners), _count_sides(drawn, kind)


def _count_sides(drawn: Any, kind: int) -> int:
    if kind != raw.FPDF_PAGEOBJ_PATH:
        return 0
    fill, stroke = c_int(), c_int()
    raw.FPDFPath_GetDrawMode(drawn, byref(fill), byref(stroke))
    sides = max(raw.FPDFPath_CountSegments(drawn), 1)
    is_open = stroke.value and not fill.value
    return 0 if is_open and _RECTANGLE - 1 <= sides <= _RECTANGLE else sides


_Matrix = tuple[float, float, float, float, float, float]


def _multiply(inner: _Matrix, outer: _Matrix) -> _Matrix:
    a, b, c, d, e, f = inner
    return (
        *_transform((*outer[:4], 0, 0), a, b),
        *_transform((*outer[:4], 0, 0), c, d),
        *_transform(outer, e, f),
    )


def _transform(matrix: _Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f
