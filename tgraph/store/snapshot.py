"""Snapshots: what readers see. A writer publishes one, a reader pins it while it reads.

A snapshot is a folder ``N`` with a checkpoint of the store and links to the vector files of the
same knowledge; a file ``N.pin`` beside it carries the readers' shared locks. The pointer
``current.json`` is replaced atomically, so that a reader sees one published state or the next.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tgraph.errors import StoreError
from tgraph.store.files import FileLock, read_json, sync_folder, write_json
from tgraph.store.folder import CollectionFolder
from tgraph.store.oxigraph import OxigraphStore, disk_errors


@dataclass(frozen=True, slots=True)
class Pointer:
    """What is published: the snapshot, the knowledge generation, and the head of the chain."""

    snapshot: int
    generation: int
    sequence: int
    head: str


def read_pointer(folder: CollectionFolder) -> Pointer | None:
    """The pointer, or None while nothing has been published."""
    value = read_json(folder.pointer)
    if value is None:
        return None
    try:
        return Pointer(**value)
    except TypeError as error:
        raise StoreError(
            f"{folder.pointer} is damaged.", "Delete it and run `tgraph index` again."
        ) from error


class Snapshot:
    """A pinned snapshot; it stays readable until ``close``, whatever writers publish meanwhile."""

    def __init__(self, folder: CollectionFolder, pointer: Pointer, pin: FileLock) -> None:
        self._pin = pin
        self.pointer = pointer
        self.path = folder.snapshots / str(pointer.snapshot)
        self.store = OxigraphStore.snapshot(self.path / "store")

    @classmethod
    def open(cls, folder: CollectionFolder) -> Snapshot | None:
        """The newest published snapshot, pinned; None while nothing has been published."""
        for _ in range(100):  # a writer may remove a snapshot between reading the pointer and pinning
            pointer = read_pointer(folder)
            if pointer is None:
                return None
            pin = _pin(folder, pointer.snapshot)
            if pin is not None:
                try:
                    return cls(folder, pointer, pin)
                except BaseException:
                    pin.release()
                    raise
        raise StoreError(f"The published snapshot of {folder.path} is missing.")

    @property
    def vectors(self) -> Path:
        return self.path / "vectors"

    def close(self) -> None:
        self._pin.release()


def _pin(folder: CollectionFolder, number: int) -> FileLock | None:
    path = folder.snapshots / f"{number}.pin"
    try:
        lock = FileLock.try_acquire(path, exclusive=False, create=False)
    except FileNotFoundError:
        return None
    if lock is not None and not (folder.snapshots / str(number)).is_dir():
        lock.release()
        return None
    return lock


def publish(
    folder: CollectionFolder, store: OxigraphStore, generation: int, sequence: int, head: str
) -> Pointer:
    """Checkpoint the store, link the vectors beside it, and let the pointer name the two."""
    number = max((int(entry) for entry in _numbers(folder)), default=0) + 1
    target = folder.snapshots / str(number)
    with disk_errors():
        target.mkdir(parents=True)
        store.backup(target / "store")
        _link_files(folder.vectors, target / "vectors")
        (folder.snapshots / f"{number}.pin").touch()
        sync_folder(target)
        sync_folder(folder.snapshots)
        pointer = Pointer(number, generation, sequence, head)
        write_json(folder.pointer, _as_json(pointer))
    remove_unpinned(folder)
    return pointer


def remove_unpinned(folder: CollectionFolder) -> None:
    """Delete the snapshots that are neither published nor read by anybody."""
    pointer = read_pointer(folder)
    for number in _numbers(folder):
        if pointer is not None and int(number) == pointer.snapshot:
            continue
        pin = folder.snapshots / f"{number}.pin"
        lock = FileLock.try_acquire(pin)
        if lock is None:
            continue
        shutil.rmtree(folder.snapshots / number, ignore_errors=True)
        pin.unlink(missing_ok=True)
        lock.release()


def _numbers(folder: CollectionFolder) -> list[str]:
    if not folder.snapshots.is_dir():
        return []
    return [entry.name for entry in folder.snapshots.iterdir() if entry.name.isdigit()]


def _link_files(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    for path in source.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, copy)


def _as_json(pointer: Pointer) -> Mapping[str, object]:
    return asdict(pointer)
