"""Work of an index run that others do: extraction, claims, summaries, reports, contexts, embedding.

What is found doesn't depend on who finds it, and a phase keeps the order of its items, so a graph
is the same whoever worked on it. A task returns its calls with its result, and whoever asked for it
puts them on record. A model's replies are remembered here: those that are known go with a task, and
those that it had come back with it. What a worker can't do, since it died or can't be told, is done
here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tgraph.errors import TgraphError
from tgraph.executors import DaskExecutor, ProcessExecutor
from tgraph.model import Agent
from tgraph.models.base import Call, CallSink, Embedder, no_sink
from tgraph.models.concurrency import RunCancelledError, run_parallel, shared_by
from tgraph.models.reply_cache import UnknownReplyError, only_known, remember_entries
from tgraph.settings import ExecutorSettings

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

M = TypeVar("M")

_METHODS = frozenset(("extract", "claims", "summarise", "write", "situate"))
"""What makers are asked for; the last argument is where their calls go."""

_TEXTS = 64
"""Texts that are worth sending to be embedded elsewhere."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A task outcome: result, recorded model calls, error, and ``replies`` for the reply cache."""

    result: Any
    calls: tuple[Call, ...]
    error: TgraphError | None = None
    replies: Mapping[str, bytes] = field(default_factory=dict)


def run_task(
    maker: bytes, method: str, arguments: Sequence[Any], known: Mapping[str, bytes]
) -> Outcome:
    """Run a task: call a method of a pickled maker or embedder, with ``known`` cached replies.

    Each process unpickles a maker once."""
    calls: list[Call] = []
    with remember_entries(known) as had:
        try:
            result = getattr(_unpickle_maker(maker), method)(*arguments, calls.append)
        except TgraphError as error:
            return Outcome(None, tuple(calls), error, had)
    return Outcome(result, tuple(calls), None, had)


@lru_cache(maxsize=16)
def _unpickle_maker(maker: bytes) -> Any:
    return pickle.loads(maker)  # noqa: S301 - from whoever runs the index


class Workers:
    """Run helpers, started with a run's initial task.

    A cluster calls models too, each worker within its share of the rate limits; local processes
    call none."""

    def __init__(self, wanted: ExecutorSettings) -> None:
        self._wanted = wanted
        self._waiting: set[Future[Outcome]] = set()
        self._lock = Lock()
        self._cancelled = False

    @property
    def is_cluster(self) -> bool:
        return bool(self._wanted.address)

    @property
    def slots(self) -> int:
        """Return the number of concurrent tasks."""
        return self._dask_cluster.slots if self.is_cluster else self._wanted.workers

    @cached_property
    def _dask_cluster(self) -> DaskExecutor:
        return DaskExecutor(self._wanted.address)

    @cached_property
    def _task_executor(self) -> Executor:
        return self._dask_cluster if self.is_cluster else ProcessExecutor(self._wanted.workers)

    def helping(self, maker: M) -> M:
        """Return a maker that delegates work to the workers where possible."""
        agent: Agent = maker.agent  # type: ignore[attr-defined]
        if agent.kind == "model" and not self.is_cluster:
            return maker
        data = self._pickle_maker(maker)
        return maker if data is None else cast("M", _SentMaker(maker, data, self))

    def embedding(self, embedder: Embedder) -> Embedder:
        """Return an embedder that delegates work to a cluster; locally, the embedder itself
        uses threads."""
        data = self._pickle_maker(embedder) if self.is_cluster else None
        return embedder if data is None else cast("Embedder", _SentEmbedder(embedder, data, self))

    def _pickle_maker(self, maker: object) -> bytes | None:
        """Return pickled bytes, or None if pickling fails, for instance with a program's own
        model.

        Raise ``UsageError`` if rate limits are too small for sharing, ``EndpointError`` if no
        cluster exists."""
        try:
            with shared_by(self._dask_cluster.processes if self.is_cluster else 1):
                return pickle.dumps(maker, pickle.HIGHEST_PROTOCOL)
        except TgraphError:
            raise
        except Exception:
            return None

    def run_task(
        self,
        data: bytes,
        method: str,
        arguments: Sequence[Any],
        here: Callable[[], Any],
        known: Mapping[str, bytes] | None = None,
    ) -> Outcome:
        """Return the task outcome, from a worker or, after executor shutdown, from local
        execution."""
        try:
            future = self._task_executor.submit(run_task, data, method, arguments, known or {})
        except RuntimeError:  # it was shut down meanwhile
            return Outcome(here(), ())
        with self._lock:
            self._waiting.add(future)
            if self._cancelled:
                future.cancel()
        try:
            return future.result()
        except CancelledError as error:
            raise RunCancelledError from error
        except Exception:  # the worker died, or can't do it: whatever is wrong is raised here
            return Outcome(here(), ())
        finally:
            with self._lock:
                self._waiting.discard(future)

    def cancel(self) -> None:
        """Cancel pending tasks and start no new ones."""
        with self._lock:
            self._cancelled = True
            waiting = list(self._waiting)
        for future in waiting:
            future.cancel()

    def close(self) -> None:
        if "_executor" in vars(self):
            self._task_executor.shutdown(wait=not self._cancelled, cancel_futures=True)


