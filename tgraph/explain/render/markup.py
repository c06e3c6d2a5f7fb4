"""Quote markup for readers: text runs with their styles.

Quotes stay exact as data; this is for display. The kind of the quote's segment determines its
reading: code is shown unchanged, a row as cells, and other Markdown has its inline markup read
as during ingestion: links become their words, HTML tags used only for styling are hidden.
Nothing is loaded, and other tags are text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from typing import Literal as Choice

from tgraph.model import SegmentKind
from tgraph.rendering import collapse_whitespace, escape_controls

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
    def display_text(self) -> str:
        """Return display text without source line breaks and indentation; deliberate break runs
        and code stay unchanged."""
        if self.text == "\n" or not self.styles.isdisjoint(("code", "block")):
            return self.text
        return _BREAK.sub(" ", self.text)


class ReadQuote(Protocol):
    """A document quote with its path and segment kind."""

    @property
    def quote(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def segment_kind(self) -> SegmentKind | None: ...


def terminal_quote(words: ReadQuote, style: str = "") -> Text:
    """Return a quote safe for terminal display, in quotation marks unless it is a code block.

    ``style`` is a rich style added to the quote's own styles."""
    from rich.text import Text

    quote_text = terminal_text(words, style)
    return quote_text if is_code(words) else Text.assemble(("“", style), quote_text, ("”", style))


def terminal_text(words: ReadQuote, style: str = "") -> Text:
    """As ``terminal_quote``, without quotation marks."""
    from rich.text import Text

    styled_text = Text(style=style)
    for run in runs_of(words):
        styled_text.append(
            escape_controls(run.display_text),
            " ".join(_TERMINAL[name] for name in sorted(run.styles)),
        )
    return styled_text


def plain_text(words: ReadQuote) -> str:
    """Return a quote on one line, without markup."""
    return collapse_whitespace("".join(run.display_text for run in runs_of(words)))


def is_code(words: ReadQuote) -> bool:
    """Tell whether a quote is exactly a code block."""
    return words.segment_kind == "code"


def runs_of(words: ReadQuote) -> list[TextRun]:
    """Return text runs of a quote."""
    return parse_runs(words.quote, words.path, words.segment_kind)


def parse_runs(text: str, path: str, kind: SegmentKind | None = None) -> list[TextRun]:
    """Return text runs of a quote from the document at the path; ``kind`` is its segment kind,
    None for quotes across segments.

    A quote outside Markdown is a single unchanged run. Meaningful line breaks are kept: list
    items, table rows, code."""
    if kind == "code":
        return [TextRun(text, frozenset(("block",)))]
    if not path.lower().endswith(_SUFFIXES) or len(text) > LONGEST:
        return [TextRun(text)]
    if kind is not None:
        lines = text.strip().replace("\r\n", "\n")
        block_text = _INDENT.sub("", _IN_A_QUOTE.sub(r"\1", lines))
        text_runs = _row_runs(block_text) if kind == "row" else list(_inline_runs(block_text))
        return text_runs or [TextRun(text)]
    return _of_blocks(text)


def _of_blocks(text: str) -> list[TextRun]:
    text_runs: list[TextRun] = []
    for block in _split_blocks(text):
        if text_runs:
            text_runs.append(TextRun("\n"))
        text_runs += block
    return text_runs or [TextRun(text)]


def _split_blocks(text: str) -> Iterator[list[TextRun]]:
    """Yield text runs: table rows separately, prose between tables by block."""
    between: list[str] = []
    for line in text.split("\n"):
        if _is_row(line):
            yield from _prose_blocks("\n".join(between))
            between = []
            if not _RULE.fullmatch(line):
                yield _row_runs(line)
        else:
            between.append(line)
    yield from _prose_blocks("\n".join(between))


def _is_row(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and bare.startswith("|") and bare.endswith("|")


def _row_runs(line: str) -> list[TextRun]:
    """Return runs of row cells with separators; outer bars or tags may be missing from the
    quote."""
    cell_runs: list[TextRun] = []
    for cell in _split_cells(
        _BETWEEN_CELLS.sub("|", line).strip().removeprefix("|").removesuffix("|")
    ):
        if cell_runs:
            cell_runs.append(TextRun(CELLS))
        cell_runs += _inline_runs(cell.strip())
    return cell_runs


def _split_cells(inner: str) -> list[str]:
    """Return cell texts between bars; an escaped bar belongs to its cell."""
    return [cell.replace("\0", "|") for cell in inner.replace("\\|", "\0").split("|")]


def _prose_blocks(text: str) -> Iterator[list[TextRun]]:
    """Its paragraphs, headings, items and code, a list of runs each."""
    marker = ""
    for token in _markdown_parser().parse(_without_quote_marks(text)):
        if token.type == "list_item_open":
            marker = f"{token.info}{token.markup} " if token.info else BULLET
        elif token.type in ("fence", "code_block"):
            yield [TextRun(token.content.rstrip("\n"), frozenset(("block",)))]
        elif token.type == "inline":
            yield [*([TextRun(marker)] if marker else []), *_inline_runs(token.content)]
            marker = ""


def _without_quote_marks(text: str) -> str:
    """Return text without block quote marks at line starts; a quote's first line may lack the
    mark."""
    return text if "```" in text or "~~~" in text else _IN_A_QUOTE.sub(r"\1", text)


def _inline_runs(text: str) -> Iterator[TextRun]:
    """Yield inline runs; line breaks inside become spaces."""
    from tgraph.ingest.markdown_html import INLINE_TAGS
    from tgraph.ingest.markdown_inline import inline_pieces
    from tgraph.ingest.reading_text import TAG

    open_: list[Style] = []
    for piece in inline_pieces(text, _link_references(text), with_struck=True):
        if style := _OPENED.get(piece.kind):
            open_.append(style)
        elif piece.kind in _CLOSED:
            open_.pop()
        elif piece.text:
            link: tuple[Style, ...] = ("link",) if piece.link else ()
            code: tuple[Style, ...] = ("code",) if piece.kind == "code" else ()
            piece_text = piece.text.replace("\n", " ")
            yield TextRun(piece_text, frozenset((*open_, *link, *code)))
        elif (tag := TAG.match(piece.kind)) and (name := tag[2].lower()) not in INLINE_TAGS:
            yield TextRun(" " if name == "br" else piece.kind, frozenset(open_))


def _link_references(text: str) -> dict[str, Any]:
    """Return placeholder targets for reference links, which are defined elsewhere on the page
    and never shown."""
    from markdown_it.common.utils import normalizeReference

    labels = (match[2] or match[1] for match in _REFERENCE.finditer(text))
    return {
        "references": {normalizeReference(label): {"href": "", "title": ""} for label in labels}
    }


@cache
def _markdown_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["reference", "html_block", "inline"])
