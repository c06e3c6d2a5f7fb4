"""Tables saved beside the vectors: look-ups, communities with their reports, the catalogue, the
entity network."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from tgraph.answer.report_batches import whole_cost
from tgraph.engine.components import Components
from tgraph.engine.index.community_reports import current_network
from tgraph.engine.index.phase import IndexContext
from tgraph.errors import StoreError
from tgraph.index.catalogue import count_knowledge
from tgraph.index.catalogue_changes import revise_counts
from tgraph.index.catalogue_table import CatalogueTable, load_catalogue
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
from tgraph.index.tabulation import make_tables
from tgraph.index.vectors.base import VectorIndex, VectorStore
from tgraph.index.vectors.items import KINDS
from tgraph.librarian import Librarian
from tgraph.models.tokens import DEFAULT_ENCODING, encoding_for
from tgraph.record.ledger import Ledger
from tgraph.retrieve.reports import Reports
from tgraph.retrieve.search.names import WORDING
from tgraph.retrieve.text.lexical import term_set
from tgraph.store.base import Store
from tgraph.store.snapshot import read_pointer


def save_tables(context: IndexContext, vectors: Mapping[str, VectorIndex], generation: int) -> None:
    """Save the tables of the working copy beside its vectors."""
    _keep_reports(context, generation)
    if not context.is_large:
        _fill_tables(context, vectors)
        context.table().save(context.copy.vectors, generation)
    _revise_catalogue(context, generation)
    current_network(context).save(context.copy.vectors, generation)


def keep_catalogue(store: Store, folder: Path, generation: int) -> None:
    """Count and save the catalogue of a store in the folder."""
    with closing(CatalogueTable.from_counts(store, count_knowledge(store))) as table:
        table.save(folder, generation)


def _revise_catalogue(context: IndexContext, generation: int) -> None:
    """Save the catalogue of the working copy: the published one with what the run changed, or all
    counted where one of both isn't known."""
    store, quads = context.copy.store, context.copy.changed_quads
    pointer = read_pointer(context.ledger.folder)
    folder = context.ledger.folder.vectors
    with LazyTable(lambda: load_catalogue(folder, pointer.generation if pointer else 0)) as before:
        counts, table = None, before()
        if table is not None and quads is not None:
            edges = context.changes.touched.edges
            counts = revise_counts(table.read_counts(), store, quads, edges)
        if counts is None:
            counts = count_knowledge(store)
        with closing(CatalogueTable.from_counts(store, counts)) as revised:
            revised.save(context.copy.vectors, generation)


def _fill_tables(context: IndexContext, sets: Mapping[str, VectorIndex]) -> None:
    """Fill lookup tables with data computed from vectors."""
    reader, store = context.table().reader, context.copy.store
    changed = None if reader.newer is None else context.changes.keys
    write_network_rows(reader, store, sets, WORDING, changed)
    write_hub_rows(reader, Texts(store, context.librarian), term_set, changed)


def consolidate_tables(ledger: Ledger, store: Store, vector_store: VectorStore) -> None:
    """Rebuild vector sets and tables that contain leftovers: rows of deleted texts, and
    superseded table entries."""
    folder, generation = ledger.folder.vectors, ledger.generation(store)
    sets: dict[str, VectorIndex] = {}
    for kind in KINDS:
        with suppress(StoreError):
            index = vector_store.open_vectors(folder, kind, generation=generation)
            sets[kind] = vector_store.compact_vectors(index)
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


def _keep_reports(context: IndexContext, generation: int) -> None:
    """Store communities and reports beside the vectors, with counts needed by questions for
    each report."""
    folder = context.ledger.folder
    pointer = read_pointer(folder)
    load = partial(load_reports, folder.vectors, pointer.generation if pointer else 0)
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
    return before.with_changes(changes.communities or (), changes.divided.values(), reports)


def count_reports(table: ReportTable, evidence: EvidenceReader, parts: Components) -> None:
    """Count occurrences, costs and total costs of reports still uncounted in the table."""
    chat = parts.chat
    encoding = encoding_for(chat.agent.name) if chat else DEFAULT_ENCODING
    missing = table.list_uncounted(encoding)
    reports = Reports(table, evidence)
    table.count(
        {
            report.iri: ReportCounts(
                reports.occurrences(report), reports.cost(report), whole_cost(report, encoding)
            )
            for report in missing.values()
        }
    )
