"""Queries that end. Oxigraph can't be told to stop, and over a damaged block it may go on for ever;
so each query is evaluated in a thread of its own, which nobody has to wait for."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Self

from pyoxigraph import QuerySolution, QuerySolutions, Variable

from tgraph.errors import StoreError
from tgraph.store.base import Results
from tgraph.store.files import store_error

AT_ONCE = 2_000
"""Rows that are handed over together."""

SUSPICIOUS = 5.0
"""Seconds without a row after which the files of the store are looked at."""

LIMIT = 600.0
"""Seconds without a row after which a query is given up."""


class PatientSolutions:
    """The rows of a SELECT, once, as its thread finds them."""

    def __init__(
        self, thread: _QueryThread, variables: list[Variable], rows: list[QuerySolution]
    ) -> None:
        self.variables = variables
        self._thread = thread
        self._take(rows)
        weakref.finalize(self, thread.leave).atexit = False

    def _take(self, rows: list[QuerySolution]) -> None:
        self._rows = rows[::-1]
        self._is_last = len(rows) < AT_ONCE

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> QuerySolution:
        if not self._rows and not self._is_last:
            self._take(self._thread.more())
        if not self._rows:
            raise StopIteration
        return self._rows.pop()


class _QueryThread:
    """The thread. It finds the first rows and goes on only when it is asked to; what the engine
    evaluates never leaves it."""

    def __init__(self, evaluate: Callable[[], Results], check: Callable[[], None]) -> None:
        self._check = check
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._found: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._run, args=(evaluate,), daemon=True).start()

    def more(self) -> list[QuerySolution]:
        """The next rows; fewer than ``AT_ONCE`` are the last. Raises as ``wait`` does."""
        self._wanted.put(True)
        rows: list[QuerySolution] = self.wait()
        return rows

    def wait(self) -> Any:
        """What it finds next. What it fails with is raised; ``StoreError`` where it takes too long,
        that of the damaged file if there is one."""
        try:
            found = self._found.get(timeout=SUSPICIOUS)
        except Empty:
            self._check()
            found = self._last_wait()
        if isinstance(found, OSError | RuntimeError):
            raise store_error(found) from found
        if isinstance(found, BaseException):
            raise found
        return found

    def _last_wait(self) -> Any:
        try:
            return self._found.get(timeout=LIMIT - SUSPICIOUS)
        except Empty:
            raise StoreError(
                f"A query of the store was given up after {LIMIT:g} seconds.",
                "Run `tgraph doctor` to look into it.",
            ) from None

    def leave(self) -> None:
        """Nobody wants more of it."""
        self._wanted.put(False)

    def _run(self, evaluate: Callable[[], Results]) -> None:
        try:
            results = evaluate()
            if not isinstance(results, QuerySolutions):
                self._found.put(results)
                return
            rows = list(islice(results, AT_ONCE))
            self._found.put((results.variables, rows))
            while len(rows) == AT_ONCE and self._wanted.get():
                rows = list(islice(results, AT_ONCE))
                self._found.put(rows)
        except BaseException as error:
            self._found.put(error)


def evaluated(evaluate: Callable[[], Results], check: Callable[[], None]) -> Results:
    """The results of a query. ``check`` is called when it takes long, to say why if it can."""
    thread = _QueryThread(evaluate, check)
    found: Results | tuple[list[Variable], list[QuerySolution]] = thread.wait()
    return PatientSolutions(thread, *found) if isinstance(found, tuple) else found
