"""A quote as a reader sees it: runs of text with what is said of each.

What is quoted stays exact wherever it is data; this is for people. The kind of the segment that a
quote stands in says how it is read: code is shown as it stands, a row as its cells, and of anything
else in Markdown the mark-up inside a block is read as ingestion reads it: links are their words,
tags of HTML that only style words are not shown. Nothing is loaded, and other tags are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from typing import Literal as Choice

from tgraph.model import SegmentKind
from tgraph.rendering import flat, safe

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from rich.text import Text

Style = Choice["strong", "em", "code", "s", "link", "block"]
"""How a run looks; a block of code is ``block``, code within a line ``code``."""

LONGEST = 20_000
"""Characters of a text whose mark-up is read; a longer one is shown as it stands."""
BULLET = "• "
CELLS = " │ "

_SUFFIXES = (".md", ".markdown", ".mdown", ".mdx", ".qmd", ".rmd")
_RULE = re.compile(r"[\s|:\-+]*")
_OPENED: dict[str, Style] = {"strong_open": "strong", "em_open": "em", "s_open": "s"}
_CLOSED = frozenset(("strong_close", "em_close", "s_close"))
_REFERENCE = re.compile(r"\[([^\[\]]{1,400})\]\[([^\[\]]{0,400})\]")
_IN_A_QUOTE = re.compile(r"(?<=\S)(\r?\n) {0,3}(?:> ?)+")
_BREAK = re.compile(r"[ \t]*+(?:\r\n?|\n)\s*+")
_INDENT = re.compile(r"(?<=\n)[ \t]+")
_BETWEEN_CELLS = re.compile(r"</t[dh]\s*>\s*<t[dh]\b[^<>]*>", re.IGNORECASE)
_TERMINAL: dict[Style, str] = {
    "strong": "bold", "em": "italic", "code": "cyan", "s": "strike", "link": "underline",
    "block": "cyan",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextRun:
    """Characters of a text that look alike."""

    text: str
    styles: frozenset[Style] = frozenset()

    @property
    def shown(self) -> str:
        """The text without the line breaks and the indentation of its file; a run of a break alone
        is one that is meant, and so are those of code."""
        if self.text == "\n" or not self.styles.isdisjoint(("code", "block")):
            return self.text
        return _BREAK.sub(" ", self.text)


class ReadQuote(Protocol):
    """Characters of a document, and what they stand in."""

    @property
    def quote(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def segment_kind(self) -> SegmentKind | None: ...


def terminal_quote(words: ReadQuote, style: str = "") -> Text:
    """A quote as a terminal shows it, harmless: between quotation marks, a block of code without.
    ``style`` is rich's, beside the quote's own."""
    from rich.text import Text

    said = terminal_text(words, style)
    return said if is_code(words) else Text.assemble(("“", style), said, ("”", style))


def terminal_text(words: ReadQuote, style: str = "") -> Text:
    """As ``terminal_quote``, without quotation marks."""
    from rich.text import Text

    found = Text(style=style)
    for run in runs_of(words):
        found.append(safe(run.shown), " ".join(_TERMINAL[name] for name in sorted(run.styles)))
    return found


def plain_text(words: ReadQuote) -> str:
    """A quote on one line, its mark-up read and not shown."""
    return flat("".join(run.shown for run in runs_of(words)))


def is_code(words: ReadQuote) -> bool:
    """Whether a quote is a block of code, and nothing else."""
    return words.segment_kind == "code"


def runs_of(words: ReadQuote) -> list[TextRun]:
    """A quote as runs."""
    return runs(words.quote, words.path, words.segment_kind)


def runs(text: str, path: str, kind: SegmentKind | None = None) -> list[TextRun]:
    """A quote of the document at the path, out of a segment of that kind, None where it reaches
    beyond one. Of a document that is no Markdown it is one run, as it stands. Its lines are kept
    where they mean something: items of lists, rows of tables, code."""
    if kind == "code":
        return [TextRun(text, frozenset(("block",)))]
    if not path.lower().endswith(_SUFFIXES) or len(text) > LONGEST:
        return [TextRun(text)]
    if kind is not None:
        lines = text.strip().replace("\r\n", "\n")
        within = _INDENT.sub("", _IN_A_QUOTE.sub(r"\1", lines))
        found = _row(within) if kind == "row" else list(_inline(within))
        return found or [TextRun(text)]
    return _of_blocks(text)


def _of_blocks(text: str) -> list[TextRun]:
    found: list[TextRun] = []
    for block in _blocks(text):
        if found:
            found.append(TextRun("\n"))
        found += block
    return found or [TextRun(text)]


def _blocks(text: str) -> Iterator[list[TextRun]]:
    """The rows of tables one by one, and the blocks of what stands between them."""
    between: list[str] = []
    for line in text.split("\n"):
        if _is_row(line):
            yield from _prose("\n".join(between))
            between = []
            if not _RULE.fullmatch(line):
                yield _row(line)
        else:
            between.append(line)
    yield from _prose("\n".join(between))


def _is_row(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and bare.startswith("|") and bare.endswith("|")


def _row(line: str) -> list[TextRun]:
    """The cells of a row, apart; the bars or tags around it may not be quoted."""
    found: list[TextRun] = []
    for cell in _cells(_BETWEEN_CELLS.sub("|", line).strip().removeprefix("|").removesuffix("|")):
        if found:
            found.append(TextRun(CELLS))
        found += _inline(cell.strip())
    return found


def _cells(inner: str) -> list[str]:
    """What stands between the bars; one behind a backslash is part of a cell."""
    return [cell.replace("\0", "|") for cell in inner.replace("\\|", "\0").split("|")]


def _prose(text: str) -> Iterator[list[TextRun]]:
    """Its paragraphs, headings, items and code, a list of runs each."""
    marker = ""
    for token in _reader().parse(_without_quote_marks(text)):
        if token.type == "list_item_open":
            marker = f"{token.info}{token.markup} " if token.info else BULLET
        elif token.type in ("fence", "code_block"):
            yield [TextRun(token.content.rstrip("\n"), frozenset(("block",)))]
        elif token.type == "inline":
            yield [*([TextRun(marker)] if marker else []), *_inline(token.content)]
            marker = ""


def _without_quote_marks(text: str) -> str:
    """A text that begins inside a block quote has marks at its other lines only."""
    return text if "```" in text or "~~~" in text else _IN_A_QUOTE.sub(r"\1", text)


def _inline(text: str) -> Iterator[TextRun]:
    """The runs of a line; white space that only broke it is a space."""
    from tgraph.ingest.markdown_html import INLINE_TAGS
    from tgraph.ingest.markdown_inline import pieces
    from tgraph.ingest.reading_text import TAG

    open_: list[Style] = []
    for piece in pieces(text, _links(text)):
        if style := _OPENED.get(piece.kind):
            open_.append(style)
        elif piece.kind in _CLOSED:
            open_.pop()
        elif piece.text:
            link: tuple[Style, ...] = ("link",) if piece.link else ()
            code: tuple[Style, ...] = ("code",) if piece.kind == "code" else ()
            said = piece.text.replace("\n", " ")
            yield TextRun(said, frozenset((*open_, *link, *code)))
        elif (tag := TAG.match(piece.kind)) and (name := tag[2].lower()) not in INLINE_TAGS:
            yield TextRun(" " if name == "br" else piece.kind, frozenset(open_))


def _links(text: str) -> dict[str, Any]:
    """What its links refer to; that is defined elsewhere on the page, and never shown."""
    from markdown_it.common.utils import normalizeReference

    labels = (match[2] or match[1] for match in _REFERENCE.finditer(text))
    return {"references": {normalizeReference(each): {"href": "", "title": ""} for each in labels}}


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["reference", "html_block", "inline"])
