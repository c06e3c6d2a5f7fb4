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

from tgraph.rendering import (
    Notation,
    escape_controls,
    escape_serialised,
    format_count,
    one_line,
    place_text,
)

__all__ = ["escape_controls", "format_count", "one_line", "place_text"]

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

PIPE_WIDTH = 100_000
"""The width of output that isn't shown on a terminal: nothing is cut or wrapped."""


def print_message(message: str) -> None:
    """Print a message line on stderr.

    On a narrow terminal the message is wrapped at words, with all lines but the first indented
    further."""
    text = escape_controls(message)
    click.echo(
        _wrap_text(text, create_console(stderr=True)) if sys.stderr.isatty() else text, err=True
    )


def _wrap_text(text: str, target: Console) -> str:
    width = target.width
    return "\n".join(x if len(x) <= width else _wrap_line(x, width) for x in text.split("\n"))


def _wrap_line(line: str, width: int) -> str:
    """Wrap a line into rows; a word longer than a row stays in the previous row."""
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


def stream_writer() -> Callable[[str], None]:
    """Return a function writing text pieces on stdout.

    At a terminal, no word is broken that fits a separate line."""
    return _Flow(create_console().width).write if is_terminal() else partial(click.echo, nl=False)


class _Flow:
    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._gap = ""

    def write(self, text: str) -> None:
        click.echo("".join(map(self._place_piece, re.findall(_WORD, text))), nl=False)

    def _place_piece(self, piece: str) -> str:
        """Return the piece with preceding white space or line break; white space waits for the
        next piece."""
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


def create_console(*, stderr: bool = False) -> Console:
    """Return a rich console writing to click's current stream, without markup; pipes get no
    styles."""
    from rich.console import Console, ConsoleDimensions

    rich_console = Console(
        file=sys.stderr if stderr else sys.stdout, markup=False, highlight=False, emoji=False
    )
    if rich_console.is_dumb_terminal:  # for which rich knows one size
        rich_console.size = ConsoleDimensions(*get_terminal_size((80, 25)))
    return rich_console


GAP = 3
"""Columns of the terminal between two of a table."""


def build_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int] = ()
) -> Table:
    """Build a text table; cells too long for terminal or column width continue on the next
    line."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rich_table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, width in zip_longest(columns, widths):
        rich_table.add_column(escape_controls(column), overflow="fold", width=width)
    for row in rows:
        rich_table.add_row(*(Text(escape_controls(cell)) for cell in row))
    return rich_table


def print_renderable(item: RenderableType) -> None:
    """Print a rich renderable on stdout."""
    target = create_console()
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
    return escape_serialised(json.dumps(value, ensure_ascii=False, indent=indent), "u")


def print_json(value: Any) -> None:
    """Print a value, or a list of values, as JSON on stdout."""
    plain = list(map(_to_plain, value)) if isinstance(value, list | tuple) else _to_plain(value)
    click.echo(json_text(plain))


def _to_plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on stdout, made harmless; at a terminal, wrapped as by ``print_message``."""
    target = create_console() if is_terminal() else None
    for line in lines:
        text = escape_controls(line)
        click.echo(text if target is None else _wrap_text(text, target))


def write_bytes(data: bytes) -> None:
    """Write unchanged bytes to stdout; on a terminal, escape characters that could command the
    terminal."""
    sys.stdout.flush()
    if is_terminal():
        data = escape_controls(data.decode("utf-8", "replace")).encode("utf-8", "replace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_blocks(blocks: Iterable[bytes], notation: Notation) -> None:
    """Write UTF-8 text blocks to stdout, escaping terminal commands; output ends with a line
    feed."""
    decoder = getincrementaldecoder("utf-8")("replace")
    last = "\n"
    for block in blocks:
        if text := decoder.decode(block):
            write_bytes(escape_serialised(text, notation).encode())
            last = text[-1]
    if last != "\n":
        write_bytes(b"\n")


def write_result(data: bytes, target: Path | None) -> None:
    """Write bytes to a file, or to stdout.

    A file is written whole or not at all, and for its owner alone. A target that is no file,
    such as ``/dev/null`` or a named pipe, is written to and stays unchanged."""
    if target is None:
        write_bytes(data)
        return
    from tgraph.errors import UsageError
    from tgraph.store.files import write_private

    try:
        if not target.absolute().parent.is_dir():
            raise UsageError(f"{target} can't be written: the folder doesn't exist.")
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            write_private(target.resolve(), data)
    except OSError as error:
        raise UsageError(f"{target} can't be written: {error.strerror}.") from error


PIPED = "-"
"""What stands for standard input in the place of a text."""


def one_text(what: str, *given: str | None) -> str:
    """Return the single text argument, or piped input.

    Piped input is read for ``-``, or where no text is given. Several texts, or none, are a
    usage error."""
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
    """Yield non-empty lines from standard input as they arrive, stripped of white space.

    Empty input is a usage error."""
    has_text = False
    while line := sys.stdin.buffer.readline():
        if text := line.decode("utf-8", "replace").removeprefix("\ufeff").strip():
            has_text = True
            yield text
    if not has_text:
        raise click.UsageError(f"There is no {what} on standard input.")


def say_next(question: str, *, apart: bool) -> None:
    """Print the next question on stderr, since following messages there concern the question.

    ``apart`` prints an empty line on stdout to separate answers."""
    if apart:
        click.echo()
    print_message(f"> {question}")


def confirm_action(what: str, question: str) -> None:
    """Ask for confirmation at the terminal before an irreversible action.

    Raises ``UsageError`` where nobody can answer, ``click.Abort`` for a no."""
    from tgraph.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError(
            f"{what} can't be undone, and there is no terminal for a confirmation.", "Say --yes."
        )
    click.confirm(question, abort=True, err=True)


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def have_streams() -> None:
    """Replace closed standard streams with ``/dev/null``.

    The replacement also occupies the free file number, which the next opened file would
    otherwise get."""
    for name, way in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, way, encoding="utf-8", closefd=False))


def forget_stdout() -> None:
    """Discard the interpreter's last flush after a pipe reader has gone."""
    with suppress(OSError, ValueError):  # stdout may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def format_time(text: str) -> str:
    """Format an xsd:dateTime for people, precise to the second."""
    return text[:19].replace("T", " ")
