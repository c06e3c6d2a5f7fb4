"""Read replicas by shipping the log: every change is a sealed entry of the chain, so a replica is
the same entries carried out in the same order, over files that any storage can hold (``fsspec``).

Below the URL there are ``contents/`` (the librarian's, by hash), ``derived/`` (vectors and tables,
by hash), ``journals/`` (what replicas recorded, until the writer has chained it) and ``log/``:
segments by number, each of which names the hash of the one before, and the ``head`` that says which
is the last. A segment is written once, after all that it refers to, and names it, so that nobody
has to list what is there. An erasure begins a new ``epoch``: everything is deleted there, and
shipped anew.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from heapq import merge
from importlib import import_module
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import (
    EndpointError,
    StoreError,
    TgraphError,
    UsageError,
    VerificationError,
)
from tgraph.explain.integrity.entries import ChainEntry, entries_after, entry_of, stated
from tgraph.explain.integrity.erasures import Rewritings
from tgraph.models.concurrency import together
from tgraph.record.bundle import ERASURE, INVALIDATION, kind_of_journal
from tgraph.record.chain import (
    CHAIN_HASH,
    GENESIS,
    Head,
    canonical_hash,
    chain_hash,
    entry_at,
    read_head,
)
from tgraph.store.base import Store, text_of
from tgraph.store.files import (
    disk_errors,
    exclusive,
    make_folder,
    read_json,
    write_atomic,
    write_json,
)
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import is_free, journal_content
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Snapshot, remove_unpinned
from tgraph.store.statements import read_nquads, read_trig, to_bytes

FORMAT = 1
LOG, CONTENTS, DERIVED, JOURNALS = "log", "contents", "derived", "journals"
HEAD = "head"
"""Beside the segments: where the log ends."""

_AT_ONCE = 5_000
_TRANSFERS = 16
"""Files on their way at the same time, where the storage is a server."""

_REMEDY = "Run: pip install 'tgraph-rag[replicas]'"
_AGAIN = "Ship to another place, or find out who changed it."
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a log ends, or how far a replica has followed it: the number of a segment and its
    hash, the epoch, and where it is."""

    url: str = ""
    number: int = 0
    hash: str = GENESIS
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Shipment:
    """What was shipped, or followed: entries of the chain, contents and files, the journals of
    replicas that were taken in or handed over, and the segment that the log ends with."""

    url: str
    entries: int
    files: int
    journals: int
    segment: int
    anew: bool = False


def unseen(done: int, total: int) -> None:
    """Progress that nobody is shown."""


