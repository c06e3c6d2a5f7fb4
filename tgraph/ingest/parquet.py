"""Parquet: a table of typed columns."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, error_reason
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.number_formats import show_value
from tgraph.ingest.table_shape import Line, Table
from tgraph.ingest.tables import add_table
from tgraph.model import UnitCount

_ROWS_AT_ONCE = 10_000
_CELL_BYTES = 64
"""What a cell takes in the parser's memory, at least."""


def read_parquet(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a Parquet file as one table; nested values are read as JSON.

    Raise ``IngestError`` for what isn't Parquet, has more cells than the memory holds, or where
    pyarrow isn't installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise IngestError(
            name, "Parquet files are read with pyarrow.", "Run: pip install 'tgraph-rag[parquet]'"
        ) from None
    builder = PageBuilder()
    try:
        file = pyarrow.parquet.ParquetFile(BytesIO(data), memory_map=False, pre_buffer=False)
        cells = file.metadata.num_rows * file.metadata.num_columns
        if cells * _CELL_BYTES > limits.unpacked_bytes:
            raise IngestError(
                name,
                f"The table has {cells:,} cells, more than allowed.",
                f"The limit is {limits.unpacked_bytes // _CELL_BYTES:,} cells.",
            )
        heads = [str(column) for column in file.schema_arrow.names]
        rows: list[Line] = list(_read_rows(file))
    except IngestError:
        raise
    except Exception as error:  # a damaged file makes the library fail in any way whatever
        raise IngestError(name, f"The Parquet file can't be read: {error_reason(error)}.") from None
    if not rows:
        raise IngestError(name, "The table holds no rows.")
    add_table(builder, Table(heads=[heads], names=heads, rows=rows))
    units = UnitCount("rows", file.metadata.num_rows, len(rows))
    report = LossList().report(f"pyarrow {pyarrow.__version__}", [units])
    return FileContent((builder.page(),), report=report)


def _read_rows(file: Any) -> Iterator[list[str]]:
    for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, use_threads=False):
        columns = [column.to_pylist() for column in batch.columns]
        yield from ([_show_cell(value) for value in row] for row in zip(*columns, strict=True))


def _show_cell(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | dict):
        import json

        return json.dumps(value, ensure_ascii=False, default=str)
    return show_value(value, "")
