"""XML of documents as an HTML tree, which the one walk over HTML reads."""

from __future__ import annotations

from collections.abc import Iterator
from html.entities import html5

from lxml import etree

from tgraph.ingest.base import split_words
from tgraph.ingest.blocks import LossList
from tgraph.ingest.equations import convert_mathml
from tgraph.ingest.html_blocks import LABEL, MARK, NOTE
from tgraph.rendering import collapse_whitespace

_INLINE = {
    **dict.fromkeys(("sup", "superscript"), "sup"),
    **dict.fromkeys(("sub", "subscript"), "sub"),
    **dict.fromkeys(("strike", "s", "del"), "s"),
    **dict.fromkeys(("br", "break", "lb", "sbr"), "br"),
    **dict.fromkeys(("q", "quote"), "q"),
}
_LISTS = {
    **dict.fromkeys(("list", "itemizedlist", "simplelist", "ul", "listBibl"), "ul"),
    **dict.fromkeys(("orderedlist", "procedure", "ol"), "ol"),
}
_ITEMS = split_words("list-item listitem item li step member")
_TITLES = split_words("title head heading subtitle bridgehead")
_CODE = split_words("preformat programlisting screen literallayout synopsis pre eg")
_PARAGRAPHS = split_words("p para simpara ab l v line verse-line")
_NOTES = split_words("fn footnote note")
_IMAGES = split_words("graphic inline-graphic imagedata img inlinegraphic media")
_FORMULAS = split_words("disp-formula inline-formula formula math tex-math equation inlineequation")
_TABLES = split_words("table tgroup oasis-table informaltable")
_CELLS = split_words("td th entry cell")
_ROWS = split_words("tr row")
_BLOCKS = (
    _ITEMS | _TITLES | _CODE | _PARAGRAPHS | _TABLES | _LISTS.keys()
    | split_words(
        "sec chapter div fig figure table-wrap disp-formula disp-quote blockquote abstract"
        " boxed-text caption variablelist def-list supplementary-material verse-group speech"
    )
)  # fmt: skip
_LONGEST_VALUE = 200
_TEX_BODY = (r"\begin{document}", r"\end{document}")
OPAQUE = split_words("math tex-math")
"""Elements whose text is written as an equation."""


def local_name(element: etree._Element) -> str:
    """Return an element's name without its namespace; empty for comments, instructions and
    entities."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: etree._Element, name: str) -> str:
    """Return an attribute by its local name, whatever its namespace; empty for none."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def read_texts(element: etree._Element) -> Iterator[str]:
    """Yield the texts below an element, without those of formulas; an entity is what it names."""
    yield element.text or ""
    for child in element:
        if name := local_name(child):
            yield from () if name in OPAQUE else read_texts(child)
        elif isinstance(child, etree._Entity):
            yield html5.get(f"{child.name};", "")
        yield child.tail or ""


def plain_text(element: etree._Element | None) -> str:
    """Return the text below an element as one line; empty for None."""
    return "" if element is None else collapse_whitespace("".join(read_texts(element)))


def append_text(target: etree._Element, text: str | None) -> None:
    """Append text behind what an element holds."""
    if text and len(target):
        target[-1].tail = (target[-1].tail or "") + text
    elif text:
        target.text = (target.text or "") + text


def add_element(target: etree._Element, tag: str, text: str = "") -> etree._Element:
    """Append a new element of HTML with a text."""
    element = etree.SubElement(target, tag)
    element.text = text
    return element


