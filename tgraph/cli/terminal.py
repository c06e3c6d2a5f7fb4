"""Writing to the terminal: foreign text made harmless, tables that fit, clean pipes."""

from __future__ import annotations

import json
import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import partial
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from tgraph.rendering import Notation, inert, many, one_line, place_text, safe

__all__ = ["many", "one_line", "place_text", "safe"]

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

PIPE_WIDTH = 100_000
"""The width of output that isn't shown on a terminal: nothing is cut or wrapped."""


def say(message: str) -> None:
    """One line on stderr; at a terminal that is too narrow for it, several, with no word broken and
    all but the first indented further."""
    text = safe(message)
    click.echo(_fitting(text, console(stderr=True)) if sys.stderr.isatty() else text, err=True)


def _fitting(text: str, target: Console) -> str:
    width = target.width
    return "\n".join(x if len(x) <= width else _wrapped(x, width) for x in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    """The line in rows; a word that has no room in a row of its own stays in the one before."""
    indent = line[: len(line) - len(line.lstrip())]
    rows = [indent]
    for word in line.split():
        if len(word) <= width - len(indent) - 2 and len(rows[-1]) + len(word) > width:
            rows.append(f"{indent}  ")
        rows[-1] += f"{word} "
    return "\n".join(row.rstrip() for row in rows)


_WIDE = "\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef"
"""Characters of scripts without spaces, each of which may begin a line."""
_WORD = rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+"


def flowing() -> Callable[[str], None]:
    """Writes a text on stdout piece by piece; at a terminal no word is broken that has room in a
    line of its own."""
    return _Flow(console().width).write if is_terminal() else partial(click.echo, nl=False)


class _Flow:
    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._gap = ""

    def write(self, text: str) -> None:
        click.echo("".join(map(self._placed, re.findall(_WORD, text))), nl=False)

    def _placed(self, piece: str) -> str:
        """The piece behind what stands between it and what came before; white space waits for what
        comes after it."""
        from rich.cells import cell_len

        if piece == "\n":
            self._column, self._gap = 0, ""
            return piece
        if piece.isspace():
            self._gap = piece
            return ""
        gap, self._gap, size = self._gap, "", cell_len(piece)
        if self._column > 0 and self._column + len(gap) + size > self._width >= size:
            gap, self._column = "\n", 0
        else:
            self._column += len(gap)
        self._column = (self._column + size) % (self._width + 1)
        return gap + piece


def console(*, stderr: bool = False) -> Console:
    """A rich console on what click writes to now; markup is off, and pipes get no styles."""
    from rich.console import Console, ConsoleDimensions

    made = Console(
        file=sys.stderr if stderr else sys.stdout, markup=False, highlight=False, emoji=False
    )
    if made.is_dumb_terminal:  # for which rich knows one size
        made.size = ConsoleDimensions(*get_terminal_size((80, 25)))
    return made


GAP = 3
"""Columns of the terminal between two of a table."""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int] = ()
) -> Table:
    """A table of texts; cells that are too long for the terminal, or for their column's width, go
    on in the next line."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, width in zip_longest(columns, widths):
        made.add_column(safe(column), overflow="fold", width=width)
    for row in rows:
        made.add_row(*(Text(safe(cell)) for cell in row))
    return made


def show(item: RenderableType) -> None:
    """Print something of rich's on stdout."""
    target = console()
    if target.is_terminal:
        target.print(item)
    else:
        click.echo(text_of(item), nl=False)


def text_of(item: RenderableType) -> str:
    """Something of rich's as plain text: nothing cut, no trailing spaces."""
    from rich.console import Console

    plain = Console(file=StringIO(), width=PIPE_WIDTH, markup=False, highlight=False, emoji=False)
    with plain.capture() as capture:
        plain.print(item)
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def json_text(value: Any, indent: int | None = 2) -> str:
    """JSON for people and programs; characters that command terminals are escaped in it."""
    return inert(json.dumps(value, ensure_ascii=False, indent=indent), "u")


