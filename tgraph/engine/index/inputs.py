"""What a caller indexes: paths, or texts, tables and bytes in memory."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from tgraph.errors import UsageError
from tgraph.ingest.files import SourceFile, has_known_suffix
from tgraph.rendering import collapse_whitespace

Paths = str | Path | Sequence[str | Path]
"""One path or several."""
_MOST_NAME = 200


@runtime_checkable
class PandasTable(Protocol):
    """A table that writes itself as CSV, as pandas' DataFrame does."""

    def to_csv(self, *, index: bool) -> str: ...


@runtime_checkable
class PolarsTable(Protocol):
    """A table that writes itself as CSV, as polars' DataFrame does."""

    def write_csv(self) -> str: ...


Table = PandasTable | PolarsTable | Iterable[Mapping[str, object]]
"""A DataFrame of pandas or polars, or rows with their values by the names of columns."""


def list_paths(paths: Paths) -> list[str]:
    """Return one path or several as texts; raise ``UsageError`` for what is no path."""
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    for path in listed:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"{type(path).__name__} is no path.",
                "Index a text with index_text, a table with index_table, bytes or an open file"
                " with index_data.",
            )
    return [os.fspath(path) for path in listed]


def wrap_data(data: bytes | BinaryIO, name: str) -> SourceFile:
    """Return bytes, or the rest of a binary stream, as a file called ``name``."""
    content = data if isinstance(data, bytes) else data.read()
    if not isinstance(content, bytes):
        raise UsageError(
            f"{name!r} was opened as text.", "Open the file with mode 'rb', or use index_text."
        )
    return SourceFile(_check_name(name), None, content)


def _wrap_encoded(text: str, name: str) -> SourceFile:
    return SourceFile(name, None, text.encode("utf-8", "replace"))


def wrap_text(text: str, title: str) -> SourceFile:
    """Return a text as a file called after its title, which is read as Markdown or plain text."""
    title = _check_name(title)
    name = title if has_known_suffix(title) else f"{title}.txt"
    return _wrap_encoded(text, name)


def wrap_table(table: Table, title: str) -> SourceFile:
    """Return a table as a CSV file called after its title."""
    title = _check_name(title)
    if isinstance(table, PandasTable):
        text = table.to_csv(index=False)
    elif isinstance(table, PolarsTable):
        text = table.write_csv()
    else:
        text = _write_rows(list(table), title)
    name = title if title.lower().endswith(".csv") else f"{title}.csv"
    return _wrap_encoded(text, name)


def _write_rows(rows: Sequence[Mapping[str, object]], title: str) -> str:
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(
            f"{title!r} is no table with rows.",
            "Give a DataFrame, or a list of rows such as {'name': 'Fram', 'built': 1892}.",
        )
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _check_name(name: str) -> str:
    collapsed = collapse_whitespace(name)
    if not collapsed or len(collapsed) > _MOST_NAME or collapsed == "-":
        raise UsageError(
            f"A document in memory needs a name of 1 to {_MOST_NAME} characters.",
            "Give it a title, under which answers cite it.",
        )
    return collapsed
