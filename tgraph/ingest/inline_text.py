"""The text of a block that is under construction: superscripts, struck words, marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tgraph.ingest.base import split_words, storable
from tgraph.ingest.blocks import loss_mark
from tgraph.rendering import collapse_whitespace

SPACES = re.compile(r"[ \t\n\r\f\v\xa0]+")
STRUCK = "struck"
_EMPTY_LINES = re.compile(r"\n{2,}")
_UNITS = split_words(
    "m cm mm km dm nm µm μm pm ft in yd mi h s sec min ms kg g mg t l L ha mol K J kJ W kW N V A Pa"
    " kPa hPa MPa bar Hz cd rad sr C F eV sm"
)
_WORD = re.compile(r"(?<![^\W_])[^\W_]++$")
_EXPONENT = re.compile(r"[−–+-]?\d+(?:[./]\d+)?$")
_REFERENCE = re.compile(r"\d{1,3}(?:\s?[,–-]\s?\d{1,3})*$")
_TERM = re.compile(r"\([^()]*[-+*/=×·^\d−][^()]*\)$")
_SYMBOLS = re.compile(r"[−–+-]?[^\W\d_](?:[+−–-]\d+)?$")
_ORDINAL = split_words("st nd rd th d er re e ère ème o a º ª s")
_SHORT_REFERENCE = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of content that isn't text, such as an image."""

    kind: str
    description: str = ""

    def __str__(self) -> str:
        return loss_mark(self.kind, self.description)


class InlineText:
    """Collects the text of one block in pieces."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str | Mark, bool]] = []
        self._subscript_end = -1

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, text: str, *, struck: bool = False) -> None:
        """Add text; ``struck`` text is struck out by its author."""
        self._pieces.append((text, struck))

    def add_mark(self, kind: str, description: str = "") -> None:
        """Add a mark for content that isn't text."""
        self._pieces.append((Mark(kind, description), False))

    def close_superscript(self, start: int, *, is_reference: bool) -> None:
        """Write the pieces from number ``start`` on as a superscript, or as a note's reference."""
        before = "".join(str(piece) for piece, _ in self._pieces[max(0, start - 6) : start])
        if start == self._subscript_end and not is_reference:
            self._rewrite(start, lambda text: f"^{text}")  # both are of one symbol
        else:
            self._rewrite(start, lambda text: _write_superscript(before, text, is_reference))

    def close_subscript(self, start: int) -> None:
        """Write the pieces from number ``start`` on as a subscript."""
        before = "".join(str(piece) for piece, _ in self._pieces[max(0, start - 2) : start])
        self._rewrite(start, lambda text: _write_subscript(before, text))
        self._subscript_end = len(self._pieces)

    def _rewrite(self, start: int, write: Callable[[str], str]) -> None:
        inner = self._pieces[start:]
        if inner and all(isinstance(piece, str) for piece, _ in inner):
            whole = SPACES.sub(" ", "".join(str(piece) for piece, _ in inner))
            text, struck = whole.strip(), inner[0][1]
            lead, tail = whole[: whole.startswith(" ")], whole[len(whole) - whole.endswith(" ") :]
            self._pieces[start:] = [(lead + write(text) + tail, struck)] if text else []

    def take_lines(self) -> str:
        """Return the text as it is, and start anew."""
        text = "".join(str(piece) for piece, _ in self._pieces)
        self._pieces.clear()
        self._subscript_end = -1
        return storable(text).strip("\r\n").rstrip()

    def take(self) -> tuple[list[Mark], str, list[Mark]]:
        """Return marks at the beginning, the text, and marks at the end, and start anew.

        White space is collapsed; a line break stays, and several become an empty line. Struck words
        stand as ``[struck: words]``."""
        pieces = [piece for piece in self._pieces if isinstance(piece[0], Mark) or piece[0]]
        self._pieces.clear()
        self._subscript_end = -1
        first, last = 0, len(pieces)
        while first < last and _is_apart(pieces[first][0]):
            first += 1
        while last > first and _is_apart(pieces[last - 1][0]):
            last -= 1
        text = _join_pieces(pieces[first:last])
        lines = (SPACES.sub(" ", line).strip() for line in storable(text).split("\n"))
        text = _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip("\n")
        return (
            [piece for piece, _ in pieces[:first] if isinstance(piece, Mark)],
            text,
            [piece for piece, _ in pieces[last:] if isinstance(piece, Mark)],
        )


def _is_apart(piece: str | Mark) -> bool:
    return isinstance(piece, Mark) or not piece.strip()


def _join_pieces(pieces: Sequence[tuple[str | Mark, bool]]) -> str:
    joined: list[str] = []
    at = 0
    while at < len(pieces):
        run: list[str] = []
        while at < len(pieces) and pieces[at][1]:
            run.append(str(pieces[at][0]))
            at += 1
        words = "".join(run)
        if words.strip():
            before = joined[-1][-1:] if joined else " "
            after = str(pieces[at][0])[:1] if at < len(pieces) else " "
            lead = " " if words[0].isspace() or (before.isalnum() and not after.isalnum()) else ""
            tail = " " if words[-1].isspace() or (not before.isalnum() and after.isalnum()) else ""
            joined.append(f"{lead}{loss_mark(STRUCK, words)}{tail}")
        elif run:
            joined.append(words)
        if at < len(pieces):
            joined.append(str(pieces[at][0]))
            at += 1
    return "".join(joined)


def _write_superscript(before: str, text: str, is_reference: bool) -> str:
    if text.startswith("["):
        return text
    if is_reference:
        return f"[{text}]" if len(text) <= _SHORT_REFERENCE else text
    word = _WORD.search(before)
    base = word[0] if word else ""
    if _EXPONENT.match(text) or _SYMBOLS.match(text):
        has_value = base[-1:].isdigit() or len(base) == 1 or base in _UNITS
        if text in _ORDINAL and base.isdigit():
            return text
        if has_value or not text.isdigit() or _TERM.search(before):
            return f"^{text}" if base or before.endswith(")") else text
    if _REFERENCE.match(text) and (not before.strip() or not before[-1].isspace()):
        return f"[{text}]" if before.strip() else f"[{text}] "
    return text


def _write_subscript(before: str, text: str) -> str:
    word = _WORD.search(before)
    is_symbol = word is not None and len(word[0]) == 1
    return f"_{text}" if is_symbol and not text.isdigit() and len(text) < 4 else text


def split_struck(text: str) -> str | None:
    """Return the words of a text that is struck out entirely; None for another text."""
    head = f"[{STRUCK}: "
    inner = text[len(head) : -1]
    whole = text.startswith(head) and text.endswith("]") and "[" not in inner
    return collapse_whitespace(inner) if whole else None