class Storage:
    """The files below a URL, by name; ``EndpointError`` where they can't be reached."""

    def __init__(self, url: str) -> None:
        """``UsageError`` where the extra ``replicas`` isn't installed or nothing knows the URL."""
        try:
            core: Any = import_module("fsspec.core")
        except ImportError as error:
            raise UsageError("fsspec isn't installed.", _REMEDY) from error
        try:
            self._files, self._base = core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            remedy = "Name a folder, or a URL whose package is installed."
            raise UsageError(f"{url!r} can't be used: {error}.", remedy) from error
        self._is_local = self._files.protocol in ("file", ("file", "local"))
        self.url = str(self._base) if self._is_local else url
        """The same wherever a command runs, so that a replica knows whom it follows."""
        self._files.use_listings_cache = False
        if "s3" in self._files.protocol:
            self._files.retries = 1  # botocore tries again too: 25 times its patience is hours
        self._at_once = _TRANSFERS if getattr(self._files, "async_impl", False) else 1

    def each(self, names: Sequence[str], work: Callable[[str], bool], progress: Progress) -> int:
        """Transfer each of the files, several at the same time where that is of use; for how many
        of them ``work`` was done."""
        step, done = 8 * self._at_once, 0
        for at in range(0, len(names), step):
            progress(at, len(names))
            done += sum(together(names[at : at + step], work, self._at_once))
        return done

    def names(self, folder: str) -> set[str]:
        """The names of the files of a folder; none where it isn't there."""
        with self._reached():
            self._files.invalidate_cache()
            try:
                found = self._files.ls(f"{self._base}/{folder}", detail=False)
            except FileNotFoundError:
                return set()
            names = {str(name).rstrip("/").rpartition("/")[2] for name in found}
            return {name for name in names if not name.startswith(".")}

    def has(self, folder: str, name: str) -> bool:
        with self._reached():
            self._files.invalidate_cache()
            return bool(self._files.exists(f"{self._base}/{folder}/{name}"))

    def find(self, folder: str, name: str) -> bytes | None:
        """The file; None where there is none. By its beginning, so that none asks for its size."""
        with self._reached():
            try:
                found: bytes = self._files.cat_file(f"{self._base}/{folder}/{name}", start=0)
            except FileNotFoundError:
                return None
            return found

    def read(self, folder: str, name: str) -> bytes:
        """``VerificationError`` where there is no such file."""
        found = self.find(folder, name)
        if found is None:
            raise VerificationError(f"{folder}/{name} is missing at {self.url}.", _AGAIN)
        return found

    def write(self, folder: str, name: str, data: bytes) -> None:
        """Whole or not at all, in the place of one that is there."""
        with self._reached():
            if self._is_local:
                path = Path(self._base) / folder / name
                make_folder(path.parent)
                write_atomic(path, data)
            else:  # object storage has whole objects only
                self._pipe(folder, name, data, "overwrite")

    def create(self, folder: str, name: str, data: bytes) -> bool:
        """Whole or not at all, unless there is one; whether there was none."""
        with self._reached():
            try:
                if self._is_local:
                    return self._create_here(Path(self._base) / folder / name, data)
                self._pipe(folder, name, data, "create")
            except FileExistsError:
                return False
            return True

    def delete(self, folder: str, names: Iterable[str]) -> None:
        with self._reached():
            for name in names:
                with suppress(FileNotFoundError):
                    self._files.rm_file(f"{self._base}/{folder}/{name}")

    def _create_here(self, path: Path, data: bytes) -> bool:
        with exclusive(Path(self._base) / ".lock", timeout=None):
            if path.exists():
                return False
            make_folder(path.parent)
            write_atomic(path, data)
            return True

    def _pipe(self, folder: str, name: str, data: bytes, mode: str) -> None:
        path = f"{self._base}/{folder}/{name}"
        try:
            self._files.pipe_file(path, data, mode=mode)
        except FileNotFoundError:  # where there are folders
            self._files.makedirs(f"{self._base}/{folder}", exist_ok=True)
            self._files.pipe_file(path, data, mode=mode)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """What goes wrong with a storage, as one error: each package has its own."""
        try:
            yield
        except Exception as error:
            found = error.__cause__ if isinstance(error, StoreError) else error
            if found is None or isinstance(found, TgraphError):
                raise
            raise self._failure(found) from error

    def _failure(self, error: BaseException) -> EndpointError:
        if isinstance(error, PermissionError):
            return EndpointError(
                f"{self.url} refuses access: {_reason(error)}.", "Check the credentials."
            )
        return EndpointError(
            f"{self.url} can't be reached: {_reason(error)}.",
            "Nothing is lost: the next time goes on from here.",
        )


