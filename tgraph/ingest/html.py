"""HTML as readable text: blocks, headings and table rows, without scripts and navigation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser

from tgraph.errors import IngestError
from tgraph.ingest.base import Content, Limits, TextBuilder, one_line, storable, words
from tgraph.ingest.tables import table_lines
from tgraph.ingest.text import decode

_UNSEEN = words(
    "script style noscript template svg math canvas iframe object select button audio video"
)
_BOILERPLATE = frozenset(("nav", "footer"))
_BLOCKS = words(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption "
    "figure form header hgroup hr html legend main menu ol p pre section summary table ul"
)
_VOID = words("area base br col embed hr img input link meta param source track wbr")
# Elements whose end tag may be left out: where one is hidden, nobody can tell where it ends.
_OPEN_ENDED = _VOID | words("p li dt dd tr td th option html body head")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
_SPACES = re.compile(r"[ \t\n\r\f\v\xa0]+")
_SITE = re.compile(r" [|–—-] ")
_METADATA = {
    "author": "author",
    "article:author": "author",
    "dc.creator": "author",
    "date": "date",
    "dc.date": "date",
    "article:published_time": "date",
    "description": "description",
    "og:description": "description",
}


def read_html(data: bytes, name: str, limits: Limits) -> Content:
    """The readable text of a page of HTML, as one page.

    Paragraphs are parted by blank lines; list items and table rows are lines. Scripts, styles,
    hidden elements, navigation and footers are left out, the last two only if text remains.
    """
    match = _CHARSET.search(data[:4096])
    markup = decode(data, name, limits, match[1].decode("ascii") if match else "")
    for skipped in (_UNSEEN | _BOILERPLATE, _UNSEEN):
        parser = _Parser(skipped)
        parser.feed(markup)
        parser.close()
        content = parser.content()
        if content.pages[0].text.strip():
            return content
    raise IngestError(name, "The HTML shows no text; its content may be made by a script.")


class _Parser(HTMLParser):
    """Collects one block after another; ``_skipping`` is the element that is being left out."""

    def __init__(self, skipped: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self._skipped = skipped
        self._skipping: list[str] = []
        self._builder = TextBuilder()
        self._block: list[str] = []
        self._prefix = ""
        self._tight = False
        self._heading = 0
        self._preformatted = 0
        self._titles: list[str] | None = None
        self._title = ""
        self._metadata: dict[str, str] = {}
        self._tables: list[_Table] = []

    def content(self) -> Content:
        self._end_block()
        page = self._builder.page()
        title = self._title or (page.headings[0].text if page.headings else "")
        title = _without_site(title, [h.text for h in page.headings if h.level == 1])
        return Content((page,), title, self._metadata)

    # --- events ---

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping:
            if tag == self._skipping[0]:
                self._skipping.append(tag)
            return
        values = dict(attrs)
        if tag in self._skipped or ("hidden" in values and tag not in _OPEN_ENDED):
            self._end_block()
            self._skipping.append(tag)
        elif tag in ("meta", "html"):
            self._describe(tag, values)
        elif tag == "title":
            self._titles = []
        else:
            self._open(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            if tag == self._skipping[0]:
                self._skipping.pop()
            return
        if tag == "title" and self._titles is not None:
            self._title = self._title or one_line(storable("".join(self._titles)))
            self._titles = None
        else:
            self._close(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._skipped:
            self.handle_starttag(tag, attrs)

    def handle_data(self, data: str) -> None:
        if self._skipping:
            return
        if self._titles is not None:
            self._titles.append(data)
        elif self._preformatted:
            self._block.append(data)
        else:
            self._block.append(_SPACES.sub(" ", data))

    # --- structure ---

    def _open(self, tag: str) -> None:
        if tag == "br":
            self._block.append("\n")
        elif tag in ("table", "tr", "td", "th"):
            self._open_table(tag)
        elif tag == "li":
            self._end_block()
            self._prefix = "- "
        elif tag in _BLOCKS or _level(tag):
            self._end_block()
            self._heading = _level(tag)
            self._preformatted += tag == "pre"

    def _close(self, tag: str) -> None:
        if tag in ("table", "tr", "td", "th"):
            self._close_table(tag)
        elif tag in _BLOCKS or _level(tag) or tag == "li":
            self._end_block()
            self._tight = tag == "li"
            self._preformatted -= tag == "pre" and self._preformatted > 0

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
        if not self._tables:
            return
        if tag == "table":
            table = self._tables.pop()
            for index, line in enumerate(table.lines()):
                self._add(line, tight=index > 0)
        elif tag != "tr":
            self._tables[-1].in_cell = False

    def _end_block(self) -> None:
        text = self._finished()
        level, self._heading = self._heading, 0
        prefix, self._prefix = (self._prefix, "") if text or level else ("", self._prefix)
        if not text:
            return
        if level and not self._tables:
            self._builder.heading(one_line(text), level)
            self._tight = False
        else:
            self._add(prefix + text, tight=self._tight and prefix != "")
            self._tight = prefix != ""

    def _finished(self) -> str:
        """The collected block's text, its spaces collapsed, and an empty collection."""
        raw = storable("".join(self._block))
        self._block.clear()
        if self._preformatted:
            return raw.strip("\r\n").rstrip()
        lines = (" ".join(line.split(" ")).strip() for line in raw.split("\n"))
        return "\n".join(_SPACES.sub(" ", line) for line in lines if line)

    def _add(self, text: str, tight: bool) -> None:
        if self._tables and self._tables[-1].in_cell:
            self._tables[-1].add(text)
        elif text:
            self._builder.add(text, "\n" if tight else "\n\n")

    def _describe(self, tag: str, values: dict[str, str | None]) -> None:
        if tag == "html":
            key, value = "language", values.get("lang")
        else:
            label = values.get("name") or values.get("property") or ""
            key, value = _METADATA.get(label.lower(), ""), values.get("content")
        text = one_line(storable(value or ""))
        if key and text:
            self._metadata.setdefault(key, text)


class _Table:
    """The rows of the innermost open table: cells of text, and whether each is a heading cell."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, bool]]] = []
        self.in_cell = False

    def open_cell(self, heads: bool) -> None:
        if not self.rows:
            self.rows.append([])
        self.rows[-1].append(("", heads))
        self.in_cell = True

    def add(self, text: str) -> None:
        before, heads = self.rows[-1][-1]
        self.rows[-1][-1] = (f"{before} {text}".strip(), heads)

    def lines(self) -> list[str]:
        """A line for each row that holds text, with the columns' names if the table has them."""
        rows = [row for row in self.rows if any(text for text, _ in row)]
        if len(rows) > 1 and len(rows[0]) > 1 and all(heads for _, heads in rows[0]):
            return table_lines([[text for text, _ in row] for row in rows], headed=True)
        return [_row_line(row) for row in rows]


def _row_line(row: list[tuple[str, bool]]) -> str:
    """A row without column names: ``Head: value`` where only its first cell is a heading."""
    texts = [one_line(text) for text, _ in row if text]
    if len(texts) > 1 and row[0][1] and not row[1][1]:
        return f"{texts[0].rstrip(':')}: {' | '.join(texts[1:])}"
    return " | ".join(texts)


def _without_site(title: str, headings: Sequence[str]) -> str:
    """``Endurance`` for ``Endurance | Polar Voyages`` where a main heading says so."""
    for match in reversed(list(_SITE.finditer(title))):
        rest = title[: match.start()].strip()
        if any(heading.strip().lower() in rest.lower() for heading in headings if heading.strip()):
            title = rest
    return title


def _level(tag: str) -> int:
    return int(tag[1]) if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456" else 0
