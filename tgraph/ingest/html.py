"""HTML as readable text: blocks, headings and table rows, without scripts and navigation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, TextBuilder, split_words, storable
from tgraph.ingest.tables import table_lines
from tgraph.ingest.text import decode_text
from tgraph.rendering import collapse_whitespace

_UNSEEN = split_words(
    "script style noscript template svg math canvas iframe object select button audio video"
)
_BOILERPLATE = frozenset(("nav", "footer"))
_WHOLE = frozenset(("html", "head", "body"))
# Roles of ARIA and of EPUB's structural semantics; classes of MediaWiki.
_ASIDES = split_words(
    "navigation doc-toc doc-noteref doc-backlink noteref toc landmarks page-list pagebreak"
)
_MARKS = split_words("reference mw-editsection noprint")
_TABLE = frozenset(("table", "tr", "td", "th"))
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = split_words(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption "
    "figure form header hgroup hr html legend main menu ol p pre section summary ul"
).union(_LEVELS)
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=(?:\s*[\"'])?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
_SPACES = re.compile(r"[ \t\n\r\f\v\xa0]+")
_SITE = re.compile(r" [|–—-] ")
_METADATA = {
    **dict.fromkeys(("author", "article:author", "dc.creator"), "author"),
    **dict.fromkeys(("date", "dc.date", "article:published_time"), "date"),
    **dict.fromkeys(("description", "og:description"), "description"),
}


def read_html(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read the visible text of an HTML page as a single page.

    Paragraphs are separated by blank lines; list items and table rows are lines. Scripts,
    styles, hidden elements, navigation and footers are left out, the last two only if text
    remains. Raises ``IngestError`` if no text remains, and for elements nested deeper than the
    parser allows."""
    match = _CHARSET.search(data[:4096])
    root = _parse_tree(
        decode_text(data, name, limits, match[1].decode("ascii") if match else ""), name
    )
    if root is not None:
        for skipped in (_UNSEEN | _BOILERPLATE, _UNSEEN):
            content = _Walk(skipped).read_tree(root)
            if content.pages[0].text.strip():
                return content
    raise IngestError(name, "The HTML contains no text; a script may produce the content.")


def _parse_tree(markup: str, name: str) -> etree._Element | None:
    """Return the root element; None for pages lacking elements."""
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(markup.encode(), parser)
    except etree.XMLSyntaxError:
        root = None
    faults = {error.type_name for error in parser.error_log}
    if "ERR_NO_MEMORY" in faults:
        raise MemoryError
    if "ERR_RESOURCE_LIMIT" in faults:
        raise IngestError(
            name,
            "The elements of the HTML are nested too deeply.",
            "Close the elements of the HTML.",
        )
    return root


def _is_aside(element: etree._Element) -> bool:
    """Return whether an element is hidden, navigation, contents, or a reference or editing
    mark."""
    if "hidden" in element.attrib:
        return True
    roles = f"{element.get('role') or ''} {element.get('epub:type') or ''}".split()
    if not _ASIDES.isdisjoint(roles):
        return True
    classes = (element.get("class") or "").split()
    return not _MARKS.isdisjoint(classes) and element.tag in ("sup", "span")


