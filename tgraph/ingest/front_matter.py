"""Front matter: YAML or TOML metadata preceding the text of a Markdown page."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from tgraph.foreign_bytes import parse_yaml
from tgraph.ingest.base import storable
from tgraph.ingest.text import header_fields
from tgraph.rendering import collapse_whitespace

_OPENING = re.compile(r"(---|\+\+\+)[ \t]*(?:\r\n?|\n)(?!\s)")
_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_KEYS = {key: key for key in ("title", "author", "date", "language", "description", "tags")}
_KEYS |= {"authors": "author", "lang": "language", "summary": "description", "keywords": "tags"}
_LISTED = frozenset(("author", "tags"))
# What is longer holds data, which nobody wrote to describe the page.
_LONGEST = 50_000
_CLOSINGS = {"---": ("---", "..."), "+++": ("+++",)}


class FrontMatter(NamedTuple):
    """Front matter source between the fences, in YAML or TOML, plus the offset of the page
    text."""

    source: str
    is_toml: bool
    end: int


def front_matter(text: str) -> FrontMatter | None:
    """Return a page's front matter; None if missing."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    for line in _LINE.finditer(text, opening.end()):
        if line[1].rstrip() in _CLOSINGS[opening[1]]:
            source = text[opening.end() : line.start()]
            return FrontMatter(source, opening[1] == "+++", line.end(1))
    return None


def read_fields(front: FrontMatter) -> dict[str, str]:
    """Return document metadata from front matter, under standard metadata keys.

    Several tags or authors are joined by commas. Broken front matter is read line by line."""
    fields: dict[str, str] = {}
    for key, value in _parse_values(front):
        name = _KEYS.get(key.lower(), "")
        if name and (text := _scalar_text(value, name in _LISTED)):
            fields.setdefault(name, text)
    return fields


def named_values(text: str) -> dict[str, str]:
    """Return all scalar or list values in a page's front matter, by lower-case key; empty
    without front matter."""
    front = front_matter(text)
    text_by_key: dict[str, str] = {}
    for key, value in _parse_values(front) if front is not None else ():
        if value_text := _scalar_text(value, True):
            text_by_key.setdefault(key.lower(), value_text)
    return text_by_key


def _parse_values(front: FrontMatter) -> Iterator[tuple[str, Any]]:
    import yaml

    values: Any = None
    if len(front.source) <= _LONGEST:
        try:
            values = tomllib.loads(front.source) if front.is_toml else parse_yaml(front.source)
        except (yaml.YAMLError, ValueError, RecursionError):
            values = None
    if not isinstance(values, Mapping):
        values = header_fields(front.source)
    for key, value in values.items():
        if isinstance(key, str):
            yield key, value


def _scalar_text(value: Any, listed: bool) -> str:
    """Return a scalar as text, or joined scalars if the key allows lists."""
    if isinstance(value, str):
        return collapse_whitespace(storable(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if listed and isinstance(value, list):
        return ", ".join(filter(None, (_scalar_text(item, False) for item in value)))
    return ""
