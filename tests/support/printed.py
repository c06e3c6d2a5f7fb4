"""What a page says is printed, and whether it is.

In a block of the language ``text`` or ``console`` a page shows what commands print. A line ``$ …``
in it is the command of what follows; a block without one shows what a block of ``bash`` or
``python`` before it printed, on either stream, or a part of that: lines that follow each other.

- ``…`` on a line of its own stands for any number of lines, in a line for what was cut from it.
- Dates from 2020 on, times of day, versions, UUIDs, digests, and quantities with a unit of time
  or storage may differ. Numbers with a decimal point may differ by 0.1.
- How much white there is between words, and how long rules are, is not compared.

``text figure`` marks what no test prints anew, because it takes hours or a model; the command that
makes it stands in the paragraph before. What nothing prints has no language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUNNABLE = ("bash", "python")
PRINTED = ("text", "console")
_BLOCK = re.compile(r"^```(\w*) ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"`(?:python|tgraph|bash)[^`]*`")
_MAY_DIFFER = {
    "DATE": r"\b20[2-9]\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?: ?UTC|Z|[+]00:00)?",
    "TIME": r"\b\d\d:\d\d:\d\d(?:\.\d+)?Z?",
    "VERSION": r"\b\d+\.\d+\.\d+\b",
    "UUID": r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "DIGEST": r"\b(?=[a-f]*\d)[0-9a-f]{12,}\b",
    "QUANTITY": r"\b[\d.,]+ (?:ms|s|seconds?|kB|MB|GB|bytes)\b",
}
_ANY = re.compile("|".join(f"(?P<{name}>{form})" for name, form in _MAY_DIFFER.items()))
_DECIMAL = re.compile(r"\b\d+\.\d+\b")
_LEFT_OUT = re.compile(r"[\s│├└─]*(?:…|\.\.\.)\s*")


@dataclass(frozen=True)
class Block:
    """A block of a page, with what stands between it and the one before."""

    language: str
    mark: str
    body: str
    before: str

    @property
    def is_output(self) -> bool:
        """Whether it shows something that is compared; commands alone are for the reader to run."""
        shows = any(line and not line.startswith("$ ") for line in self.body.splitlines())
        return self.language in PRINTED and not self.mark and shows

    @property
    def is_explained(self) -> bool:
        """Whether a command stands in the paragraph before it."""
        return bool(_COMMAND.search(self.before.strip().rpartition("\n\n")[2]))

    def outputs(self) -> Iterator[tuple[str, str]]:
        """Each command in it, "" for that of a block before, with what it is said to print."""
        command, lines = "", list[str]()
        for line in [*self.body.splitlines(), "$ "]:
            if line.startswith("$ "):
                if command or any(lines):
                    yield command, "\n".join(lines)
                command, lines = line[2:], []
            else:
                lines.append(line)


def page_blocks(page: Path) -> list[Block]:
    text, found, end = page.read_text("utf-8"), list[Block](), 0
    for match in _BLOCK.finditer(text):
        language, mark, body = match.groups()
        found.append(Block(language, mark, body, text[end : match.start()]))
        end = match.end()
    return found


def normalised(text: str) -> str:
    """The text without what may differ from one run to another."""
    text = _ANY.sub(lambda match: str(match.lastgroup), text)
    lines = [re.sub(r"\s+", " ", re.sub("─+", "─", line)).strip() for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


def is_printed(said: str, printed: str) -> bool:
    """Whether what is said stands in what was printed."""
    decimals = [float(number) for number in _DECIMAL.findall(normalised(said))]
    pattern = "".join(_pattern(line) for line in normalised(said).splitlines())
    return any(
        all(
            abs(float(found) - wanted) < 0.1 + 1e-9
            for found, wanted in zip(match.groups(), decimals, strict=True)
        )
        for match in re.finditer(f"^{pattern}", normalised(printed), re.MULTILINE)
    )


def _pattern(line: str) -> str:
    if _LEFT_OUT.fullmatch(line):
        return r"(?:.*\n)*?"
    pieces = re.split(f"(…|{_DECIMAL.pattern})", line)
    forms = {"…": ".*?"}
    return (
        "".join(
            r"(\d+\.\d+)" if _DECIMAL.fullmatch(piece) else forms.get(piece, re.escape(piece))
            for piece in pieces
        )
        + r"\n"
    )


def first_difference(said: str, printed: str) -> str:
    """The first line up to which it isn't printed, for a message."""
    lines = said.splitlines()
    for count in range(1, len(lines) + 1):
        if not is_printed("\n".join(lines[:count]), printed):
            return lines[count - 1]
    return ""
