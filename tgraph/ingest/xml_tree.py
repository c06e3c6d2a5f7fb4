"""XML of documents as an HTML tree, which the one walk over HTML reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from html.entities import html5
from itertools import chain, groupby

from lxml import etree

from tgraph.ingest.base import split_words
from tgraph.ingest.blocks import LossList
from tgraph.ingest.equations import convert_mathml
from tgraph.ingest.html_blocks import COMMENT, LABEL, MARK, NOTE
from tgraph.ingest.unit_counts import count_characters
from tgraph.ingest.xml_vocabulary import (
    CELLS,
    CODE,
    FORMATS,
    ITEMS,
    LISTS,
    NOTES,
    PARAGRAPHS,
    ROWS,
    TABLES,
    TEXT_NAMES,
    TITLES,
    XmlVocabulary,
    folded_name,
    has_text,
    local_name,
)
from tgraph.rendering import collapse_whitespace

_IMAGES = split_words("graphic inline-graphic imagedata img image inlinegraphic media emi")
_DESCRIPTIONS = split_words("alt-text long-desc alt")
_FORMULAS = split_words("disp-formula inline-formula formula math tex-math equation inlineequation")
_TERMS = split_words("dt term label glossterm pt")
_DEFINITIONS = split_words("dd listitem def glossdef item pd")
_DEFINITION_LISTS = split_words("dl variablelist def-list glosslist parml")
_ENTRIES = split_words("dlentry varlistentry def-item glossentry plentry")
_UNSEEN = split_words("indexterm")
_COMMENTS = split_words("remark draft-comment required-cleanup")
_REFERENCES = split_words("xref ref link")
_NAMELESS = TITLES | split_words("speaker stage trailer byline shortdesc abstract summary")
_CITATIONS = split_words("biblstruct biblioentry biblfull")
_PEOPLE = split_words("author editor persname personname name respstmt")
_LONGEST_VALUE = 200
_MOST_COLUMNS = 12
_TEX_BODY = (r"\begin{document}", r"\end{document}")
_ISO_GREEK = {
    pair[:-1]: pair[-1]
    for pair in split_words(
        "aα bβ gγ dδ eε zζ eeη thθ iι kκ lλ mμ nν xξ oο pπ rρ sfς sσ tτ uυ phφ khχ psψ ohω"
    )
}
MARKUP = "reading-markup"
"""An element that holds HTML as a tree."""
OPAQUE = split_words("math tex-math")
"""Elements whose text is written as an equation."""


def attribute(element: etree._Element, name: str) -> str:
    """Return an attribute by its local name, whatever its namespace; empty for none."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def name_entity(entity: etree._Entity) -> str:
    """Return the character of an entity of HTML or of ISO 8879's Greek; empty for others."""
    letters = entity.name.removesuffix("gr")
    greek = _ISO_GREEK.get(letters.lower(), "") if entity.name.endswith("gr") else ""
    return (greek.upper() if letters[:1].isupper() else greek) or html5.get(f"{entity.name};", "")


