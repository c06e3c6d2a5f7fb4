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
    """What a run changed, as far as that is known: the ``keys`` of what is derived, the ``network``
    of entities, the ``communities`` that are new or gone and all that were ``divided`` with them,
    those whose report was looked at, and the ``makers``. Where it isn't, all that is derived is
    made anew."""

    keys: ChangedKeys | None = None
    network: EntityNetwork | None = None
    communities: set[str] | None = field(default_factory=set)
    divided: dict[str, Community] = field(default_factory=dict)
    reported: set[str] | None = None
    makers: Makers = field(default_factory=Makers)


@dataclass(frozen=True)
class IndexContext(RunSetup):
    """One run's place of work. ``run`` is the run's IRI, ``uuid`` what hangs on it is named by.

    ``table`` is the evidence of the copy as the first who asks for it finds it: for phases that
    come after all evidence is there. ``changes`` is what is known of the run by then.
    """

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
        """The evidence of the ``table``; who waits is told of what has to be left out."""
        texts = Texts(self.copy.store, self.librarian)
        graph: GraphSource = StoredGraph(self.copy.store) if self.is_large else self.table()
        return EvidenceReader(graph.evidence, texts, lambda error: self.message(left_out(error)))

    @property
    def is_large(self) -> bool:
        """Whether a large graph stands, of which no tables are made: they would hold all of it."""
        return not lexical_documents(self.copy.store).isdisjoint(
            standing_documents(self.copy.store)
        )

    @property
    def makers_before(self) -> Makers:
        """Who made what was derived of the knowledge that the run began with."""
        folder, pointer = self.ledger.folder, read_pointer(self.ledger.folder)
        return makers_of(folder.vectors, pointer.generation) if pointer else Makers()

    def note_changes(self, touched: Touched) -> None:
        """From here on it is known what the run changed: the evidence of what is ``touched``, and
        what followed from that."""
        quads = self.copy.changed_quads
        if quads is not None and not lexical_documents(self.copy.store):
            merges = standing_merges(self.copy.store)
            self.changes.keys = changed_keys(self.copy.store, quads, touched, merges)

    def cancel(self) -> None:
        """End what is under way, by models and by others."""
        self.parts.cancel()
        if self.workers:
            self.workers.cancel()

    def begin(self, label: str) -> datetime:
        """The run has begun; when."""
        started = self.clock()
        self.record.begin(label, started)
        return started

    def show(self, stage: str, done: int, total: int, detail: str = "") -> None:
        """Tell who waits how far a stage is, and what the run has cost."""
        self.record.observer.entered(stage)
        self.progress(Progress(stage, done, total, self.record.usage, detail))


AHEAD = 32
"""Items, for each that is worked on at the same time, whose results may wait for one before."""

GRACE = 10.0
"""Seconds for calls under way to bring their replies, when the endpoint has refused another."""


class Maker(Protocol):
    """Who does the work of a phase: a model with its prompts, or a method that is built in."""

    @property
    def agent(self) -> Agent: ...

    @property
    def prompts(self) -> Sequence[Prompt]: ...


Item = TypeVar("Item")
Result = TypeVar("Result")
M = TypeVar("M", bound=Maker)


@dataclass(frozen=True, slots=True)
class Made(Generic[Result, M]):
    """What was made of an item and by whom; ``error`` where that is not who was asked."""

    result: Result
    by: M
    error: str = ""


class Phase(ABC, Generic[Item, Result, M]):
    """The work of one stage. A reply that can't be used costs its item, not the run: what takes its
    place is recorded, told, and counted as ``unusable``."""

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
        """How many items are worked on at the same time."""
        if self.by_model:
            return self.context.settings.chat.concurrency
        return self.context.workers.slots if self.context.workers and self._is_helped else 1

    def run(self, items: Sequence[Item]) -> None:
        """All of the stage: each item is worked on and put on record, in their order."""
        self.begin(len(items))
        self.go_on(items)

    def begin(self, total: int) -> None:
        """A stage of so many items, of which none is done."""
        self.done, self.total = 0, total
        self._show()

    def go_on(self, items: Sequence[Item]) -> None:
        """Some of the items."""
        context = self.context
        with closing(self._each(items)) as each:
            for item, made, began in each:
                context.record.write_calls(context.copy)
                self.record(item, made, began)
                context.record.dropped.update(self.dropped(made))
                if made.error:
                    context.message(self.complaint(item, made))
                self.done += 1
                self._show()

    @abstractmethod
    def make(self, item: Item, maker: M, sink: CallSink) -> Result:
        """The result, from any thread. ``ModelError`` where a reply can't be used."""

    def fall_back(self, item: Item, error: str) -> Made[Result, M]:
        """What takes the place of a reply that can't be used, from any thread."""
        maker = self.stand_in()
        return Made(self.make(item, maker, self.context.record.call), maker, error)

    def stand_in(self) -> M:
        """Who does it without a model."""
        raise NotImplementedError

    @abstractmethod
    def record(self, item: Item, made: Made[Result, M], began: datetime) -> None:
        """Put the result on record and into knowledge."""

    def dropped(self, made: Made[Result, M]) -> Mapping[str, int]:
        """What was left out of the result, by reason."""
        return {self.unusable: 1} if made.error else {}

    @abstractmethod
    def complaint(self, item: Item, made: Made[Result, M]) -> str:
        """What is said of a reply that couldn't be used."""

    def credit(self, maker: Maker) -> None:
        """Put on record who makes something, and by which prompts."""
        copy = self.context.copy
        copy.add([*agent_quads([maker.agent]), *self.context.record.prompts(maker.prompts)])

    def authorship(self, made: Made[Result, M], began: datetime) -> Authorship:
        """Who made it, until now."""
        context, by = self.context, made.by
        ended = context.clock()
        return Authorship(context.run, by.agent, by.prompts, began, ended, made.error)

    def _show(self) -> None:
        self.context.show(self.stage, self.done, self.total)

    def attempt(self, item: Item) -> Made[Result, M]:
        """What is made of an item, from any thread."""
        try:
            return Made(self.make(item, self.maker, self.context.record.call), self.maker)
        except EndpointError:
            raise
        except ModelError as error:
            return self.fall_back(item, str(error))

    def _each(
        self, items: Sequence[Item]
    ) -> Generator[tuple[Item, Made[Result, M], datetime], None, None]:
        """What was made of each item and when that began.

        Work that waits for a model or another process is done for several at the same time, as
        many as ``at_once`` says; if it is interrupted or closed, calls under way end at once.
        Where the endpoint fails, no more is begun, and what is under way may end.
        """
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
                more = islice(ahead, AHEAD * self.at_once - len(futures))
                futures.extend(pool.submit(self.attempt, each) for each in more)
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
