"""Oxigraph, embedded: the store of a collection, and its read-only snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyoxigraph
from pyoxigraph import NamedNode, Quad, RdfFormat

from tgraph.errors import QueryError, StoreError
from tgraph.store.base import Graph, Results, Subject, Term
from tgraph.vocabulary import PREFIXES

BULK = 50_000
"""From this many quads on bulk loading is faster than a transaction (reference: rdf_stack, 2)."""


class OxigraphStore:
    """An open Oxigraph database. A disk error poisons the handle: drop it and open a new one."""

    def __init__(self, store: pyoxigraph.Store) -> None:
        self._store = store

    @classmethod
    def open(cls, path: Path) -> OxigraphStore:
        """The database for writing; only the holder of the write lock may do this."""
        return cls(_open(lambda: pyoxigraph.Store(str(path)), path))

    @classmethod
    def snapshot(cls, path: Path) -> OxigraphStore:
        """A published checkpoint for reading."""
        return cls(_open(lambda: pyoxigraph.Store.read_only(str(path)), path))

    @classmethod
    def memory(cls, quads: Iterable[Quad] = ()) -> OxigraphStore:
        store = cls(pyoxigraph.Store())
        store.extend(quads)
        return store

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        return self._store.quads_for_pattern(subject, predicate, obj, graph)

    def query(self, text: str, *, union: bool = True) -> Results:
        try:
            return self._store.query(text, use_default_graph_as_union=union, prefixes=PREFIXES)
        except SyntaxError as error:
            raise QueryError(f"The SPARQL query can't be parsed: {error}.") from error

    def has(self, quad: Quad) -> bool:
        return quad in self._store

    def update(self, text: str) -> None:
        try:
            self._store.update(text, prefixes=PREFIXES)
        except SyntaxError as error:
            raise QueryError(f"The SPARQL update can't be parsed: {error}.") from error

    def extend(self, quads: Iterable[Quad]) -> None:
        with disk_errors():
            self._store.extend(quads)

    def remove(self, quads: Iterable[Quad]) -> None:
        with disk_errors():
            for quad in quads:
                self._store.remove(quad)

    def load(self, path: Path) -> None:
        """Add a file of N-Quads. A crash half-way is mended by loading it again."""
        with disk_errors():
            if path.stat().st_size > BULK * 150:
                self._store.bulk_load(path=str(path), format=RdfFormat.N_QUADS)
            else:
                self._store.load(path=str(path), format=RdfFormat.N_QUADS)

    def flush(self) -> None:
        with disk_errors():
            self._store.flush()

    def backup(self, target: Path) -> None:
        with disk_errors():
            self._store.backup(str(target))


class disk_errors:  # noqa: N801  a context manager that reads as a phrase
    """Turns what the operating system or RocksDB says into a ``StoreError`` with a remedy."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | RuntimeError):
            raise store_error(error) from error


def store_error(error: BaseException) -> StoreError:
    text = " ".join(str(error).split())
    if "No space left" in text or getattr(error, "errno", None) == 28:
        return StoreError(
            "The disk is full; nothing that was acknowledged is lost.",
            "Free some space and run the command again.",
        )
    if isinstance(error, PermissionError) or "Read-only file system" in text:
        return StoreError(
            f"The graph folder can't be written ({text}).", "Check its permissions."
        )
    return StoreError(f"The store failed: {text}.", "Run `tgraph doctor` to look into it.")


def _open(opener: object, path: Path) -> pyoxigraph.Store:
    assert callable(opener)
    try:
        store = opener()
    except (OSError, RuntimeError, ValueError) as error:
        raise store_error(error) from error
    assert isinstance(store, pyoxigraph.Store)
    return store