def read_texts(element: etree._Element) -> Iterator[str]:
    """Yield the texts below an element, without those of formulas; an entity is what it names."""
    yield element.text or ""
    for child in element:
        if name := local_name(child):
            yield from () if name in OPAQUE else read_texts(child)
        elif isinstance(child, etree._Entity):
            yield name_entity(child)
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

    def __init__(self, losses: LossList, vocabulary: XmlVocabulary) -> None:
        self.losses = losses
        self.vocabulary = vocabulary
        self.formulas = self.read_formulas = 0
        self.left: Counter[str] = Counter()
        self._notes: list[tuple[str, etree._Element]] = []
        self._note_count = 0

    def convert(self, source: etree._Element, target: etree._Element, level: int) -> None:
        """Append an element's HTML to ``target``; ``level`` is that of the headings in it."""
        name = folded_name(source)
        add = _CONVERTERS.get(name)
        if add is None or not add(self, source, target, level):
            self._convert_by_content(source, name, target, level)

    def convert_content(self, source: etree._Element, target: etree._Element, level: int) -> None:
        """Append the HTML of an element's text and children to ``target``."""
        append_text(target, source.text)
        for child in source:
            if local_name(child):
                if self.vocabulary.adjoins_part(child):
                    append_text(target, " ")
                self.convert(child, target, level)
            elif isinstance(child, etree._Entity):
                self._add_entity(child, target)
            append_text(target, child.tail)

    def _convert_by_content(
        self, source: etree._Element, name: str, target: etree._Element, level: int
    ) -> None:
        is_inline = self.vocabulary.is_inline(source)
        if name in TITLES and not is_inline:
            self.convert_content(source, add_element(target, f"h{min(level, 6)}"), level)
        elif name in LISTS:
            is_numbered = attribute(source, "list-type") in ("order", "arabic")
            tag = "ol" if is_numbered or LISTS[name] == "ol" else "ul"
            self.convert_content(source, add_element(target, tag), level)
        elif name in ITEMS:
            self.convert_content(source, add_element(target, "li"), level)
        elif name in CODE:
            self.convert_content(source, add_element(target, "pre"), level)
        elif is_inline:
            self.convert_content(source, add_element(target, FORMATS.get(name, "span")), level)
        elif self.names_values and _is_value(source, name):
            fields = add_element(target, "dl")
            add_element(fields, "dt", local_name(source))
            add_element(fields, "dd", plain_text(source))
        elif name in PARAGRAPHS or self.vocabulary.is_running(source):
            self.convert_content(source, add_element(target, "p"), level)
            self._add_waiting_notes(target, level)
        else:
            self._convert_section(source, target, level)

    def _convert_section(self, source: etree._Element, target: etree._Element, level: int) -> None:
        children = [child for child in source if local_name(child)]
        has_title = any(folded_name(child) in TITLES for child in children)
        section = add_element(target, "div")
        for _, group in groupby(children, folded_name):
            run = list(group)
            if self.names_values and self._are_records(run):
                self._add_records(run, section, level)
                continue
            for child in run:
                is_title = folded_name(child) in TITLES
                self.convert(child, section, level if is_title or not has_title else level + 1)

    def _are_records(self, run: Sequence[etree._Element]) -> bool:
        """Return whether most of the neighbours of one name hold short values under names; a title
        is a value only where neighbours repeat it."""
        if len(run) == 1 and (_holds_records(run[0]) or _holds_title(run[0])):
            return False
        return 2 * sum(map(self.vocabulary.is_record, run)) > len(run)

    def _add_records(
        self, run: Sequence[etree._Element], target: etree._Element, level: int
    ) -> None:
        """Append neighbouring records: as a table where all have the same values, else each as an
        item, and one alone as a field."""
        names = list(dict.fromkeys(local_name(part) for record in run for part in record))
        is_table = len(run) > 1 and len(names) <= _MOST_COLUMNS and all(map(_is_flat, run))
        if is_table and all(2 * len(record) > len(names) for record in run):
            _add_record_table(run, names, target)
            return
        for record in run:
            if not self.vocabulary.holds_values(record):
                self.convert(record, target, level)
            elif len(run) == 1:
                fields = add_element(target, "dl")
                add_element(fields, "dt", local_name(record))
                add_element(fields, "dd", _write_record(record))
            else:
                item = add_element(add_element(target, "ul"), "li")
                append_text(item, f"{local_name(record)}: {_write_record(record)}")

    def _add_definitions(self, source: etree._Element, target: etree._Element, level: int) -> bool:
        """Append a list of terms and what they mean."""
        if folded_name(source) == "list" and not _is_glossary(source):
            return False
        listed = add_element(target, "dl")
        for child in source.iterchildren("*"):
            for part in child if folded_name(child) in _ENTRIES else (child,):
                name = folded_name(part)
                is_term = name in _TERMS
                if is_term or name in _DEFINITIONS:
                    holder = add_element(listed, "dt" if is_term else "dd")
                    self.convert_content(part, holder, level)
                elif name:
                    self.convert(part, listed, level)
        return True

    def _add_reference(self, source: etree._Element, target: etree._Element, _: int) -> bool:
        """Append a mark for a reference whose text a program makes of its goal."""
        if len(source) or plain_text(source) or not self.vocabulary.is_inline(source):
            return False
        goals = (attribute(source, name) for name in ("linkend", "href", "target", "keyref", "rid"))
        if goal := next(filter(None, goals), ""):
            add_element(target, MARK, f"ref: {goal}")
            self.losses.add("reference", "its text is made of what it points at", marked=True)
        return True

    def _add_entity(self, entity: etree._Entity, target: etree._Element) -> None:
        if text := name_entity(entity):
            append_text(target, text)
        else:
            add_element(target, MARK, f"entity: {entity.name}")
            self.losses.add("entity", "entities of a file aren't expanded", marked=True)

    def _add_formula(self, source: etree._Element, target: etree._Element, _: int) -> bool:
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
        is_block = attribute(source, "display") == "block"
        is_block = is_block or folded_name(source) in ("disp-formula", "equation")
        holder = add_element(target, "p") if is_block else target
        add_element(holder, "math").set("alttext", latex)
        label = next((e for e in source if local_name(e) == "label"), None)
        append_text(holder, f" {plain_text(label)}" if label is not None else "")
        return True

    def _add_image(self, source: etree._Element, target: etree._Element, _: int) -> bool:
        if not _is_picture(source):
            return False
        parent = source.getparent()
        near = [*source.iter(), *(parent if parent is not None else ())]
        described = (e for e in near if folded_name(e) in _DESCRIPTIONS)
        add_element(target, "img").set("alt", plain_text(next(described, None)) or "image")
        return True

    def _add_note(self, source: etree._Element, target: etree._Element, level: int) -> bool:
        """Append a note, behind its paragraph where the note stands in one."""
        is_inline = self.vocabulary.is_inline(source)
        if folded_name(source) == "note" and not is_inline:
            return False
        label = next((e for e in source if local_name(e) == "label"), None)
        text = plain_text(label)
        if is_inline:
            self._note_count += 1
            text = text or str(self._note_count)
            add_element(target, "sup", f"[{text}]")
            self._notes.append((text, source))
        else:
            self._write_note(text, source, target, level)
        return True

    def _add_alternatives(self, source: etree._Element, target: etree._Element, level: int) -> bool:
        table = (e for e in source if folded_name(e) in TABLES)
        chosen = next(table, source[0] if len(source) else None)
        if chosen is not None and local_name(chosen):
            self.convert(chosen, target, level)
        return True

    def _leave_out(self, source: etree._Element, _: etree._Element, __: int) -> bool:
        self.losses.add("index entry", "it stands in the index, not in the text")
        self.left.update(count_characters(read_texts(source)))
        return True

    def _add_comment(self, source: etree._Element, target: etree._Element, level: int) -> bool:
        self.convert_content(source, add_element(target, COMMENT), level)
        return True

    def _add_markup(self, source: etree._Element, target: etree._Element, _: int) -> bool:
        add_element(target, "div").extend(deepcopy(source))
        return True

    def _add_citation(self, source: etree._Element, target: etree._Element, _: int) -> bool:
        add_element(target, "p", f"{_join_parts(source)}.")
        return True

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

    def _add_table(self, source: etree._Element, target: etree._Element, level: int) -> bool:
        """Append a table of HTML, CALS, TEI or DITA; its titles stand above it."""
        if not _has_rows(source):
            return False
        infos = (e for e in source if folded_name(e) in ("info", "blockinfo"))
        parts = (*source, *chain.from_iterable(infos))
        first = [e for e in parts if folded_name(e) in (*TITLES, "caption")]
        for title in first:
            self.convert_content(title, add_element(target, "figcaption"), level)
        table = add_element(target, "table")
        part = table
        for row in source.iter():
            name = local_name(row)
            if name in ("thead", "tbody", "tfoot") and not _is_in_cell(row, source):
                part = add_element(table, name)
            elif name in ROWS and not _is_in_cell(row, source):
                line = add_element(part, "tr")
                is_head = name == "sthead" or attribute(row, "role") == "label"
                for cell in row:
                    self._add_cell(cell, line, is_head, level)
        return True

    def _add_cell(
        self, source: etree._Element, row: etree._Element, is_head: bool, level: int
    ) -> None:
        if folded_name(source) not in CELLS:
            return
        in_head = row.getparent().tag == "thead"
        is_head = is_head or in_head or folded_name(source) == "th"
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


