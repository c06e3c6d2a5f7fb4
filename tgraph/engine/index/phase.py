"""A phase of an index run, and what all phases share: copy, components, record.

A stage is a function of a ``IndexContext``. It reads and changes ``copy``, asks the models that
``parts`` gives it, passes their calls to ``record.call``, and shows how far it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import ClassVar, Generic, Protocol, TypeVar

from tgraph.engine.index.workers import Workers
from tgraph.engine.progress import Progress, RunSetup
from tgraph.errors import EndpointError, ModelError
from tgraph.extract.base import Extractor
from tgraph.index.changed_keys import ChangedKeys, changed_keys
from tgraph.index.entity_network import EntityNetwork
from tgraph.index.evidence import EvidenceReader, left_out
from tgraph.index.graph_source import GraphSource
from tgraph.index.lookup_table import LookupTable
from tgraph.index.reports.report_table import Makers, makers_of
from tgraph.index.sources import Texts, lexical_documents, standing_documents
from tgraph.index.sqlite_files import LazyTable
from tgraph.index.stored_graph import StoredGraph
from tgraph.index.touched import Touched
from tgraph.librarian import Librarian
from tgraph.model import Agent, Community, Prompt
from tgraph.models.base import CallSink, Embedder
from tgraph.record.activities import Authorship, agent_quads
from tgraph.record.merges import standing_merges
from tgraph.record.recorder import RunRecord
from tgraph.store.snapshot import read_pointer
from tgraph.store.writer import WorkingCopy


@dataclass(slots=True)
class RunChanges:
    """Known changes of a run: ``touched`` evidence, derived ``keys``, entity ``network``, new or
    removed ``communities``, all communities ``divided`` with them, communities with ``reported``
    reports, and ``makers``.

    Where changes are unknown, all derived content is made anew."""

    touched: Touched = field(default_factory=Touched)
    keys: ChangedKeys | None = None
    network: EntityNetwork | None = None
    communities: set[str] | None = field(default_factory=set)
    divided: dict[str, Community] = field(default_factory=dict)
    reported: set[str] | None = None
    makers: Makers = field(default_factory=Makers)


@dataclass(frozen=True)
class IndexContext(RunSetup):
    """The working environment of one run: ``run`` is its IRI, ``uuid`` names dependent
    resources.

    ``table`` holds the copy's evidence at first use, for phases after all evidence is complete.
    ``changes`` holds the changes known by then."""

    run: str
    copy: WorkingCopy
    table: LazyTable[LookupTable]
    changes: RunChanges
    record: RunRecord
    extractor: Extractor
    embedder: Embedder
    workers: Workers | None

    @property
    def librarian(self) -> Librarian:
        return self.ledger.librarian

    @property
    def evidence(self) -> EvidenceReader:
        """Return an evidence reader for the ``table``, reporting omitted evidence as messages."""
        texts = Texts(self.copy.store, self.librarian)
        graph: GraphSource = StoredGraph(self.copy.store) if self.is_large else self.table()
        return EvidenceReader(graph.evidence, texts, lambda error: self.message(left_out(error)))

    @property
    def is_large(self) -> bool:
        """Tell whether a large graph stands. No tables are built for large graphs: tables would
        hold the entire graph."""
        return not lexical_documents(self.copy.store).isdisjoint(
            standing_documents(self.copy.store)
        )

    @property
    def makers_before(self) -> Makers:
        """Return makers of derived content in the generation before this run."""
        folder, pointer = self.ledger.folder, read_pointer(self.ledger.folder)
        return makers_of(folder.vectors, pointer.generation) if pointer else Makers()

    def note_changes(self, touched: Touched) -> None:
        """Note changed keys of a run, from ``touched`` evidence and resulting quads."""
        self.changes.touched = touched
        quads = self.copy.changed_quads
        if quads is not None and not lexical_documents(self.copy.store):
            merges = standing_merges(self.copy.store)
            self.changes.keys = changed_keys(self.copy.store, quads, touched, merges)

    def cancel(self) -> None:
        """Cancel running work of models and worker processes."""
        self.parts.cancel()
        if self.workers:
            self.workers.cancel()

    def begin(self, label: str) -> datetime:
        """Record the start of a run and return its start time."""
        started = self.clock()
        self.record.begin(label, started)
        return started

    def report_progress(self, stage: str, done: int, total: int, detail: str = "") -> None:
        """Report stage progress and run costs to the observer."""
        self.record.observer.handle_phase(stage)
        self.progress(Progress(stage, done, total, self.record.usage, detail))


AHEAD = 32
"""Items, for each that is worked on at the same time, whose results may wait for one before."""

GRACE = 10.0
"""Seconds for calls under way to bring their replies, when the endpoint has refused another."""


class Maker(Protocol):
    """An agent that performs phase work: a model with prompts, or a built-in method."""

    @property
    def agent(self) -> Agent: ...

    @property
    def prompts(self) -> Sequence[Prompt]: ...


Item = TypeVar("Item")
Result = TypeVar("Result")
M = TypeVar("M", bound=Maker)


@dataclass(frozen=True, slots=True)
class Made(Generic[Result, M]):
    """An item's result with its maker; ``error`` explains why a fallback replaced the requested
    maker."""

    result: Result
    by: M
    error: str = ""


class Phase(ABC, Generic[Item, Result, M]):
    """A processing stage with recorded results.

    An unusable reply loses its item, not the run: the fallback result is recorded, reported,
    and counted as ``unusable``."""

    stage: ClassVar[str]
    unusable: ClassVar[str]

    def __init__(self, context: IndexContext, maker: M) -> None:
        self.context = context
        self.maker = context.workers.helping(maker) if context.workers else maker
        self._is_helped = self.maker is not maker
        self.done = self.total = 0

    @property
    def by_model(self) -> bool:
        return self.maker.agent.kind == "model"

    @property
    def at_once(self) -> int:
        """Return the number of items processed concurrently."""
        if self.by_model:
            return self.context.settings.chat.concurrency
        return self.context.workers.slots if self.context.workers and self._is_helped else 1

    def run(self, items: Sequence[Item]) -> None:
        """Process all items of a stage and record results in item order."""
        self.begin(len(items))
        self.go_on(items)

    def begin(self, total: int) -> None:
        """Begin a stage with ``total`` pending items."""
        self.done, self.total = 0, total
        self._show_progress()

    def go_on(self, items: Sequence[Item]) -> None:
        """Process and record some items of the stage."""
        context = self.context
        with closing(self._iterate_results(items)) as results:
            for item, result, began in results:
                context.record.write_calls(context.copy)
                self.record(item, result, began)
                context.record.dropped.update(self.count_dropped(result))
                if result.error:
                    context.message(self.complaint(item, result))
                elif loss := self.partial_loss(item, result):
                    context.message(loss)
                self.done += 1
                self._show_progress()

    @abstractmethod
    def produce_result(self, item: Item, maker: M, sink: CallSink) -> Result:
        """Return an item's result; callable from any thread.

        Raise ``ModelError`` if a reply is unusable."""

    def fall_back(self, item: Item, error: str) -> Made[Result, M]:
        """Return a fallback result for an unusable reply; callable from any thread."""
        maker = self.stand_in()
        return Made(self.produce_result(item, maker, self.context.record.call), maker, error)

    def stand_in(self) -> M:
        """Return a maker that works without a model."""
        raise NotImplementedError

    @abstractmethod
    def record(self, item: Item, made: Made[Result, M], began: datetime) -> None:
        """Record a result and add it to knowledge."""

    def count_dropped(self, made: Made[Result, M]) -> Mapping[str, int]:
        """Return counts of content dropped from a result, by reason."""
        return {self.unusable: 1} if made.error else {}

    @abstractmethod
    def complaint(self, item: Item, made: Made[Result, M]) -> str:
        """Return a message about an unusable reply."""

    def partial_loss(self, item: Item, made: Made[Result, M]) -> str:
        """Return a message about a result that lacks a part; blank: the result is whole."""
        return ""

    def credit(self, maker: Maker) -> None:
        """Record a maker's agent and prompts."""
        copy = self.context.copy
        copy.add([*agent_quads([maker.agent]), *self.context.record.prompts(maker.prompts)])

    def authorship(self, made: Made[Result, M], began: datetime) -> Authorship:
        """Return the authorship of a result that ends now: agent, prompts, times and error."""
        context, by = self.context, made.by
        ended = context.clock()
        return Authorship(context.run, by.agent, by.prompts, began, ended, made.error)

    def _show_progress(self) -> None:
        self.context.report_progress(self.stage, self.done, self.total)

    def attempt(self, item: Item) -> Made[Result, M]:
        """Return an item's result, or a fallback result after a model error; callable from any
        thread."""
        try:
            return Made(self.produce_result(item, self.maker, self.context.record.call), self.maker)
        except EndpointError:
            raise
        except ModelError as error:
            return self.fall_back(item, str(error))

    def _iterate_results(
        self, items: Sequence[Item]
    ) -> Generator[tuple[Item, Made[Result, M], datetime], None, None]:
        """Yield each item with its result and start time.

        Work that waits for a model or another process runs concurrently, up to ``at_once``
        items; interruption or closing ends pending calls immediately. After an endpoint failure
        no new work begins, and pending work may end."""
        context = self.context
        if not self.by_model and self.at_once == 1:
            for item in items:
                began = context.clock()
                yield item, self.attempt(item), began
            return
        pool = ThreadPoolExecutor(self.at_once, "index")
        futures: deque[Future[Made[Result, M]]] = deque()
        ahead = iter(items)
        try:
            began = context.clock()
            for item in items:
                next_items = islice(ahead, AHEAD * self.at_once - len(futures))
                futures.extend(pool.submit(self.attempt, next_item) for next_item in next_items)
                yield item, futures[0].result(), began
                futures.popleft()
        except EndpointError:
            for future in futures:
                future.cancel()
            wait(futures, timeout=GRACE)  # what has been asked for is paid for
            context.cancel()
            raise
        except BaseException:
            context.cancel()  # replies that came already are not lost
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
