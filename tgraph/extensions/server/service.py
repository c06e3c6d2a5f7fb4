"""Service shared by all interfaces: open graphs, thread pools, limits."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, NoReturn, TypeVar

import tgraph
from tgraph.engine.ask.question_run import AbandonedError
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import NoCollectionError, TgraphError, UsageError
from tgraph.explain.query.sparql import StoppedQueryError
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.problems import BusyError
from tgraph.extensions.server.supervision import Supervisor
from tgraph.settings import Settings, load_settings
from tgraph.shortages import check_request_headroom, explain_shortage, explained_shortages
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
_FILE_THREADS = 8
"""Threads for what belongs to no request's queue: folding, and files that are sent."""
_AHEAD = 64
"""Messages of a stream that wait for their reader."""
_PATIENCE = 60.0
"""Seconds that a stream waits for its reader, and a request for a collection that is opened."""
_OVERLOADED = "The server is overloaded.", "Try again in a moment."


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Server limits.

    Limits cover concurrent questions, readings and audits, queue length for each and seconds in a
    queue; megabytes per upload, uploads at once and jobs that haven't ended, each in all and of
    one person; kilobytes per other request and per result; seconds per query, its delivery
    included."""

    asking: int = 4
    reading: int = 4
    auditing: int = 2
    waiting: int = 100
    waiting_seconds: float = 120.0
    upload_mb: int = 100
    uploads: int = 8
    uploads_each: int = 3
    jobs: int = 200
    jobs_each: int = 20
    request_kb: int = 1024
    result_kb: int = 200 * 1024
    query_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class StopTimes:
    """Seconds of a stop: for requests to be answered, then for work to end by itself, then for work
    that was told to stop; ``last`` seconds after the stop the process ends whatever goes on."""

    drain: float = 35.0
    grace: float = 2.0
    abort: float = 8.0
    last: float = 50.0


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


def _start_pool(name: str, threads: int) -> ThreadPoolExecutor:
    """Return a pool whose threads run: where memory is missing later, none has to be started."""
    pool = ThreadPoolExecutor(threads, f"tgraph-{name}")
    barrier = threading.Barrier(threads + 1)
    for _ in range(threads):
        pool.submit(barrier.wait)
    barrier.wait()
    return pool


class _Queue:
    """A thread pool with bounded queue."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._pool = _start_pool(name, threads)
        self._most = threads + waiting
        self._lock = threading.Lock()
        self._futures: set[Future[Any]] = set()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if len(self._futures) >= self._most:
                raise BusyError(*_OVERLOADED)
            try:
                future = self._pool.submit(work)
            except RuntimeError as error:
                stopping = BusyError("The server is stopping.", "Try again in a moment.")
                raise explain_shortage(error) or stopping from error
            self._futures.add(future)
        future.add_done_callback(self._release_slot)
        return future

    def _release_slot(self, future: Future[Any]) -> None:
        with self._lock:
            self._futures.discard(future)

    @property
    def taken(self) -> int:
        return len(self._futures)

    def close(self) -> list[Future[Any]]:
        """Take no more work; return what is running."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            return list(self._futures)


class Service:
    """Open graphs of a folder, shared by all interfaces; one graph per collection.

    Work runs in threads, each with a separate view (``KnowledgeGraph.view``)."""

    def __init__(
        self,
        root: str | Path,
        limits: ServerLimits = ServerLimits(),
        settings: Mapping[str, Any] | None = None,
        stop: StopTimes = StopTimes(),
        **options: Any,
    ) -> None:
        self.stop_times = stop
        self.is_stuck = False
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
        with self._hold_opening():
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
        with self._hold_opening():
            graph = self._graphs.pop(collection, None)
        if graph is not None:
            graph.close()

    @contextmanager
    def _hold_opening(self) -> Iterator[None]:
        if not self._opening.acquire(timeout=_PATIENCE):
            raise BusyError("A collection is being opened.", "Try again in a moment.")
        try:
            yield
        finally:
            self._opening.release()

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
            graph = self.graph(collection)
            values = _settings_with_person(access, settings)
            with _fitting_remedies(access), graph.view(values, message=message) as view:
                return work(view)

        return await self.call(run_work, pool)

    async def call(self, work: Callable[[], T], pool: Pool = "read") -> T:
        """Return the result of ``work``, which needs no collection; raise ``BusyError`` where it
        waited too long for a thread."""

        def call_work() -> T:
            with explained_shortages():
                return work()

        check_request_headroom()
        future = self._queues[pool].submit(call_work)
        with self._bounded_wait(future):
            try:
                return await asyncio.wrap_future(future)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise BusyError(*_OVERLOADED) from None

    @contextmanager
    def _bounded_wait(self, future: Future[Any]) -> Iterator[None]:
        """Cancel work that has not begun when its time to wait is over."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.limits.waiting_seconds, future.cancel)
        try:
            yield
        finally:
            timer.cancel()

    async def stream(
        self,
        access: Access,
        collection: str,
        begin: Callable[[KnowledgeGraph], Generator[M, None, R]],
        *,
        pool: Pool = "ask",
        settings: Mapping[str, Any] | None = None,
        message: Callable[[str], None] = log.info,
        delivery: float | None = None,
    ) -> AsyncIterator[Message[M] | R]:
        """Yield stream messages live, finally the stream's return value.

        Leaving early abandons the stream, and the record says so; so does a reader who takes
        nothing for a minute. Where the messages are not all taken after ``delivery`` seconds, a
        ``StoppedQueryError`` ends them."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        room = _Room(delivery)

        def tell(value: Any) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, value)

        def stream_work() -> None:
            try:
                with explained_shortages():
                    graph = self.graph(collection)
                    values = _settings_with_person(access, settings)
                    with _fitting_remedies(access), graph.view(values, message=message) as view:
                        tell(_forward_messages(begin(view), tell, room))
            except BaseException as error:
                tell(error)
            finally:
                tell(_END)

        def tell_refusal(future: Future[None]) -> None:
            if future.cancelled():  # nobody hears it but who waits for a thread
                with suppress(RuntimeError):
                    tell(BusyError(*_OVERLOADED))

        check_request_headroom()
        future = self._queues[pool].submit(stream_work)
        future.add_done_callback(tell_refusal)
        try:
            with self._bounded_wait(future):
                while (value := await queue.get()) is not _END:
                    room.make()
                    if isinstance(value, AbandonedError):
                        continue
                    if isinstance(value, BaseException):
                        raise value
                    yield value
        finally:
            room.leave()
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

        messages = self.stream(
            access, collection, stream, pool=pool, delivery=self.limits.query_seconds
        )
        async for stream_item in messages:
            if isinstance(stream_item, Message):
                yield stream_item.value

    # --- life ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the service from start to shutdown.

        Finished sessions are folded continuously; shutdown completes all started work."""
        asyncio.get_running_loop().set_default_executor(_start_pool("files", _FILE_THREADS))
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
        """Finish running work, then close all graphs.

        Work that goes on is told to stop, and recorded as aborted. Where it can't be told,
        ``is_stuck`` is set, and the process has to end as it is: whoever opens the graph next
        records the work as aborted."""
        running = [future for queue in self._queues.values() for future in queue.close()]
        times = self.stop_times
        if wait(running, times.grace).not_done:
            for graph in list(self._graphs.values()):
                graph.opened.parts.cancel()
        unended = wait(running, times.abort).not_done
        if unended:
            self.is_stuck = True
            log.error("%d pieces of work did not end and are left.", len(unended))
            return
        for collection in list(self._graphs):
            self.forget(collection)

    def leave(self) -> None:
        """End the process at once where work is stuck, for the interpreter would wait for it."""
        if self.is_stuck:
            end_process()


