"""Indexing: documents in, a published graph out; all of it, or, if it is interrupted, none of it.

The run works on a private copy of the store. Model replies and extractions are kept as they come,
so that the next run continues where this one was stopped. Design, sections 3.4 to 3.6.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from tgraph import vocabulary as v
from tgraph.engine.clustering import Clustered, cluster
from tgraph.engine.cooccurring import tie
from tgraph.engine.describing import describe
from tgraph.engine.embedding import CACHE, embed, remembering
from tgraph.engine.garbage import seldom_collected
from tgraph.engine.index.extraction import Extracted, claim, extract
from tgraph.engine.intake import Intakes, take_in
from tgraph.engine.parts import Parts
from tgraph.engine.progress import OnMessage, OnProgress, mute, silent
from tgraph.engine.reporting import write_reports
from tgraph.engine.situating import situate
from tgraph.engine.workshop import Workshop
from tgraph.errors import IngestError
from tgraph.index.descriptions import Described, Descriptions, touch_unsummarised
from tgraph.index.knowledge import Derivation, Touched
from tgraph.index.lookup_table import LazyTable, LookupTable, tabulate
from tgraph.index.sources import document_of_chunk, standing_documents
from tgraph.ingest.discover import Found
from tgraph.model import Usage
from tgraph.record.agents import SOFTWARE, agent_quads
from tgraph.record.ledger import Ledger, batch_lines
from tgraph.record.merges import merge_quads, standing_merges
from tgraph.record.run import RunRecord
from tgraph.record.sources import run_quads
from tgraph.record.splits import standing_splits
from tgraph.settings import Settings
from tgraph.store.files import exclusive
from tgraph.store.snapshot import read_pointer
from tgraph.store.writer import WorkingCopy, abandoned

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one. A change that is committed by then is
not lost: the next command applies it."""


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


@dataclass(frozen=True, slots=True)
class _Found:
    """What the phases came to."""

    extracted: Extracted
    claims: int
    derived: Derived
    clustered: Clustered
    reports: int


class Run:
    """A change of the graph: prepared on a working copy, and committed whole or not at all.

    The index lock is held from beginning to end.
    """

    kind = "run"
    busy = "Another index run is at work on this collection; waiting for it to finish."

    def __init__(
        self,
        ledger: Ledger,
        parts: Parts,
        settings: Settings,
        uuid: str,
        clock: Callable[[], datetime],
        catalogue: str,
        progress: OnProgress = silent,
        message: OnMessage = mute,
    ) -> None:
        self.iri = f"{v.URN}{self.kind}:{uuid}"
        self._uuid = uuid
        self._ledger = ledger
        self._parts = parts
        self._settings = settings
        self._extractor = parts.extractor
        self._embedder = remembering(parts.embedder, ledger.folder.cache)
        self._clock = clock
        self._catalogue = catalogue
        self._progress = progress
        self._message = message

    @contextmanager
    def _workshop(self) -> Iterator[Workshop]:
        """A working copy and all that a phase needs; what is not committed at the end is gone."""
        folder = self._ledger.folder
        waiting = partial(self._message, self.busy)
        with exclusive(folder.index_lock, timeout=None, waiting=waiting), seldom_collected():
            for leftover in abandoned(folder):
                shutil.rmtree(leftover, ignore_errors=True)
            with self._ledger.open(timeout=PATIENCE, waiting=self._say_waiting) as (store, _):
                copy = WorkingCopy(folder, self._uuid, store)
            try:
                with LazyTable(partial(tabulate, copy.store)) as table:
                    yield self._furnished(copy, table)
            finally:
                copy.close()

    def _furnished(self, copy: WorkingCopy, table: LazyTable[LookupTable]) -> Workshop:
        return Workshop(
            run=self.iri,
            uuid=self._uuid,
            copy=copy,
            table=table,
            record=RunRecord(self._ledger.librarian, self.iri, self._uuid),
            librarian=self._ledger.librarian,
            settings=self._settings,
            parts=self._parts,
            extractor=self._extractor,
            embedder=self._embedder,
            clock=self._clock,
            progress=self._progress,
            message=self._message,
        )

    def _commit(self, shop: Workshop) -> None:
        shop.show("Publishing", 0, 1)
        added, removed = shop.copy.changes()
        content = sorted(shop.record.content)
        shop.record.sync()
        key = shop.librarian.put_parts(batch_lines(added, removed, content))
        shop.copy.commit(
            {
                "batch": f"{v.URN}batch:{key}",
                "hash": key,
                "catalogue": self._catalogue,
                "run": self.iri,
            }
        )
        shop.show("Publishing", 1, 1)

    def _publish(self, shop: Workshop) -> None:
        shop.copy.close()
        self._ledger.fold(timeout=PATIENCE, waiting=self._say_waiting)

    def _say_waiting(self) -> None:
        self._message("Another process is writing to the graph; waiting for it to finish.")


