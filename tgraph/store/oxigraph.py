"""Oxigraph, embedded: the store of a collection, and its read-only snapshots."""

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
from tgraph.store.base import Graph, Results, Subject, Term
from tgraph.store.files import disk_errors, store_error
from tgraph.store.patience import evaluated
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
        """``check`` looks for the damage that may be why a query goes on and on; without it the
        store is in memory, where there is none."""
        self._store = store
        self._check = check

    def close(self) -> None:
        """Let go of the database, so that it can be opened again; using it is an error from here.

        Iterators and results that were not read to their end keep it open as long as they live.
        """
        if hasattr(self, "_store"):
            del self._store

    @classmethod
    def open(cls, path: Path, check: Callable[[], None] = lambda: None) -> OxigraphStore:
        """The database for writing; only the holder of the write lock may do this."""
        return cls(_open(path, lambda: pyoxigraph.Store(str(path))), check)

    @classmethod
    def snapshot(cls, path: Path) -> OxigraphStore:
        """A published checkpoint for reading."""
        opened = _open(path, lambda: pyoxigraph.Store.read_only(str(path)))
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
        return _readable(self._store.quads_for_pattern(subject, predicate, obj, graph))

    def lines(self, graph: NamedNode) -> list[bytes]:
        found: list[bytes] = []
        self.dump(graph, found.extend)
        return found

    def dump(self, graph: Graph, take: Callable[[list[bytes]], object]) -> None:
        """Hand the quads of a graph over as lines of N-Quads, some at a time, in no promised order.

        What ``take`` raises is raised.
        """
        with disk_errors():
            out = cast(IO[bytes], _NQuadsFile(graph, take))
            self._store.dump(out, RdfFormat.N_TRIPLES, from_graph=graph)

    def query(self, text: str, *, union: bool = True) -> Results:
        store = self._store

        def evaluate() -> Results:
            return store.query(text, use_default_graph_as_union=union, prefixes=PREFIXES)

        try:
            return evaluate() if self._check is None else evaluated(evaluate, self._check)
        except SyntaxError as error:
            raise QueryError(f"The SPARQL query can't be parsed: {error}.") from error

    def has(self, quad: Quad) -> bool:
        return quad in self._store

    def missing(self, quads: Iterable[Quad]) -> list[Quad]:
        """Those of the quads that are not there."""
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
        """Add many quads at a third of the cost; a crash may leave a part of them."""
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
        """Put what many changes left in many files together."""
        with disk_errors():
            self._store.optimize()

    def backup(self, target: Path) -> None:
        with disk_errors():
            self._store.backup(str(target))


class _NQuadsFile:
    """A file of N-Triples for writing, which hands whole lines on as N-Quads of a graph."""

    def __init__(self, graph: Graph, take: Callable[[list[bytes]], object]) -> None:
        self._end = _END if isinstance(graph, DefaultGraph) else f" {graph} .\n".encode()
        self._take = take
        self._rest = b""

    def write(self, data: bytes) -> int:
        whole, newline, rest = data.rpartition(b"\n")
        if newline:
            lines = self._rest + whole + newline
            self._take(lines.replace(_END, self._end).splitlines(keepends=True))
            self._rest = rest
        else:
            self._rest += rest
        return len(data)

    def flush(self) -> None:
        assert not self._rest  # it is a line that has no end


def _readable(quads: Iterator[Quad]) -> Iterator[Quad]:
    try:
        yield from quads
    except (OSError, RuntimeError) as error:
        raise store_error(error) from error


def _open(path: Path, opener: Callable[[], pyoxigraph.Store]) -> pyoxigraph.Store:
    """The database. A handle that a dead process or an exception's traceback still holds goes away
    in a moment: whoever may open the database has the write lock, so nobody else can want it."""
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
