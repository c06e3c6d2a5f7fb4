"""How values are drawn: a value names a form, and what draws that is loaded when it is asked for.

Values stand below what draws them and never import it.
"""

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


def render(value: object, form: str) -> str:
    """The value in a form; ``TypeError`` where nothing draws such a value in it."""
    return RENDERERS[form](value)


# C0 without tab and line feed, DEL, C1, the bidirectional controls, and lone surrogates.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def safe(text: str) -> str:
    """The text with every character that could command a terminal shown as its escape."""
    return UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


Notation = Choice["u", "xml", "plain", "quoted"]
"""How a format writes a character as an escape: as JSON and Turtle do, as XML does, or not at all,
so that the escape is part of the text, with its backslash doubled where strings are quoted."""


def inert(written: str, notation: Notation) -> str:
    """What was written in a format, with every character that could command a terminal as an escape
    of the format, which means the same. Carriage returns end lines where there are no escapes."""
    return UNSAFE.sub(_ESCAPED[notation], written)


_ESCAPED: Mapping[Notation, Callable[[re.Match[str]], str]] = {
    "u": lambda match: f"\\u{ord(match[0]):04x}",
    "xml": lambda match: f"&#{ord(match[0])};",
    "plain": lambda match: match[0] if match[0] == "\r" else _escape(match),
    "quoted": lambda match: f"\\{_escape(match)}",
}


def as_cell(text: str) -> str:
    """The text as a cell of a table file, which no spreadsheet takes for a formula: what begins
    like one, and is no number, has an apostrophe before it (OWASP, "CSV Injection")."""
    if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _NUMBER.fullmatch(text):
        return f"'{safe(text)}"
    return safe(text)


_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?%?")


def flat(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def shortened(text: str, most: int | None) -> str:
    """The text, cut with an ellipsis where it is longer."""
    if most is None or len(text) <= most:
        return text
    return text[: max(most - 1, 0)].rstrip() + "…"


def one_line(text: str, most: int | None = None) -> str:
    """The text on one line, harmless, and cut with an ellipsis where it is too long."""
    return shortened(safe(flat(text)), most)


def place_text(path: str, page: int | None, start: int, end: int) -> str:
    """Where a quotation stands, in words."""
    on_page = f", page {page}" if page is not None else ""
    return f"{one_line(path)}{on_page}, characters {start}–{end}"


_MOST_IN_BRIEF = 80


def brief(value: DataclassInstance) -> str:
    """The ``repr`` of a value that holds much: what is empty is left out, texts are cut, and of
    what is in collections and other such values it says how many, or what they are."""
    shown = [each.name for each in fields(value) if each.repr]
    shown = [each.name for each in fields(value) if each.repr]
    told = ((name, _in_brief(getattr(value, name))) for name in shown)
    return f"{type(value).__name__}({', '.join(f'{name}={said}' for name, said in told if said)})"


def _in_brief(value: object) -> str:
    if value is None or value == "" or (isinstance(value, Collection) and not value):
        return ""
    if isinstance(value, str):
        return repr(shortened(value, _MOST_IN_BRIEF))
    if isinstance(value, Collection):
        kinds = {type(each).__name__ for each in value}
        return f"<{len(value)} {kinds.pop() if len(kinds) == 1 else 'values'}>"
    return f"<{type(value).__name__}>" if is_dataclass(value) else repr(value)


def many(count: int, what: str, more: str = "") -> str:
    """So many of a thing, in words; ``more`` is its plural where that is not with an s."""
    return f"{count:,} {what if count == 1 else more or f'{what}s'}"
