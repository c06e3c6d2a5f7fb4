"""Which elements of an XML document stand in running text, by its vocabulary and its own usage."""

from __future__ import annotations

from collections import Counter

from lxml import etree

from tgraph.ingest.base import split_words
from tgraph.rendering import collapse_whitespace

LISTS = {
    **dict.fromkeys(
        split_words("list itemizedlist simplelist ul sl listbibl listperson listplace"), "ul"
    ),
    **dict.fromkeys(split_words("orderedlist procedure ol steps substeps"), "ol"),
}
ITEMS = split_words("list-item listitem item li sli step substep member")
TITLES = split_words(
    "title head heading subtitle bridgehead h h1 h2 h3 h4 h5 h6"
    " invention-title title-of-invention b540"
)
CODE = split_words(
    "preformat programlisting screen literallayout synopsis pre eg codeblock msgblock lines"
)
PARAGRAPHS = split_words("p para simpara ab l v line verse-line claim-text clmstep")
TABLES = split_words("table tgroup oasis-table informaltable simpletable")
ROWS = split_words("tr row strow sthead")
CELLS = split_words("td th entry cell stentry")
NOTES = split_words("fn footnote note")
BLOCKS = (
    ITEMS | TITLES | CODE | PARAGRAPHS | TABLES | ROWS | CELLS | LISTS.keys()
    | split_words(
        "sec section chapter div fig figure table-wrap disp-formula disp-quote blockquote abstract"
        " boxed-text caption variablelist def-list supplementary-material verse-group speech lg sp"
        " mediaobject informalfigure informalexample example sidebar warning caution important tip"
        " qandaset glosslist calloutlist segmentedlist epigraph fig-group statement dl lq tables"
        " floatingtext table-cwu paragraph dlentry plentry parml varlistentry refsection"
        " simplesect note shortdesc"
    )
)  # fmt: skip
TEXT_NAMES = ITEMS | CODE | PARAGRAPHS | TABLES | ROWS | CELLS | NOTES | LISTS.keys()
"""Names of elements that hold text or blocks, never a value under the element's name."""
FORMATS = {
    **dict.fromkeys(split_words("sup superscript sp-sup"), "sup"),
    **dict.fromkeys(split_words("sub subscript sb inf"), "sub"),
    **dict.fromkeys(split_words("strike line-through del"), "s"),
    **dict.fromkeys(split_words("br break lb sbr"), "br"),
    **dict.fromkeys(split_words("q quote"), "q"),
}
"""Elements of running text, and what they are in HTML."""
_FORMATTING = FORMATS.keys() | split_words(
    "b bold i italic it u underline o em emph emphasis strong hi hil highlight sc smallcaps tt ph"
    " monospace ital citetitle xref link ulink ref ptr"
)
_TEXTS = PARAGRAPHS | TITLES | CODE | split_words("dt pt glossterm speaker cmd")
_LEAST_WORDS = 4
_LONGEST_FIELD = 120
_LONGEST_RECORD = 400
_SENTENCE_ENDS = (".", "!", "?", "。", ":", ";")
_WRAPPERS = {"PATDOC": ("{*}PDAT", "{*}STEXT", "{*}PTEXT")}
"""By the root's name, elements that wrap every piece of text and mean nothing (ST.32)."""


def local_name(element: etree._Element) -> str:
    """Return an element's name without its namespace; empty for comments, instructions and
    entities."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def folded_name(element: etree._Element) -> str:
    """Return an element's local name in lower case, as the lists of this module have it."""
    return local_name(element).lower()


def has_text(element: etree._Element) -> bool:
    """Return whether an element holds text of its own, beside that of its children."""
    if element.text and element.text.strip():
        return True
    return any(
        isinstance(child, etree._Entity) or (child.tail is not None and child.tail.strip())
        for child in element
    )


def holds_text(element: etree._Element) -> bool:
    """Return whether an element holds text by its name: a paragraph, a title, an item, code."""
    name = folded_name(element)
    return name in _TEXTS or name in TEXT_NAMES


def remove_wrappers(root: etree._Element) -> None:
    """Put the text of elements that wrap every piece of text where they stand."""
    if wrappers := _WRAPPERS.get(local_name(root)):
        etree.strip_tags(root, *wrappers)
        for superscript in root.iter("{*}SP"):
            superscript.tag = "sup"


