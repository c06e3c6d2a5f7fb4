"""The XML of a Word document made plain: what Word computes or hides is done here, so that what is
left are paragraphs, runs, tables and notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from lxml import etree

from tgraph.ingest.blocks import LossList, count_visible
from tgraph.ingest.equations import OFFICE_MATH, convert_office_math
from tgraph.ingest.unit_counts import count_characters
from tgraph.ingest.word_drawings import (
    DRAWINGS,
    MARK_STYLE,
    DrawingReader,
    make_paragraph,
    make_run,
    set_style,
)
from tgraph.ingest.word_package import MC, A, W, WordPackage
from tgraph.ingest.word_styles import (
    BULLET,
    ListNumbers,
    StyleSheet,
    read_level,
    read_switch,
    read_value,
)
from tgraph.rendering import collapse_whitespace

HEADING_STYLE = "readingHeading"
ITEM_STYLE = "readingItem"
DISPLAY_STYLE = "readingDisplay"
COMMENT_STYLE = "readingComment"
NOTE_STYLE = "readingNote"
LABEL_STYLE = "readingLabel"
_TEXTS = (f"{W}t", f"{W}delText", f"{A}t")
_UNWRAPPED = (
    *(W + name for name in ("ins", "moveTo", "smartTag", "customXml", "hyperlink", "fldSimple")),
    *(W + name for name in ("sdt", "sdtContent", "dir", "bdo")),
    *(MC + name for name in ("AlternateContent", "Choice", "Fallback")),
)
_DROPPED = tuple(
    W + name
    for name in (
        *("sdtPr", "sdtEndPr", "customXmlPr", "smartTagPr", "proofErr", "bookmarkStart"),
        *("bookmarkEnd", "permStart", "permEnd", "lastRenderedPageBreak", "sectPr", "rubyPr"),
        *("commentRangeStart", "commentRangeEnd", "rPrChange", "pPrChange", "tblPrChange"),
        *("trPrChange", "tcPrChange", "sectPrChange", "tblGridChange", "numberingChange"),
        *("moveFromRangeStart", "moveFromRangeEnd", "moveToRangeStart", "moveToRangeEnd"),
    )
)
_REMOVED = {
    f"{W}del": ("deleted text", "a tracked change deleted it"),
    f"{W}moveFrom": ("moved text", "a tracked change moved it to another place"),
}
_PROPERTIES = frozenset(W + name for name in ("rPr", "trPr", "tcPr", "pPr", "numPr"))
_PAGE_FIELD = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES)\b", re.I)
_LONGEST_PAGE_WORDS = 15
_LONGEST_HEADING = 300
_DEEPEST_ITEM = 8


def simplify_package(package: WordPackage, losses: LossList) -> Counter[str]:
    """Make the bodies of a package plain, and return the characters that were left out.

    What was left out is added to ``losses``."""
    simplifier = _Simplifier(package, losses)
    for path, root in package.bodies():
        simplifier.simplify_body(path, root)
    simplifier.add_notes()
    simplifier.add_comments()
    simplifier.add_margins()
    return simplifier.left_out


class _Simplifier:
    """Makes the bodies of one package plain."""

    def __init__(self, package: WordPackage, losses: LossList) -> None:
        self.left_out: Counter[str] = Counter()
        self._package = package
        self._losses = losses
        self._styles = StyleSheet(package.styles)
        self._numbers = ListNumbers(package.numbering, self._styles)

    def simplify_body(self, path: str, root: etree._Element) -> None:
        """Make a body plain: what remains are paragraphs, runs, tables and notes."""
        _choose_alternates(root)
        self._accept_changes(root)
        if path in self._package.margins:
            self._drop_page_numbers(root)
        etree.strip_elements(root, *_DROPPED, with_tail=False)
        self._write_equations(root)
        drawings = DrawingReader(self._package, path, self._losses)
        for drawing in list(root.iter(*DRAWINGS)):
            drawings.read_drawing(drawing)
        etree.strip_tags(root, *_UNWRAPPED)
        self._drop_field_codes(root)
        for paragraph in root.iter(f"{W}p"):
            self._simplify_paragraph(paragraph)
        _simplify_tables(root)
        self._mark_documents(root)

    # --- text that isn't shown ----------------------------------------------------------------

    def _leave_out(self, element: etree._Element, kind: str, reason: str) -> None:
        """Count an element's text as left out, and remove the element."""
        texts = [text.text or "" for text in element.iter(*_TEXTS)]
        self.left_out += count_characters(texts)
        if kind and count_visible("".join(texts)):
            self._losses.add(kind, reason)
        parent = element.getparent()
        if parent is not None:
            parent.remove(element)

    def _accept_changes(self, root: etree._Element) -> None:
        for element in list(root.iter(*_REMOVED, f"{W}cellDel")):
            parent = element.getparent()
            if parent is None:
                continue
            kind, reason = _REMOVED.get(element.tag, _REMOVED[f"{W}del"])
            if parent.tag not in _PROPERTIES:
                self._leave_out(element, kind, reason)
            elif parent.tag in (f"{W}trPr", f"{W}tcPr") and parent.getparent() is not None:
                self._leave_out(parent.getparent(), kind, reason)
        for paragraph in reversed(list(root.iter(f"{W}p"))):
            _join_paragraph(paragraph)

    def _drop_field_codes(self, root: etree._Element) -> None:
        """Remove results of fields that stand inside the code of another field."""
        marks = list(root.iter(f"{W}fldChar", f"{W}t"))
        codes: Counter[int] = Counter()  # how many fields' codes begin (1) or end (-1) at a mark
        open_fields: list[tuple[int, int]] = []
        for place, element in enumerate(marks):
            kind = element.get(f"{W}fldCharType")
            if kind == "begin":
                open_fields.append((place, -1))
            elif kind == "separate" and open_fields:
                open_fields[-1] = (open_fields[-1][0], place)
            elif kind == "end" and open_fields:
                begin, separator = open_fields.pop()
                codes[begin] += 1
                codes[separator if separator >= 0 else place] -= 1
        depth = 0
        for place, element in enumerate(marks):
            depth += codes[place]
            if depth and element.tag == f"{W}t":
                self._leave_out(element, "", "")
        for element in list(root.iter(f"{W}fldChar")):
            if element.find(f"{W}ffData") is None:
                element.getparent().remove(element)

    def _drop_page_numbers(self, root: etree._Element) -> None:
        """Remove paragraphs of a header or footer that are no more than a page's number."""
        for paragraph in list(root.iter(f"{W}p")):
            codes = [field.get(f"{W}instr", "") for field in paragraph.iter(f"{W}fldSimple")]
            codes += [code.text or "" for code in paragraph.iter(f"{W}instrText")]
            size = count_visible("".join(text.text or "" for text in paragraph.iter(f"{W}t")))
            if any(map(_PAGE_FIELD.match, codes)) and size <= _LONGEST_PAGE_WORDS:
                self._leave_out(paragraph, "page number", "pages are numbered by the program")

    # --- equations and other content ----------------------------------------------------------

    def _write_equations(self, root: etree._Element) -> None:
        for equation in list(root.iter(f"{OFFICE_MATH}oMath")):
            parent = equation.getparent()
            latex = convert_office_math(equation)
            run = make_run(f"${latex}$") if latex else make_run("equation", MARK_STYLE)
            if not latex:
                self._losses.add("equation", "the equation can't be written", marked=True)
            parent.replace(equation, run)
        etree.strip_tags(root, f"{OFFICE_MATH}oMathPara")

    def _mark_documents(self, root: etree._Element) -> None:
        for chunk in list(root.iter(f"{W}altChunk")):
            self._losses.add("embedded document", "it is a file of its own", marked=True)
            paragraph = etree.Element(f"{W}p")
            paragraph.append(make_run("embedded document", MARK_STYLE))
            chunk.getparent().replace(chunk, paragraph)

    # --- paragraphs ---------------------------------------------------------------------------

    def _simplify_paragraph(self, paragraph: etree._Element) -> None:
        properties = paragraph.find(f"{W}pPr")
        name = read_value(properties, "pStyle")
        style = self._styles.find_style(name)
        for run in list(paragraph.iterchildren(f"{W}r")):
            if not _is_written(run):
                self._simplify_run(run, name)
        is_plain = not (name or properties is not None or style.level or style.list_number)
        if is_plain or (name and name.startswith("reading")):
            return
        level = read_level(properties, style.level)
        text = "".join(text.text or "" for text in paragraph.iter(f"{W}t"))
        label, depth = self._number_paragraph(paragraph, properties, name)
        number = "" if label == BULLET else label
        if properties is not None:
            paragraph.remove(properties)
        if not text.strip():
            paragraph.extend([make_run(number)] if number and _is_alone(paragraph) else [])
        elif style.is_contents:
            set_style(paragraph, DISPLAY_STYLE)
        elif level is not None and len(text) <= _LONGEST_HEADING:
            set_style(paragraph, f"{HEADING_STYLE}{min(level, 6)}")
            if number:
                _insert_run(paragraph, make_run(f"{number} "))
        elif label:
            set_style(paragraph, f"{ITEM_STYLE}{min(depth, _DEEPEST_ITEM)}")
            _insert_run(paragraph, make_run(label, LABEL_STYLE))

    def _number_paragraph(
        self, paragraph: etree._Element, properties: etree._Element | None, name: str | None
    ) -> tuple[str, int]:
        """Return label and level of a paragraph of a list, which counts also where the paragraph
        is empty; no label for other paragraphs."""
        style = self._styles.find_style(name)
        number = read_value(properties, "numPr/numId") or style.list_number
        depth = read_value(properties, "numPr/ilvl") or ""
        level = int(depth) if depth.isascii() and depth.isdigit() else style.list_level
        if not number or number == "0" or _is_covered(paragraph):
            return "", 0
        return self._numbers.number_paragraph(number, level, name)

    def _simplify_run(self, run: etree._Element, paragraph_style: str | None) -> None:
        """Remove a hidden run; give others what their styles say of them."""
        properties = run.find(f"{W}rPr")
        style = self._styles.find_style(paragraph_style)
        if character := read_value(properties, "rStyle"):
            style = style.with_style(self._styles.find_style(character))
        style = style.with_direct(properties)
        if style.is_hidden:
            self._leave_out(run, "hidden text", "the document hides it")
            return
        if properties is not None:
            run.remove(properties)
        if next(run.iterchildren(f"{W}t"), None) is None:
            _simplify_content(run)
            return
        plain = etree.Element(f"{W}rPr")
        if style.is_struck:
            etree.SubElement(plain, f"{W}strike")
        if style.script in ("superscript", "subscript"):
            etree.SubElement(plain, f"{W}vertAlign", {f"{W}val": style.script})
        run.insert(0, plain)
        _simplify_content(run)

    # --- notes, comments, headers and footers -------------------------------------------------

    def add_notes(self) -> None:
        """Number the notes in the order of their references, and put them at the end."""
        main = self._package.document.find(f"{W}body")
        notes = {
            (kind, note.get(f"{W}id", "")): note
            for kind, root in self._package.notes.items()
            for note in root.iterchildren(f"{W}{kind[:-1]}")
        }
        for number, reference in enumerate(
            list(self._package.document.iter(f"{W}footnoteReference", f"{W}endnoteReference")), 1
        ):
            kind = "footnotes" if reference.tag == f"{W}footnoteReference" else "endnotes"
            note = notes.pop((kind, reference.get(f"{W}id", "")), None)
            reference.tag = f"{W}t"
            reference.text = f"[{number}]"
            if note is not None and main is not None:
                main.extend(_note_blocks(note, str(number)))
        for (kind, _), note in notes.items():
            if kind != "comments" and main is not None:
                main.extend(_note_blocks(note, ""))

    def add_comments(self) -> None:
        """Move each comment behind the paragraph that the comment is about."""
        root = self._package.notes.get("comments")
        comments = (
            {}
            if root is None
            else {
                comment.get(f"{W}id", ""): comment for comment in root.iterchildren(f"{W}comment")
            }
        )
        for path, body in self._package.bodies():
            reader = DrawingReader(self._package, path, self._losses)
            for reference in list(body.iter(f"{W}commentReference")):
                comment = comments.pop(reference.get(f"{W}id", ""), None)
                if comment is not None:
                    reader.add_behind(reference, list(_comment_paragraphs(comment)))
                reference.getparent().remove(reference)
        main = self._package.document.find(f"{W}body")
        if main is not None:
            for comment in comments.values():
                main.extend(_comment_paragraphs(comment))

    def add_margins(self) -> None:
        """Put the text of headers and footers at the beginning and the end, each text once."""
        main = self._package.document.find(f"{W}body")
        if main is None:
            return
        seen: set[str] = set()
        at = 0
        for root in self._package.margins.values():
            is_header = root.tag == f"{W}hdr"
            for paragraph in list(root.iter(f"{W}p")):
                text = collapse_whitespace("".join(t.text or "" for t in paragraph.iter(f"{W}t")))
                if not text:
                    continue
                if text in seen:
                    self._leave_out(paragraph, "running head", "it stands once in the text")
                    continue
                seen.add(text)
                moved = make_paragraph("", DISPLAY_STYLE)
                moved.extend(paragraph.iterchildren(f"{W}r"))
                main.insert(at if is_header else len(main), moved)
                at += is_header


