"""Snapshots: what readers see. A writer publishes one, a reader pins it while it reads.

A snapshot is a folder ``N`` with a checkpoint of the store and links to the vector files of the
same knowledge; a file ``N.pin`` beside it carries the readers' shared locks. The pointer
``current.json`` is replaced atomically, so that a reader sees one published state or the next.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tgraph.errors import DamagedStoreError, StoreError
from tgraph.store.files import (
    FileLock,
    allowed_in,
    disk_errors,
    link_file,
    make_folder,
    read_json,
    sync_folder,
    write_json,
)
from tgraph.store.folder import CollectionFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.sums import damaged_own_files, damaged_tables, write_sums

_MEND = "`tgraph doctor --repair` publishes the store again."


@dataclass(frozen=True, slots=True)
class Pointer:
    """What is published: the snapshot, the knowledge generation, and the head of the chain."""

    snapshot: int
    generation: int
    sequence: int
    head: str


def read_pointer(folder: CollectionFolder) -> Pointer | None:
    """The pointer, or None while nothing has been published. ``StoreError`` where it is damaged."""
    value = read_json(folder.pointer)
    if value is None and not folder.pointer.exists():
        return None
    try:
        pointer = Pointer(**(value or {}))
    except TypeError as error:
        raise StoreError(f"{folder.pointer} is damaged.", _MEND) from error
    numbers = (pointer.snapshot, pointer.generation, pointer.sequence)
    if not all(isinstance(number, int) for number in numbers):
        raise StoreError(f"{folder.pointer} is damaged.", _MEND)
    return pointer


def must_be_mended(folder: CollectionFolder) -> bool:
    """Whether there is a store and what is published of it is missing or damaged."""
    try:
        pointer = read_pointer(folder)
    except StoreError:
        return True
    if pointer is None:
        return folder.store.is_dir()
    checkpoint = folder.snapshots / str(pointer.snapshot) / "store"
    return not (checkpoint / "CURRENT").exists() or any(damaged_own_files(checkpoint, folder.store))


class Snapshot:
    """A pinned snapshot; it stays readable until ``close``, whatever writers publish meanwhile.

    Where what was published is damaged the store itself takes its place (``of_store``).
    """

    def __init__(
        self,
        folder: CollectionFolder,
        pointer: Pointer,
        pin: FileLock | None,
        *,
        checked: bool = True,
    ) -> None:
        self._pin = pin
        self.pointer = pointer
        if pin is None:
            self.path, self.store = folder.path, OxigraphStore.snapshot(folder.store)
            return
        self.path = folder.snapshots / str(pointer.snapshot)
        for damaged in damaged_own_files(self.path / "store", folder.store) if checked else ():
            raise DamagedStoreError(damaged)
        self.store = OxigraphStore.snapshot(self.path / "store")

    @classmethod
    def open(cls, folder: CollectionFolder, *, checked: bool = True) -> Snapshot | None:
        """The newest published snapshot, pinned; None while nothing has been published.
        ``DamagedStoreError`` where its files are not as they were published, if ``checked``."""
        for _ in range(100):  # a writer may remove it between reading the pointer and pinning
            pointer = read_pointer(folder)
            if pointer is None:
                return None
            pin = _pin(folder, pointer.snapshot)
            if pin is not None:
                try:
                    return cls(folder, pointer, pin, checked=checked)
                except BaseException:
                    pin.release()
                    raise
        raise StoreError(f"The published snapshot of {folder.path} is missing.", _MEND)

    @classmethod
    def of_store(
        cls, folder: CollectionFolder, describe: Callable[[OxigraphStore], Pointer]
    ) -> Snapshot:
        """The store itself for reading, as ``describe`` says what it holds. Nothing keeps a writer
        from changing it meanwhile."""
        made = cls(folder, Pointer(0, 0, 0, ""), None)
        made.pointer = describe(made.store)
        return made

    @property
    def vectors(self) -> Path:
        return self.path / "vectors"

    def close(self) -> None:
        if self._pin is not None:
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
    number = max(map(int, _numbers(folder)), default=0) + 1
    target = folder.snapshots / str(number)
    try:
        with disk_errors():
            make_folder(target)
            store.backup(target / "store")
            write_sums(target / "store", published_checkpoint(folder))
            _link_files(folder.vectors, target / "vectors")
            (folder.snapshots / f"{number}.pin").touch(allowed_in(folder.snapshots))
            sync_folder(target)
            sync_folder(folder.snapshots)
            pointer = Pointer(number, generation, sequence, head)
            write_json(folder.pointer, asdict(pointer))
    except BaseException:
        with suppress(StoreError):  # the pointer may name it all the same if just a sync failed
            known = read_pointer(folder)
            if known is None or known.snapshot != number:
                shutil.rmtree(target, ignore_errors=True)
        raise
    remove_unpinned(folder)
    return pointer


def published_checkpoint(folder: CollectionFolder) -> Path | None:
    """The checkpoint that is published, where one is."""
    with suppress(StoreError):
        pointer = read_pointer(folder)
        return folder.snapshots / str(pointer.snapshot) / "store" if pointer else None
    return None


def check_store(folder: CollectionFolder) -> None:
    """``DamagedStoreError`` where a file of the store differs from what was published of it."""
    if checkpoint := published_checkpoint(folder):
        for path in damaged_tables(folder.store, checkpoint):
            raise DamagedStoreError(path)


def remove_unpinned(folder: CollectionFolder) -> None:
    """Delete the snapshots that are neither published nor read by anybody, and their pins."""
    pointer = read_pointer(folder)
    published = str(pointer.snapshot) if pointer else None
    with disk_errors():
        for number in _numbers(folder) - {published}:
            pin = folder.snapshots / f"{number}.pin"
            lock = FileLock.try_acquire(pin)
            if lock is not None:
                shutil.rmtree(folder.snapshots / number, ignore_errors=True)
                pin.unlink(missing_ok=True)
                lock.release()


def pinned(folder: CollectionFolder) -> list[str]:
    """The numbers of the snapshots that somebody reads."""
    found = []
    for number in sorted(_numbers(folder)):
        try:
            lock = FileLock.try_acquire(folder.snapshots / f"{number}.pin", create=False)
        except FileNotFoundError:
            continue
        if lock is None:
            found.append(number)
        else:
            lock.release()
    return found


def _numbers(folder: CollectionFolder) -> set[str]:
    """Those of the snapshots, and of pins without one."""
    pins = {path.stem for path in folder.snapshots.glob("*.pin")}
    return {name for name in pins | {p.name for p in folder.snapshots.glob("*")} if name.isdigit()}


def _link_files(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    target.mkdir(allowed_in(target.parent, 0o777))
    for path in source.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            copy = target / path.relative_to(source)
            make_folder(copy.parent)
            link_file(path, copy)
    sync_folder(target)
