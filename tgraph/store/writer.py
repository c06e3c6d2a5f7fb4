"""Store writer: the single process permitted to change a collection store, while holding the
write lock.

All store contents were previously durable, in a journal or staged change, and are reapplied
after crashes; IRIs derive from content, making repeated application harmless."""

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
    hold_lock,
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
    """Yield file lines sorted by bytes, each with line end.

    In UTF-8, byte order equals code point order. The last line must end with a line end too."""
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
    """A two-layer ``Store``: memory and disk, owning the disk store.

    Adding or finding quads in memory costs a tenth of disk access. Each quad is in one layer
    only. Queries need all quads in one place: where both layers hold quads, memory quads first
    move to disk."""

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
        iterators = [
            layer.match(subject, predicate, obj, graph) for layer, holds in layers if holds
        ]
        return iterators[0] if len(iterators) == 1 else chain(*iterators)

    def lines(self, graph: NamedNode) -> list[bytes]:
        return [*self._disk.lines(graph), *self._memory.lines(graph)]

    def query(self, text: str) -> Results:
        if self._on_disk:
            self._settle_quads()
            return self._disk.query(text)
        return self._memory.query(text)

    def has_quad(self, quad: Quad) -> bool:
        return self._memory.has_quad(quad) or (self._on_disk and self._disk.has_quad(quad))

    def extend(self, quads: Iterable[Quad]) -> None:
        self.add(quads)

    def add(self, quads: Iterable[Quad]) -> list[Quad]:
        """Add quads; return newly added quads without duplicates."""
        new = self._memory.missing(dict.fromkeys(quads))
        if self._on_disk:
            new = self._disk.missing(new)
        self._memory.extend(new)
        self._hold_quads(len(new))
        return new

    def add_new(self, quads: Sequence[Quad]) -> None:
        """Add quads known to be new."""
        if self._on_disk and len(quads) >= BULK:
            self._disk.fill(quads)
            self._came += len(quads)
            return
        self._memory.extend(quads)
        self._hold_quads(len(quads))

    def fill(self, path: Path) -> None:
        """Load an N-Quads file onto disk, tolerating existing quads."""
        self._settle_quads()
        self._disk.load(path)
        self._on_disk, self._limit = True, min(self._limit, BESIDE_A_FILE)

    def compact(self) -> None:
        """Compact all quads on disk after many additions, halving look-up time."""
        if self._came >= COMPACTED:
            self._settle_quads()
            self._disk.compact()
            self._came = 0

    def _hold_quads(self, count: int) -> None:
        self._held += count
        if self._held > self._limit:
            self._settle_quads()

    def remove(self, quads: Iterable[Quad]) -> None:
        gone = list(quads)
        self._memory.remove(gone)
        if self._on_disk:
            self._disk.remove(gone)

    def backup(self, target: Path) -> None:
        """Write quads of both layers into a separate store."""
        self._settle_quads()
        self._disk.backup(target)

    def flush(self) -> None:
        """Write all quads to disk."""
        self._settle_quads()
        self._disk.flush()

    def close(self) -> None:
        self._memory.close()
        self._disk.close()

    def _settle_quads(self) -> None:
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
def open_writable_store(
    folder: CollectionFolder,
    *,
    timeout: float | None = None,
    waiting: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
) -> Iterator[OxigraphStore]:
    """Open the collection store for writing under its exclusive lock.

    ``before`` is called after locking and before opening. The store closes before the lock is
    released, regardless of remaining references."""
    with hold_lock(folder.write_lock, timeout=timeout, waiting=waiting):
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
    """Raise ``DamagedStoreError`` for a lost store: RocksDB would create an empty store from
    remaining files."""
    current = folder.store / "CURRENT"
    if not current.exists() and (folder.pointer.exists() or any(folder.store.glob("*.sst"))):
        raise DamagedStoreError(current)