def _join_paragraph(paragraph: etree._Element) -> None:
    """Join a paragraph whose end a tracked change deleted with the next one."""
    marks = paragraph.find(f"{W}pPr/{W}rPr")
    if marks is None or all(marks.find(name) is None for name in _REMOVED):
        return
    following = paragraph.getnext()
    if following is None or following.tag != f"{W}p":
        return
    at = 0 if following.find(f"{W}pPr") is None else 1
    following[at:at] = [child for child in paragraph if child.tag != f"{W}pPr"]
    paragraph.getparent().remove(paragraph)


def _choose_alternates(root: etree._Element) -> None:
    """Keep of alternate contents the first, or the fallback where only that has text."""
    for alternate in list(root.iter(f"{MC}AlternateContent")):
        choices = list(alternate)
        shown = next((choice for choice in choices if _has_content(choice)), None)
        for choice in choices:
            if choice is not (shown if shown is not None else choices[0]):
                alternate.remove(choice)


def _has_content(element: etree._Element) -> bool:
    return next(element.iter(*_TEXTS, *DRAWINGS, f"{OFFICE_MATH}oMath"), None) is not None


def _simplify_content(run: etree._Element) -> None:
    """Write what mammoth doesn't read of a run as what it reads."""
    for element in list(run):
        if element.tag == f"{W}ruby":
            base, above = (
                "".join(
                    t.text or "" for part in element.iterfind(W + name) for t in part.iter(f"{W}t")
                )
                for name in ("rubyBase", "rt")
            )
            text = etree.Element(f"{W}t")
            text.text = f"{base}({above})" if above else base
            run.replace(element, text)
        elif element.tag in (f"{W}cr", f"{W}br"):
            element.tag = f"{W}br"
            element.attrib.clear()  # words at a break of pages or columns stand apart too
        elif element.tag == f"{W}ptab":
            element.tag = f"{W}tab"
        elif element.tag == f"{W}sym" and not re.fullmatch(
            "[0-9A-Fa-f]{1,6}", element.get(f"{W}char", "")
        ):
            run.remove(element)


