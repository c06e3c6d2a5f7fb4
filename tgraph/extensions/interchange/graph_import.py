"""Graph import: each file becomes a document, its statements become evidence with text
positions.

Knowledge, communities, vectors and publication follow as in an index run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from itertools import islice
from pathlib import PurePath

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.index.document_ingest import IngestedFiles, file_limits, take_content
from tgraph.engine.index.extraction import Extracted, record_reading
from tgraph.engine.index.given_communities import BroughtCommunities
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.run import IndexReport, Run
from tgraph.errors import IngestError
from tgraph.extensions.interchange.first_knowledge import FirstKnowledge
from tgraph.extensions.interchange.graphs.base import GraphReader, ImportedDocument, SkippedRow
from tgraph.extensions.interchange.graphs.registry import graph_readers, graphs_at, reader_named
from tgraph.extract.base import with_endpoints
from tgraph.index.sources import chunks_of_document, derived_items, source_value, text_value
from tgraph.model import Chunk, Document
from tgraph.record.activities import SOFTWARE, Authorship
from tgraph.record.ontologies import standing_ontologies
from tgraph.record.sources import ExtractionRecord, chunk_quads
from tgraph.store.base import Store, text_of
from tgraph.store.statements import build_statements

IMPORT = "Import"
SKIPPED = "line or row of a graph that can't be read"
MENDED = "term of a graph that is not well formed and was mended"
_LINES_RECORDED = 20
"""Lines of a file that the record names; the others are counted."""
_CONTENT = v.tg("contentHash")
LARGE = 2_000_000
"""Characters of a graph from which on its knowledge is derived as it is read."""
LEXICAL = "vectors of a large graph"
MOST_TOLD = 1_000
"""Skipped rows that a report lists; the others are counted."""


@dataclass(frozen=True, slots=True)
class GraphImport:
    """What is to be imported, and how: see ``tgraph.extensions.interchange.import_graph``.

    ``name`` is what a graph that was in memory is called in place of its path."""

    paths: tuple[str, ...]
    format: str | None = None
    languages: tuple[str, ...] = ()
    base: str = ""
    reinstate: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class ImportReport(IndexReport):
    """An import report: index report fields, plus the first ``MOST_TOLD`` ``skipped`` rows and
    ``skipped_count``, their total, mended rows included."""

    skipped: tuple[SkippedRow, ...] = ()
    skipped_count: int = 0


class ImportRun(Run):
    """An import run over graph files."""

    label = "Import"

    def run(self, wanted: GraphImport) -> ImportReport:
        """Import graphs, publish the result and return a report.

        Raise ``TgraphError`` if the whole run fails."""
        with self._workshop() as context:
            taking = _Taking(context, wanted)
            started = context.begin(self.label)
            taking.take_all()
            report = self._conclude(
                context, started, taking.intakes, taking.counts, 0, taking.brought
            )
        report_values = {
            report_field.name: getattr(report, report_field.name)
            for report_field in fields(IndexReport)
        }
        read = {"indexed": tuple(taking.read)} if taking.read else {}
        skipped = {"skipped": tuple(taking.skipped), "skipped_count": taking.skipped_count}
        return ImportReport(**{**report_values, **read, **skipped})


class _Taking:
    """A graph importer, processing input graphs sequentially."""

    def __init__(self, context: IndexContext, wanted: GraphImport) -> None:
        self.intakes = IngestedFiles()
        self.counts = Extracted(0)
        self.skipped: list[SkippedRow] = []
        self._lines: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.read: list[str] = []
        self.brought: list[BroughtCommunities] = []
        self._context = context
        self._wanted = wanted
        limits, encoding = file_limits(context.settings), context.settings.chunk.encoding
        self._readers = graph_readers(wanted.languages, wanted.base, limits, encoding)

    @property
    def skipped_count(self) -> int:
        """The number of skipped and mended rows."""
        return sum(map(len, self._lines.values()))

    def take_all(self) -> None:
        for path, reader in self._find_graphs():
            try:
                graph, documents = reader.read(path, self._skip_row), []
                for imported in graph.documents:
                    self._ingest_document(imported)
                    documents.append(imported.document.iri)
                if graph.communities:
                    self.brought.append(BroughtCommunities(graph.communities, documents))
            except IngestError as error:
                self.intakes.failed.append(error)
        for (what, file), lines in self._lines.items():
            named = ", ".join(f"{line:,}" for line in lines[:_LINES_RECORDED])
            overflow = len(lines) - _LINES_RECORDED
            further = f" and {overflow:,} more" if overflow > 0 else ""
            word = "lines" if len(lines) > 1 else "line"
            reason = f"{what} ({file}, {word} {named}{further})"
            self._context.record.dropped[reason] += len(lines)

    def _find_graphs(self) -> Iterator[tuple[str, GraphReader]]:
        readers, name = self._readers, self._wanted.format
        reader_choices = [reader_named(readers, name)] if name else list(readers.values())
        for path in dict.fromkeys(self._wanted.paths):
            try:
                yield from [(path, reader_choices[0])] if name else graphs_at(path, reader_choices)
            except IngestError as error:
                self.intakes.failed.append(error)

    def _skip_row(self, row: SkippedRow) -> None:
        self._lines[MENDED if row.mended else SKIPPED, PurePath(row.file).name].append(row.row)
        if len(self.skipped) < MOST_TOLD:
            self.skipped.append(row)

    def _ingest_document(self, imported: ImportedDocument) -> None:
        if self._wanted.name:
            imported = _rename_document(imported, self._wanted.name)
        store, document = self._context.copy.store, imported.document
        is_recorded = _is_imported(store, document.iri) or _says_nothing(store, imported)
        if not is_recorded:
            _check_text(store, imported.path, document)
        intake = take_content(
            self._context,
            self.intakes,
            imported.path,
            imported.content,
            lambda: document,
            reinstate=self._wanted.reinstate,
        )
        indexed = imported.path in self.intakes.unchanged
        if not is_recorded and (intake is not None or indexed):
            if indexed:
                self.intakes.unchanged.remove(imported.path)
            self._record_document(imported)
        elif intake is None:
            return
        self.read.append(imported.path)

    def _record_document(self, imported: ImportedDocument) -> None:
        context, before = self._context, self.counts.relationships
        with FirstKnowledge() if self._is_first(imported.document) else nullcontext() as first:
            for chunk, record in self._iterate_records(imported):
                if first is None:
                    record_reading(context, chunk, record, self.intakes.touched, self.counts)
                else:
                    self._record_first_reading(chunk, record, first)
                context.record.dropped.update(record.extraction.dropped)
                self.counts.chunks += 1
            if first is not None:
                self._store_knowledge(first)
        if self.counts.relationships - before > context.settings.graphs.embedded:
            self._find_by_words(imported)

    def _iterate_records(
        self, imported: ImportedDocument
    ) -> Iterator[tuple[Chunk, ExtractionRecord]]:
        context = self._context
        total = max(sum(len(page.text) for page in imported.document.pages), 1)
        began = context.clock()
        for reading in imported.readings:
            chunk, extraction = reading.chunk, with_endpoints(reading.extraction)
            how = Authorship(context.run, SOFTWARE, (), began, context.clock())
            yield chunk, ExtractionRecord(how, chunk, extraction, extraction.reply_hash, IMPORT)
            context.report_progress("Importing", min(chunk.end, total), total, imported.path)
            began = context.clock()

    def _is_first(self, document: Document) -> bool:
        """Tell whether a large document uses only its own IRIs and no evidence precedes it.

        No knowledge except its own can change then."""
        store, text = self._context.copy.store, document.pages[0].text
        if len(text) < LARGE or document.media_type not in v.GRAPH_MEDIA_TYPES or v.URN in text:
            return False
        if standing_ontologies(store):
            return False
        evidence = store.match(None, v.RDF_TYPE, v.tg("Evidence"), v.SOURCE_GRAPH)
        return next(evidence, None) is None

    def _record_first_reading(
        self, chunk: Chunk, record: ExtractionRecord, first: FirstKnowledge
    ) -> None:
        """Record an extraction like ``record_reading``, in a third of the time and without
        memory use."""
        shared, new = record.state()
        unseen = [
            quad
            for quad in (*chunk_quads(chunk), *shared)
            if quad.predicate != v.RDF_REIFIES or first.is_new(text_of(quad.subject))
        ]
        self._context.copy.note([*unseen, *new])
        first.add_extraction(record.extraction, record.edges, record.evidence.values())
        self.counts.entities += len(record.entities)
        self.counts.relationships += len(record.edges)

    def _store_knowledge(self, first: FirstKnowledge) -> None:
        quads, touched = first.quads(), self.intakes.touched
        while batch := list(islice(quads, 10_000)):
            self._context.copy.note(batch)
        self._context.copy.take_in()
        touched.entities |= first.touched.entities
        touched.edges |= first.touched.edges

    def _find_by_words(self, imported: ImportedDocument) -> None:
        """What a large graph states gets no vectors; that is on record, counted and told."""
        context, limit = self._context, self._context.settings.graphs.embedded
        iri = imported.document.iri
        context.copy.add(build_statements(v.SOURCE_GRAPH, iri, (v.tg("lexical"), True)))
        context.record.dropped[LEXICAL] += 1
        context.message(
            f"{imported.path} has more than {limit:,} statements (graphs.embedded): they are found "
            "by names and words, not by vectors."
        )


def _rename_document(imported: ImportedDocument, name: str) -> ImportedDocument:
    """Return a document of a graph in memory with its name in place of path and title."""
    title = name.rpartition(".")[0]
    return replace(imported, path=name, document=replace(imported.document, title=title))


def _is_imported(store: Store, document: str) -> bool:
    """Tell whether statements of an imported document are on record."""
    for chunk in chunks_of_document(store, document):
        for subgraph in derived_items(store, chunk, "Subgraph"):
            activity = text_value(store, subgraph, v.prov("wasGeneratedBy"))
            kinds = store.match(NamedNode(activity), v.RDF_TYPE, v.tg("Import"), v.SOURCE_GRAPH)
            if next(kinds, None) is not None:
                return True
    return False


def _says_nothing(store: Store, imported: ImportedDocument) -> bool:
    """Tell whether a recorded document contains no statements."""
    return (
        imported.readings == () and source_value(store, imported.document.iri, _CONTENT) is not None
    )


def _check_text(store: Store, path: str, document: Document) -> None:
    """Raise ``IngestError`` if identical bytes were ingested earlier with different text."""
    stored = source_value(store, document.iri, v.tg("textHash"))
    text = document.pages[0].text.encode("utf-8", "surrogatepass")
    if stored is not None and text_of(stored) != sha256(text).hexdigest():
        raise IngestError(
            path,
            "The same file was indexed before, and read as another text.",
            "Erase that with `tgraph remove`, then import it.",
        )
