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
from tgraph.engine.progress import CountProgress
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
    Storage,
)
from tgraph.masking import mask_urls
from tgraph.record.boundary import foreign_subjects
from tgraph.record.bundle import ERASURE, INVALIDATION, kind_of_journal
from tgraph.store.base import text_of
from tgraph.store.files import hold_lock, make_folder, read_json, write_atomic, write_json
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import journal_content
from tgraph.store.snapshot import Snapshot
from tgraph.store.statements import format_nquads, read_nquads, read_trig, to_bytes

_HASH = re.compile(r'"([0-9a-f]{64})"')


def ship(opened: OpenCollection, url: str, progress: CountProgress) -> Shipment:
    """Update the log at the URL from the collection, after taking in replica journals.

    Raise ``UsageError`` if the log belongs to another collection, or to a diverged copy of the
    collection: a log has one writer. Raise ``VerificationError`` if the log ends before content
    shipped earlier."""
    storage, folder = Storage(url), opened.folder
    if is_replica(folder):
        raise UsageError("A replica ships nothing.", "Ship from where the graph is written.")
    with hold_lock(folder.path / "ship.lock", timeout=None):
        end = _end_for_writer(storage, folder)
        _check_heads(storage, SealedEntries(opened.read(), opened.librarian), end.heads)
        journals = _take_journals(opened, storage)
        opened.read()
        snapshot = opened.snapshot()
        try:
            shipment = _Shipping(opened, storage, snapshot, end).ship(progress)
        finally:
            snapshot.close()
        if journals.names:
            _forget_journals(opened, storage, journals.names)
    return replace(shipment, journals=journals.new)


def _locate_shipped_file(folder: CollectionFolder) -> Path:
    return folder.path / "shipped.json"


def _end_for_writer(storage: Storage, folder: CollectionFolder) -> LogEnd:
    """Return the log end, verified against the writer's remembered position."""
    remembered = Position(**(read_json(_locate_shipped_file(folder)) or {}).get("position", {}))
    end = LogEnd.read(storage)
    if remembered.url != storage.url:
        remembered = Position()
    if end is None and remembered.number:
        raise log_ended(storage, remembered)
    end = end or LogEnd(Position(storage.url), {}, {})
    end.check(storage, remembered)
    return end


def _check_heads(
    storage: Storage, sealed: SealedEntries, heads: Mapping[str, Sequence[Any]]
) -> None:
    """Raise ``UsageError`` if shipped chains are not prefixes of the collection's chains."""
    for catalogue, (sequence, head) in heads.items():
        if sealed.head_at(catalogue, sequence) != head:
            raise UsageError(
                f"At {storage.url} another collection was shipped, or a copy of this one that went"
                f" on by itself: entry {sequence} of its chain is not in this one.",
                "Nothing was changed there. Two graphs can't share a place: ship to another.",
            )


@dataclass(frozen=True, slots=True)
class _Journals:
    """Journal names in the storage, and the number of ``new`` journals."""

    names: Sequence[str]
    new: int


def _take_journals(opened: OpenCollection, storage: Storage) -> _Journals:
    """Chain recordings of replicas.

    A journal with statements outside its own bundle stays in the storage and is reported."""
    store, folder = opened.read(), opened.folder
    names = sorted(filter(_names_journal, storage.names(JOURNALS)))
    new_count = 0
    for name in names:
        if is_chained(store, name) or (folder.journals / name).exists():
            continue
        data = storage.read(JOURNALS, name)
        if not _keeps_to_itself(name, data):
            opened.message(f"The journal {name} at {storage.url} is not taken in: it is forged.")
            continue
        make_folder(folder.journals)
        write_atomic(folder.journals / name, data)
        new_count += 1
    if new_count:
        opened.ledger.fold()
    return _Journals(names, new_count)


_JOURNAL = re.compile(r"[0-9a-f-]{36}(\.[a-z]+)?\.journal")
_CHANGING = frozenset((ERASURE.name, INVALIDATION.name))
"""What only the writer records, since it goes with a change."""

_SHARED = f"{v.URN}agent:", f"{v.URN}prompt:"


def _names_journal(name: str) -> bool:
    return _JOURNAL.fullmatch(name) is not None


def _keeps_to_itself(name: str, data: bytes) -> bool:
    """Tell whether a journal contains only its bundle, agents and prompts."""
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
        and not foreign_subjects(bundle.value, to_bytes(quads).splitlines(), kind.name)
        and all(q.graph_name == v.SOURCE_GRAPH for q in shared)
        and all(text_of(q.subject).startswith(_SHARED) for q in shared)
    )


def _forget_journals(opened: OpenCollection, storage: Storage, names: Iterable[str]) -> None:
    store = opened.read()
    storage.delete(JOURNALS, [name for name in names if is_chained(store, name)])


