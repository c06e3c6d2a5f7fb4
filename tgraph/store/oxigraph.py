"""Embedded Oxigraph: collection store and read-only snapshots."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, cast

import pyoxigraph
from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat

from tgraph.errors import QueryError
from tgraph.shortages import check_store_headroom
from tgraph.store.base import Graph, Results, Subject, Term
from tgraph.store.files import disk_errors, store_error
from tgraph.store.patience import evaluate_query
from tgraph.store.sums import check_files
from tgraph.vocabulary import PREFIXES

_END = b" .\n"
_LOCKED = ("lock hold by", "Resource temporarily unavailable")
BULK = 10_000
"""From this many quads on bulk loading is faster than a transaction."""

AT_ONCE = 60_000_000
"""Bytes of N-Quads in one bulk load, which takes several times as much memory; less would leave
more files to search when reading, until they are compacted."""

LOCK_PATIENCE = 5.0
"""Seconds in which a handle of a database that nobody uses any more has to go away."""


class OxigraphStore:
    """An open Oxigraph database. A disk error poisons the handle: drop it and open a new one."""

    def __init__(self, store: pyoxigraph.Store, check: Callable[[], None] | None = None) -> None:
        """Wrap an Oxigraph store.

        ``check`` looks for damage behind endless queries; stores without ``check`` are in
        memory and cannot be damaged."""
        self._store = store
        self._check = check

    def close(self) -> None:
        """Close the database for reopening; later use is an error.

        Unfinished iterators and results keep the database open while alive."""
        if hasattr(self, "_store"):
            del self._store

    @classmethod
    def open(cls, path: Path, check: Callable[[], None] = lambda: None) -> OxigraphStore:
        """Open a database for writing; only write lock holders may call this."""
        check_store_headroom(writing=True)
        return cls(_open_database(path, lambda: pyoxigraph.Store(str(path))), check)

    @classmethod
    def snapshot(cls, path: Path) -> OxigraphStore:
        """A published checkpoint for reading."""
        check_store_headroom(writing=False)
        opened = _open_database(path, lambda: pyoxigraph.Store.read_only(str(path)))
        return cls(opened, partial(check_files, path))

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
        return _translate_errors(self._store.quads_for_pattern(subject, predicate, obj, graph))

    def lines(self, graph: NamedNode) -> list[bytes]:
        quad_lines: list[bytes] = []
        self.dump(graph, quad_lines.extend)
        return quad_lines

    def dump(self, graph: Graph, take: Callable[[list[bytes]], object]) -> None:
        """Pass graph quads to ``take`` as N-Quads lines, in batches and arbitrary order.

        Errors from ``take`` propagate."""
        with disk_errors():
            out = cast(IO[bytes], _NQuadsFile(graph, take))
            self._store.dump(out, RdfFormat.N_TRIPLES, from_graph=graph)

    def query(self, text: str) -> Results:
        store = self._store

        def evaluate() -> Results:
            return store.query(text, prefixes=PREFIXES)

        try:
            return evaluate() if self._check is None else evaluate_query(evaluate, self._check)
        except SyntaxError as error:
            raise QueryError(f"The SPARQL query can't be parsed: {error}.") from error

    def has_quad(self, quad: Quad) -> bool:
        return quad in self._store

    def missing(self, quads: Iterable[Quad]) -> list[Quad]:
        """Return quads missing from the store."""
        store = self._store
        return [quad for quad in quads if quad not in store]

    def update(self, text: str) -> None:
        try:
            self._store.update(text, prefixes=PREFIXES)
        except SyntaxError as error:
            raise QueryError(f"The SPARQL update can't be parsed: {error}.") from error

    def extend(self, quads: Iterable[Quad]) -> None:
        with disk_errors():
            self._store.extend(quads)

    def fill(self, quads: Iterable[Quad]) -> None:
        """Add many quads at a third of the cost; crashes may leave partial data."""
        with disk_errors():
            self._store.bulk_extend(quads)

    def remove(self, quads: Iterable[Quad]) -> None:
        with disk_errors():
            for quad in quads:
                self._store.remove(quad)

    def load(self, path: Path) -> None:
        """Add a file of N-Quads that a store wrote. A crash half-way is mended by loading it
        again."""
        with disk_errors():
            if path.stat().st_size > BULK * 150:
                with path.open("rb") as file:
                    while block := file.read(AT_ONCE):  # whole lines
                        block += file.readline()
                        self._store.bulk_load(input=block, format=RdfFormat.N_QUADS, lenient=True)
            else:
                self._store.load(path=str(path), format=RdfFormat.N_QUADS)

    def flush(self) -> None:
        with disk_errors():
            self._store.flush()

    def compact(self) -> None:
        """Merge scattered database files left by many changes."""
        with disk_errors():
            self._store.optimize()

    def backup(self, target: Path) -> None:
        with disk_errors():
            self._store.backup(str(target))


class _NQuadsFile:
    """A writable N-Triples file, forwarding complete lines as N-Quads of a graph."""

    def __init__(self, graph: Graph, take: Callable[[list[bytes]], object]) -> None:
        self._end = _END if isinstance(graph, DefaultGraph) else f" {graph} .\n".encode()
        self._take = take
        self._rest = b""

    def write(self, data: bytes) -> int:
        complete_lines, newline, remainder = data.rpartition(b"\n")
        if newline:
            lines = self._rest + complete_lines + newline
            self._take(lines.replace(_END, self._end).splitlines(keepends=True))
            self._rest = remainder
        else:
            self._rest += remainder
        return len(data)

    def flush(self) -> None:
        assert not self._rest  # it is a line that has no end


def _translate_errors(quads: Iterator[Quad]) -> Iterator[Quad]:
    try:
        yield from quads
    except (OSError, RuntimeError) as error:
        raise store_error(error) from error


def _open_database(path: Path, opener: Callable[[], pyoxigraph.Store]) -> pyoxigraph.Store:
    """Open the database, waiting briefly for stale handles.

    Dead processes or exception tracebacks may hold handles for a moment; the caller owns the
    write lock, so no other process competes."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            return opener()
        except (OSError, RuntimeError, ValueError) as error:
            locked = any(text in str(error) for text in _LOCKED)
            if not locked or time.monotonic() > deadline:
                raise store_error(error, path) from error
        gc.collect()
        time.sleep(0.02)
