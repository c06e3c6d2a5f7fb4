"""The writer: the one process that may change a collection's store, for as long as it holds the lock.

Whatever enters the store was durable before, in a journal or in a staged change, and is applied
again after a crash; IRIs are functions of content, so that applying twice is harmless.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyoxigraph import RdfFormat, parse

from tgraph.store.files import exclusive, sync_folder
from tgraph.store.folder import CollectionFolder
from tgraph.store.oxigraph import OxigraphStore, disk_errors

ADDED, REMOVED, COMMIT = "added.nq", "removed.nq", "commit.json"


@contextmanager
def writing(
    folder: CollectionFolder,
    *,
    timeout: float | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[OxigraphStore]:
    """The collection's store, open for writing, under its exclusive lock."""
    with disk_errors(), exclusive(folder.write_lock, timeout=timeout, waiting=waiting):
        store = OxigraphStore.open(folder.store)
        try:
            yield store
        finally:
            del store


class Staging:
    """An index run's changes as files: quads to add and to remove, committed together or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_errors():
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)

    def write(self, added: Path | str, removed: str, commit: bytes) -> None:
        """Make the change durable; from here on it will be applied, whatever happens."""
        from tgraph.store.files import write_atomic

        with disk_errors():
            if isinstance(added, str):
                write_atomic(self.path / ADDED, added.encode())
            write_atomic(self.path / REMOVED, removed.encode())
            write_atomic(self.path / COMMIT, commit)
            sync_folder(self.path.parent)


def committed(folder: CollectionFolder) -> list[Path]:
    """The staged changes that must be applied, in the order of their names."""
    if not folder.staging.is_dir():
        return []
    return sorted(entry for entry in folder.staging.iterdir() if (entry / COMMIT).is_file())


def apply(store: OxigraphStore, change: Path) -> None:
    """Apply a committed change: removals first, so that what is both stays."""
    with disk_errors(), (change / REMOVED).open("rb") as file:
        store.remove(parse(file, RdfFormat.N_QUADS))
    store.load(change / ADDED)
