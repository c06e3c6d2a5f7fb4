"""Indexing: documents in, a published graph out; all of it, or, if it is interrupted, none of it.

The run works on a private copy of the store. Model replies and extractions are kept as they come,
so that the next run continues where this one was stopped. Design, sections 3.4 to 3.6.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from tgraph import vocabulary as v
from tgraph.engine.garbage import seldom_collected
from tgraph.engine.index.derivation import follow_up
from tgraph.engine.index.document_ingest import IngestedFiles, ingest_files
from tgraph.engine.index.embeddings import CACHE, remembering
from tgraph.engine.index.extraction import Extracted, claim, extract
from tgraph.engine.index.given_communities import BroughtCommunities
from tgraph.engine.index.ontology_led import led
from tgraph.engine.index.phase import IndexContext, RunChanges
from tgraph.engine.index.workers import Workers, open_workers
from tgraph.engine.progress import RunSetup
from tgraph.errors import IngestError
from tgraph.extract.base import Extractor
from tgraph.index.lookup_table import LookupTable, load_table
from tgraph.index.sqlite_files import LazyTable
from tgraph.index.tabulation import make_tables
from tgraph.ingest.files import FoundFile
from tgraph.model import Usage
from tgraph.models.base import Embedder
from tgraph.record.activities import SOFTWARE, agent_quads
from tgraph.record.ledger import batch_lines
from tgraph.record.recorder import RunRecord
from tgraph.record.sources import run_quads
from tgraph.store.base import Store
from tgraph.store.files import exclusive
from tgraph.store.snapshot import read_pointer
from tgraph.store.writer import WorkingCopy, abandoned

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one. A change that is committed by then is
not lost: the next command applies it."""

BUSY = "An index run is at work on this collection; waiting for it to finish."


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a run of ``index`` did.

    ``entities`` and ``relationships`` count what was read in each chunk, so that a name that many
    chunks hold counts in each.

    ``retracted`` names files that stay out because their content was retracted, ``erased`` those
    whose content was erased.
    ``failed`` names each file that could not be taken in, with the reason. ``generation`` is that
    of the published knowledge, ``communities`` counts all that it holds, and ``isolated`` the
    entities that are in none. ``dropped`` counts what extractors left out, by reason.
    """

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


class Run:
    """A change of the graph: prepared on a working copy, and committed whole or not at all.

    The index lock is held from beginning to end.
    """

    kind = "run"
    label = "Index run"
    busy = "Another index run is at work on this collection; waiting for it to finish."

    def __init__(self, setup: RunSetup) -> None:
        self.iri = f"{v.URN}{self.kind}:{setup.uuid}"
        self._setup = setup
        self._ledger = setup.ledger
        self._extractor = setup.parts.extractor

    @contextmanager
    def _workshop(self) -> Iterator[IndexContext]:
        """A working copy and all that a phase needs; what is not committed at the end is gone."""
        folder = self._ledger.folder
        waiting = partial(self._setup.message, self.busy)
        with exclusive(folder.index_lock, timeout=None, waiting=waiting), seldom_collected():
            for leftover in abandoned(folder):
                shutil.rmtree(leftover, ignore_errors=True)
            with self._ledger.open(timeout=PATIENCE, waiting=self._say_waiting) as (store, _):
                copy = WorkingCopy(folder, self._setup.uuid, store)
            workers = open_workers(self._setup.settings.executor)
            try:
                record = RunRecord(self._ledger.librarian, self.iri, self._setup.uuid)
                record.observer = self._setup.observe()
                changes = RunChanges()
                with self._tables(copy, changes) as table, record.under_way():
                    yield IndexContext(
                        **vars(self._setup),
                        run=self.iri,
                        copy=copy,
                        table=table,
                        changes=changes,
                        record=record,
                        extractor=self._led(copy.store),
                        embedder=self._embedder_of(workers),
                        workers=workers,
                    )
            finally:
                copy.close()
                if workers:
                    workers.close()

    @contextmanager
    def _tables(self, copy: WorkingCopy, changes: RunChanges) -> Iterator[LazyTable[LookupTable]]:
        """The tables of the copy, made with the help of those that are published."""
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
        own = self._setup.parts.embedder
        helped = workers.embedding(own) if workers else own
        return remembering(helped, self._ledger.folder.cache)

    def _led(self, store: Store) -> Extractor:
        """Who reads chunks, led by the ontologies that stand."""
        return led(self._extractor, store, self._ledger.librarian, self._setup.settings)

    def _conclude(
        self,
        context: IndexContext,
        started: datetime,
        intakes: IngestedFiles,
        extracted: Extracted,
        claims: int,
        brought: Iterable[BroughtCommunities] = (),
    ) -> IndexReport:
        """Derive what follows from what was read, and publish it."""
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
        )

    def _commit(self, context: IndexContext) -> None:
        context.show("Publishing", 0, 1)
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
        context.show("Publishing", 1, 1)

    def _publish(self, context: IndexContext) -> None:
        context.copy.close()
        self._ledger.fold(timeout=PATIENCE, waiting=self._say_waiting)

    def _say_waiting(self) -> None:
        self._setup.message("Another process is writing to the graph; waiting for it to finish.")


class IndexRun(Run):
    """One run over some files."""

    def run(self, files: Iterable[FoundFile], *, reinstate: bool = False) -> IndexReport:
        """Take the files in and publish. Raises ``TgraphError`` where the run as a whole fails."""
        with self._workshop() as context:
            report = self._run(context, files, reinstate)
        shutil.rmtree(self._ledger.folder.cache / CACHE, ignore_errors=True)  # published by now
        return report

    def _run(
        self, context: IndexContext, files: Iterable[FoundFile], reinstate: bool
    ) -> IndexReport:
        started = context.begin(self.label)
        intakes = ingest_files(context, files, reinstate=reinstate)
        extracted = extract(context, intakes.taken, intakes.touched)
        claims = claim(context, intakes.touched)
        return self._conclude(context, started, intakes, extracted, claims)


def describe_run(context: IndexContext, started: datetime, label: str) -> None:
    """Put the run itself on record."""
    agents = [SOFTWARE, context.extractor.agent, context.embedder.agent]
    context.copy.add(agent_quads(agents))
    context.copy.add(context.record.prompts(context.extractor.prompts))
    dropped, ended = dict(context.record.dropped), context.clock()
    context.copy.add(run_quads(context.run, label, started, ended, agents, dropped))
    context.record.end(ended)
