"""The writer: the one process that may change a collection's store, while it holds the lock.

Whatever enters the store was durable before, in a journal or in a staged change, and is applied
again after a crash; IRIs are functions of content, so that applying twice is harmless.
"""

from __future__ import annotations

import heapq
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from tgraph.errors import DamagedStoreError, StoreError
from tgraph.store.base import Graph, Results, Subject, Term
from tgraph.store.files import (
    FileLock,
    allowed_in,
    disk_errors,
    exclusive,
    make_folder,
    read_json,
    sync_files,
    sync_folder,
    write_json,
)
from tgraph.store.folder import CollectionFolder
from tgraph.store.oxigraph import BULK, OxigraphStore
from tgraph.store.snapshot import check_store, read_pointer
from tgraph.store.statements import read_nquads, to_bytes

AT_ONCE = 100_000
"""Lines sorted in memory; more are sorted in runs, beside the file, and merged."""


def sorted_lines(path: Path, at_once: int = AT_ONCE) -> Iterator[bytes]:
    """The lines of the file, each with its line end, in the order of their bytes.

    In UTF-8 that is the order of code points. The last line must have an end too.
    """
    with disk_errors(), path.open("rb") as file, ExitStack() as stack:
        runs: list[BinaryIO] = []
        while len(lines := sorted(islice(file, at_once))) == at_once:
            run = stack.enter_context(TemporaryFile(dir=path.parent))
            run.writelines(lines)
            run.seek(0)
            runs.append(run)
        yield from heapq.merge(*runs, lines)


IN_MEMORY = 1_000_000
"""Quads that the memory may hold, about 500 bytes each; then they go to disk."""

BESIDE_A_FILE = 100_000
"""The same, once a file was loaded: whoever does that has its own use for the memory."""


COMPACTED = 500_000
"""Quads that came to the disk, from which on it is worth compacting."""


class LayeredStore:
    """The quads of both layers as one ``Store``. It owns the disk store and changes it.

    Adding a quad to memory costs a tenth of what it costs on disk, and so does finding it again. A
    quad is in one layer only. A query needs all quads in one place: where both layers hold some,
    they are brought to disk first.
    """

    def __init__(self, disk: OxigraphStore, in_memory: int = IN_MEMORY) -> None:
        self._disk = disk
        self._memory = OxigraphStore.memory()
        self._limit = in_memory
        self._held = 0
        self._came = 0
        self._on_disk = next(disk.match(), None) is not None

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        layers = ((self._disk, self._on_disk), (self._memory, self._held or not self._on_disk))
        found = [layer.match(subject, predicate, obj, graph) for layer, holds in layers if holds]
        return found[0] if len(found) == 1 else chain(*found)

    def lines(self, graph: NamedNode) -> list[bytes]:
        return [*self._disk.lines(graph), *self._memory.lines(graph)]

    def query(self, text: str, *, union: bool = True) -> Results:
        if self._on_disk:
            self._settle()
            return self._disk.query(text, union=union)
        return self._memory.query(text, union=union)

    def has(self, quad: Quad) -> bool:
        return self._memory.has(quad) or (self._on_disk and self._disk.has(quad))

    def extend(self, quads: Iterable[Quad]) -> None:
        self.add(quads)

    def add(self, quads: Iterable[Quad]) -> list[Quad]:
        """Add quads; returns those that were not there, each once."""
        new = self._memory.missing(dict.fromkeys(quads))
        if self._on_disk:
            new = self._disk.missing(new)
        self._memory.extend(new)
        self._hold(len(new))
        return new

    def add_new(self, quads: Sequence[Quad]) -> None:
        """Add quads of which none is there already."""
        if self._on_disk and len(quads) >= BULK:
            self._disk.fill(quads)
            self._came += len(quads)
            return
        self._memory.extend(quads)
        self._hold(len(quads))

    def fill(self, path: Path) -> None:
        """Add a file of N-Quads, some of which may be there already, to the disk."""
        self._settle()
        self._disk.load(path)
        self._on_disk, self._limit = True, min(self._limit, BESIDE_A_FILE)

    def compact(self) -> None:
        """Bring all quads to the disk and into few files, where many came: to look something up
        there takes half the time then."""
        if self._came >= COMPACTED:
            self._settle()
            self._disk.compact()
            self._came = 0

    def _hold(self, count: int) -> None:
        self._held += count
        if self._held > self._limit:
            self._settle()

    def remove(self, quads: Iterable[Quad]) -> None:
        gone = list(quads)
        self._memory.remove(gone)
        if self._on_disk:
            self._disk.remove(gone)

    def backup(self, target: Path) -> None:
        """Write the quads of both layers as a store of its own."""
        self._settle()
        self._disk.backup(target)

    def flush(self) -> None:
        """Bring all quads to the disk."""
        self._settle()
        self._disk.flush()

    def close(self) -> None:
        self._memory.close()
        self._disk.close()

    def _settle(self) -> None:
        if self._held:
            bring = self._disk.fill if self._held >= BULK else self._disk.extend
            bring(self._memory.match())
            self._memory = OxigraphStore.memory()
            self._came += self._held
            self._held, self._on_disk = 0, True


