"""The replica: it follows the log of a writer, carries out each sealed entry, and hands over the
journals of its own sessions. ``replica_log`` has the format of the log."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import CountProgress
from tgraph.errors import EndpointError, UsageError, VerificationError
from tgraph.explain.integrity.entries import ChainEntry, entry_from_quads
from tgraph.explain.integrity.erasures import Rewritings
from tgraph.explain.integrity.sealed_entries import (
    ADDED,
    REMOVED,
    SealedEntries,
    batch_lines,
    quads_of_lines,
)
from tgraph.extensions.operations.derived_renewal import renew_derived
from tgraph.extensions.operations.replica_log import (
    LogEnd,
    LogSegment,
    Position,
    Shipment,
    digest,
    is_chained,
    is_replica,
    log_ended,
    read_segments,
    segment_name,
)
from tgraph.extensions.operations.replica_storage import (
    AGAIN,
    CONTENTS,
    DERIVED,
    JOURNALS,
    LOG,
    Storage,
)
from tgraph.extensions.operations.replica_trust import (
    KnownChains,
    check_explained,
    examine_log,
    must_be_examined,
)
from tgraph.masking import mask_urls
from tgraph.record.boundary import foreign_subjects
from tgraph.record.chain import Head, canonical_hash, chain_hash, read_head
from tgraph.record.signing import KIND
from tgraph.store.base import text_of
from tgraph.store.files import disk_errors, hold_lock, make_folder, read_json, write_json
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import is_free
from tgraph.store.oxigraph import BULK, OxigraphStore
from tgraph.store.snapshot import remove_unpinned
from tgraph.store.statements import read_nquads, to_bytes


def position_of(folder: CollectionFolder) -> Position:
    """Return the replica position, or the starting position for an ordinary collection."""
    return Position(**(read_json(folder.replica) or {}).get("position", {}))


def follow_log(opened: OpenCollection, url: str, progress: CountProgress) -> Shipment:
    """Update a replica or empty collection from the log at the URL, and hand over local
    recordings.

    Every segment, entry, bundle and content is checked before readers see it. Raise
    ``VerificationError`` if anything differs from its seal, is missing, or is out of order;
    ``EndpointError`` if nothing is shipped yet."""
    storage, folder = Storage(url), opened.folder
    if not is_replica(folder) and folder.pointer.exists():
        raise UsageError("There is a graph already that follows no other.", "Name another folder.")
    with hold_lock(folder.path / "ship.lock", timeout=None):
        end = _end_for_reader(storage, position_of(folder))
        while True:
            try:
                return _Following(opened, storage).follow(end, progress)
            except VerificationError:  # unless it is shipped anew, or vectors were, in this moment
                before, end = end, _end_for_reader(storage, position_of(folder))
                if before == end:
                    raise


def _end_for_reader(storage: Storage, known: Position) -> LogEnd:
    """Return the log end, verified against the replica position.

    The log may have moved to another URL, but must be the same log."""
    end = LogEnd.read(storage)
    if known.url not in ("", storage.url) and Storage(known.url).url != storage.url:
        segment = storage.find(LOG, segment_name(known.number)) or b""
        if not end or end.position.epoch != known.epoch or digest(segment) != known.hash:
            raise UsageError(
                f"This is a replica of {known.url}, and the log at {storage.url} is another.",
                "Follow that, or name another folder.",
            )
    if end is None and known.number:
        raise log_ended(storage, known)
    if end is None:
        raise EndpointError(f"Nothing has been shipped to {storage.url}.", "Run `tgraph ship`.")
    end.check(storage, known)
    return end


class _Following:
    """A replica update round."""

    def __init__(self, opened: OpenCollection, storage: Storage) -> None:
        self._opened = opened
        self._folder = opened.folder
        self._librarian = opened.librarian
        self._storage = storage
        self._state = read_json(opened.folder.replica) or {}
        self._entries = self._files = 0
        self._erased = False
        self._changed: dict[str, tuple[str, str]] = {}

    def follow(self, end: LogEnd, progress: CountProgress) -> Shipment:
        storage, folder, last = self._storage, self._folder, end.position
        position = replace(position_of(folder), url=storage.url)
        known = self._known_chains()
        anew = last.epoch > position.epoch
        begin = Position(storage.url, epoch=last.epoch) if anew else position
        if must_be_examined(known, position, end):
            examine_log(storage, known, begin, end)
        self._state["known"] = known.state
        if anew:
            write_json(folder.replica, self._state)  # known also after an interruption
            self._clear_replica()
            position = begin
        if position.number < last.number:
            self._save_position(position)
            with self._opened.ledger.open() as (store, _):
                for reached, segment in read_segments(storage, position, last):
                    progress(reached.number - 1, last.number)
                    self._carry_out(store, segment)
                    derived = segment.header["derived"]
                self._check_changed(store)
                if self._put_derived(derived):
                    renew_derived(self._opened, store)
                self._state["known"] = known.advance(
                    KnownChains.from_store(store, self._librarian)
                ).state
                self._opened.ledger.publish(store)
            progress(last.number, last.number)
        self._save_position(last)
        self._delete_chained_journals()
        handed = self._hand_over()
        return Shipment(
            mask_urls(storage.url), self._entries, self._files, handed, last.number, anew
        )

    def _known_chains(self) -> KnownChains:
        """Return what is known of the chains; a replica of an earlier tgraph did not write it."""
        if "known" in self._state:
            return KnownChains.from_state(self._state["known"])
        if not self._folder.pointer.exists():
            return KnownChains({}, {})
        return KnownChains.from_store(self._opened.read(), self._librarian)

    def _check_changed(self, store: OxigraphStore) -> None:
        """Compare contents that differ from their seals with the erasures on record."""
        if self._changed:
            erasures = SealedEntries(store, self._librarian).erasures
            check_explained(self._changed, Rewritings(store, erasures), self._storage)

    def _save_position(self, position: Position) -> None:
        if self._state.get("position") != asdict(position):
            self._state["position"] = asdict(position)
            write_json(self._folder.replica, self._state)

    def _clear_replica(self) -> None:
        """Delete replica data and begin anew, so that no erased content remains: a store keeps
        deleted data in its files for a while.

        Nothing is published here until the end."""
        folder = self._folder
        with hold_lock(folder.write_lock, timeout=None), disk_errors():
            folder.pointer.unlink(missing_ok=True)
            remove_unpinned(folder)
            for path in (folder.store, folder.vectors, self._librarian.folder):
                shutil.rmtree(path, ignore_errors=True)

    def _carry_out(self, store: OxigraphStore, segment: LogSegment) -> None:
        self._erased = segment.header["epoch"] > 0
        heads: dict[str, Head] = {}
        self._fetch_missing(segment.header["contents"])
        for entry_fields in segment.entries:
            quads = read_nquads(entry_fields["quads"])
            entry = entry_from_quads(text_of(quads[0].subject), quads)
            catalogue = text_of(quads[0].graph_name)
            if not entry.sequence:
                raise self._entry_error(entry_fields, "says something else than was sealed")
            head = heads.get(catalogue) or read_head(store, NamedNode(catalogue))
            if entry.sequence <= head.sequence:
                continue  # it was carried out before an interruption
            place = catalogue, entry.subject
            if any((text_of(quad.graph_name), text_of(quad.subject)) != place for quad in quads):
                raise self._entry_error(entry_fields, "speaks of something else too")
            if (entry.sequence, entry.previous) != (head.sequence + 1, head.hash):
                raise self._entry_error(entry_fields, "does not follow the entry before it")
            if chain_hash(quads) != entry.chain:
                raise self._entry_error(entry_fields, "says something else than was sealed")
            store.extend([*self._apply_entry(store, entry_fields, entry), *quads])
            heads[catalogue] = Head(entry.sequence, entry.chain)
            self._entries += 1

    def _apply_entry(
        self, store: OxigraphStore, told: Mapping[str, str], entry: ChainEntry
    ) -> list[Quad]:
        """Apply a batch, or return sealed bundle quads, after verification against the chain
        entry."""
        if told["content"] != entry.hash:
            if not self._erased:
                raise self._entry_error(told, "is another one than was sealed")
            self._changed[entry.subject] = entry.hash, told["content"]
        if entry.kind == "batch":
            self._carry_out_batch(store, told)
            return []
        bundle = read_nquads(told.get("bundle", ""))
        if any(text_of(quad.graph_name) != entry.subject for quad in bundle):
            raise self._entry_error(told, "has quads of another graph")
        if entry.kind == KIND and not bundle:
            return []
        if canonical_hash(bundle) != told["content"]:
            raise self._entry_error(told, "has other quads than were sealed")
        if foreign_subjects(entry.subject, to_bytes(bundle).splitlines(), entry.kind):
            raise self._entry_error(told, "speaks of what is not its own")
        return bundle

    def _carry_out_batch(self, store: OxigraphStore, told: Mapping[str, str]) -> None:
        store.remove(self._unsealed_quads(told, REMOVED))
        added = self._unsealed_quads(told, ADDED)
        while block := list(islice(added, BULK)):
            store.extend(block)

    def _unsealed_quads(self, told: Mapping[str, str], sign: bytes) -> Iterator[Quad]:
        """Yield quads of a batch, which changes no bundle and no catalogue."""
        for quad in quads_of_lines(batch_lines(self._librarian, told["content"], sign)):
            if v.is_sealed_graph(quad.graph_name):
                raise self._entry_error(told, "changes the sealed record of sessions")
            yield quad

    def _fetch_missing(self, keys: Iterable[str]) -> None:
        """Fetch contents missing locally."""
        missing = [key for key in dict.fromkeys(keys) if not self._librarian.has_content(key)]
        self._files += self._storage.transfer_files(missing, self._fetch_content)

    def _fetch_content(self, key: str) -> bool:
        self._librarian.store_content(
            self._storage.read_packed(CONTENTS, key, f"The content {key}")
        )
        return True

    def _put_derived(self, wanted: Mapping[str, str]) -> bool:
        """Replace vectors and tables with files of the newest generation, and return whether they
        were others; current readers keep the old files."""
        here = self._folder.vectors
        if self._state.get("derived") == wanted and here.is_dir():
            return False
        fresh = self._folder.path / "vectors.new"
        shutil.rmtree(fresh, ignore_errors=True)
        with disk_errors():
            make_folder(fresh)
            put = partial(self._put_file, fresh, wanted)
            self._files += self._storage.transfer_files(sorted(wanted), put)
            if here.exists():
                shutil.rmtree(here)
            fresh.rename(here)
        self._state["derived"] = dict(wanted)
        return True

    def _put_file(self, folder: Path, wanted: Mapping[str, str], name: str) -> bool:
        """Write a derived file from its local copy or from storage. Return True if fetched."""
        if Path(name).name != name:
            raise VerificationError(f"{name!r} is no name of a file.", AGAIN)
        here = self._folder.vectors / name
        data = here.read_bytes() if here.exists() else b""
        fetched = sha256(data).hexdigest() != wanted[name]
        if fetched:
            data = self._storage.read_packed(DERIVED, wanted[name], f"The file {name}")
        (folder / name).write_bytes(data)
        return fetched

    def _entry_error(self, told: Mapping[str, str], what: str) -> VerificationError:
        return VerificationError(
            f"{told['subject']} in the log at {self._storage.url} {what}.", AGAIN
        )

    # --- what was recorded here ---

    def _hand_over(self) -> int:
        """Hand over journals of ended recordings to the writer and return the number of new
        journals."""
        ended = [path for path in self._folder.journals.glob("*.journal") if is_free(path)]
        there = self._storage.names(JOURNALS) if ended else set()
        new = sorted(path for path in ended if path.name not in there)
        for path in new:
            self._storage.write(JOURNALS, path.name, path.read_bytes())
        return len(new)

    def _delete_chained_journals(self) -> None:
        """Delete local journals already included in the chain."""
        journals = sorted(self._folder.journals.glob("*.journal"))
        if journals and self._folder.pointer.exists():
            store = self._opened.read()
            for path in journals:
                if is_chained(store, path.name):
                    path.unlink(missing_ok=True)
