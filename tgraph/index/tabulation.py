"""Makes the look-up tables (``tgraph.index.lookup_table``) of a store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tgraph.index.all_rows import AllRows
from tgraph.index.changed_keys import ChangedKeys
from tgraph.index.changed_rows import ChangedRows
from tgraph.index.lookup_table import FILES, LookupTable
from tgraph.index.sqlite_files import in_file, in_memory
from tgraph.index.table_reader import INDEXES, INSERT, SCHEMA, replace_keys
from tgraph.index.table_rows import TableRows, TextNumbers
from tgraph.librarian import Librarian
from tgraph.store.base import Store

if TYPE_CHECKING:
    import sqlite3


def make_tables(
    store: Store,
    librarian: Librarian,
    before: LookupTable | None = None,
    changed: ChangedKeys | None = None,
    scratch: Path | None = None,
) -> LookupTable:
    """The tables of a store, of standing documents alone.

    Where only ``changed`` keys are other than in the tables ``before``, the rows of these keys are
    made and stand beside those tables, unless they are too many. Else all rows are made; how
    unchanged pages read is taken from the tables ``before``. The tables are in a file in the folder
    ``scratch``, which its owner deletes, else in memory: those of a million edges take gigabytes.
    """
    if before is not None and changed is not None:
        tables = before.with_newer(_changed_tables(store, librarian, before, changed))
        if tables is not None:
            return tables
    connection = in_memory() if scratch is None else in_file(scratch / f".{FILES.stem}.sqlite")
    connection.executescript(SCHEMA)
    texts = TextNumbers({})
    rows = AllRows(store, texts)
    _write_rows(connection, rows, texts, librarian, before)
    rows.weigh(connection)
    connection.executescript(INDEXES)
    connection.commit()
    return LookupTable(connection)


def _changed_tables(
    store: Store, librarian: Librarian, before: LookupTable, changed: ChangedKeys
) -> sqlite3.Connection:
    """The newer tables beside those ``before``: the rows of all keys that ever changed."""
    connection = in_memory()
    if before.newer is not None:
        before.newer.backup(connection)
    else:
        connection.executescript(SCHEMA + INDEXES)
    texts = TextNumbers(dict(connection.execute("SELECT text, number FROM text")))
    rows = ChangedRows(store, texts, changed)
    for table, keys in rows.keys.items():
        replace_keys(connection, table, keys)
    _write_rows(connection, rows, texts, librarian, before)
    connection.commit()
    return connection


def _write_rows(
    connection: sqlite3.Connection,
    rows: TableRows,
    texts: TextNumbers,
    librarian: Librarian,
    before: LookupTable | None,
) -> None:
    tables: dict[str, Iterable[tuple[object, ...]]] = {
        "evidence": rows.evidence(),
        "edge": rows.edges(),
        "text": texts.new_rows(),
        "entity": rows.degrees(),
        "said": rows.sayings(),
        "chunk": rows.chunks(),
        "document": rows.documents(),
        "page": rows.pages(librarian, None if before is None else before.pages),
    }
    for table, table_rows in tables.items():
        connection.executemany(INSERT[table], table_rows)