class _SentMaker:
    """A proxy maker that delegates work to workers; all other attributes come from the maker."""

    def __init__(self, maker: Any, data: bytes, workers: Workers) -> None:
        self._maker = maker
        self._data = data
        self._workers = workers

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._maker, name)
        return partial(self._delegate, name, attribute) if name in _METHODS else attribute

    def _delegate(self, name: str, here: Callable[..., Any], *arguments: Any) -> Any:
        *plain, sink = arguments
        do = partial(self._workers.run_task, self._data, name, plain, partial(here, *plain, sink))
        if self._maker.agent.kind != "model":
            return _unwrap_outcome(do(), sink)
        calls: list[Call] = []
        with only_known() as known_replies:
            try:
                outcome = Outcome(here(*plain, calls.append), tuple(calls))
            except UnknownReplyError as error:
                cache = error.cache
            except TgraphError as error:
                return _unwrap_outcome(Outcome(None, tuple(calls), error), sink)
            else:
                return _unwrap_outcome(outcome, sink)
        outcome = do(known_replies)
        for key, entry in outcome.replies.items():
            if cache.get(key) != entry:
                cache[key] = entry
        return _unwrap_outcome(outcome, sink)


class _SentEmbedder:
    """An embedder that distributes batches of texts among workers.

    A text has the same vector regardless of its batch."""

    def __init__(self, embedder: Embedder, data: bytes, workers: Workers) -> None:
        self._embedder = embedder
        self._data = data
        self._workers = workers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        import numpy as np

        if len(texts) < 2 * _TEXTS:
            return self._embedder.embed(texts, sink)
        size = max(_TEXTS, -(-len(texts) // self._workers.slots))
        parts = [list(texts[at : at + size]) for at in range(0, len(texts), size)]

        def embed_part(part: list[str]) -> NDArray[float32]:
            here = partial(self._embedder.embed, part, sink)
            vectors: NDArray[float32] = _unwrap_outcome(
                self._workers.run_task(self._data, "embed", [part], here), sink
            )
            return vectors

        return np.concatenate(run_parallel(parts, embed_part, len(parts)))


def _unwrap_outcome(outcome: Outcome, sink: CallSink) -> Any:
    """Pass on recorded calls of a task and return its result, or raise its error."""
    for call in outcome.calls:
        sink(call)
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def open_workers(wanted: ExecutorSettings) -> Workers | None:
    """Return workers according to executor settings, or None if local processing suffices."""
    return Workers(wanted) if wanted.address or wanted.workers > 1 else None