class IndexRun(Run):
    """One run over some files."""

    def run(self, files: Iterable[Found], *, reinstate: bool = False) -> IndexReport:
        """Take the files in and publish. Raises ``TgraphError`` where the run as a whole fails."""
        with self._workshop() as shop:
            report = self._run(shop, files, reinstate)
        shutil.rmtree(self._ledger.folder.cache / CACHE, ignore_errors=True)  # published by now
        return report

    def _run(self, shop: Workshop, files: Iterable[Found], reinstate: bool) -> IndexReport:
        started = shop.clock()
        intakes = take_in(shop, files, reinstate=reinstate)
        extracted = extract(shop, intakes.taken, intakes.touched)
        claims = claim(shop, intakes.touched)
        derived = derive(shop, intakes.touched, started)
        describe(shop, derived.undescribed)
        clustered = cluster(shop)
        reports = write_reports(shop)
        situate(shop)
        vectors = embed(shop, self._ledger)
        if shop.copy.changed or vectors:
            describe_run(shop, started)
            self._commit(shop)
        self._publish(shop)
        found = _Found(extracted, claims, derived, clustered, reports)
        return self._report(shop, intakes, found)

    def _report(self, shop: Workshop, intakes: Intakes, found: _Found) -> IndexReport:
        pointer = read_pointer(self._ledger.folder)
        return IndexReport(
            run=self.iri,
            indexed=tuple(intake.path for intake in intakes.taken),
            unchanged=tuple(intakes.unchanged),
            superseded=tuple(i.path for i in intakes.taken if i.supersedes),
            failed=tuple(intakes.failed),
            retracted=tuple(intakes.retracted),
            erased=tuple(intakes.erased),
            chunks=found.extracted.chunks,
            entities=found.extracted.entities + found.derived.entities,
            relationships=found.extracted.relationships + found.derived.relationships,
            claims=found.claims,
            merged=found.derived.merged,
            communities=found.clustered.communities,
            isolated=found.clustered.isolated,
            reports=found.reports,
            dropped=dict(shop.record.dropped),
            usage=shop.record.usage,
            generation=pointer.generation if pointer else 0,
        )


@dataclass(frozen=True, slots=True)
class Derived:
    """How many names were merged, what has several descriptions and no summary of them yet, and
    how much was found in sentences that state nothing by themselves."""

    merged: int
    undescribed: Mapping[str, Described]
    entities: int = 0
    relationships: int = 0


def derive(shop: Workshop, touched: Touched, started: datetime) -> Derived:
    """Bring knowledge up to date with the touched evidence."""
    copy, summariser = shop.copy, shop.parts.summariser
    descriptions = Descriptions(copy.store, summariser.key if summariser else None)
    if summariser:
        touch_unsummarised(copy.store, touched)
    tied = tie(shop, touched)
    standing = standing_documents(copy.store)
    derivation = Derivation(
        copy.store,
        standing_merges(copy.store),
        lambda chunk: document_of_chunk(chunk) in standing,
        standing_splits(copy.store).values(),
        descriptions.of,
        tied.weigh if tied else None,
    )
    change = derivation.run(touched, lambda done, total: shop.show("Resolving", done, total))
    copy.remove(change.removed)
    copy.add(change.added)
    merges = merge_quads(
        copy.store, shop.run, started, shop.clock(), change.merged, change.unmerged
    )
    copy.add(merges)
    found = (tied.entities, tied.relationships) if tied else (0, 0)
    return Derived(len(change.merged), descriptions.pending, *found)


def describe_run(shop: Workshop, started: datetime) -> None:
    """Put the run itself on record."""
    agents = [SOFTWARE, shop.extractor.agent, shop.embedder.agent]
    shop.copy.add(agent_quads(agents))
    shop.copy.add(shop.record.prompts(shop.extractor.prompts))
    dropped = dict(shop.record.dropped)
    shop.copy.add(run_quads(shop.run, started, shop.clock(), agents, dropped))
