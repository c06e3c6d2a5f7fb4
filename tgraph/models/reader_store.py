"""Pulled readers: storage folders, and lock files pinning the readers.

Each reader lies in a user data folder (XDG base directories) beside a ``lock.json``: origin,
revision, and the SHA-256 of each file, checked on every load. The lock is replaced as a whole
once the files are on disk, so an interrupted pull changes nothing."""

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
    """A reader described by its lock.

    ``file`` is the network's path in the source; ``hashes`` contains SHA-256 hashes of the
    files in ``folder``."""

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
        """Load the reader; raise ``ModelError`` if a file differs from the pulled file."""
        network, tokenizer = self._read_checked(NETWORK), self._read_checked(TOKENIZER)
        provider = f"{self.source}@{self.revision}" if self.revision else self.source
        written = tokenizer.decode("utf-8", "replace")
        return OnnxReader(network, written, self.name, provider=provider)

    def _read_checked(self, name: str) -> bytes:
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ModelError(
                f"{path} can't be read: {error.strerror}.", self._pull_command
            ) from error
        file_hash = hashlib.sha256(data).hexdigest()
        if file_hash != self.hashes[name]:
            raise ModelError(
                f"{path} is not what was pulled: its SHA-256 is {file_hash}, and {self.lock} pins"
                f" {self.hashes[name]}.",
                self._pull_command,
            )
        return data

    @property
    def _pull_command(self) -> str:
        at = f" --revision {self.revision}" if self.revision else ""
        return f"Run: tgraph models pull {self.source}{at} --file {self.file}"


@dataclass(frozen=True, slots=True)
class Pull:
    """A pulled reader, plus the replaced reader, if any."""

    reader: PulledReader
    before: PulledReader | None


class ReaderStore:
    """The readers that were pulled, in ``root`` (by default the user's data folder)."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or user_data() / "readers"

    def list_readers(self) -> list[PulledReader]:
        """Return all pulled readers, sorted by name."""
        readers = (_read_lock(path.parent) for path in self.root.glob(f"*/{_LOCK}"))
        return sorted(filter(None, readers), key=lambda each: each.name)

    def find(self, name: str) -> PulledReader | None:
        """Return the pulled reader by name; None if missing."""
        return _read_lock(self._reader_folder(name))

    def pull(self, wanted: Published, sha256: str = "", told: OnBytes = lambda *_: None) -> Pull:
        """Fetch, test and store a reader, replacing any reader with an equal name.

        ``sha256`` is the required hash of the network; without it, an earlier pull of the same
        revision must have had the same files. Raises ``ModelError`` if the hash differs, or the
        files are no reader, and ``EndpointError`` if the reader can't be fetched."""
        if sha256 and not _HASH.fullmatch(sha256):
            raise UsageError(f"{sha256!r} is no SHA-256.", "A head has 64 hexadecimal digits.")
        place = self._reader_folder(wanted.source.name)
        try:
            with self._exclusive_lock(), _tidy_folder(place):
                before = _read_lock(place)
                pulled_reader = _fetch_files(wanted, place, told)
                _check_pins(pulled_reader, before, sha256.lower())
                pulled_reader.load().read("a", [Passage("a", ((0, 1),))])
                _pin_files(pulled_reader)
        except OSError as error:
            raise ModelError(
                f"{self.root} can't be written: {error.strerror or error}.",
                "Check its permissions and the space on its disk, or set XDG_DATA_HOME.",
            ) from error
        return Pull(pulled_reader, before)

    def _reader_folder(self, name: str) -> Path:
        return self.root / name.replace("/", "--")

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        make_folder(self.root)
        lock = FileLock.try_acquire(self.root / ".lock")
        if lock is None:
            raise ModelError(
                "Another process is pulling a reader.", "Wait for the end of the other process."
            )
        try:
            yield
        finally:
            lock.release()


