"""Indexing: input documents become a published graph, completely or, after interruption, not at
all.

A run works on a private copy of the store. Model replies and extractions are saved immediately,
so that the next run continues an interrupted one. Design, sections 3.4 to 3.6."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from tgraph import vocabulary as v
from tgraph.engine.garbage import seldom_collected
from tgraph.engine.index.derivation import follow_up
from tgraph.engine.index.document_ingest import (
    IngestedFiles,
    ingest_files,
    reread_documents,
)
from tgraph.engine.index.embeddings import CACHE, wrap_with_cache
from tgraph.engine.index.extraction import Extracted, extract_claims, extract_documents
from tgraph.engine.index.given_communities import BroughtCommunities
from tgraph.engine.index.indexed_paths import (
    INDEX_RUN,
    AbsentFiles,
    IndexedPaths,
    Renaming,
)
from tgraph.engine.index.ontology_led import guide_extractor
from tgraph.engine.index.phase import IndexContext, RunChanges
from tgraph.engine.index.workers import Workers, open_workers
from tgraph.engine.progress import RunSetup
from tgraph.errors import IngestError
from tgraph.extract.base import Extractor
from tgraph.index.lookup_table import LookupTable, load_table
from tgraph.index.sqlite_files import LazyTable
from tgraph.index.tabulation import make_tables
from tgraph.ingest.files import FoundFile
from tgraph.model import ReadingReport, Usage
from tgraph.models.base import Embedder
from tgraph.record.activities import SOFTWARE, agent_quads
from tgraph.record.ledger import batch_lines
from tgraph.record.recorder import RunRecord
from tgraph.record.sources import run_quads
from tgraph.store.base import Store
from tgraph.store.files import hold_lock
from tgraph.store.snapshot import read_pointer
from tgraph.store.writer import WorkingCopy, abandoned_changes

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one. A change that is committed by then is
not lost: the next command applies it."""

BUSY = "An index run is using this collection; waiting for the end of the run."


@dataclass(frozen=True, slots=True)
class IndexReport:
    """A report of one ``index`` run.

    ``entities`` and ``relationships`` count extractions per chunk, so that a name counts once
    in each chunk containing it.

    ``retracted`` names files excluded for retracted content, ``erased`` files excluded for
    erased content. ``failed`` names each file that could not be ingested, with the reason.
    ``generation`` is the published generation, ``communities`` counts all communities in
    knowledge, and ``isolated`` counts entities outside communities. ``dropped`` counts content
    left out by extractors, by reason. ``readings`` has the reading report of each file of which
    something isn't in the stored text.

    ``renamed`` names files with another path and the same content. ``absent`` lists, for each
    folder, standing documents whose files are gone; ``pruned`` are paths retracted for that, and
    ``questioned`` the sessions whose answers were called into question with them."""

    run: str
    indexed: tuple[str, ...]
    unchanged: tuple[str, ...]
    superseded: tuple[str, ...]
    failed: tuple[IngestError, ...]
    retracted: tuple[str, ...]
    erased: tuple[str, ...]
    chunks: int
    entities: int
    relationships: int
    claims: int
    merged: int
    communities: int
    isolated: int
    reports: int
    dropped: dict[str, int]
    usage: Usage
    generation: int
    readings: Mapping[str, ReadingReport] = field(default_factory=dict)
    renamed: tuple[Renaming, ...] = ()
    absent: tuple[AbsentFiles, ...] = ()
    pruned: tuple[str, ...] = ()
    questioned: tuple[str, ...] = ()


