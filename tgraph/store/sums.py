"""Checksums of checkpoint files, for damage detection.

Checksums are stored beside the checkpoint as ``store.sums``. RocksDB never modifies written
table files and never reuses names, so checkpoint checksums remain valid for store files with
equal names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path

from tgraph.errors import DamagedStoreError
from tgraph.store.files import read_json, write_atomic

SUFFIX = ".sums"
SMALL = 1 << 20
"""Bytes of a file that is read on the way to a snapshot: less than a millisecond."""

Sums = Mapping[str, tuple[int, str]]
"""Size and SHA-256 of each file by its name."""


def sum_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def sums_of(checkpoint: Path) -> Sums:
    """Read checkpoint checksums; return nothing for missing or damaged files."""
    values = read_json(checkpoint.with_suffix(SUFFIX)) or {}
    rows = {name: row for name, row in values.items() if isinstance(row, list) and len(row) == 2}
    return {name: (row[0], row[1]) for name, row in rows.items()}


def write_sums(checkpoint: Path, before: Path | None = None) -> None:
    """Write checksums of a new checkpoint.

    Files shared with the ``before`` checkpoint keep earlier checksums, revealing later damage."""
    earlier_sums = sums_of(before) if before else {}
    sums = {}
    for path in checkpoint.iterdir():
        if before and path.name in earlier_sums and is_same_file(path, before / path.name):
            sums[path.name] = earlier_sums[path.name]
        else:
            sums[path.name] = (path.stat().st_size, sum_of(path))
    text = json.dumps(sums, sort_keys=True).encode()
    write_atomic(checkpoint.with_suffix(SUFFIX), text, durable=False)


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths refer to one disk file."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def damaged_files(checkpoint: Path) -> Iterator[Path]:
    """Yield checkpoint files changed since the checkpoint."""
    for name, (size, digest) in sorted(sums_of(checkpoint).items()):
        if not _is_whole(checkpoint / name, size, digest):
            yield checkpoint / name


def damaged_own_files(checkpoint: Path, store: Path) -> Iterator[Path]:
    """Yield damaged checkpoint files not shared with the store; large files are checked by size
    only."""
    for name, (size, digest) in sums_of(checkpoint).items():
        file_status = _read_status(f"{checkpoint}{os.sep}{name}")
        if file_status is None or file_status.st_size != size:
            yield checkpoint / name
        elif size > SMALL or _is_shared(file_status, f"{store}{os.sep}{name}"):
            continue
        elif digest and not _has_sum(checkpoint / name, file_status, digest):
            yield checkpoint / name


def _has_sum(path: Path, file: os.stat_result, digest: str) -> bool:
    changes = file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns
    try:
        return _read_sum(path, changes) == digest
    except OSError:
        return False


@lru_cache(maxsize=4096)
def _read_sum(path: Path, _changes: tuple[int, ...]) -> str:
    """Return the checksum of a file; a file is read anew when its inode, size or times differ."""
    return sum_of(path)


def _read_status(path: str) -> os.stat_result | None:
    """Return file status; called for each snapshot file before each question."""
    try:
        return os.stat(path)  # noqa: PTH116
    except OSError:
        return None


def _is_shared(file: os.stat_result, path: str) -> bool:
    store_file = _read_status(path)
    return store_file is not None and os.path.samestat(file, store_file)


def damaged_tables(store: Path, checkpoint: Path) -> Iterator[Path]:
    """Yield store table files differing from their checkpoint."""
    for name, (size, digest) in sorted(sums_of(checkpoint).items()):
        path = store / name
        if path.suffix == ".sst" and path.exists() and not _is_whole(path, size, digest):
            yield path


def _is_whole(path: Path, size: int, digest: str) -> bool:
    try:
        return path.stat().st_size == size and (not digest or sum_of(path) == digest)
    except OSError:
        return False


def check_files(checkpoint: Path) -> None:
    """Raise ``DamagedStoreError`` for damaged checkpoint files."""
    for path in damaged_files(checkpoint):
        raise DamagedStoreError(path)
