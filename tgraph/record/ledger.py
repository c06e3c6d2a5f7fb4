"""The ledger: how finished journals and staged changes enter the store, sealed and chained."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import count
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.record.activities import state_dropped
from tgraph.record.bundle import SESSION, BundleKind, kind_of_journal
from tgraph.record.chain import Chain, Head, canonical_hash, read_head
from tgraph.record.erasure.commit import PreparedErasure
from tgraph.record.signing import (
    SigningKey,
    is_signed,
    key_quads,
    load_signing_key,
    signature_quads,
)
from tgraph.store.base import Store, match_record
from tgraph.store.files import disk_errors, sweep_files
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import Frame, JournalContent, is_free, read_journal
from tgraph.store.oxigraph import BULK, OxigraphStore
from tgraph.store.snapshot import must_be_mended, publish_snapshot
from tgraph.store.statements import Statements, build_statements, iri_node, read_trig, to_bytes
from tgraph.store.writer import (
    adopt_change,
    apply_change,
    committed_changes,
    discard_change,
    open_writable_store,
    remove_abandoned,
)

AT_ONCE = 500
"""Journals folded before the result is published and they are deleted."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of a fold: sessions sealed, unfinished sessions among them, staged batches
    applied, damaged journals."""

    sessions: int
    aborted: int
    batches: int
    damaged: int = 0

    def plus(self, session: bool, aborted: bool, damaged: bool) -> Folded:
        sessions, damages = self.sessions + session, self.damaged + damaged
        return Folded(sessions, self.aborted + aborted, self.batches, damages)


class Ledger:
    """A collection's writer: folds waiting journals and batches, then publishes the result.

    Given a ``signing_key`` file, read when first needed, the ledger signs the chain's head
    before publishing."""

    def __init__(
        self,
        folder: CollectionFolder,
        catalogue: str,
        clock: Callable[[], datetime],
        signing_key: Path | None = None,
    ) -> None:
        self.folder = folder
        self.librarian = Librarian(folder.librarian)
        self._catalogue = catalogue
        self._clock = clock
        self._key_file = signing_key
        self._key: SigningKey | None = None

    def check_key(self) -> None:
        """Raise ``UsageError`` if the record must be signed and the key can't be read."""
        if self._key_file is not None and self._key is None:
            self._key = load_signing_key(self._key_file)

    def waiting(self) -> bool:
        """Return whether journals or batches wait for folding, or published state needs
        mending."""
        if committed_changes(self.folder) or must_be_mended(self.folder):
            return True
        return self.is_erasing() or any(map(is_free, self._list_journals()))

    def is_erasing(self) -> bool:
        """Return whether a committed erasure awaits execution."""
        return PreparedErasure(self.folder).is_committed()

    def fold(
        self, *, timeout: float | None = None, waiting: Callable[[], None] = lambda: None
    ) -> Folded:
        """Bring staged changes and finished journals into the store and publish it."""
        with self.open(timeout=timeout, waiting=waiting) as (_, folded):
            return folded

    @contextmanager
    def open(
        self, *, timeout: float | None = None, waiting: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[OxigraphStore, Folded]]:
        """Yield the store opened for writing, with all waiting content already folded and
        published.

        Wait up to ``timeout`` seconds for another writer, then raise ``StoreError``."""
        erasing = PreparedErasure(self.folder)

        def swap() -> None:
            if erasing.is_committed():
                erasing.swap()
            else:
                adopt_change(self.folder)

        with open_writable_store(
            self.folder, timeout=timeout, waiting=waiting, before=swap
        ) as store:
            with disk_errors():
                if erasing.is_committed():  # the rest of it; one that was not is forgotten
                    if not erasing.is_published():
                        self.publish(store)
                    erasing.clear()
                if erasing.is_left():
                    erasing.end()
                folded = self._bring_in(store)
            yield store, folded

    def _bring_in(self, store: OxigraphStore) -> Folded:
        self._remove_leftovers()
        changes = committed_changes(self.folder)
        for change in changes:
            self._apply_change(store, change)
        if changes or must_be_mended(self.folder):
            self.publish(store)
        for change in changes:
            discard_change(change)
        folded = Folded(0, 0, len(changes))
        journals = [path for path in self._list_journals() if is_free(path)]
        for start in range(0, len(journals), AT_ONCE):
            folded = self._fold_journals(store, journals[start : start + AT_ONCE], folded)
        return folded

    def generation(self, store: Store) -> int:
        """Return the knowledge generation: the number of knowledge changes so far."""
        newest = 0
        for batch in match_record(store, None, v.RDF_TYPE, v.tg("Batch")):
            for quad in store.match(batch.subject, v.tg("generation"), None, batch.graph_name):
                assert isinstance(quad.object, Literal)
                newest = max(newest, int(quad.object.value))
        return newest

    def publish(self, store: OxigraphStore) -> None:
        """Publish the store's current state to readers, with the vectors from the collection's
        folder."""
        self._sign_head(store, self._catalogue)
        store.flush()
        generation, head = self.state(store)
        publish_snapshot(self.folder, store, generation, head.sequence, head.hash)

    def state(self, store: Store) -> tuple[int, Head]:
        """Return the knowledge generation and the chain head."""
        return self.generation(store), read_head(store, NamedNode(self._catalogue))

    def _sign_head(self, store: OxigraphStore, catalogue: str) -> None:
        """Append a signature over the chain's head, if a key is configured."""
        if self._key_file is None or self.folder.replica.exists():
            return
        chain = Chain(store, catalogue, self._clock)
        if is_signed(store, chain):
            return
        self.check_key()
        assert self._key is not None
        agent = store.missing(key_quads(self._key.public))
        quads = agent + (self._shared_batch(chain, agent) if agent else [])
        store.extend(quads + signature_quads(chain, self._key))

    def _list_journals(self) -> list[Path]:
        """Return journals, oldest first; another writer may be folding and deleting journals
        meanwhile.

        A replica's journals wait for the writer of the followed collection."""
        entries: list[tuple[int, str, Path]] = []
        if self.folder.replica.exists():
            return []
        for path in self.folder.journals.glob("*.journal"):
            with suppress(FileNotFoundError):
                entries.append((path.stat().st_mtime_ns, path.name, path))
        return [path for _, _, path in sorted(entries)]

    def _remove_leftovers(self) -> None:
        """Delete files left behind by dead processes, no longer needed by anybody."""
        folder = self.folder
        caches = folder.cache.glob("*/")
        count = sum(map(sweep_files, (folder.path, folder.journals, folder.vectors, *caches)))
        count += self.librarian.sweep()
        remove_abandoned(folder)
        if count:
            log.info("Deleted %d temporary files of processes that died.", count)

    # --- staged changes ---

    def _apply_change(self, store: OxigraphStore, change: Path) -> None:
        commit = json.loads((change / "commit.json").read_bytes())
        apply_change(store, change)
        chain = Chain(store, commit["catalogue"], self._clock)
        if not chain.has_entry(commit["batch"]):
            store.extend(
                chain.entry(
                    commit["batch"],
                    "batch",
                    commit["hash"],
                    (v.tg("contentHash"), commit["hash"]),
                    (v.tg("generation"), self.generation(store) + 1),
                    (v.tg("run"), iri_node(commit["run"])),
                )
            )
        new, current = change / "vectors", self.folder.vectors
        if new.is_dir():  # readers hold links to the old files
            if current.exists():
                shutil.rmtree(current)
            new.rename(current)

    # --- journals ---

    def _fold_journals(
        self, store: OxigraphStore, journals: Sequence[Path], folded: Folded
    ) -> Folded:
        """Seal the journals' sessions, publish the sessions, and only afterwards delete the
        journals."""
        chains: dict[str, Chain] = {}
        damaged = []
        for path in journals:
            content = read_journal(path)
            try:
                status = self._fold_bundle(store, chains, *kind_of_journal(path), content)
            except (ValueError, KeyError, TypeError, SyntaxError) as error:
                log.warning("The journal %s can't be read: %s.", path, error)
                status, content = "", JournalContent((), 1)
            if content.damaged:
                damaged.append(path)
            folded = folded.plus(bool(status), status == "aborted", bool(content.damaged))
        for catalogue in chains.keys() - {self._catalogue}:
            self._sign_head(store, catalogue)
        self.publish(store)
        for path in journals:
            if path in damaged:  # kept for whoever wants to look into it; it is not read again
                damaged_path = path.with_suffix(".damaged")
                log.warning("The journal of a session was damaged; it is kept as %s.", damaged_path)
                path.replace(damaged_path)
            else:
                path.unlink(missing_ok=True)
        return folded

    def _fold_bundle(
        self,
        store: OxigraphStore,
        chains: dict[str, Chain],
        kind: BundleKind,
        uuid: str,
        content: JournalContent,
    ) -> str:
        """Seal a bundle; return "" without content to seal, otherwise ``ended`` or ``aborted``."""
        if not content.frames:
            return ""
        head = content.frames[0]
        if head.get("type") != kind.name:
            head = {  # what the lost first frame must have said
                "subject": kind.subject_iri(uuid),
                "bundle": v.bundle_iri(uuid),
                "catalogue": self._catalogue,
                "started": content.frames[0]["time"],
            }
        catalogue = head["catalogue"]
        if catalogue not in chains:
            chains[catalogue] = Chain(store, catalogue, self._clock)
        if chains[catalogue].has_entry(head["bundle"]):
            return ""
        before = chains[catalogue].mark()
        try:
            bundle, sealing = self._seal_bundle(store, chains[catalogue], kind, head, content)
            if len(bundle) >= BULK:  # a part that a crash leaves is filled up from the journal
                store.fill(bundle)
            else:
                sealing = bundle + sealing
            store.extend(sealing)
        except BaseException:
            chains[catalogue].back_to(before)
            raise
        return "ended" if _has_end_frame(content.frames) else "aborted"

    def _seal_bundle(
        self,
        store: OxigraphStore,
        chain: Chain,
        kind: BundleKind,
        head: Frame,
        content: JournalContent,
    ) -> tuple[list[Quad], list[Quad]]:
        """Return the bundle's quads, and quads of the chain entry and of shared descriptions."""
        frames = content.frames
        for frame in frames:
            for text in frame.get("texts", {}).values():
                self.librarian.put_text(text)
        bundle = [quad for frame in frames for quad in read_trig(frame.get("quads", ""))]
        if not _has_end_frame(frames):
            bundle += _abortion_quads(kind, head, frames[-1])
        if content.damaged:
            bundle += _journal_damage_quads(kind, head, frames[0], content.damaged)
        quad_groups = (parse(frame.get("shared", ""), RdfFormat.N_QUADS) for frame in frames)
        shared = store.missing(quad for quads in quad_groups for quad in quads)
        sealing = shared + self._shared_batch(chain, shared) if shared else []
        started = datetime.fromisoformat(head["started"])
        return bundle, sealing + chain.entry(
            head["bundle"],
            kind.name,
            canonical_hash(bundle),
            (kind.subject_property, iri_node(head["subject"])),
            (v.tg("sessionStarted"), started if kind is SESSION else None),
            (v.tg("quadCount"), len(set(bundle))),
        )

    def _shared_batch(self, chain: Chain, shared: list[Quad]) -> list[Quad]:
        """Return quads of a small separate batch describing agents and prompts named for the
        first time."""
        lines = sorted(set(to_bytes(shared).splitlines(keepends=True)))
        for times in count():  # what was taken away since is named again by another text
            data = b"".join(batch_lines(lines, lines * times, []))
            batch = f"{v.URN}batch:{sha256(data).hexdigest()}"
            if not chain.has_entry(batch):
                break
        key = self.librarian.store_content(data)
        return chain.entry(batch, "batch", key, (v.tg("contentHash"), key))