ADDED, REMOVED, COMMIT = "added.nq", "removed.nq", "commit.json"
_COPY, _FORMER, _FOLLOWS = "store", "former", "follows"

ADDED_AT_ONCE = 50_000
"""Quads that a working copy takes into memory at once."""

MOST_KNOWN = 200_000
"""Changed quads that a working copy holds for whoever asks what changed."""

REPLACES = 100_000_000
"""Bytes of added statements from which on the working copy replaces the store (``adopt``): to load
them a second time costs as much as all else of a large change."""


@contextmanager
def writing(
    folder: CollectionFolder,
    *,
    timeout: float | None = None,
    waiting: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
) -> Iterator[OxigraphStore]:
    """The collection's store, open for writing, under its exclusive lock; ``before`` is called
    once the lock is held and before the store is opened.

    The store is closed before the lock is let go, whoever still refers to it.
    """
    with exclusive(folder.write_lock, timeout=timeout, waiting=waiting):
        before()
        _check_there(folder)
        store = OxigraphStore.open(folder.store, partial(check_store, folder))
        try:
            yield store
        finally:
            store.close()
            for log in folder.store.glob("LOG*"):  # RocksDB's own, of no use to anybody
                log.unlink(missing_ok=True)


def _check_there(folder: CollectionFolder) -> None:
    """``DamagedStoreError`` where there has been a store: RocksDB would make an empty one of what
    is left."""
    current = folder.store / "CURRENT"
    if not current.exists() and (folder.pointer.exists() or any(folder.store.glob("*.sst"))):
        raise DamagedStoreError(current)


class WorkingCopy:
    """A private copy of the store that an index run changes, and the list of what it changed.

    Nobody else sees it. ``commit`` makes the whole change durable; without it nothing happened.
    """

    def __init__(self, folder: CollectionFolder, run: str, store: OxigraphStore) -> None:
        self.path = folder.staging / run
        with disk_errors():
            make_folder(self.path.parent)
            self.path.mkdir(allowed_in(self.path.parent, 0o777))
            store.backup(self.path / _COPY)
        pointer = read_pointer(folder)
        self._follows = pointer.snapshot if pointer else None
        self._noted: list[tuple[int, int]] = []
        self.store = LayeredStore(OxigraphStore.open(self.path / _COPY))
        self._added = (self.path / ADDED).open("wb")
        self._removed = (self.path / REMOVED).open("wb")
        self.changed = 0
        self._known: list[Quad] | None = []

    @property
    def changed_quads(self) -> Sequence[Quad] | None:
        """The quads that ``add`` and ``remove`` changed; None where they are too many."""
        return self._known

    def _know(self, quads: Sequence[Quad]) -> None:
        self.changed += len(quads)
        if self._known is not None:
            self._known += quads
            if len(self._known) > MOST_KNOWN:
                self._known = None

    @property
    def vectors(self) -> Path:
        """Where the run puts the vector indexes of the knowledge it makes."""
        return self.path / "vectors"

    def add(self, quads: Iterable[Quad]) -> None:
        """Add quads; those that are there already are no change."""
        rest = iter(quads)
        while batch := list(islice(rest, ADDED_AT_ONCE)):
            new = self.store.add(batch)
            with disk_errors():
                self._added.write(to_bytes(new))
            self._know(new)

    def add_new(self, quads: Iterable[Quad]) -> None:
        """Add quads of which none is there already. ``changed_quads`` does not list these quads."""
        self.store.add_new(self._write(quads))

    def note(self, quads: Iterable[Quad]) -> None:
        """Add new quads that this run does not read again. The quads stay out of memory."""
        start = self._added.tell()
        self._write(quads)
        self._noted.append((start, self._added.tell()))

    def _write(self, quads: Iterable[Quad]) -> list[Quad]:
        new = list(dict.fromkeys(quads))
        with disk_errors():
            self._added.write(to_bytes(new))
        self.changed += len(new)
        return new

    def take_in(self) -> None:
        """From here on the run reads what it noted; until then it has only added."""
        with disk_errors():
            self._added.flush()
        self.store.fill(self.path / ADDED)
        self._noted.clear()

    def remove(self, quads: Iterable[Quad]) -> None:
        """Remove quads of the store as it was; what this run added it does not remove."""
        old = [quad for quad in dict.fromkeys(quads) if self.store.has(quad)]
        self.store.remove(old)
        with disk_errors():
            self._removed.write(to_bytes(old))
        self._know(old)

    def changes(self) -> tuple[Iterator[bytes], Iterator[bytes]]:
        """The N-Quads lines added and removed, each sorted, without holding them in memory."""
        with disk_errors():
            self._added.flush()
            self._removed.flush()
        return sorted_lines(self.path / ADDED), sorted_lines(self.path / REMOVED)

    def commit(self, description: dict[str, object]) -> None:
        """From here on the change will be applied, whatever happens."""
        with disk_errors():
            for file in (self._added, self._removed):
                file.flush()
                os.fsync(file.fileno())
            if self._added.tell() >= REPLACES and self._follows is not None:
                self._complete()
                description = {**description, _FOLLOWS: self._follows}
            sync_folder(self.path)
            write_json(self.path / COMMIT, description)
            sync_folder(self.path.parent)

    def _complete(self) -> None:
        """Make the copy what the store will be, and durable."""
        with (self.path / ADDED).open("rb") as file:
            for start, end in self._noted:
                file.seek(start)
                self.store.add_new(read_nquads(file.read(end - start)))
        self.store.flush()
        files = [path for path in (self.path / _COPY).iterdir() if path.suffix != ".sst"]
        sync_files([path for path in files if path.is_file()])  # RocksDB syncs its tables itself

    def close(self) -> None:
        """Let go of the copy; an uncommitted change is deleted."""
        for file in (self._added, self._removed):
            with suppress(OSError):  # what can't be flushed was not committed
                file.close()
        self.store.close()
        if not (self.path / COMMIT).exists():
            shutil.rmtree(self.path, ignore_errors=True)


