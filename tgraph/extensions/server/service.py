"""Service shared by all interfaces: open graphs, thread pools, limits."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import tgraph
from tgraph.engine.ask.question_run import AbandonedError
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import NoCollectionError, TgraphError
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.problems import BusyError
from tgraph.extensions.server.supervision import Supervisor
from tgraph.settings import Settings, load_settings
from tgraph.shortages import explained_shortages
from tgraph.store.folder import GraphFolder

log = logging.getLogger("tgraph.extensions.server")

T = TypeVar("T")
M = TypeVar("M")
R = TypeVar("R")

Pool = Literal["ask", "read", "audit"]
"""Which threads do it: long audits keep neither questions nor pages waiting."""

DOORS = (
    "api",
    "v1",
    "cited",
    "id",
    "sparql",
    "graphs",
    "mcp",
    "health",
    "ready",
    "metrics",
    "workbench",
)
"""The first part of the paths of each door."""

_END: Any = object()
_FOLD_EVERY = 1.0
_AHEAD = 64
"""Messages of a stream that wait for their reader."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Server limits.

    Limits cover concurrent questions, readings and audits, queue length for each, megabytes per
    upload, kilobytes per other request, seconds per query."""

    asking: int = 4
    reading: int = 4
    auditing: int = 2
    waiting: int = 100
    upload_mb: int = 100
    request_kb: int = 1024
    query_seconds: float = 60.0
    rows: int = 10_000


@dataclass
class Message(Generic[M]):
    """A stream message in transit to its reader."""

    value: M


@dataclass
class Counters:
    """Request counts since server start, for metrics."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    def count(self, door: str, status: int, seconds: float) -> None:
        """Count an answered request by interface; unknown interfaces count as "other"."""
        door_name = door if door in DOORS else "other"
        self.requests[door_name, status] += 1
        self.seconds[door_name] += seconds  # type: ignore[assignment]  # a counter of any number


