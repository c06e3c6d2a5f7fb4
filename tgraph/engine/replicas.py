"""Read replicas by shipping the log: every change is a sealed entry of the chain, so a replica is
the same entries carried out in the same order, over files that any storage can hold (``fsspec``).

Below the URL there are ``contents/`` (the librarian's, by hash), ``derived/`` (vectors and tables,
by hash), ``journals/`` (what replicas recorded, until the writer has chained it) and ``log/``:
segments by number, each of which names the hash of the one before. One is written once, after all
that it refers to. An erasure begins a new ``epoch``: everything is deleted and shipped anew.
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
from functools import cached_property
from hashlib import sha256
from heapq import merge
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import EndpointError, UsageError, VerificationError
from tgraph.explain.export.publishing import catalogue_of, chains_of
from tgraph.explain.integrity.entries import ChainEntry, stated
from tgraph.explain.integrity.erasures import Rewritings
from tgraph.record.bundle import ERASURE, INVALIDATION, kind_of_journal
from tgraph.record.chain import CHAIN_HASH, GENESIS, Head, canonical_hash, chain_hash, read_head
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
EPOCH = "epoch"
"""Beside the segments: how many erasures the log has behind it."""

_AT_ONCE = 5_000
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
        self.url = url
        self._files.use_listings_cache = False

    def names(self, folder: str) -> set[str]:
        """The names of the files of a folder; none where it isn't there."""
        with self._reached():
            self._files.invalidate_cache()
            try:
                found = self._files.ls(f"{self._base}/{folder}", detail=False)
            except FileNotFoundError:
                return set()
            return {str(name).rstrip("/").rpartition("/")[2] for name in found}

    def read(self, folder: str, name: str) -> bytes:
        """``VerificationError`` where there is no such file."""
        with self._reached():
            try:
                found: bytes = self._files.cat_file(f"{self._base}/{folder}/{name}")
            except FileNotFoundError as error:
                raise VerificationError(
                    f"{folder}/{name} is missing at {self.url}.", _AGAIN
                ) from error
            return found

    def write(self, folder: str, name: str, data: bytes) -> None:
        """Whole or not at all."""
        with self._reached():
            self._files.makedirs(f"{self._base}/{folder}", exist_ok=True)
            if self._files.protocol in ("file", ("file", "local")):
                write_atomic(Path(self._base) / folder / name, data)
            else:  # object storage has whole objects only
                self._files.pipe_file(f"{self._base}/{folder}/{name}", data)

    def delete(self, folder: str, names: Iterable[str]) -> None:
        with self._reached():
            for name in names:
                with suppress(FileNotFoundError):
                    self._files.rm_file(f"{self._base}/{folder}/{name}")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """What goes wrong with a storage, as one error."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise EndpointError(f"{self.url} can't be reached: {reason}.", "Try again.") from error


# --- segments ---


@dataclass(frozen=True, slots=True)
class _LogSegment:
    """A stretch of the log: a header, and of each entry its quads and those of its bundle."""

    header: Mapping[str, Any]
    entries: Sequence[Mapping[str, str]]

    def packed(self) -> bytes:
        lines = [self.header, *self.entries]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        return gzip.compress(text.encode("utf-8", "surrogatepass"), 6, mtime=0)

    @classmethod
    def unpacked(cls, data: bytes) -> _LogSegment:
        text = gzip.decompress(data).decode("utf-8", "surrogatepass")
        header, *entries = map(json.loads, text.splitlines())
        return cls(header, entries)


def _name(number: int) -> str:
    return f"{number:08d}.gz"


def _segments(storage: Storage, after: Position) -> Iterator[tuple[Position, _LogSegment]]:
    """The segments behind a position, in their order. ``VerificationError`` where one is missing,
    or is not what followed the one before."""
    known = storage.names(LOG) - {EPOCH}
    if after.number and _name(after.number) not in known:
        raise VerificationError(
            f"The log at {storage.url} ends before segment {after.number}, which was there.", _AGAIN
        )
    while remaining := {name for name in known if name > _name(after.number)}:
        data = storage.read(LOG, _name(after.number + 1))
        try:
            segment = _LogSegment.unpacked(data)
            header = segment.header
            found = header["number"], header["previous"], header["epoch"]
            newer = header["format"] > FORMAT
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
            raise _altered(storage, after.number + 1, "it can't be read") from error
        if newer:
            raise UsageError("The log was written by a newer tgraph.", "Upgrade this one.")
        if found != (after.number + 1, after.hash, after.epoch):
            raise _altered(storage, after.number + 1, "it doesn't follow the one before")
        after = Position(storage.url, after.number + 1, sha256(data).hexdigest(), after.epoch)
        yield after, segment
        known = remaining - {_name(after.number)}


def _altered(storage: Storage, number: int, why: str) -> VerificationError:
    return VerificationError(f"Segment {number} of the log at {storage.url}: {why}.", _AGAIN)


def _epoch(storage: Storage) -> int:
    if EPOCH not in storage.names(LOG):
        return 0
    return int(storage.read(LOG, EPOCH) or b"0")


# --- the writer ---


def ship(opened: OpenCollection, url: str, progress: Progress) -> Shipment:
    """Bring the log at the URL up to date with the collection, journals of replicas first.

    Nobody else may ship there at the same time. ``UsageError`` where another collection did.
    """
    storage, folder = Storage(url), opened.folder
    if is_replica(folder):
        raise UsageError("A replica ships nothing.", "Ship from where the graph is written.")
    with exclusive(folder.path / "ship.lock", timeout=None):
        taken = _take_journals(opened, storage)
        opened.read()
        snapshot = opened.snapshot()
        try:
            done = _Shipping(opened, storage, snapshot).ship(progress)
        finally:
            snapshot.close()
        _forget_journals(opened, storage)
    return replace(done, journals=taken)


def _take_journals(opened: OpenCollection, storage: Storage) -> int:
    """Chain what replicas recorded; how many journals that were. One that says anything outside of
    its own bundle is left where it is, and said so."""
    store, folder = opened.read(), opened.folder
    taken = 0
    for name in sorted(filter(_names_journal, storage.names(JOURNALS))):
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
    return taken


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


def _forget_journals(opened: OpenCollection, storage: Storage) -> None:
    store = opened.read()
    names = filter(_names_journal, storage.names(JOURNALS))
    storage.delete(JOURNALS, [name for name in names if _is_chained(store, name)])


def _is_chained(store: Store, journal: str) -> bool:
    """Whether the chain has the bundle that the journal is of."""
    bundle = NamedNode(v.bundle_iri(kind_of_journal(Path(journal))[1]))
    return any(
        text_of(quad.graph_name).startswith(v.collection_iri(""))
        for quad in store.match(bundle, v.tg("sequence"), None, None)
    )


class _Shipping:
    """One shipment of a published state."""

    def __init__(self, opened: OpenCollection, storage: Storage, snapshot: Snapshot) -> None:
        self._librarian = opened.librarian
        self._storage = storage
        self._store = snapshot.store
        self._vectors = snapshot.vectors
        self._generation = snapshot.pointer.generation
        self._collection = opened.folder.name
        self._state = opened.folder.path / "shipped.json"
        self._files = 0

    def ship(self, progress: Progress) -> Shipment:
        storage = self._storage
        chains = chains_of(self._store)
        entries = list(merge(*chains.values(), key=lambda entry: v.in_time(entry.time)))
        rewritings = Rewritings(self._store, entries)
        epoch = sum(entry.kind == ERASURE.name for entry in entries)
        anew = epoch != _epoch(storage)
        if anew:
            self._clear(epoch)
        last, before = self._shipped(Position(storage.url, epoch=epoch))
        shipped = before.get("heads", {})
        self._check(shipped, chains)
        known = {name: sequence for name, (sequence, _) in shipped.items()}
        new = [each for each in entries if each.sequence > known.get(catalogue_of(each), 0)]
        if new:
            self._ship_contents(progress)
            heads = {name: (chain[-1].sequence, chain[-1].chain) for name, chain in chains.items()}
            header = {
                "format": FORMAT,
                "number": last.number + 1,
                "previous": last.hash,
                "epoch": epoch,
                "collection": self._collection,
                "generation": self._generation,
                "heads": heads,
                "derived": self._ship_derived(before.get("derived", {})),
            }
            told = [self._told(entry, rewritings) for entry in new]
            data = _LogSegment(header, told).packed()
            storage.write(LOG, _name(last.number + 1), data)
            last = replace(last, number=last.number + 1, hash=sha256(data).hexdigest())
            state = {name: header[name] for name in ("heads", "derived")}
            write_json(self._state, {"position": asdict(last), **state})
        return Shipment(storage.url, len(new), self._files, 0, last.number, anew)

    def _shipped(self, last: Position) -> tuple[Position, dict[str, Any]]:
        """The end of the log and the header there; of a log whose end is remembered only what
        follows is read."""
        header: dict[str, Any] = {}
        found = read_json(self._state) or {}
        known = Position(**found.get("position", {}))
        if (known.url, known.epoch) == (last.url, last.epoch):
            last, header = known, found
        for position, segment in _segments(self._storage, last):
            last, header = position, dict(segment.header)
        return last, header

    def _check(
        self, shipped: Mapping[str, Any], chains: Mapping[str, Sequence[ChainEntry]]
    ) -> None:
        for name, (sequence, head) in shipped.items():
            chain = chains.get(name, ())
            if len(chain) < sequence or chain[sequence - 1].chain != head:
                raise UsageError(
                    f"At {self._storage.url} another collection was shipped.",
                    "Ship to another place.",
                )

    def _clear(self, epoch: int) -> None:
        """Begin the log anew: what an erasure took must stay nowhere."""
        storage = self._storage
        storage.write(LOG, EPOCH, str(epoch).encode())
        for folder in (LOG, CONTENTS, DERIVED):
            storage.delete(folder, storage.names(folder) - {EPOCH})

    def _ship_contents(self, progress: Progress) -> None:
        there = self._storage.names(CONTENTS)
        missing = [(key, path) for key, path in self._librarian.files() if key not in there]
        for done, (key, _) in enumerate(missing):
            progress(done, len(missing))
            self._put(CONTENTS, key, gzip.compress(self._librarian.get(key), 6, mtime=0))
        progress(len(missing), len(missing))

    def _ship_derived(self, before: Mapping[str, str]) -> dict[str, str]:
        """Vectors and tables, by their hashes; what each file is called. Those of the segment
        ``before`` stay for who is reading it."""
        there = self._storage.names(DERIVED)
        found: dict[str, str] = {}
        for path in sorted(self._vectors.iterdir()) if self._vectors.is_dir() else ():
            data = path.read_bytes()
            found[path.name] = sha256(data).hexdigest()
            if found[path.name] not in there:
                self._put(DERIVED, found[path.name], gzip.compress(data, 1, mtime=0))
        self._storage.delete(DERIVED, there - {*found.values(), *before.values()})
        return found

    def _put(self, folder: str, name: str, data: bytes) -> None:
        self._storage.write(folder, name, data)
        self._files += 1

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
    found = read_json(folder.replica)
    return Position(**found) if found else Position()


def follow(opened: OpenCollection, url: str, progress: Progress) -> Shipment:
    """Bring the collection, which is a replica or empty, up to date with the log at the URL, and
    hand over what was recorded here.

    Every segment, entry, bundle and content is checked before readers see any of it.
    ``VerificationError`` where something is not as it was sealed, missing, or in another order.
    """
    storage, folder = Storage(url), opened.folder
    if not is_replica(folder) and folder.pointer.exists():
        raise UsageError("There is a graph already that follows no other.", "Name another folder.")
    with exclusive(folder.path / "ship.lock", timeout=None):
        return _Following(opened, storage).follow(progress)


class _Following:
    """One round of a replica."""

    def __init__(self, opened: OpenCollection, storage: Storage) -> None:
        self._opened = opened
        self._folder = opened.folder
        self._librarian = opened.librarian
        self._storage = storage
        self._entries = self._files = 0
        self._erased = False

    def follow(self, progress: Progress) -> Shipment:
        storage, folder = self._storage, self._folder
        position, epoch = position_of(folder), _epoch(storage)
        if position.url not in ("", storage.url):
            raise UsageError(f"This is a replica of {position.url}.", "Follow that.")
        anew = epoch > position.epoch
        if epoch < position.epoch:
            raise VerificationError(f"The log at {storage.url} is older than this replica.", _AGAIN)
        if anew:
            self._empty()
            position = Position(epoch=epoch)
        position = replace(position, url=storage.url)
        write_json(folder.replica, asdict(position))
        known = storage.names(LOG) - {EPOCH}
        derived: Mapping[str, str] = {}
        with self._opened.ledger.open() as (store, _):
            for reached, segment in _segments(storage, position):
                position = reached
                progress(position.number, len(known))
                self._carry_out(store, segment)
                derived = segment.header["derived"]
            if derived:
                self._put_derived(derived)
                self._opened.ledger.publish(store)
        write_json(folder.replica, asdict(position))
        self._forget()
        handed = self._hand_over()
        return Shipment(storage.url, self._entries, self._files, handed, position.number, anew)

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
        for told in segment.entries:
            quads = list(read_nquads(told["quads"]))
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
            self._fetch(_hashes(told["quads"] + told.get("bundle", "")))
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
        bundle = list(read_nquads(told.get("bundle", "")))
        if any(text_of(quad.graph_name) != said.subject for quad in bundle):
            raise self._wrong(told, "has quads of another graph")
        if bundle and canonical_hash(bundle) != told["content"]:
            raise self._wrong(told, "has other quads than were sealed")
        if bundle and told["content"] != said.hash and not self._erased:
            raise self._wrong(told, "has other quads than were sealed")
        return bundle

    def _carry_out_batch(self, store: OxigraphStore, key: str) -> None:
        self._fetch([key])
        self._fetch(line.strip() for line in self._signed(key, b"="))
        for sign in (b"-", b"+"):
            lines = self._signed(key, sign)
            while block := list(islice(lines, _AT_ONCE)):
                quads = list(read_nquads("".join(block)))
                store.remove(quads) if sign == b"-" else store.extend(quads)

    def _signed(self, key: str, sign: bytes) -> Iterator[str]:
        """The lines of a batch with the sign."""
        return (ln[1:].decode() for ln in self._librarian.lines(key) if ln[:1] == sign)

    def _fetch(self, keys: Iterable[str]) -> None:
        """Get the contents that are not there; those that an erasure took are nowhere."""
        for key in dict.fromkeys(keys):
            if not self._librarian.has(key) and key in self._contents:
                try:
                    content = gzip.decompress(self._storage.read(CONTENTS, key))
                except (OSError, EOFError, zlib.error) as error:
                    raise VerificationError(f"The content {key} can't be read.", _AGAIN) from error
                if sha256(content).hexdigest() != key:
                    raise VerificationError(f"The content {key} is another one.", _AGAIN)
                self._librarian.put(content)
                self._files += 1

    @cached_property
    def _contents(self) -> set[str]:
        return self._storage.names(CONTENTS)

    def _put_derived(self, wanted: Mapping[str, str]) -> None:
        """The vectors and tables of the newest generation, whole; readers keep the old files."""
        fresh = self._folder.path / "vectors.new"
        shutil.rmtree(fresh, ignore_errors=True)
        with disk_errors():
            make_folder(fresh)
            for name, key in wanted.items():
                if Path(name).name != name or not _KEY.fullmatch(key):
                    raise VerificationError(f"{name!r} is no name of a file.", _AGAIN)
                (fresh / name).write_bytes(self._derived(name, key))
            if self._folder.vectors.exists():
                shutil.rmtree(self._folder.vectors)
            fresh.rename(self._folder.vectors)

    def _derived(self, name: str, key: str) -> bytes:
        """The file as it is here already, or from there."""
        here = self._folder.vectors / name
        data = here.read_bytes() if here.exists() else b""
        if sha256(data).hexdigest() != key:
            data = gzip.decompress(self._storage.read(DERIVED, key))
            self._files += 1
        if sha256(data).hexdigest() != key:
            raise VerificationError(f"The file {name} is another one.", _AGAIN)
        return data

    def _wrong(self, told: Mapping[str, str], what: str) -> VerificationError:
        return VerificationError(
            f"{told['subject']} in the log at {self._storage.url} {what}.", _AGAIN
        )

    # --- what was recorded here ---

    def _hand_over(self) -> int:
        """Give the writer the journals of what has ended; how many were new."""
        there, handed = self._storage.names(JOURNALS), 0
        for path in sorted(self._folder.journals.glob("*.journal")):
            if path.name not in there and is_free(path):
                self._storage.write(JOURNALS, path.name, path.read_bytes())
                handed += 1
        return handed

    def _forget(self) -> None:
        """Delete the journals that have come back in the chain."""
        store = self._opened.read() if self._folder.pointer.exists() else None
        for path in sorted(self._folder.journals.glob("*.journal")):
            if store is not None and _is_chained(store, path.name):
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
