"""The vector sets of the new knowledge, and its reports beside them; vectors of texts that did not
change are kept."""

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


def remembering(embedder: Embedder, cache: Path) -> Embedder:
    """A paid embedder with a memory, so that an interrupted run does not pay for a text twice."""
    return CachedEmbedder(embedder, cache / CACHE) if embedder.agent.kind == "model" else embedder


def embed(context: IndexContext, ledger: Ledger, *, tree: bool = False) -> bool:
    """Put the vector sets beside the working copy; False where those published still fit.

    The tree of summaries is made of the chunks' vectors, so it grows here where it is kept: by the
    settings, because there is one, or because ``tree`` asks for it.
    """
    tree = tree or wants_tree(context)
    grown = not tree or bool(standing_tree(context.copy.store))
    previous = {kind: _previous(context, ledger, kind) for kind in KINDS}
    if grown and not context.copy.changed and all(found is not None for found in previous.values()):
        return False
    generation = ledger.generation(context.copy.store) + 1
    sets: dict[str, VectorIndex] = {}
    for kind in KINDS:
        if tree and kind == "summary":
            sets[kind] = grow_tree(context, sets["chunk"], previous[kind])
        else:
            sets[kind] = _embedded(context, kind, previous[kind])
        sets[kind].save(context.copy.vectors, generation)
        sets[kind] = vector_store().open_vectors(
            context.copy.vectors, kind
        )  # mapped, so that memory is free
    context.record.write_calls(context.copy)
    _keep_reports(context, ledger, generation)
    if not context.is_large:
        _keep(context, sets)
        context.table().save(context.copy.vectors, generation)
    current_network(context).save(context.copy.vectors, generation)
    return True


def _keep(context: IndexContext, sets: Mapping[str, VectorIndex]) -> None:
    """Put what is made with the help of vectors into the tables."""
    reader, store = context.table().reader, context.copy.store
    changed = None if reader.newer is None else context.changes.keys
    write_network_rows(reader, store, sets, WORDING, changed)
    write_hub_rows(reader, Texts(store, context.librarian), term_set, changed)


def _embedded(context: IndexContext, kind: str, previous: VectorIndex | None) -> VectorIndex:
    """The vectors of a kind: those before with what changed, where that is known."""
    store, read = context.copy.store, (context.librarian, context.evidence)

    def shown(done: int, total: int) -> None:
        context.record.write_calls(context.copy)  # which are as large as the vectors
        context.show("Embedding", done, total, PLURALS[kind])

    told = shown, context.record.call
    touched = _touched(context, kind)
    if touched is not None and previous is not None:
        items = items_of(kind, store, *read, touched)
        revised = vector_store().revise_vectors(previous, items, touched, context.embedder, *told)
        if revised is not None:
            return revised
    items = items_of(kind, store, *read)
    return vector_store().build_vectors(kind, items, context.embedder, previous, *told)


def _touched(context: IndexContext, kind: str) -> Collection[str] | None:
    """What of a kind may have other texts than before; None where that isn't known."""
    keys, quads = context.changes.keys, context.copy.changed_quads
    if keys is None or quads is None:
        return None
    if kind in ("entity", "edge"):
        return keys.resources if kind == "entity" else keys.edges
    prefix = _PREFIXES[kind]
    stated = (q.subject.value for q in quads if isinstance(q.subject, NamedNode))
    found = {subject for subject in stated if subject.startswith(prefix)}
    return found.union(keys.chunks) if kind in ("chunk", "context") else found


_PREFIXES = {
    "chunk": f"{v.URN}chunk:",
    "context": f"{v.URN}chunk:",
    "report": f"{v.URN}report:",
    "summary": f"{v.URN}summary:",
}


def consolidate(ledger: Ledger, store: Store) -> None:
    """Make what lies beside the knowledge anew where something of an earlier one is left in it:
    rows of texts that are gone, and what newer tables took the place of."""
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
    """The tables of a store, made anew with what takes vectors, where there are ``vectors``."""
    table = make_tables(store, librarian, before)
    write_hub_rows(table.reader, Texts(store, librarian), term_set)
    if vectors:
        write_network_rows(table.reader, store, vectors, WORDING)
    return table


def grow_tree_anew(context: IndexContext, ledger: Ledger) -> None:
    """The tree of summaries as it grows from the chunks' vectors, those published where they
    fit."""
    items = items_of("chunk", context.copy.store, context.librarian, context.evidence)
    known = _previous(context, ledger, "chunk")
    chunks = vector_store().build_vectors(
        "chunk", items, context.embedder, known, sink=context.record.call
    )
    grow_tree(context, chunks, _previous(context, ledger, "summary"))


def _keep_reports(context: IndexContext, ledger: Ledger, generation: int) -> None:
    """Put the communities and reports beside the vectors, with all that questions would count of
    each report."""
    pointer = read_pointer(ledger.folder)
    load = partial(load_reports, ledger.folder.vectors, pointer.generation if pointer else 0)
    with LazyTable(load) as before, closing(_reports_of(context, before())) as table:
        count_reports(table, context.evidence, context.parts)
        makers = context.changes.makers
        makers.reports = makers.reports or context.makers_before.reports
        table.save(context.copy.vectors, generation, makers)


def _reports_of(context: IndexContext, before: ReportTable | None) -> ReportTable:
    """The communities and reports of the working copy: those before with what changed, where that
    is known."""
    store, changes = context.copy.store, context.changes
    if before is None or changes.reported is None:
        return stored_reports(store)
    reports = {name: report_on(store, name) for name in changes.reported}
    return before.changed(changes.communities or (), changes.divided.values(), reports)


def count_reports(table: ReportTable, evidence: EvidenceReader, parts: Components) -> None:
    """Count of each report what questions would count, as far as the table has not."""
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


def _previous(context: IndexContext, ledger: Ledger, kind: str) -> VectorIndex | None:
    """The vectors of the knowledge before, if they are whole and of the same embedder."""
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
            context.message(f"The {kind} vectors are made anew: {error.message}")
        return None