class _Queue:
    """A thread pool with bounded queue."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, f"tgraph-{name}")
        self._most = threads + waiting
        self._lock = threading.Lock()
        self.taken = 0

    def submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self.taken >= self._most:
                raise BusyError("The server is overloaded.", "Try again in a moment.")
            self.taken += 1
        try:
            future = self._pool.submit(work)
        except BaseException:
            self._release_slot()
            raise
        future.add_done_callback(lambda _: self._release_slot())
        return future

    def _release_slot(self) -> None:
        with self._lock:
            self.taken -= 1

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class Service:
    """Open graphs of a folder, shared by all interfaces; one graph per collection.

    Work runs in threads, each with a separate view (``KnowledgeGraph.view``)."""

    def __init__(
        self,
        root: str | Path,
        limits: ServerLimits = ServerLimits(),
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.root = GraphFolder.open(Path(root)).path
        self.limits = limits
        self.settings = dict(settings or {})
        self._options = options
        self._graphs: dict[str, KnowledgeGraph] = {}
        self._opening = threading.Lock()
        self._queues: dict[Pool, _Queue] = {
            "ask": _Queue("ask", limits.asking, limits.waiting),
            "read": _Queue("read", limits.reading, limits.waiting),
            "audit": _Queue("audit", limits.auditing, limits.waiting),
        }
        self.stopping = threading.Event()
        self.counters = Counters()
        self.supervisor = Supervisor()

    def graph(self, collection: str) -> KnowledgeGraph:
        """Return an open collection; raise ``NoCollectionError`` for unknown collections."""
        with self._opening:
            if collection not in self._graphs:
                if not self._is_there(collection):  # which others there are is not for everybody
                    raise NoCollectionError(f"There is no collection {collection!r}.")
                self._graphs[collection] = tgraph.open(
                    self.root, collection=collection, settings=self.settings, **self._options
                )
            return self._graphs[collection]

    def _is_there(self, collection: str) -> bool:
        return collection in GraphFolder(self.root).collections()

    def forget(self, collection: str) -> None:
        """Close a collection before renaming or deletion."""
        with self._opening:
            graph = self._graphs.pop(collection, None)
        if graph is not None:
            graph.close()

    @cached_property
    def _graph_settings(self) -> Settings:
        return load_settings(self.root, self.settings)

    @property
    def default_collection(self) -> str:
        """The default collection from settings."""
        return self._graph_settings.collection

    @property
    def person(self) -> str | None:
        """The recorded person without tokens, from settings."""
        return self._graph_settings.person

    def waiting(self, pool: Pool) -> int:
        """Return the number of running and queued tasks in a pool."""
        return self._queues[pool].taken

    async def run(
        self,
        access: Access,
        collection: str,
        work: Callable[[KnowledgeGraph], T],
        *,
        pool: Pool = "read",
        settings: Mapping[str, Any] | None = None,
        message: Callable[[str], None] = log.info,
    ) -> T:
        """Run ``work`` on a collection view in a pool thread; return its result.

        Records name the ``access`` person for questions and decisions."""

        def run_work() -> T:
            with explained_shortages():
                graph = self.graph(collection)
                with graph.view(_settings_with_person(access, settings), message=message) as view:
                    return work(view)

        return await asyncio.wrap_future(self._queues[pool].submit(run_work))

    async def call(self, work: Callable[[], T], pool: Pool = "read") -> T:
        """What ``work`` gives, which needs no collection."""

        def call_work() -> T:
            with explained_shortages():
                return work()

        return await asyncio.wrap_future(self._queues[pool].submit(call_work))

    async def stream(
        self,
        access: Access,
        collection: str,
        begin: Callable[[KnowledgeGraph], Generator[M, None, R]],
        *,
        pool: Pool = "ask",
        settings: Mapping[str, Any] | None = None,
        message: Callable[[str], None] = log.info,
    ) -> AsyncIterator[Message[M] | R]:
        """Yield stream messages live, finally the stream's return value.

        Leaving early abandons the stream, and the record says so."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        room = threading.Semaphore(_AHEAD)
        stop_event = threading.Event()

        def tell(value: Any) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, value)

        def stream_work() -> None:
            try:
                with explained_shortages():
                    graph = self.graph(collection)
                    with graph.view(
                        _settings_with_person(access, settings), message=message
                    ) as view:
                        tell(_forward_messages(begin(view), tell, room, stop_event))
            except BaseException as error:
                tell(error)
            finally:
                tell(_END)

        future = self._queues[pool].submit(stream_work)
        try:
            while (value := await queue.get()) is not _END:
                room.release()
                if isinstance(value, AbandonedError):
                    continue
                if isinstance(value, BaseException):
                    raise value
                yield value
        finally:
            stop_event.set()
            room.release()
            future.cancel()

    async def pieces(
        self,
        access: Access,
        collection: str,
        begin: Callable[[KnowledgeGraph], Iterator[M]],
        *,
        pool: Pool = "read",
    ) -> AsyncIterator[M]:
        """Yield items from a collection iterator; close the iterator when the consumer stops."""

        def stream(graph: KnowledgeGraph) -> Generator[M, None, None]:
            iterator = begin(graph)
            try:
                yield from iterator
            finally:
                close = getattr(iterator, "close", None)
                if close is not None:
                    close()

        async for stream_item in self.stream(access, collection, stream, pool=pool):
            if isinstance(stream_item, Message):
                yield stream_item.value

    # --- life ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the service from start to shutdown.

        Finished sessions are folded continuously; shutdown completes all started work."""
        folding = asyncio.create_task(
            self.supervisor.keep_running("Folding of finished sessions", self._keep_folding)
        )
        try:
            yield
        finally:
            self.stopping.set()
            folding.cancel()
            with suppress(asyncio.CancelledError):
                await folding
            await asyncio.to_thread(self.close)

    async def _keep_folding(self, succeed: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(_FOLD_EVERY)
            faults: list[Exception] = []
            for graph in list(self._graphs.values()):
                try:
                    await asyncio.to_thread(graph.opened.fold)
                except (TgraphError, OSError) as error:
                    faults.append(error)
            if faults:  # the other collections are folded
                raise faults[0]
            succeed()

    def close(self) -> None:
        """Finish running work, then close all graphs."""
        for queue in self._queues.values():
            queue.close()
        for collection in list(self._graphs):
            self.forget(collection)


def _settings_with_person(access: Access, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return settings including the recorded person."""
    person = {"person": access.person} if access.person else {}
    return {**(settings or {}), **person}


def _forward_messages(
    stream: Generator[M, None, R],
    tell: Callable[[Any], None],
    room: threading.Semaphore,
    left: threading.Event,
) -> R:
    """Tell each message while somebody listens; what the stream returns."""
    try:
        while True:
            room.acquire()
            value = stream.throw(AbandonedError()) if left.is_set() else next(stream)
            tell(Message(value))
    except StopIteration as end:
        result: R = end.value
        return result
    finally:
        stream.close()