class WorkingCopy:
    """A private store copy for an index run, with its change list.

    The copy is invisible to others. ``commit`` makes the whole change durable; without
    ``commit`` nothing changes."""

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
        """Quads changed by ``add`` and ``remove``; None when too numerous, or loaded by
        ``take_in``."""
        return self._known

    def _record_quads(self, quads: Sequence[Quad]) -> None:
        self.changed += len(quads)
        if self._known is not None:
            self._known += quads
            if len(self._known) > MOST_KNOWN:
                self._known = None

    @property
    def vectors(self) -> Path:
        """The run's folder for vector indexes."""
        return self.path / "vectors"

    def add(self, quads: Iterable[Quad]) -> None:
        """Add quads; existing quads count as unchanged."""
        remaining_quads = iter(quads)
        while batch := list(islice(remaining_quads, ADDED_AT_ONCE)):
            new = self.store.add(batch)
            with disk_errors():
                self._added.write(to_bytes(new))
            self._record_quads(new)

    def add_new(self, quads: Iterable[Quad]) -> None:
        """Add quads known to be new, unlisted by ``changed_quads``."""
        self.store.add_new(self._write_lines(quads))

    def note(self, quads: Iterable[Quad]) -> None:
        """Add new quads that this run does not read again. The quads stay out of memory."""
        start = self._added.tell()
        self._write_lines(quads)
        self._noted.append((start, self._added.tell()))

    def _write_lines(self, quads: Iterable[Quad]) -> list[Quad]:
        new = list(dict.fromkeys(quads))
        with disk_errors():
            self._added.write(to_bytes(new))
        self.changed += len(new)
        return new

    def take_in(self) -> None:
        """Load noted quads for reading; earlier, the run may only add."""
        with disk_errors():
            self._added.flush()
        self.store.fill(self.path / ADDED)
        self._noted.clear()
        self._known = None

    def remove(self, quads: Iterable[Quad]) -> None:
        """Remove quads of the original store; quads added by this run remain."""
        old = [quad for quad in dict.fromkeys(quads) if self.store.has_quad(quad)]
        self.store.remove(old)
        with disk_errors():
            self._removed.write(to_bytes(old))
        self._record_quads(old)

    def changes(self) -> tuple[Iterator[bytes], Iterator[bytes]]:
        """The N-Quads lines added and removed, each sorted, without holding them in memory."""
        with disk_errors():
            self._added.flush()
            self._removed.flush()
        return sorted_lines(self.path / ADDED), sorted_lines(self.path / REMOVED)

    def commit(self, description: dict[str, object]) -> None:
        """Commit the change durably; crashes no longer prevent application."""
        with disk_errors():
            for file in (self._added, self._removed):
                file.flush()
                os.fsync(file.fileno())
            if self._added.tell() >= REPLACES and self._follows is not None:
                self._complete_copy()
                description = {**description, _FOLLOWS: self._follows}
            sync_folder(self.path)
            write_json(self.path / COMMIT, description)
            sync_folder(self.path.parent)

    def _complete_copy(self) -> None:
        """Complete the copy into the future store and make the copy durable."""
        with (self.path / ADDED).open("rb") as file:
            for start, end in self._noted:
                file.seek(start)
                self.store.add_new(read_nquads(file.read(end - start)))
        self.store.flush()
        files = [path for path in (self.path / _COPY).iterdir() if path.suffix != ".sst"]
        sync_files([path for path in files if path.is_file()])  # RocksDB syncs its tables itself

    def close(self) -> None:
        """Close the copy; delete uncommitted changes."""
        for file in (self._added, self._removed):
            with suppress(OSError):  # what can't be flushed was not committed
                file.close()
        self.store.close()
        if not (self.path / COMMIT).exists():
            shutil.rmtree(self.path, ignore_errors=True)


def committed_changes(folder: CollectionFolder) -> list[Path]:
    """Return committed staged changes awaiting application, sorted by name."""
    return [entry for entry in _staged_changes(folder) if (entry / COMMIT).is_file()]


def abandoned_changes(folder: CollectionFolder) -> list[Path]:
    """Staged changes of runs that died; only the holder of the index lock may ask and delete."""
    return [entry for entry in _staged_changes(folder) if not (entry / COMMIT).is_file()]


def remove_abandoned(folder: CollectionFolder) -> None:
    """Delete changes left by dead index runs, unless an index run is active, since active runs
    clean up themselves."""
    if not abandoned_changes(folder):
        return
    lock = FileLock.try_acquire(folder.index_lock)
    if lock is not None:
        for entry in abandoned_changes(folder):
            shutil.rmtree(entry, ignore_errors=True)
        lock.release()


def _staged_changes(folder: CollectionFolder) -> list[Path]:
    return sorted(folder.staging.iterdir()) if folder.staging.is_dir() else []


def adopt_change(folder: CollectionFolder) -> None:
    """Replace the unopened store with the working copy of a single committed change.

    Replacement requires no publication since copying: the copy then equals store plus change.
    Only write lock holders may call this, without pending erasures. Repetition is safe."""
    changes = committed_changes(folder)
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
    """Return whether no process holds the database open."""
    try:
        OxigraphStore.open(store).close()
    except StoreError:
        return False
    return True


def apply_change(store: OxigraphStore, change: Path) -> None:
    """Apply a committed change, removals first so quads both removed and added remain; skip
    adopted changes."""
    if _FOLLOWS in (read_json(change / COMMIT) or {}) and not (change / _COPY).exists():
        return
    with disk_errors(), (change / REMOVED).open("rb") as file:
        store.remove(parse(file, RdfFormat.N_QUADS))
    store.load(change / ADDED)


def discard_change(change: Path) -> None:
    """Delete an applied change, commit marker first, since deletion proceeds in parts."""
    with disk_errors():
        (change / COMMIT).unlink(missing_ok=True)
    shutil.rmtree(change, ignore_errors=True)
