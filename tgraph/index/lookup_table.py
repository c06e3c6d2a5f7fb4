"""The tables of one generation of knowledge, in SQLite, which questions look up by the hundred.

They lie beside the vectors and are derived like them. In the store a row of evidence is a dozen
look-ups of 10 µs each; here all rows of an edge or an entity are one. Where the file is missing,
damaged or of another generation, the statements are read instead.

A run that knows which keys it changed leaves the tables as they are and writes the rows of these
keys into a second file of the same tables, together with the keys: the rows that the first file has
of them count no more. When the second is an eighth of the first, all tables are made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tgraph.errors import StoreError
from tgraph.index.data_files import DataFile, DataSet, FileHead, KeptFiles, write_data
from tgraph.index.hub_rows import HubRows
from tgraph.index.lookup_rows import CountRows, EvidenceRows, PageRows, StatementRows
from tgraph.index.network_rows import NetworkRows
from tgraph.index.network_ties import Wording
from tgraph.index.sqlite_files import copy_to, open_database
from tgraph.index.table_reader import TableReader
from tgraph.index.vectors.base import VectorIndex

if TYPE_CHECKING:
    import sqlite3

FILES = DataSet("lookups", format=8)
"""The format is also of how pages read: another one where ``tgraph.ingest.segments`` finds other
segments."""

LARGEST_ADDITION = 8
"""Of how many parts of the tables one may be in the newer ones."""


class LookupTable:
    """A ``GraphSource`` that reads tables, with the ``pages`` of documents. Thread-safe. ``newer``
    has the rows of the keys that changed since."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        newer: sqlite3.Connection | None = None,
        kept: KeptFiles | None = None,
    ) -> None:
        self.reader = TableReader(connection, newer)
        self.statements = StatementRows(self.reader)
        self.evidence = EvidenceRows(self.reader)
        self.hubs = HubRows(self.reader)
        self.counts = CountRows(self.reader)
        self.pages = PageRows(self.reader)
        self._kept = kept

    def network(self, vectors: Mapping[str, VectorIndex], wording: Wording) -> NetworkRows:
        return NetworkRows(self.reader, vectors, wording)

    @property
    def newer(self) -> sqlite3.Connection | None:
        return self.reader.newer

    def with_newer(self, newer: sqlite3.Connection) -> LookupTable | None:
        """The tables with other newer ones, which it owns; None where these are too large. The
        tables that it is made of have to stay open as long."""
        connection = self.reader.connection
        size = "SELECT ifnull(max(number), 0) FROM text"
        (old,), (new,) = (c.execute(size).fetchone() for c in (connection, newer))
        if self._kept is None or new * LARGEST_ADDITION > old:
            newer.close()
            return None
        return LookupTable(connection, newer, self._kept)

    def close(self) -> None:
        self.reader.connection.close()
        if self.newer is not None:
            self.newer.close()

    def save(self, folder: Path, generation: int) -> None:
        """Save the tables in the folder, atomically and durably, for a knowledge generation.

        Raises ``StoreError`` if the disk fails."""
        files = self._kept.link(folder) if self._kept else {}
        if "tables" not in files:
            files["tables"] = write_data(
                folder, FILES.stem, partial(copy_to, self.reader.connection)
            )
        if self.newer is not None:
            newer = write_data(folder, f"{FILES.stem}-newer", partial(copy_to, self.newer))
            files["newer"] = newer
        FILES.write_head(folder, generation, files)


def load_table(folder: Path, generation: int) -> LookupTable | None:
    """Load the folder's tables; return None for missing, damaged or outdated tables."""

    def open_tables(files: Mapping[str, DataFile], head: FileHead) -> LookupTable:
        newer = open_database(folder, files["newer"]) if "newer" in files else None
        try:
            tables = open_database(folder, files["tables"])
        except StoreError:
            if newer is not None:
                newer.close()
            raise
        return LookupTable(tables, newer, KeptFiles(folder, {"tables": files["tables"]}))

    return FILES.load(folder, generation, open_tables)