class _Shipping:
    """A shipment from a published state to a log with known ``end``."""

    def __init__(
        self, opened: OpenCollection, storage: Storage, snapshot: Snapshot, end: LogEnd
    ) -> None:
        self._librarian = opened.librarian
        self._storage = storage
        self._sealed = SealedEntries(snapshot.store, opened.librarian)
        self._vectors = snapshot.vectors
        self._generation = snapshot.pointer.generation
        self._collection = opened.folder.name
        self._path = _locate_shipped_file(opened.folder)
        self._state = read_json(self._path) or {}
        self._end = end
        self._files = 0

    def ship(self, progress: CountProgress) -> Shipment:
        storage, erasures = self._storage, len(self._sealed.erasures)
        anew = erasures != self._end.position.epoch
        if anew or self._end.clearing:
            self._restart_log(erasures)
        shipped_sequences = {
            name: sequence for name, (sequence, _) in self._shipped_heads().items()
        }
        new = self._sealed.list_entries_after(shipped_sequences)
        if new:
            heads = {catalogue_of(entry): (entry.sequence, entry.chain) for entry in new}
            if not self._append_segment(new, {**self._shipped_heads(), **heads}, progress):
                return self.ship(progress)
        elif self._state.get("position") != asdict(self._end.position):
            self._save_shipping_state()
        return Shipment(
            mask_urls(storage.url), len(new), self._files, 0, self._end.position.number, anew
        )

    def _shipped_heads(self) -> Mapping[str, Sequence[Any]]:
        """Return chain heads of the log; empty for a restarted log."""
        return self._end.heads if self._end.position.number else {}

    def _append_segment(
        self,
        new: Sequence[ChainEntry],
        heads: Mapping[str, Sequence[Any]],
        progress: CountProgress,
    ) -> bool:
        """Write a segment of entries after all referenced contents, then the head.

        Return False if the segment already exists; that segment is the new end."""
        storage, last = self._storage, self._end
        entries, needed = BytesIO(), set[str]()
        with gzip.GzipFile(fileobj=entries, mode="wb", compresslevel=6, mtime=0) as packed:
            for entry in new:
                entry_fields = self._describe_entry(entry)
                needed.update(self._needed_contents(entry_fields))
                packed.write(encode_line(entry_fields))
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
        self._save_shipping_state()
        if self._end.derived != last.derived:  # the former stay for who is reading them
            current_keys = {*self._end.derived.values(), *last.derived.values()}
            storage.delete(DERIVED, storage.names(DERIVED) - current_keys)
        return is_new

    def _save_shipping_state(self, *, under_way: bool = False) -> None:
        """Save shipping state; ``under_way`` marks interrupted shipping."""
        self._state |= {"position": asdict(self._end.position), "under_way": under_way}
        write_json(self._path, self._state)

    def _restart_log(self, epoch: int) -> None:
        """Begin the log anew: what an erasure took must stay nowhere."""
        storage = self._storage
        self._end = LogEnd(Position(storage.url, epoch=epoch), self._end.heads, {}, clearing=True)
        self._end.write(storage)
        for folder in (LOG, CONTENTS, DERIVED):
            storage.delete(folder, storage.names(folder) - {HEAD})
        self._end = replace(self._end, clearing=False)
        self._end.write(storage)

    def _needed_contents(self, told: Mapping[str, str]) -> Iterator[str]:
        """Yield content keys used by an entry, except erased contents."""
        if told["kind"] == "batch":
            yield told["content"]
        yield from filter(self._librarian.has_content, self._spoken_of(told))

    def _spoken_of(self, told: Mapping[str, str]) -> Iterator[str]:
        yield from _find_hashes(told["quads"] + told.get("bundle", ""))
        for line in self._librarian.lines(told["content"]) if told["kind"] == "batch" else ():
            if line[:1] == b"=":
                yield line[1:].decode().strip()
            elif line[:1] == b"+":
                yield from _find_hashes(line.decode())

    def _ship_contents(self, keys: Sequence[str], progress: CountProgress) -> None:
        """Ship contents missing from the storage.

        After an interruption or at the beginning many contents may exist, so that the storage
        is listed."""
        listed = not self._end.position.number or self._state.get("under_way")
        there = self._storage.names(CONTENTS) if listed else set()
        self._save_shipping_state(under_way=True)
        missing = [key for key in keys if key not in there]
        self._files += self._storage.transfer_files(missing, self._ship_content, progress)
        progress(len(missing), len(missing))

    def _ship_content(self, key: str) -> bool:
        packed = gzip.compress(self._librarian.read_content(key), 6, mtime=0)
        return self._storage.create(CONTENTS, key, packed)

    def _ship_derived(self) -> dict[str, str]:
        """Ship vectors and tables by hash and return hashes by file name.

        Files unchanged since the last shipment are not read."""
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

    def _describe_entry(self, entry: ChainEntry) -> dict[str, str]:
        entry_fields = {
            "subject": entry.subject,
            "kind": entry.kind,
            "quads": format_nquads(entry.quads),
        }
        key = self._sealed.content_hash(entry.subject, entry.hash)
        if entry.kind == "batch":
            return {**entry_fields, "content": key}
        return {
            **entry_fields,
            "content": key,
            "bundle": format_nquads(self._sealed.read_added_quads(entry)),
        }


def _find_hashes(text: str) -> list[str]:
    """Return possible content hashes in a text."""
    return _HASH.findall(text)