def _is_written(run: etree._Element) -> bool:
    """Return whether a run was written by this module or ``word_drawings``."""
    return (read_value(run, "rPr/rStyle") or "").startswith("reading")


def _is_covered(paragraph: etree._Element) -> bool:
    """Return whether a paragraph is in a cell that a merged cell above it covers."""
    merge = paragraph.getparent().find(f"{W}tcPr/{W}vMerge")
    return merge is not None and merge.get(f"{W}val") != "restart"


def _is_alone(paragraph: etree._Element) -> bool:
    """Return whether a paragraph is in a table's cell that has no text."""
    cell = paragraph.getparent()
    return cell.tag == f"{W}tc" and not any(
        text.text and text.text.strip() for text in cell.iter(f"{W}t")
    )


def _insert_run(paragraph: etree._Element, run: etree._Element) -> None:
    """Insert a run before the others of a paragraph."""
    properties = paragraph.find(f"{W}pPr")
    paragraph.insert(0 if properties is None else 1, run)


def _simplify_tables(root: etree._Element) -> None:
    """Give rows that begin later the cells that are missing before; drop heads that are none."""
    for row in root.iter(f"{W}tr"):
        before = read_value(row, "trPr/gridBefore")
        if before and before.isascii() and before.isdigit() and 0 < int(before) < 100:
            properties = row.find(f"{W}trPr")
            cell = etree.Element(f"{W}tc")
            if int(before) > 1:
                shape = etree.SubElement(cell, f"{W}tcPr")
                etree.SubElement(shape, f"{W}gridSpan", {f"{W}val": before})
            etree.SubElement(cell, f"{W}p")
            row.insert(row.index(properties) + 1, cell)
        if read_switch(row, "trPr/tblHeader") is False:
            row.remove(row.find(f"{W}trPr"))
    for span in list(root.iter(f"{W}gridSpan")):
        value = span.get(f"{W}val", "")
        if not (value.isascii() and value.isdigit() and len(value) < 4):
            span.getparent().remove(span)


def _note_blocks(note: etree._Element, label: str) -> Iterator[etree._Element]:
    """Yield the blocks of a note, the first behind its label."""
    for block in list(note):
        if block.tag == f"{W}p":
            if not any(text.text and text.text.strip() for text in block.iter(f"{W}t")):
                continue
            set_style(block, NOTE_STYLE)
            _insert_run(block, make_run(label or " ", LABEL_STYLE))
            label = ""
        yield block


def _comment_paragraphs(comment: etree._Element) -> Iterator[etree._Element]:
    """Yield the paragraphs of a comment, the first behind its author's name."""
    author = collapse_whitespace(comment.get(f"{W}author") or "")
    lead = f"Comment by {author}: " if author else "Comment: "
    for paragraph in list(comment.iter(f"{W}p")):
        if any(text.text for text in paragraph.iter(f"{W}t")):
            set_style(paragraph, COMMENT_STYLE)
            if lead:
                _insert_run(paragraph, make_run(lead))
            lead = ""
            yield paragraph
