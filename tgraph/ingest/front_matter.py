"""Front matter: what a page of Markdown says of itself before its text, in YAML or TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from tgraph.ingest.base import one_line, storable
from tgraph.ingest.text import fields

_OPENING = re.compile(r"(---|\+\+\+)[ \t]*(?:\r\n?|\n)(?!\s)")
_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_KEYS = {key: key for key in ("title", "author", "date", "language", "description", "tags")}
_KEYS |= {"authors": "author", "lang": "language", "summary": "description", "keywords": "tags"}
_LISTED = frozenset(("author", "tags"))
# What is longer holds data, which nobody wrote to describe the page.
_LONGEST = 50_000
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


def described(front: FrontMatter) -> dict[str, str]:
    """What front matter says of the document, in the spelling of the metadata's keys.

    Several tags or authors are joined by commas. What is broken is read line by line.
    """
    found: dict[str, str] = {}
    for key, value in _values(front):
        name = _KEYS.get(key.lower(), "")
        if name and (text := _text(value, name in _LISTED)):
            found.setdefault(name, text)
    return found


def named_values(text: str) -> dict[str, str]:
    """Everything that the front matter of a page says in one value or a list of such, by its key
    in lower case; nothing where the page has none."""
    front = front_matter(text)
    found: dict[str, str] = {}
    for key, value in _values(front) if front is not None else ():
        if said := _text(value, True):
            found.setdefault(key.lower(), said)
    return found


def _yaml(source: str) -> Any:
    """The value of a text in YAML without aliases: a few lines of them unfold to gigabytes."""
    import yaml

    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(source, yaml.SafeLoader)):
        raise ValueError("aliases")
    return yaml.safe_load(source)


def _values(front: FrontMatter) -> Iterator[tuple[str, Any]]:
    import yaml

    values: Any = None
    if len(front.source) <= _LONGEST:
        try:
            values = tomllib.loads(front.source) if front.is_toml else _yaml(front.source)
        except (yaml.YAMLError, ValueError, RecursionError):
            values = None
    if not isinstance(values, Mapping):
        values = fields(front.source)
    for key, value in values.items():
        if isinstance(key, str):
            yield key, value


def _text(value: Any, listed: bool) -> str:
    """A scalar as text, or a list of scalars where the key may have one."""
    if isinstance(value, str):
        return one_line(storable(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if listed and isinstance(value, list):
        return ", ".join(filter(None, (_text(item, False) for item in value)))
    return ""
