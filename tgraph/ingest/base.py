"""Common input and output of all format readers, and limits that keep bad files harmless."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tgraph.errors import IngestError
from tgraph.model import Heading, Page, ReadingReport
from tgraph.rendering import collapse_whitespace

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits on document size and reading cost.

    ``file_bytes`` bounds the file, ``unpacked_bytes`` the unpacked size of an archive (DOCX),
    ``part_ratio`` the factor by which a large archive part may grow when unpacked (office
    documents rarely reach 50), and ``line_characters`` the longest line of text: prose has no
    lines of millions of characters, and text with such lines is data that would only cost time
    and money.

    ``memory`` (bytes), ``seconds`` and ``output_bytes`` bound the process parsing a file, and
    the output of the process; a document gives back at most ``part_ratio`` times its size, or
    ``small_output`` if that is more, and a large graph or table may give back ``items_ratio``
    times its size. ``recognise_text`` states whether pages that are images are read by
    text recognition (OCR)."""

    file_bytes: int = 200_000_000
    unpacked_bytes: int = 500_000_000
    line_characters: int = 10_000_000
    part_ratio: int = 200
    memory: int = 512 << 20
    seconds: float = 60.0
    output_bytes: int = 100_000_000
    small_output: int = 5_000_000
    items_ratio: int = 20
    recognise_text: bool = False


FENCE = "```"
DEFAULT_LIMITS = FileLimits()


@dataclass(frozen=True, slots=True)
class FileContent:
    """Content read from a file's bytes; ``title`` is empty if the format states no title."""

    pages: tuple[Page, ...]
    title: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    report: ReadingReport | None = None


FileReader = Callable[[bytes, str, FileLimits], FileContent]


@dataclass(frozen=True, slots=True)
class Loader:
    """What reads the documents of a media type: the suffixes of their files (``.log``), and a
    function at the top of its module, which runs in the process of parsers."""

    suffixes: tuple[str, ...]
    read: FileReader


def storable(text: str) -> str:
    """Rendered text with what no store can hold (NUL, lone surrogates) replaced by U+FFFD."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def split_words(text: str) -> frozenset[str]:
    """Return a text's distinct words."""
    return frozenset(text.split())


def shorten_line(text: str, most: int) -> str:
    """Shorten text to a single line of ``most`` characters, cutting between words if possible."""
    line = collapse_whitespace(text[: 2 * most])
    if len(line) <= most:
        return line
    return f"{line[:most].rpartition(' ')[0] or line[:most]} …"


def error_reason(error: Exception) -> str:
    """Return a library's error message as a single line."""
    return collapse_whitespace(str(error)).rstrip(".") or type(error).__name__


def check_lines(text: str, name: str, limits: FileLimits) -> None:
    """Raise ``IngestError`` for a text with a line beyond the limit, at negligible cost."""
    line_limit, start = limits.line_characters, 0
    while len(text) - start > line_limit:
        window = start, start + line_limit + 1
        start = max(text.rfind("\n", *window), text.rfind("\r", *window)) + 1
        if not start:
            raise IngestError(
                name,
                f"The text has a line of more than {line_limit:,} characters, so it is data,"
                " not prose.",
                "Break the lines (JSON: convert the file to JSON Lines), or leave out the file.",
            )


def write_number(number: int, style: str) -> str:
    """Return an item's number in a style of HTML (``1``, ``a``, ``A``, ``i``, ``I``)."""
    if style in ("a", "A") and number > 0:
        letters = ""
        while number:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord(style) + rest) + letters
        return letters
    if style in ("i", "I") and 0 < number < 4000:
        roman = ""
        for value, sign in _ROMAN_DIGITS:
            roman += sign * (number // value)
            number %= value
        return roman if style == "I" else roman.lower()
    return str(number)


_ROMAN_DIGITS = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


class TextBuilder:
    """A builder joining blocks into a text, recording heading offsets."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []

    def add(self, block: str, separator: str = "\n\n") -> None:
        """Append a block; ``separator`` separates the block from preceding text."""
        lead = separator if self._parts else ""
        self._parts.append(lead + block)
        self._length += len(lead) + len(block)

    def mark(self, text: str, level: int, separator: str = "\n\n") -> None:
        """Record a heading starting where the following block starts, adding no text."""
        start = self._length + (len(separator) if self._parts else 0)
        self._headings.append(Heading(text, level, start))

    def page(self, number: int | None = None) -> Page:
        return Page(number, "".join(self._parts), tuple(self._headings))
