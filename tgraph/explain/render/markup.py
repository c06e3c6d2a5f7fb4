"""The Markdown of a quote as a reader sees it: runs of text with what is said of each.

What is quoted stays exact wherever it is data; this is for people. Links are shown as their words,
nothing is loaded, and HTML in a text is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from typing import Literal as Choice

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Style = Choice["strong", "em", "code", "s", "link"]

LONGEST = 20_000
"""Characters of a text whose mark-up is read; a longer one is shown as it stands."""
BULLET = "• "
CELLS = " │ "

_SUFFIXES = (".md", ".markdown", ".mdown", ".mdx", ".qmd", ".rmd")
_RULE = re.compile(r"[\s|:\-+]*")
_OPENED: dict[str, Style] = {"strong_open": "strong", "em_open": "em", "s_open": "s"}
_OPENED["link_open"] = "link"


@dataclass(frozen=True, slots=True)
class TextRun:
    """Characters of a text that look alike."""

    text: str
    styles: frozenset[Style] = frozenset()


def runs(text: str, path: str) -> list[TextRun]:
    """A quote of the document at the path; of one that is no Markdown it is one run, as it stands.
    Its lines are kept where they mean something: items of lists, rows of tables, code."""
    if not path.lower().endswith(_SUFFIXES) or len(text) > LONGEST:
        return [TextRun(text)]
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
    """The cells of a row, apart."""
    found: list[TextRun] = []
    for cell in _cells(line.strip()[1:-1]):
        if found:
            found.append(TextRun(CELLS))
        found += _inline(cell.strip())
    return found


def _cells(inner: str) -> list[str]:
    """What stands between the bars; one behind a backslash is part of a cell."""
    return [cell.replace("\0", "|") for cell in inner.replace("\\|", "\0").split("|")]


def _prose(text: str) -> Iterator[list[TextRun]]:
    """Its paragraphs, headings, items and code, a list of runs each."""
    bullet = ""
    for token in _reader().parse(text):
        if token.type == "list_item_open":
            bullet = BULLET
        elif token.type in ("fence", "code_block"):
            yield [TextRun(token.content.rstrip("\n"), frozenset(("code",)))]
        elif token.type == "inline":
            yield [*([TextRun(bullet)] if bullet else []), *_styled(token.children or [])]
            bullet = ""


def _inline(text: str) -> list[TextRun]:
    (token,) = _reader().parseInline(text)
    return _styled(token.children or [])


def _styled(tokens: Sequence[Token]) -> list[TextRun]:
    """The runs of a line; white space that only broke it is a space."""
    found: list[TextRun] = []
    open_: list[Style] = []
    for token in tokens:
        if token.type in _OPENED:
            open_.append(_OPENED[token.type])
        elif token.type.endswith("_close"):
            open_.pop()
        elif token.type in ("softbreak", "hardbreak"):
            found.append(TextRun(" ", frozenset(open_)))
        elif token.content:
            code: tuple[Style, ...] = ("code",) if token.type == "code_inline" else ()
            found.append(TextRun(token.content, frozenset((*open_, *code))))
    return found


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    return made.disable(["reference", "html_block", "html_inline"])