def end_process() -> NoReturn:
    """End the process whatever its threads do. What was acknowledged is on the disk."""
    os._exit(0)


def _settings_with_person(access: Access, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return settings including the recorded person."""
    person = {"person": access.person} if access.person else {}
    return {**(settings or {}), **person}


@contextmanager
def _fitting_remedies(access: Access) -> Iterator[None]:
    """Remove the list of existing names from errors about unknown names, for callers without the
    right to read."""
    try:
        yield
    except UsageError as error:
        if "read" not in access.rights:
            error.remedy, error.args = "", (error.message,)
        raise


class _Room:
    """Room for the messages of a stream that wait for their reader."""

    def __init__(self, delivery: float | None) -> None:
        self._places = threading.Semaphore(_AHEAD)
        self._left = threading.Event()
        self._delivery = delivery
        self._end = None if delivery is None else time.monotonic() + delivery

    def make(self) -> None:
        """Make room for a message."""
        self._places.release()

    def leave(self) -> None:
        """Say that nobody reads any more."""
        self._left.set()
        self._places.release()

    def wait(self) -> None:
        """Wait for room; raise ``AbandonedError`` where nobody reads, ``StoppedQueryError`` where
        the time of delivery is over."""
        patience = _PATIENCE if self._end is None else max(self._end - time.monotonic(), 0.0)
        has_room = self._places.acquire(timeout=patience)
        if self._left.is_set():
            raise AbandonedError
        if not has_room and self._delivery is not None:
            raise StoppedQueryError(
                f"The result was not taken within {self._delivery:g} seconds.",
                "Narrow the query, or read faster.",
            )
        if not has_room:
            raise AbandonedError


def _forward_messages(stream: Generator[M, None, R], tell: Callable[[Any], None], room: _Room) -> R:
    """Tell each message while somebody listens; what the stream returns."""
    try:
        while True:
            try:
                room.wait()
            except (AbandonedError, StoppedQueryError) as reason:
                value = stream.throw(reason)
            else:
                value = next(stream)
            tell(Message(value))
    except StopIteration as end:
        result: R = end.value
        return result
    finally:
        stream.close()
