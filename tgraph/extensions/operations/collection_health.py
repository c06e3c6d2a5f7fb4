"""Health of a collection: ``doctor`` examines files, ``doctor --repair`` rebuilds damaged derived
data from source data and reports damaged source data.

Store and snapshot are copies of each other: all store content was published before deletion of
its journal or staged change. Each is rebuilt from the other; a file damaged in both is lost.
Librarian contents have no second copy."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from tgraph.engine.checks import PATIENCE, HealthFinding
from tgraph.engine.components import Components
from tgraph.engine.index.saved_tables import keep_catalogue, tables_of
from tgraph.engine.index.stale_readings import find_stale_readings
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnProgress, Progress
from tgraph.errors import DamagedStoreError, StoreError, TgraphError
from tgraph.explain.trace.documents import list_documents
from tgraph.extensions.operations.derived_renewal import renew_reports
from tgraph.index.catalogue_table import load_catalogue
from tgraph.index.lookup_table import load_table
from tgraph.index.reports.report_table import load_reports
from tgraph.index.vectors.base import VectorIndex
from tgraph.index.vectors.items import KINDS, items_of
from tgraph.models.reply_cache import CacheFolder
from tgraph.rendering import format_count
from tgraph.settings import Settings
from tgraph.store.base import Store
from tgraph.store.files import disk_errors, hold_lock, sync_folder
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import is_free
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Snapshot, check_store, must_be_mended, published_checkpoint
from tgraph.store.sums import check_files, damaged_files, sums_of

_NAMED = 5
AGAIN = "Restore a backup (`tgraph restore FILE --root NEW`)"


def examine_collection(folder: CollectionFolder, settings: Settings) -> Iterator[HealthFinding]:
    """Yield findings about journals, snapshot, store and vectors; nothing is written."""
    yield _examine_journals(folder)
    try:
        snapshot = Snapshot.open(folder)
    except TgraphError as error:
        yield HealthFinding.of_error("snapshot", error)
        return
    if snapshot is None:
        yield HealthFinding(
            "note", "snapshot", "nothing has been published", "Run `tgraph index PATH...`."
        )
        return
    with closing(snapshot):
        pointer = snapshot.pointer
        text = f"number {pointer.snapshot}, generation {pointer.generation}"
        text += f", {pointer.sequence} entries in the chain"
        try:
            check_files(snapshot.path / "store")
            check_store(folder)
            yield HealthFinding("ok", "snapshot", text)
        except DamagedStoreError as error:
            yield HealthFinding.of_error("store", error)
        yield from _examine_vectors(snapshot, folder, settings)
        yield from _examine_readings(snapshot.store)


def _examine_readings(store: Store) -> Iterator[HealthFinding]:
    """Yield findings about documents of which something may be missing, and about documents that
    would be read otherwise today."""
    standing = {d.document: d for d in list_documents(store) if d.standing}.values()
    doubtful = [document.path for document in standing if document.warnings]
    if doubtful:
        text = f"{_name_paths(doubtful)}: the text may lack something"
        yield HealthFinding("note", "reading", text, "`tgraph documents show PATH` says what.")
    if stale := [reading.path for reading in find_stale_readings(store)]:
        text = f"{_name_paths(stale)}: an earlier version of tgraph read the text otherwise"
        yield HealthFinding("note", "reading", text, "Run `tgraph index --reread`.")
    if not doubtful and not stale:
        yield HealthFinding("ok", "reading", format_count(len(standing), "document"))


def _name_paths(paths: Sequence[str]) -> str:
    rest = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def _examine_journals(folder: CollectionFolder) -> HealthFinding:
    if damaged := _damaged_journals(folder):
        paths = ", ".join(map(str, damaged))
        return HealthFinding("note", "journals", f"damaged and kept for inspection: {paths}")
    journals = sorted(folder.journals.glob("*.journal")) if folder.journals.is_dir() else []
    free = [path for path in journals if is_free(path)]
    if not journals:
        return HealthFinding("ok", "journals", "none waiting")
    text = f"{len(free)} finished and waiting, {len(journals) - len(free)} in use"
    return HealthFinding("note", "journals", f"{text}; the next command takes them in")


def _damaged_journals(folder: CollectionFolder) -> list[Path]:
    return sorted(folder.journals.glob("*.damaged"))


def _examine_vectors(
    snapshot: Snapshot, folder: CollectionFolder, settings: Settings
) -> Iterator[HealthFinding]:
    try:
        parts = Components(settings, folder.cache)
        embedder, vector_store = parts.embedder, parts.vector_store
        agent, dimension = embedder.agent, embedder.dimension
    except TgraphError as error:
        yield HealthFinding.of_error("vectors", error)
        return
    generation = snapshot.pointer.generation
    for kind in KINDS:
        try:
            vectors = vector_store.open_vectors(
                snapshot.vectors, kind, generation=generation, agent=agent, dimension=dimension
            )
        except TgraphError as error:
            remedy = "They will be made anew."
            yield HealthFinding("note", f"{kind} vectors", error.message, remedy)
        else:
            yield HealthFinding("ok", f"{kind} vectors", f"{len(vectors):,} of {agent.name}")


# --- repair ---


def repair_collection(opened: OpenCollection, progress: OnProgress) -> Iterator[HealthFinding]:
    """Repair damaged collection data and yield findings in working order.

    A finding has status ``mended``, or ``bad`` for damaged source data. Raise ``StoreError`` if
    a writer holds the lock too long."""
    folder = opened.folder
    store_finding = _mend_store(folder)
    yield store_finding
    yield from _report_damaged_journals(folder)
    yield from _report_damaged_contents(opened)
    if store_finding.status == "bad":
        return
    yield _mend_snapshot(opened)
    yield from _mend_derived(opened, progress)
    yield _mend_caches(folder)


# --- store and snapshot ---


def _mend_store(folder: CollectionFolder) -> HealthFinding:
    with hold_lock(folder.write_lock, timeout=PATIENCE):
        damage = _damage_of(folder)
        if damage is None:
            return HealthFinding("ok", "store", "every file is whole")
        checkpoint = published_checkpoint(folder)
        if checkpoint is None or not _is_whole(checkpoint):
            return HealthFinding(
                "bad",
                "store",
                f"{damage.path} is damaged, and holds what is nowhere else",
                f"{AGAIN}, or index the documents into a new folder: then the record of sessions is"
                " lost.",
            )
        _copy_store(checkpoint, folder)
    detail = f"{damage.path} was damaged; the store was made anew of the published snapshot"
    return HealthFinding("mended", "store", detail)


def _damage_of(folder: CollectionFolder) -> DamagedStoreError | None:
    try:
        if not (folder.store / "CURRENT").exists():
            raise DamagedStoreError(folder.store / "CURRENT")
        check_store(folder)
        OxigraphStore.open(folder.store).close()
    except DamagedStoreError as error:
        return error
    return None


def _is_whole(checkpoint: Path) -> bool:
    return bool(sums_of(checkpoint)) and not any(damaged_files(checkpoint))


def _copy_store(checkpoint: Path, folder: CollectionFolder) -> None:
    """Replace the store with a checkpoint copy; a crash leaves either copy intact."""
    new = folder.path / "store.new"
    with disk_errors():
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(checkpoint, new)
        os.sync()
        shutil.rmtree(folder.store, ignore_errors=True)
        new.rename(folder.store)
        sync_folder(folder.path)


def _mend_snapshot(opened: OpenCollection) -> HealthFinding:
    """Publish the store again if published files are damaged."""
    folder = opened.folder
    damaged = must_be_mended(folder)
    checkpoint = published_checkpoint(folder)
    files = [path.name for path in damaged_files(checkpoint)] if checkpoint else []
    with opened.ledger.open(timeout=PATIENCE) as (store, _):
        if files and not damaged:
            opened.ledger.publish(store)
    if not damaged and not files:
        return HealthFinding("ok", "snapshot", "every file is whole")
    damage = ", ".join(files) or "the pointer"
    return HealthFinding(
        "mended", "snapshot", f"{damage} was damaged; the store is published again"
    )


# --- truth that is nowhere else ---


def _report_damaged_journals(folder: CollectionFolder) -> Iterator[HealthFinding]:
    for path in _damaged_journals(folder):
        detail = f"{path} is damaged; what could be read of it is on record, the rest is lost"
        yield HealthFinding("note", "journal", detail)


def _report_damaged_contents(opened: OpenCollection) -> Iterator[HealthFinding]:
    count = 0
    for key, path in opened.librarian.find_damaged():
        count += 1
        yield HealthFinding(
            "bad",
            f"content {key[:12]}",
            f"{path} is damaged",
            "Put it back from a backup; if it is of a document (its bytes or its text), indexing"
            f" that again does as well. {AGAIN} for what else it may be.",
        )
    if not count:
        yield HealthFinding("ok", "contents", "each is what its hash says")


# --- what is derived of the published knowledge ---


def _mend_derived(opened: OpenCollection, progress: OnProgress) -> Iterator[HealthFinding]:
    with opened.ledger.open(timeout=PATIENCE) as (store, _):
        generation = opened.ledger.generation(store)
        if not generation:
            return
        findings = [
            *_mend_vectors(opened, store, generation, progress),
            *_mend_tables(opened, store, generation),
        ]
        if any(finding.status == "mended" for finding in findings):
            opened.ledger.publish(store)
    yield from findings


def _mend_vectors(
    opened: OpenCollection, store: OxigraphStore, generation: int, progress: OnProgress
) -> Iterator[HealthFinding]:
    folder = opened.folder.vectors
    try:
        embedder = opened.parts.embedder
        agent = embedder.agent
    except TgraphError as error:
        yield HealthFinding.of_error("vectors", error)
        return
    for kind in KINDS:
        try:
            vectors = opened.parts.vector_store.open_vectors(
                folder, kind, generation=generation, agent=agent
            )
            yield HealthFinding("ok", f"{kind} vectors", f"{len(vectors):,}")
        except StoreError as error:
            embedding_progress = partial(_report_embedding, progress, kind)
            items = items_of(kind, store, opened.librarian)
            vectors = opened.parts.vector_store.build_vectors(
                kind, items, embedder, progress=embedding_progress
            )
            vectors.save(folder, generation)
            detail = f"{error.message} {len(vectors):,} were made anew"
            yield HealthFinding("mended", f"{kind} vectors", detail)


def _report_embedding(progress: OnProgress, kind: str, done: int, total: int) -> None:
    progress(Progress("Embedding", done, total, detail=kind))


class _ClosableTable(Protocol):
    def close(self) -> None: ...


def _mend_table(
    title: str, table: _ClosableTable | None, renew: Callable[[], None]
) -> HealthFinding:
    """Return whether a saved table was whole; one that couldn't be loaded is made anew."""
    if table is not None:
        table.close()
        return HealthFinding("ok", title, "whole")
    renew()
    return HealthFinding("mended", title, "made anew of the store")


