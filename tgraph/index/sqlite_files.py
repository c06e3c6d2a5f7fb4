"""SQLite databases derived from a knowledge generation: built in memory or a private file,
saved under a content-based name, and opened read-only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar
from urllib.parse import quote

from tgraph.errors import StoreError
from tgraph.index.data_files import CHECKED_WHOLE, DataFile, build_damage_error, check_file

if TYPE_CHECKING:
    import sqlite3

Values = tuple[str | bytes | int, ...]


class Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound="Closable | None")


def in_memory() -> sqlite3.Connection:
    import sqlite3  # 5 ms

    return sqlite3.connect(":memory:", check_same_thread=False)


_CACHED = 64_000
"""Kilobytes of a database under way that are in memory."""


def in_file(path: Path) -> sqlite3.Connection:
    """Open a database that need not survive crashes."""
    import sqlite3

    connection = sqlite3.connect(path, check_same_thread=False)
    for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHED}"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def open_database(folder: Path, file: DataFile) -> sqlite3.Connection:
    """The database in a data file, to be read alone. Raises ``DamagedIndexError`` where the file
    is not the one that was written; a large file is not read whole for this."""
    import sqlite3

    path = folder / file.name
    check_file(path, file, whole=file.size <= CHECKED_WHOLE)
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    try:
        return sqlite3.connect(address, uri=True, check_same_thread=False)
    except sqlite3.Error as error:
        raise build_damage_error(path, str(error)) from error


def copy_to(connection: sqlite3.Connection, path: Path) -> None:
    """Copy the complete database to a file; raise ``OSError`` if writing fails."""
    import sqlite3

    path.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path)) as target:
            target.execute("PRAGMA journal_mode = OFF")
            connection.backup(target)
    except sqlite3.Error as error:  # such as a full disk
        raise OSError(str(error)) from error


def rows_of(
    connection: sqlite3.Connection, lock: threading.Lock, query: str, values: Iterable[Values]
) -> list[list[Any]]:
    """Return rows for each value tuple.

    Raises ``StoreError`` if the file is damaged; damage to a large file is not noticed when the
    file is opened."""
    import sqlite3

    try:
        with lock:
            return [connection.execute(query, parameters).fetchall() for parameters in values]
    except sqlite3.DatabaseError as error:
        raise StoreError(f"What lies ready is damaged: {error}.", "Index again.") from error


class LazyTable(Generic[T]):
    """A table opened on demand, only once, and closed at the end."""

    def __init__(self, open_: Callable[[], T]) -> None:
        self._open = open_
        self._lock = threading.Lock()
        self._found: list[T] = []

    def __call__(self) -> T:
        with self._lock:
            if not self._found:
                self._found.append(self._open())
            return self._found[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            for table in self._found:
                if table is not None:
                    table.close()
            self._found = []
