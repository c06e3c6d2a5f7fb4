"""The integrity check of a collection."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tgraph.engine.checks import PATIENCE
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import StoreError, UsageError
from tgraph.explain.audit.named_audits import INTEGRITY, AuditResult
from tgraph.explain.integrity.check import Integrity, check_integrity
from tgraph.librarian import Librarian
from tgraph.record.chain import Head
from tgraph.record.signing import PublicKey, load_public_key
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Snapshot, must_be_mended
from tgraph.store.writer import open_writable_store


def check_integrity_of(
    opened: OpenCollection, saved: str | None, public_key: str | Path | None = None
) -> Integrity:
    """Check the integrity of the record; see ``KnowledgeGraph.integrity``."""
    key = load_public_key(Path(public_key)) if public_key is not None else None
    with _hold_store(opened) as store, closing(_open_published(opened)) as snapshot:
        return check_snapshot(store, snapshot, opened.librarian, opened.catalogue, saved, key)


@contextmanager
def _hold_store(opened: OpenCollection) -> Iterator[OxigraphStore]:
    """Open the store while nobody writes to it."""
    writable = os.access(opened.folder.path, os.W_OK)
    if writable and opened.folder.pointer.exists() and must_be_mended(opened.folder):
        with open_writable_store(opened.folder, timeout=PATIENCE) as store:  # which mends nothing
            yield store
        return
    if writable:
        with opened.ledger.open(timeout=PATIENCE) as (store, _):
            yield store
        return
    if opened.ledger.waiting():
        opened.message("The folder can't be written: sessions in journals are not checked.")
    yield OxigraphStore.snapshot(opened.folder.store)


def _open_published(opened: OpenCollection) -> Snapshot:
    """Open the published snapshot unchecked, altered or not; an unreadable snapshot gives way
    to the store."""
    with suppress(StoreError):
        if snapshot := Snapshot.open(opened.folder, checked=False):
            return snapshot
    return opened.snapshot()


def audit_integrity(opened: OpenCollection, *arguments: str) -> AuditResult:
    """Run the integrity check as an audit."""
    if len(arguments) > 1:
        raise UsageError(f"The audit {INTEGRITY.name} takes 1 argument, not {len(arguments)}.")
    integrity = check_integrity_of(opened, next(filter(None, arguments), None))
    rows = tuple((p.kind, p.what, p.subject, p.detail) for p in integrity.problems)
    return AuditResult(INTEGRITY, rows, integrity.ok)


def check_snapshot(
    store: OxigraphStore,
    snapshot: Snapshot,
    librarian: Librarian,
    catalogue: str,
    saved: str | None,
    key: PublicKey | None = None,
) -> Integrity:
    """Check snapshot integrity, listing each quad that differs from the store.

    With a ``key``, signatures by the key are checked too."""
    head = Head(snapshot.pointer.sequence, snapshot.pointer.head)
    return check_integrity(
        snapshot.store, librarian, catalogue, head, saved, written=store, key=key
    )
