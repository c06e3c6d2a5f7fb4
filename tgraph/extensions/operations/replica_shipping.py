"""The writer of the log that replicas follow: it ships the new entries of the chain, and takes in
the journals that replicas handed over."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import UsageError
from tgraph.explain.integrity.entries import ChainEntry
from tgraph.explain.integrity.sealed_entries import SealedEntries, catalogue_of
from tgraph.extensions.operations.replica_log import (
    FORMAT,
    HEAD,
    LogEnd,
    Position,
    Shipment,
    digest,
    encode_line,
    is_chained,
    is_replica,
    log_ended,
    read_segment,
    segment_name,
)
from tgraph.extensions.operations.replica_storage import (
    CONTENTS,
    DERIVED,
    JOURNALS,
    LOG,
    Progress,
    Storage,
)
from tgraph.record.bundle import ERASURE, INVALIDATION, kind_of_journal
from tgraph.store.base import text_of
from tgraph.store.files import exclusive, make_folder, read_json, write_atomic, write_json
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import journal_content
from tgraph.store.snapshot import Snapshot
from tgraph.store.statements import nquads, read_nquads, read_trig

_HASH = re.compile(r'"([0-9a-f]{64})"')


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
        _check_heads(storage, SealedEntries(opened.read(), opened.librarian), end.heads)
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


def _end_for_writer(storage: Storage, folder: CollectionFolder) -> LogEnd:
    """Where the log ends, which is not before what is remembered of it."""
    known = Position(**(read_json(_shipped(folder)) or {}).get("position", {}))
    end = LogEnd.read(storage)
    if known.url != storage.url:
        known = Position()
    if end is None and known.number:
        raise log_ended(storage, known)
    end = end or LogEnd(Position(storage.url), {}, {})
    end.check(storage, known)
    return end


def _check_heads(
    storage: Storage, sealed: SealedEntries, heads: Mapping[str, Sequence[Any]]
) -> None:
    """``UsageError`` where the chains that were shipped are no beginnings of these."""
    for catalogue, (sequence, head) in heads.items():
        if sealed.head_at(catalogue, sequence) != head:
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
        if is_chained(store, name) or (folder.journals / name).exists():
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
    storage.delete(JOURNALS, [name for name in names if is_chained(store, name)])


class _Shipping:
    """One shipment of a published state to a log with an ``end``."""

    def __init__(
        self, opened: OpenCollection, storage: Storage, snapshot: Snapshot, end: LogEnd
    ) -> None:
        self._librarian = opened.librarian
        self._storage = storage
        self._sealed = SealedEntries(snapshot.store, opened.librarian)
        self._vectors = snapshot.vectors
        self._generation = snapshot.pointer.generation
        self._collection = opened.folder.name
        self._path = _shipped(opened.folder)
        self._state = read_json(self._path) or {}
        self._end = end
        self._files = 0

    def ship(self, progress: Progress) -> Shipment:
        storage, erasures = self._storage, len(self._sealed.erasures)
        anew = erasures != self._end.position.epoch
        if anew or self._end.clearing:
            self._clear(erasures)
        known = {name: sequence for name, (sequence, _) in self._begun().items()}
        new = self._sealed.after(known)
        if new:
            heads = {catalogue_of(entry): (entry.sequence, entry.chain) for entry in new}
            if not self._append(new, {**self._begun(), **heads}, progress):
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
        progress: Progress,
    ) -> bool:
        """Write a segment with the entries, after all that it refers to; then the head. False where
        there is a segment already, which is the end now."""
        storage, last = self._storage, self._end
        entries, needed = BytesIO(), set[str]()
        with gzip.GzipFile(fileobj=entries, mode="wb", compresslevel=6, mtime=0) as packed:
            for entry in new:
                told = self._told(entry)
                needed.update(self._needed(told))
                packed.write(encode_line(told))
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
        data = gzip.compress(encode_line(header), 6, mtime=0) + entries.getvalue()
        position = replace(last.position, number=number, hash=digest(data))
        is_new = storage.create(LOG, segment_name(number), data)
        if not is_new:  # by this graph, before an interruption, or by another in this moment
            position, segment = read_segment(storage, last.position)
            header = dict(segment.header)
            _check_heads(storage, self._sealed, header["heads"])
        self._end = LogEnd(position, header["heads"], header["derived"])
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
        self._end = LogEnd(Position(storage.url, epoch=epoch), self._end.heads, {}, clearing=True)
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

    def _told(self, entry: ChainEntry) -> dict[str, str]:
        told = {"subject": entry.subject, "kind": entry.kind, "quads": nquads(entry.quads)}
        key = self._sealed.content_hash(entry.subject, entry.hash)
        if entry.kind == "batch":
            return {**told, "content": key}
        return {**told, "content": key, "bundle": nquads(self._sealed.added(entry))}


def _hashes(text: str) -> list[str]:
    """What may be the hash of a content."""
    return _HASH.findall(text)
