"""Readers that were pulled: where they lie, and the locks that pin them.

Each lies in a folder of the user's data (XDG base directories) beside a ``lock.json``: where it is
from, its revision, and the SHA-256 of each file, which is checked whenever it is loaded. The lock
is replaced as a whole once the files are on disk, so an interrupted pull changes nothing.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from tgraph.errors import ModelError, UsageError
from tgraph.models.hub import Copied, OnBytes, Published
from tgraph.models.reader import OnnxReader, Passage
from tgraph.store.files import FileLock, make_folder, read_json, sync_files, user_data, write_json

NETWORK, TOKENIZER = "model.onnx", "tokenizer.json"
_PATHS = {NETWORK: (NETWORK, f"onnx/{NETWORK}"), TOKENIZER: (TOKENIZER, f"onnx/{TOKENIZER}")}
_LOCK = "lock.json"
_HASH = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class PulledReader:
    """A reader as its lock has it: ``file`` is the network's path in the source, ``hashes`` are the
    SHA-256 of the files in ``folder``."""

    name: str
    source: str
    revision: str
    file: str
    folder: Path
    hashes: Mapping[str, str]

    @property
    def lock(self) -> Path:
        return self.folder.parent / _LOCK

    def load(self) -> OnnxReader:
        """The reader. ``ModelError`` where a file is not the one that was pulled."""
        network, tokenizer = self._checked(NETWORK), self._checked(TOKENIZER)
        provider = f"{self.source}@{self.revision}" if self.revision else self.source
        written = tokenizer.decode("utf-8", "replace")
        return OnnxReader(network, written, self.name, provider=provider)

    def _checked(self, name: str) -> bytes:
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ModelError(f"{path} can't be read: {error.strerror}.", self._remedy) from error
        found = hashlib.sha256(data).hexdigest()
        if found != self.hashes[name]:
            raise ModelError(
                f"{path} is not what was pulled: its SHA-256 is {found}, and {self.lock} pins"
                f" {self.hashes[name]}.",
                self._remedy,
            )
        return data

    @property
    def _remedy(self) -> str:
        at = f" --revision {self.revision}" if self.revision else ""
        return f"Run: tgraph models pull {self.source}{at} --file {self.file}"


@dataclass(frozen=True, slots=True)
class Pull:
    """A reader that was pulled, and the one whose place it took, if there was one."""

    reader: PulledReader
    before: PulledReader | None


class ReaderStore:
    """The readers that were pulled, in ``root`` (by default the user's data folder)."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or user_data() / "readers"

    def all(self) -> list[PulledReader]:
        """By their names."""
        found = (_locked(path.parent) for path in self.root.glob(f"*/{_LOCK}"))
        return sorted(filter(None, found), key=lambda each: each.name)

    def find(self, name: str) -> PulledReader | None:
        """The reader of that name, if it was pulled."""
        return _locked(self._place(name))

    def pull(self, wanted: Published, sha256: str = "", told: OnBytes = lambda *_: None) -> Pull:
        """Fetch a reader, try it and keep it; the one of that name gives way to it.

        ``sha256`` is what the network must have; without it, what was pulled of the same revision
        must be the same. ``ModelError`` where it is not, or is no reader; ``EndpointError`` where
        it can't be had.
        """
        if sha256 and not _HASH.fullmatch(sha256):
            raise UsageError(f"{sha256!r} is no SHA-256.", "It has 64 hexadecimal digits.")
        place = self._place(wanted.source.name)
        try:
            with self._alone(), _tidied(place):
                before = _locked(place)
                made = _fetched(wanted, place, told)
                _check_pins(made, before, sha256.lower())
                made.load().read("a", [Passage("a", ((0, 1),))])
                _keep(made)
        except OSError as error:
            raise ModelError(
                f"{self.root} can't be written: {error.strerror or error}.",
                "Check its permissions and the space on its disk, or set XDG_DATA_HOME.",
            ) from error
        return Pull(made, before)

    def _place(self, name: str) -> Path:
        return self.root / name.replace("/", "--")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        make_folder(self.root)
        lock = FileLock.try_acquire(self.root / ".lock")
        if lock is None:
            raise ModelError("Another process is pulling a reader.", "Wait until it is done.")
        try:
            yield
        finally:
            lock.release()


def reader_named(name: str) -> OnnxReader:
    """The reader that was pulled by that name, else the one in that folder. ``ModelError`` where
    there is neither."""
    if pulled := ReaderStore().find(name):
        return pulled.load()
    if (folder := Path(name).expanduser()).is_dir():
        return OnnxReader.of_folder(folder)
    raise ModelError(
        f"There is no reader {name}: none of that name was pulled, and it is no folder.",
        f"Run: tgraph models pull {name}. `tgraph models list` shows what was pulled.",
    )


# --- a pull ---


def _fetched(wanted: Published, place: Path, told: OnBytes) -> PulledReader:
    """The files in a new folder; the tokenizer first, since it is small and may be missing."""
    source = wanted.source
    make_folder(place)
    folder = Path(mkdtemp(dir=place))
    tokenizer = _copied(wanted, TOKENIZER, _PATHS[TOKENIZER], wanted.revision, folder, told)
    paths = (wanted.file,) if wanted.file else _PATHS[NETWORK]
    network = _copied(wanted, NETWORK, paths, tokenizer.revision, folder, told)
    hashes = {name: _digest(folder / name) for name in (NETWORK, TOKENIZER)}
    return PulledReader(source.name, source.where, network.revision, network.path, folder, hashes)


def _copied(
    wanted: Published,
    name: str,
    paths: tuple[str, ...],
    revision: str,
    folder: Path,
    told: OnBytes,
) -> Copied:
    with (folder / name).open("xb") as file:
        return wanted.source.copy(paths, revision, file, told)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_pins(made: PulledReader, before: PulledReader | None, wanted: str) -> None:
    """``ModelError`` where the network is not the one that is wanted, or, where nothing is said of
    that, the same file of the same revision was another one before."""
    network = made.hashes[NETWORK]
    if wanted:
        if network != wanted:
            raise ModelError(
                f"{made.file} of {made.source} is not what is wanted: its SHA-256 is {network},"
                f" and {wanted} is pinned.",
                "Nothing was kept. Check the revision, or pin the other hash if you trust it.",
            )
        return
    if before is None or not made.revision or _origin(before) != _origin(made):
        return
    for name, found in made.hashes.items():
        if found != before.hashes[name]:
            raise ModelError(
                f"{name} of {made.source} has changed at the revision {made.revision}: its SHA-256"
                f" is {found}, and {made.lock} pins {before.hashes[name]}.",
                "What was there is kept. If you trust the new one, name its hash, "
                f"`sha256`: {network}.",
            )


def _origin(reader: PulledReader) -> tuple[str, str, str]:
    return reader.source, reader.revision, reader.file


def _keep(made: PulledReader) -> None:
    """Pin the files, once they are on disk: from here on they are the reader of that name."""
    sync_files(made.folder / name for name in made.hashes)
    write_json(
        made.lock,
        {
            "name": made.name,
            "source": made.source,
            "revision": made.revision,
            "file": made.file,
            "folder": made.folder.name,
            "sha256": dict(made.hashes),
        },
    )


def _locked(place: Path) -> PulledReader | None:
    """The reader that the lock in the place pins. ``ModelError`` where the lock can't be used."""
    if (told := read_json(place / _LOCK)) is None:
        return None
    try:
        return PulledReader(
            told["name"],
            told["source"],
            told["revision"],
            told["file"],
            place / told["folder"],
            {name: told["sha256"][name] for name in (NETWORK, TOKENIZER)},
        )
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"{place / _LOCK} is not the lock of a reader.",
            "Delete it and pull the reader again.",
        ) from error


@contextmanager
def _tidied(place: Path) -> Iterator[None]:
    """Afterwards nothing lies there but what the lock pins."""
    try:
        yield
    finally:
        with suppress(ModelError):
            kept = _locked(place)
            for folder in filter(Path.is_dir, place.glob("*")):
                if kept is None or folder != kept.folder:
                    shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            place.rmdir()