_CONVERTERS: dict[str, Callable[[XmlConverter, etree._Element, etree._Element, int], bool]] = {
    **dict.fromkeys(_FORMULAS, XmlConverter._add_formula),
    **dict.fromkeys(TABLES, XmlConverter._add_table),
    **dict.fromkeys(_IMAGES, XmlConverter._add_image),
    **dict.fromkeys(NOTES, XmlConverter._add_note),
    **dict.fromkeys(_UNSEEN, XmlConverter._leave_out),
    **dict.fromkeys(_COMMENTS, XmlConverter._add_comment),
    **dict.fromkeys(_REFERENCES, XmlConverter._add_reference),
    **dict.fromkeys(_CITATIONS, XmlConverter._add_citation),
    **dict.fromkeys((*_DEFINITION_LISTS, "list"), XmlConverter._add_definitions),
    "alternatives": XmlConverter._add_alternatives,
    MARKUP: XmlConverter._add_markup,
}
"""What appends an element of a name, or returns False for one that is read by its content."""


def _strip_tex(text: str) -> str:
    """Return the formula of a TeX document without preamble and dollars."""
    before, begin, rest = text.partition(_TEX_BODY[0])
    body = rest.partition(_TEX_BODY[1])[0] if begin else before
    return collapse_whitespace(body).strip("$ ")


