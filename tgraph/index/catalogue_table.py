"""The catalogue of a knowledge generation in an SQLite database beside the vectors.

It is derived like these: where the file is missing, damaged or of another generation, the
statements are counted instead. A question reads all of it but the rows of classes, which may be as
many as the graph has and are read when a query names them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from weakref import finalize

from pyoxigraph import NamedNode

from tgraph.index.catalogue import (
    Catalogue,
    CatalogueColumn,
    CatalogueCounts,
    KnownClass,
    KnownProperty,
    KnownValue,
    PropertyValues,
    make_catalogue,
)
from tgraph.index.data_files import ONLY_FILE, DataFile, DataSet, FileHead, write_data
from tgraph.index.lookup_rows import parse_object
from tgraph.index.sqlite_files import copy_to, in_memory, open_database, rows_of
from tgraph.store.base import Store

if TYPE_CHECKING:
    import sqlite3

FILES = DataSet("catalogue", format=2)

_SCHEMA = """
CREATE TABLE class (number INTEGER PRIMARY KEY, body TEXT, count INTEGER, rows TEXT);
CREATE TABLE property (number INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE counts (body TEXT);
"""
_CLASSES = "SELECT number, body, count FROM class ORDER BY number"
_PROPERTIES = "SELECT body FROM property ORDER BY number"
_COUNTS = "SELECT body FROM counts"
_ROWS = "SELECT rows FROM class WHERE number = ?"


class CatalogueTable:
    """A catalogue in a database. Thread-safe; raises ``StoreError`` if the file is damaged."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self.close = finalize(self, connection.close)

    @classmethod
    def from_counts(cls, store: Store, counts: CatalogueCounts) -> CatalogueTable:
        """Return an in-memory table of the catalogue of what was counted in a store."""
        catalogue = make_catalogue(store, counts)
        connection = in_memory()
        connection.executescript(_SCHEMA)
        connection.executemany(
            "INSERT INTO class VALUES (?, ?, ?, ?)",
            (
                (number, _class_body(known), len(known.rows), " ".join(r.value for r in known.rows))
                for number, known in enumerate(catalogue.classes)
            ),
        )
        bodies = map(_property_body, catalogue.properties)
        connection.executemany("INSERT INTO property VALUES (?, ?)", enumerate(bodies))
        connection.execute("INSERT INTO counts VALUES (?)", (_counts_body(counts),))
        connection.commit()
        return cls(connection)

    def save(self, folder: Path, generation: int) -> None:
        """Save the table in the folder, atomically and durably, for a knowledge generation.

        Raises ``StoreError`` if the disk fails."""
        file = write_data(folder, FILES.stem, partial(copy_to, self._connection))
        FILES.write_head(folder, generation, {ONLY_FILE: file})

    @cached_property
    def catalogue(self) -> Catalogue:
        """The catalogue, with the rows of classes read on demand."""
        classes = (
            replace(_parse_class(body), rows=_StoredRows(self, number, count) if count else ())
            for number, body, count in self._query(_CLASSES)
        )
        properties = (_parse_property(body) for (body,) in self._query(_PROPERTIES))
        return Catalogue(tuple(classes), tuple(properties))

    def read_counts(self) -> CatalogueCounts:
        """Return the saved counts that the catalogue was made from."""
        [(body,)] = self._query(_COUNTS)
        return _parse_counts(body, self.catalogue)

    def rows(self, number: int) -> tuple[NamedNode, ...]:
        """Return the rows of the class with the number."""
        [(rows,)] = self._query(_ROWS, number)
        return tuple(map(NamedNode, rows.split(" ")))

    def _query(self, query: str, *values: int) -> list[Any]:
        return rows_of(self._connection, self._lock, query, [values])[0]


class _StoredRows(Sequence[NamedNode]):
    """The rows of a class, read when the first of them is looked at."""

    def __init__(self, table: CatalogueTable, number: int, count: int) -> None:
        self._table = table
        self._number = number
        self._count = count

    @cached_property
    def _rows(self) -> tuple[NamedNode, ...]:
        return self._table.rows(self._number)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> NamedNode: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[NamedNode, ...]: ...

    def __getitem__(self, at: int | slice) -> NamedNode | tuple[NamedNode, ...]:
        return self._rows[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._rows == tuple(other)

    def __hash__(self) -> int:
        return hash(self._rows)


def load_catalogue(folder: Path, generation: int) -> CatalogueTable | None:
    """Load the folder's catalogue; return None for a missing, damaged or outdated one."""

    def open_table(files: Mapping[str, DataFile], head: FileHead) -> CatalogueTable:
        return CatalogueTable(open_database(folder, files[ONLY_FILE]))

    return FILES.load(folder, generation, open_table)


def _class_body(known: KnownClass) -> str:
    body = asdict(replace(known, rows=(), columns=(), properties=()))
    del body["rows"]
    body["columns"] = [(column.head, column.property.value) for column in known.columns]
    body["properties"] = [(iri.value, count) for iri, count in known.properties]
    return json.dumps(body)


def _parse_class(body: str) -> KnownClass:
    fields = json.loads(body)
    columns = tuple(CatalogueColumn(head, NamedNode(iri)) for head, iri in fields.pop("columns"))
    properties = tuple((NamedNode(iri), count) for iri, count in fields.pop("properties"))
    fields |= {name: tuple(fields[name]) for name in ("synonyms", "common_types")}
    return KnownClass(**fields, columns=columns, properties=properties)


def _counts_body(counts: CatalogueCounts) -> str:
    """Return the counts but for what the catalogue shows: the tables and the values."""
    namesakes = {
        word: [[member, *sorted(properties)] for member, properties in group.items()]
        for word, group in counts.namesakes.items()
    }
    domains = [[*key, count] for key, count in counts.domains.items()]
    kinds = [[*key, *counted] for key, counted in counts.kinds.items()]
    return json.dumps([counts.members, domains, kinds, namesakes])


def _parse_counts(body: str, catalogue: Catalogue) -> CatalogueCounts:
    members, domains, kinds, namesakes = json.loads(body)
    return CatalogueCounts(
        members,
        {(class_iri, iri): count for class_iri, iri, count in domains},
        {(iri, datatype): tuple(counted) for iri, datatype, *counted in kinds},
        {
            known.iri.value: PropertyValues(
                known.distinct, [(value.value, value.statements) for value in known.values]
            )
            for known in catalogue.properties
        },
        {
            word: {member: frozenset(properties) for member, *properties in group}
            for word, group in namesakes.items()
        },
        tuple(known for known in catalogue.classes if known.kind == "table"),
    )


def _property_body(known: KnownProperty) -> str:
    body = asdict(replace(known, values=()))
    values = [(str(value.value), value.label, value.statements) for value in known.values]
    return json.dumps(body | {"iri": known.iri.value, "values": values})


def _parse_property(body: str) -> KnownProperty:
    fields = json.loads(body)
    values = tuple(KnownValue(parse_object(term), *rest) for term, *rest in fields.pop("values"))
    kinds = tuple((kind, count) for kind, count in fields.pop("kinds"))
    iri, synonyms = NamedNode(fields.pop("iri")), tuple(fields.pop("synonyms"))
    return KnownProperty(iri, **fields, kinds=kinds, values=values, synonyms=synonyms)
