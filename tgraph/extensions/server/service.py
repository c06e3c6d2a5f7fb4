"""What all doors share: the open graphs, the threads in which they are used, and the limits."""

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
from tgraph.settings import Settings, load_settings
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
    """What a server takes on: questions, readings and audits at the same time and how many of each
    may wait; the megabytes of an upload and of any other request; seconds of a query."""

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
    """A message of a stream on its way to its reader."""

    value: M


@dataclass
class Counters:
    """What has been done since the start, for metrics."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    def count(self, door: str, status: int, seconds: float) -> None:
        """A request to a door was answered; what is no door's name is counted together."""
        known = door if door in DOORS else "other"
        self.requests[known, status] += 1
        self.seconds[known] += seconds  # type: ignore[assignment]  # a counter of any number


class _Queue:
    """A pool of threads with a bound on what waits for it."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, f"tgraph-{name}")
        self._most = threads + waiting
        self._lock = threading.Lock()
        self.taken = 0

    def submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self.taken >= self._most:
                raise BusyError("The server has too much to do.", "Try again in a moment.")
            self.taken += 1
        try:
            future = self._pool.submit(work)
        except BaseException:
            self._release()
            raise
        future.add_done_callback(lambda _: self._release())
        return future

    def _release(self) -> None:
        with self._lock:
            self.taken -= 1

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class Service:
    """The graphs of a folder, each collection open once, for all doors of one process.

    What is done in them is done in threads, each with a view of its own (``KnowledgeGraph.view``).
    """

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

    def graph(self, collection: str) -> KnowledgeGraph:
        """The collection, open. ``NoCollectionError`` where there is none."""
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
        """Let go of a collection that is to be renamed or deleted."""
        with self._opening:
            graph = self._graphs.pop(collection, None)
        if graph is not None:
            graph.close()

    @cached_property
    def _own(self) -> Settings:
        return load_settings(self.root, self.settings)

    @property
    def default_collection(self) -> str:
        """That of the settings."""
        return self._own.collection

    @property
    def person(self) -> str | None:
        """Who is on record where there are no tokens, as the settings say."""
        return self._own.person

    def waiting(self, pool: Pool) -> int:
        """What is done or waits in a pool."""
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
        """What ``work`` gives of a view of the collection, in a thread of the pool. The person of
        the ``access`` is on record for what it asks and decides."""

        def done() -> T:
            graph = self.graph(collection)
            with graph.view(_of(access, settings), message=message) as view:
                return work(view)

        return await asyncio.wrap_future(self._queues[pool].submit(done))

    async def call(self, work: Callable[[], T], pool: Pool = "read") -> T:
        """What ``work`` gives, which needs no collection."""
        return await asyncio.wrap_future(self._queues[pool].submit(work))

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
        """The messages of a stream as they happen, and at the end what it returned. A stream that
        is left before its end is abandoned, and its record says so."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        room = threading.Semaphore(_AHEAD)
        left = threading.Event()

        def tell(value: Any) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, value)

        def done() -> None:
            try:
                graph = self.graph(collection)
                with graph.view(_of(access, settings), message=message) as view:
                    tell(_drained(begin(view), tell, room, left))
            except BaseException as error:
                tell(error)
            finally:
                tell(_END)

        future = self._queues[pool].submit(done)
        try:
            while (value := await queue.get()) is not _END:
                room.release()
                if isinstance(value, AbandonedError):
                    continue
                if isinstance(value, BaseException):
                    raise value
                yield value
        finally:
            left.set()
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
        """What an iterator of the collection gives, as it comes; it is closed when nobody takes
        more."""

        def stream(graph: KnowledgeGraph) -> Generator[M, None, None]:
            found = begin(graph)
            try:
                yield from found
            finally:
                close = getattr(found, "close", None)
                if close is not None:
                    close()

        async for told in self.stream(access, collection, stream, pool=pool):
            if isinstance(told, Message):
                yield told.value

    # --- life ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The service, from its start to its end: finished sessions are folded in all the while,
        and at the end nothing that was begun is lost."""
        folding = asyncio.create_task(self._keep_folding())
        try:
            yield
        finally:
            self.stopping.set()
            folding.cancel()
            with suppress(asyncio.CancelledError):
                await folding
            await asyncio.to_thread(self.close)

    async def _keep_folding(self) -> None:
        while True:
            await asyncio.sleep(_FOLD_EVERY)
            for graph in list(self._graphs.values()):
                try:
                    await asyncio.to_thread(graph.fold)
                except TgraphError as error:
                    log.warning("%s", error)

    def close(self) -> None:
        """Let what is under way end, then let go of everything."""
        for queue in self._queues.values():
            queue.close()
        for collection in list(self._graphs):
            self.forget(collection)


def _of(access: Access, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings with who is on record."""
    person = {"person": access.person} if access.person else {}
    return {**(settings or {}), **person}


def _drained(
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
