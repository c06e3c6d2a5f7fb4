"""AsciiDoc as plain blocks: headings, paragraphs, items, rows, code.

A reader of its blocks of our own: the libraries that read it are under the GPL (asciidoc-py),
alpha releases, or need Ruby. Nothing is included and no condition is evaluated; a macro is read as
what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, storable
from tgraph.ingest.blocks import PageBuilder
from tgraph.ingest.tables import add_grid
from tgraph.ingest.text import decode_text, metadata_key
from tgraph.model import ReadingReport
from tgraph.rendering import collapse_whitespace

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)$")
_ATTRIBUTE = re.compile(r":(!?[\w-]{1,60}!?):(?:[ \t]+(.*))?$")
_VERBATIM = re.compile(r"(-{4,}|\.{4,}|`{3}\w*)[ \t]*$")
_SKIPPED = re.compile(r"(/{4,}|\+{4,})[ \t]*$")
_FENCE = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--|'{3,}|<{3,}|-{3}|\*{3})[ \t]*$")
_TABLE = re.compile(r"[|,:!]={3,}[ \t]*$")
_BLOCK_LINE = re.compile(r"\[[^\[\]]{0,300}\][ \t]*$|\[\[[^\[\]]{1,100}\]\][ \t]*$")
_TITLE = re.compile(r"\.([^\s.].*)$")
_MACRO = re.compile(r"([\w-]{1,20})::(\S{0,500}?)\[(.{0,500})\][ \t]*$")
_ITEM = re.compile(
    r"[ \t]*(?:\*{1,5}|-|\.{1,5}|\d{1,3}\.|<(?:\d{1,2}|\.)>)[ \t]+(?:\[[ xX*]\][ \t]+)?(\S.*)$"
)
_TERM = re.compile(r"[ \t]*(\S.{0,200}?)(?:::{1,3}|;;)(?:[ \t]+(.*))?$")
_ADMONITION = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+")
_HEAD_OPTION = re.compile(r"%header|options=\"?[^\"]{0,40}header")
_COLUMNS = re.compile(r"cols=\"([^\"]{1,200})\"|cols=([\d*]{1,6})")
_CELL = re.compile(
    r"(?<!\\)(?:(?:\d{1,3}(?:\.\d{1,3})?[+*]|\.\d{1,3}\+)?[<^>.]{0,4}[aehlmsdv]?)?\|"
)
_INLINE = re.compile(
    r"\(\(\([^()]{0,200}\)\)\)|\[\[[^\[\]]{1,100}\]\]|(?:footnote|indexterm2?|anchor):\w{0,40}\[[^\[\]]{0,500}\]"
    r"|(?:link|xref|mailto|image|kbd|btn|menu|pass|stem|icon):(?P<target>[^\s\[\]]{0,500})\[(?P<label>[^\[\]]{0,500})\]"
    r"|(?P<url>https?://[^\s\[\]<>]{1,500})\[(?P<text>[^\[\]]{0,500})\]"
    r"|<<(?P<id>[^<>,]{1,200})(?:,(?P<shown>[^<>]{1,200}))?>>"
    r"|\{[\w-]{1,60}\}[^\s\[\]{}]{0,300}\[(?P<linked>[^\[\]]{1,500})\]"
    r"|\{(?P<name>[\w-]{1,60})\}"
)
_MARKED = re.compile(
    r"(?<![\w\\])(?P<mark>\*\*|__|``|\*|_|`|#|\+)(?P<inner>(?=\S).{1,300}?(?<=\S))(?P=mark)(?!\w)"
)
_CHARACTERS = {"nbsp": " ", "empty": "", "sp": " ", "amp": "&", "lt": "<", "gt": ">", "plus": "+"}
_LISTING = ("source", "listing", "literal", ",")


def read_asciidoc(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read AsciiDoc text as a single page of blocks, with headings and header fields."""
    reader = _AsciiDocReader(storable(decode_text(data, name, limits)))
    reader.read()
    page = reader.builder.page()
    if not page.text.strip():
        raise IngestError(name, "The AsciiDoc contains no text.")
    title = page.headings[0].text if page.headings else ""
    return FileContent((page,), title, reader.metadata, ReadingReport("AsciiDoc"))


