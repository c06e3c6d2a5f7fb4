"""The check of integrity: of what readers see, and of the store that it was published from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from pyoxigraph import DefaultGraph, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.opened import OpenCollection
from tgraph.engine.updating import difference
from tgraph.errors import UsageError
from tgraph.explain.audit import INTEGRITY, AuditResult
from tgraph.explain.chained import Problem
from tgraph.explain.integrity import Integrity, check_integrity
from tgraph.librarian import Librarian
from tgraph.record.chain import NO_GRAPH, GraphHash, Head, hash_of_graph
from tgraph.record.signing import PublicKey, load_public_key
from tgraph.store.base import Graph, select
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Snapshot
from tgraph.store.statements import to_bytes

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one."""


def check_integrity_of(
    opened: OpenCollection, saved: str | None, public_key: str | Path | None = None
) -> Integrity:
    """As ``KnowledgeGraph.integrity``."""
    key = load_public_key(Path(public_key)) if public_key is not None else None
    with _held(opened) as store, closing(opened.snapshot()) as snapshot:
        return check(store, snapshot, opened.librarian, opened.catalogue, saved, key)


@contextmanager
def _held(opened: OpenCollection) -> Iterator[OxigraphStore]:
    """The store, while nobody writes to it."""
    if os.access(opened.folder.path, os.W_OK):
        with opened.ledger.open(timeout=PATIENCE) as (store, _):
            yield store
        return
    if opened.ledger.waiting():
        opened.message("The folder can't be written: sessions in journals are not checked.")
    yield OxigraphStore.snapshot(opened.folder.store)


def audit_integrity(opened: OpenCollection, *arguments: str) -> AuditResult:
    """The same as the audit of that name."""
    if len(arguments) > 1:
        raise UsageError(f"The audit {INTEGRITY.name} takes 1 argument, not {len(arguments)}.")
    found = check_integrity_of(opened, next(filter(None, arguments), None))
    rows = tuple((p.kind, p.what, p.subject, p.detail) for p in found.problems)
    return AuditResult(INTEGRITY, rows, found.ok)


def check(
    store: OxigraphStore,
    snapshot: Snapshot,
    librarian: Librarian,
    catalogue: str,
    saved: str | None,
    key: PublicKey | None = None,
) -> Integrity:
    """The integrity of the snapshot, with each quad in which the store differs from it; with a
    ``key``, the signatures by it too."""
    pointer = snapshot.pointer
    hashes = {name: hash_of_graph(snapshot.store, name) for name in _bundles(snapshot.store)}
    return check_integrity(
        snapshot.store,
        librarian,
        catalogue,
        Head(pointer.sequence, pointer.head),
        saved,
        list(_differences(snapshot.store, store, hashes)),
        key,
        hashes,
    )


def _bundles(store: OxigraphStore) -> set[NamedNode]:
    return {graph for graph in _graphs(store) if graph.value.startswith(v.bundle_iri(""))}


def _graphs(store: OxigraphStore) -> Iterator[NamedNode]:
    for row in select(store, "trace/graphs", union=False):
        if isinstance(row["graph"], NamedNode):
            yield row["graph"]


def _differences(
    snapshot: OxigraphStore, store: OxigraphStore, hashes: Mapping[NamedNode, GraphHash]
) -> Iterator[Problem]:
    """Each quad in which they differ. Bundles are small, and compared by their hashes first."""
    bundles = hashes.keys() | _bundles(store)
    others = {*_graphs(snapshot), *_graphs(store)} - bundles
    differing = [g for g in bundles if hash_of_graph(store, g) != hashes.get(g, NO_GRAPH)]
    graphs: list[Graph] = [DefaultGraph(), *sorted([*others, *differing], key=str)]
    for graph in graphs:
        added, removed = difference(snapshot, store, graph)
        yield from _differing("added", added)
        yield from _differing("missing", removed)


def _differing(kind: str, quads: list[Quad]) -> Iterator[Problem]:
    where = "is in the store and not in" if kind == "added" else "is not in the store but in"
    for quad in quads:
        line = to_bytes([quad]).decode().strip()
        detail = f"It {where} the snapshot that readers see."
        yield Problem("added" if kind == "added" else "missing", "quad", line, detail)
