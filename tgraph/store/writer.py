"""The writer: the one process that may change a collection's store, while it holds the lock.

Whatever enters the store was durable before, in a journal or in a staged change, and is applied
again after a crash; IRIs are functions of content, so that applying twice is harmless.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyoxigraph import Quad, RdfFormat, parse

from tgraph.store.files import (
    FileLock,
    disk_errors,
    exclusive,
    make_folder,
    sync_folder,
    write_json,
)
from tgraph.store.folder import CollectionFolder
from tgraph.store.layered import LayeredStore
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.sorting import sorted_lines
from tgraph.store.statements import to_bytes

ADDED, REMOVED, COMMIT = "added.nq", "removed.nq", "commit.json"


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
        store = OxigraphStore.open(folder.store)
        try:
            yield store
        finally:
            store.close()


class WorkingCopy:
    """A private copy of the store that an index run changes, and the list of what it changed.

    Nobody else sees it. ``commit`` makes the whole change durable; without it nothing happened.
    """

    def __init__(self, folder: CollectionFolder, run: str, store: OxigraphStore) -> None:
        self.path = folder.staging / run
        with disk_errors():
            make_folder(self.path.parent)
            self.path.mkdir()
            store.backup(self.path / "store")
        self.store = LayeredStore(OxigraphStore.open(self.path / "store"))
        self._added = (self.path / ADDED).open("wb")
        self._removed = (self.path / REMOVED).open("wb")
        self.changed = 0

    @property
    def vectors(self) -> Path:
        """Where the run puts the vector indexes of the knowledge it makes."""
        return self.path / "vectors"

    def add(self, quads: Iterable[Quad]) -> None:
        """Add quads; those that are there already are no change."""
        new = self.store.add(quads)
        with disk_errors():
            self._added.write(to_bytes(new))
        self.changed += len(new)

    def add_new(self, lines: Iterable[str]) -> None:
        """As ``add``, of N-Quads of which none is there already: a third of the time."""
        self.store.load(self._write(lines))

    def note(self, lines: Iterable[str]) -> None:
        """As ``add_new``, of what this run does not read again: it is kept out of memory."""
        self._write(lines)

    def _write(self, lines: Iterable[str]) -> list[str]:
        new = list(dict.fromkeys(lines))
        with disk_errors():
            self._added.write("".join(new).encode())
        self.changed += len(new)
        return new

    def remove(self, quads: Iterable[Quad]) -> None:
        """Remove quads of the store as it was; what this run added it does not remove."""
        old = [quad for quad in dict.fromkeys(quads) if self.store.has(quad)]
        self.store.remove(old)
        with disk_errors():
            self._removed.write(to_bytes(old))
        self.changed += len(old)

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
            sync_folder(self.path)
            write_json(self.path / COMMIT, description)
            sync_folder(self.path.parent)

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


def apply(store: OxigraphStore, change: Path) -> None:
    """Apply a committed change: removals first, so that what is both stays."""
    with disk_errors(), (change / REMOVED).open("rb") as file:
        store.remove(parse(file, RdfFormat.N_QUADS))
    store.load(change / ADDED)


def discard(change: Path) -> None:
    """Delete an applied change: first what says that it must be applied, for it goes in parts."""
    with disk_errors():
        (change / COMMIT).unlink(missing_ok=True)
    shutil.rmtree(change, ignore_errors=True)
