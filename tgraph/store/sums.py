"""Sums of a checkpoint's files, by which it can be told which of them is damaged.

They lie beside the checkpoint as ``store.sums``. RocksDB never changes a file of tables once it is
written and never gives its name to another, so the sums of a checkpoint hold for the files of the
same names in the store that it was taken of.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
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
    """The SHA-256 of the file, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def sums_of(checkpoint: Path) -> Sums:
    """The sums as they were written; empty where they are missing or damaged."""
    found = read_json(checkpoint.with_suffix(SUFFIX)) or {}
    rows = {name: row for name, row in found.items() if isinstance(row, list) and len(row) == 2}
    return {name: (row[0], row[1]) for name, row in rows.items()}


def write_sums(checkpoint: Path, before: Path | None = None) -> None:
    """Sum the files of a new checkpoint up. What is the same file in the one ``before`` keeps its
    sum, so that damage since then shows."""
    known = sums_of(before) if before else {}
    sums = {}
    for path in checkpoint.iterdir():
        if before and path.name in known and is_same_file(path, before / path.name):
            sums[path.name] = known[path.name]
        else:
            sums[path.name] = (path.stat().st_size, sum_of(path))
    text = json.dumps(sums, sort_keys=True).encode()
    write_atomic(checkpoint.with_suffix(SUFFIX), text, durable=False)


def is_same_file(one: Path, other: Path) -> bool:
    """Whether both names are of one file on the disk."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def damaged_files(checkpoint: Path) -> Iterator[Path]:
    """The files of the checkpoint that are not as they were when it was taken."""
    for name, (size, digest) in sorted(sums_of(checkpoint).items()):
        if not _is_whole(checkpoint / name, size, digest):
            yield checkpoint / name


def damaged_own_files(checkpoint: Path, store: Path) -> Iterator[Path]:
    """The same, of those that the store doesn't share with it; of a large one its size tells."""
    for name, (size, digest) in sums_of(checkpoint).items():
        found = _stat(f"{checkpoint}{os.sep}{name}")
        if found is None or found.st_size != size:
            yield checkpoint / name
        elif size > SMALL or _is_shared(found, f"{store}{os.sep}{name}"):
            continue
        elif not _is_whole(checkpoint / name, size, digest):
            yield checkpoint / name


def _stat(path: str) -> os.stat_result | None:
    """What the disk says of the file; asked for each file of a snapshot before each question."""
    try:
        return os.stat(path)  # noqa: PTH116
    except OSError:
        return None


def _is_shared(file: os.stat_result, path: str) -> bool:
    other = _stat(path)
    return other is not None and os.path.samestat(file, other)


def damaged_tables(store: Path, checkpoint: Path) -> Iterator[Path]:
    """The files of tables in the store that differ from those of a checkpoint of it."""
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
    """``DamagedStoreError`` where a file of the checkpoint is damaged."""
    for path in damaged_files(checkpoint):
        raise DamagedStoreError(path)