def committed(folder: CollectionFolder) -> list[Path]:
    """The staged changes that must be applied, in the order of their names."""
    return [entry for entry in _staged(folder) if (entry / COMMIT).is_file()]


def abandoned(folder: CollectionFolder) -> list[Path]:
    """Staged changes of runs that died; only the holder of the index lock may ask and delete."""
    return [entry for entry in _staged(folder) if not (entry / COMMIT).is_file()]


def remove_abandoned(folder: CollectionFolder) -> None:
    """Delete what dead index runs left behind, unless one is at work, which does so itself."""
    if not abandoned(folder):
        return
    lock = FileLock.try_acquire(folder.index_lock)
    if lock is not None:
        for entry in abandoned(folder):
            shutil.rmtree(entry, ignore_errors=True)
        lock.release()


def _staged(folder: CollectionFolder) -> list[Path]:
    return sorted(folder.staging.iterdir()) if folder.staging.is_dir() else []


def adopt(folder: CollectionFolder) -> None:
    """Put the working copy of the one committed change in the place of the store, before that is
    opened, where nothing was published since the copy was made: it is the store with the change.

    Only the holder of the write lock may do this, while no erasure waits. It may be repeated.
    """
    changes = committed(folder)
    copy = changes[0] / _COPY if len(changes) == 1 else None
    if copy is None or not copy.is_dir():
        return
    follows = (read_json(copy.parent / COMMIT) or {}).get(_FOLLOWS)
    pointer = read_pointer(folder)
    if follows is None or pointer is None or pointer.snapshot != follows or not _is_free(copy):
        return
    with disk_errors():
        if folder.store.exists():  # else it was put away, and then the process died
            folder.store.rename(copy.parent / _FORMER)
        copy.rename(folder.store)
        sync_folder(copy.parent)
        sync_folder(folder.store.parent)


def _is_free(store: Path) -> bool:
    """Whether nobody has the database open any more."""
    try:
        OxigraphStore.open(store).close()
    except StoreError:
        return False
    return True


def apply(store: OxigraphStore, change: Path) -> None:
    """Apply a committed change: removals first, so that what is both stays. One that was adopted
    is applied."""
    if _FOLLOWS in (read_json(change / COMMIT) or {}) and not (change / _COPY).exists():
        return
    with disk_errors(), (change / REMOVED).open("rb") as file:
        store.remove(parse(file, RdfFormat.N_QUADS))
    store.load(change / ADDED)


def discard(change: Path) -> None:
    """Delete an applied change: first what says that it must be applied, for it goes in parts."""
    with disk_errors():
        (change / COMMIT).unlink(missing_ok=True)
    shutil.rmtree(change, ignore_errors=True)