def print_json(value: Any) -> None:
    """A value, or a list of values, as JSON on stdout."""
    plain = list(map(_plain, value)) if isinstance(value, list | tuple) else _plain(value)
    click.echo(json_text(plain))


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def print_lines(lines: Iterable[str]) -> None:
    """Lines on stdout, harmless; at a terminal as ``say`` writes them."""
    target = console() if is_terminal() else None
    for line in lines:
        text = safe(line)
        click.echo(text if target is None else _fitting(text, target))


def write_bytes(data: bytes) -> None:
    """Bytes on stdout as they are; on a terminal, what could command it as its escape."""
    sys.stdout.flush()
    if is_terminal():
        data = safe(data.decode("utf-8", "replace")).encode("utf-8", "replace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_blocks(blocks: Iterable[bytes], notation: Notation) -> None:
    """A text in UTF-8 on stdout, block by block, with escapes for what could command a terminal;
    it ends with a line feed."""
    decoder = getincrementaldecoder("utf-8")("replace")
    last = "\n"
    for block in blocks:
        if text := decoder.decode(block):
            write_bytes(inert(text, notation).encode())
            last = text[-1]
    if last != "\n":
        write_bytes(b"\n")


def write_result(data: bytes, target: Path | None) -> None:
    """The bytes to a file, whole or not at all and for its owner alone, or to stdout. What is no
    file, such as ``/dev/null`` or a named pipe, is written to and stays what it is."""
    if target is None:
        write_bytes(data)
        return
    from tgraph.errors import UsageError
    from tgraph.store.files import write_private

    try:
        if not target.absolute().parent.is_dir():
            raise UsageError(f"{target} can't be written: its folder doesn't exist.")
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            write_private(target.resolve(), data)
    except OSError as error:
        raise UsageError(f"{target} can't be written: {error.strerror}.") from error


PIPED = "-"
"""What stands for standard input in the place of a text."""


def one_text(what: str, *given: str | None) -> str:
    """The one text that is given, or what is piped in: for ``-``, or where none is given. A usage
    error where there are several, or none."""
    texts: list[str] = [text for text in given if text is not None]
    if len(texts) == 1 and texts[0] != PIPED:
        return texts[0]
    piped = ""
    if texts == [PIPED] or not (texts or sys.stdin.isatty()):
        piped = sys.stdin.buffer.read().decode("utf-8-sig", "replace").strip()
    if not piped:
        raise click.UsageError(f"Give one {what}, as the argument, with -q, or piped in.")
    return piped


def piped_lines(what: str) -> Iterator[str]:
    """The lines of standard input that say something, as they come, without white space around
    them. A usage error where there is none."""
    found = False
    while line := sys.stdin.buffer.readline():
        if text := line.decode("utf-8", "replace").removeprefix("\ufeff").strip():
            found = True
            yield text
    if not found:
        raise click.UsageError(f"There is no {what} on standard input.")


def say_next(question: str, *, apart: bool) -> None:
    """Say on stderr which of several questions comes now, for what follows there tells of it; on
    stdout an empty line keeps the answers ``apart``."""
    if apart:
        click.echo()
    say(f"> {question}")


def confirm(what: str, question: str) -> None:
    """Ask at the terminal before what can't be taken back. ``UsageError`` where nobody can
    answer, ``click.Abort`` for a no."""
    from tgraph.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError(f"{what} can't be taken back, and nobody is asked here.", "Say --yes.")
    click.confirm(question, abort=True, err=True)


def is_terminal() -> bool:
    """Whether stdout is shown to a person."""
    return sys.stdout.isatty()


def have_streams() -> None:
    """Where a shell has closed a stream, let it lead nowhere. What stands in for it also takes the
    free number, which else the next file to be opened would get."""
    for name, way in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, way, encoding="utf-8", closefd=False))


def forget_stdout() -> None:
    """After the reader of a pipe has gone: let the interpreter's last flush go nowhere."""
    with suppress(OSError, ValueError):  # stdout may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def time(text: str) -> str:
    """An xsd:dateTime for people, to the second."""
    return text[:19].replace("T", " ")
