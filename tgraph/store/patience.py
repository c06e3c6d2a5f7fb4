"""Queries with time limits.

Oxigraph queries cannot be interrupted, and damaged blocks may cause endless evaluation; each
query therefore runs in a separate thread, which callers may abandon."""

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
    """SELECT result rows, readable once, as found by the query thread."""

    def __init__(
        self, thread: _QueryThread, variables: list[Variable], rows: list[QuerySolution]
    ) -> None:
        self.variables = variables
        self._thread = thread
        self._take_rows(rows)
        weakref.finalize(self, thread.leave).atexit = False

    def _take_rows(self, rows: list[QuerySolution]) -> None:
        self._rows = rows[::-1]
        self._is_last = len(rows) < AT_ONCE

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> QuerySolution:
        if not self._rows and not self._is_last:
            self._take_rows(self._thread.read_rows())
        if not self._rows:
            raise StopIteration
        return self._rows.pop()


class _QueryThread:
    """A query thread: finds first rows, then continues on demand; engine objects never leave
    the thread."""

    def __init__(self, evaluate: Callable[[], Results], check: Callable[[], None]) -> None:
        self._check = check
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._found: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._run_query, args=(evaluate,), daemon=True).start()

    def read_rows(self) -> list[QuerySolution]:
        """Return the next rows; fewer than ``AT_ONCE`` rows mean the end.

        Errors are those of ``wait``."""
        self._wanted.put(True)
        rows: list[QuerySolution] = self.wait()
        return rows

    def wait(self) -> Any:
        """Return the thread's next outcome, raising its errors.

        Timeouts raise ``StoreError``, naming a damaged file if found."""
        try:
            outcome = self._found.get(timeout=SUSPICIOUS)
        except Empty:
            self._check()
            outcome = self._last_wait()
        if isinstance(outcome, OSError | RuntimeError):
            raise store_error(outcome) from outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _last_wait(self) -> Any:
        try:
            return self._found.get(timeout=LIMIT - SUSPICIOUS)
        except Empty:
            raise StoreError(
                f"A query of the store was given up after {LIMIT:g} seconds.",
                "Run `tgraph doctor` to look into it.",
            ) from None

    def leave(self) -> None:
        """Stop the thread after abandoning remaining rows."""
        self._wanted.put(False)

    def _run_query(self, evaluate: Callable[[], Results]) -> None:
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


def evaluate_query(evaluate: Callable[[], Results], check: Callable[[], None]) -> Results:
    """Evaluate a query in a thread; slow queries call ``check``, to find causes."""
    thread = _QueryThread(evaluate, check)
    results: Results | tuple[list[Variable], list[QuerySolution]] = thread.wait()
    return PatientSolutions(thread, *results) if isinstance(results, tuple) else results