class _Walk:
    """A non-recursive walk over elements in document order, collecting text blocks."""

    def __init__(self, skipped: frozenset[str]) -> None:
        self._skipped = skipped
        self._builder = TextBuilder()
        self._block: list[str] = []
        self._prefix = ""
        self._tight = False
        self._heading = 0
        self._preformatted = 0
        self._title = ""
        self._metadata: dict[str, str] = {}
        self._tables: list[_Table] = []

    def read_tree(self, root: etree._Element) -> FileContent:
        """Return readable content below the root element."""
        walk = etree.iterwalk(root, events=("start", "end"))
        outside = None
        for event, element in walk:
            if event == "start" and not self._enter_element(element):
                outside = element
                walk.skip_subtree()
            elif event == "end":
                if element is not outside:
                    self._close_tag(element.tag)
                self._add_text(element.tail)
        self._end_block()
        page = self._builder.page()
        title = self._title or (page.headings[0].text if page.headings else "")
        title = _without_site(title, [h.text for h in page.headings if h.level == 1])
        return FileContent((page,), title, self._metadata)

    def _enter_element(self, element: etree._Element) -> bool:
        """Register an element, and return whether its content is readable text."""
        tag = element.tag
        if tag in self._skipped or (element.attrib and tag not in _WHOLE and _is_aside(element)):
            self._end_block()
            return False
        if tag == "title":
            self._title = self._title or collapse_whitespace(storable("".join(element.itertext())))
            return False
        if tag in ("meta", "html"):
            self._read_metadata(element)
        self._open_tag(tag)
        self._add_text(element.text)
        return True

    def _add_text(self, text: str | None) -> None:
        if text:
            self._block.append(text if self._preformatted else _SPACES.sub(" ", text))

    def _open_tag(self, tag: str) -> None:
        if tag == "br":
            self._block.append("\n")
        elif tag in _TABLE:
            self._open_table(tag)
        elif tag == "li":
            self._end_block()
            self._prefix = "- "
        elif tag in _BLOCKS:
            self._end_block()
            self._heading = _LEVELS.get(tag, 0)
            self._preformatted += tag == "pre"

    def _close_tag(self, tag: str) -> None:
        if tag in _TABLE:
            self._close_table(tag)
        elif tag in _BLOCKS or tag == "li":
            self._end_block()
            self._tight = tag == "li"
            self._preformatted -= tag == "pre"

    def _open_table(self, tag: str) -> None:
        if tag == "table":
            self._end_block()
            self._tables.append(_Table())
        elif self._tables:
            self._end_block()
            table = self._tables[-1]
            if tag == "tr":
                table.rows.append([])
            else:
                table.open_cell(tag == "th")

    def _close_table(self, tag: str) -> None:
        self._end_block()
        if tag == "table":
            table = self._tables.pop()
            for index, line in enumerate(table.lines()):
                self._add_block(line, tight=index > 0)
        elif tag != "tr" and self._tables:
            self._tables[-1].in_cell = False

    def _end_block(self) -> None:
        text = self._finish_block()
        level, self._heading = self._heading, 0
        prefix, self._prefix = (self._prefix, "") if text or level else ("", self._prefix)
        if not text:
            return
        if level and not self._tables:
            self._builder.heading(collapse_whitespace(text), level)
            self._tight = False
        elif self._preformatted and not self._tables:
            self._builder.code(text)
            self._tight = False
        else:
            self._add_block(prefix + text, tight=self._tight and prefix != "")
            self._tight = prefix != ""

    def _finish_block(self) -> str:
        """The collected block's text, its spaces collapsed, and an empty collection."""
        raw = storable("".join(self._block))
        self._block.clear()
        if self._preformatted:
            return raw.strip("\r\n").rstrip()
        lines = (_SPACES.sub(" ", line).strip() for line in raw.split("\n"))
        return "\n".join(filter(None, lines))

    def _add_block(self, text: str, tight: bool) -> None:
        if self._tables and self._tables[-1].in_cell:
            self._tables[-1].add(text)
        elif text:
            self._builder.add(text, "\n" if tight else "\n\n")

    def _read_metadata(self, element: etree._Element) -> None:
        if element.tag == "html":
            key, value = "language", element.get("lang")
        else:
            label = element.get("name") or element.get("property") or ""
            key, value = _METADATA.get(label.lower(), ""), element.get("content")
        text = collapse_whitespace(storable(value or ""))
        if key and text:
            self._metadata.setdefault(key, text)


class _Table:
    """Rows of the innermost open table: cell texts, each with a heading flag."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[list[str], bool]]] = []
        self.in_cell = False

    def open_cell(self, heads: bool) -> None:
        if not self.rows:
            self.rows.append([])
        self.rows[-1].append(([], heads))
        self.in_cell = True

    def add(self, text: str) -> None:
        if text:
            self.rows[-1][-1][0].append(text)

    def lines(self) -> list[str]:
        """Return a line for each row with text, including column names if the table has any."""
        joined = ([(" ".join(texts), heads) for texts, heads in row] for row in self.rows)
        rows = [row for row in joined if any(text for text, _ in row)]
        if len(rows) > 1 and len(rows[0]) > 1 and all(heads for _, heads in rows[0]):
            return table_lines([[text for text, _ in row] for row in rows], headed=True)
        return [_row_line(row) for row in rows]


def _row_line(row: list[tuple[str, bool]]) -> str:
    """Return a row without column names, as ``Head: value`` if only the leading cell is a
    heading."""
    texts = [collapse_whitespace(text) for text, _ in row if text]
    if len(texts) > 1 and row[0][1] and not row[1][1]:
        return f"{texts[0].rstrip(':')}: {' | '.join(texts[1:])}"
    return " | ".join(texts)


def _without_site(title: str, headings: Sequence[str]) -> str:
    """``Endurance`` for ``Endurance | Polar Voyages`` where a main heading says so."""
    for match in reversed(list(_SITE.finditer(title))):
        page_title = title[: match.start()].strip()
        if any(
            heading.strip().lower() in page_title.lower() for heading in headings if heading.strip()
        ):
            title = page_title
    return title