def batch_lines(
    added: Iterable[bytes], removed: Iterable[bytes], content: Iterable[str]
) -> Iterator[bytes]:
    """Yield the text sealing a change: sorted N-Quads lines prefixed ``+`` or ``-``, then
    hashes of added contents prefixed ``=``."""
    yield from map(b"+".__add__, added)
    yield from map(b"-".__add__, removed)
    yield from (f"={key}\n".encode() for key in content)


def _has_end_frame(frames: Sequence[Frame]) -> bool:
    return any(frame["type"] == "end" for frame in frames)


def _abortion_quads(kind: BundleKind, head: Frame, last: Frame) -> list[Quad]:
    """Return quads about a bundle whose process died; the end time is the last recorded time."""
    times = [datetime.fromisoformat(text) for text in (head["started"], last.get("time")) if text]
    return build_statements(
        NamedNode(head["bundle"]),
        head["subject"],
        (v.prov("endedAtTime"), max(times)),  # a clock may have been put back
        (v.tg("status"), "aborted"),
        (v.tg("error"), f"The process ended before the {kind.name} did."),
    )


def _journal_damage_quads(kind: BundleKind, head: Frame, first: Frame, count: int) -> list[Quad]:
    """Return quads about a bundle whose journal was damaged on disk."""
    out = Statements(NamedNode(head["bundle"]))
    state_dropped(out, head["subject"], {"damaged part of the journal": count})
    if first is not head:  # the statement that there was one is what was lost
        started = datetime.fromisoformat(head["started"])
        out.add(head["subject"], (v.RDF_TYPE, [v.prov("Activity"), kind.subject_class]))
        out.add(head["subject"], (v.prov("startedAtTime"), started))
    return out.quads
