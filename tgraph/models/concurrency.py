"""Concurrent calls: limits at once and per minute, and early end of waiting.

Everything uses threads: an index run calls ``complete`` from a ``ThreadPoolExecutor``, and
every waiting thread (for a place, for a window, for a retry) ends immediately when the run is
cancelled."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from tgraph.errors import TgraphError, UsageError

MINUTE = 60.0


class RunCancelledError(TgraphError):
    """The run was interrupted: waits and calls that were under way ended early."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("Interrupted.")


class Cancellation:
    """A permanent switch ending every registered wait."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._actions: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def set(self) -> None:
        """End all waits and interrupt running calls; thread-safe."""
        with self._lock:
            self._event.set()
            actions = list(self._actions)
        for action in actions:
            action()

    def is_set(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raises ``RunCancelledError`` if the switch is set."""
        if self._event.is_set():
            raise RunCancelledError

    def sleep(self, seconds: float) -> None:
        """Waits that long; raises ``RunCancelledError`` as soon as the switch is set."""
        self._event.wait(seconds)
        self.check()

    def add(self, action: Callable[[], None]) -> None:
        """Register ``action`` to run when cancelled, immediately if already cancelled."""
        with self._lock:
            self._actions.append(action)
            already = self._event.is_set()
        if already:
            action()

    def remove(self, action: Callable[[], None]) -> None:
        with self._lock:
            if action in self._actions:
                self._actions.remove(action)


@dataclass(slots=True)
class _Entry:
    at: float
    tokens: int


@dataclass(slots=True)
class Window:
    """A sliding window over calls of the last minute; callers supply the times."""

    requests: int | None = None
    tokens: int | None = None
    seconds: float = MINUTE
    _entries: deque[_Entry] = field(default_factory=deque)

    def admit(self, now: float, tokens: int) -> _Entry | float:
        """Return an admission entry, or seconds to wait before asking again.

        A call larger than the whole token limit is admitted into an empty window, because
        waiting would never help."""
        while self._entries and self._entries[0].at <= now - self.seconds:
            self._entries.popleft()
        full = self.requests is not None and len(self._entries) >= self.requests
        if self._entries and (full or self._exceeds_limit(tokens)):
            return max(self._entries[0].at + self.seconds - now, 0.001)
        entry = _Entry(now, tokens)
        if self.requests is not None or self.tokens is not None:
            self._entries.append(entry)
        return entry

    def _exceeds_limit(self, tokens: int) -> bool:
        """Return whether adding so many tokens exceeds the limit."""
        if self.tokens is None:
            return False
        return sum(entry.tokens for entry in self._entries) + tokens > self.tokens


@dataclass(slots=True)
class Slot:
    """A place among running calls; ``spent`` corrects the token estimate used at admission."""

    _entry: _Entry

    def record_tokens(self, tokens: int) -> None:
        self._entry.tokens = tokens


_sharing: ContextVar[int] = ContextVar("_sharing", default=1)


@contextmanager
def shared_by(processes: int) -> Iterator[None]:
    """Give limiters pickled inside the context an equal share of the limits, for ``processes``
    processes."""
    token = _sharing.set(processes)
    try:
        yield
    finally:
        _sharing.reset(token)


def _share_limit(name: str, limit: int | None) -> int | None:
    processes = _sharing.get()
    if limit is not None and limit < processes:
        raise UsageError(
            f"{name} is {limit}, and {processes} workers share it.",
            "Raise the setting, or use fewer workers.",
        )
    return limit and limit // processes


class Limiter:
    """A limiter for concurrent calls and for requests and tokens per minute.

    At most ``concurrency`` calls run at once. ``requests_per_minute`` and ``tokens_per_minute``
    count over a sliding window and are off when None. A thread holding a place (an open stream)
    must not wait for a second place."""

    def __init__(
        self,
        concurrency: int = 4,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        cancellation: Cancellation | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, value in (
            ("concurrency", concurrency),
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}, but must be at least 1.")
        self.cancellation = cancellation or Cancellation()
        self._limits = concurrency, requests_per_minute, tokens_per_minute
        self._free = concurrency
        self._window = Window(requests_per_minute, tokens_per_minute)
        self._paused_until = 0.0
        self._now = monotonic
        self._changed = threading.Condition()
        self.cancellation.add(self._notify_waiters)

    def __reduce__(self) -> tuple[type[Limiter], tuple[int | None, ...]]:
        concurrency, requests, tokens = self._limits
        names = "requests_per_minute", "tokens_per_minute"
        return Limiter, (concurrency, *map(_share_limit, names, (requests, tokens)))

    def _notify_waiters(self) -> None:
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def slot(self, tokens: int = 0) -> Iterator[Slot]:
        """Yield a place for a request of about ``tokens`` tokens, waiting for the limits.

        Raises ``RunCancelledError`` if the run is cancelled before a place is free."""
        entry = self._acquire_entry(tokens)
        try:
            yield Slot(entry)
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()

    def _acquire_entry(self, tokens: int) -> _Entry:
        with self._changed:
            while True:
                self.cancellation.check()
                admitted = self._try_entry(tokens)
                if isinstance(admitted, _Entry):
                    self._free -= 1
                    return admitted
                self._changed.wait(admitted)

    def _try_entry(self, tokens: int) -> _Entry | float | None:
        """Return an entry, the seconds to wait, or None: wait for a released place."""
        now = self._now()
        if self._free < 1:
            return None
        if now < self._paused_until:
            return self._paused_until - now
        return self._window.admit(now, tokens)

    def pause(self, seconds: float) -> None:
        """Pause new calls for the given seconds, as requested by the server (``Retry-After``)."""
        with self._changed:
            self._paused_until = max(self._paused_until, self._now() + seconds)


Item = TypeVar("Item")
Result = TypeVar("Result")


def do_nothing() -> None:
    """Do nothing, as cancel action of uncancellable calls."""


def run_parallel(
    items: Sequence[Item],
    work: Callable[[Item], Result],
    most: int,
    cancel: Callable[[], None] = do_nothing,
) -> list[Result]:
    """Return results in item order, working on ``most`` items concurrently at most.

    The first error ends the work: waiting items are not started, ``cancel`` is called to end
    running calls, and the error of the earliest failed item is raised. Interruptions have the
    same effect."""
    if not items:
        return []
    pool = ThreadPoolExecutor(min(most, len(items)), "calls")
    futures: list[Future[Result]] = []
    try:
        futures = [pool.submit(work, item) for item in items]
        completed_futures, _ = wait(futures, return_when=FIRST_EXCEPTION)
        return [future.result() for future in futures if future in completed_futures]
    except BaseException:
        cancel()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
