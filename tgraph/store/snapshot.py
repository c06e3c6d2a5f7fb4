"""Store snapshots: writers publish snapshots, readers pin snapshots while reading.

A snapshot is a folder ``N`` with a store checkpoint and links to vector files of the same
knowledge; a sibling file ``N.pin`` carries shared reader locks. The pointer ``current.json`` is
replaced atomically, so readers see one published state or the next."""

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
    """A publication pointer: snapshot, knowledge generation, chain head."""

    snapshot: int
    generation: int
    sequence: int
    head: str


def read_pointer(folder: CollectionFolder) -> Pointer | None:
    """Read the pointer; return None before first publication; raise ``StoreError`` for damaged
    pointers."""
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
    """Return whether a store exists while its published snapshot is missing or damaged."""
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
        """Open and pin the newest published snapshot; return None before first publication.

        If ``checked``, raise ``DamagedStoreError`` for files differing from publication."""
        for _ in range(100):  # a writer may remove it between reading the pointer and pinning
            pointer = read_pointer(folder)
            if pointer is None:
                return None
            pin = _pin_snapshot(folder, pointer.snapshot)
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
        """Open the live store for reading, with contents given by ``describe``; writers may
        change the store meanwhile."""
        snapshot = cls(folder, Pointer(0, 0, 0, ""), None)
        snapshot.pointer = describe(snapshot.store)
        return snapshot

    @property
    def vectors(self) -> Path:
        return self.path / "vectors"

    def close(self) -> None:
        if self._pin is not None:
            self._pin.release()


def _pin_snapshot(folder: CollectionFolder, number: int) -> FileLock | None:
    path = folder.snapshots / f"{number}.pin"
    try:
        lock = FileLock.try_acquire(path, exclusive=False, create=False)
    except FileNotFoundError:
        return None
    if lock is not None and not (folder.snapshots / str(number)).is_dir():
        lock.release()
        return None
    return lock


def publish_snapshot(
    folder: CollectionFolder, store: OxigraphStore, generation: int, sequence: int, head: str
) -> Pointer:
    """Checkpoint the store, link vector files beside the checkpoint, then update the pointer."""
    number = max(map(int, _snapshot_numbers(folder)), default=0) + 1
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
            current_pointer = read_pointer(folder)
            if current_pointer is None or current_pointer.snapshot != number:
                shutil.rmtree(target, ignore_errors=True)
        raise
    remove_unpinned(folder)
    return pointer


def published_checkpoint(folder: CollectionFolder) -> Path | None:
    """Return the published checkpoint path, or None."""
    with suppress(StoreError):
        pointer = read_pointer(folder)
        return folder.snapshots / str(pointer.snapshot) / "store" if pointer else None
    return None


def check_store(folder: CollectionFolder) -> None:
    """Raise ``DamagedStoreError`` for store files differing from published checksums."""
    if checkpoint := published_checkpoint(folder):
        for path in damaged_tables(folder.store, checkpoint):
            raise DamagedStoreError(path)


def remove_unpinned(folder: CollectionFolder) -> None:
    """Delete snapshots neither published nor in use, including pin files."""
    pointer = read_pointer(folder)
    published = str(pointer.snapshot) if pointer else None
    with disk_errors():
        for number in _snapshot_numbers(folder) - {published}:
            pin = folder.snapshots / f"{number}.pin"
            lock = FileLock.try_acquire(pin)
            if lock is not None:
                shutil.rmtree(folder.snapshots / number, ignore_errors=True)
                pin.unlink(missing_ok=True)
                lock.release()


def list_pinned_snapshots(folder: CollectionFolder) -> list[str]:
    """Return snapshot numbers in use by readers."""
    pinned_numbers = []
    for number in sorted(_snapshot_numbers(folder)):
        try:
            lock = FileLock.try_acquire(folder.snapshots / f"{number}.pin", create=False)
        except FileNotFoundError:
            continue
        if lock is None:
            pinned_numbers.append(number)
        else:
            lock.release()
    return pinned_numbers


def _snapshot_numbers(folder: CollectionFolder) -> set[str]:
    """Return numbers of snapshots and orphaned pins."""
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
