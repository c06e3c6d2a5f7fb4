"""What every format's reader takes and gives, and the limits that keep a bad file harmless."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tgraph.errors import IngestError
from tgraph.model import Heading, Page

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How large a document may be, and what reading it may cost.

    ``file_bytes`` bounds the file, ``unpacked_bytes`` what an archive (DOCX) unpacks to,
    ``part_ratio`` how many times its size a large part of it may unpack to (office documents
    rarely reach 50), and ``line_characters`` the longest line of text: prose has none of millions
    of characters, and whatever has is data that would only cost time and money.

    ``memory`` (bytes), ``seconds`` and ``output_bytes`` bound the process that parses a file, and
    what it gives back.
    """

    file_bytes: int = 200_000_000
    unpacked_bytes: int = 500_000_000
    line_characters: int = 10_000_000
    part_ratio: int = 200
    memory: int = 512 << 20
    seconds: float = 60.0
    output_bytes: int = 100_000_000


FENCE = "```"
_LOWEST = 6
DEFAULT_LIMITS = FileLimits()


@dataclass(frozen=True, slots=True)
class FileContent:
    """What a reader found in a file's bytes; ``title`` is empty where the format states none."""

    pages: tuple[Page, ...]
    title: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


Reader = Callable[[bytes, str, FileLimits], FileContent]


@dataclass(frozen=True, slots=True)
class Loader:
    """What reads the documents of a media type: the suffixes of their files (``.log``), and a
    function at the top of its module, which runs in the process of parsers."""

    suffixes: tuple[str, ...]
    read: Reader


def storable(text: str) -> str:
    """Rendered text with what no store can hold (NUL, lone surrogates) replaced by U+FFFD."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def words(text: str) -> frozenset[str]:
    """The words of a list that is written as a text."""
    return frozenset(text.split())


def one_line(text: str) -> str:
    """The text with every run of white space made one space, trimmed."""
    return " ".join(text.split())


def shorten(text: str, most: int) -> str:
    """The text on one line, at most so many characters of it, cut between words where it can be."""
    line = one_line(text[: 2 * most])
    if len(line) <= most:
        return line
    return f"{line[:most].rpartition(' ')[0] or line[:most]} …"


def reason(error: Exception) -> str:
    """What a library says of a file, on one line."""
    return one_line(str(error)).rstrip(".") or type(error).__name__


def check_lines(text: str, name: str, limits: FileLimits) -> None:
    """Raise ``IngestError`` for a text with a line beyond the limit, in time that barely counts."""
    most, start = limits.line_characters, 0
    while len(text) - start > most:
        window = start, start + most + 1
        start = max(text.rfind("\n", *window), text.rfind("\r", *window)) + 1
        if not start:
            raise IngestError(
                name,
                f"The text has a line of more than {most:,} characters, so it is data, not prose.",
                "Break its lines (JSON: convert it to JSON Lines), or leave it out.",
            )


class TextBuilder:
    """Joins blocks into one text and keeps the offsets of the headings among them."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []

    def add(self, block: str, separator: str = "\n\n") -> None:
        """Append a block, parted by ``separator`` from what stands before it."""
        lead = separator if self._parts else ""
        self._parts.append(lead + block)
        self._length += len(lead) + len(block)

    def heading(self, text: str, level: int, separator: str = "\n\n") -> None:
        """Append a heading as a block of its own, marked as one in the text."""
        self.mark(text, level, separator)
        self.add(f"{'#' * min(level, _LOWEST)} {text}", separator)

    def code(self, text: str, separator: str = "\n\n") -> None:
        """Append lines that stay as they are, fenced."""
        self.add(f"{FENCE}\n{text}\n{FENCE}", separator)

    def mark(self, text: str, level: int, separator: str = "\n\n") -> None:
        """Record a heading where the next block will start, without adding its text."""
        start = self._length + (len(separator) if self._parts else 0)
        self._headings.append(Heading(text, level, start))

    def append(self, page: Page) -> None:
        """Append a page's text with its headings."""
        start = self._length + (2 if self._parts else 0)
        self._headings += [
            replace(heading, start=start + heading.start) for heading in page.headings
        ]
        self.add(page.text)

    @property
    def is_empty(self) -> bool:
        return not self._length

    @property
    def is_one_line(self) -> bool:
        return len(self._parts) < 2 and not any("\n" in part for part in self._parts)

    def page(self, number: int | None = None) -> Page:
        return Page(number, "".join(self._parts), tuple(self._headings))