def _is_glossary(element: etree._Element) -> bool:
    """Return whether a list has labels beside its items, as TEI's glossaries have."""
    children = [folded_name(child) for child in element]
    return "label" in children and "item" in children


def _add_record_table(
    records: Sequence[etree._Element], names: Sequence[str], target: etree._Element
) -> None:
    table = add_element(target, "table")
    head = add_element(add_element(table, "thead"), "tr")
    for name in names:
        add_element(head, "th", name)
    for record in records:
        row = add_element(table, "tr")
        values = {local_name(part): plain_text(part) for part in record}
        for name in names:
            add_element(row, "td", values.get(name, ""))


def _write_record(record: etree._Element) -> str:
    """Return a record's values under their names: ``name: Holm; city: Kiel``."""
    values = ((local_name(e), plain_text(e)) for e in record.iter("*") if not len(e))
    return "; ".join(f"{name}: {text}" for name, text in values if text)


def _holds_title(element: etree._Element) -> bool:
    return any(folded_name(part) in TITLES for part in element.iter("*"))


def _holds_records(element: etree._Element) -> bool:
    """Return whether neighbours of one name with elements of their own stand in an element."""
    following = ((e, e.getnext()) for e in element.iter("*") if len(e))
    return any(after is not None and after.tag == e.tag for e, after in following)


def _is_flat(record: etree._Element) -> bool:
    names = [local_name(part) for part in record]
    return len(set(names)) == len(names) and not any(len(part) for part in record)


def _join_parts(element: etree._Element) -> str:
    """Return the parts of an entry in a bibliography, separated as people write them."""
    if has_text(element) or not len(element):
        return plain_text(element)
    gap = " " if folded_name(element) in _PEOPLE else ", "
    parts = (_join_parts(child).rstrip(".") for child in element if local_name(child))
    return gap.join(filter(None, parts))


def _is_picture(element: etree._Element) -> bool:
    """Return whether an element for an image holds no text but its description."""
    described = (plain_text(e) for e in element.iter("*") if folded_name(e) in _DESCRIPTIONS)
    return plain_text(element) in ("", *described)


def _has_rows(element: etree._Element) -> bool:
    return any(local_name(e) in ROWS for e in element.iter())


def _is_in_cell(row: etree._Element, table: etree._Element) -> bool:
    for parent in row.iterancestors():
        if parent is table:
            return False
        if local_name(parent) in CELLS:
            return True
    return False


def _is_value(element: etree._Element, name: str) -> bool:
    """Return whether an element is a short value under the element's name, not a sentence."""
    text = plain_text(element)
    is_leaf = not len(element) and name not in TEXT_NAMES | _NAMELESS
    return is_leaf and 0 < len(text) <= _LONGEST_VALUE and not text.endswith((".", "!", "?", "。"))