class _AsciiDocReader:
    def __init__(self, source: str) -> None:
        self._lines = [line.rstrip() for line in re.split(r"\r\n?|\n", source)]
        self._at = 0
        self._style = ""
        self._attributes: dict[str, str] = {}
        self.builder = PageBuilder()
        self.metadata: dict[str, str] = {}

    def read(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line:
                self._at += 1
            elif not (self._read_delimited(line) or self._read_single_line(line)):
                self._read_text(line)

    # --- blocks between delimiters ------------------------------------------------------------

    def _read_delimited(self, line: str) -> bool:
        if match := _VERBATIM.match(line):
            self.builder.add_code(
                "\n".join(self._read_until("```" if line[0] == "`" else match[1]))
            )
        elif match := _SKIPPED.match(line):
            self._read_until(match[1])
        elif _TABLE.match(line):
            style, self._style = self._style, ""
            self._add_table(self._read_until(line), style)
        else:
            return False
        self._style = ""
        return True

    def _read_until(self, closing: str) -> Sequence[str]:
        """Return lines up to the closing delimiter or the end."""
        start = self._at + 1
        self._at = start
        while self._at < len(self._lines) and self._lines[self._at] != closing:
            self._at += 1
        lines = self._lines[start : self._at]
        self._at += 1
        return lines

    def _add_table(self, lines: Sequence[str], style: str) -> None:
        filled = [k for k, line in enumerate(lines) if line]
        cells = list(self._read_cells(lines))
        first = len(_CELL.findall(lines[filled[0]])) if filled else 0
        columns = max(_count_columns(style) or first, 1)
        implicit = bool(filled) and lines[filled[0] + 1 : filled[0] + 2] == [""]
        heads = 1 if _HEAD_OPTION.search(style) or (implicit and first == columns) else None
        rows = [cells[k : k + columns] for k in range(0, len(cells), columns)]
        add_grid(self.builder, rows, heads)

    def _read_cells(self, lines: Sequence[str]) -> Iterator[str]:
        cell: list[str] | None = None
        for line in lines:
            before, *parts = _CELL.split(line)
            if cell is not None:
                cell.append(before)
            for part in parts:
                if cell is not None:
                    yield self._render_inline(collapse_whitespace(" ".join(cell)))
                cell = [part.replace("\\|", "|")]
        if cell is not None:
            yield self._render_inline(collapse_whitespace(" ".join(cell)))

    # --- blocks of one line -------------------------------------------------------------------

    def _read_single_line(self, line: str) -> bool:
        """Handle a stand-alone line (heading, attribute, comment or macro) and return whether
        the line was one."""
        if line.startswith("//") or _FENCE.match(line) or line == "+":
            pass
        elif match := _HEADING.match(line):
            self._add_heading(len(match[1]), match[2])
        elif match := _ATTRIBUTE.match(line):
            self._set_attribute(match[1], match[2] or "")
        elif _BLOCK_LINE.match(line):
            self._style = line.strip("[] ")
        elif match := _MACRO.match(line):
            if match[1] == "image":
                self._add_text(match[3].partition(",")[0].strip('"'))
        elif match := _TITLE.match(line):
            self._add_text(match[1])
        else:
            return False
        self._at += 1
        return True

    def _add_heading(self, marks: int, text: str) -> None:
        is_title = marks == 1 and not self.builder.block_count
        self.builder.add_heading(self._render_inline(collapse_whitespace(text.rstrip("= "))), marks)
        if is_title:
            self._read_header()

    def _read_header(self) -> None:
        """Read header lines below the document title: author, and revision with date."""
        for key in ("author", "date"):
            line = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
            if not line or line.startswith((":", "//", "=")):
                return
            self._at += 1
            value = line.partition("<")[0] if key == "author" else line.rpartition(", ")[2]
            if value := collapse_whitespace(value.partition(":")[0] if key == "date" else value):
                self.metadata.setdefault(key, value)

    def _set_attribute(self, name: str, value: str) -> None:
        self._attributes[name] = value
        if value and (key := metadata_key(name)) and key != "title":
            self.metadata.setdefault(key, collapse_whitespace(value))

    # --- text ---------------------------------------------------------------------------------

    def _read_text(self, line: str) -> None:
        style, self._style = self._style, ""
        item, term = _ITEM.match(line), _TERM.match(line)
        if style.startswith(_LISTING) or (line[0] in " \t" and not item and not term):
            self.builder.add_code("\n".join(self._read_paragraph(line)))
        elif item:
            self.builder.add_item(
                self._render_lines("\n".join([item[1], *self._read_paragraph(line)[1:]]))
            )
        elif term:
            self._read_definition(term)
        else:
            self._add_text(_ADMONITION.sub("", "\n".join(self._read_paragraph(line)), count=1))

    def _read_definition(self, term: re.Match[str]) -> None:
        definition_lines = self._read_paragraph(term.string)[1:]
        if not term[2] and not definition_lines and self._lines[self._at + 1 : self._at + 2]:
            following = self._lines[self._at + 1]
            if not self._lines[self._at] and following and not self._opens_block(following):
                self._at += 1
                definition_lines = self._read_paragraph(following)
        definition = "\n".join(filter(None, (term[2], *definition_lines)))
        self.builder.add_item(
            self._render_lines(f"{term[1]}: {definition}" if definition else term[1])
        )

    def _read_paragraph(self, first: str) -> list[str]:
        """Return the first line with its continuation lines."""
        paragraph_lines = [first]
        self._at += 1
        while self._at < len(self._lines) and (line := self._lines[self._at]):
            if self._opens_block(line):
                break
            paragraph_lines.append(line)
            self._at += 1
        return paragraph_lines

    @staticmethod
    def _opens_block(line: str) -> bool:
        """Return whether a line ends the preceding paragraph."""
        kinds = (_ITEM, _TERM, _VERBATIM, _SKIPPED, _FENCE, _TABLE, _BLOCK_LINE)
        return line == "+" or line.startswith("//") or any(kind.match(line) for kind in kinds)

    def _add_text(self, text: str) -> None:
        self.builder.add_paragraph(self._render_lines(text))

    def _render_lines(self, text: str) -> str:
        lines = self._render_inline(text).split("\n")
        return "\n".join(line.removesuffix(" +") for line in lines)

    def _render_inline(self, text: str) -> str:
        rendered_text = _INLINE.sub(self._expand_macro, text)
        for _ in range(2):  # one mark within another
            rendered_text = _MARKED.sub(lambda match: match["inner"], rendered_text)
        return rendered_text.replace("\\", "")

    def _expand_macro(self, match: re.Match[str]) -> str:
        if match["name"] is not None:
            name = match["name"]
            return self._attributes.get(name, _CHARACTERS.get(name, match.group()))[:500]
        if match["linked"] is not None:
            return match["linked"].rstrip("^")
        if match["url"] is not None:
            return match["text"].rstrip("^") or match["url"]
        if match["id"] is not None:
            return (match["shown"] or match["id"]).strip()
        if match["label"] is not None:
            return match["label"].rstrip("^") or match["target"]
        return ""


def _count_columns(style: str) -> int:
    match = _COLUMNS.search(style)
    if match is None:
        return 0
    total = 0
    for part in (match[1] or match[2]).split(","):
        times = part.strip().partition("*")
        total += int(times[0]) if times[1] and times[0].isdigit() else 1
    return min(total, 1000)
