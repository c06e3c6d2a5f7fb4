"""Vector sets of new knowledge, with reports beside the vectors; vectors of unchanged texts are
kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.answer.report_batches import whole_cost
from tgraph.engine.components import Components
from tgraph.engine.index.community_reports import current_network
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.raptor_tree import grow_tree, wants_tree
from tgraph.errors import StoreError
from tgraph.index.evidence import EvidenceReader
from tgraph.index.hub_rows import write_hub_rows
from tgraph.index.lookup_table import LookupTable, load_table
from tgraph.index.network_rows import write_network_rows
from tgraph.index.reports.report import report_on
from tgraph.index.reports.report_table import (
    ReportCounts,
    ReportTable,
    load_reports,
    stored_reports,
)
from tgraph.index.sources import Texts
from tgraph.index.sqlite_files import LazyTable
from tgraph.index.summary_tree import standing_tree
from tgraph.index.tabulation import make_tables
from tgraph.index.vectors.base import VectorIndex
from tgraph.index.vectors.items import KINDS, PLURALS, items_of
from tgraph.index.vectors.stores import vector_store
from tgraph.librarian import Librarian
from tgraph.models.base import Embedder
from tgraph.models.reply_cache import CachedEmbedder
from tgraph.models.tokens import DEFAULT_ENCODING, encoding_for
from tgraph.record.ledger import Ledger
from tgraph.retrieve.reports import Reports
from tgraph.retrieve.search.names import WORDING
from tgraph.retrieve.text.lexical import term_set
from tgraph.store.base import Store
from tgraph.store.snapshot import read_pointer

CACHE = "embeddings"


def wrap_with_cache(embedder: Embedder, cache: Path) -> Embedder:
    """Wrap a paid embedder with a cache, so that interrupted runs do not pay for texts twice."""
    return CachedEmbedder(embedder, cache / CACHE) if embedder.agent.kind == "model" else embedder


def embed_knowledge(context: IndexContext, ledger: Ledger, *, tree: bool = False) -> bool:
    """Write vector sets beside the working copy; return False if published vectors still fit.

    The summary tree is made of chunk vectors, so the tree grows here where a tree is kept: by
    the settings, because a tree exists, or because ``tree`` asks for it."""
    tree = tree or wants_tree(context)
    grown = not tree or bool(standing_tree(context.copy.store))
    previous = {kind: _load_previous_vectors(context, ledger, kind) for kind in KINDS}
    if (
        grown
        and not context.copy.changed
        and all(vector_set is not None for vector_set in previous.values())
    ):
        return False
    generation = ledger.generation(context.copy.store) + 1
    sets: dict[str, VectorIndex] = {}
    for kind in KINDS:
        if tree and kind == "summary":
            sets[kind] = grow_tree(context, sets["chunk"], previous[kind])
        else:
            sets[kind] = _embed_kind(context, kind, previous[kind])
        sets[kind].save(context.copy.vectors, generation)
        sets[kind] = vector_store().open_vectors(
            context.copy.vectors, kind
        )  # mapped, so that memory is free
    context.record.write_calls(context.copy)
    _keep_reports(context, ledger, generation)
    if not context.is_large:
        _fill_tables(context, sets)
        context.table().save(context.copy.vectors, generation)
    current_network(context).save(context.copy.vectors, generation)
    return True


def _fill_tables(context: IndexContext, sets: Mapping[str, VectorIndex]) -> None:
    """Fill lookup tables with data computed from vectors."""
    reader, store = context.table().reader, context.copy.store
    changed = None if reader.newer is None else context.changes.keys
    write_network_rows(reader, store, sets, WORDING, changed)
    write_hub_rows(reader, Texts(store, context.librarian), term_set, changed)


def _embed_kind(context: IndexContext, kind: str, previous: VectorIndex | None) -> VectorIndex:
    """Return vectors of a kind, revising earlier vectors where changes are known."""
    store, read = context.copy.store, (context.librarian, context.evidence)

    def shown(done: int, total: int) -> None:
        context.record.write_calls(context.copy)  # which are as large as the vectors
        context.show("Embedding", done, total, PLURALS[kind])

    callbacks = shown, context.record.call
    touched = _touched_keys(context, kind)
    if touched is not None and previous is not None:
        items = items_of(kind, store, *read, touched)
        revised = vector_store().revise_vectors(
            previous, items, touched, context.embedder, *callbacks
        )
        if revised is not None:
            return revised
    items = items_of(kind, store, *read)
    return vector_store().build_vectors(kind, items, context.embedder, previous, *callbacks)


def _touched_keys(context: IndexContext, kind: str) -> Collection[str] | None:
    """Return keys of a kind with possibly changed texts; None if unknown."""
    keys, quads = context.changes.keys, context.copy.changed_quads
    if keys is None or quads is None:
        return None
    if kind in ("entity", "edge"):
        return keys.resources if kind == "entity" else keys.edges
    prefix = _PREFIXES[kind]
    subjects = (q.subject.value for q in quads if isinstance(q.subject, NamedNode))
    touched_subjects = {subject for subject in subjects if subject.startswith(prefix)}
    return touched_subjects.union(keys.chunks) if kind in ("chunk", "context") else touched_subjects


_PREFIXES = {
    "chunk": f"{v.URN}chunk:",
    "context": f"{v.URN}chunk:",
    "report": f"{v.URN}report:",
    "summary": f"{v.URN}summary:",
}


def consolidate_tables(ledger: Ledger, store: Store) -> None:
    """Rebuild vector sets and tables that contain leftovers: rows of deleted texts, and
    superseded table entries."""
    folder, generation = ledger.folder.vectors, ledger.generation(store)
    sets: dict[str, VectorIndex] = {}
    for kind in KINDS:
        with suppress(StoreError):
            index = vector_store().open_vectors(folder, kind, generation=generation)
            sets[kind] = vector_store().compact_vectors(index)
            sets[kind].save(folder, generation)
    table = load_table(folder, generation)
    if table is None or sets.keys() != set(KINDS):
        return
    with closing(table), closing(tables_of(store, ledger.librarian, sets, table)) as fresh:
        fresh.save(folder, generation)


def tables_of(
    store: Store,
    librarian: Librarian,
    vectors: Mapping[str, VectorIndex],
    before: LookupTable | None = None,
) -> LookupTable:
    """Return freshly built tables of a store, including vector-based data if ``vectors`` are
    given."""
    table = make_tables(store, librarian, before)
    write_hub_rows(table.reader, Texts(store, librarian), term_set)
    if vectors:
        write_network_rows(table.reader, store, vectors, WORDING)
    return table


def grow_tree_anew(context: IndexContext, ledger: Ledger) -> None:
    """Grow the summary tree from chunk vectors, reusing published vectors where possible."""
    items = items_of("chunk", context.copy.store, context.librarian, context.evidence)
    previous_vectors = _load_previous_vectors(context, ledger, "chunk")
    chunks = vector_store().build_vectors(
        "chunk", items, context.embedder, previous_vectors, sink=context.record.call
    )
    grow_tree(context, chunks, _load_previous_vectors(context, ledger, "summary"))


def _keep_reports(context: IndexContext, ledger: Ledger, generation: int) -> None:
    """Store communities and reports beside the vectors, with counts needed by questions for
    each report."""
    pointer = read_pointer(ledger.folder)
    load = partial(load_reports, ledger.folder.vectors, pointer.generation if pointer else 0)
    with LazyTable(load) as before, closing(_reports_of(context, before())) as table:
        count_reports(table, context.evidence, context.parts)
        makers = context.changes.makers
        makers.reports = makers.reports or context.makers_before.reports
        table.save(context.copy.vectors, generation, makers)


def _reports_of(context: IndexContext, before: ReportTable | None) -> ReportTable:
    """Return communities and reports of the working copy: the previous table plus changes, or
    everything stored where the changes are unknown."""
    store, changes = context.copy.store, context.changes
    if before is None or changes.reported is None:
        return stored_reports(store)
    reports = {name: report_on(store, name) for name in changes.reported}
    return before.changed(changes.communities or (), changes.divided.values(), reports)


def count_reports(table: ReportTable, evidence: EvidenceReader, parts: Components) -> None:
    """Count occurrences, costs and total costs of reports still uncounted in the table."""
    chat = parts.chat
    encoding = encoding_for(chat.agent.name) if chat else DEFAULT_ENCODING
    missing = table.uncounted(encoding)
    reports = Reports(table, evidence)
    table.count(
        {
            report.iri: ReportCounts(
                reports.occurrences(report), reports.cost(report), whole_cost(report, encoding)
            )
            for report in missing.values()
        }
    )


def _load_previous_vectors(context: IndexContext, ledger: Ledger, kind: str) -> VectorIndex | None:
    """Return the previous generation's vectors, if complete and produced by the current
    embedder."""
    pointer = read_pointer(ledger.folder)
    if pointer is None:
        return None
    try:
        return vector_store().open_vectors(
            ledger.folder.vectors,
            kind,
            generation=pointer.generation,
            agent=context.embedder.agent,
        )
    except StoreError as error:
        if pointer.generation:
            context.message(f"The {kind} vectors are rebuilt: {error.message}")
        return None
