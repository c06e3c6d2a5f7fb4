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
from tgraph.models.concurrency import RunCancelledError, shared_by, together
from tgraph.models.reply_cache import UnknownReplyError, knowing, only_known
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
    """What a task came to, the calls that it made, and the entries for the cache of ``replies``."""

    result: Any
    calls: tuple[Call, ...]
    error: TgraphError | None = None
    replies: Mapping[str, bytes] = field(default_factory=dict)


def work(
    maker: bytes, method: str, arguments: Sequence[Any], known: Mapping[str, bytes]
) -> Outcome:
    """The task: one method of a pickled maker or embedder, of which each process makes one, with
    the replies that are ``known`` of it."""
    calls: list[Call] = []
    with knowing(known) as had:
        try:
            result = getattr(_made(maker), method)(*arguments, calls.append)
        except TgraphError as error:
            return Outcome(None, tuple(calls), error, had)
    return Outcome(result, tuple(calls), None, had)


@lru_cache(maxsize=16)
def _made(maker: bytes) -> Any:
    return pickle.loads(maker)  # noqa: S301 - from whoever runs the index


class Workers:
    """Others who work for a run, from the first task on. A cluster asks models too, each of its
    workers within its share of the rate limits; processes of this machine ask none."""

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
        """How many tasks they do at the same time."""
        return self._cluster.slots if self.is_cluster else self._wanted.workers

    @cached_property
    def _cluster(self) -> DaskExecutor:
        return DaskExecutor(self._wanted.address)

    @cached_property
    def _executor(self) -> Executor:
        return self._cluster if self.is_cluster else ProcessExecutor(self._wanted.workers)

    def helping(self, maker: M) -> M:
        """The maker, whose work the others do as far as they can."""
        agent: Agent = maker.agent  # type: ignore[attr-defined]
        if agent.kind == "model" and not self.is_cluster:
            return maker
        data = self._pickled(maker)
        return maker if data is None else cast("M", _SentMaker(maker, data, self))

    def embedding(self, embedder: Embedder) -> Embedder:
        """The same for an embedder, in a cluster; here its threads do it."""
        data = self._pickled(embedder) if self.is_cluster else None
        return embedder if data is None else cast("Embedder", _SentEmbedder(embedder, data, self))

    def _pickled(self, maker: object) -> bytes | None:
        """None for what can't be told to others, such as a model that a program made itself.
        ``UsageError`` where the rate limits are too small to be shared, ``EndpointError`` where
        there is no cluster."""
        try:
            with shared_by(self._cluster.processes if self.is_cluster else 1):
                return pickle.dumps(maker, pickle.HIGHEST_PROTOCOL)
        except TgraphError:
            raise
        except Exception:
            return None

    def do(
        self,
        data: bytes,
        method: str,
        arguments: Sequence[Any],
        here: Callable[[], Any],
        known: Mapping[str, bytes] | None = None,
    ) -> Outcome:
        """The result of the task, by whoever can do it."""
        try:
            future = self._executor.submit(work, data, method, arguments, known or {})
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
        """Begin no more tasks, and wait for none."""
        with self._lock:
            self._cancelled = True
            waiting = list(self._waiting)
        for future in waiting:
            future.cancel()

    def close(self) -> None:
        if "_executor" in vars(self):
            self._executor.shutdown(wait=not self._cancelled, cancel_futures=True)


class _SentMaker:
    """A maker whose work others do; all that is said of it is said of the maker."""

    def __init__(self, maker: Any, data: bytes, workers: Workers) -> None:
        self._maker = maker
        self._data = data
        self._workers = workers

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._maker, name)
        return partial(self._do, name, found) if name in _METHODS else found

    def _do(self, name: str, here: Callable[..., Any], *arguments: Any) -> Any:
        *plain, sink = arguments
        do = partial(self._workers.do, self._data, name, plain, partial(here, *plain, sink))
        if self._maker.agent.kind != "model":
            return _received(do(), sink)
        calls: list[Call] = []
        with only_known() as known:
            try:
                outcome = Outcome(here(*plain, calls.append), tuple(calls))
            except UnknownReplyError as error:
                cache = error.cache
            except TgraphError as error:
                return _received(Outcome(None, tuple(calls), error), sink)
            else:
                return _received(outcome, sink)
        outcome = do(known)
        for key, entry in outcome.replies.items():
            if cache.get(key) != entry:
                cache[key] = entry
        return _received(outcome, sink)


class _SentEmbedder:
    """An embedder of which others embed parts of many texts. A text has the same vector whatever
    it is embedded with."""

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

        def do(part: list[str]) -> NDArray[float32]:
            here = partial(self._embedder.embed, part, sink)
            vectors: NDArray[float32] = _received(
                self._workers.do(self._data, "embed", [part], here), sink
            )
            return vectors

        return np.concatenate(together(parts, do, len(parts)))


def _received(outcome: Outcome, sink: CallSink) -> Any:
    """The result of a task whose calls are passed on. Raises what was raised in it."""
    for call in outcome.calls:
        sink(call)
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def open_workers(wanted: ExecutorSettings) -> Workers | None:
    """Who works besides this process by the settings; None where nobody does."""
    return Workers(wanted) if wanted.address or wanted.workers > 1 else None
