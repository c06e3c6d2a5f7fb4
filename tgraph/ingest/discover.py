"""Which files a call means: files, folders, globs and standard input, each once and in order."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits
from tgraph.ingest.loaders import has_known_suffix, read_bytes
from tgraph.ingest.signatures import LONGEST, signature

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to take in. ``path`` is None for standard input, whose ``name`` is ``stdin``.

    ``name`` is the path as the call leads to it, with characters that aren't UTF-8 escaped.
    """

    name: str
    path: Path | None

    def read(self, limits: FileLimits = DEFAULT_LIMITS) -> bytes:
        """The file's bytes. Raises ``IngestError`` where they can't be read or are too many."""
        return read_bytes(sys.stdin.buffer if self.path is None else self.path, self.name, limits)


@dataclass(frozen=True, slots=True)
class Unread:
    """A path that gives nothing to take in, and why.

    ``skipped`` is True for a file met in a folder that is plainly no document (a picture, an
    archive): worth a note. Anything else is a failure of the call.
    """

    name: str
    reason: str
    skipped: bool = False


Found = SourceFile | Unread


def discover(paths: Sequence[str]) -> Iterator[Found]:
    """The files that the paths stand for, in the order of the paths, sorted below each folder.

    A path is a file, a folder (with all below it, except hidden files and folders that hold a
    tgraph graph), a glob (``**`` crosses folders) or ``-`` for standard input. A file comes once,
    however many paths or links lead to it; loops of links end. What is missing or unreadable comes
    as ``Unread`` in its place and doesn't stop the rest.
    """
    seen: set[tuple[int, int]] = set()
    stdin_seen = False
    for path in paths:
        if path == STANDARD_INPUT:
            if not stdin_seen:
                yield SourceFile("stdin", None)
            stdin_seen = True
        else:
            yield from _argument(path, seen)


def _argument(path: str, seen: set[tuple[int, int]]) -> Iterator[Found]:
    if has_magic(path) and not os.path.lexists(path):
        matches = sorted(glob(path, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
        if not matches:
            yield Unread(_shown(path), "The pattern matches no file.")
        for match in matches:
            yield from _entry(Path(match), seen, asked=False)
    else:
        yield from _entry(Path(path), seen, asked=True)


def _entry(path: Path, seen: set[tuple[int, int]], asked: bool) -> Iterator[Found]:
    """What one path gives; ``asked``: the user named it, and it wasn't merely met."""
    try:
        status = path.stat()
    except OSError as error:
        yield Unread(_shown(path), _why(path, error))
        return
    key = (status.st_dev, status.st_ino)
    if key in seen:
        return
    seen.add(key)
    if stat.S_ISDIR(status.st_mode):
        yield from _folder(path, seen, asked)
    elif stat.S_ISREG(status.st_mode):
        yield _file(path, asked)
    elif asked and stat.S_ISFIFO(status.st_mode):
        yield SourceFile(_shown(path), path)
    else:
        yield Unread(_shown(path), "It is neither a file nor a folder.", skipped=not asked)


def _folder(path: Path, seen: set[tuple[int, int]], asked: bool) -> Iterator[Found]:
    if (path / "graph.json").is_file() and (path / "collections").is_dir():
        if asked:
            yield Unread(_shown(path), "The folder is a tgraph graph, not documents.")
        return
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        yield Unread(_shown(path), _why(path, error))
        return
    visible = [entry for entry in entries if not entry.name.startswith(".")]
    empty = True
    for entry in visible:
        for found in _entry(entry, seen, asked=False):
            empty = False
            yield found
    if empty and asked:
        more = " that aren't taken in already" if visible else ""
        yield Unread(_shown(path), f"The folder holds no documents{more}.")


def _file(path: Path, asked: bool) -> Found:
    """The file, unless its first bytes are those of a format that is never a document."""
    try:
        with path.open("rb") as stream:
            head = stream.read(LONGEST)
    except OSError as error:
        return Unread(_shown(path), _why(path, error))
    kind = "" if has_known_suffix(path.name) or _is_readable(head) else signature(head)
    if kind:
        return Unread(_shown(path), f"It is {kind}, which tgraph doesn't read.", skipped=not asked)
    return SourceFile(_shown(path), path)


def _is_readable(head: bytes) -> bool:
    """Whether a file without a known suffix may be one that the loader tells by its content."""
    return head.startswith((b"%PDF-", b"PK\x03\x04"))


def _why(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "The link leads nowhere." if path.is_symlink() else "There is no such file."
    return f"It can't be read: {(error.strerror or str(error)).lower()}."


def _shown(path: str | Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
