"""Records (JSON, JSON Lines) as tables where the records share their keys, else as readable text in
which each value has its path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, TextBuilder, storable
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.table_shape import Line, Table, distinct_names
from tgraph.ingest.tables import add_table
from tgraph.ingest.text import decode_text
from tgraph.model import Page, UnitCount
from tgraph.rendering import collapse_whitespace

_TITLE_KEYS = ("title", "name", "headline", "subject", "heading")
_METADATA_KEYS = ("author", "date", "language", "description")
# A longer value, or one of several lines, stands on lines of its own.
_SHORT = 200
_LEAST_FILLED = 0.5
"""The share of a table's cells that records have to fill."""


def read_json(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """A JSON value: a list's items, or an object's lists of objects, are its records."""
    text = decode_text(data, name, limits)
    try:
        value = _parse_json(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise _json_error(name, error, error.lineno, error.colno) from None
        try:  # as JSON Lines under the wrong name
            records = [_parse_json(line) for line in text.split("\n") if line.strip()]
        except (json.JSONDecodeError, RecursionError):
            raise _json_error(name, error, error.lineno, error.colno) from None
        return _render_records(name, records)
    except RecursionError:
        raise IngestError(name, "The JSON is nested too deeply to be read.") from None
    content = _render_records(name, value if isinstance(value, list) else [value])
    if not isinstance(value, dict):
        return content
    metadata = {
        key: _scalar_text(value.get(key)) for key in _METADATA_KEYS if _is_scalar(value.get(key))
    }
    return FileContent(
        content.pages, _record_title(value), {k: v for k, v in metadata.items() if v}
    )


def read_json_lines(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """One JSON value a line (jsonlines.org): each is a record; blank lines are passed over, and a
    line that is no JSON is left out and named. Raise ``IngestError`` where no line is JSON."""
    records: list[Any] = []
    errors: list[IngestError] = []
    lines = decode_text(data, name, limits).removeprefix("\ufeff").split("\n")
    losses = LossList()
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                records.append(_parse_json(line))
            continue
        except json.JSONDecodeError as error:
            errors.append(_json_error(name, error, number, error.colno))
        except RecursionError:
            errors.append(IngestError(name, f"Line {number} is nested too deeply to be read."))
        losses.add("damaged line", "it is no JSON", place=f"line {number}")
    if errors and not records:
        raise errors[0]
    content = _render_records(name, records)
    filled = sum(bool(line.strip()) for line in lines)
    report = losses.report("json", [UnitCount("lines", filled, len(records), len(errors))])
    return replace(content, report=report)


def _parse_json(text: str) -> Any:
    """Parse JSON, keeping numbers as written, and each value of a key that an object repeats."""
    return json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=_make_object)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = distinct_names([key for key, _ in pairs])
    return dict(zip(names, (value for _, value in pairs), strict=True))


def _json_error(name: str, error: json.JSONDecodeError, line: int, column: int) -> IngestError:
    return IngestError(name, f"The JSON is broken at line {line}, column {column}: {error.msg}.")


def _render_records(name: str, records: list[Any]) -> FileContent:
    try:
        page = _table_page(records) or _text_page(records)
    except RecursionError:
        raise IngestError(name, "The JSON is nested too deeply to be read.") from None
    if not page.text.strip():
        raise IngestError(name, "The JSON holds no values.")
    return FileContent((page,))


# --- records that share their keys ----------------------------------------------------------------


def _table_page(records: list[Any]) -> Page | None:
    """Return records as a table, or a single record as fields and tables; None for others."""
    builder = PageBuilder()
    if len(records) == 1 and isinstance(records[0], dict):
        parts = records[0]
        tables = {key: table for key, value in parts.items() if (table := _make_table(value))}
        rest = {key: value for key, value in parts.items() if key not in tables}
        if not tables or not all(map(_is_short, rest.values())):
            return None
        for key, value in rest.items():
            builder.add_field(key, _cell_text(value))
        for key, table in tables.items():
            add_table(builder, replace(table, titles=[collapse_whitespace(storable(key))]))
        return builder.page()
    if table := _make_table(records):
        add_table(builder, table)
        return builder.page()
    return None


def _make_table(records: Any) -> Table | None:
    """Return the table of a list of objects without objects in lists, most of which have the same
    keys; None for any other value."""
    if not isinstance(records, list) or len(records) < 2:
        return None
    rows: list[dict[str, str]] = []
    heads: dict[str, None] = {}
    for record in records:
        nested: list[tuple[str, Any]] = []
        if not isinstance(record, dict):
            return None
        rows.append(dict(_flatten_values(record, "", nested)))
        if nested:
            return None
        heads.update(dict.fromkeys(rows[-1]))
    cells = sum(map(len, rows))
    if len(heads) < 2 or cells < _LEAST_FILLED * len(heads) * len(rows):
        return None
    names = list(heads)
    lines: list[Line] = [[row.get(name, "") for name in names] for row in rows]
    return Table(heads=[names], names=names, rows=lines)


def _is_short(value: Any) -> bool:
    return _is_scalar(value) or (isinstance(value, list) and all(map(_is_scalar, value)))


def _cell_text(value: Any) -> str:
    return ", ".join(map(_scalar_text, value)) if isinstance(value, list) else _scalar_text(value)


# --- other records --------------------------------------------------------------------------------


def _text_page(records: list[Any]) -> Page:
    """Return records as text: each value with its path."""
    builder = TextBuilder()
    blocks = [
        block for record in records for block in _record_blocks(record, split=len(records) == 1)
    ]
    separator = "\n" if all(len(lines) == 1 for _, lines in blocks) else "\n\n"
    for title, lines in blocks:
        if title and len(lines) > 1:
            builder.mark(title, 2, separator)
        builder.add("\n".join(lines), separator)
    return builder.page()


def _record_blocks(
    record: Any, path: str = "", split: bool = False
) -> Iterator[tuple[str, list[str]]]:
    """Yield title and lines of a record; with ``split``, objects in lists form separate blocks."""
    nested: list[tuple[str, Any]] = []
    lines = list(_record_lines(record, path, nested))
    inner = [block for where, item in nested for block in _record_blocks(item, where)]
    if not split:
        lines += [line for _, block in inner for line in block]
        inner = []
    if lines:
        yield _record_title(record), lines
    yield from inner


def _record_lines(record: Any, path: str, nested: list[tuple[str, Any]]) -> Iterator[str]:
    """Short values joined in lines, long ones by themselves; objects in lists go to ``nested``."""
    short: list[str] = []
    for where, text in _flatten_values(record, path, nested):
        pair = f"{where}: {text}" if where else text
        if len(pair) <= _SHORT and "\n" not in pair:
            short.append(pair)
            continue
        if short:
            yield "; ".join(short)
            short = []
        yield pair
    if short:
        yield "; ".join(short)


def _flatten_values(
    value: Any, path: str, nested: list[tuple[str, Any]]
) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            label = collapse_whitespace(storable(str(key)))
            yield from _flatten_values(inner, f"{path}.{label}" if path else label, nested)
    elif isinstance(value, list):
        scalars = [_scalar_text(item) for item in value if _is_scalar(item)]
        if scalars:
            yield path, ", ".join(filter(None, scalars))
        places = ((f"{path}[{index}]", item) for index, item in enumerate(value, 1))
        nested.extend((where, item) for where, item in places if not _is_scalar(item))
    elif text := _scalar_text(value):
        yield path, text


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _scalar_text(value: Any) -> str:
    """Return a scalar in human-readable form; empty for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return storable(str(value)).strip()


def _record_title(record: Any) -> str:
    if not isinstance(record, dict):
        return ""
    values = (value for key in _TITLE_KEYS if _is_scalar(value := record.get(key)))
    return next(filter(None, (collapse_whitespace(_scalar_text(value)) for value in values)), "")[
        :_SHORT
    ]
