"""Power cuts: what a disk holds that forgets all that was not synced, at each sync of a process.

``Synced`` runs a process whose system calls that change the disk are watched (``synced.c``, by
``LD_PRELOAD``), tells their order, and makes anew what would be there if the power failed between
two syncs, in the worst case that POSIX allows for what was not asked for: a file has the content
that it had when it was last synced, a folder the names that it had then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("synced.c")
COMPILER = shutil.which("cc")


CALLS = {"f": "fsync", "d": "fsync", "s": "sync", "w": "write", "r": "rename", "u": "unlink"}


class SystemCall(NamedTuple):
    """What a process did to a path; ``target`` is the new one of a ``rename``."""

    name: str
    path: str
    target: str = ""


@dataclass
class Disk:
    """What is durable: the content of files, the names in folders (with whether each is one)."""

    files: dict[str, bytes] = field(default_factory=dict)
    folders: dict[str, dict[str, tuple[str, bool]]] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)
    """Which file or folder has a path, as far as one was synced by it."""

    def restore(self, path: Path, target: Path) -> None:
        """Makes the folder, as it would be found after the power came back, at another place."""
        self._restore(self.roots[str(path)], target)

    def _restore(self, folder: str, target: Path) -> None:
        target.mkdir()
        for name, (own, is_folder) in self.folders.get(folder, {}).items():
            if is_folder:
                self._restore(own, target / name)
            else:
                (target / name).write_bytes(self.files.get(own, b""))

    def content(self, path: Path) -> bytes:
        return self.files.get(self.roots.get(str(path), ""), b"")


@dataclass
class Synced:
    """A folder whose syncs are watched, and the file in which the process says what it was told."""

    root: Path
    told: Path
    log: Path
    shim: Path

    @classmethod
    def make(cls, folder: Path) -> Synced:
        shim = folder / "synced.so"
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
        subprocess.run([str(COMPILER), *flags, "-o", shim, SOURCE, "-ldl"], check=True)
        root = folder / "synced"
        root.mkdir()
        return cls(root, folder / "told", folder / "log", shim)

    def run(self, *command: str | Path, environment: Mapping[str, str] | None = None) -> None:
        watched = {
            "LD_PRELOAD": self.shim,
            "SYNCED_ROOT": self.root,
            "SYNCED_TOLD": self.told,
            "SYNCED_LOG": self.log,
        }
        given = {name: str(value) for name, value in watched.items()}
        subprocess.run(command, check=True, env={**os.environ, **(environment or {}), **given})

    def _entries(self) -> Iterator[tuple[str, str, str, bytes]]:
        """What was logged: its kind, which file or folder, its path or name, the data."""
        data = self.log.read_bytes()
        at = 0
        while at < len(data):
            end = data.index(b"\n", at)
            kind, own, length, size = data[at:end].decode().split(" ")
            name = os.fsdecode(data[end + 1 : end + 1 + int(length)])
            at = end + 1 + int(length) + int(size)
            yield kind, own, name, data[at - int(size) : at]

    def calls(self) -> Iterator[SystemCall]:
        """The system calls that changed the disk, in their order."""
        for kind, _, path, data in self._entries():
            if kind in CALLS:
                yield SystemCall(CALLS[kind], path, os.fsdecode(data) if kind == "r" else "")

    def disks(self) -> Iterator[tuple[str, Disk]]:
        """The disk after each sync, with the path that was synced; it is changed in place."""
        disk = Disk()
        names: dict[str, tuple[str, bool]] = {}
        synced, identity = "", ""
        for kind, own, name, data in self._entries():
            if kind in "fd":
                synced, identity, names = name, own, {}
                disk.roots[synced] = own
            if kind == "f":
                disk.files[own] = data
                yield synced, disk
            elif kind in "FD":
                names[name] = own, kind == "D"
            elif kind == "e":
                disk.folders[identity] = names
                yield synced, disk