def _reason(error: BaseException) -> str:
    """What is wrong, in one line."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(said).split()).rstrip(".")


# --- segments ---


@dataclass(frozen=True, slots=True)
class _LogSegment:
    """A stretch of the log: a header, and of each entry its quads and those of its bundle. It is
    held as it is ``packed``: of its entries there is one in memory at a time."""

    header: Mapping[str, Any]
    packed: bytes

    @classmethod
    def unpacked(cls, data: bytes) -> _LogSegment:
        """Each line of it can be read from here on; raises what gzip and JSON raise otherwise."""
        lines = _packed_lines(data)
        header = json.loads(next(lines, ""))
        for line in lines:
            json.loads(line)
        return cls(header, data)

    @property
    def entries(self) -> Iterator[Mapping[str, str]]:
        return map(json.loads, islice(_packed_lines(self.packed), 1, None))


def _line(said: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(said, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass")


def _packed_lines(data: bytes) -> Iterator[str]:
    with gzip.open(BytesIO(data), "rt", 9, "utf-8", "surrogatepass", "\n") as lines:
        yield from lines


def _name(number: int) -> str:
    return f"{number:08d}.gz"


@dataclass(frozen=True, slots=True)
class _LogEnd:
    """Where a log ends: ``position`` and what the header of its last segment says of chains
    (``heads``) and of vectors and tables (``derived``). One that begins anew keeps the heads, by
    which its writer is known; ``clearing`` is whether what was there before may be there still."""

    position: Position
    heads: Mapping[str, Sequence[Any]]
    derived: Mapping[str, str]
    clearing: bool = False

    @classmethod
    def read(cls, storage: Storage) -> _LogEnd | None:
        """None where nothing has been shipped. ``VerificationError`` where the head is damaged."""
        data = storage.find(LOG, HEAD)
        if data is None:
            return None
        try:
            said = json.loads(data)
            _check_format(said["format"])
            position = Position(storage.url, said["number"], said["hash"], said["epoch"])
            return cls(position, dict(said["heads"]), dict(said["derived"]), said["clearing"])
        except (ValueError, KeyError, TypeError) as error:
            raise VerificationError(
                f"The head of the log at {storage.url} can't be read.", _AGAIN
            ) from error

    def write(self, storage: Storage) -> None:
        at = self.position
        said = {"format": FORMAT, "number": at.number, "hash": at.hash, "epoch": at.epoch}
        said |= {"heads": self.heads, "derived": self.derived, "clearing": self.clearing}
        storage.write(LOG, HEAD, json.dumps(said).encode())

    def check(self, storage: Storage, known: Position) -> None:
        """``VerificationError`` where the log does not go as far as is known, or went another way;
        what lies behind is checked by who reads it."""
        at = self.position
        if at.epoch < known.epoch:
            raise VerificationError(
                f"The log at {storage.url} is older than what is known.", _AGAIN
            )
        if at.epoch > known.epoch or not known.number:
            return
        if at.number < known.number or not storage.has(LOG, _name(known.number)):
            raise _ended(storage, known)
        if at.number == known.number and at.hash != known.hash:
            raise _altered(storage, at.number, "it is another one than was there")


def _ended(storage: Storage, known: Position) -> VerificationError:
    return VerificationError(
        f"The log at {storage.url} ends before segment {known.number}, which was there.", _AGAIN
    )


def _check_format(written: int) -> None:
    if written > FORMAT:
        raise UsageError("The log was written by a newer tgraph.", "Upgrade this one.")


def _segments(
    storage: Storage, after: Position, end: Position
) -> Iterator[tuple[Position, _LogSegment]]:
    """The segments behind a position up to the end, in their order. ``VerificationError`` where one
    is missing, or is not what followed the one before."""
    while after.number < end.number:
        after, segment = _segment(storage, after)
        if after.number == end.number and after.hash != end.hash:
            raise _altered(storage, after.number, "it is not the one that the log ends with")
        yield after, segment


def _segment(storage: Storage, after: Position) -> tuple[Position, _LogSegment]:
    """The segment that follows."""
    number = after.number + 1
    data = storage.read(LOG, _name(number))
    try:
        segment = _LogSegment.unpacked(data)
        header = segment.header
        _check_format(header["format"])
        found = header["number"], header["previous"], header["epoch"]
        if not all(map(_KEY.fullmatch, [*header["contents"], *header["derived"].values()])):
            raise ValueError("no hash")
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        raise _altered(storage, number, "it can't be read") from error
    if found != (number, after.hash, after.epoch):
        raise _altered(storage, number, "it doesn't follow the one before")
    return replace(after, number=number, hash=_digest(data)), segment


def _digest(segment: bytes) -> str:
    return sha256(segment).hexdigest()


def _altered(storage: Storage, number: int, why: str) -> VerificationError:
    return VerificationError(f"Segment {number} of the log at {storage.url}: {why}.", _AGAIN)


# --- the writer ---


def ship(opened: OpenCollection, url: str, progress: Progress) -> Shipment:
    """Bring the log at the URL up to date with the collection, journals of replicas first.

    ``UsageError`` where another collection was shipped there, or a copy of this one that went on by
    itself: a log has one writer. ``VerificationError`` where it ends before what was shipped.
    """
    storage, folder = Storage(url), opened.folder
    if is_replica(folder):
        raise UsageError("A replica ships nothing.", "Ship from where the graph is written.")
    with exclusive(folder.path / "ship.lock", timeout=None):
        end = _end_for_writer(storage, folder)
        _check_heads(storage, opened.read(), end.heads)
        taken = _take_journals(opened, storage)
        opened.read()
        snapshot = opened.snapshot()
        try:
            done = _Shipping(opened, storage, snapshot, end).ship(progress)
        finally:
            snapshot.close()
        if taken.names:
            _forget_journals(opened, storage, taken.names)
    return replace(done, journals=taken.new)


def _shipped(folder: CollectionFolder) -> Path:
    return folder.path / "shipped.json"


def _end_for_writer(storage: Storage, folder: CollectionFolder) -> _LogEnd:
    """Where the log ends, which is not before what is remembered of it."""
    known = Position(**(read_json(_shipped(folder)) or {}).get("position", {}))
    end = _LogEnd.read(storage)
    if known.url != storage.url:
        known = Position()
    if end is None and known.number:
        raise _ended(storage, known)
    end = end or _LogEnd(Position(storage.url), {}, {})
    end.check(storage, known)
    return end


def _check_heads(storage: Storage, store: Store, heads: Mapping[str, Sequence[Any]]) -> None:
    """``UsageError`` where the chains that were shipped are no beginnings of these."""
    for name, (sequence, head) in heads.items():
        catalogue = NamedNode(name)
        entry = entry_at(store, catalogue, sequence)
        own = [text_of(q.object) for q in store.match(entry, CHAIN_HASH, None, catalogue)]
        if entry is None or own != [head]:
            raise UsageError(
                f"At {storage.url} another collection was shipped, or a copy of this one that went"
                f" on by itself: entry {sequence} of its chain is not in this one.",
                "Nothing was changed there. Two graphs can't share a place: ship to another.",
            )


@dataclass(frozen=True, slots=True)
class _Journals:
    """The journals that are there, and how many of them were ``new``."""

    names: Sequence[str]
    new: int


def _take_journals(opened: OpenCollection, storage: Storage) -> _Journals:
    """Chain what replicas recorded. A journal that says anything outside of its own bundle is left
    where it is, and said so."""
    store, folder = opened.read(), opened.folder
    names = sorted(filter(_names_journal, storage.names(JOURNALS)))
    taken = 0
    for name in names:
        if _is_chained(store, name) or (folder.journals / name).exists():
            continue
        data = storage.read(JOURNALS, name)
        if not _keeps_to_itself(name, data):
            opened.message(f"The journal {name} at {storage.url} is not taken in: it is forged.")
            continue
        make_folder(folder.journals)
        write_atomic(folder.journals / name, data)
        taken += 1
    if taken:
        opened.ledger.fold()
    return _Journals(names, taken)


_JOURNAL = re.compile(r"[0-9a-f-]{36}(\.[a-z]+)?\.journal")
_CHANGING = frozenset((ERASURE.name, INVALIDATION.name))
"""What only the writer records, since it goes with a change."""

_SHARED = f"{v.URN}agent:", f"{v.URN}prompt:"


def _names_journal(name: str) -> bool:
    return _JOURNAL.fullmatch(name) is not None


def _keeps_to_itself(name: str, data: bytes) -> bool:
    """Whether a journal states its bundle, and agents and prompts, alone."""
    try:
        kind, uuid = kind_of_journal(Path(name))
        frames = journal_content(data).frames
        bundle = NamedNode(v.bundle_iri(uuid))
        head = frames[0]
        quads = [quad for frame in frames for quad in read_trig(frame.get("quads", ""))]
        shared = [quad for frame in frames for quad in read_nquads(frame.get("shared", ""))]
    except (ValueError, KeyError, IndexError, TypeError, SyntaxError, AttributeError):
        return False
    return (
        kind.name not in _CHANGING
        and head.get("bundle") == bundle.value
        and head.get("subject") == kind.subject_iri(uuid)
        and str(head.get("catalogue")).startswith(v.collection_iri(""))
        and all(quad.graph_name == bundle for quad in quads)
        and all(q.graph_name == v.SOURCE_GRAPH for q in shared)
        and all(text_of(q.subject).startswith(_SHARED) for q in shared)
    )


def _forget_journals(opened: OpenCollection, storage: Storage, names: Iterable[str]) -> None:
    store = opened.read()
    storage.delete(JOURNALS, [name for name in names if _is_chained(store, name)])


def _is_chained(store: Store, journal: str) -> bool:
    """Whether the chain has the bundle that the journal is of."""
    bundle = NamedNode(v.bundle_iri(kind_of_journal(Path(journal))[1]))
    return any(
        text_of(quad.graph_name).startswith(v.collection_iri(""))
        for quad in store.match(bundle, v.tg("sequence"), None, None)
    )


def _catalogues(store: Store) -> list[str]:
    """The catalogues that have a chain."""
    first = Literal("1", datatype=v.xsd("integer"))
    graphs = {text_of(q.graph_name) for q in store.match(None, v.tg("sequence"), first, None)}
    return sorted(graph for graph in graphs if graph.startswith(v.collection_iri("")))


def _erasures(store: Store, catalogues: Iterable[str]) -> list[ChainEntry]:
    kind = Literal(ERASURE.name)
    return [
        entry_of(store, quad.subject, name)
        for name in catalogues
        for quad in store.match(None, v.tg("kind"), kind, NamedNode(name))
        if isinstance(quad.subject, NamedNode)
    ]


class _Shipping:
    """One shipment of a published state to a log with an ``end``."""

    def __init__(
        self, opened: OpenCollection, storage: Storage, snapshot: Snapshot, end: _LogEnd
    ) -> None:
        self._librarian = opened.librarian
        self._storage = storage
        self._store = snapshot.store
        self._vectors = snapshot.vectors
        self._generation = snapshot.pointer.generation
        self._collection = opened.folder.name
        self._path = _shipped(opened.folder)
        self._state = read_json(self._path) or {}
        self._end = end
        self._files = 0

    def ship(self, progress: Progress) -> Shipment:
        storage, store = self._storage, self._store
        catalogues = _catalogues(store)
        erasures = _erasures(store, catalogues)
        anew = len(erasures) != self._end.position.epoch
        if anew or self._end.clearing:
            self._clear(len(erasures))
        known = {name: sequence for name, (sequence, _) in self._begun().items()}
        chains = {name: entries_after(store, name, known.get(name, 0)) for name in catalogues}
        new = list(merge(*chains.values(), key=lambda entry: v.in_time(entry.time)))
        if new:
            heads = {name: (c[-1].sequence, c[-1].chain) for name, c in chains.items() if c}
            rewritings = Rewritings(store, erasures)
            if not self._append(new, {**self._begun(), **heads}, rewritings, progress):
                return self.ship(progress)
        elif self._state.get("position") != asdict(self._end.position):
            self._remember()
        return Shipment(storage.url, len(new), self._files, 0, self._end.position.number, anew)

    def _begun(self) -> Mapping[str, Sequence[Any]]:
        """The heads of what the log has; none in one that begins anew."""
        return self._end.heads if self._end.position.number else {}

    def _append(
        self,
        new: Sequence[ChainEntry],
        heads: Mapping[str, Sequence[Any]],
        rewritings: Rewritings,
        progress: Progress,
    ) -> bool:
        """Write a segment with the entries, after all that it refers to; then the head. False where
        there is a segment already, which is the end now."""
        storage, last = self._storage, self._end
        entries, needed = BytesIO(), set[str]()
        with gzip.GzipFile(fileobj=entries, mode="wb", compresslevel=6, mtime=0) as packed:
            for entry in new:
                told = self._told(entry, rewritings)
                needed.update(self._needed(told))
                packed.write(_line(told))
        contents = sorted(needed)
        self._ship_contents(contents, progress)
        number = last.position.number + 1
        header: dict[str, Any] = {
            "format": FORMAT,
            "number": number,
            "previous": last.position.hash,
            "epoch": last.position.epoch,
            "collection": self._collection,
            "generation": self._generation,
            "heads": heads,
            "derived": self._ship_derived(),
            "contents": contents,
        }
        data = gzip.compress(_line(header), 6, mtime=0) + entries.getvalue()
        position = replace(last.position, number=number, hash=_digest(data))
        is_new = storage.create(LOG, _name(number), data)
        if not is_new:  # by this graph, before an interruption, or by another in this moment
            position, segment = _segment(storage, last.position)
            header = dict(segment.header)
            _check_heads(storage, self._store, header["heads"])
        self._end = _LogEnd(position, header["heads"], header["derived"])
        self._end.write(storage)
        self._remember()
        if self._end.derived != last.derived:  # the former stay for who is reading them
            kept = {*self._end.derived.values(), *last.derived.values()}
            storage.delete(DERIVED, storage.names(DERIVED) - kept)
        return is_new

    def _remember(self, *, under_way: bool = False) -> None:
        """``under_way`` is what an interruption leaves."""
        self._state |= {"position": asdict(self._end.position), "under_way": under_way}
        write_json(self._path, self._state)

    def _clear(self, epoch: int) -> None:
        """Begin the log anew: what an erasure took must stay nowhere."""
        storage = self._storage
        self._end = _LogEnd(Position(storage.url, epoch=epoch), self._end.heads, {}, clearing=True)
        self._end.write(storage)
        for folder in (LOG, CONTENTS, DERIVED):
            storage.delete(folder, storage.names(folder) - {HEAD})
        self._end = replace(self._end, clearing=False)
        self._end.write(storage)

    def _needed(self, told: Mapping[str, str]) -> Iterator[str]:
        """The contents that an entry speaks of, but for those that an erasure took."""
        if told["kind"] == "batch":
            yield told["content"]
        yield from filter(self._librarian.has, self._spoken_of(told))

    def _spoken_of(self, told: Mapping[str, str]) -> Iterator[str]:
        yield from _hashes(told["quads"] + told.get("bundle", ""))
        for line in self._librarian.lines(told["content"]) if told["kind"] == "batch" else ():
            if line[:1] == b"=":
                yield line[1:].decode().strip()
            elif line[:1] == b"+":
                yield from _hashes(line.decode())

    def _ship_contents(self, keys: Sequence[str], progress: Progress) -> None:
        """What is not there. After an interruption, and in the beginning, much may be there, so it
        is listed."""
        listed = not self._end.position.number or self._state.get("under_way")
        there = self._storage.names(CONTENTS) if listed else set()
        self._remember(under_way=True)
        missing = [key for key in keys if key not in there]
        self._files += self._storage.each(missing, self._ship_content, progress)
        progress(len(missing), len(missing))

    def _ship_content(self, key: str) -> bool:
        packed = gzip.compress(self._librarian.get(key), 6, mtime=0)
        return self._storage.create(CONTENTS, key, packed)

    def _ship_derived(self) -> dict[str, str]:
        """Vectors and tables, by their hashes; what each file is called. A file that did not change
        since it was shipped is not read."""
        before, there = self._state.get("files", {}), set(self._end.derived.values())
        files: dict[str, list[Any]] = {}
        for path in sorted(self._vectors.iterdir()) if self._vectors.is_dir() else ():
            stat = path.stat()
            *as_it_was, key = before.get(path.name, [""])
            if as_it_was != [stat.st_size, stat.st_mtime_ns] or key not in there:
                key = self._ship_file(path.read_bytes(), there)
            files[path.name] = [stat.st_size, stat.st_mtime_ns, key]
        self._state["files"] = files
        return {name: key for name, (_, _, key) in files.items()}

    def _ship_file(self, data: bytes, there: set[str]) -> str:
        key = sha256(data).hexdigest()
        if key not in there:
            self._files += self._storage.create(DERIVED, key, gzip.compress(data, 1, mtime=0))
        return key

    def _told(self, entry: ChainEntry, rewritings: Rewritings) -> dict[str, str]:
        told = {"subject": entry.subject, "kind": entry.kind, "quads": _text(entry.quads)}
        key = rewritings.hash_of(entry.subject, entry.hash)
        if entry.kind == "batch":
            return {**told, "content": key}
        bundle = self._store.match(None, None, None, NamedNode(entry.subject))
        return {**told, "content": key, "bundle": _text(bundle)}


def _text(quads: Iterable[Quad]) -> str:
    return to_bytes(list(quads)).decode()


# --- the replica ---


def is_replica(folder: CollectionFolder) -> bool:
    """Whether the collection follows another."""
    return folder.replica.exists()


def position_of(folder: CollectionFolder) -> Position:
    """How far a replica is; at the beginning where it is none yet."""
    return Position(**(read_json(folder.replica) or {}).get("position", {}))


def follow(opened: OpenCollection, url: str, progress: Progress) -> Shipment:
    """Bring the collection, which is a replica or empty, up to date with the log at the URL, and
    hand over what was recorded here.

    Every segment, entry, bundle and content is checked before readers see any of it.
    ``VerificationError`` where something is not as it was sealed, missing, or in another order;
    ``EndpointError`` where nothing has been shipped yet.
    """
    storage, folder = Storage(url), opened.folder
    if not is_replica(folder) and folder.pointer.exists():
        raise UsageError("There is a graph already that follows no other.", "Name another folder.")
    with exclusive(folder.path / "ship.lock", timeout=None):
        end = _end_for_reader(storage, position_of(folder))
        while True:
            try:
                return _Following(opened, storage).follow(end, progress)
            except VerificationError:  # unless it is shipped anew, or vectors were, in this moment
                before, end = end, _end_for_reader(storage, position_of(folder))
                if before == end:
                    raise


def _end_for_reader(storage: Storage, known: Position) -> _LogEnd:
    """Where the log ends, which is not before where a replica is. The log may have been moved, not
    be another one."""
    end = _LogEnd.read(storage)
    if known.url not in ("", storage.url) and Storage(known.url).url != storage.url:
        segment = storage.find(LOG, _name(known.number)) or b""
        if not end or end.position.epoch != known.epoch or _digest(segment) != known.hash:
            raise UsageError(
                f"This is a replica of {known.url}, and the log at {storage.url} is another.",
                "Follow that, or name another folder.",
            )
    if end is None and known.number:
        raise _ended(storage, known)
    if end is None:
        raise EndpointError(f"Nothing has been shipped to {storage.url}.", "Run `tgraph ship`.")
    end.check(storage, known)
    return end


class _Following:
    """One round of a replica."""

    def __init__(self, opened: OpenCollection, storage: Storage) -> None:
        self._opened = opened
        self._folder = opened.folder
        self._librarian = opened.librarian
        self._storage = storage
        self._state = read_json(opened.folder.replica) or {}
        self._entries = self._files = 0
        self._erased = False

    def follow(self, end: _LogEnd, progress: Progress) -> Shipment:
        storage, folder, last = self._storage, self._folder, end.position
        position = replace(position_of(folder), url=storage.url)
        anew = last.epoch > position.epoch
        if anew:
            self._empty()
            position = Position(storage.url, epoch=last.epoch)
        if position.number < last.number:
            self._remember(position)
            with self._opened.ledger.open() as (store, _):
                for reached, segment in _segments(storage, position, last):
                    progress(reached.number - 1, last.number)
                    self._carry_out(store, segment)
                    derived = segment.header["derived"]
                self._put_derived(derived)
                self._opened.ledger.publish(store)
            progress(last.number, last.number)
        self._remember(last)
        self._forget()
        handed = self._hand_over()
        return Shipment(storage.url, self._entries, self._files, handed, last.number, anew)

    def _remember(self, position: Position) -> None:
        if self._state.get("position") != asdict(position):
            self._state["position"] = asdict(position)
            write_json(self._folder.replica, self._state)

    def _empty(self) -> None:
        """Begin anew, with nothing of what an erasure took: a store keeps what was deleted in its
        files for a while. Until the end nothing is published here."""
        folder = self._folder
        with exclusive(folder.write_lock, timeout=None), disk_errors():
            folder.pointer.unlink(missing_ok=True)
            remove_unpinned(folder)
            for path in (folder.store, folder.vectors, self._librarian.folder):
                shutil.rmtree(path, ignore_errors=True)

    def _carry_out(self, store: OxigraphStore, segment: _LogSegment) -> None:
        self._erased = segment.header["epoch"] > 0
        heads: dict[str, Head] = {}
        self._fetch(segment.header["contents"])
        for told in segment.entries:
            quads = read_nquads(told["quads"])
            said = _said(quads)
            catalogue = text_of(quads[0].graph_name)
            head = heads.get(catalogue) or read_head(store, NamedNode(catalogue))
            if said.sequence <= head.sequence:
                continue  # it was carried out before an interruption
            own = text_of(quads[0].subject)
            if any((text_of(q.graph_name), text_of(q.subject)) != (catalogue, own) for q in quads):
                raise self._wrong(told, "speaks of something else too")
            if (said.sequence, said.previous) != (head.sequence + 1, head.hash):
                raise self._wrong(told, "does not follow the entry before it")
            if chain_hash(quads) != said.chain:
                raise self._wrong(told, "says something else than was sealed")
            store.extend([*self._sealed(store, told, said), *quads])
            heads[catalogue] = Head(said.sequence, said.chain)
            self._entries += 1

    def _sealed(
        self, store: OxigraphStore, told: Mapping[str, str], said: ChainEntry
    ) -> list[Quad]:
        """Carry out a batch; the quads of a bundle, which are what was sealed."""
        if told["kind"] == "batch":
            self._carry_out_batch(store, told["content"])
            if told["content"] != said.hash and not self._erased:
                raise self._wrong(told, "is another batch than was sealed")
            return []
        bundle = read_nquads(told.get("bundle", ""))
        if any(text_of(quad.graph_name) != said.subject for quad in bundle):
            raise self._wrong(told, "has quads of another graph")
        if bundle and canonical_hash(bundle) != told["content"]:
            raise self._wrong(told, "has other quads than were sealed")
        if bundle and told["content"] != said.hash and not self._erased:
            raise self._wrong(told, "has other quads than were sealed")
        return bundle

    def _carry_out_batch(self, store: OxigraphStore, key: str) -> None:
        for sign in (b"-", b"+"):
            lines = self._signed(key, sign)
            while block := list(islice(lines, _AT_ONCE)):
                quads = read_nquads("".join(block))
                store.remove(quads) if sign == b"-" else store.extend(quads)

    def _signed(self, key: str, sign: bytes) -> Iterator[str]:
        """The lines of a batch with the sign."""
        return (ln[1:].decode() for ln in self._librarian.lines(key) if ln[:1] == sign)

    def _fetch(self, keys: Iterable[str]) -> None:
        """Get the contents that are not here."""
        missing = [key for key in dict.fromkeys(keys) if not self._librarian.has(key)]
        self._files += self._storage.each(missing, self._fetch_content, unseen)

    def _fetch_content(self, key: str) -> bool:
        try:
            content = gzip.decompress(self._storage.read(CONTENTS, key))
        except (OSError, EOFError, zlib.error) as error:
            raise self._damaged(f"The content {key}", "can't be read") from error
        if sha256(content).hexdigest() != key:
            raise self._damaged(f"The content {key}", "is another one")
        self._librarian.put(content)
        return True

    def _put_derived(self, wanted: Mapping[str, str]) -> None:
        """The vectors and tables of the newest generation, whole; readers keep the old files."""
        here = self._folder.vectors
        if self._state.get("derived") == wanted and all((here / name).exists() for name in wanted):
            return
        fresh = self._folder.path / "vectors.new"
        shutil.rmtree(fresh, ignore_errors=True)
        with disk_errors():
            make_folder(fresh)
            put = partial(self._put_file, fresh, wanted)
            self._files += self._storage.each(sorted(wanted), put, unseen)
            if here.exists():
                shutil.rmtree(here)
            fresh.rename(here)
        self._state["derived"] = dict(wanted)

    def _put_file(self, folder: Path, wanted: Mapping[str, str], name: str) -> bool:
        """Put the file there, as it is here already or else as it was shipped; whether it was."""
        if Path(name).name != name:
            raise VerificationError(f"{name!r} is no name of a file.", _AGAIN)
        here = self._folder.vectors / name
        data = here.read_bytes() if here.exists() else b""
        fetched = sha256(data).hexdigest() != wanted[name]
        if fetched:
            data = self._derived(name, wanted[name])
        (folder / name).write_bytes(data)
        return fetched

    def _derived(self, name: str, key: str) -> bytes:
        try:
            data = gzip.decompress(self._storage.read(DERIVED, key))
        except (OSError, EOFError, zlib.error) as error:
            raise self._damaged(f"The file {name}", "can't be read") from error
        if sha256(data).hexdigest() != key:
            raise self._damaged(f"The file {name}", "is another one")
        return data

    def _wrong(self, told: Mapping[str, str], what: str) -> VerificationError:
        return VerificationError(
            f"{told['subject']} in the log at {self._storage.url} {what}.", _AGAIN
        )

    def _damaged(self, what: str, how: str) -> VerificationError:
        return VerificationError(f"{what} at {self._storage.url} {how}.", _AGAIN)

    # --- what was recorded here ---

    def _hand_over(self) -> int:
        """Give the writer the journals of what has ended; how many were new."""
        ended = [path for path in self._folder.journals.glob("*.journal") if is_free(path)]
        there = self._storage.names(JOURNALS) if ended else set()
        new = sorted(path for path in ended if path.name not in there)
        for path in new:
            self._storage.write(JOURNALS, path.name, path.read_bytes())
        return len(new)

    def _forget(self) -> None:
        """Delete the journals that have come back in the chain."""
        journals = sorted(self._folder.journals.glob("*.journal"))
        if journals and self._folder.pointer.exists():
            store = self._opened.read()
            for path in journals:
                if _is_chained(store, path.name):
                    path.unlink(missing_ok=True)


def _said(quads: Sequence[Quad]) -> ChainEntry:
    said = stated(quads)
    return ChainEntry(
        text_of(quads[0].subject),
        int(said[v.tg("sequence")]),
        said[v.tg("kind")],
        said[v.tg("hash")],
        said[v.tg("previousHash")],
        said[CHAIN_HASH],
        "",
        "",
        (),
    )


_KEY = re.compile(r"[0-9a-f]{64}")
_HASH = re.compile(r'"([0-9a-f]{64})"')


def _hashes(text: str) -> list[str]:
    """What may be the hash of a content."""
    return _HASH.findall(text)