class XmlVocabulary:
    """Tells elements that stand in running text from blocks.

    An element that holds text beside elements is running text, and so is what stands in running
    text, down to its leaves. Blocks in running text are those with the name of a block in JATS,
    DocBook, TEI, DITA or the patents of the USPTO, and those that the document itself sets apart:
    an element whose name nowhere adjoins text on its line, and that holds a sentence or lines of
    elements. The latter are counted in ``doubtful``."""

    def __init__(self, root: etree._Element) -> None:
        self.doubtful: Counter[str] = Counter()
        self._is_tei = folded_name(root).startswith("tei")
        self._adjoining = {
            local_name(e) for e in root.iter("*") if e is not root and _adjoins_text(e)
        }
        self._running: dict[etree._Element, bool] = {}
        self._apart: dict[etree._Element, bool] = {}
        self._bare_parent: etree._Element | None = None

    def is_inline(self, element: etree._Element) -> bool:
        """Return whether an element stands in running text and isn't a block there."""
        parent = element.getparent()
        if parent is None or not self.is_running(parent):
            return False
        name = folded_name(element)
        if name == "note":
            return self._is_tei
        if name in BLOCKS:
            return name in TITLES or (name in PARAGRAPHS and self._fills_phrase(parent))
        return not self._stands_apart(element, name, parent)

    def is_running(self, element: etree._Element) -> bool:
        """Return whether an element's content is one running text."""
        known = self._running.get(element)
        if known is None:
            known = self._running[element] = self._reads_on(element)
        return known

    def _reads_on(self, element: etree._Element) -> bool:
        name = folded_name(element)
        if name in LISTS or name in TABLES or name in ROWS:
            return False
        if name in _TEXTS or has_text(element):
            return True
        if self.is_inline(element):
            return True
        children = [child for child in element if local_name(child)]
        is_one_line = not any("\n" in (child.tail or "") for child in children[:-1])
        return bool(children) and is_one_line and all(map(self._is_known_inline, children))

    def _is_known_inline(self, element: etree._Element) -> bool:
        name = folded_name(element)
        is_phrase = name not in BLOCKS and name not in NOTES
        return name in _FORMATTING or (is_phrase and local_name(element) in self._adjoining)

    def _fills_phrase(self, parent: etree._Element) -> bool:
        """Return whether an element in running text holds one element and nothing beside."""
        is_phrase = folded_name(parent) not in NOTES and self.is_inline(parent)
        return is_phrase and len(parent) == 1 and not has_text(parent)

    def _stands_apart(self, element: etree._Element, name: str, parent: etree._Element) -> bool:
        if name in _FORMATTING or name in NOTES or local_name(element) in self._adjoining:
            return False
        known = self._apart.get(element)
        if known is None:
            known = self._apart[element] = has_text(parent) and _looks_apart(element)
            if known:
                self.doubtful[local_name(element)] += 1
        return known

    def holds_values(self, element: etree._Element) -> bool:
        """Return whether an element holds nothing but values under names, at any depth."""
        parts = list(element.iterdescendants("*"))
        return len(parts) > 1 and not any(
            folded_name(part) in TEXT_NAMES or (len(part) and self.is_running(part))
            for part in (element, *parts)
        )

    def is_record(self, element: etree._Element) -> bool:
        """Return whether an element holds nothing but short values under names, at any depth."""
        if not self.holds_values(element):
            return False
        lengths = [len(collapse_whitespace(e.text or "")) for e in element.iter("*") if not len(e)]
        return max(lengths) <= _LONGEST_FIELD and 0 < sum(lengths) <= _LONGEST_RECORD

    def adjoins_part(self, element: etree._Element) -> bool:
        """Return whether an element follows another without white space where nothing but elements
        stands, as surname and given name do."""
        before, parent = element.getprevious(), element.getparent()
        if before is None or before.tail or not local_name(before) or parent is None:
            return False
        formatting = folded_name(element) in _FORMATTING or folded_name(before) in _FORMATTING
        if formatting or not self.is_inline(element):
            return False
        if self._bare_parent is not parent:
            if has_text(parent):
                return False
            self._bare_parent = parent
        return True


def _adjoins_text(element: etree._Element) -> bool:
    """Return whether text stands before or behind an element on the same line."""
    before = element.getprevious()
    parent = element.getparent()
    lead = (parent.text if before is None else before.tail) or ""
    tail = element.tail or ""
    is_led = bool(lead.strip()) and "\n" not in lead[len(lead.rstrip()) :]
    return is_led or (bool(tail.strip()) and "\n" not in tail[: len(tail) - len(tail.lstrip())])


def _looks_apart(element: etree._Element) -> bool:
    """Return whether an element holds a sentence, or lines of elements."""
    children = [child for child in element if local_name(child)]
    if len(children) > 1 and not has_text(element):
        return all("\n" in (child.tail or "") for child in children)
    text = collapse_whitespace("".join(map(str, element.itertext())))
    return text.endswith(_SENTENCE_ENDS) and len(text.split()) >= _LEAST_WORDS