class Run:
    """A graph change, prepared on a working copy and committed atomically.

    The index lock is held from beginning to end."""

    kind = "run"
    label = INDEX_RUN
    busy = "Another index run is using this collection; waiting for the end of the run."

    def __init__(self, setup: RunSetup) -> None:
        self.iri = f"{v.URN}{self.kind}:{setup.uuid}"
        self._setup = setup
        self._ledger = setup.ledger
        self._extractor = setup.parts.extractor

    @contextmanager
    def _workshop(self) -> Iterator[IndexContext]:
        """Open a working copy with everything a phase needs; uncommitted work is discarded at
        exit."""
        folder = self._ledger.folder
        waiting = partial(self._setup.message, self.busy)
        with hold_lock(folder.index_lock, timeout=None, waiting=waiting), seldom_collected():
            for leftover in abandoned_changes(folder):
                shutil.rmtree(leftover, ignore_errors=True)
            with self._ledger.open(timeout=PATIENCE, waiting=self._say_waiting) as (store, _):
                copy = WorkingCopy(folder, self._setup.uuid, store)
            workers = open_workers(self._setup.settings.executor)
            try:
                record = RunRecord(self._ledger.librarian, self.iri, self._setup.uuid)
                record.observer = self._setup.observe()
                changes = RunChanges()
                with self._open_table(copy, changes) as table, record.under_way():
                    yield IndexContext(
                        **vars(self._setup),
                        run=self.iri,
                        copy=copy,
                        table=table,
                        changes=changes,
                        record=record,
                        extractor=self._guided_extractor(copy.store),
                        embedder=self._embedder_of(workers),
                        workers=workers,
                    )
            finally:
                copy.close()
                if workers:
                    workers.close()

    @contextmanager
    def _open_table(
        self, copy: WorkingCopy, changes: RunChanges
    ) -> Iterator[LazyTable[LookupTable]]:
        """Provide lookup tables of the copy, built with help from published tables."""
        folder, librarian = self._ledger.folder, self._ledger.librarian
        pointer = read_pointer(folder)
        generation = pointer.generation if pointer else 0
        with (
            LazyTable(partial(load_table, folder.vectors, generation)) as before,
            LazyTable(
                lambda: make_tables(copy.store, librarian, before(), changes.keys, copy.path)
            ) as table,
        ):
            yield table

    def _embedder_of(self, workers: Workers | None) -> Embedder:
        embedder = self._setup.parts.embedder
        helped = workers.embedding(embedder) if workers else embedder
        return wrap_with_cache(helped, self._ledger.folder.cache)

    def _guided_extractor(self, store: Store) -> Extractor:
        """Who reads chunks, led by the ontologies that stand."""
        return guide_extractor(self._extractor, store, self._ledger.librarian, self._setup.settings)

    def _conclude(
        self,
        context: IndexContext,
        started: datetime,
        intakes: IngestedFiles,
        extracted: Extracted,
        claims: int,
        brought: Iterable[BroughtCommunities] = (),
    ) -> IndexReport:
        """Derive consequences of new evidence, publish the graph and return a report."""
        followed = follow_up(context, intakes.touched, started, brought=brought)
        if context.copy.changed or followed.vectors:
            describe_run(context, started, self.label)
            self._commit(context)
        self._publish(context)
        pointer = read_pointer(self._ledger.folder)
        derived, clustered = followed.derived, followed.clustered
        return IndexReport(
            run=self.iri,
            indexed=tuple(intake.path for intake in intakes.taken),
            unchanged=tuple(intakes.unchanged),
            superseded=tuple(i.path for i in intakes.taken if i.supersedes),
            failed=tuple(intakes.failed),
            retracted=tuple(intakes.retracted),
            erased=tuple(intakes.erased),
            chunks=extracted.chunks,
            entities=extracted.entities + derived.entities,
            relationships=extracted.relationships + derived.relationships,
            claims=claims,
            merged=derived.merged,
            communities=clustered.communities,
            isolated=clustered.isolated,
            reports=followed.reports,
            dropped=dict(context.record.dropped),
            usage=context.record.usage,
            generation=pointer.generation if pointer else 0,
            readings=_incomplete_readings(intakes),
            renamed=tuple(intakes.renamed),
        )

    def _commit(self, context: IndexContext) -> None:
        context.report_progress("Publishing", 0, 1)
        added, removed = context.copy.changes()
        content = sorted(context.record.content)
        context.record.sync()
        key = context.librarian.put_parts(batch_lines(added, removed, content))
        context.copy.commit(
            {
                "batch": f"{v.URN}batch:{key}",
                "hash": key,
                "catalogue": context.catalogue,
                "run": self.iri,
            }
        )
        context.report_progress("Publishing", 1, 1)

    def _publish(self, context: IndexContext) -> None:
        context.copy.close()
        self._ledger.fold(timeout=PATIENCE, waiting=self._say_waiting)

    def _say_waiting(self) -> None:
        self._setup.message(
            "Another process is writing to the graph; waiting for the end of the process."
        )


def _incomplete_readings(intakes: IngestedFiles) -> dict[str, ReadingReport]:
    reports = {i.path: i.document.report for i in intakes.taken if i.document is not None}
    return {path: r for path, r in reports.items() if r is not None and not r.is_whole}


class IndexRun(Run):
    """An index run over files."""

    def run(
        self,
        files: Iterable[FoundFile],
        *,
        reinstate: bool = False,
        folders: Sequence[str] = (),
    ) -> IndexReport:
        """Index the files, publish the graph and return a report.

        ``folders`` are those in which the files were discovered: documents that are gone from
        them are noticed. Raise ``TgraphError`` if the whole run fails."""
        with self._workshop() as context:
            report = self._index_files(context, list(files), folders, reinstate)
        shutil.rmtree(self._ledger.folder.cache / CACHE, ignore_errors=True)  # published by now
        return report

    def reread(self, paths: Sequence[str]) -> IndexReport:
        """Read documents anew that an earlier version read otherwise, as ``reread_documents``."""
        with self._workshop() as context:
            started = context.begin(self.label)
            intakes = reread_documents(context, paths)
            report = self._index_intakes(context, started, intakes)
        shutil.rmtree(self._ledger.folder.cache / CACHE, ignore_errors=True)
        return report

    def _index_files(
        self,
        context: IndexContext,
        files: Sequence[FoundFile],
        folders: Sequence[str],
        reinstate: bool,
    ) -> IndexReport:
        started = context.begin(self.label)
        indexed_paths = IndexedPaths(context.copy.store)
        absent_files = [indexed_paths.find_absent(folder, files) for folder in folders]
        intakes = ingest_files(context, files, indexed_paths, reinstate=reinstate)
        report = self._index_intakes(context, started, intakes)
        renamed = {renaming.before for renaming in intakes.renamed}
        still_absent = (absent.without(renamed) for absent in absent_files)
        return replace(report, absent=tuple(absent for absent in still_absent if absent.paths))

    def _index_intakes(
        self, context: IndexContext, started: datetime, intakes: IngestedFiles
    ) -> IndexReport:
        extracted = extract_documents(context, intakes.taken, intakes.touched)
        claims = extract_claims(context, intakes.touched)
        return self._conclude(context, started, intakes, extracted, claims)


class UploadRun(IndexRun):
    """An index run over files that were sent; they have no place in a folder."""

    label = "Upload"


def describe_run(context: IndexContext, started: datetime, label: str) -> None:
    """Record the run itself, with its agents, prompts and drop counts."""
    agents = [SOFTWARE, context.extractor.agent, context.embedder.agent]
    context.copy.add(agent_quads(agents))
    context.copy.add(context.record.prompts(context.extractor.prompts))
    dropped, ended = dict(context.record.dropped), context.clock()
    context.copy.add(run_quads(context.run, label, started, ended, agents, dropped))
    context.record.end(ended)