class XmlConverter:
    """Converts elements of any XML: sections, paragraphs, items, tables, notes, formulas by their
    usual names; any other element by its content (text, or elements alone)."""

    names_values = True
    """Whether a short value that stands alone is written under its element's name."""

    def __init__(self, losses: LossList) -> None:
        self.losses = losses
        self.formulas = self.read_formulas = 0
        self._notes: list[tuple[str, etree._Element]] = []
        self._note_count = 0

    def convert(self, source: etree._Element, target: etree._Element, level: int) -> None:
        """Append an element's HTML to ``target``; ``level`` is that of the headings in it."""
        name = local_name(source)
        if name in _FORMULAS and self._add_formula(source, name, target):
            return
        if name in _TABLES and _has_rows(source):
            self._add_table(source, target, level)
        elif name in _IMAGES:
            self._add_image(source, target)
        elif name in _NOTES and (name != "note" or _is_inline(source)):
            self._add_note(source, target, level)
        elif name == "alternatives":
            table = (e for e in source if local_name(e) in _TABLES)
            chosen = next(table, source[0] if len(source) else None)
            if chosen is not None and local_name(chosen):
                self.convert(chosen, target, level)
        else:
            self._convert_by_content(source, name, target, level)

    def convert_content(self, source: etree._Element, target: etree._Element, level: int) -> None:
        """Append the HTML of an element's text and children to ``target``."""
        append_text(target, source.text)
        for child in source:
            if local_name(child):
                self.convert(child, target, level)
            elif isinstance(child, etree._Entity):
                self._add_entity(child, target)
            append_text(target, child.tail)

    def _convert_by_content(
        self, source: etree._Element, name: str, target: etree._Element, level: int
    ) -> None:
        if name in _TITLES and not _is_inline(source):
            self.convert_content(source, add_element(target, f"h{min(level, 6)}"), level)
        elif name in _LISTS:
            is_numbered = attribute(source, "list-type") in ("order", "arabic")
            tag = "ol" if is_numbered or _LISTS[name] == "ol" else "ul"
            self.convert_content(source, add_element(target, tag), level)
        elif name in _ITEMS:
            self.convert_content(source, add_element(target, "li"), level)
        elif name in _CODE:
            self.convert_content(source, add_element(target, "pre"), level)
        elif name not in _PARAGRAPHS and _is_inline(source) and name not in _BLOCKS:
            self.convert_content(source, add_element(target, _INLINE.get(name, "span")), level)
        elif self.names_values and _is_value(source, name):
            fields = add_element(target, "dl")
            add_element(fields, "dt", name)
            add_element(fields, "dd", plain_text(source))
        elif name in _PARAGRAPHS or _has_text(source):
            self.convert_content(source, add_element(target, "p"), level)
            self._add_waiting_notes(target, level)
        else:
            self._convert_section(source, target, level)

    def _convert_section(self, source: etree._Element, target: etree._Element, level: int) -> None:
        has_title = any(local_name(child) in _TITLES for child in source)
        section = add_element(target, "div")
        for child in source:
            is_title = local_name(child) in _TITLES
            self.convert(child, section, level if is_title or not has_title else level + 1)

    def _add_entity(self, entity: etree._Entity, target: etree._Element) -> None:
        if text := html5.get(f"{entity.name};"):
            append_text(target, text)
        else:
            add_element(target, MARK, f"entity: {entity.name}")
            self.losses.add("entity", "entities of a file aren't expanded", marked=True)

    def _add_formula(self, source: etree._Element, name: str, target: etree._Element) -> bool:
        """Append a formula as an element ``math`` whose text is LaTeX; return whether the element
        holds one."""
        tex = next((e for e in source.iter() if local_name(e) == "tex-math"), None)
        math = next((e for e in source.iter() if local_name(e) == "math"), None)
        if tex is None and math is None:
            return False
        self.formulas += 1
        latex = "" if tex is None else _strip_tex("".join(map(str, tex.itertext())))
        if not latex and math is not None:
            latex = convert_mathml(math)
        self.read_formulas += bool(latex)
        is_block = name in ("disp-formula", "equation") or attribute(source, "display") == "block"
        holder = add_element(target, "p") if is_block else target
        add_element(holder, "math").set("alttext", latex)
        label = next((e for e in source if local_name(e) == "label"), None)
        append_text(holder, f" {plain_text(label)}" if label is not None else "")
        return True

    def _add_image(self, source: etree._Element, target: etree._Element) -> None:
        parent = source.getparent()
        near = [*source.iter(), *(parent if parent is not None else ())]
        described = (e for e in near if local_name(e) in ("alt-text", "long-desc"))
        add_element(target, "img").set("alt", plain_text(next(described, None)) or "image")

    def _add_note(self, source: etree._Element, target: etree._Element, level: int) -> None:
        """Append a note, behind its paragraph where the note stands in one."""
        label = next((e for e in source if local_name(e) == "label"), None)
        text = plain_text(label)
        if not _is_inline(source):
            self._write_note(text, source, target, level)
            return
        self._note_count += 1
        text = text or str(self._note_count)
        add_element(target, "sup", f"[{text}]")
        self._notes.append((text, source))

    def _add_waiting_notes(self, target: etree._Element, level: int) -> None:
        waiting, self._notes = self._notes, []
        for label, note in waiting:
            self._write_note(label, note, target, level)

    def _write_note(
        self, label: str, source: etree._Element, target: etree._Element, level: int
    ) -> None:
        note = add_element(target, NOTE)
        add_element(note, LABEL, label)
        append_text(note, source.text)
        for child in source:
            if local_name(child) != "label":
                self.convert(child, note, level)
            append_text(note, child.tail)

    def _add_table(self, source: etree._Element, target: etree._Element, level: int) -> None:
        """Append a table of HTML, CALS or TEI; its titles stand above it."""
        first = [e for e in source if local_name(e) in (*_TITLES, "caption")]
        for title in first:
            self.convert_content(title, add_element(target, "figcaption"), level)
        table = add_element(target, "table")
        part = table
        for row in source.iter():
            name = local_name(row)
            if name in ("thead", "tbody", "tfoot"):
                part = add_element(table, name)
            elif name in _ROWS and not _is_in_cell(row, source):
                line = add_element(part, "tr")
                is_head = name == "row" and attribute(row, "role") == "label"
                for cell in row:
                    self._add_cell(cell, line, is_head, level)

    def _add_cell(
        self, source: etree._Element, row: etree._Element, is_head: bool, level: int
    ) -> None:
        if local_name(source) not in _CELLS:
            return
        in_head = row.getparent().tag == "thead"
        is_head = is_head or in_head or local_name(source) == "th"
        cell = add_element(row, "th" if is_head else "td")
        columns, rows = attribute(source, "colspan"), attribute(source, "rowspan")
        columns = columns or attribute(source, "cols")
        if more := attribute(source, "morerows"):
            rows = str(int(more) + 1) if more.isdigit() and len(more) < 5 else ""
        first, last = (attribute(source, name).lstrip("col") for name in ("namest", "nameend"))
        if first.isdigit() and last.isdigit() and len(last) < 5:
            columns = str(max(1, int(last) - int(first) + 1))
        cell.set("colspan", columns or "1")
        cell.set("rowspan", rows or "1")
        self.convert_content(source, cell, level)


