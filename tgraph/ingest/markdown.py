"""Markdown: text that stays as it is, with its headings and its front matter's fields.

A parser of CommonMark finds the headings. ``markdown-it-py`` keeps to the standard and has no
inputs of quadratic cost at the level of blocks, where tree-sitter's grammar promises neither; it
knows the lines of a block, and from these follow the code points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tgraph.ingest.base import FileContent, FileLimits, one_line
from tgraph.ingest.text import decode, fields
from tgraph.model import Heading, Page

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE | re.DOTALL
)
_LINE = re.compile(r"(?:\A|\r\n?|\n)[ \t]*")
# What is longer is no heading, and no time is spent on the mark-up in it.
_LONGEST = 400


def read_markdown(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Markdown as one page of unchanged text, with its headings and its front matter's fields."""
    text = decode(data, name, limits)
    front = _FRONT_MATTER.match(text)
    metadata = fields(front[1]) if front else {}
    headings = tuple(markdown_headings(text, front.end() if front else 0))
    title = metadata.pop("title", "") or (headings[0].text if headings else "")
    return FileContent((Page(None, text, headings),), title, metadata)


def markdown_headings(text: str, start: int = 0) -> Iterator[Heading]:
    """The ATX and setext headings from ``start`` on, in order (CommonMark 0.31, 4.2 and 4.3).

    ``start`` of each is where its line's text begins. What stands in code, HTML, quotes and lists
    heads no section and is left out.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").disable("inline")
    links: dict[str, Any] = {}
    lines = [start + line.end() for line in _LINE.finditer(text[start:])]
    for opening, inline in pairwise(parser.parse(text[start:], links)):
        if opening.type != "heading_open" or opening.level or not opening.map:
            continue
        if len(inline.content) <= _LONGEST:
            parts: list[Token] = []
            parser.inline.parse(inline.content, parser, links, parts)
            if shown := one_line("".join(map(_shown, parts))):
                yield Heading(shown, int(opening.tag[1]), lines[opening.map[0]])


def _shown(token: Token) -> str:
    """The text that a piece of mark-up shows."""
    if token.type == "image":
        return "".join(map(_shown, token.children or ()))
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "" if token.type == "html_inline" else token.content
