"""Graph files read into rows and lines; these functions run in the isolated process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tgraph.errors import IngestError
from tgraph.foreign_bytes import OversizeError, is_gzip, parse_json, unpack_gzip
from tgraph.ingest.base import FileLimits, error_reason
from tgraph.ingest.parser_process import read_items

_ROWS_AT_ONCE = 200
_MOST_COLUMNS = 1_000
_SMALL_TABLE, _ROWS_A_BYTE = 100_000, 4
"""Rows that any table may have, and that a byte of a larger one may stand for."""

JsonRow = Mapping[str, Any]


def read_table(path: Path, limits: FileLimits) -> Iterator[JsonRow]:
    """Yield the rows of a Parquet file. Raise ``IngestError`` if unreadable."""
    return _read_rows("parquet_rows", path, limits)


def read_property_graph(path: Path, limits: FileLimits) -> tuple[list[JsonRow], list[JsonRow]]:
    """Return nodes and edges of a GraphML file as rows. Raise ``IngestError`` if unreadable."""
    nodes: list[JsonRow] = []
    edges: list[JsonRow] = []
    for row in _read_rows("graphml_rows", path, limits):
        (edges if row["edge"] else nodes).append(row["attributes"])
    return nodes, edges


def read_json_rows(path: Path, limits: FileLimits) -> Iterator[tuple[str, int, JsonRow]]:
    """Yield the rows of a JSON object whose members are rows, or lists of rows: the member's name,
    the row's number in a list (otherwise 0), and the row. Raise ``IngestError`` if unreadable."""
    for row in _read_rows("json_rows", path, limits):
        yield row["member"], row["number"], row["row"]


def _read_rows(function: str, path: Path, limits: FileLimits) -> Iterator[JsonRow]:
    return read_items((__name__, function), path, str(path), limits, dict)


# --- inside the process ---------------------------------------------------------------------------


def parquet_rows(file: BinaryIO, name: str, limits: FileLimits) -> Iterator[JsonRow]:
    """Yield a table's rows without its vectors."""
    try:
        from pyarrow import ArrowException, parquet, types
    except ModuleNotFoundError as error:
        reason = "pyarrow, which reads parquet, isn't installed."
        remedy = 'Install it with `pip install "tgraph-rag[parquet]"`.'
        raise IngestError(name, reason, remedy) from error
    try:
        table = parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
        schema = table.schema_arrow
        if len(schema) > _MOST_COLUMNS:
            reason = f"It has {len(schema):,} columns; the limit is {_MOST_COLUMNS:,}."
            raise IngestError(name, reason, "Write the columns of GraphRAG alone.")
        _check_rows(table.metadata.num_rows, file, name)
        columns = [
            column.name
            for column in schema
            if not (types.is_list(column.type) and types.is_floating(column.type.value_type))
        ]
        for batch in table.iter_batches(_ROWS_AT_ONCE, columns=columns, use_threads=False):
            for row in batch.to_pylist():
                yield {column: _plain(value) for column, value in row.items()}
    except (ArrowException, OSError) as error:
        raise IngestError(
            name, f"It is no parquet file that can be read: {error_reason(error)}."
        ) from error


def _check_rows(rows: int, file: BinaryIO, name: str) -> None:
    """Raise ``IngestError`` for more rows than a table of the file's size has."""
    most = max(_SMALL_TABLE, _ROWS_A_BYTE * file.seek(0, 2))
    if rows > most:
        reason = f"It has {rows:,} rows, and a table of its size at most {most:,}, the limit."
        raise IngestError(name, reason, "Leave out the rows that hold nothing.")


def graphml_rows(file: BinaryIO, name: str, limits: FileLimits) -> Iterator[JsonRow]:
    """Yield nodes, then edges, with their attributes; ids are attributes, too."""
    from xml.etree.ElementTree import ParseError

    from networkx import NetworkXError, read_graphml

    try:
        graph = read_graphml(file, force_multigraph=True)
    except (ParseError, NetworkXError, OSError, ValueError, KeyError) as error:
        raise IngestError(name, f"It is no GraphML that can be read: {error}.") from error
    for node, attributes in graph.nodes(data=True):
        yield {"edge": False, "attributes": {**_flat(attributes), "id": str(node)}}
    for origin, target, attributes in graph.edges(data=True):
        ends = {"source": str(origin), "target": str(target)}
        yield {"edge": True, "attributes": {**_flat(attributes), **ends}}


def json_rows(file: BinaryIO, name: str, limits: FileLimits) -> Iterator[JsonRow]:
    """Yield the rows of an object of rows or of lists of rows."""
    data = file.read()
    try:
        content = parse_json(data, limits.memory)
    except OversizeError as error:
        remedy = "Split it, or set ingest.memory_mb higher if you trust the file."
        raise IngestError(name, f"{error}, the limit.", remedy) from None
    except (ValueError, RecursionError) as error:
        raise IngestError(name, f"It is no JSON that can be read: {error}.") from error
    del data
    if not isinstance(content, dict):
        raise IngestError(name, "It is no JSON object.")
    for member, value in content.items():
        rows = enumerate(value, 1) if isinstance(value, list) else ((0, value),)
        for number, row in rows:
            if isinstance(row, dict):
                yield {"member": _plain(member), "number": number, "row": _flat(row)}


def _flat(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {_plain(str(name)): _plain(value, str) for name, value in row.items()}


def _plain(value: Any, nested: Callable[[Any], Any] | None = None) -> Any:
    """Return a value as JSON has it; what is neither scalar, list nor row becomes text, and so do
    lists and rows where ``nested`` writes them."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and value.isascii():
        return value
    if isinstance(value, list | tuple | dict) and nested is None:
        if isinstance(value, dict):
            return {_plain(str(name)): _plain(member) for name, member in value.items()}
        return [_plain(member) for member in value]
    return str(value).encode("utf-8", "replace").decode()


def unpack_graph(content: bytes, name: str, limits: FileLimits) -> bytes:
    """Return the bytes of a file that may be packed. Raise ``IngestError`` beyond the limits."""
    if not is_gzip(content):
        return content
    try:
        return unpack_gzip(content, limits.unpacked_bytes, limits.part_ratio)
    except OversizeError as error:
        raise IngestError(name, f"{error}.", "Unpack it first if you trust it.") from None
    except ValueError as error:
        raise IngestError(name, f"{error}.") from None