def reader_named(name: str) -> OnnxReader:
    """Return the pulled reader by name, else a reader from the named folder.

    Raises ``ModelError`` if neither exists."""
    if pulled := ReaderStore().find(name):
        return pulled.load()
    if (folder := Path(name).expanduser()).is_dir():
        return OnnxReader.of_folder(folder)
    raise ModelError(
        f"There is no reader {name}: none of that name was pulled, and it is no folder.",
        f"Run: tgraph models pull {name}. `tgraph models list` shows what was pulled.",
    )


# --- a pull ---


def _fetch_files(wanted: Published, place: Path, told: OnBytes) -> PulledReader:
    """Fetch reader files to a new folder; the tokenizer comes first, being small and possibly
    missing."""
    source = wanted.source
    make_folder(place)
    folder = Path(mkdtemp(dir=place))
    tokenizer = _copy_file(wanted, TOKENIZER, _PATHS[TOKENIZER], wanted.revision, folder, told)
    paths = (wanted.file,) if wanted.file else _PATHS[NETWORK]
    network = _copy_file(wanted, NETWORK, paths, tokenizer.revision, folder, told)
    hashes = {name: _hash_file(folder / name) for name in (NETWORK, TOKENIZER)}
    return PulledReader(
        source.name, source.location, network.revision, network.path, folder, hashes
    )


def _copy_file(
    wanted: Published,
    name: str,
    paths: tuple[str, ...],
    revision: str,
    folder: Path,
    told: OnBytes,
) -> Copied:
    with (folder / name).open("xb") as file:
        return wanted.source.copy(paths, revision, file, told)


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_pins(made: PulledReader, before: PulledReader | None, wanted: str) -> None:
    """Raise ``ModelError`` if the network hash differs from the wanted hash, or from an earlier
    pull.

    The earlier pull counts only if no hash is wanted, and only for the same file and revision."""
    network = made.hashes[NETWORK]
    if wanted:
        if network != wanted:
            raise ModelError(
                f"{made.file} of {made.source} is not what is wanted: its SHA-256 is {network},"
                f" and {wanted} is pinned.",
                "Nothing was kept. Check the revision, or pin the other hash if you trust it.",
            )
        return
    if before is None or not made.revision or _reader_origin(before) != _reader_origin(made):
        return
    for name, file_hash in made.hashes.items():
        if file_hash != before.hashes[name]:
            raise ModelError(
                f"{name} of {made.source} has changed at the revision {made.revision}: its SHA-256"
                f" is {file_hash}, and {made.lock} pins {before.hashes[name]}.",
                "What was there is kept. If you trust the new one, name its hash, "
                f"`sha256`: {network}.",
            )


def _reader_origin(reader: PulledReader) -> tuple[str, str, str]:
    return reader.source, reader.revision, reader.file


def _pin_files(made: PulledReader) -> None:
    """Sync and pin the files, making the files the current reader of that name."""
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


def _read_lock(place: Path) -> PulledReader | None:
    """Return the reader pinned by the lock in a folder; raise ``ModelError`` for an unusable
    lock."""
    if (lock_data := read_json(place / _LOCK)) is None:
        return None
    try:
        return PulledReader(
            lock_data["name"],
            lock_data["source"],
            lock_data["revision"],
            lock_data["file"],
            place / lock_data["folder"],
            {name: lock_data["sha256"][name] for name in (NETWORK, TOKENIZER)},
        )
    except (KeyError, TypeError) as error:
        raise ModelError(
            f"{place / _LOCK} is not the lock of a reader.",
            "Delete the file and pull the reader again.",
        ) from error


@contextmanager
def _tidy_folder(place: Path) -> Iterator[None]:
    """Run a block of work, finally deleting files not pinned by the lock."""
    try:
        yield
    finally:
        with suppress(ModelError):
            pinned_reader = _read_lock(place)
            for folder in filter(Path.is_dir, place.glob("*")):
                if pinned_reader is None or folder != pinned_reader.folder:
                    shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            place.rmdir()
