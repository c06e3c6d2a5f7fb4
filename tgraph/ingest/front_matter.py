"""Front matter: what a page of Markdown says of itself before its text, in YAML or TOML."""

from __future__ import annotations

import re
from typing import NamedTuple

_OPENING = re.compile(r"(---|\+\+\+)[ \t]*(?:\r\n?|\n)(?!\s)")
_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_CLOSINGS = {"---": ("---", "..."), "+++": ("+++",)}


class FrontMatter(NamedTuple):
    """What stands between the fences, in YAML or TOML, and where the page's text begins."""

    source: str
    is_toml: bool
    end: int


def front_matter(text: str) -> FrontMatter | None:
    """The front matter of a page, None where it has none."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    for line in _LINE.finditer(text, opening.end()):
        if line[1].rstrip() in _CLOSINGS[opening[1]]:
            source = text[opening.end() : line.start()]
            return FrontMatter(source, opening[1] == "+++", line.end(1))
    return None