def _mend_tables(
    opened: OpenCollection, store: OxigraphStore, generation: int
) -> Iterator[HealthFinding]:
    folder = opened.folder.vectors
    yield _mend_table(
        "look-ups",
        load_table(folder, generation),
        lambda: _renew_lookups(opened, store, generation),
    )
    yield _mend_table(
        "reports at hand",
        load_reports(folder, generation),
        lambda: renew_reports(opened, store, generation),
    )
    yield _mend_table(
        "catalogue",
        load_catalogue(folder, generation),
        lambda: keep_catalogue(store, folder, generation),
    )


def _renew_lookups(opened: OpenCollection, store: OxigraphStore, generation: int) -> None:
    folder = opened.folder.vectors
    vectors: dict[str, VectorIndex] = {}
    with suppress(StoreError):
        vectors = {
            kind: opened.parts.vector_store.open_vectors(folder, kind, generation=generation)
            for kind in KINDS
        }
    with closing(tables_of(store, opened.librarian, vectors)) as table:
        table.save(folder, generation)


# --- caches ---


def _mend_caches(folder: CollectionFolder) -> HealthFinding:
    """Delete damaged entries, which count as absent anyway."""
    damaged = [path for cache in folder.cache.glob("*/") for path in _damaged_entries(cache)]
    for path in damaged:
        path.unlink(missing_ok=True)
    if not damaged:
        return HealthFinding("ok", "caches", "every entry is whole")
    return HealthFinding("mended", "caches", f"{len(damaged):,} damaged entries deleted")


def _damaged_entries(cache: Path) -> Iterator[Path]:
    entries = CacheFolder(cache)
    for path in sorted(cache.glob("??/*")):
        with suppress(OSError, EOFError, zlib.error, KeyError):
            if path.suffix == ".gz":
                gzip.decompress(path.read_bytes())
            else:
                _ = entries[path.name]
            continue
        yield path
