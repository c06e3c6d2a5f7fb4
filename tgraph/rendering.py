"""Rendering of values: a value names a form, and the renderer is loaded on demand.

Values belong to lower layers than renderers and never import renderers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING
from typing import Literal as Choice

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RENDERERS: dict[str, Callable[[object], str]] = {}
"""The function that draws values in a form. The package enters its own (``tgraph/__init__.py``), so
that this module imports no renderer."""


def render_value(value: object, form: str) -> str:
    """Return the value rendered in a form; raise ``TypeError`` if no renderer supports the
    value's type."""
    return RENDERERS[form](value)


# C0 without tab and line feed, DEL, C1, the bidirectional controls, and lone surrogates.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape_controls(text: str) -> str:
    """Return the text with terminal control characters shown as escapes."""
    return UNSAFE.sub(_escape_match, text.replace("\r\n", "\n"))


def _escape_match(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


Notation = Choice["u", "xml", "plain", "quoted"]
"""How a format writes a character as an escape: as JSON and Turtle do, as XML does, or not at all,
so that the escape is part of the text, with its backslash doubled where strings are quoted."""


def escape_serialised(written: str, notation: Notation) -> str:
    """Return serialised text, replacing terminal control characters by equivalent escapes of
    the format.

    In formats without escapes, carriage returns end lines."""
    return UNSAFE.sub(_ESCAPED[notation], written)


_ESCAPED: Mapping[Notation, Callable[[re.Match[str]], str]] = {
    "u": lambda match: f"\\u{ord(match[0]):04x}",
    "xml": lambda match: f"&#{ord(match[0])};",
    "plain": lambda match: match[0] if match[0] == "\r" else _escape_match(match),
    "quoted": lambda match: f"\\{_escape_match(match)}",
}


def as_cell(text: str) -> str:
    """Return the text as a table cell, protected from formula evaluation in spreadsheets.

    Text starting like a formula, but not a number, gets a leading apostrophe (OWASP, "CSV
    Injection")."""
    if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _NUMBER.fullmatch(text):
        return f"'{escape_controls(text)}"
    return escape_controls(text)


_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?%?")


def collapse_whitespace(text: str) -> str:
    """Return the text on a single line."""
    return " ".join(text.split())


def shorten_text(text: str, most: int | None) -> str:
    """Return the text; cut longer text with an ellipsis."""
    if most is None or len(text) <= most:
        return text
    return text[: max(most - 1, 0)].rstrip() + "…"


def one_line(text: str, most: int | None = None) -> str:
    """Return the text on a single line, escaped, cut with an ellipsis if too long."""
    return shorten_text(escape_controls(collapse_whitespace(text)), most)


def place_text(path: str, page: int | None, start: int, end: int) -> str:
    """Return a quotation's location in words."""
    on_page = f", page {page}" if page is not None else ""
    return f"{one_line(path)}{on_page}, characters {start}–{end}"


_MOST_IN_BRIEF = 80


def brief_repr(value: DataclassInstance) -> str:
    """Return a short ``repr`` for large values: empty fields omitted, texts cut.

    Collections and nested values are summarised by counts or kinds."""
    field_names = [field.name for field in fields(value) if field.repr]
    field_names = [field.name for field in fields(value) if field.repr]
    summaries = ((name, _in_brief(getattr(value, name))) for name in field_names)
    arguments = ", ".join(f"{name}={summary}" for name, summary in summaries if summary)
    return f"{type(value).__name__}({arguments})"


def _in_brief(value: object) -> str:
    if value is None or value == "" or (isinstance(value, Collection) and not value):
        return ""
    if isinstance(value, str):
        return repr(shorten_text(value, _MOST_IN_BRIEF))
    if isinstance(value, Collection):
        kinds = {type(item).__name__ for item in value}
        return f"<{len(value)} {kinds.pop() if len(kinds) == 1 else 'values'}>"
    return f"<{type(value).__name__}>" if is_dataclass(value) else repr(value)


def format_count(count: int, what: str, more: str = "") -> str:
    """Return a count with noun; ``more`` gives irregular plurals."""
    return f"{count:,} {what if count == 1 else more or f'{what}s'}"


def describe_confidence(confidence: float | None) -> str:
    """Return a phrase with the probability that the documents answer; "" without probability."""
    return "" if confidence is None else f"probability {confidence:.2f} that the documents answer"


def describe_short_confidence(confidence: float | None) -> str:
    """Return a phrase with the probability that a short answer is right; "" without
    probability."""
    return "" if confidence is None else f"probability {confidence:.2f} that this is right"