def _strip_tex(text: str) -> str:
    """Return the formula of a TeX document without preamble and dollars."""
    before, begin, rest = text.partition(_TEX_BODY[0])
    body = rest.partition(_TEX_BODY[1])[0] if begin else before
    return collapse_whitespace(body).strip("$ ")


def _has_text(element: etree._Element) -> bool:
    """Return whether an element holds text of its own, beside that of its children."""
    texts = [element.text, *(child.tail for child in element)]
    is_entity = any(isinstance(child, etree._Entity) for child in element)
    return is_entity or any(text and text.strip() for text in texts)


def _is_inline(element: etree._Element) -> bool:
    """Return whether an element stands in running text."""
    parent = element.getparent()
    if parent is None:
        return False
    return _has_text(parent) or local_name(parent) in (*_PARAGRAPHS, *_TITLES)


def _has_rows(element: etree._Element) -> bool:
    return any(local_name(e) in _ROWS for e in element.iter())


def _is_in_cell(row: etree._Element, table: etree._Element) -> bool:
    for parent in row.iterancestors():
        if parent is table:
            return False
        if local_name(parent) in _CELLS:
            return True
    return False


def _is_value(element: etree._Element, name: str) -> bool:
    """Return whether an element is a short value under the element's name, not a sentence."""
    text = plain_text(element)
    is_leaf = not len(element) and name not in _BLOCKS
    return is_leaf and 0 < len(text) <= _LONGEST_VALUE and not text.endswith((".", "!", "?", "。"))
